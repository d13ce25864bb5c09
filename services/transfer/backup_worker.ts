/** Makes one backup off the serving thread, then ends. Its other end is daily_backup.ts. */
import { AppError, type ErrorCode, messageOf } from "../errors.ts";
import { type BackupReport, type BackupRequest, makeBackup } from "./backup.ts";

/** What it answers. */
export type BackupAnswer = { report: BackupReport } | { failure: { code: ErrorCode; message: string } };

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = async ({ data }: MessageEvent<BackupRequest>) => {
    let answer: BackupAnswer;
    try {
      answer = { report: await makeBackup(data) };
    } catch (error) {
      const code = error instanceof AppError ? error.code : "internal";
      answer = { failure: { code, message: messageOf(error) } };
    }
    self.postMessage(answer);
    self.close();
  };
}
