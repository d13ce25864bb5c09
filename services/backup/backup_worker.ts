/** Makes one backup off the serving thread, then ends. Its other end is backup_in_worker.ts. */
import { AppError, type ErrorCode, messageOf } from "../errors.ts";
import { type BackupReport, type BackupRequest, makeBackup } from "./backup.ts";

/** What it is asked: to begin, and later perhaps to end early. */
export type BackupOrder = BackupRequest | "stop";

/** What it answers; progress any number of times, then one of the others. */
export type BackupAnswer =
  | { progress: { doneBytes: number; totalBytes: number } }
  | { report: BackupReport }
  | { failure: { code: ErrorCode; message: string } };

/** Least time between two words about progress. */
const PROGRESS_INTERVAL_MS = 200;

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  const abort = new AbortController();
  self.onmessage = async ({ data }: MessageEvent<BackupOrder>) => {
    if (data === "stop") return abort.abort();
    const answer = await run(data, abort.signal);
    self.postMessage(answer);
    self.close();
  };
}

async function run(request: BackupRequest, signal: AbortSignal): Promise<BackupAnswer> {
  let toldAtMs = 0;
  const progress = (doneBytes: number, totalBytes: number) => {
    const nowMs = performance.now();
    if (nowMs - toldAtMs < PROGRESS_INTERVAL_MS) return;
    toldAtMs = nowMs;
    self.postMessage({ progress: { doneBytes, totalBytes } } satisfies BackupAnswer);
  };
  try {
    return { report: await makeBackup(request, { signal, progress }) };
  } catch (error) {
    const code = error instanceof AppError ? error.code : "internal";
    return { failure: { code, message: messageOf(error) } };
  }
}
