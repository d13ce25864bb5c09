/**
 * Runs external programs in separate process groups and leaves no processes behind. A program either runs to its end,
 * with limits, or communicates over standard input and output and ends with Parlor, even if Parlor is killed.
 */
import { spawn } from "node:child_process";
import { AppError, getErrorMessage } from "../errors.ts";
import type { Readable, Writable } from "node:stream";

/** What to run, and its limits. */
export interface ChildGroupOptions {
  program: string;
  args: readonly string[];
  /** The working folder. Its size is limited. */
  folder: string;
  /** The whole environment. */
  env: Record<string, string>;
  timeoutMs: number;
  /** Limit for stdout and stderr together, in bytes. */
  maxOutputBytes: number;
  /** Limit for the size of the folder, in bytes. */
  maxFolderBytes: number;
  signal: AbortSignal;
  /** Called with each line of stdout as it arrives. */
  onLine?(line: string): void;
}

/** The result of a program that ended within its limits. */
export interface ChildGroupResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

const WATCH_INTERVAL_MS = 250;

/**
 * Runs a program until it ends.
 *
 * @throws {AppError} `not_available` if it can't be started, `unprocessable` if it exceeds a limit; the reason of
 *   `signal`
 */
export async function runChildGroup(options: ChildGroupOptions): Promise<ChildGroupResult> {
  const { program, args, folder, env, signal } = options;
  signal.throwIfAborted();
  const child = spawn(program, args, { cwd: folder, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let failure: { reason: unknown } | undefined;
  const stop = (reason: unknown) => {
    failure ??= { reason };
    killGroup(child.pid);
  };
  const onBroken = (what: string) => stop(new AppError("unprocessable", `Stopped "${program}": ${what}`));
  const onAbort = () => stop(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => onBroken(`it wasn't finished after ${options.timeoutMs} ms`), options.timeoutMs);
  let isMeasuring = false;
  const watch = setInterval(async () => {
    if (isMeasuring) return;
    isMeasuring = true;
    const bytes = await measureFolder(folder);
    isMeasuring = false;
    if (bytes > options.maxFolderBytes) onBroken(`it wrote more than ${options.maxFolderBytes} bytes`);
  }, WATCH_INTERVAL_MS);
  try {
    const output = { bytes: 0, stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8");
      child[name].on("data", (text: string) => {
        output.bytes += text.length;
        if (output.bytes > options.maxOutputBytes) {
          return onBroken(`it printed more than ${options.maxOutputBytes} bytes`);
        }
        const lines = name === "stdout" ? (getLastLine(output.stdout) + text).split("\n").slice(0, -1) : [];
        output[name] += text;
        for (const line of lines) options.onLine?.(line);
      });
    }
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    if (failure !== undefined) throw failure.reason;
    return { code, stdout: output.stdout, stderr: output.stderr };
  } catch (error) {
    if (failure !== undefined) throw failure.reason;
    throw new AppError("not_available", `Can't start "${program}": ${getErrorMessage(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
    clearInterval(watch);
    signal.removeEventListener("abort", onAbort);
    // Its child processes may still be running.
    killGroup(child.pid);
  }
}

function getLastLine(text: string): string {
  return text.slice(text.lastIndexOf("\n") + 1);
}

/** Kills every process of the group, even those that ignore SIGTERM. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    Deno.kill(Deno.build.os === "windows" ? pid : -pid, "SIGKILL");
  } catch {
    // Already ended
  }
}

async function measureFolder(folder: string): Promise<number> {
  let sum = 0;
  try {
    for await (const entry of Deno.readDir(folder)) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory) sum += await measureFolder(path);
      else sum += (await Deno.lstat(path)).size;
    }
  } catch {
    // A file that disappeared in the meantime counts as empty.
  }
  return sum;
}

/** What to run. */
export interface PipedOptions {
  /** Path of the program. */
  program: string;
  args: readonly string[];
  /** The whole environment. */
  env: Record<string, string>;
  /** The working folder. */
  folder: string;
}

/** The end of a program. */
export interface PipedEnd {
  /** `null` if a signal ended it or it never started. */
  code: number | null;
  signal: string | null;
  /** Why it couldn't be started. */
  error?: Error;
}

/** A running program. */
export interface PipedProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when it has ended and its output was read or discarded. */
  readonly ended: Promise<PipedEnd>;
  /**
   * Stops the program: closes its standard input and waits, then sends SIGTERM to the whole group, then SIGKILL. Can be
   * called twice.
   *
   * @param graceMs Time before each signal, in milliseconds.
   */
  stop(graceMs: number): Promise<void>;
}

/**
 * The shell becomes the program (`exec`). Before that it starts a watcher that reads a pipe from Parlor. If the pipe
 * closes without a line, Parlor has ended, perhaps by SIGKILL, and the watcher ends the process group. dash doesn't
 * support `--` before a negative process ID. The program starts when the watcher has set its traps and then closed its
 * output, because a signal to the group would end the watcher before. The runtime sets a variable with the pipe's number,
 * which the program must not get.
 */
const WATCH_SCRIPT = `
: "$({
  trap '' TERM INT HUP
  exec >/dev/null
  read -r word <&3 || { kill -TERM -$$; sleep 2; kill -KILL -$$; }
} </dev/null 2>/dev/null &)"
unset DENO_EXTRA_STDIO_FDS
exec "$@" 3<&-
`;

/**
 * Starts a program. A program that can't be started ends immediately. Windows has neither process groups nor a shell to
 * watch it.
 */
export function startPiped({ program, args, env, folder }: PipedOptions): PipedProcess {
  const isWatched = Deno.build.os !== "windows";
  const child = spawn(
    isWatched ? "/bin/sh" : program,
    isWatched ? ["-c", WATCH_SCRIPT, "sh", program, ...args] : [...args],
    {
      cwd: folder,
      env,
      detached: isWatched,
      stdio: isWatched ? ["pipe", "pipe", "pipe", "pipe"] : ["pipe", "pipe", "pipe"],
    },
  );
  const lifeline = child.stdio[3] as Writable | undefined;
  // If a program ends while data is written to it, Parlor must not end.
  for (const stream of [child.stdin, lifeline]) stream?.on("error", () => {});
  let isOver = false;
  const signal = (name: Deno.Signal) => {
    if (child.pid === undefined) return;
    try {
      Deno.kill(isWatched ? -child.pid : child.pid, name);
    } catch {
      // Already ended
    }
  };
  const exited = new Promise<PipedEnd>((resolve) => {
    child.once("error", (error) => resolve({ code: null, signal: null, error }));
    child.once("exit", (code, signal) => resolve({ code, signal }));
  }).then((end) => {
    isOver = true;
    // Its children may still be running and have its pipes open. The watcher is in the group, too.
    signal("SIGKILL");
    lifeline?.end();
    child.stdin.destroy();
    return end;
  });
  const closed = new Promise<void>((resolve) => {
    child.once("error", () => resolve());
    child.once("close", () => resolve());
  });
  const ended = exited.then(async (end) => (await closed, end));
  const waitForEnd = async (ms: number) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([exited, new Promise((resolve) => timer = setTimeout(resolve, ms))]);
    clearTimeout(timer);
  };
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    ended,
    async stop(graceMs) {
      if (!isOver) {
        child.stdin.end();
        await waitForEnd(graceMs);
      }
      if (!isOver) {
        signal("SIGTERM");
        await waitForEnd(graceMs);
      }
      if (!isOver) signal("SIGKILL");
      // Output that nobody reads must not leave the pipes open.
      child.stdout.destroy();
      child.stderr.destroy();
      await exited;
    },
  };
}
