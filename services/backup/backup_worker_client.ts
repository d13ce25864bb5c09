/** Creates a backup in a Worker that ends with it. `backup_worker.ts` is its other side. */
import { AppError } from "../errors.ts";
import type { BackupReport, BackupRequest, BackupWatch } from "./backup.ts";
import type { BackupAnswer, BackupOrder } from "./backup_worker.ts";

/** How long a canceled Worker may take to remove its files, in milliseconds. */
const STOPPING_MS = 10_000;

/** Runs `makeBackup` in a Worker. @throws Its errors; the signal's reason once nothing remains. */
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
    event.preventDefault(); // an unhandled error event would end the process
    reject(new AppError("internal", `Can't create the backup: ${event.message}`));
  };
  let stopping: ReturnType<typeof setTimeout> | undefined;
  const send = (order: BackupOrder) => worker.postMessage(order);
  const stop = () => {
    send("stop");
    // Copying a large database can't be interrupted. Later backups ignore its temporary file.
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
