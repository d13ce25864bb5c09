/**
 * Seals every value of the database with a new key. A value with unknown binding is never skipped: the rotation fails.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Aad, PurposeSealer, Sealer } from "../crypto/sealer.ts";
import { createDocumentAad, createTextAad } from "../documents/document.ts";
import { createPartAad, joinSealed, openBody, openHead } from "../storage/documents/sealed_document.ts";
import { AppError } from "../errors.ts";
import { DAMAGED_TABLE } from "../storage/database/manifest.ts";

/** A row with all its columns. */
export type Row = Record<string, string | number | null | Uint8Array>;

/** One way a value may be sealed. The first that opens the value is used. */
export interface SealCandidate {
  purpose: string;
  aad: Aad;
}

/** All purposes. */
export const PURPOSES = [
  "attachment names",
  "attachments",
  "backup",
  "connections",
  "conversations",
  "credentials",
  "documents",
  "images",
  "jobs",
  "journal",
  "key-check",
  "lorebooks",
  "manifest",
  "memories",
  "presets",
  "push",
  "responses",
  "settings",
  "speech",
  "tokens",
  "tools",
  "transcription",
  "trash",
  "usage",
  "voices",
  "web tools",
] as const;

/** Tables shared by several services: the purpose follows from the value. */
const SHARED_PURPOSES = PURPOSES.filter((purpose) =>
  !["conversations", "documents", "jobs", "journal", "manifest", "trash"].includes(purpose)
);

const chat = (table: string, field: string, id: unknown, version: unknown): SealCandidate[] => [
  { purpose: "conversations", aad: { table, id: String(id), field, version: Number(version) } },
];

const shared = (table: string, fields: string[], id: string, versions: unknown[]): SealCandidate[] =>
  SHARED_PURPOSES.flatMap((purpose) =>
    fields.flatMap((field) =>
      versions.map((version) => ({ purpose, aad: { table, id, field, version: Number(version) } }))
    )
  );

/** Columns with sealed values, and how each is bound to its row. */
const COLUMNS: Record<string, Record<string, (row: Row) => SealCandidate[]>> = {
  conversation: {
    head: (row) => chat("conversation", "head", row.id, row.revision),
    summary: (row) => chat("conversation", "summary", row.id, row.revision),
  },
  block: { sealed: (row) => chat("block", "messages", `${row.id}/${row.conversation_id}`, row.version) },
  variant: {
    sealed: (row) => [
      ...chat("variant", "text", `${row.mid}/${row.n}/${row.conversation_id}`, row.version),
      ...chat("variant", "text", `${row.mid}/${row.n}`, row.version), // Before schema 3
    ],
  },
  tool_call: {
    sealed: (row) => chat("tool_call", "record", `${row.call_id}/${row.conversation_id}`, row.version),
  },
  tool_permission: { sealed: (row) => chat("tool_permission", "permissions", row.conversation_id, row.version) },
  reply_resume: {
    sealed: (row) => chat("reply_resume", "state", `${row.mid}/${row.conversation_id}`, row.version),
  },
  stored_response: {
    sealed: (row) => [{
      purpose: "responses",
      aad: { table: "stored_response", id: String(row.id), field: "sealed", version: Number(row.version) },
    }],
  },
  draft: { sealed: (row) => chat("draft", "text", row.conversation_id, row.version) },
  message_queue: { sealed: (row) => chat("message_queue", "messages", row.conversation_id, row.version) },
  revision: { sealed: (row) => chat("revision", "record", `${row.n}/${row.conversation_id}`, row.n) },
  setting: { sealed: (row) => shared("setting", ["value", "sealed"], String(row.key), [row.version, 1]) },
  document: {
    sealed: (row) =>
      shared("document", ["sealed", "value"], `${row.kind}/${row.id}`, [
        row.version,
        1,
        row.updated_at,
        row.created_at,
      ]),
  },
  document_file: {
    sealed: (row) => [{ purpose: "documents", aad: createDocumentAad(String(row.id), Number(row.updated_at)) }],
  },
  document_text: {
    sealed: (row) => [{ purpose: "documents", aad: createTextAad(String(row.document_id), Number(row.part)) }],
  },
  job: {
    sealed: (row) => [{
      purpose: "jobs",
      aad: { table: "job", id: String(row.id), field: "sealed", version: Number(row.updated_at) },
    }],
  },
};

/** Purposes of two-part documents. */
const DOCUMENT_PURPOSES = ["lorebooks", "memories", "presets"] as const;

/** A trash item: a title with its length, and a record. */
const TRASH_PARTS = ["title", "record"] as const;

/** Checks that every column with sealed values is known. @throws {AppError} `internal`, naming the table. */
export function refuseUnknownColumns(database: DatabaseSync): void {
  const columns = database.prepare(
    `SELECT t.name AS tbl, c.name AS col FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c
     WHERE t.type = 'table' AND upper(c.type) = 'BLOB'`,
  ).all() as { tbl: string; col: string }[];
  for (const { tbl, col } of columns) {
    if (COLUMNS[tbl]?.[col] !== undefined || (tbl === "trash" && col === "sealed")) continue;
    throw new AppError("internal", `Can't seal the data again: unknown sealed column ${tbl}.${col}`);
  }
}

/**
 * Copies all rows of a database into an empty one with the same schema, sealing every value again. (Free pages of a
 * database changed in place would still have data sealed with the old key.)
 *
 * @returns The number of sealed values, and the values that couldn't be opened and were copied unchanged.
 */
