/**
 * Messages that wait for the end of a reply. The server keeps and sends them, so that they follow the user to other
 * devices: docs/decisions/0063-message-queue.md. Until the server has one, this browser keeps it with the changes that wait,
 * so that it outlives the page and other pages show it too. Each has its ids from the start: given twice, it's one message
 * with one reply.
 *
 * A temporary chat has its queue on the page, which sends it.
 */
import { signal } from "@preact/signals";
import type { Api } from "../../api/api.ts";
import { asApiError } from "../../api/client.ts";
import { getTimeZone } from "../../api/conversations.ts";
import type { Message, QueuedMessage } from "../../api/types.ts";
import { newId } from "../app/ids.ts";
import type { Outbox } from "../app/outbox.ts";
import { lockEntry, needsAny, type OutboxEntry, type StoredEntry } from "../app/outbox_store.ts";
import type { AttachedDocument, AttachedImage } from "./attachments.ts";
import type { SentDraft } from "./chat_replies.ts";
import { getContentText } from "./message_text.ts";
import type { OpenChat, WaitingMessage } from "./open_chat.ts";
import { describeEnding } from "./reply_ending.ts";

/** Most messages that wait in one chat. */
export const MAX_QUEUED = 10;

/** Longest name of a file that the server keeps. */
const MAX_NAME_CHARS = 500;

/** What is kept of a queued message. */
interface Queued {
  turn: Message;
  replyId: string;
  typed: string;
  images: AttachedImage[];
  documents: AttachedDocument[];
  /** Names of the attachments. */
  recordings: string[];
}

/** Keeps a message until the reply has ended, or the server has it. */
export async function queueMessage(chat: OpenChat, outbox: Outbox, turn: Message, sent: SentDraft): Promise<void> {
  const body: Queued = {
    turn,
    replyId: newId(),
    typed: sent.typed,
    images: sent.images,
    documents: sent.documents,
    recordings: sent.recordings.map(({ name }) => name),
  };
  const entry = {
    kind: "queued" as const,
    key: `queued ${turn.id}`,
    conversationId: chat.id,
    method: "POST",
    path: "/api/chat",
    headers: {},
    body,
    text: sent.typed,
    time: Date.now(),
  } satisfies Omit<OutboxEntry, "person">;
  await outbox.queue(entry, !chat.isTemporary);
}

/**
 * Gives the server the queued messages of a chat that only this browser has, in order. They stay here while it lacks a
 * message that comes before them: it would send them first.
 *
 * @param options.startedKey Key of the entry of the running reply, which the server has accepted.
 * @param options.onAdded Called when the server has one, before this browser forgets it.
 * @throws {ApiError} if the server can't be reached or refuses one; it's kept then.
 */
export async function handOver(
  id: string,
  api: Api,
  outbox: Outbox,
  { startedKey, onAdded }: { startedKey?: string; onAdded?: () => Promise<void> } = {},
): Promise<void> {
  await lockQueue(id, async () => {
    await outbox.refresh();
    const isBefore = ({ conversationId, kind, key }: StoredEntry) =>
      conversationId === id && (kind === "send" || kind === "reply") && key !== startedKey;
    if (outbox.entries.peek().some(isBefore)) return;
    for (const entry of outbox.queued.peek().filter(({ conversationId }) => conversationId === id)) {
      // What it shows is uploaded first.
      if (needsAny(entry, outbox.entries.peek())) return;
      const { turn, replyId, images, documents } = entry.body as Queued;
      try {
        await api.addQueued(id, {
          message: {
            id: turn.id,
            content: turn.content,
            documents: turn.documents?.map(({ id, use, pages }) => ({ id, use, pages })),
            attachments: turn.attachments,
          },
          assistant_message_id: replyId,
          names: listNames(images, documents),
          time_zone: getTimeZone(),
        });
      } catch (thrown) {
        // An earlier attempt gave it to the server, and it was sent.
        if (asApiError(thrown).code !== "conflict") throw thrown;
      }
      await onAdded?.();
      await outbox.discard(entry.key);
    }
  });
}

/** Returns what is shown of a queued message: its text and the number of images, documents and recordings. */
export function describeQueued(waiting: WaitingMessage): { text: string; attachmentCount: number } {
  const { typed, images, documents, recordings } = readQueued(waiting);
  return { text: typed, attachmentCount: images.length + documents.length + recordings.length };
}

