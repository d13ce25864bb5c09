/** Sends the messages that wait for the end of a reply, one by one: docs/decisions/0063-message-queue.md. */
import type { KeyedMutex } from "../async/locks.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { ConversationState } from "../conversations/conversation.ts";
import type { ConversationStore, QueuedMessage } from "../conversations/conversation_store.ts";
import type { LiveReplies } from "../conversations/live_replies.ts";
import { getContentText, type Message } from "../conversations/message.ts";
import type { MessageQueues, QueueChange, QueueInput } from "../conversations/message_queues.ts";
import { getErrorTrace } from "../errors.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import type { Log } from "../log.ts";
import type { CallBuilder } from "./call_builder.ts";
import type { ChatService, StatefulChatRequest } from "./chat_service.ts";
import type { MessageWriter } from "./message_writer.ts";
import type { Reply } from "./reply.ts";

/** Most characters that answer one message automatically, the first included. */
const MAX_SPEAKERS = 5;

/** Dependencies of a QueueSender. */
export interface QueueSenderDeps {
  store: ConversationStore;
  blocks: BlockStore;
  queues: MessageQueues;
  locks: KeyedMutex;
  live: LiveReplies<Reply>;
  writer: Pick<MessageWriter, "storeImages">;
  calls: Pick<CallBuilder, "listSpeakers">;
  chat: Pick<ChatService, "startNew">;
  log: Log;
}

/** Queues messages and sends them. */
export class QueueSender {
  readonly #deps: QueueSenderDeps;
  /** Conversations whose client lets other characters speak after the reply that has just ended. */
  readonly #openRounds = new Set<string>();
  readonly #sending = new Set<Promise<void>>();

  constructor(deps: QueueSenderDeps) {
    this.#deps = deps;
  }

  /** Queues a message. It's sent at once if no reply is running and the last one ended well. @throws as `MessageQueues.add` */
  async add(id: string, input: QueueInput): Promise<QueuedMessage> {
    const { store, queues } = this.#deps;
    store.getForWrite(id);
    const item = await queues.add(id, { ...input, message: await this.#storeImages(id, input.message) });
    this.#run(id, () => this.#sendNext(id));
    return item;
  }

  /** Changes a message that waits. @throws as `MessageQueues.change` */
  async change(id: string, n: number, { message, ...change }: QueueChange): Promise<QueuedMessage> {
    const { store, queues } = this.#deps;
    store.getForWrite(id);
    return await queues.change(id, n, {
      ...change,
      ...(message !== undefined && { message: await this.#storeImages(id, message) }),
    });
  }

  /** Sends the next message, or in a group lets the next character speak, after a reply that ended well. */
  replyEnded(
    { conversationId: id, end }: Reply,
    { nextSpeakers = [], runsRound, timeZone }: StatefulChatRequest,
  ): void {
    this.#openRounds.delete(id);
    if (end?.status !== "complete") return;
    if (nextSpeakers.length === 0) this.#run(id, () => this.#sendNext(id));
    else if (runsRound === true) this.#run(id, () => this.#speakOn(id, nextSpeakers, timeZone));
    else this.#openRounds.add(id);
  }

  /** Waits until nothing is being sent. */
  async close(): Promise<void> {
    await Promise.all(this.#sending);
  }

  async #storeImages<M extends ChatMessage>(conversationId: string, message: M): Promise<M> {
    const stored = await this.#deps.writer.storeImages({
      conversationId,
      action: "send",
      messages: [{ ...message, role: "user" }],
      params: {},
    });
    return { ...message, ...stored.messages[0] };
  }

  /** Does work under the conversation's lock if no reply is running there. A failure leaves the queue as it is. */
  #run(id: string, work: () => Promise<void>): void {
    const { locks, live, store, log } = this.#deps;
    const sending = locks.run(id, async () => {
      if (live.findByConversation(id) === undefined && store.exists(id)) await work();
    }).catch((error) => log("warn", "Couldn't send a queued message", { error: getErrorTrace(error) }));
    this.#sending.add(sending);
    sending.finally(() => this.#sending.delete(sending));
  }

  /** Sends the next message. The caller holds the conversation's lock. */
  async #sendNext(id: string): Promise<void> {
    const { store, blocks, calls } = this.#deps;
    const [item] = store.getQueue(id).items;
    if (item === undefined || this.#openRounds.has(id) || !isWell(findLastMessage(blocks, id))) return;
    const { message, assistantMessageId, timeZone } = item;
    const [characterId, ...others] = await calls.listSpeakers(store.get(id), message);
    await this.#start({
      conversationId: id,
      messages: [message],
      userMessageId: message.id,
      assistantMessageId,
      characterId,
      timeZone,
      nextSpeakers: others.slice(0, MAX_SPEAKERS - 1),
    });
  }

  /** Lets the next character speak. The caller holds the conversation's lock. */
  async #speakOn(id: string, speakers: string[], timeZone: string | undefined): Promise<void> {
    const present = speakers.filter((speaker) => isPresent(this.#deps.store.get(id), speaker));
    const [characterId, ...nextSpeakers] = present;
    if (characterId === undefined) return await this.#sendNext(id);
    await this.#start({ conversationId: id, messages: [], characterId, timeZone, nextSpeakers });
  }

  async #start(
    request: Pick<StatefulChatRequest, "conversationId" | "messages" | "characterId" | "nextSpeakers" | "timeZone"> & {
      userMessageId?: string;
      assistantMessageId?: string;
    },
  ): Promise<void> {
    const { started } = await this.#deps.chat.startNew({
      ...request,
      runsRound: true,
      action: "send",
      context: "server",
      params: {},
      usesTools: true,
    });
    // The message has the error.
    started.catch(() => {});
  }
}

function findLastMessage(blocks: BlockStore, id: string): Message | undefined {
  const row = blocks.findPrevious(id);
  return row && blocks.openMessages(id, row).at(-1);
}

function isPresent({ head }: ConversationState, id: string): boolean {
  return head.participants.some(({ character_id, muted }) => character_id === id && muted !== true);
}

/** Whether a reply ended so that the next message may follow: whole, and with something in it. */
function isWell(message: Message | undefined): boolean {
  if (message?.role !== "assistant" || message.status !== "complete" || message.last_attempt !== undefined) {
    return false;
  }
  if (message.finish_reason === "length" || message.finish_reason === "content_filter") return false;
  const { content, tool_calls: calls = [] } = message;
  const hasParts = Array.isArray(content) && content.some(({ type }) => type !== "text");
  return getContentText(content) !== "" || hasParts || calls.length > 0;
}
