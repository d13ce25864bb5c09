/** What can be done to a conversation. Each change is one atomic write, made in turn, and moves the revision by one. */
import { randomToken, uuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Database, Statement } from "../storage/database.ts";
import type { BlockEdit, BlockStore } from "./blocks.ts";
import { type ConversationInput, type ConversationState, headFrom, openingText, snippetOf } from "./conversation.ts";
import type { ConversationReader } from "./conversation_reader.ts";
import type { ConversationStore } from "./conversation_store.ts";
import type { LiveReplies } from "./live_replies.ts";
import { completeMessage, isoTime, type Message, type MessageInput, withoutNulls } from "./message.ts";
import type { Turns } from "./turns.ts";
import type { Variant, VariantStore } from "./variants.ts";

/** What the conversations stand on. */
export interface ConversationParts {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  reader: ConversationReader;
  live: LiveReplies;
  turns: Turns;
  events: EventHub;
  now(): number;
}

/** A conversation that was saved whole. */
export interface SavedConversation {
  isNew: boolean;
  revision: number;
  /** The conversation as it stands now, as the API shows it. */
  json: Uint8Array;
}

const encoder = new TextEncoder();

/** How long a deleted conversation stays restorable. */
const TRASH_MS = 7 * 24 * 60 * 60 * 1000;

/** Conversations with their messages and drafts. */
export class Conversations {
  #parts: ConversationParts;

  constructor(parts: ConversationParts) {
    this.#parts = parts;
  }

  /** Lists and whole documents; see conversation_reader.ts. */
  get reader(): ConversationReader {
    return this.#parts.reader;
  }

  /**
   * Saves a conversation whole, over whatever was there.
   *
   * A running reply keeps its text if its message is among `messages`, else it is stopped first.
   *
   * @param expected The revision that must stand, when the caller asked for the check.
   * @throws {AppError} `revision_mismatch`, `conflict`, `invalid_request`
   */
  async put(
    id: string,
    input: ConversationInput & { messages: MessageInput[] },
    expected?: number,
  ): Promise<SavedConversation> {
    const { store, live, turns } = this.#parts;
    const mids = input.messages.map((message) => message.id ?? uuidV7());
    refuseDuplicates(mids);
    const running = live.ofConversation(id);
    if (running !== undefined && !mids.includes(running.messageId)) await running.stop();
    return await turns.take(id, async () => {
      const before = store.find(id);
      checkRevision(id, before?.revision, expected);
      const now = this.#parts.now();
      const standing = before === undefined ? [] : await this.#parts.blocks.openAll(id);
      const stored = new Map(standing.flatMap((block) => block.messages.map((message) => [message.id, message])));
      this.refuseClashes(id, mids.filter((mid) => !stored.has(mid)));
      const isoNow = new Date(now).toISOString();
      const runningId = live.ofConversation(id)?.messageId;
      const messages = input.messages.map((message, index) => {
        const mid = mids[index]!;
        return mid === runningId ? stored.get(mid)! : completeMessage(message, mid, isoNow, stored.get(mid));
      });
      const state: ConversationState = {
        id,
        revision: store.revisionReached(id) + 1,
        createdAtMs: before?.createdAtMs ?? Date.parse(isoTime(input.created_at) ?? isoNow),
        updatedAtMs: now,
        messageCount: messages.length,
        head: headFrom(input),
      };
      const draft = this.#draftOf(id, input, before === undefined);
      const { statements, text } = await this.#parts.blocks.replaceAll(id, messages, standing);
      await this.#parts.db.write([
        ...(before === undefined ? [...store.remove(id), ...this.#parts.blocks.removeAll(id)] : []),
        before === undefined
          ? store.insert(state, snippetOf(messages.at(-1)))
          : store.update(state, snippetOf(messages.at(-1))),
        ...statements,
        ...(draft === undefined ? [] : [draft]),
      ]);
      this.publish(state);
      // What was just written need not be read again, but for the text that a running reply has by now.
      const json = runningId === undefined
        ? encoder.encode(`${openingText(state, store.draft(id))},"messages":[${text}]}`)
        : (await this.reader.read(id)).json;
      return { isNew: before === undefined, revision: state.revision, json };
    });
  }

