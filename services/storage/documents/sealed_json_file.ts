/**
 * A sealed JSON file that its owner may remove, restore or damage while the server runs: what counts is the file as it
 * lies on disk now. What is in it, and what its absence means, belongs to the stores built on this.
 */
import { Mutex } from "../../async/keyed_mutex.ts";
import type { Place, PurposeSealer } from "../../crypto/sealer.ts";
import { AppError } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { writeFileAtomic } from "../atomic_file.ts";
import { type FileState, fileState } from "../file_state.ts";

/** One sealed file. */
export interface SealedDocument<T> {
  /** Gives the content, `undefined` when there surely is no file, or an `internal` error when it cannot be read. */
  read(): Promise<T | undefined | AppError>;
  /**
   * Replaces the content, in turn with other changes; durable when it resolves.
   *
   * @param next Gives the new content of the present one, or `undefined` to leave everything as it is. It may be asked
   *   twice, when the file changes under it, and what it throws is passed on.
   * @throws {AppError} `internal` when the file cannot be read or written, `storage_full` when the disk is.
   */
  change(next: (current: T | undefined) => T | undefined): Promise<void>;
}

/** Thrown and caught in here: the file changed between the read and the write, so it has to be read again. */
class ChangedMeanwhile extends Error {}

/** Ends a change that never gets its turn; nobody replaces these files so often. */
const MAX_TRIES = 5;

/**
 * @param options.parse Checks what was in the file; anything it throws makes the file one that cannot be read.
 * @param options.untilRepaired What holds while the file cannot be read, for the log: `"every origin stays gated"`.
 */
export function openSealedDocument<T>(options: {
  path: string;
  place: Place;
  sealer: PurposeSealer;
  parse(value: unknown): T;
  /** Writes what `parse` reads; plain JSON unless told. */
  stringify?(content: T): string;
  log: Log;
  untilRepaired: string;
}): SealedDocument<T> {
  const { path, place, sealer, parse, stringify = JSON.stringify, log, untilRepaired } = options;
  let known: { state: FileState; content: T | undefined | AppError } | undefined;
  const lock = new Mutex();

  async function read(): Promise<T | undefined | AppError> {
    const state = fileState(path);
    if (known?.state.id === state.id && known.state.isSettled) return known.content;
    let content: T | undefined | AppError;
    try {
      content = state.id === "absent"
        ? undefined
        : parse(parseJson(await sealer.open(place, await Deno.readFile(path))));
    } catch (cause) {
      // Removed between the two looks; a dangling link, however, is there and cannot be read.
      if (cause instanceof Deno.errors.NotFound && fileState(path).id === "absent") return undefined;
      content = new AppError("internal", `Cannot read "${path}": it is damaged, foreign or not readable`, { cause });
      if (known?.state.id !== state.id) {
        log("error", `${content.message}; ${untilRepaired} until it is restored or removed`);
      }
    }
    known = { state, content };
    return content;
  }

  async function write(next: (current: T | undefined) => T | undefined): Promise<void> {
    for (let tries = 1;; tries++) {
      const current = await read();
      if (current instanceof AppError) throw current;
      const seen = known?.state.id;
      const content = next(current);
      if (content === undefined) return;
      try {
        await writeFileAtomic(path, sealer.sealNow(place, stringify(content)), {
          beforeReplace: () => {
            // Removed by hand meanwhile: what we read must not come back to life.
            if (fileState(path).id !== seen) throw new ChangedMeanwhile();
          },
        });
        known = { state: fileState(path), content };
        return;
      } catch (error) {
        const changed = error instanceof AppError && error.cause instanceof ChangedMeanwhile;
        if (!changed || tries === MAX_TRIES) throw error;
      }
    }
  }

  return {
    read,
    change: (next) => lock.run(() => write(next)),
  };
}

function parseJson(plain: Uint8Array): unknown {
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(plain));
}
