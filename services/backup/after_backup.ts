/** Runs the owner's command after a backup, for example to copy it to another machine. */
import { AppError } from "../errors.ts";
import { startWatched } from "../process/supervised_process.ts";

/** What to run, and until when. */
export interface AfterBackup {
  /** Program and arguments; never empty. */
  command: readonly string[];
  /** Path of the backup, passed in `PARLOR_BACKUP_FILE`. */
  file: string;
  signal: AbortSignal;
  timeoutMs: number;
}

/** An upload of a large backup over a slow line fits in. */
export const AFTER_BACKUP_TIMEOUT_MS = 60 * 60 * 1000;
/** Lines of output in the error message, and the length of each. */
const SHOWN_LINES = 3;
const SHOWN_CHARS = 200;

/**
 * Runs the command and waits for its end. It inherits the environment without Parlor's own variables.
 *
 * @throws {AppError} `not_available` if it can't be started; `upstream_error` if it fails, with the last lines of its
 *   output; `upstream_timeout` if it isn't done in time; the signal's reason.
 */
export async function runAfterBackup({ command, file, signal, timeoutMs }: AfterBackup): Promise<void> {
  signal.throwIfAborted();
  const [program = "", ...args] = command;
  const running = startWatched(program, { args, env: { PARLOR_BACKUP_FILE: file } });
  let isLate = false;
  const stop = () => void running.stop();
  const timer = setTimeout(() => {
    isLate = true;
    stop();
  }, timeoutMs);
  signal.addEventListener("abort", stop);
  try {
    const { success, code, signal: endedBy } = await running.ended;
    signal.throwIfAborted();
    if (success && !isLate) return;
    const end = isLate
      ? `wasn't done after ${Math.round(timeoutMs / 60_000)} minutes`
      : `ended with ${endedBy ?? `code ${code}`}`;
    const output = running.lines.slice(-SHOWN_LINES).map((line) => line.slice(0, SHOWN_CHARS)).join("; ");
    throw new AppError(
      isLate ? "upstream_timeout" : "upstream_error",
      `The backup "${file}" was created, but backup_after failed: "${program}" ${end}${output && `: ${output}`}`,
    );
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}
