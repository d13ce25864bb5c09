/** Lists conversations as summaries: what a list shows of each, without its messages. */
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { AppError } from "../errors.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import { isBranch, isGreetingTitle } from "./conversation.ts";
import type { ConversationStore, ListCursor } from "./conversation_store.ts";

const DEFAULT_PAGE = 100;
/** Conversations of earlier versions whose names are remembered; see `#nameFields`. */
const MAX_NAME_FIELDS = 10_000;

/** Reads lists of conversations. */
export class ConversationSummaries {
  readonly #store: ConversationStore;
  readonly #blocks: BlockStore;
  /** See `#nameFields`. */
  readonly #nameFieldsOf = new Map<string, { revision: number; json: string }>();

  constructor({ store, blocks }: { store: ConversationStore; blocks: BlockStore }) {
    this.#store = store;
    this.#blocks = blocks;
  }

  /** Reads one page of summaries as JSON, newest first. The cursor is a position, so pages stay stable while conversations change. */
  async list(limit = DEFAULT_PAGE, cursor?: string): Promise<string> {
    const rows = this.#store.summaries(limit + 1, cursor === undefined ? undefined : parseCursor(cursor));
    const shown = rows.slice(0, limit);
    // A page of 500 takes about 4 ms; more the first time with rows of earlier versions.
    const texts: string[] = [];
    for (const row of shown) {
      await yieldIfTickUsedUp();
      try {
        const text = this.#store.openSummary(row);
        const added = text.includes('"has_greeting_title":') ? "" : this.#nameFields(row);
        texts.push(`${text.slice(0, -1)}${added},"draft_version":${row.draft_version}}`);
      } catch {
        texts.push(JSON.stringify({ id: row.id, error: { code: "unreadable" } }));
      }
    }
    const last = shown.at(-1);
    const next = rows.length > limit && last !== undefined
      ? cursorText({ updatedAtMs: last.updated_at, id: last.id })
      : null;
    return `{"items":[${texts.join(",")}],"next_cursor":${JSON.stringify(next)}}`;
  }

  /** Returns the fields that summaries of earlier versions lack, as JSON members behind a comma. */
  #nameFields({ id, revision }: { id: string; revision: number }): string {
    const known = this.#nameFieldsOf.get(id);
    if (known?.revision === revision) return known.json;
    let json = "";
    try {
      const { head } = this.#store.get(id);
      const block = head.title === "" || head.participants.length === 0 ? undefined : this.#blocks.next(id);
      const first = block === undefined ? undefined : this.#blocks.messagesOf(id, block)[0];
      json = `,"is_branch":${isBranch(head)},"has_greeting_title":${isGreetingTitle(head, first)}`;
    } catch {
      // The rest of the summary can be read.
    }
    if (this.#nameFieldsOf.size >= MAX_NAME_FIELDS) this.#nameFieldsOf.clear();
    this.#nameFieldsOf.set(id, { revision, json });
    return json;
  }
}

function cursorText(at: ListCursor): string {
  return `${at.updatedAtMs}.${at.id}`;
}

function parseCursor(text: string): ListCursor {
  const match = /^(\d{1,15})\.([A-Za-z0-9_-]{1,64})$/.exec(text);
  if (match === null) throw new AppError("invalid_request", "This cursor did not come from a list of conversations");
  return { updatedAtMs: Number(match[1]), id: match[2]! };
}
