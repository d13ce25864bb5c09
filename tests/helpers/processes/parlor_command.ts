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

/**
 * Runs `parlor …` with the permissions that the start task gives.
 *
 * @param options.cwd The root of the source by default.
 * @param options.typed What is typed into its terminal; `"\x04"` in an empty line ends the input of one read. What it
 *   prints then is all in `stdout`, with this. Only on Linux; without it, the command has no terminal.
 */
export async function runParlor(
  args: string[],
  options: { env?: Record<string, string>; executable?: string; cwd?: string; typed?: string } = {},
): Promise<CommandEnd> {
  const { executable, env = {}, cwd = ROOT, typed } = options;
  // Without --quiet, Deno says on stderr that it waits for the lock of node_modules when others start, too.
  const source = ["run", "--quiet", ...await startPermissions(), `${ROOT}main.ts`, ...args];
  const command = [executable ?? Deno.execPath(), ...executable === undefined ? source : args];
  const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  const [program = "", ...words] = typed === undefined
    ? command
    : ["script", "--quiet", "--return", "--command", quoted, "/dev/null"];
  await using child = new Deno.Command(program, {
    args: words,
    cwd,
    env: { ...ownEnvironment(), ...env },
    clearEnv: true,
    stdin: typed === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  if (typed !== undefined) {
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(typed));
    await writer.close();
  }
  const { code, stdout, stderr } = await child.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}
