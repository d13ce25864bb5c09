/**
 * Fills in project.json for a repository on GitHub, before a build:
 *
 * deno run --allow-write build/project.ts owner/name
 */

/** Returns the text of project.json for a repository. @param repository `"owner/name"` on GitHub. */
export function formatGithubProject(repository: string): string {
  if (!/^[\w.-]+\/[\w.-]+$/.test(repository)) throw new Error(`"${repository}" isn't owner/name`);
  const values = {
    home: `https://github.com/${repository}`,
    // The registry takes only lower case.
    image: `ghcr.io/${repository.toLowerCase()}`,
    // https://docs.github.com/en/rest/releases/releases#get-the-latest-release
    releases_url: `https://api.github.com/repos/${repository}/releases/latest`,
  };
  return `${JSON.stringify(values, null, 2)}\n`;
}

if (import.meta.main) {
  await Deno.writeTextFile(new URL("../project.json", import.meta.url), formatGithubProject(Deno.args[0] ?? ""));
}
