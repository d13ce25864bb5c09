/**
 * Records which messages each revision of a conversation changed, so that clients only reload those, and defines how
 * long revisions are stored.
 *
 * Message IDs aren't secret (they're in plaintext in the `message` table), so entries aren't encrypted. An entry is
 * written with its revision. After a revision without an entry, clients must reload everything.
 */
import { AppError } from "../../errors.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import type { RetentionClock } from "../../storage/retention_clock.ts";

/** The messages that a write changes. */
export interface Touched {
  /** New messages. */
  added?: readonly string[];
  changed?: readonly string[];
  removed?: readonly string[];
  /** Whether the order of the remaining messages changed. */
  isReordered?: boolean;
}

/** The messages that changed since a revision. */
export interface Changes {
  /** The current revision. */
  revision: number;
  /** New and changed messages. */
  changed: string[];
  removed: string[];
  order_changed: boolean;
}

/** Maximum number of entries per conversation. */
const MOST = 200;
/** Maximum length of an entry, about the size of a block. After a larger change, clients reload everything. */
const MAX_CHARS = 16 * 1024;

/** Reads and writes the log. */
export class ChangeLog {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * Returns the statements that record a revision.
   *
   * @param touched The changed messages, if known.
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
   * Returns the messages that changed since a revision.
   *
   * @param revision The current revision.
   * @throws {AppError} `gone` if the log doesn't reach back that far.
   */
  list(conversationId: string, since: number, revision: number): Changes {
    const rows = since > revision ? [] : this.#db.all<{ entry: string }>(
      "SELECT entry FROM change WHERE conversation_id = ? AND revision > ? AND revision <= ? ORDER BY revision",
      conversationId,
      since,
      revision,
    );
    if (since > revision || rows.length < revision - since) {
      throw new AppError(
        "gone",
        `The changes of conversation "${conversationId}" since revision ${since} aren't known. Load it again`,
      );
    }
    const state = new Map<string, "added" | "changed" | "removed">();
    let isReordered = false;
    for (const { entry } of rows) {
      const touched: Touched = JSON.parse(entry);
      isReordered ||= touched.isReordered === true;
      // Removed and restored: the client may have an earlier version of it.
      for (const mid of touched.added ?? []) state.set(mid, state.get(mid) === "removed" ? "changed" : "added");
      for (const mid of touched.changed ?? []) if (state.get(mid) !== "added") state.set(mid, "changed");
      for (const mid of touched.removed ?? []) {
        // Added and removed in between: the client never had it.
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

/** Returns whether the common messages of two lists are in a different order. */
export function isReordered(before: readonly string[], after: readonly string[]): boolean {
  const [had, has] = [new Set(before), new Set(after)];
  const stayed = before.filter((mid) => has.has(mid));
  let index = 0;
  return after.some((mid) => had.has(mid) && mid !== stayed[index++]);
}

/** How long revisions stay, in milliseconds. */
export const REVISION_RETENTION_MS = 30 * 24 * 60 * 60 * 1000; // See docs/api.md.

/**
 * Finds the IDs of conversations with revisions that are too old. Maintenance needs it before conversations are opened.
 */
export function findOverdueRevisions(db: Pick<Database, "all">, clock: Pick<RetentionClock, "listExpired">): string[] {
  const found = clock.listExpired(REVISION_RETENTION_MS).flatMap(({ fromMs, toMs }) =>
    db.all<{ id: string }>(
      "SELECT DISTINCT conversation_id AS id FROM revision WHERE created_at >= ? AND created_at < ?",
      fromMs,
      toMs,
    )
  );
  return [...new Set(found.map(({ id }) => id))];
}
