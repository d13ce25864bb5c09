/**
 * Which messages each revision of a conversation touched, so that a client loads exactly those again.
 *
 * Message ids aren't secret (the `message` table holds them in the clear), so entries aren't sealed. An entry is written
 * with its revision; a revision without one ends what is known, and its clients are told to load everything.
 */
import { AppError } from "../../errors.ts";
import type { Database, Statement } from "../../storage/database/database.ts";

/** What one write does to messages. */
export interface Touched {
  /** Messages that are new at their place. */
  added?: readonly string[];
  changed?: readonly string[];
  removed?: readonly string[];
  /** Messages that stay have another order. */
  isReordered?: boolean;
}

/** What has changed since a revision. */
export interface Changes {
  /** The present revision. */
  revision: number;
  /** New and changed messages. */
  changed: string[];
  removed: string[];
  order_changed: boolean;
}

/** Revisions remembered of a conversation. */
const MOST = 200;
/** Longest entry, about what a block of messages takes; a larger change means loading everything. */
const MAX_CHARS = 16 * 1024;

/** Reads and writes the log. */
export class ChangeLog {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * Statements that note what a revision touches.
   *
   * @param touched Absent where that isn't known.
   */
  record(conversationId: string, revision: number, touched: Touched | undefined): Statement[] {
    const entry = touched === undefined ? undefined : JSON.stringify(touched);
    const isNoted = entry !== undefined && entry.length <= MAX_CHARS;
    return [
      {
        sql: "DELETE FROM change WHERE conversation_id = ? AND revision <= ?",
        params: [conversationId, isNoted ? revision - MOST : revision],
      },
      ...(isNoted
        ? [{
          sql: "INSERT INTO change (conversation_id, revision, entry) VALUES (?, ?, ?)",
          params: [conversationId, revision, entry],
        }]
        : []),
    ];
  }

  /**
   * Gives what has changed since a revision.
   *
   * @param revision The present one.
   * @throws {AppError} `gone` when that isn't known, or not any more.
   */
  since(conversationId: string, since: number, revision: number): Changes {
    const rows = since > revision ? [] : this.#db.all<{ entry: string }>(
      "SELECT entry FROM change WHERE conversation_id = ? AND revision > ? AND revision <= ? ORDER BY revision",
      conversationId,
      since,
      revision,
    );
    if (since > revision || rows.length < revision - since) {
      throw new AppError(
        "gone",
        `The changes of conversation "${conversationId}" since revision ${since} aren't known; load it again`,
      );
    }
    const state = new Map<string, "added" | "changed" | "removed">();
    let isReordered = false;
    for (const { entry } of rows) {
      const touched: Touched = JSON.parse(entry);
      isReordered ||= touched.isReordered === true;
      // Back after it was removed: the client may have it, in an earlier form.
      for (const mid of touched.added ?? []) state.set(mid, state.get(mid) === "removed" ? "changed" : "added");
      for (const mid of touched.changed ?? []) if (state.get(mid) !== "added") state.set(mid, "changed");
      for (const mid of touched.removed ?? []) {
        // What came and went since, the client never had.
        if (state.get(mid) === "added") state.delete(mid);
        else state.set(mid, "removed");
      }
    }
    const mids = [...state.keys()];
    return {
      revision,
      changed: mids.filter((mid) => state.get(mid) !== "removed"),
      removed: mids.filter((mid) => state.get(mid) === "removed"),
      order_changed: isReordered,
    };
  }
}

/** Says whether messages that two lists share have another order in the second. */
export function isReordered(before: readonly string[], after: readonly string[]): boolean {
  const [had, has] = [new Set(before), new Set(after)];
  const stayed = before.filter((mid) => has.has(mid));
  let index = 0;
  return after.some((mid) => had.has(mid) && mid !== stayed[index++]);
}