  /** Removes a conversation. A reply that runs in it is aborted and nothing of it comes back. */
  async remove(id: string, expected?: number): Promise<void> {
    const { store, live, turns, db } = this.#parts;
    for (;;) {
      await live.ofConversation(id)?.discard();
      const isDone = await turns.take(id, async () => {
        if (live.ofConversation(id) !== undefined) return false;
        const state = store.get(id);
        checkRevision(id, state.revision, expected);
        const revision = state.revision;
        const now = this.#parts.now();
        await db.write([
          {
            sql: "UPDATE conversation SET deleted_at = ? WHERE id = ? AND revision = ?",
            params: [now, id, revision],
            expectChanges: 1,
          },
          { sql: "DELETE FROM reply WHERE conversation_id = ?", params: [id] },
        ]);
        this.#parts.events.publish({ kind: "conversation", id });
        return true;
      });
      if (isDone) return;
    }
  }

  /** Saves the composer's draft, which moves neither the revision nor the time of the last change. Gives its new version. */
  saveDraft(id: string, text: string, expected?: number): Promise<number> {
    const { store, turns, db, events } = this.#parts;
    return turns.take(id, async () => {
      store.get(id);
      const before = store.draft(id);
      if (expected !== undefined && expected !== before.version) {
        throw new AppError(
          "revision_mismatch",
          `The draft of conversation "${id}" is at version ${before.version}, not at ${expected}`,
        );
      }
      const draft = { text, version: before.version + 1 };
      await db.write([store.saveDraft(id, draft)]);
      events.publish({ kind: "draft", id, revision: draft.version });
      return draft.version;
    });
  }

  /**
   * Edits one message in place, or switches to another of its texts by `active_variant`.
   *
   * @throws {AppError} `not_found`, `conflict` while a reply writes this message, `revision_mismatch`
   */
  async patchMessage(id: string, mid: string, patch: MessageInput, expected?: number): Promise<Message> {
    const beside: Statement[] = [];
    const after = await this.editMessage(id, mid, (before) => {
      const { active_variant: wanted, variant_count: _, ...fields } = patch;
      // Places in the reply as it was streamed mean nothing in another text.
      beside.push({ sql: "UPDATE reply SET generation = ? WHERE mid = ?", params: [randomToken(9), mid] });
      let base = before;
      if (typeof wanted === "number" && wanted !== before.active_variant) {
        base = this.#parts.variants.switched(before, wanted);
        beside.push(...this.#parts.variants.keep(id, before));
        if (Object.keys(fields).length === 0) return base;
      }
      const now = new Date(this.#parts.now()).toISOString();
      const merged = withoutNulls({ ...base, ...fields, updated_at: now }) as MessageInput;
      return { ...completeMessage(merged, mid, now, base), active_variant: base.active_variant };
    }, { expected, beside: () => beside });
    return after!;
  }

  /** Removes one message. */
  async removeMessage(id: string, mid: string, expected?: number): Promise<void> {
    const beside = () => [{ sql: "DELETE FROM variant WHERE mid = ?", params: [mid] }, {
      sql: "DELETE FROM reply WHERE mid = ?",
      params: [mid],
    }];
    await this.editMessage(id, mid, () => undefined, { expected, beside });
  }

  /** Gives all texts of one message. */
  variantsOf(id: string, mid: string): Variant[] {
    return this.#parts.variants.list(this.#parts.reader.message(id, mid));
  }

  /**
   * Changes one message in turn; what `change` leaves `undefined` is removed.
   *
   * @param options.beside Further statements of the same atomic write, asked for after `change`.
   * @param options.byReply Set by the reply that owns the message, for which it is no conflict that it runs.
   */
  editMessage(
    id: string,
    mid: string,
    change: (before: Message) => Message | undefined,
    options: { expected?: number; beside?: () => Statement[]; byReply?: boolean } = {},
  ): Promise<Message | undefined> {
    return this.#parts.turns.take(id, async () => {
      const state = this.#parts.store.get(id);
      checkRevision(id, state.revision, options.expected);
      if (!options.byReply && this.#parts.live.ofMessage(mid) !== undefined) {
        throw new AppError("conflict", `Message "${mid}" is being written; stop it first`);
      }
      const edit = this.#parts.blocks.edit(id, mid, change);
      await this.write(state, edit.after === undefined ? -1 : 0, edit, options.beside?.() ?? []);
      return edit.after;
    });
  }

