/**
 * Adds, changes and removes single messages. Each change is one transaction and increases the conversation's
 * revision by one.
 */
import { addReferences } from "../attachments/attachment_rows.ts";
import { type ImagePartsDeps, storeInlineImages } from "../attachments/image_parts.ts";
import { createUuidV7, randomToken } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { Statement } from "../storage/database/database.ts";
import { assertExpected, type ExpectedVersion } from "../storage/preconditions.ts";
import type { ConversationWriter } from "./conversation_writer.ts";
import type { BlockChange, BlockStore, Neighbors, VersionChange } from "./blocks/block_store.ts";
import { toSnippet } from "./conversation.ts";
import { hasContinuations } from "./conversation_reader.ts";
import { createGreeting, createGreetingQuestion, getInputId, type GreetingSource } from "./new_messages.ts";
import { completeMessage, type Message, type MessageInput, withoutNulls, withPin } from "./message.ts";
import { deleteMessageRows, type TrashedMessages } from "./conversation_trash.ts";
import { type LiveReplies, renewReplyRow } from "./live_replies.ts";
import { dropStaleSummary } from "./chapters.ts";
import type { VariantStore } from "./variants.ts";
import type { ConversationStore } from "./conversation_store.ts";
import type { RevisionStore } from "./revisions/revision_store.ts";
import type { TrashBin } from "../storage/trash.ts";
import type { KeyedMutex } from "../async/locks.ts";

/** A written message, and the new revision of its conversation. */
export interface WrittenMessage {
  message: Message;
  revision: number;
}

/** The trash item of deleted messages, and the new revision of their conversation. */
export interface RemovedEntry {
  /** Absent if the message was unreadable and so can't be restored. */
  trashId?: string;
  revision: number;
}

/** The messages that a removal takes out of the blocks. */
interface RemovedMessages {
  change: BlockChange;
  subtree: Pick<TrashedMessages, "messages" | "segments" | "continuations">;
  /** Number of messages that leave the active path. */
  countOnPath: number;
  place: Neighbors;
}

/** Dependencies of `Messages`. */
export interface MessagesDeps {
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  writer: ConversationWriter;
  revisions: RevisionStore;
  live: LiveReplies;
  locks: KeyedMutex;
  images: ImagePartsDeps;
  trash: TrashBin;
  /** Returns the greetings of a character. Absent in tests without characters. */
  greetings?: GreetingSource;
  now(): number;
}

/** Adds, changes and removes messages. */
export class Messages {
  readonly #deps: MessagesDeps;

  constructor(deps: MessagesDeps) {
    this.#deps = deps;
  }

  /**
   * Adds a message at the end, or directly after another.
   *
   * @throws {AppError} `conflict` if its id is taken, `not_found`, `revision_mismatch`
   */
  async add(
    id: string,
    rawInput: MessageInput,
    options: { after?: string; expected?: ExpectedVersion } = {},
  ): Promise<WrittenMessage> {
    const { store, blocks, locks, images, now } = this.#deps;
    const input = { ...rawInput, content: await storeInlineImages(images, rawInput.content) };
    return await locks.run(id, async () => {
      const state = store.getForWrite(id);
      assertExpected(`conversation "${id}"`, options.expected, state.revision);
      const message = completeMessage(input, getInputId(input) ?? createUuidV7(), new Date(now()).toISOString());
      if (blocks.listUsedMids(id, [message.id]).size > 0) {
        throw new AppError("conflict", `Conversation "${id}" already has a message "${message.id}"`);
      }
      if (options.after !== undefined) blocks.requireOnPath(id, options.after);
      const change = options.after === undefined
        ? {
          statements: blocks.append(id, [message]),
          last: message,
          touched: { added: [message.id] },
        } satisfies BlockChange
        : blocks.insert(id, [message], "after", options.after);
      const next = options.after === undefined
        ? state
        : dropStaleSummary(blocks, state, options.after, "inserted_after");
      const head = withPin(next.head, undefined, message);
      const { revision } = await this.#deps.writer.write({ ...next, head }, 1, change);
      return { message, revision };
    });
  }

