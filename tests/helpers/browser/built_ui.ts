/** The built page for tests. Rebuilt only if its sources have changed. */
import { ensureUi } from "../../../build/ui_builds.ts";
import { openUiFolder } from "../../../routes/ui.ts";

const ROOT = new URL("../../../", import.meta.url);

/** Folder of the developer build, apart from the released page. */
const DEVELOPERS_BUILDS = new URL("node_modules/.cache/parlor-ui/", ROOT);

/**
 * Builds the page if it has to be built: the released one in static/dist, where servers find it, or the developers' one with
 * every component in every state. It stays on disk until this process ends.
 *
 * @returns Path of the folder.
 */
export async function builtUi({ isDev = false } = {}): Promise<string> {
  const builds = isDev ? DEVELOPERS_BUILDS : new URL("static/dist/", ROOT);
  await ensureUi({ isDev, builds });
  return (await openUiFolder(builds.pathname.replace(/\/$/, ""))).path;
}
