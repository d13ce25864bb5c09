/** Stores the messages that a chat request adds before the model is called: the user message and an empty reply. */
import { type ImagePartsDeps, storeInlineImages } from "../attachments/image_parts.ts";
import type { BlockChange, BlockStore } from "../conversations/blocks/block_store.ts";
import { type ConversationState, toTitle } from "../conversations/conversation.ts";
import type { ConversationWriter } from "../conversations/conversation_writer.ts";
import type { ConversationReader } from "../conversations/conversation_reader.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import {
  completeMessage,
  getContentText,
  isEmptyAttempt,
  isEmptyFailure,
  isSameContent,
  type Message,
  type MessageInput,
  withoutReply,
} from "../conversations/message.ts";
import { startReplyRow } from "../conversations/live_replies.ts";
import { createLinearTree, EMPTY_TREE } from "../conversations/message_tree.ts";
import { dropStaleSummary } from "../conversations/chapters.ts";
import { toUserText, type VariantStore, withoutText } from "../conversations/variants.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { ConversationStart, StatefulChatRequest } from "./chat_service.ts";

/** Dependencies of a MessageWriter. */
export interface MessageWriterDeps {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  conversationWriter: ConversationWriter;
  reader: ConversationReader;
  images: ImagePartsDeps;
}

/** A reply that is about to start. */
export interface NewReply {
  messageId: string;
  generation: string;
  /** `undefined` until it's known. */
  model: string | undefined;
  now: number;
  /** The character that speaks, if the reply is a new message. */
  characterId?: string;
  /** Changes in the same commit. */
  also?: Statement[];
}

/** The stored messages. */
export interface WrittenMessages {
  userMessage?: Message;
  /** Text and reasoning that the reply continues. */
  base: { text: string; reasoning: string };
  /** The message before this run, if the reply continues or rewrites it. */
  previous?: Message;
}

/** Stores messages. The caller holds the conversation's lock, except for `storeImages`. */
export class MessageWriter {
  readonly #deps: MessageWriterDeps;

  constructor(deps: MessageWriterDeps) {
    this.#deps = deps;
  }

