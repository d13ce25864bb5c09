/** Past states of a conversation: which there are, and how one comes back. */
import { AppError } from "../errors.ts";
import type { Statement } from "../storage/database.ts";
import type { BlockChange } from "./blocks.ts";
import type { ConversationState } from "./conversation.ts";
import { checkRevision, type ConversationParts, type Conversations } from "./conversations.ts";
import { type TextChange } from "./given_variants.ts";
import { type Message, withoutNulls } from "./message.ts";
import { putBack } from "./removed_messages.ts";
import { replaceMessages } from "./replacement.ts";
import { replyForgotten } from "./reply_rows.ts";
import { compareRevision, type RevisionDifference } from "./revision_difference.ts";
import type { Revision, RevisionRecord } from "./revision_store.ts";
import { withTrueSummary, withTrueSummaryBeside } from "./summary_standing.ts";
import { type ExpectedVersion } from "../preconditions.ts";

/** Lists and restores. */
export class Revisions {
  #parts: ConversationParts;
  #conversations: Conversations;

  constructor(parts: ConversationParts, conversations: Conversations) {
    this.#parts = parts;
    this.#conversations = conversations;
  }

  /** Lists what can be restored, the newest first. @throws {AppError} `not_found` */
  list(id: string): Revision[] {
    this.#parts.store.get(id);
    return this.#parts.revisions.list(id);
  }

  /** Compares a revision with the conversation now. @throws {AppError} `not_found` */
  compare(id: string, n: number): Promise<Revision & RevisionDifference> {
    const { store, turns, revisions } = this.#parts;
    return turns.take(id, async () => {
      const state = store.get(id);
      const record = revisions.get(id, n);
      const revision = revisions.list(id).find((each) => each.n === n)!;
      return { ...revision, ...await compareRevision(this.#parts, state, record) };
    });
  }

  /**
   * Brings back what a change replaced: of a whole conversation its fields and messages, of a message that message alone.
   * That is a change too, and what it replaces is kept.
   *
   * @throws {AppError} `not_found`, `revision_mismatch`, `conflict` while a reply is written or when a message is there again
   */
  restore(id: string, n: number, expected?: ExpectedVersion): Promise<void> {
    const { store, live, turns, revisions } = this.#parts;
    return turns.take(id, async () => {
      const state = store.getForWrite(id);
      checkRevision(id, state.revision, expected);
      const record = revisions.get(id, n);
      const running = live.ofConversation(id);
      if (running !== undefined) {
        throw new AppError("conflict", `Message "${running.messageId}" is being written; stop it first`);
      }
      if (record.removed !== undefined) {
        const next = withTrueSummaryBeside(this.#parts.blocks, state, record.removed.place);
        await this.#conversations.write(next, record.removed.messages.length, putBack(this.#parts, id, record.removed));
      } else if (record.edited !== undefined) await this.#restoreMessage(state, record.edited);
      else await this.#restoreWhole(state, n, record);
    });
  }

  /** Lets go of what has been kept for too long. */
  async sweep(): Promise<void> {
    const { turns, revisions, db } = this.#parts;
    for (const id of revisions.overdue()) {
      await turns.take(id, async () => {
        const statements = revisions.prune(id);
        if (statements.length > 0) await db.write(statements);
      });
    }
  }

  async #restoreMessage(state: ConversationState, edited: Message): Promise<void> {
    const { blocks, revisions, variants, now } = this.#parts;
    if (blocks.rowOf(state.id, edited.id) === undefined) {
      throw new AppError("conflict", `Message "${edited.id}" has been removed since`);
    }
    const beside: Statement[] = [];
    const edit = blocks.edit(state.id, edited.id, (present) => {
      if (present.active_variant !== edited.active_variant) beside.push(...variants.keep(state.id, present));
      // Texts that came since stay beside it.
      return { ...edited, variant_count: present.variant_count, updated_at: new Date(now()).toISOString() };
    });
    beside.push(
      replyForgotten(state.id, edited.id),
      ...revisions.keep(state, "restore", { edited: edit.before }),
    );
    await this.#conversations.write(withTrueSummary(blocks, state, edited.id), 0, edit, beside);
  }

  async #restoreWhole(state: ConversationState, n: number, record: RevisionRecord): Promise<void> {
    const { blocks, revisions, variants } = this.#parts;
    const head = record.head ?? state.head;
    if (record.blocks === undefined) {
      const change: BlockChange = { statements: [], last: "unchanged", touched: {} };
      const kept = revisions.keep(state, "restore", { head: state.head });
      // The messages are those of now, and so is what a summary tells of them.
      const { summary } = state.head;
      const restored = withoutNulls({ ...head, summary });
      await this.#conversations.write({ ...state, head: restored }, 0, change, kept);
      return;
    }
    const standing = await blocks.openAll(state.id);
    const present = new Set(standing.flatMap((block) => block.messages.map((message) => message.id)));
    const rows = record.blocks.map((name) => blocks.version(state.id, name));
    if (rows.some((row) => row === undefined)) {
      throw new AppError("internal", `Cannot restore conversation "${state.id}": a block of that revision is missing`);
    }
    const past = await blocks.openMany(state.id, rows.filter((row) => row !== undefined));
    const messages = past.flatMap((block) => block.messages).map(settled);
    const since = await revisions.textsSince(state.id, n);
    const back = messages.filter((message) => message.variant_count > 1).flatMap(({ id }) => since.get(id) ?? []);
    const replaced = back.map(({ mid }) => mid).filter((mid) => present.has(mid));
    const texts: TextChange = {
      statements: variants.restore(state.id, back),
      mids: [...new Set(back.map(({ mid }) => mid))],
      replaced: await variants.openMany(variants.rowsOf(state.id, replaced)),
    };
    const replacement = { standing, head, messages, texts, cause: "restore" as const };
    const { statements, touched } = await replaceMessages(this.#parts, state, replacement);
    const change: BlockChange = { statements, last: messages.at(-1), touched };
    await this.#conversations.write({ ...state, head }, messages.length - state.messageCount, change);
  }
}

/** A reply that was being written when the state was kept is not being written any more. */
function settled(message: Message): Message {
  return message.status === "streaming" ? { ...message, status: "interrupted" } : message;
}
