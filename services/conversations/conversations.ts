/** Creates conversations, and saves and changes them as a whole. `ConversationWriter` writes the changes. */
import { isDeepStrictEqual } from "node:util";
import { createUuidV7 } from "../crypto/random.ts";
import type { ImagePartsDeps } from "../attachments/image_parts.ts";
import { AppError } from "../errors.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import type { Database } from "../storage/database/database.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import { isLost, type OpenBlock } from "./blocks/block_rows.ts";
import type { BlockStore, OpenTree } from "./blocks/block_store.ts";
import {
  type ConversationInput,
  type ConversationState,
  parseHead,
  patchHead,
  toHeadJson,
  toLastMessage,
} from "./conversation.ts";
import type { ConversationStreams } from "./conversation_streams.ts";
import type { ConversationStore } from "./conversation_store.ts";
import type { LiveReplies, LiveReply } from "./live_replies.ts";
import { listPinnedIds, type Message, type MessageInput, parseIsoTime, withPins } from "./message.ts";
import {
  changeTexts,
  completeMessages,
  createGreeting,
  createGreetingQuestion,
  type GreetingSource,
  prepareMessages,
} from "./new_messages.ts";
import { branchIds, EMPTY_TREE, getPath, type MessageTree, toMessageTree, withPath } from "./message_tree.ts";
import { dropChangedSummary, reconcileChapters, withChapters } from "./chapters.ts";
import type { VariantStore } from "./variants.ts";
import type { ConversationWriter } from "./conversation_writer.ts";
import type { Drafts } from "./drafts.ts";

/** Dependencies of `Conversations`. */
export interface ConversationsDeps {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  writer: ConversationWriter;
  drafts: Drafts;
  streams: ConversationStreams;
  live: LiveReplies;
  images: ImagePartsDeps;
  /** Returns the greetings of a character. Absent in tests without characters. */
  greetings?: GreetingSource;
  /** Returns the persona of a new conversation with these characters. */
  choosePersona?(characterIds: readonly string[]): Promise<string | undefined>;
  now(): number;
}

/** A saved conversation. */
export interface SavedConversation {
  isNew: boolean;
  revision: number;
  /** The conversation in the API's format. A large one is streamed in pieces. */
  json: Uint8Array | AsyncGenerator<Uint8Array>;
}

const encoder = new TextEncoder();

/** Saves and changes conversations. */
export class Conversations {
  readonly #deps: ConversationsDeps;

  constructor(deps: ConversationsDeps) {
    this.#deps = deps;
  }

  /**
   * Saves a whole conversation and replaces an existing one.
   *
   * If the message of a running reply is among `messages`, its text stays; otherwise the reply is stopped first. A
   * message with `variants` gets these versions. The versions of others don't change.
   *
   * @param expected The revision that must be the current one.
   * @throws {AppError} `in_trash`, `revision_mismatch`, `conflict`, `invalid_request`
   */
  async put(
    id: string,
    input: ConversationInput & { messages: MessageInput[] },
    expected?: ExpectedVersion,
  ): Promise<SavedConversation> {
    const { db, store, blocks, variants, writer, drafts, streams, live, images } = this.#deps;
    const prepared = await prepareMessages(images, input.messages);
    const { mids } = prepared;
    const isLeftOut = (running: LiveReply) => !mids.includes(running.messageId);
    const find = () => {
      store.refuseRemoved(id);
      if (!store.exists(id)) return undefined;
      const { state, isHeadUnreadable } = store.getReadable(id);
      if (!isHeadUnreadable || expected !== undefined) return state;
      throw new AppError(
        "conflict",
        `The settings of conversation "${id}" can't be read. Send If-Match with its revision to replace them`,
      );
    };
    return await writer.runWithoutReply(id, { find, expected, isConflicting: isLeftOut }, async (before) => {
      const now = this.#deps.now();
      const storedTree = before === undefined ? EMPTY_TREE : await blocks.openReadableTree(id);
      this.#refuseLosingUnreadable(id, storedTree, mids);
      await yieldIfTickUsedUp();
      const [treeBefore, branches] = [toMessageTree(storedTree), branchIds(storedTree)];
      const path = new Map<string, Message>();
      for (const message of getPath(treeBefore)) path.set(message.id, message);
      if (branches.size > 0) refuseOffPath(blocks, id, mids, path);
      const unreadable = new Set(listUnreadable(storedTree).flatMap(({ messages }) => messages.map((one) => one.id)));
      const stored = unreadable.size === 0 ? path : new Map([...path].filter(([mid]) => !unreadable.has(mid)));
      writer.refuseCaseClash(id);
      const isoNow = new Date(now).toISOString();
      const runningId = live.findByConversation(id)?.messageId;
      const { messages, withTexts } = await completeMessages(prepared, { stored, branches, runningId, now: isoNow });
      const state: ConversationState = {
        id,
        revision: (before?.revision ?? 0) + 1,
        createdAtMs: before?.createdAtMs ?? Date.parse(parseIsoTime(input.created_at) ?? isoNow),
        updatedAtMs: now,
        messageCount: messages.length,
        head: withPins(
          dropChangedSummary(
            reconcileChapters(parseHead(input), before?.head),
            before?.head,
            [...stored.values()],
            messages,
          ),
          listPinnedIds(messages),
        ),
      };
      const draft = drafts.createPutChange(id, input, before === undefined);
      const texts = await changeTexts(variants, id, withTexts);
      const tree = withPath(treeBefore, messages);
      refuseMovingUnreadable(id, storedTree, tree);
      const { statements, text } = await writer.createReplaceStatements(before, state, { tree, storedTree, texts });
      await yieldIfTickUsedUp();
      await db.write([...statements, ...draft?.statements ?? []], { isMoved: text === undefined });
      writer.publish(state);
      if (draft !== undefined) drafts.publish(id, draft.version);
      // Built from the data just written, unless a running reply has more text by now.
      const json = runningId === undefined && text !== undefined && !store.getDraft(id).isUnreadable
        ? encoder.encode(`${toHeadJson(state, store.getDraft(id))},"messages":[${text}]}`)
        : (await streams.open(id, { hasSideEffects: true })).json;
      return { isNew: before === undefined, revision: state.revision, json };
    });
  }

