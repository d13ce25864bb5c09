/** Runs a foreign program in a process group of its own, with limits, and leaves nothing of it behind. */
import { spawn } from "node:child_process";
import { AppError, messageOf } from "../errors.ts";

/** What is to be run. */
export interface ChildGroupOptions {
  program: string;
  args: readonly string[];
  /** The working folder; its bytes are watched. */
  folder: string;
  /** The whole environment. */
  env: Record<string, string>;
  timeoutMs: number;
  /** Bytes that stdout and stderr may hold together. */
  maxOutputBytes: number;
  /** Bytes that may lie in the folder. */
  maxFolderBytes: number;
  signal: AbortSignal;
  /** Told each whole line of stdout as it comes. */
  onLine?(line: string): void;
}

/** How it ended by itself. */
export interface ChildGroupResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

const WATCH_INTERVAL_MS = 250;

/**
 * Runs a program to its end.
 *
 * @throws {AppError} `not_available` when it cannot be started, `unprocessable` when it broke a limit; the reason of `signal`.
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
    throw new AppError("not_available", `Cannot start "${program}": ${messageOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
    clearInterval(watch);
    signal.removeEventListener("abort", leave);
    // What it left running: its own children, which nobody else would end.
    killGroup(child.pid);
  }
}

function lastLineOf(text: string): string {
  return text.slice(text.lastIndexOf("\n") + 1);
}

/** Ends every process of the group at once: a program that ignores the polite signal is the reason for the limits. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    Deno.kill(Deno.build.os === "windows" ? pid : -pid, "SIGKILL");
  } catch {
    // Over already.
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
    // A file that went while we looked has no size.
  }
  return sum;
}