/** Returns a queued message to the composer, before what is there, unless it was sent. @throws {ApiError} */
export async function editQueued(chat: OpenChat, api: Api, outbox: Outbox, id: string): Promise<void> {
  const taken = await takeOut(chat, api, outbox, id);
  if (taken === undefined) return;
  const { typed, images, documents, recordings } = readQueued(taken);
  const present = chat.draft.text.peek();
  chat.draft.type(present.trim() === "" ? typed : `${typed}\n\n${present}`);
  chat.images.putBack(images);
  chat.documents.putBack(documents);
  chat.recordings.putBack(recordings.map((name) => ({ name, isBusy: signal(false) })));
}

/**
 * Takes a message out of the queue.
 *
 * @returns Undefined if it was sent.
 * @throws {ApiError}
 */
export async function takeOut(
  chat: OpenChat,
  api: Api,
  outbox: Outbox,
  id: string,
): Promise<WaitingMessage | undefined> {
  return await lockQueue(chat.id, async () => {
    const waiting = chat.queued.peek().find((each) => each.id === id);
    if (waiting?.entry) await outbox.discard(waiting.entry.key);
    if (!waiting?.item) return waiting;
    try {
      await api.removeQueued(chat.id, waiting.item.n);
    } catch (thrown) {
      if (asApiError(thrown).status !== 404) throw thrown;
      await chat.refreshQueue();
      return undefined;
    }
    await chat.refreshQueue();
    return waiting;
  });
}

/** Moves a message that the server keeps, unless it was sent. @param position From 0. @throws {ApiError} */
export async function moveQueued(chat: OpenChat, api: Api, n: number, position: number): Promise<void> {
  try {
    await api.moveQueued(chat.id, n, position);
  } catch (thrown) {
    if (asApiError(thrown).status !== 404) throw thrown;
  }
  await chat.refreshQueue();
}

/** Whether a reply has ended so that the next message may follow. */
export function isWell(message: Message | undefined): boolean {
  return message?.role === "assistant" && message.status === "complete" && describeEnding(message) === undefined;
}

/** Sends a queued message of the open chat now. By its ids, it's sent once, whoever else does. */
export async function sendWaiting(chat: OpenChat, outbox: Outbox, waiting: WaitingMessage): Promise<void> {
  if (chat.isClosed || chat.replies.run.peek()) return;
  const { turn, replyId } = readQueued(waiting);
  const forget = () => void (waiting.entry && outbox.discard(waiting.entry.key));
  const end = await chat.replies.sendTurn({ ...turn, created_at: new Date().toISOString() }, replyId, forget);
  if (end === "discarded") forget();
}

function readQueued({ item, entry }: WaitingMessage): Queued {
  if (!item) return entry!.body as Queued;
  const { message, names = {}, assistant_message_id: replyId, created_at } = item;
  const { id, content, documents = [], attachments = [] } = message;
  const urls = typeof content === "string" ? [] : content.flatMap(({ image_url: image }) => {
    const url = (image as { url?: unknown } | undefined)?.url;
    return typeof url === "string" ? [url] : [];
  });
  const turn = {
    ...message as Message,
    id,
    role: "user",
    created_at,
    status: "complete",
  } satisfies Message;
  return {
    turn,
    replyId,
    typed: getContentText(content as Message["content"]),
    images: urls.map((url) => ({ id: 0, name: names[url] ?? url.slice(url.lastIndexOf("/") + 1), shownUrl: url, url })),
    documents: documents.map(({ id, use = "auto", pages }) => ({
      key: 0,
      id,
      name: names[id] ?? id,
      isWaiting: true,
      document: undefined,
      use,
      pages,
    })),
    recordings: attachments,
  };
}

function listNames(images: AttachedImage[], documents: AttachedDocument[]): QueuedMessage["names"] {
  const named = [...images.map(({ url, name }) => [url ?? "", name]), ...documents.map(({ id, name }) => [id, name])];
  const fitting = named.filter(([key = ""]) => key !== "" && key.length <= MAX_NAME_CHARS);
  return Object.fromEntries(fitting.map(([key, name = ""]) => [key, name.slice(0, MAX_NAME_CHARS)]));
}

/** Runs work while no other page of this browser hands over or changes messages of the same chat. */
function lockQueue<T>(id: string, work: () => Promise<T>): Promise<T> {
  return lockEntry(`queue ${id}`, work);
}
