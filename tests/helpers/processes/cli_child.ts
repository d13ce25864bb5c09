/** `parlor auth …` as a process with its own home folder. */
import { fileURLToPath } from "node:url";
import { ownEnvironment } from "../app/child_server.ts";

const MAIN = fileURLToPath(new URL("../../../main.ts", import.meta.url));

/** A running command. */
export interface CliChild {
  /** Waits for a match on standard error. @throws {Error} with all output if the command ends before. */
  told(pattern: RegExp): Promise<RegExpExecArray>;
  /** Types a line. */
  type(line: string): Promise<void>;
  /** Waits for the end. */
  ended: Promise<{ code: number; stdout: string; stderr: string }>;
}

/** Options. */
export interface CliOptions {
  environment?: Record<string, string>;
  /** Path of a compiled executable; main.ts by default. */
  executable?: string;
  /** Folder to start it in. */
  cwd?: string;
}

/** Starts a command. @param home Where it keeps its token. */
export function startCli(
  args: string[],
  home: string,
  { environment = {}, executable, cwd }: CliOptions = {},
): CliChild {
  const child = new Deno.Command(executable ?? Deno.execPath(), {
    args: executable === undefined ? ["run", "--quiet", "-A", MAIN, ...args] : args,
    cwd,
    env: { ...ownEnvironment(), BROWSER: "", HOME: home, DENO_DIR: denoDir(), ...environment },
    clearEnv: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  let stderr = "";
  let wake = () => {};
  let hasEnded = false;
  const reading = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      stderr += text;
      wake();
    }
    hasEnded = true;
    wake();
  })();
  const ended = (async () => {
    const [{ code }, stdout] = await Promise.all([child.status, new Response(child.stdout).text(), reading]);
    await writer.close().catch(() => {});
    return { code, stdout, stderr };
  })();
  return {
    ended,
    async told(pattern) {
      for (;;) {
        const match = pattern.exec(stderr);
        if (match !== null) return match;
        if (hasEnded) throw new Error(`The command ended without ${pattern}; it said:\n${stderr}`);
        await new Promise<void>((resolve) => wake = resolve);
      }
    },
    type: (line) => writer.write(new TextEncoder().encode(`${line}\n`)),
  };
}

/** With another home folder, Deno wouldn't find its cache and would download all packages again. */
function denoDir(): string {
  return Deno.env.get("DENO_DIR") ?? `${Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`}/deno`;
}