  /** Writes an edit as the conversation's next revision. The caller holds the conversation's turn. */
  async write(
    state: ConversationState,
    messagesAdded: number,
    edit: Pick<BlockEdit, "statements" | "last">,
    beside: Statement[],
  ): Promise<ConversationState> {
    const next = {
      ...state,
      revision: state.revision + 1,
      updatedAtMs: this.#parts.now(),
      messageCount: state.messageCount + messagesAdded,
    };
    const snippet = edit.last === "unchanged"
      ? this.#parts.store.summary(state.id)?.snippet ?? ""
      : snippetOf(edit.last);
    await this.#parts.db.write([this.#parts.store.update(next, snippet), ...edit.statements, ...beside]);
    this.publish(next);
    return next;
  }

  /** Removes for good what has been in the trash for longer than it is kept. */
  async emptyTrash(): Promise<void> {
    const { db, store, blocks, turns } = this.#parts;
    const old = db.all<{ id: string }>(
      "SELECT id FROM conversation WHERE deleted_at < ?",
      this.#parts.now() - TRASH_MS,
    );
    for (const { id } of old) {
      await turns.take(id, async () => {
        if (store.find(id) === undefined) await db.write([...store.remove(id), ...blocks.removeAll(id)]);
      });
    }
  }

  /**
   * Throws when an id cannot be used for a conversation or message. The caller holds the conversation's turn.
   *
   * @throws {AppError} `conflict`
   */
  refuseClashes(id: string, mids: string[]): void {
    const clash = this.#parts.store.findCaseClash(id);
    if (clash !== undefined) {
      throw new AppError("conflict", `The id "${id}" differs from "${clash}" by letter case alone`);
    }
    const taken = this.#parts.blocks.takenElsewhere(id, mids);
    if (taken !== undefined) throw new AppError("conflict", `Message id "${taken}" belongs to another conversation`);
  }

  /** A draft inside a saved conversation counts only where it cannot undo a newer one. */
  #draftOf(id: string, input: ConversationInput, isNew: boolean): Statement | undefined {
    if (typeof input.draft !== "string") return undefined;
    const before = isNew ? { text: "", version: 0 } : this.#parts.store.draft(id);
    if (input.draft === before.text || (!isNew && input.draft_version !== before.version)) return undefined;
    return this.#parts.store.saveDraft(id, { text: input.draft, version: before.version + 1 });
  }

  /** Tells everybody who listens of a conversation's new state. */
  publish(state: ConversationState): void {
    this.#parts.events.publish({ kind: "conversation", id: state.id, revision: state.revision });
  }
}

function checkRevision(id: string, actual: number | undefined, expected: number | undefined): void {
  if (expected === undefined || expected === actual) return;
  throw new AppError(
    "revision_mismatch",
    `Conversation "${id}" is at revision ${actual ?? "none"}, not at ${expected}`,
  );
}

function refuseDuplicates(mids: string[]): void {
  const seen = new Set<string>();
  mids.forEach((mid, index) => {
    if (seen.has(mid)) {
      const message = `Message id "${mid}" occurs twice`;
      throw new AppError("invalid_request", message, { issues: [{ path: `messages.${index}.id`, message }] });
    }
    seen.add(mid);
  });
}
