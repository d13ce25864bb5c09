/** Runs a command of the program as a process, to its end. */
import { fileURLToPath } from "node:url";
import { startPermissions } from "../../../build.ts";
import { ownEnvironment } from "../app/child_server.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** The result. */
export interface CommandEnd {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs `parlor …` with the permissions that the start task gives. @param options.cwd The root of the source by default. */
export async function runParlor(
  args: string[],
  options: { env?: Record<string, string>; executable?: string; cwd?: string } = {},
): Promise<CommandEnd> {
  const { executable, env = {}, cwd = ROOT } = options;
  // Without --quiet, Deno says on stderr that it waits for the lock of node_modules when others start, too.
  const source = ["run", "--quiet", ...await startPermissions(), `${ROOT}main.ts`, ...args];
  const { code, stdout, stderr } = await new Deno.Command(executable ?? Deno.execPath(), {
    args: executable === undefined ? source : args,
    cwd,
    env: { ...ownEnvironment(), ...env },
    clearEnv: true,
    stdin: "null",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}