  /**
   * Adds the greeting of a participant at the end. The card's other greetings become its versions.
   *
   * @throws {AppError} `invalid_request` if the character isn't a participant or has no greeting, `not_found`
   */
  async greet(id: string, characterId: string): Promise<Message> {
    const { store, blocks, variants, locks, greetings, now } = this.#deps;
    return await locks.run(id, async () => {
      const state = store.getForWrite(id);
      const takesPart = state.head.participants.some(({ character_id }) => character_id === characterId);
      const found = takesPart ? await greetings?.(createGreetingQuestion(state.head, characterId)) : undefined;
      const opening = found && createGreeting(found, undefined, new Date(now()).toISOString(), variants);
      if (opening === undefined) {
        const why = takesPart ? "has no greeting" : "isn't part of this conversation";
        const message = `Character "${characterId}" ${why}`;
        throw new AppError("invalid_request", message, { issues: [{ path: "character_id", message }] });
      }
      const { message } = opening;
      const change = {
        statements: blocks.append(id, [message]),
        last: message,
        touched: { added: [message.id] },
      } satisfies BlockChange;
      await this.#deps.writer.write(state, 1, change, opening.createStatements(id));
      return opening.message;
    });
  }

  /**
   * Edits one message, or switches to another version of it with `active_variant`. Switching a user message also switches the
   * messages that follow it.
   *
   * @throws {AppError} `not_found`, `revision_mismatch`; `conflict` while a reply writes this message or one that would
   *   leave the active path, and for a message that isn't on the path.
   */
  async patch(id: string, mid: string, rawPatch: MessageInput, expected?: ExpectedVersion): Promise<WrittenMessage> {
    const { blocks, variants, revisions, images, now } = this.#deps;
    const patch = "content" in rawPatch
      ? { ...rawPatch, content: await storeInlineImages(images, rawPatch.content) }
      : rawPatch;
    const extraStatements: Statement[] = [];
    let edited: Message | undefined;
    let revision = 0;
    const message = await this.#deps.writer.editMessage(id, mid, (before) => {
      blocks.requireOnPath(id, mid);
      const { active_variant: activeVariant, variant_count: _, ...fields } = patch;
      // Cursors of the streamed reply don't fit the new text.
      extraStatements.push(renewReplyRow(id, mid, randomToken(9)));
      let base = before;
      if (typeof activeVariant === "number" && activeVariant !== before.active_variant) {
        base = variants.switchTo(id, before, activeVariant);
        extraStatements.push(...variants.keep(id, before));
        // No revision is needed: the previous text becomes a version.
        if (Object.keys(fields).length === 0) return base;
      }
      const { tool_rounds } = base;
      // If messages follow the version, its past text isn't that of the version before.
      const { tool_rounds: __, ...past } = hasContinuations(blocks, id, before) ? base : before;
      edited = past as Message;
      const isoNow = new Date(now()).toISOString();
      const merged = withoutNulls({ ...base, ...fields, updated_at: isoNow }) as MessageInput;
      return {
        ...completeMessage(merged, mid, isoNow, base),
        active_variant: base.active_variant,
        ...(tool_rounds && { tool_rounds }),
      };
    }, {
      expected,
      withRounds: true,
      switching: (before, after) => this.#switch(id, before, after),
      extraStatements: (
        state,
      ) => [...extraStatements, ...edited ? revisions.keep(state, "message_patch", { edited }) : []],
      written: (after) => revision = after.revision,
    });
    return { message: message!, revision };
  }

  /** Returns the change of the path that a change of a message requires, if any. */
  #switch(id: string, before: Message, after: Message): VersionChange | undefined {
    const { blocks, live } = this.#deps;
    if (after.active_variant === before.active_variant || !hasContinuations(blocks, id, before)) return undefined;
    const running = live.findByConversation(id)?.messageId;
    if (running !== undefined && blocks.countBefore(id, running) > blocks.countBefore(id, before.id)) {
      throw new AppError("conflict", `Message "${running}" is being written. Stop the reply first`);
    }
    return blocks.switchVersion(id, before.id, after.active_variant, () => after);
  }

  /**
   * Deletes one message, readable or not. Of a reply with tools, deletes all messages. If the versions of the message
   * have continuations, those are deleted, too.
   */
  async remove(id: string, mid: string, expected?: ExpectedVersion): Promise<RemovedEntry> {
    return await this.#removeUnreadable(id, mid, expected) ?? await this.#remove(id, mid, expected, (blocks) => {
      if (blocks.getTree(id).find(mid) !== undefined) return readSubtree(blocks, id, mid);
      const { first, last } = findReplyBounds(blocks, id, mid);
      const { after, segment } = blocks.getNeighbors(id, first);
      const { before } = blocks.getNeighbors(id, last);
      const edit = blocks.editReply(id, last, () => undefined);
      const { tool_rounds = [], ...message } = edit.before;
      const messages = [...tool_rounds, message as Message];
      return { change: edit, subtree: { messages }, countOnPath: messages.length, place: { after, before, segment } };
    });
  }

  /**
   * Deletes a message and everything after it, including what follows inactive versions.
   *
   * @throws {AppError} `not_found`, `conflict` if one of them is being written, `revision_mismatch`
   */
  removeFrom(id: string, mid: string, expected?: ExpectedVersion): Promise<RemovedEntry> {
    return this.#remove(id, mid, expected, (blocks) => readSubtree(blocks, id, findReplyBounds(blocks, id, mid).first));
  }

  /** Deletes an unreadable message. Its block is deleted with the last message in it. */
  #removeUnreadable(id: string, mid: string, expected?: ExpectedVersion): Promise<RemovedEntry | undefined> {
    const { store, blocks, locks } = this.#deps;
    return locks.run(id, async () => {
      const state = store.getForWrite(id);
      const damaged = blocks.findUnreadableRow(id, mid);
      if (damaged === undefined) return undefined;
      assertExpected(`conversation "${id}"`, expected, state.revision);
      if (blocks.getTree(id).find(mid) !== undefined) {
        throw new AppError(
          "conflict",
          `Message "${mid}" can't be read, and its versions have continuations. Save the whole conversation ` +
            "with a new text for this message before you delete it",
        );
      }
      const change: BlockChange = {
        statements: blocks.forgetUnreadable(id, damaged, mid),
        last: "unchanged",
        touched: { removed: [mid] },
      };
      const { revision } = await this.#deps.writer.write(state, -1, change, deleteMessageRows(id, [mid]));
      return { revision };
    });
  }

  #remove(
    id: string,
    mid: string,
    expected: ExpectedVersion | undefined,
    take: (blocks: BlockStore) => RemovedMessages | Promise<RemovedMessages>,
  ): Promise<RemovedEntry> {
    const { store, blocks, variants, live, locks, revisions, trash } = this.#deps;
    return locks.run(id, async () => {
      const state = store.getForWrite(id);
      assertExpected(`conversation "${id}"`, expected, state.revision);
      blocks.requireOnPath(id, mid);
      const { change, subtree, countOnPath, place } = await take(blocks);
      const { messages, segments = [] } = subtree;
      const mids = [...messages, ...segments.flatMap((segment) => segment.messages)].map((message) => message.id);
      const running = mids.find((removed) => live.findByMessage(id, removed) !== undefined);
      if (running !== undefined) {
        throw new AppError("conflict", `Message "${running}" is being written. Stop the reply first`);
      }
      const removed: TrashedMessages = { ...subtree, variants: variants.listTexts(id, mids), place };
      const title = toSnippet(messages[0]);
      const trashId = createUuidV7();
      const isAlone = messages.length === 1 && segments.length === 0;
      const next = dropStaleSummary(blocks, state, mid, isAlone ? "removed" : "path");
      const { revision } = await this.#deps.writer.write(next, -countOnPath, change, [
        ...deleteMessageRows(id, mids),
        ...revisions.keep(state, "message_delete", { removed }),
        trash.put("message", title, { conversationId: id, removed }, trashId),
        ...addReferences("trash", trashId, JSON.stringify(removed)),
      ]);
      trash.publishChange();
      return { trashId, revision };
    });
  }
}

/**
 * Returns the first and the last message of the reply that a message belongs to. Tool calls and their results stay
 * together.
 */
function findReplyBounds(blocks: BlockStore, id: string, mid: string): { first: string; last: string } {
  const { reply_id: owner } = blocks.getMessage(id, mid);
  const last = typeof owner === "string" && blocks.findLiveRow(id, owner) !== undefined ? owner : mid;
  const rounds = blocks.getRounds(id, last).map((message) => message.id);
  return last === mid || rounds.includes(mid) ? { first: rounds[0] ?? last, last } : { first: mid, last: mid };
}

async function readSubtree(blocks: BlockStore, id: string, mid: string): Promise<RemovedMessages> {
  const { after, segment } = blocks.getNeighbors(id, mid);
  const { removed, countOnPath, ...change } = await blocks.removeFrom(id, mid);
  const subtree = removed.continuations.length === 0 ? { messages: removed.messages } : removed;
  return { change, subtree, countOnPath, place: { after, segment } };
}
