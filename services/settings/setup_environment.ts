/** Where the search for model servers looks from, which decides what helps when it finds none. */

/** What the page needs to know to name the fix. */
export interface Surroundings {
  /** This process runs in a container: 127.0.0.1 is the container, not the machine around it. */
  isContainer: boolean;
  /** Hosts that are searched. */
  discoverHosts: readonly string[];
}

/** Files that Docker and Podman put into every container they start. */
const CONTAINER_MARKS = ["/.dockerenv", "/run/.containerenv"];

/** Looks whether this is a container. @param marks Files that tell. */
export async function findSurroundings(
  discoverHosts: readonly string[],
  marks: readonly string[] = CONTAINER_MARKS,
): Promise<Surroundings> {
  const found = await Promise.all(marks.map((path) => Deno.stat(path).then(() => true, () => false)));
  return { isContainer: found.includes(true), discoverHosts };
}