  /**
   * Rejects a save that replaces unreadable blocks of the active path, unless it replaces all their messages. A client
   * that built its messages from the readable blocks would delete the others.
   *
   * @throws {AppError} `conflict`
   */
  #refuseLosingUnreadable(id: string, storedTree: OpenTree, mids: string[]): void {
    const path = this.#deps.blocks.getTree(id);
    const saved = new Set(mids);
    for (const { row, messages } of listUnreadable(storedTree)) {
      if (path.findRangeIndex(row) === undefined || messages.length === 0) continue;
      // A block on a damaged page of the database file has no row that could be replaced.
      if (isLost(row) || messages.some((message) => !saved.has(message.id))) throw createUnreadableError(id, messages);
    }
  }

  /**
   * Creates a conversation with a new id. It starts with a greeting of its first character, if any.
   *
   * @param greeting Number of the greeting, from 0; see `createGreeting`.
   * @param id A new id.
   * @throws {AppError} `invalid_request` for a greeting that the character doesn't have.
   */
  async create(
    input: ConversationInput,
    greeting?: number,
    id = createUuidV7(),
  ): Promise<{ id: string; revision: number }> {
    const { db, store, blocks, variants, writer, greetings } = this.#deps;
    const now = this.#deps.now();
    const head = parseHead(input);
    if (input.persona_id === undefined) {
      const chosen = await this.#deps.choosePersona?.(head.participants.map(({ character_id }) => character_id));
      if (chosen !== undefined) head.persona_id = chosen;
    }
    const first = head.participants[0]?.character_id;
    const found = first === undefined ? undefined : await greetings?.(createGreetingQuestion(head, first));
    const opening = found && createGreeting(found, greeting, new Date(now).toISOString(), variants);
    const messages = opening === undefined ? [] : [opening.message];
    const state = { id, revision: 1, createdAtMs: now, updatedAtMs: now, messageCount: messages.length, head };
    await db.write([
      store.insert(state, toLastMessage(opening?.message), opening?.message),
      ...blocks.append(id, messages),
      ...opening?.createStatements(id) ?? [],
    ]);
    writer.publish(state);
    return state;
  }

  /**
   * Changes fields of a conversation but not its messages; null clears a field. A changed draft doesn't increase the
   * revision.
   *
   * @throws {AppError} `in_trash`, `not_found`, `revision_mismatch`, `invalid_request`
   */
  patch(id: string, patch: ConversationInput, expected?: ExpectedVersion): Promise<ConversationState> {
    const { db, store, writer, drafts, now } = this.#deps;
    const target = { find: () => store.getForWrite(id), expected, isConflicting: () => false };
    return writer.runWithoutReply(id, target, async (before) => {
      const draft = drafts.createPatchChange(id, patch);
      const settled = reconcileChapters(patchHead(before.head, patch), before.head);
      const head = patch.chapters === null ? withChapters(settled, []) : settled;
      const isHeadChanged = !isDeepStrictEqual(head, before.head);
      const state = isHeadChanged ? { ...before, head, revision: before.revision + 1, updatedAtMs: now() } : before;
      const statements = [
        ...(isHeadChanged ? writer.createHeadStatements(before, state) : []),
        ...draft?.statements ?? [],
      ];
      if (statements.length > 0) await db.write(statements);
      if (isHeadChanged) writer.publish(state);
      if (draft !== undefined) drafts.publish(id, draft.version);
      return state;
    });
  }
}

/** Rejects IDs of messages that are off the active path. @throws {AppError} `conflict` */
function refuseOffPath(blocks: BlockStore, id: string, mids: string[], path: ReadonlyMap<string, Message>): void {
  for (const mid of blocks.listUsedMids(id, mids)) if (!path.has(mid)) blocks.requireOnPath(id, mid);
}

/** Returns the unreadable blocks. */
function listUnreadable({ segments }: OpenTree): OpenBlock[] {
  return [...segments.values()].flat().filter((block) => block.isUnreadable);
}

/**
 * Rejects a save that would rewrite or delete unreadable blocks off the active path.
 *
 * @throws {AppError} `conflict`
 */
function refuseMovingUnreadable(id: string, storedTree: OpenTree, tree: MessageTree): void {
  const unreadable = listUnreadable(storedTree);
  if (unreadable.length === 0) return;
  const replaced = new Set(getPath(tree).map((message) => message.id));
  for (const { row, messages } of unreadable) {
    if (messages.every((message) => replaced.has(message.id))) continue;
    const segment = tree.segments.get(row.segment) ?? [];
    // The same objects in the same segment mean that their block isn't rewritten.
    if (messages.some((message) => !segment.includes(message))) throw createUnreadableError(id, messages);
  }
}

function createUnreadableError(id: string, messages: Message[]): AppError {
  return new AppError(
    "conflict",
    `Conversation "${id}" has ${messages.length} messages that can't be read, and saving it as a whole would delete them. ` +
      `Delete them first, or save it under another ID: ${
        messages.slice(0, 20).map((message) => message.id).join(", ")
      }`,
  );
}
