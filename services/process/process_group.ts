/** Runs an external program in its own process group, with limits, and leaves no process behind. */
import { spawn } from "node:child_process";
import { AppError, messageOf } from "../errors.ts";

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
  const broke = (what: string) => stop(new AppError("unprocessable", `Stopped "${program}": ${what}`));
  const leave = () => stop(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  const timer = setTimeout(() => broke(`not finished after ${options.timeoutMs} ms`), options.timeoutMs);
  let isMeasuring = false;
  const watch = setInterval(async () => {
    if (isMeasuring) return;
    isMeasuring = true;
    const bytes = await folderBytes(folder);
    isMeasuring = false;
    if (bytes > options.maxFolderBytes) broke(`it wrote more than ${options.maxFolderBytes} bytes`);
  }, WATCH_INTERVAL_MS);
  try {
    const output = { bytes: 0, stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8");
      child[name].on("data", (text: string) => {
        output.bytes += text.length;
        if (output.bytes > options.maxOutputBytes) return broke(`it printed more than ${options.maxOutputBytes} bytes`);
        const lines = name === "stdout" ? (lastLineOf(output.stdout) + text).split("\n").slice(0, -1) : [];
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
    throw new AppError("not_available", `Can't start "${program}": ${messageOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
    clearInterval(watch);
    signal.removeEventListener("abort", leave);
    // Its own child processes may still run.
    killGroup(child.pid);
  }
}

function lastLineOf(text: string): string {
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

async function folderBytes(folder: string): Promise<number> {
  let sum = 0;
  try {
    for await (const entry of Deno.readDir(folder)) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory) sum += await folderBytes(path);
      else sum += (await Deno.lstat(path)).size;
    }
  } catch {
    // A file that disappeared in the meantime counts as empty.
  }
  return sum;
}
