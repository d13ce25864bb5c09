/** Where this build comes from: the addresses in project.json, which are part of the executable. */
import values from "../../project.json" with { type: "json" };

/** Where a build comes from. All are empty, or none is. */
export interface Project {
  /** Page of the source: `"https://github.com/owner/name"`. Files of a release are at `releases/download/v1.2.3/` below it. */
  home: string;
  /** Name of the container image, without tag: `"ghcr.io/owner/name"`. */
  image: string;
  /** Address that returns the latest stable release as JSON with `tag_name`, as GitHub, Gitea and Forgejo do. */
  releasesUrl: string;
}

/** The addresses of this build; all are empty in a build that names no home. */
export const PROJECT: Readonly<Project> = parseProject(values);

/** Reads the text of project.json, parsed as JSON. @throws {Error} if an address is missing or has another form */
export function parseProject({ home, image, releases_url: releasesUrl }: typeof values): Project {
  if (home === "" && image === "" && releasesUrl === "") return { home, image, releasesUrl };
  for (const [name, url] of Object.entries({ home, releases_url: releasesUrl })) {
    if (!/^https:\/\/[^\s/]+(\/[^\s/]+)+$/.test(url)) {
      throw new Error(`"${name}" in project.json isn't an https address without a slash at its end: "${url}"`);
    }
  }
  // The tag is the version. @see https://docs.docker.com/reference/cli/docker/image/tag/
  if (!/^[a-z0-9.-]+(:\d+)?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)+$/.test(image)) {
    throw new Error(`"image" in project.json isn't the lowercase name of an image without a tag: "${image}"`);
  }
  return { home, image, releasesUrl };
}
