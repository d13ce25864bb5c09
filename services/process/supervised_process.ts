/**
 * Finds external programs, and runs programs with the last lines of their output for error messages. They end with
 * Parlor, except those with a watcher pipe, which run on for a while so that the next Parlor can take them over.
 */
import { delay } from "../async/delay.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { join } from "node:path";
import process from "node:process";

/** A running program. */
export interface WatchedProcess {
  readonly pid: number;
  /** The last lines of its output, oldest first. */
  readonly lines: readonly string[];
  /** Resolves when the program has ended and its output was read. */
  readonly ended: Promise<ProcessEnd>;
  /** Sends SIGTERM to it and its children, then SIGKILL after a while, and waits. May be called twice. */
  stop(): Promise<void>;
  /** Lets it run on after the end of Parlor, for a while. Only with a watcher pipe. */
  leave?(): void;
}

/** How a program ended. Nothing more is known of one that another process started. */
export interface ProcessEnd {
  success: boolean;
  code: number | null;
  signal: Deno.Signal | null;
}

/** How to start a program. */
export interface WatchedOptions {
  args: string[];
  /** Environment variables to add to the inherited ones. */
  env: Record<string, string>;
  /** Variables to inherit; by default all except Parlor's own. */
  inherits?: readonly string[];
  /** Time between SIGTERM and SIGKILL, in milliseconds. */
  stopWithinMs?: number;
  /** Lets it outlive Parlor; not on Windows. */
  outlives?: { pipe: WatcherPipe; waitSeconds: number };
}

const MAX_LINES = 200;
const MAX_LINE = 500;
const STOP_WITHIN_MS = 4_000;
/** How long output is read after the end. A child that goes on in the background can hold it open. */
const OUTPUT_WITHIN_MS = 5_000;
/** How often a program that another process started is looked for. */
const TAKEN_POLL_MS = 200;

/**
 * The shell becomes the program (`exec`), so the process id is the program's. Before that it starts a watcher that
 * reads a pipe from Parlor. If the pipe closes without a line, Parlor is gone, even by SIGKILL, and the watcher kills
 * the process group. A line on the pipe ends the watcher, so that it never signals a process id that was reused. dash
 * takes no `--` before a negative process id.
 *
 * A signal to the group mustn't end the watcher before it has set its traps. So the program starts after that: the
 * command substitution ends when the watcher closes its output.
 */
const WATCH_SCRIPT = `
exec 3<&0
: "$({
  trap '' TERM INT HUP
  exec >/dev/null
  read -r word <&3 || { kill -TERM -$$; sleep 2; kill -TERM -$$; sleep 2; kill -KILL -$$; }
} </dev/null 2>/dev/null &)"
exec "$@" 3<&- </dev/null
`;

/**
 * Like the script above, but the watcher reads a named pipe ($1). If nobody has the pipe open, Parlor is gone: the watcher
 * waits $2 seconds for another one to open it, and then ends the process group, as it does if the pipe is removed. Opening
 * the pipe for reading and writing never blocks; without that, the watcher would wait for a writer. A SIGTERM comes from the service manager or from
 * Parlor, and also ends the group. The program's output breaks with Parlor, which must not end it (SIGPIPE).
 */
const OUTLIVE_SCRIPT = `
pipe=$1 seconds=$2
shift 2
: "$({
  end_group() { trap '' TERM; sleep 2; kill -TERM -$$; sleep 2; rm -f "$pipe"; kill -KILL -$$; }
  trap end_group TERM
  trap '' INT HUP
  exec >/dev/null
  left=$seconds
  while [ "$left" -gt 0 ] && [ -p "$pipe" ]; do
    exec 4<>"$pipe" 3<"$pipe" 4>&-
    while read -r word <&3; do
      [ "$word" = over ] && { rm -f "$pipe"; exit; }
      left=$seconds
    done
    left=$((left - 1))
    sleep 1
  done
  trap '' TERM
  kill -TERM -$$
  end_group
} </dev/null 2>/dev/null &)"
trap '' PIPE
exec "$@" </dev/null
`;

/** Parlor's end of the named pipe at which the watcher of a program waits. It closes with Parlor. */
export class WatcherPipe {
  readonly path: string;
  readonly #file: Deno.FsFile;

  private constructor(path: string, file: Deno.FsFile) {
    this.path = path;
    this.#file = file;
  }

