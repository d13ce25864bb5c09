/** The executable as `deno task build` makes it with the runtime that was installed for the tests. */
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Time limit of a build. */
export const BUILD_MS = 600_000;

/**
 * Builds it.
 *
 * @param denort Folder with the runtime and the Deno of its version.
 * @returns Its path; notices, bill of materials and checksums lie beside it.
 */
export async function buildForTests(denort: string): Promise<string> {
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["task", "--quiet", "build"],
    cwd: ROOT,
    env: { DENORT_BIN: `${denort}/denort`, DENO_COMPILE_CLI: `${denort}/deno`, DENO_TLS_CA_STORE: "system" },
  }).output();
  if (!success) throw new Error(`deno task build failed: ${new TextDecoder().decode(stderr)}`);
  return `${ROOT}dist/parlor`;
}
