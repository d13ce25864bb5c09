/** Files of the scripts in this folder. */

/** Returns the paths of all files in a folder, sorted and relative to it. @param folder Ends with a slash. */
export async function filesBelow(folder: URL): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  const paths = entries.map(async ({ name, isDirectory }) =>
    isDirectory ? (await filesBelow(new URL(`${name}/`, folder))).map((path) => `${name}/${path}`) : [name]
  );
  return (await Promise.all(paths)).flat().sort();
}
