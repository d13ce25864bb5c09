/** How long revisions are stored. Separate from revision_store.ts because maintenance needs it before conversations are opened. */
import type { Database } from "../../storage/database/database.ts";

const RETENTION_MS = 30 * 24 * 60 * 60 * 1000; // see docs/api.md

/** Returns the time before which revisions are deleted, in ms since 1970. */
export function oldestRetainedMs(nowMs: number): number {
  return nowMs - RETENTION_MS;
}

/** Finds the ids of conversations with revisions that are too old. */
export function findOverdueRevisions(db: Pick<Database, "all">, nowMs: number): string[] {
  return db.all<{ id: string }>(
    "SELECT DISTINCT conversation_id AS id FROM revision WHERE created_at < ?",
    oldestRetainedMs(nowMs),
  ).map(({ id }) => id);
}
