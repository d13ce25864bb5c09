/**
 * Runs external programs in process groups of their own and leaves no process behind: one to its end with limits, or
 * one that is spoken to over its standard input and output and ends with Parlor, whatever ends Parlor.
 */
import { spawn } from "node:child_process";
import { AppError, getErrorMessage } from "../errors.ts";
import type { Readable, Writable } from "node:stream";

/** What to run. */
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
 * @throws {AppError} `not_available` if it can't be started, `unprocessable` if it exceeded a limit; the reason of
 *   `signal`.
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
  const timer = setTimeout(() => onBroken(`not finished after ${options.timeoutMs} ms`), options.timeoutMs);
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
    // Its own child processes may still run.
    killGroup(child.pid);
  }
}

function getLastLine(text: string): string {
  return text.slice(text.lastIndexOf("\n") + 1);
}

/** Kills every process of the group. Programs that ignore SIGTERM are the reason for the limits. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    Deno.kill(Deno.build.os === "windows" ? pid : -pid, "SIGKILL");
  } catch {
    // Already ended.
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

/** How a program ended. */
export interface PipedEnd {
  /** `null` if a signal ended it or it never started. */
  code: number | null;
  signal: string | null;
  /** Why it didn't start. */
  error?: Error;
}

/** A running program. */
export interface PipedProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when it has ended and its output was read or dropped. */
  readonly ended: Promise<PipedEnd>;
  /**
   * Closes its standard input and waits; then SIGTERM to the whole group, then SIGKILL. May be called twice.
   *
   * @param graceMs Time for each of the two steps.
   */
  stop(graceMs: number): Promise<void>;
}

/**
 * The shell becomes the program (`exec`). Before that it starts a watcher that reads a pipe from Parlor. If the pipe
 * closes without a line, Parlor is gone, even by SIGKILL, and the watcher ends the process group. dash takes no `--`
 * before a negative process id. The runtime names the pipe in a variable of its own, which is none of the program's.
 */
const WATCH_SCRIPT = `
{ trap '' TERM INT HUP; read -r word <&3 || { kill -TERM -$$; sleep 2; kill -KILL -$$; }; } </dev/null >/dev/null 2>&1 &
unset DENO_EXTRA_STDIO_FDS
exec "$@" 3<&-
`;

/** Starts a program. A program that can't be started ends at once; Windows has neither groups nor a shell to watch it. */
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
  // A program that ends while it is written to must not end Parlor.
  for (const stream of [child.stdin, lifeline]) stream?.on("error", () => {});
  let isOver = false;
  const signal = (name: Deno.Signal) => {
    if (child.pid === undefined) return;
    try {
      Deno.kill(isWatched ? -child.pid : child.pid, name);
    } catch {
      // Already ended.
    }
  };
  const exited = new Promise<PipedEnd>((resolve) => {
    child.once("error", (error) => resolve({ code: null, signal: null, error }));
    child.once("exit", (code, signal) => resolve({ code, signal }));
  }).then((end) => {
    isOver = true;
    // Its own children may still run, and hold its pipes open. The watcher is in the group as well.
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
      // What nobody reads any more must not keep the pipes open.
      child.stdout.destroy();
      child.stderr.destroy();
      await exited;
    },
  };
}
