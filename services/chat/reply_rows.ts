/** The rows that say which message was written by which run of a reply, and which runs have not ended. */
import type { Database, Statement } from "../storage/database.ts";

/** One reply. */
export interface ReplyRow {
  mid: string;
  conversation_id: string;
  /** Changes with every run and with every edit of the message. */
  generation: string;
  started_at: number;
}

const COLUMNS = "mid, conversation_id, generation, started_at";

/** Finds the last reply that wrote a message. */
export function findReplyRow(db: Database, mid: string): ReplyRow | undefined {
  return db.get<ReplyRow>(`SELECT ${COLUMNS} FROM reply WHERE mid = ?`, mid);
}

/** Gives the replies that no process has ended. */
export function unendedReplies(db: Database): ReplyRow[] {
  return db.all<ReplyRow>(`SELECT ${COLUMNS} FROM reply WHERE ended_at IS NULL`);
}

/** Statement that begins a run. */
export function replyBegun(row: ReplyRow): Statement {
  return {
    sql: `INSERT INTO reply (mid, conversation_id, generation, started_at) VALUES (?1, ?2, ?3, ?4)
          ON CONFLICT (mid) DO UPDATE SET generation = ?3, started_at = ?4, ended_at = NULL`,
    params: [row.mid, row.conversation_id, row.generation, row.started_at],
  };
}

/** Statement that ends the run of a message's reply. */
export function replyEnded(mid: string, now: number): Statement {
  return { sql: "UPDATE reply SET ended_at = ? WHERE mid = ?", params: [now, mid] };
}