  /**
   * Creates a named pipe.
   *
   * @returns `undefined` where there are none: on Windows, and in some file systems.
   */
  static async create(path: string): Promise<WatcherPipe | undefined> {
    if (Deno.build.os === "windows") return undefined;
    try {
      const making = new Deno.Command("mkfifo", { args: ["-m", "600", path], stdout: "null", stderr: "null" });
      return (await making.output()).success ? await WatcherPipe.open(path) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Opens the pipe of a program that is left. */
  static async open(path: string): Promise<WatcherPipe | undefined> {
    try {
      // Also for reading, because opening it for writing alone would wait for a reader.
      return new WatcherPipe(path, await Deno.open(path, { read: true, write: true }));
    } catch {
      return undefined;
    }
  }

  /** Tells the watcher that Parlor has taken the program over. */
  async claim(): Promise<void> {
    await this.#say("mine");
  }

  /** Tells the watcher that the program has ended, so that it ends, too. */
  async finish(): Promise<void> {
    await this.#say("over");
    // What it hasn't read yet would be lost. It removes the pipe when it has.
    const isThere = () => Deno.lstat(this.path).then(() => true, () => false);
    for (let waited = 0; waited < FINISH_WITHIN_MS && await isThere(); waited += FINISH_POLL_MS) {
      await delay(FINISH_POLL_MS);
    }
    await this.discard();
  }

  /** Closes and removes the pipe. */
  async discard(): Promise<void> {
    this.close();
    await Deno.remove(this.path).catch(() => {});
  }

  /** Closes the pipe, as the end of Parlor does. */
  close(): void {
    try {
      this.#file.close();
    } catch {
      // Closed before
    }
  }

  async #say(word: string): Promise<void> {
    await this.#file.write(new TextEncoder().encode(`${word}\n`)).catch(() => {});
  }
}

/** The watcher looks every second. */
const FINISH_WITHIN_MS = 5_000;
const FINISH_POLL_MS = 50;

/**
 * Starts a program. On Windows there is no shell to watch it, so it can outlive Parlor if Parlor is killed.
 *
 * @throws {AppError} `not_available` if it can't be started.
 */
export function startWatched(program: string, options: WatchedOptions): WatchedProcess {
  const { outlives } = options;
  const isWatched = Deno.build.os !== "windows";
  const script = outlives === undefined
    ? [WATCH_SCRIPT, "sh"]
    : [OUTLIVE_SCRIPT, "sh", outlives.pipe.path, String(outlives.waitSeconds)];
  const child = spawn(
    program,
    isWatched ? ["/bin/sh", "-c", ...script, program, ...options.args] : [program, ...options.args],
    { ...inherited(options.inherits), ...options.env },
  );
  const lines: string[] = [];
  const take = (line: string) => {
    lines.push(line.slice(0, MAX_LINE));
    if (lines.length > MAX_LINES) lines.shift();
  };
  const giveUp = new AbortController();
  const reading = [child.stdout, child.stderr].map((stream) => readLines(stream, take, giveUp.signal));
  let isOver = false;
  let isStopping = false;
  let isLeft = false;
  const signal = (name: Deno.Signal) => isOver || signalGroup(child.pid, name);
  const ended = (async (): Promise<ProcessEnd> => {
    const status = await child.status;
    isOver = !isWatched; // a process group can outlive its first process
    const limit = setTimeout(() => giveUp.abort(), OUTPUT_WITHIN_MS);
    await Promise.all(reading);
    clearTimeout(limit);
    if (isStopping) signal("SIGKILL"); // children that have closed their output
    isOver = true;
    if (outlives !== undefined && !isLeft) {
      if (isStopping) await outlives.pipe.discard();
      else outlives.pipe.finish();
    }
    const pipe = child.stdin.getWriter();
    await pipe.write(new TextEncoder().encode("over\n")).catch(() => {}); // No watcher on Windows
    await pipe.close().catch(() => {});
    return status;
  })();
  return {
    pid: child.pid,
    lines,
    ended,
    async stop() {
      isStopping = true;
      signal("SIGTERM");
      const limit = setTimeout(() => signal("SIGKILL"), options.stopWithinMs ?? STOP_WITHIN_MS);
      await ended;
      clearTimeout(limit);
    },
    ...(outlives !== undefined && {
      leave() {
        isLeft = true;
        giveUp.abort();
        child.unref();
        outlives.pipe.close();
      },
    }),
  };
}

/**
 * Takes over a program that an earlier Parlor started and left.
 *
 * @param pipe At which its watcher waits; there is none on Windows.
 */
export async function takeOverProcess(pid: number, pipe: WatcherPipe | undefined): Promise<WatchedProcess> {
  await pipe?.claim();
  const leaving = new AbortController();
  let isOver = false;
  let isStopping = false;
  const signal = (name: Deno.Signal) => isOver || signalGroup(pid, name);
  const ended = (async (): Promise<ProcessEnd> => {
    while (isRunning(pid)) await delay(TAKEN_POLL_MS, leaving.signal);
    if (pipe === undefined) isOver = true;
    if (isStopping) signal("SIGKILL"); // Its children and the watcher, which is in its group
    isOver = true;
    if (isStopping) await pipe?.discard();
    else pipe?.finish();
    return { success: false, code: null, signal: null };
  })().catch(() => new Promise<never>(() => {})); // Left, so its end isn't seen.
  return {
    pid,
    lines: [`(Process ${pid} was started by an earlier Parlor, which had its output.)`],
    ended,
    async stop() {
      isStopping = true;
      signal("SIGTERM");
      const limit = setTimeout(() => signal("SIGKILL"), STOP_WITHIN_MS);
      await ended;
      clearTimeout(limit);
    },
    ...(pipe !== undefined && {
      leave() {
        leaving.abort();
        pipe.close();
      },
    }),
  };
}

/** Sends a signal to a program and what it has started. */
function signalGroup(pid: number, name: Deno.Signal): void {
  try {
    Deno.kill(Deno.build.os === "windows" ? pid : -pid, name);
  } catch {
    // Already ended
  }
}

/** Reports whether a process of this user is running. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/**
 * Returns when a process started, in milliseconds since 1970, to the second; `undefined` if it isn't running or that can't
 * be read.
 */
export async function readStartTime(pid: number): Promise<number | undefined> {
  const command = Deno.build.os === "windows"
    ? ["powershell", "-NoProfile", "-Command", `(Get-Process -Id ${pid}).StartTime.ToUniversalTime().ToString("o")`]
    : ["ps", "-o", "lstart=", "-p", String(pid)];
  try {
    const { stdout } = await new Deno.Command(command[0]!, {
      args: command.slice(1),
      env: { LC_ALL: "C", TZ: "UTC" },
      stdin: "null",
      stderr: "null",
    }).output();
    const text = new TextDecoder().decode(stdout).trim();
    const atMs = Date.parse(text.endsWith("Z") ? text : `${text} UTC`);
    return Number.isNaN(atMs) ? undefined : atMs;
  } catch {
    return undefined; // A system without these programs
  }
}

function inherited(names: readonly string[] | undefined): Record<string, string> {
  const passes = (name: string) => names === undefined ? !name.startsWith("PARLOR_") : names.includes(name);
  return Object.fromEntries(Object.entries(Deno.env.toObject()).filter(([name]) => passes(name)));
}

function spawn(program: string, command: string[], env: Record<string, string>): Deno.ChildProcess {
  try {
    return new Deno.Command(command[0]!, {
      args: command.slice(1),
      env,
      clearEnv: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      detached: Deno.build.os !== "windows", // a process group of its own
    }).spawn();
  } catch (cause) {
    throw new AppError("not_available", `Can't start "${program}": ${getErrorMessage(cause)}`, { cause });
  }
}

async function readLines(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  take: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let rest = "";
  try {
    for await (const text of stream.pipeThrough(new TextDecoderStream(), { signal })) {
      const parts = (rest + text).split(/\r?\n/);
      rest = parts.pop()!.slice(0, MAX_LINE);
      parts.forEach(take);
    }
  } catch {
    // The pipe broke when the process ended, or a child holds it open. Keep the output so far.
  }
  if (rest !== "") take(rest);
}

// Memory usage. Deno doesn't allow reading /proc, so other processes are measured with `ps`.

/** Returns the resident memory of a process in bytes; `undefined` if it has ended or can't be measured. */
export async function measureResidentBytes(pid: number): Promise<number | undefined> {
  if (Deno.build.os === "windows") return undefined;
  try {
    const { stdout } = await new Deno.Command("ps", {
      args: ["-o", "rss=", "-p", String(pid)],
      stdin: "null",
      stderr: "null",
    }).output();
    const kibibytes = Number(new TextDecoder().decode(stdout).trim());
    return kibibytes > 0 ? kibibytes * 1024 : undefined;
  } catch {
    return undefined; // A container without ps
  }
}

/** Returns total and available memory in bytes. For systems that don't report it, memory seems unlimited. */
export function freeMemory(): { free: number; total: number } {
  const { available, total } = Deno.systemMemoryInfo();
  return { free: Deno.build.os === "linux" ? available : total, total };
}

/**
 * Finds a program like a shell: the first file with that name on PATH.
 *
 * @param name Name without `.exe`.
 * @param otherFolders Folders to search after PATH, which is often short for system services.
 */
export async function findOnPath(name: string, otherFolders: readonly string[] = []): Promise<string | undefined> {
  const isWindows = Deno.build.os === "windows";
  const onPath = (Deno.env.get("PATH") ?? "").split(isWindows ? ";" : ":");
  for (const folder of [...onPath, ...otherFolders]) {
    if (folder === "") continue;
    const path = join(folder, isWindows ? `${name}.exe` : name);
    if (await isFile(path)) return path;
  }
  return undefined;
}

/** Reports whether a path is a file, or a link to one. */
export async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then((info) => info.isFile, () => false);
}
