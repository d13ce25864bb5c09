/** How long revisions are kept, and which conversations have older ones. */
import type { Database } from "../../storage/database/database.ts";

const KEPT_MS = 30 * 24 * 60 * 60 * 1000; // see docs/api.md

/** From when the oldest revision is that is kept, in ms since 1970. */
export function oldestRetainedMs(nowMs: number): number {
  return nowMs - KEPT_MS;
}

/** Ids of the conversations that have revisions too old to be kept. */
export function findOverdueRevisions(db: Pick<Database, "all">, nowMs: number): string[] {
  return db.all<{ id: string }>(
    "SELECT DISTINCT conversation_id AS id FROM revision WHERE created_at < ?",
    oldestRetainedMs(nowMs),
  ).map(({ id }) => id);
}
