/** Starts and stops the measured programs, each as a process. */

/** How to start a program. */
export interface ProgramOptions {
  command: string;
  args: string[];
  /** For messages. */
  name: string;
}

/** A running program that has printed its address, or that it is ready. */
export interface Program {
  readonly pid: number;
  /** The port of the first `http://host:port` in its output; 0 if its first line has none. */
  readonly port: number;
  /** Sends a line and returns the response line. */
  ask(line: string): Promise<string>;
  /** Stops it and waits for its end. */
  stop(): Promise<void>;
}

const START_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 15_000;
const encoder = new TextEncoder();

/** All running programs. */
export class Programs {
  #running = new Set<Deno.ChildProcess>();

  /**
   * Starts a program and waits for its first line.
   *
   * @throws {Error} when it ends before, or takes half a minute.
   */
  async start({ command, args, name }: ProgramOptions): Promise<Program> {
    const process = new Deno.Command(command, { args, stdin: "piped", stdout: "piped", stderr: "piped" }).spawn();
    const errors = collectEnd(process.stderr);
    this.#running.add(process);
    process.status.then(() => this.#running.delete(process));
    const input = process.stdin.getWriter();
    const lines = process.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(lineSplitter()).getReader();
    const nextLine = async () => {
      const { value } = await lines.read();
      if (value === undefined) {
        const { code } = await process.status;
        throw new Error(`${name} ended with code ${code}: ${await errors}`);
      }
      return value;
    };
    const first = await within(START_WITHIN_MS, nextLine(), `${name} said nothing for ${START_WITHIN_MS} ms`);
    return {
      pid: process.pid,
      port: Number(/http:\/\/[^/\s]+?:(\d+)/.exec(first)?.[1] ?? 0),
      async ask(line) {
        await input.write(encoder.encode(`${line}\n`));
        return await nextLine();
      },
      async stop() {
        // A task or npx starts the actual program and may not forward the signal.
        const inner = innermostChild(process.pid);
        kill(inner === process.pid ? process : { kill: (signal) => Deno.kill(inner, signal) }, "SIGTERM");
        const timer = setTimeout(() => kill(process, "SIGKILL"), STOP_WITHIN_MS);
        await process.status;
        clearTimeout(timer);
        await input.abort().catch(() => {});
        await lines.cancel().catch(() => {});
      },
    };
  }

  /** Kills all running programs. */
  killAll(): void {
    for (const process of this.#running) kill(process, "SIGKILL");
  }
}

/** Awaits a promise with a time limit. */
export async function within<T>(ms: number, promise: Promise<T>, message: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<never>((_, reject) => timer = setTimeout(() => reject(new Error(message)), ms));
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}

function kill(process: Pick<Deno.ChildProcess, "kill">, signal: Deno.Signal): void {
  try {
    process.kill(signal);
  } catch (error) {
    // It has already ended.
    if (!(error instanceof Deno.errors.NotFound) && !(error instanceof TypeError)) throw error;
  }
}

/** Follows a chain of processes that have one child each. Linux only, as all benchmarks. */
function innermostChild(pid: number): number {
  let children: string;
  try {
    children = Deno.readTextFileSync(`/proc/${pid}/task/${pid}/children`).trim();
  } catch {
    return pid; // It has ended.
  }
  return /^\d+$/.test(children) ? innermostChild(Number(children)) : pid;
}

/** Reads a stream to its end and returns its last characters. */
async function collectEnd(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
  let end = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) end = (end + text).slice(-1_000);
  return end;
}

function lineSplitter(): TransformStream<string, string> {
  let rest = "";
  return new TransformStream({
    transform(text, controller) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) controller.enqueue(line);
    },
  });
}