  /**
   * Stores the images of the user message, and returns the request with references to them. Images of earlier messages
   * are already stored.
   */
  async storeImages(request: StatefulChatRequest): Promise<StatefulChatRequest> {
    const last = request.messages.at(-1);
    if (!addsMessage(request) || last === undefined) return request;
    if (last.role === "tool") {
      const messages: ChatMessage[] = [];
      for (const message of request.messages) {
        const content = message.role === "tool"
          ? await storeInlineImages(this.#deps.images, message.content)
          : message.content;
        messages.push({ ...message, content });
      }
      return { ...request, messages };
    }
    if (last.role !== "user") {
      return { ...request, opening: request.opening && await this.#storeStartImages(request.opening) };
    }
    const content = await storeInlineImages(this.#deps.images, last.content);
    const opening = request.opening && await this.#storeStartImages(request.opening);
    return { ...request, opening, messages: [...request.messages.slice(0, -1), { ...last, content }] };
  }

  async #storeStartImages(opening: ConversationStart): Promise<ConversationStart> {
    const messages: ChatMessage[] = [];
    for (const message of opening.messages) {
      messages.push({ ...message, content: await storeInlineImages(this.#deps.images, message.content) });
    }
    return { ...opening, messages };
  }

  /**
   * Rejects a user message whose ID belongs to another message, because the new text would be lost.
   *
   * @throws {AppError} `conflict`
   */
  refuseOtherContent({ conversationId, userMessageId: mid, action, messages }: StatefulChatRequest): void {
    const last = messages.at(-1);
    if (action !== "send" || mid === undefined || last?.role !== "user") return;
    const { blocks, store, reader } = this.#deps;
    if (!store.exists(conversationId) || blocks.listUsedMids(conversationId, [mid]).size === 0) return;
    const stored = reader.readMessage(conversationId, mid);
    if (stored.role === "user" && isSameContent(stored.content, last.content ?? "")) return;
    throw new AppError(
      "conflict",
      `Conversation "${conversationId}" already has a message "${mid}" with other content. Send a new user_message_id`,
    );
  }

  /**
   * Stores the user message and the empty reply in one transaction. Creates the conversation if it doesn't exist.
   *
   * @param existing The conversation before.
   * @throws {AppError} `conflict` if an id is taken, `not_found` or `invalid_request` if the reply doesn't exist.
   */
  async write(
    request: StatefulChatRequest,
    reply: NewReply,
    existing: ConversationState | undefined,
  ): Promise<WrittenMessages> {
    const { blocks, conversationWriter } = this.#deps;
    const id = request.conversationId;
    const isEdit = request.action === "edit";
    const userMessage = addsMessage(request) ? createUserMessage(request, reply.now, existing) : undefined;
    if (userMessage?.id === reply.messageId) {
      throw new AppError("invalid_request", "user_message_id and assistant_message_id must differ");
    }
    // Only for a new conversation: the database doesn't allow two IDs that differ only in case.
    if (existing === undefined) conversationWriter.refuseCaseClash(id);
    const mids = [reply.messageId, ...(userMessage === undefined ? [] : [userMessage.id])];
    const usedIds = existing === undefined ? new Set<string>() : blocks.listUsedMids(id, mids);
    if (!addsMessage(request) || usedIds.has(reply.messageId)) {
      return { userMessage, ...await this.#rewriteReply(request, reply, existing) };
    }
    const base = { text: "", reasoning: "" };
    if (isEdit) {
      if (existing === undefined) throw new AppError("not_found", `Conversation "${id}" not found`);
      return { userMessage: await this.#addVersion(request, reply, existing), base };
    }
    const isStored = userMessage !== undefined && usedIds.has(userMessage.id);
    if (isStored) blocks.requireOnPath(id, userMessage.id);
    const results = this.#findNewResults(request, reply, existing);
    const added = [
      ...(userMessage === undefined || isStored ? [] : [userMessage]),
      ...results,
      createEmptyReply(reply),
    ];
    if (existing === undefined) await this.#createConversation(request, reply, added, userMessage);
    else {
      const edit = {
        statements: blocks.append(id, added),
        last: userMessage ?? "unchanged" as const,
        touched: { added: added.map((message) => message.id) },
      } satisfies BlockChange;
      await conversationWriter.write(withTitle(existing, request), added.length, edit, startRows(id, reply));
    }
    return { userMessage, base };
  }

  /** Returns the tool results at the end of a request that aren't stored yet. The client ran these tools. */
  #findNewResults(request: StatefulChatRequest, reply: NewReply, existing: ConversationState | undefined): Message[] {
    const { blocks } = this.#deps;
    const sent = request.messages.slice(request.messages.findLastIndex(({ role }) => role !== "tool") + 1);
    if (sent.length === 0) return [];
    const stored = new Set<unknown>();
    let row = existing && blocks.findPrevious(existing.id);
    search: for (; row !== undefined; row = blocks.findPrevious(existing!.id, row)) {
      for (const message of blocks.openMessages(existing!.id, row).toReversed()) {
        if (message.role !== "tool") break search;
        stored.add(message.tool_call_id);
      }
    }
    return sent.filter(({ tool_call_id }) => !stored.has(tool_call_id)).map(({ id: _, mid: __, ...fields }) =>
      completeMessage(fields, createUuidV7(), formatTime(reply))
    );
  }

  /** Adds a version to a user message and activates it. Only the empty reply follows it. */
  async #addVersion(request: StatefulChatRequest, reply: NewReply, existing: ConversationState): Promise<Message> {
    const { blocks, conversationWriter, variants } = this.#deps;
    const { conversationId: id, userMessageId: mid } = request;
    blocks.requireOnPath(id, mid!);
    const text = toUserText(request.messages.at(-1)!, mid!, formatTime(reply));
    const saved: Statement[] = [];
    const n = blocks.getMessage(id, mid!).variant_count;
    const edit = blocks.switchVersion(id, mid!, n, (before) => {
      if (before.role !== "user") throw new AppError("invalid_request", `Message "${mid}" isn't a user message`);
      saved.push(...variants.keep(id, before));
      return {
        ...withoutText(before),
        ...text,
        status: "complete",
        updated_at: formatTime(reply),
        variant_count: n + 1,
        active_variant: n,
      };
    }, [createEmptyReply(reply)]);
    const next = dropStaleSummary(blocks, withTitle(existing, request), mid!);
    const change = { statements: edit.statements, last: edit.after, touched: edit.touched } satisfies BlockChange;
    await conversationWriter.write(next, edit.messageCount - existing.messageCount, change, [
      ...saved,
      ...startRows(id, reply),
    ]);
    return edit.after;
  }

  /** Turns an existing message into the reply, to continue or rewrite it. */
  async #rewriteReply(request: StatefulChatRequest, reply: NewReply, existing: ConversationState | undefined) {
    const { blocks, conversationWriter, variants } = this.#deps;
    const [id, mid] = [request.conversationId, reply.messageId];
    if (existing === undefined) throw new AppError("not_found", `Conversation "${id}" not found`);
    blocks.requireOnPath(id, mid);
    const base = { text: "", reasoning: "" };
    const saved: Statement[] = [];
    let previous: Message | undefined;
    const edit = blocks.editReply(id, mid, (before) => {
      if (addsMessage(request) && !isEmptyFailure(before)) {
        throw new AppError(
          "conflict",
          `Can't use "${mid}" as assistant_message_id: a message that isn't a reply already has it`,
        );
      }
      if (before.role !== "assistant") throw new AppError("invalid_request", `Message "${mid}" isn't a reply`);
      if (request.action === "continue") {
        base.text = getContentText(before.content);
        base.reasoning = before.reasoning ?? "";
        previous = before;
        saved.push(...variants.keep(id, before));
        const { finish_reason: _, output_limit: __, left_out: ___, split_reasoning: ____, ...rest } = before;
        return { ...rest as Message, model: reply.model ?? before.model, status: "streaming", error: undefined };
      }
      // Its text becomes a version, unless it has none.
      if (isEmptyAttempt(before)) return clearReply(before, reply);
      previous = before;
      saved.push(...variants.keep(id, before));
      return {
        ...clearReply(before, reply),
        variant_count: before.variant_count + 1,
        active_variant: before.variant_count,
      };
    });
    await conversationWriter.write(existing, edit.messagesAdded, edit, [...saved, ...startRows(id, reply, previous)]);
    return { base, previous };
  }

  async #createConversation(
    request: StatefulChatRequest,
    reply: NewReply,
    added: Message[],
    userMessage: Message | undefined,
  ): Promise<void> {
    const { db, conversationWriter } = this.#deps;
    const id = request.conversationId;
    const { participants = [], messages: earlier = [] } = request.opening ?? {};
    const all = [
      ...earlier.map((message) => completeMessage(toStartInput(message, reply), createUuidV7(), formatTime(reply))),
      ...added,
    ];
    const state: ConversationState = {
      id,
      revision: 1,
      createdAtMs: reply.now,
      updatedAtMs: reply.now,
      messageCount: all.length,
      head: { title: createTitle(request), participants },
    };
    const { statements } = await conversationWriter.createReplaceStatements(undefined, state, {
      tree: createLinearTree(all),
      storedTree: EMPTY_TREE,
      snippetOwner: userMessage,
    });
    await db.write([...statements, ...startRows(id, reply)]);
    conversationWriter.publish(state);
  }
}

/** Returns whether a request adds a user message or a version of one, and a new reply. */
function addsMessage({ action }: StatefulChatRequest): boolean {
  return action === "send" || action === "edit";
}

/** Creates the user message of a request: the last of its messages, if its role is `user`. */
function createUserMessage(
  request: StatefulChatRequest,
  now: number,
  conversation: ConversationState | undefined,
): Message | undefined {
  const last = request.messages.at(-1);
  if (last?.role !== "user") return undefined;
  // The request names its id. All other fields are stored as they were sent.
  const { id: _, mid: __, variants: ___, ...fields } = last;
  const input = { persona_id: conversation?.head.persona_id, ...fields };
  return completeMessage(input, request.userMessageId ?? createUuidV7(), new Date(now).toISOString());
}

/** Returns an earlier message of a new conversation as it is stored: without the IDs from the client. */
function toStartInput({ id: _, mid: __, variants: ___, ...fields }: ChatMessage, reply: NewReply): MessageInput {
  return fields.role === "assistant" ? { character_id: reply.characterId, ...fields } : fields;
}

function createEmptyReply(reply: NewReply): Message {
  // A message keeps its model and character, even if the conversation changes them later.
  const input = { role: "assistant", model: reply.model, character_id: reply.characterId };
  return { ...completeMessage(input, reply.messageId, formatTime(reply)), status: "streaming" };
}

/** Returns a message that is about to be rewritten, without the fields of its last reply. */
function clearReply(before: Message, reply: NewReply): Message {
  return {
    ...withoutReply(before),
    content: "",
    model: reply.model,
    status: "streaming",
    updated_at: formatTime(reply),
  };
}

/** Sets the title of an untitled conversation from the request. */
function withTitle(state: ConversationState, request: StatefulChatRequest): ConversationState {
  return state.head.title === "" ? { ...state, head: { ...state.head, title: createTitle(request) } } : state;
}

function createTitle(request: StatefulChatRequest): string {
  const last = request.messages.findLast((message) => message.role === "user");
  return toTitle(getContentText(last?.content));
}

function startRows(
  conversationId: string,
  { messageId, generation, now, also = [] }: NewReply,
  previous?: Message,
): Statement[] {
  const row = startReplyRow({
    mid: messageId,
    conversation_id: conversationId,
    generation,
    started_at: now,
    previous_variant: previous?.active_variant ?? null,
  });
  return [row, ...also];
}

function formatTime({ now }: NewReply): string {
  return new Date(now).toISOString();
}