export function resealRows(
  source: DatabaseSync,
  target: DatabaseSync,
  from: Sealer,
  to: Sealer,
): { resealed: number; unreadable: string[] } {
  refuseUnknownColumns(source);
  const found = { resealed: 0, unreadable: [] as string[] };
  const take = (old: Uint8Array, fresh: Uint8Array | undefined, what: string) => {
    if (fresh === undefined) found.unreadable.push(what);
    else found.resealed++;
    return fresh ?? old;
  };
  target.exec("BEGIN IMMEDIATE");
  // Replication programs keep their own tables in the database.
  const own = new Set(listTables(target));
  for (const table of listTables(source).filter((name) => own.has(name))) {
    let insert: StatementSync | undefined;
    for (const row of source.prepare(`SELECT * FROM ${table}`).iterate() as Iterable<Row>) {
      const what = `${table} ${row.id ?? row.key ?? row.mid ?? row.conversation_id}`;
      for (const [column, candidates] of Object.entries(COLUMNS[table] ?? {})) {
        const old = row[column] as Uint8Array;
        const fresh = reseal(old, candidates(row), from, to);
        row[column] = take(old, fresh ?? (table === "document" ? resealParts(row, from, to) : undefined), what);
      }
      if (table === "trash") row.sealed = take(row.sealed as Uint8Array, resealTrash(row, from, to), what);
      insert ??= target.prepare(
        `INSERT INTO ${table}(${Object.keys(row)}) VALUES(${Object.keys(row).map(() => "?")})`,
      );
      insert.run(...Object.values(row));
    }
  }
  target.exec("COMMIT");
  return found;
}

function listTables(database: DatabaseSync): string[] {
  return database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all()
    .map(({ name }) => String(name)).filter((name) => !name.startsWith(DAMAGED_TABLE));
}

/**
 * Opens the sealed values of rows without keeping their content. For rows that several services share, it remembers how
 * those of the same kind were sealed, because trying everything takes long.
 */
export class RowOpener {
  readonly #sealer: Sealer;
  readonly #known = new Map<string, SealCandidate>();

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Returns the columns of a row whose value can't be opened. @param row The whole row */
  listUnreadable(table: string, row: Row): string[] {
    if (table === "trash") return this.#opensParts(row, resealTrash) ? [] : ["sealed"];
    const isParts = table === "document" && this.#opensParts(row, resealParts);
    return Object.entries(COLUMNS[table] ?? {}).filter(([column, list]) =>
      !isParts && !this.#opens(`${table} ${row.kind ?? row.key}`, row[column], list(row))
    ).map(([column]) => column);
  }

  #opensParts(row: Row, reseal: typeof resealParts): boolean {
    try {
      return reseal(row, this.#sealer, DISCARD) !== undefined;
    } catch {
      return false; // The lengths of its parts are wrong.
    }
  }

  #opens(kind: string, sealed: Row[string] | undefined, candidates: SealCandidate[]): boolean {
    if (!(sealed instanceof Uint8Array)) return false;
    const known = this.#known.get(kind);
    const isLikely = ({ purpose, aad }: SealCandidate) => purpose === known?.purpose && aad.field === known.aad.field;
    const ordered = [...candidates.filter(isLikely), ...candidates.filter((one) => !isLikely(one))];
    for (const candidate of ordered) {
      try {
        this.#sealer.forPurpose(candidate.purpose).openNow(candidate.aad, sealed);
        this.#known.set(kind, candidate);
        return true;
      } catch {
        // Not this one
      }
    }
    return false;
  }
}

/** Seals nothing: what is opened only to see whether it can be. */
const DISCARD: Sealer = {
  forPurpose: (purpose) => ({ sealNow: () => new Uint8Array(), purpose }) as unknown as PurposeSealer,
};

/** Seals one value again. @returns `undefined` if it can't be opened. */
export function reseal(
  sealed: Uint8Array,
  candidates: SealCandidate[],
  from: Sealer,
  to: Sealer,
): Uint8Array<ArrayBuffer> | undefined {
  for (const { purpose, aad } of candidates) {
    let plain: Uint8Array;
    try {
      plain = from.forPurpose(purpose).openNow(aad, sealed);
    } catch {
      continue; // Not this one
    }
    return to.forPurpose(purpose).sealNow(aad, plain);
  }
}

/** A document in two parts: its head with its length, and its body. */
function resealParts({ kind, id, version, sealed }: Row, from: Sealer, to: Sealer): Uint8Array | undefined {
  const whole = sealed as Uint8Array;
  const [head, body] = ([["head", openHead(whole)], ["body", openBody(whole)]] as const).map(([field, part]) => {
    const aad = createPartAad({ kind: String(kind), id: String(id) }, field, Number(version));
    return reseal(part, DOCUMENT_PURPOSES.map((purpose) => ({ purpose, aad })), from, to);
  });
  return head === undefined || body === undefined ? undefined : joinSealed(head, body);
}

function resealTrash(row: Row, from: Sealer, to: Sealer): Uint8Array | undefined {
  const sealed = row.sealed as Uint8Array;
  const titleEnd = 2 + new DataView(sealed.buffer, sealed.byteOffset).getUint16(0);
  const [title, record] = [sealed.subarray(2, titleEnd), sealed.subarray(titleEnd)].map((part, index) =>
    reseal(
      part,
      [{
        purpose: "trash",
        aad: { table: "trash", id: String(row.id), field: TRASH_PARTS[index]!, version: Number(row.deleted_at) },
      }],
      from,
      to,
    )
  );
  if (title === undefined || record === undefined) return undefined;
  const fresh = new Uint8Array(sealed.length);
  new DataView(fresh.buffer).setUint16(0, title.length);
  fresh.set(title, 2);
  fresh.set(record, 2 + title.length);
  return fresh;
}
