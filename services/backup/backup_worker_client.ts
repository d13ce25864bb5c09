/** Makes a backup in a Worker, which ends with it; backup_worker.ts is its other end. */
import { AppError } from "../errors.ts";
import type { BackupReport, BackupRequest, BackupWatch } from "./backup.ts";
import type { BackupAnswer, BackupOrder } from "./backup_worker.ts";

/** How long a Worker that was told to stop may take to remove what it half made. */
const STOPPING_MS = 10_000;

/** Does what `makeBackup` does. @throws What that throws; the signal's reason once nothing of it remains */
export async function backupInWorker(
  request: BackupRequest,
  { signal, progress }: Required<BackupWatch>,
): Promise<BackupReport> {
  signal.throwIfAborted();
  const worker = new Worker(new URL("./backup_worker.ts", import.meta.url), { type: "module" });
  const { promise, resolve, reject } = Promise.withResolvers<Exclude<BackupAnswer, { progress: unknown }>>();
  worker.onmessage = ({ data }: MessageEvent<BackupAnswer>) => {
    if ("progress" in data) progress(data.progress.doneBytes, data.progress.totalBytes);
    else resolve(data);
  };
  worker.onerror = (event) => {
    event.preventDefault(); // else it would end the process
    reject(new AppError("internal", `Cannot make the backup: ${event.message}`));
  };
  let stopping: ReturnType<typeof setTimeout> | undefined;
  const send = (order: BackupOrder) => worker.postMessage(order);
  const stop = () => {
    send("stop");
    // A copy of a large database cannot be ended half-way. Its temporary file no later backup takes for one of its own.
    stopping = setTimeout(() => reject(signal.reason), STOPPING_MS);
  };
  signal.addEventListener("abort", stop);
  try {
    send(request);
    const answer = await promise;
    if ("report" in answer) return answer.report;
    signal.throwIfAborted();
    throw new AppError(answer.failure.code, answer.failure.message);
  } finally {
    clearTimeout(stopping);
    signal.removeEventListener("abort", stop);
    worker.terminate();
  }
}
