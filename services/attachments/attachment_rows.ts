/**
 * The rows of attachments and of what refers to them.
 *
 * Owners: `conversation` for all that belongs to one (messages, their texts, revisions, head, draft), `trash` for an
 * entry there. `grace` is no owner: it holds an attachment until the time that stands in its id. `trash_file` holds not
 * the attachment of that name but the file of a removed one, whose version stands in its id.
 */
import type { Database, SqlValue, Statement } from "../storage/database/database.ts";
import type { ImageType } from "./images/image_type.ts";
import { namesIn } from "./attachment_names.ts";

/** A stored attachment. */
export interface AttachmentRow {
  name: string;
  type: ImageType;
  bytes: number;
  width: number;
  height: number;
  /** When it was stored, which is also its version: no two of one name share it. */
  created_at: number;
}

/** How long an unreferenced attachment stays. */
export const GRACE_MS = 24 * 60 * 60 * 1000;

const COLUMNS = "name, type, bytes, width, height, created_at";

/** Gives the statement that saves a row. */
export function saveRow(row: AttachmentRow): Statement {
  return {
    sql: `INSERT OR REPLACE INTO attachment (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)`,
    params: [row.name, row.type, row.bytes, row.width, row.height, row.created_at],
  };
}

/** Gives the statement that removes this very version of a row. */
export function removeRow({ name, created_at }: AttachmentRow): Statement {
  return {
    sql: "DELETE FROM attachment WHERE name = ? AND created_at = ?",
    params: [name, created_at],
    expectChanges: 1,
  };
}

/** Gives the statement that keeps an attachment for a while. */
export function graceUntil(name: string, untilMs: number): Statement {
  return refStatement([name], "grace", String(untilMs));
}

/** Gives the statements by which an owner refers to everything that JSON text of its names; none where it names nothing. */
export function refer(ownerKind: "conversation" | "trash", ownerId: string, json: string): Statement[] {
  const names = namesIn(json);
  return names.length === 0 ? [] : [refStatement(names, ownerKind, ownerId)];
}

/** Gives the statement that keeps the file of a removed attachment. */
export function keepFile({ name, created_at }: AttachmentRow): Statement {
  return refStatement([name], "trash_file", String(created_at));
}

/** Gives the statement that undoes `keepFile`. */
export function letFileGo({ name, created_at }: AttachmentRow): Statement {
  return {
    sql: "DELETE FROM attachment_ref WHERE name = ? AND owner_kind = 'trash_file' AND owner_id = ?",
    params: [name, String(created_at)],
  };
}

function refStatement(names: string[], ownerKind: string, ownerId: string): Statement {
  return {
    sql: "INSERT OR IGNORE INTO attachment_ref (name, owner_kind, owner_id) SELECT value, ?, ? FROM json_each(?)",
    params: [ownerKind, ownerId, JSON.stringify(names)],
  };
}

/** Reads rows. */
export class AttachmentRows {
  #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(name: string): AttachmentRow | undefined {
    return this.#db.get<AttachmentRow>(`SELECT ${COLUMNS} FROM attachment WHERE name = ?`, name);
  }

  /** Finds a name that differs from this one by letter case alone. */
  caseClash(name: string): string | undefined {
    return this.#column(
      "SELECT name FROM attachment WHERE lower(name) = lower(?) AND name <> ? LIMIT 1",
      name,
      name,
    )[0];
  }

  /** Gives name and version of every file that has to be there. */
  files(): { name: string; version: number }[] {
    return this.#db.all(
      `SELECT name, created_at AS version FROM attachment UNION
       SELECT name, CAST(owner_id AS INTEGER) FROM attachment_ref WHERE owner_kind = 'trash_file'`,
    );
  }

  /** Gives the conversations that refer, or once referred, to attachments. */
  conversations(): string[] {
    return this.#column("SELECT DISTINCT owner_id FROM attachment_ref WHERE owner_kind = 'conversation'");
  }

  /** Gives the attachments to which nothing refers and whose time has run out. */
  overdue(nowMs: number): AttachmentRow[] {
    return this.#db.all<AttachmentRow>(`SELECT ${COLUMNS} FROM attachment WHERE ${UNUSED}`, nowMs);
  }

  /** Gives the statement that removes one of those, if that still holds. */
  removeUnused(row: AttachmentRow, nowMs: number): Statement[] {
    return [
      {
        sql: `DELETE FROM attachment WHERE name = ? AND created_at = ? AND ${UNUSED}`,
        params: [row.name, row.created_at, nowMs],
        expectChanges: 1,
      },
      { sql: "DELETE FROM attachment_ref WHERE name = ? AND owner_kind = 'grace'", params: [row.name] },
    ];
  }

  /** Gives the statements that drop what refers to nothing or is referred to by nothing, and begin the last day of others. */
  tidy(nowMs: number): Statement[] {
    return [
      {
        sql: "DELETE FROM attachment_ref WHERE owner_kind = 'trash' AND owner_id NOT IN (SELECT id FROM trash)",
      },
      {
        sql: `INSERT OR IGNORE INTO attachment_ref (name, owner_kind, owner_id)
          SELECT name, 'grace', ? FROM attachment WHERE NOT EXISTS
          (SELECT 1 FROM attachment_ref r WHERE r.name = attachment.name AND r.owner_kind <> 'trash_file')`,
        params: [String(nowMs + GRACE_MS)],
      },
      {
        // What is in use needs no time limit; once it is not, it gets one afresh.
        sql:
          `DELETE FROM attachment_ref AS g WHERE g.owner_kind = 'grace' AND (CAST(g.owner_id AS INTEGER) <= ? AND EXISTS
          (SELECT 1 FROM attachment_ref r WHERE r.name = g.name AND r.owner_kind IN ('conversation', 'trash'))
          OR NOT EXISTS (SELECT 1 FROM attachment a WHERE a.name = g.name))`,
        params: [nowMs],
      },
    ];
  }

  #column(sql: string, ...params: SqlValue[]): string[] {
    return this.#db.all<Record<string, string>>(sql, ...params).map((row) => Object.values(row)[0]!);
  }
}

/** There is no owner and no time left; takes the present time. */
const UNUSED = `NOT EXISTS (SELECT 1 FROM attachment_ref r WHERE r.name = attachment.name AND
  (r.owner_kind IN ('conversation', 'trash') OR r.owner_kind = 'grace' AND CAST(r.owner_id AS INTEGER) > ?))
  AND EXISTS (SELECT 1 FROM attachment_ref r WHERE r.name = attachment.name AND r.owner_kind = 'grace')`;
