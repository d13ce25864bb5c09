/**
 * Starts one child of the sandbox, measures it and ends it.
 *
 * Deno may read /proc only with all permissions, and `ps` takes 24 ms. So a shell starts the child, reads /proc when it
 * is asked to, and kills the child when it's told to or when its pipe to Parlor closes: a child that computes wouldn't
 * notice the end of a Parlor that was killed (docs/decisions/0047-sandbox.md).
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { AppError, getErrorMessage } from "../../errors.ts";

/** How to start a child. */
export interface SupervisedOptions {
  program: string;
  args: readonly string[];
  /** The whole environment. */
  env: Record<string, string>;
  /** Processor time after which the system itself kills the child, in seconds. */
  maxCpuSeconds: number;
}

/** What a child has used. */
export interface SandboxUsage {
  /** Processor time of all its threads, in milliseconds. */
  cpuMs: number;
  residentBytes: number;
}

/** A running child. */
export interface SupervisedChild {
  readonly input: Writable;
  readonly output: Readable;
  /** The end of what it printed on standard error. */
  readonly lastWords: string;
  /** Resolves when it's dead and its process is gone. */
  readonly ended: Promise<void>;
  /** Resolves once all of `lastWords` has been read. */
  readonly lastWordsRead: Promise<void>;
  /** Measures it; `undefined` if it has ended or the system doesn't tell. */
  measure(): Promise<SandboxUsage | undefined>;
  /** Kills it with SIGKILL, and resolves like `ended`. */
  kill(): Promise<void>;
}

const MAX_LAST_WORDS = 4_000;
/** Clock ticks of /proc/pid/stat are always reported in 1/100 s (USER_HZ). */
const TICK_MS = 10;
const SIGKILL = "SIGKILL";

/**
 * Arguments: seconds of processor time, then the program and its arguments. The child's pipes are 0 and 1; Parlor asks
 * on 3 and reads on 4. A line on 3 asks for a measurement; the line `kill`, or the end, ends the child.
 *
 * On Linux, the child is the first that the system ends when memory is short. Field 14 and 15 of /proc/pid/stat are its
 * times in user and kernel mode; the name before them may contain spaces. Where there is no /proc, `ps` measures.
 */
const SCRIPT = `
seconds=$1; shift
exec 5<&0 </dev/null
(
  ulimit -c 0
  ulimit -t "$seconds"
  [ -w /proc/self/oom_score_adj ] && echo 1000 >/proc/self/oom_score_adj
  if command -v nice >/dev/null; then exec nice -n 5 "$@" <&5 5<&- 3<&- 4>&-; fi
  exec "$@" <&5 5<&- 3<&- 4>&-
) &
pid=$!
exec 5<&- >/dev/null 2>&1
page=$(getconf PAGESIZE || echo 4096)
while read -r order <&3 && [ "$order" != kill ]; do
  if [ -r /proc/$pid/statm ]; then
    read -r line </proc/$pid/stat || break
    read -r _ pages _ </proc/$pid/statm || break
    set -- \${line##*) }
    echo "ticks $((\${12} + \${13})) $((pages * page))" >&4
  else
    set -- $(ps -o time= -o rss= -p $pid)
    [ $# = 2 ] || break
    echo "time $1 $(($2 * 1024))" >&4
  fi
done
kill -9 $pid
wait $pid
`;

/**
 * Starts a child in a process group of its own.
 *
 * On Windows no shell stands between: nothing is measured there, and the caller's limits of time apply.
 *
 * @throws {AppError} `not_available` if it can't be started.
 */
export function startSupervised(options: SupervisedOptions): SupervisedChild {
  const { program, args, env, maxCpuSeconds } = options;
  const isSupervised = Deno.build.os !== "windows";
  let child: ChildProcess;
  try {
    child = isSupervised
      ? spawn("/bin/sh", ["-c", SCRIPT, "sandbox", String(maxCpuSeconds), program, ...args], {
        env,
        detached: true,
        stdio: ["pipe", "pipe", "pipe", "pipe", "pipe"],
      })
      : spawn(program, args, { env, stdio: ["pipe", "pipe", "pipe"] });
  } catch (cause) {
    throw new AppError("not_available", `Can't start a process to read files: ${getErrorMessage(cause)}`, { cause });
  }
  const [input, output, errors, orders, answers] = child.stdio as unknown as [
    Writable,
    Readable,
    Readable,
    Writable?,
    Readable?,
  ];
  let lastWords = "";
  errors.setEncoding("utf8");
  errors.on("data", (text: string) => lastWords = (lastWords + text).slice(-MAX_LAST_WORDS));
  const lastWordsRead = new Promise<void>((resolve) => errors.once("close", () => resolve()));
  let isEnded = false;
  const waiting: ((usage: SandboxUsage | undefined) => void)[] = [];
  const ended = new Promise<void>((resolve) => {
    const end = (signal?: string | null) => {
      isEnded = true;
      // Something killed the shell: the child is alone in its process group.
      if (isSupervised && signal) killGroup(child.pid);
      for (const answer of waiting.splice(0)) answer(undefined);
      resolve();
    };
    child.once("error", () => end());
    child.once("exit", (_code, signal) => end(signal));
  });
  // A pipe breaks when the child ends, which is noticed above.
  for (const stream of [input, output, errors, orders, answers]) stream?.on("error", () => {});
  let rest = "";
  answers?.setEncoding("utf8");
  answers?.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) waiting.shift()?.(parseUsage(line));
  });
  return {
    input,
    output,
    get lastWords() {
      return lastWords;
    },
    ended,
    lastWordsRead,
    measure() {
      if (isEnded || orders === undefined) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        waiting.push(resolve);
        orders.write("measure\n");
      });
    },
    async kill() {
      if (!isEnded) {
        if (orders === undefined) child.kill(SIGKILL);
        else orders.end("kill\n");
      }
      await ended;
    },
  };
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) Deno.kill(-pid, SIGKILL);
  } catch {
    // The child has ended, too.
  }
}

/** Parses a line of the shell: `ticks 12 5242880`, or `time 0:01.25 5242880` from `ps`. */
function parseUsage(line: string): SandboxUsage | undefined {
  const [unit, time = "", bytes] = line.split(" ");
  const residentBytes = Number(bytes);
  if (unit === "ticks") return { cpuMs: Number(time) * TICK_MS, residentBytes };
  const seconds = time.split(/[:-]/).reduce((sum, part, n, { length }) => {
    const unitSeconds = [1, 60, 3_600, 86_400][length - 1 - n] ?? 0;
    return sum + Number(part) * unitSeconds;
  }, 0);
  return Number.isFinite(seconds) ? { cpuMs: seconds * 1000, residentBytes } : undefined;
}
