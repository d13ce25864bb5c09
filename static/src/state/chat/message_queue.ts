/**
 * Messages that wait for the end of a reply. They are kept with the changes that the server doesn't have yet, so that they
 * outlive the page and other pages of this browser show them too. Each has its ids from the start: sent twice, it's one
 * message with one reply.
 */
import { signal } from "@preact/signals";
import type { Api } from "../../api/api.ts";
import type { Message } from "../../api/types.ts";
import { newId } from "../app/ids.ts";
import { asApiError } from "../../api/client.ts";
import type { Outbox } from "../app/outbox.ts";
import { lockEntry, type OutboxEntry, type StoredEntry } from "../app/outbox_store.ts";
import type { AttachedDocument, AttachedImage } from "./attachments.ts";
import type { SentDraft } from "./chat_replies.ts";
import type { OpenChat } from "./open_chat.ts";
import { describeEnding } from "./reply_ending.ts";
import { buildStoredRequest } from "./reply_request.ts";

/** Most messages that wait in one chat. */
export const MAX_QUEUED = 10;

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

/** A message in the queue. */
export interface QueuedMessage {
  key: string;
  text: string;
  /** Number of images, documents and recordings. */
  attachmentCount: number;
}

/** Keeps a message until the reply has ended. */
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

/** Returns what is shown of an entry. */
export function toQueuedMessage({ key, body }: StoredEntry): QueuedMessage {
  const { typed, images, documents, recordings } = body as Queued;
  return { key, text: typed, attachmentCount: images.length + documents.length + recordings.length };
}

/** Returns a queued message to the composer, before what is there. */
export async function editQueued(chat: OpenChat, outbox: Outbox, entry: StoredEntry): Promise<void> {
  const { typed, images, documents, recordings } = entry.body as Queued;
  const present = chat.draft.text.peek();
  chat.draft.type(present.trim() === "" ? typed : `${typed}\n\n${present}`);
  chat.images.putBack(images);
  chat.documents.putBack(documents);
  chat.recordings.putBack(recordings.map((name) => ({ name, isBusy: signal(false) })));
  await outbox.discard(entry.key);
}

/** Whether a reply has ended so that the next message may follow. */
function isWell(message: Message | undefined): boolean {
  return message?.role === "assistant" && message.status === "complete" && describeEnding(message) === undefined;
}

/**
 * Sends the next queued message of the open chat, unless another page of this browser does.
 *
 * @param key Sends this one, no matter how the last reply ended.
 */
export async function sendNextQueued(chat: OpenChat, outbox: Outbox, key?: string): Promise<void> {
  const canSend = () =>
    !chat.isClosed && !chat.replies.run.peek() && (key !== undefined || isWell(chat.lastMessage.peek()));
  if (!canSend()) return;
  await lockQueue(chat.id, async () => {
    await outbox.refresh();
    const entry = chat.queued.peek().find((each) => key === undefined || each.key === key);
    if (entry === undefined || !canSend()) return;
    const { turn, replyId } = entry.body as Queued;
    const accepted = Promise.withResolvers<void>();
    const sending = chat.replies.sendTurn({ ...turn, created_at: new Date().toISOString() }, replyId, () => {
      void outbox.discard(entry.key).finally(accepted.resolve);
    });
    const ended = sending.then(async (end) => {
      if (end === "discarded") await outbox.discard(entry.key);
    });
    // Held until the server has it, so that no other page takes the next one meanwhile.
    await Promise.race([accepted.promise, ended]);
  });
}

/** Sends the next queued message of a chat that no page shows, after its reply has ended. */
export async function sendUnshown(id: string, api: Api, outbox: Outbox): Promise<void> {
  await lockQueue(id, async () => {
    await outbox.refresh();
    const entry = outbox.queued.peek().find(({ conversationId }) => conversationId === id);
    if (entry === undefined) return;
    const { messages } = await api.getRecent(id, 1);
    if (!isWell(messages.at(-1))) return;
    const { turn, replyId } = entry.body as Queued;
    const request = buildStoredRequest(id, replyId, { user_message_id: turn.id }, turn);
    try {
      const response = await api.startChat(request, new AbortController().signal, newId());
      await response.body?.cancel(); // The server goes on with the reply.
    } catch (thrown) {
      if (!asApiError(thrown).isQueued) throw thrown;
    }
    await outbox.discard(entry.key);
  }, { isUnshown: true });
}

/** Holds the place of a chat that this page shows until the function is called that is returned. */
export function holdShown(id: string): () => void {
  const left = Promise.withResolvers<void>();
  // Without locks, there is no store that other pages share.
  globalThis.navigator.locks?.request(shownLock(id), { mode: "shared" }, () => left.promise).catch(() => {});
  return left.resolve;
}

async function lockQueue(
  id: string,
  work: () => Promise<void>,
  { isUnshown = false }: { isUnshown?: boolean } = {},
): Promise<void> {
  const run = () =>
    lockEntry(`queue ${id}`, async (isFree) => isFree ? await work() : undefined, { ifAvailable: true });
  if (!isUnshown || !globalThis.navigator.locks) return await run();
  await globalThis.navigator.locks.request(shownLock(id), { ifAvailable: true }, (lock) => lock && run());
}

function shownLock(id: string): string {
  return `parlor.shown ${id}`;
}
