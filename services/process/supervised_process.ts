/**
 * Finds external programs, and runs programs that can't outlive Parlor, with the last lines of their output for error
 * messages.
 */
import { AppError, getErrorMessage } from "../errors.ts";
import { join } from "node:path";

/** A running program. */
export interface WatchedProcess {
  readonly pid: number;
  /** The last lines of its output, oldest first. */
  readonly lines: readonly string[];
  /** Resolves when the program has ended and its output was read. */
  readonly ended: Promise<Deno.CommandStatus>;
  /** Sends SIGTERM to it and its children, then SIGKILL after a while, and waits. May be called twice. */
  stop(): Promise<void>;
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
}

const MAX_LINES = 200;
const MAX_LINE = 500;
const STOP_WITHIN_MS = 4_000;
/** How long output is read after the end. A child that goes on in the background can hold it open. */
const OUTPUT_WITHIN_MS = 5_000;

/**
 * The shell becomes the program (`exec`), so the process id is the program's. Before that it starts a watcher that
 * reads a pipe from Parlor. If the pipe closes without a line, Parlor is gone, even by SIGKILL, and the watcher kills
 * the process group. A line on the pipe ends the watcher, so that it never signals a process id that was reused. dash
 * takes no `--` before a negative process id.
 */
const WATCH_SCRIPT = `
exec 3<&0
{ trap '' TERM INT HUP; read -r word <&3 || { kill -TERM -$$; sleep 2; kill -TERM -$$; sleep 2; kill -KILL -$$; }; } \\
  </dev/null >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null
`;

/**
 * Starts a program. On Windows there is no shell to watch it, so it can outlive Parlor if Parlor is killed.
 *
 * @throws {AppError} `not_available` if it can't be started.
 */
export function startWatched(program: string, options: WatchedOptions): WatchedProcess {
  const isWatched = Deno.build.os !== "windows";
  const child = spawn(
    isWatched ? "/bin/sh" : program,
    isWatched ? ["-c", WATCH_SCRIPT, "sh", program, ...options.args] : options.args,
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
  const signal = (name: Deno.Signal) => {
    if (isOver) return;
    try {
      Deno.kill(isWatched ? -child.pid : child.pid, name);
    } catch {
      // Already ended.
    }
  };
  const ended = (async () => {
    const status = await child.status;
    isOver = !isWatched; // a process group can outlive its first process
    const limit = setTimeout(() => giveUp.abort(), OUTPUT_WITHIN_MS);
    await Promise.all(reading);
    clearTimeout(limit);
    if (isStopping) signal("SIGKILL"); // children that have closed their output
    isOver = true;
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
  };
}

function inherited(names: readonly string[] | undefined): Record<string, string> {
  const passes = (name: string) => names === undefined ? !name.startsWith("PARLOR_") : names.includes(name);
  return Object.fromEntries(Object.entries(Deno.env.toObject()).filter(([name]) => passes(name)));
}

function spawn(command: string, args: string[], env: Record<string, string>): Deno.ChildProcess {
  try {
    return new Deno.Command(command, {
      args,
      env,
      clearEnv: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      detached: Deno.build.os !== "windows", // a process group of its own
    }).spawn();
  } catch (cause) {
    throw new AppError("not_available", `Can't start "${args.at(3) ?? command}": ${getErrorMessage(cause)}`, { cause });
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
