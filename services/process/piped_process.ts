/**
 * A program that is spoken to over its standard input and output. It runs in a process group of its own, which ends with
 * Parlor, whatever ends Parlor.
 */
import { spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";

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
