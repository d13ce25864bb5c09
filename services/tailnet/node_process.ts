/** One life of the node's program: it is started when no other one holds its state, and is ended before this returns. */
import { AppError } from "../errors.ts";
import { delay } from "../async/delay.ts";
import { startWatched, type WatchedProcess } from "../process/supervised_process.ts";
import { LocalApi, withoutSecrets } from "./local_api.ts";
import type { NodeTimes } from "./node_status.ts";
import { nodeSocketPath } from "./socket_path.ts";
import { INHERITED, tailscaledArguments, tailscaledEnvironment } from "./tailscaled_program.ts";

/** It ends within milliseconds of a polite signal, or hangs. */
const STOP_WITHIN_MS = 2_000;
/** A predecessor whose server was killed is ended by its watcher within some seconds. */
const PREDECESSOR_MS = 8_000;
const PREDECESSOR_POLL_MS = 100;
const SOCKET_POLL_MS = 50;

/** What a life is made of. */
export interface NodeLife {
  program: string;
  /** Made with mode 0700 by the caller. */
  stateFolder: string;
  times: NodeTimes;
  /** Ends it. */
  signal: AbortSignal;
  /** What is done while it lives. */
  work(api: LocalApi, signal: AbortSignal): Promise<never>;
}

/**
 * Lives one life.
 *
 * @returns Why it ended, in one sentence without its first word.
 * @throws {AppError} when it cannot be started. The signal's reason.
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

/** Two nodes on one state would both write it. */
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
  const last = withoutSecrets(lines.findLast((line) => line.trim() !== "") ?? "");
  return last === "" ? how : `${how}; its last words: ${last}`;
}
