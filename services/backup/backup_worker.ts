/** Creates a backup off the serving thread, then ends. `backups.ts` starts it. */
import { AppError, type ErrorCode, getErrorMessage } from "../errors.ts";
import { type BackupReport, type BackupRequest, makeBackup } from "./backup.ts";
import { reportDefects } from "../process/worker.ts";

/** Messages to the Worker: the request, then possibly a cancellation. */
export type BackupOrder = BackupRequest | "stop";

/** Messages from the Worker: any number of progress messages, then one of the others. */
export type BackupResponse =
  | { progress: { doneBytes: number; totalBytes: number } }
  | { report: BackupReport }
  | { failure: { code: ErrorCode; message: string } };

/** Minimum time between progress messages. */
const PROGRESS_INTERVAL_MS = 200;

// Importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  reportDefects();
  const abort = new AbortController();
  self.onmessage = async ({ data }: MessageEvent<BackupOrder>) => {
    if (data === "stop") return abort.abort();
    const answer = await run(data, abort.signal);
    self.postMessage(answer);
    self.close();
  };
}

async function run(request: BackupRequest, signal: AbortSignal): Promise<BackupResponse> {
  let reportedAtMs = 0;
  const progress = (doneBytes: number, totalBytes: number) => {
    const nowMs = performance.now();
    if (nowMs - reportedAtMs < PROGRESS_INTERVAL_MS && doneBytes < totalBytes) return;
    reportedAtMs = nowMs;
    self.postMessage({ progress: { doneBytes, totalBytes } } satisfies BackupResponse);
  };
  try {
    return { report: await makeBackup(request, { signal, progress }) };
  } catch (error) {
    const code = error instanceof AppError ? error.code : "internal";
    return { failure: { code, message: getErrorMessage(error) } };
  }
}
