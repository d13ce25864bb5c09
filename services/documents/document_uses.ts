/** Documents that characters and personas always have at hand. They aren't part of the card files, which are shared. */
import type { EventHub } from "../events/event_hub.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { type DocumentUse, parseDocumentUses } from "./document.ts";

/** Who has documents at hand. */
export type DocumentOwnerKind = "character" | "persona";

/** Stores which documents characters and personas have. */
export class DocumentUses {
  readonly #db: Database;
  readonly #events: EventHub;

  constructor({ db, events }: { db: Database; events: EventHub }) {
    this.#db = db;
    this.#events = events;
  }

  /** Returns the documents of an owner, in order. */
  get(kind: DocumentOwnerKind, id: string): DocumentUse[] {
    const row = this.#db.get<{ uses: string }>(
      "SELECT uses FROM document_use WHERE owner_kind = ? AND owner_id = ?",
      kind,
      id,
    );
    return row === undefined ? [] : parseDocumentUses(JSON.parse(row.uses));
  }

  /** Replaces the documents of an owner. */
  async put(kind: DocumentOwnerKind, id: string, uses: readonly DocumentUse[]): Promise<void> {
    const statement: Statement = uses.length === 0
      ? { sql: "DELETE FROM document_use WHERE owner_kind = ? AND owner_id = ?", params: [kind, id] }
      : {
        sql: "INSERT OR REPLACE INTO document_use (owner_kind, owner_id, uses) VALUES (?, ?, ?)",
        params: [kind, id, JSON.stringify(uses)],
      };
    await this.#db.write([statement]);
    this.#events.publish({ kind, id });
  }

  /** Returns whether there are documents at all; a prompt without any needn't search its history for them. */
  hasDocuments(): boolean {
    return this.#db.get("SELECT 1 FROM document_file WHERE deleted_at IS NULL LIMIT 1") !== undefined;
  }

  /** Lists all owners with their documents. */
  list(): { kind: DocumentOwnerKind; id: string; documents: DocumentUse[] }[] {
    return this.#db.all<{ owner_kind: DocumentOwnerKind; owner_id: string; uses: string }>(
      "SELECT owner_kind, owner_id, uses FROM document_use ORDER BY owner_kind, owner_id",
    ).map(({ owner_kind: kind, owner_id: id, uses }) => ({ kind, id, documents: parseDocumentUses(JSON.parse(uses)) }));
  }
}
