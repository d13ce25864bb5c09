/** Starts the storage_*_child.ts programs: processes that can be killed, limited, or stripped of root's privileges. */

import { fileURLToPath } from "node:url";

/** A running child program. */
export interface Child {
  /** Lines of standard output. Ends with the process. */
  lines: AsyncIterator<string>;
  /** Kills it with SIGKILL and waits for its end. */
  kill(): Promise<void>;
  /** Waits for its end. */
  end(): Promise<{ code: number; errorText: string }>;
}

/** How to start a child. */
export interface ChildOptions {
  /** Command line to put before Deno's, such as `["setpriv", …]`. */
  prefix?: string[];
}

/** Starts `tests/helpers/<program>` with this Deno. */
export function startChild(program: string, args: string[], { prefix = [] }: ChildOptions = {}): Child {
  const path = fileURLToPath(new URL(program, import.meta.url));
  const [command, ...rest] = [...prefix, Deno.execPath(), "run", "--quiet", "-A", path, ...args];
  const process = new Deno.Command(command!, { args: rest, stdout: "piped", stderr: "piped" }).spawn();
  const errorText = new Response(process.stderr).text();
  return {
    lines: linesOf(process.stdout),
    async kill() {
      process.kill("SIGKILL");
      await process.status;
    },
    async end() {
      const { code } = await process.status;
      return { code, errorText: await errorText };
    },
  };
}

/** Runs a child to its end and returns its lines. Fails if it fails. */
export async function runChild(program: string, args: string[], options?: ChildOptions): Promise<string[]> {
  const child = startChild(program, args, options);
  const lines: string[] = [];
  for (let next = await child.lines.next(); !next.done; next = await child.lines.next()) lines.push(next.value);
  const { code, errorText } = await child.end();
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${errorText}`);
  return lines;
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = parts.pop() ?? ""; // a last line cut off by the kill was never acknowledged
    yield* parts;
  }
  return undefined;
}
