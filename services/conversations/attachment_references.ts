/** Removes references to attachments that conversations no longer contain. References are added with every write. */
import { findAttachmentNames } from "../attachments/attachment_names.ts";
import type { Attachments } from "../attachments/attachments.ts";
import { AppError, messageOf } from "../errors.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database/database.ts";
import type { BlockRow } from "./blocks/block_rows.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import type { ConversationStore } from "./conversation_store.ts";
import { revisionAad } from "./aad.ts";
import { openVariant, type VariantRow } from "./variants.ts";
import type { KeyedMutex } from "../async/keyed_mutex.ts";

/** Dependencies of AttachmentReferences. */
export interface AttachmentReferencesDeps {
  db: Database;
  sealer: PurposeSealer;
  store: ConversationStore;
  blocks: BlockStore;
  locks: KeyedMutex;
  attachments: Attachments;
  log: Log;
}

/** Values opened at the same time, off the serving thread. */
const OPENED_AT_ONCE = 16;

const decoder = new TextDecoder();

/** Removes stale references. */
export class AttachmentReferences {
  readonly #deps: AttachmentReferencesDeps;
  /** State of each conversation at the last sweep. An unchanged one needn't be read again. */
  readonly #seen = new Map<string, string>();

  constructor(parts: AttachmentReferencesDeps) {
    this.#deps = parts;
  }

  /** Checks every conversation that refers to attachments. */
  async sweep(): Promise<void> {
    const { locks, attachments, log } = this.#deps;
    for (const id of attachments.listReferringConversations()) {
      // A conversation that can't be read keeps its references.
      await locks.run(id, () => this.#check(id)).catch((error) =>
        log("warn", "Couldn't check the attachments of a conversation", { error: messageOf(error) })
      );
    }
  }

  /** The caller holds the conversation's lock. */
  async #check(id: string): Promise<void> {
    const { db } = this.#deps;
    const mark = this.#stateOf(id);
    if (mark !== undefined && this.#seen.get(id) === mark) return;
    const found = mark === undefined ? [] : [...await this.#findNames(id)];
    await db.write([{
      sql: `DELETE FROM attachment_ref WHERE owner_kind = 'conversation' AND owner_id = ?
            AND name NOT IN (SELECT value FROM json_each(?))`,
      params: [id, JSON.stringify(found)],
    }]);
    if (mark === undefined || found.length === 0) this.#seen.delete(id);
    else this.#seen.set(id, mark);
  }

  /** Returns a string that changes with everything that may contain references; `undefined` for a purged conversation. */
  #stateOf(id: string): string | undefined {
    const row = this.#deps.db.get<{ revision: number; draft: number | null; oldest: number | null }>(
      `SELECT revision, (SELECT version FROM draft WHERE conversation_id = c.id) AS draft,
        (SELECT min(n) FROM revision WHERE conversation_id = c.id) AS oldest FROM conversation c WHERE id = ?`,
      id,
    );
    return row === undefined ? undefined : `${row.revision}/${row.draft}/${row.oldest}`;
  }

  async #findNames(id: string): Promise<Set<string>> {
    const { db, sealer, blocks, store } = this.#deps;
    const state = store.find(id) ?? store.findRemoved(id);
    const draft = store.draft(id);
    // Its references are unknown, so none may be removed.
    if (draft.isUnreadable) {
      throw new AppError("internal", `Can't read the draft of conversation "${id}": it is damaged`);
    }
    const names = new Set([
      ...findAttachmentNames(JSON.stringify(state?.head ?? {})),
      ...findAttachmentNames(draft.text),
    ]);
    const opened: (() => Promise<Uint8Array>)[] = [
      ...db.all<BlockRow>("SELECT id, version, sealed FROM block WHERE conversation_id = ?", id)
        .map((row) => () => blocks.open(id, row)),
      ...db.all<VariantRow>(
        "SELECT conversation_id, mid, n, version, sealed FROM variant WHERE conversation_id = ?",
        id,
      ).map((row) => () => openVariant(sealer, row)),
      ...db.all<{ n: number; sealed: Uint8Array }>("SELECT n, sealed FROM revision WHERE conversation_id = ?", id)
        .map((row) => () => sealer.open(revisionAad(id, row.n), row.sealed)),
    ];
    for (let at = 0; at < opened.length; at += OPENED_AT_ONCE) {
      const texts = await Promise.all(opened.slice(at, at + OPENED_AT_ONCE).map((open) => open()));
      for (const text of texts) for (const name of findAttachmentNames(decoder.decode(text))) names.add(name);
    }
    return names;
  }
}
