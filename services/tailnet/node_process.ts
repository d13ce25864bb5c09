/** Runs tailscaled once: starts it when no other process uses its state, and ends it before returning. */
import { AppError } from "../errors.ts";
import { delay } from "../async/delay.ts";
import { startWatched, type WatchedProcess } from "../process/supervised_process.ts";
import { LocalApi, removeSecrets } from "./local_api.ts";
import type { NodeTimes } from "./node_status.ts";
import { nodeSocketPath } from "./socket_path.ts";
import { INHERITED, tailscaledArguments, tailscaledEnvironment } from "./tailscaled_program.ts";

/** tailscaled ends within milliseconds of SIGTERM, or hangs. */
const STOP_WITHIN_MS = 2_000;
/** A process whose server was killed is ended by its watcher within seconds. */
const PREDECESSOR_MS = 8_000;
const PREDECESSOR_POLL_MS = 100;
const SOCKET_POLL_MS = 50;

/** Options of one run. */
export interface NodeLife {
  program: string;
  /** Created by the caller with mode 0700. */
  stateFolder: string;
  times: NodeTimes;
  /** Ends it. */
  signal: AbortSignal;
  /** Runs while the process is alive. */
  work(api: LocalApi, signal: AbortSignal): Promise<never>;
}

/**
 * Runs the process once.
 *
 * @returns Why it ended; continues a sentence.
 * @throws {AppError} if it can't be started. The abort reason.
 */
export async function liveOnce({ program, stateFolder, times, signal, work }: NodeLife): Promise<string> {
  const socketPath = await nodeSocketPath(stateFolder);
  const api = new LocalApi(socketPath, times.answerMs);
  const working = new AbortController();
  const leave = () => working.abort(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  let child: WatchedProcess | undefined;
  try {
    await untilFree(socketPath, working.signal);
    child = startWatched(program, {
      args: tailscaledArguments(stateFolder, socketPath),
      env: tailscaledEnvironment(stateFolder),
      inherits: INHERITED,
      stopWithinMs: STOP_WITHIN_MS,
    });
    const { ended, lines } = child;
    const exit = ended.then((status) => describeEnd(status, lines));
    const follow = async () => {
      await untilAnswers(socketPath, times, working.signal);
      return await work(api, working.signal);
    };
    const following = follow().catch((error) => {
      if (working.signal.aborted) throw error;
      return error instanceof Error ? error.message : String(error);
    });
    const why = await Promise.race([exit, following]);
    working.abort(new AppError("not_available", "The node has ended"));
    await following.catch(() => {});
    return why;
  } finally {
    signal.removeEventListener("abort", leave);
    working.abort(new AppError("not_available", "The node has ended"));
    await child?.stop();
    api.close();
  }
}

/** Waits until no other process uses the state. Two nodes would both write it. */
async function untilFree(socketPath: string, signal: AbortSignal): Promise<void> {
  const until = performance.now() + PREDECESSOR_MS;
  while (await answers(socketPath)) {
    if (performance.now() > until) {
      throw new AppError("not_available", "another process of an earlier start still holds its state");
    }
    await delay(PREDECESSOR_POLL_MS, signal);
  }
}

async function untilAnswers(socketPath: string, { socketMs }: NodeTimes, signal: AbortSignal): Promise<void> {
  const until = performance.now() + socketMs;
  while (!await answers(socketPath)) {
    if (performance.now() > until) {
      throw new AppError("not_available", `it did not answer within ${Math.round(socketMs / 1000)} s of its start`);
    }
    await delay(SOCKET_POLL_MS, signal);
  }
}

async function answers(socketPath: string): Promise<boolean> {
  try {
    (await Deno.connect({ transport: "unix", path: socketPath })).close();
    return true;
  } catch {
    return false;
  }
}

function describeEnd({ code, signal }: Deno.CommandStatus, lines: readonly string[]): string {
  const how = signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`;
  const last = removeSecrets(lines.findLast((line) => line.trim() !== "") ?? "");
  return last === "" ? how : `${how}; its last words: ${last}`;
}
