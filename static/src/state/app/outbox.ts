/**
 * The outbox of the page: changes are stored in this browser first and removed when the server has confirmed them. What
 * the server didn't get is sent later, from any page of this browser or by its service worker.
 */
import { signal } from "@preact/signals";
import { type ApiClient, ApiError, asApiError, type RequestOptions } from "../../api/client.ts";
import type { AuthStatus, ChatRequest, Message } from "../../api/types.ts";
import { texts } from "../../texts/texts.ts";
import { getContentText } from "../chat/message_text.ts";
import { newId } from "./ids.ts";
import {
  announceChange,
  clearEntries,
  getPerson,
  listEntries,
  lockEntry,
  needsAny,
  OUTBOX_CHANNEL,
  OUTBOX_SYNC,
  type OutboxEntry,
  type OutboxSubject,
  putEntry,
  removeEntry,
  sendEntries,
  type StoredEntry,
} from "./outbox_store.ts";
import { Retries } from "./retries.ts";
import { findServiceWorker, openChannel } from "./browser_parts.ts";

/** A service worker registration with background synchronization, which some browsers have. */
interface SyncingRegistration extends ServiceWorkerRegistration {
  sync?: { register(tag: string): Promise<void> };
}

/**
 * Requests that are kept. All can be repeated: they have ids of their own, set what they say, or have an
 * `Idempotency-Key`. The first group is the id of the conversation.
 */
const KEPT: [methods: string, path: RegExp, kind: OutboxSubject["kind"]][] = [
  ["POST", /^\/api\/chat$/, "send"],
  ["PATCH", /^\/api\/conversations\/([^/?]+)\/draft$/, "draft"],
  ["PATCH", /^\/api\/conversations\/([^/?]+)\/messages\/[^/?]+$/, "edit_message"],
  ["DELETE", /^\/api\/conversations\/([^/?]+)\/messages\/[^/?]+(?:\?following=true)?$/, "delete"],
  ["DELETE", /^\/api\/conversations\/([^/?]+)$/, "delete"],
  ["PATCH PUT", /^\/api\/conversations\/([^/?]+)$/, "change"],
  ["POST", /^\/api\/chat\/replies\/[^/]+\/tool_calls\/[^/?]+(?:\?conversation_id=([^&]+))?$/, "decision"],
  ["POST", /^\/api\/chat\/replies\/[^/?]+\/stop(?:\?conversation_id=([^&]+))?$/, "stop"],
  ["PATCH", /^\/api\/settings$/, "change"],
  ["PUT", /^\/api\/(?:personas|memories|lorebooks|presets|characters)\/[^/?]+$/, "change"],
  ["DELETE", /^\/api\/(?:personas|memories|lorebooks|presets|characters)\/[^/?]+$/, "delete"],
  ["PUT", /^\/api\/attachments\/[^/?]+$/, "file"],
  ["POST", /^\/api\/conversations\/([^/?]+)\/fork$/, "change"],
  ["POST", /^\/api\/conversations$/, "change"],
  ["POST", /^\/api\/documents\?id=[^&]+$/, "file"],
  ["PATCH", /^\/api\/documents\/[^/?]+$/, "change"],
  ["POST", /^\/api\/characters\/import$/, "file"],
];

/** Whether the browser seems to store anything. */
function canStore(): boolean {
  try {
    return Boolean(globalThis.indexedDB) && globalThis.crypto?.subtle !== undefined;
  } catch {
    return false;
  }
}

/** The outbox as the page sees it. */
export class Outbox {
  /** What waits, in order. */
  readonly entries = signal<readonly StoredEntry[]>([]);
  /** Messages that wait for the end of a reply, in order. */
  readonly queued = signal<readonly StoredEntry[]>([]);
  /** False if this browser stores nothing, so that what wasn't sent lives only as long as the page. */
  readonly isAvailable = signal(canStore());
  /** Asks whether the page sends an entry itself, which it does then at once. */
  isLeft: (entry: StoredEntry) => boolean = () => false;
  /** Resolves when the entries of earlier visits are known. */
  readonly loaded: Promise<void>;
  readonly #fetch: typeof fetch;
  readonly #headers: Record<string, string>;
  readonly #getStatus: () => AuthStatus | undefined;
  readonly #retries = new Retries(() => void this.send());
  readonly #listeners = new Set<(entry: StoredEntry) => void>();
  readonly #forced = new Set<string>();
  /** Queued messages that this browser doesn't store. */
  #unstored: StoredEntry[] = [];

  /**
   * @param headers Headers of all requests.
   * @param getStatus Returns who uses this page, if known.
   */
  constructor(fetchFunction: typeof fetch, headers: Record<string, string>, getStatus: () => AuthStatus | undefined) {
    this.#fetch = fetchFunction;
    this.#headers = headers;
    this.#getStatus = getStatus;
    this.loaded = this.refresh();
  }

  /** Sends what waits, and follows changes by other pages. Returns a function that stops. */
  open(): () => void {
    const channel = openChannel(OUTBOX_CHANNEL);
    if (channel) channel.onmessage = () => void this.refresh();
    const end = this.#retries.open();
    void this.send();
    return () => {
      end();
      channel?.close();
    };
  }

  /** Calls the listener for each entry that this page has sent later. Returns a function that stops. */
  onSent(listener: (entry: StoredEntry) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns a client that keeps changes until the server has confirmed them. */
  wrap(client: ApiClient): ApiClient {
    return {
      send: async (method, path, options = {}) => {
        const entry = this.isAvailable.peek() ? this.#toEntry(method, path, options) : undefined;
        return entry ? await this.#sendKept(client, entry, options) : await client.send(method, path, options);
      },
    };
  }

  /** Sends what waits. @param key Also this entry, although the server refused it before. */
  async send(key?: string): Promise<void> {
    if (!this.isAvailable.peek()) return;
    if (key !== undefined) this.#forced.add(key);
    await this.refresh();
    const isWaiting = (entry: StoredEntry) => entry.problem === undefined || this.#forced.has(entry.key);
    if (!this.entries.peek().some(isWaiting)) return;
    try {
      const isDone = await sendEntries({
        fetch: this.#fetch,
        headers: this.#headers,
        isForced: ({ key }) => this.#forced.has(key),
        isLeft: (entry) => this.isLeft(entry),
        onSent: (entry) => this.#listeners.forEach((listener) => listener(entry)),
      });
      if (!isDone) this.#retries.add({ isTransient: true, retryAfterMs: undefined });
    } catch {
      this.isAvailable.value = false;
    }
    this.#forced.clear();
    await this.refresh();
  }

  /** Keeps a message for the end of a reply. @param isStored False if it mustn't outlive the page. */
  async queue(entry: Omit<OutboxEntry, "person">, isStored: boolean): Promise<void> {
    const owned = { ...entry, person: getPerson(this.#getStatus()) } satisfies OutboxEntry;
    const isKept = isStored && this.isAvailable.peek() && await putEntry(owned).then(() => true, () => false);
    if (!isKept) {
      this.#unstored.push({ ...owned, id: entry.key });
      this.queued.value = [...this.queued.peek(), ...this.#unstored.slice(-1)];
    }
    await this.refresh();
    if (isKept) announceChange();
  }

  /** Replaces the version of another device by the entry. */
  async overwrite({ id: _, problem: __, ...entry }: StoredEntry): Promise<void> {
    const { "if-match": ___, ...headers } = entry.headers;
    await putEntry({ ...entry, headers });
    await this.send();
  }

  /** Deletes an entry: it's not sent. */
  async discard(key: string): Promise<void> {
    this.#unstored = this.#unstored.filter((entry) => entry.key !== key);
    const entries = this.entries.peek();
    this.entries.value = entries.filter((entry) => entry.key !== key);
    this.queued.value = this.queued.peek().filter((entry) => entry.key !== key);
    if (!this.isAvailable.peek()) return;
    await removeEntry(key).catch(() => {});
    announceChange();
    // What waited for the file no longer does.
    if (entries.some((entry) => entry.key === key && entry.kind === "file")) await this.send();
  }

  /** Deletes everything. */
  async clear(): Promise<void> {
    if (this.isAvailable.peek()) await clearEntries();
    this.entries.value = this.queued.value = this.#unstored = [];
  }

  /** Reads what waits. */
  async refresh(): Promise<void> {
    if (!this.isAvailable.peek()) return;
    try {
      const all = await listEntries();
      const entries = all.filter(({ kind }) => kind !== "queued");
      if (entries.length > 0 || this.entries.peek().length > 0) this.entries.value = entries;
      const queued = [...all.filter(({ kind }) => kind === "queued"), ...this.#unstored];
      if (queued.length > 0 || this.queued.peek().length > 0) this.queued.value = queued;
    } catch {
      // Some private windows have no IndexedDB.
      this.isAvailable.value = false;
    }
  }

  async #sendKept(client: ApiClient, entry: OutboxEntry, options: RequestOptions): Promise<Response> {
    // A page that closes has no time to wait.
    if (options.keepalive) return await this.#sendNow(client, entry, options);
    return await lockEntry(entry.key, async () => {
      if (!this.#isBehind(entry)) return await this.#sendNow(client, entry, options);
      const id = await putEntry(entry).catch(() => undefined);
      await this.send();
      if (id === undefined || !needsAny(entry, this.entries.peek())) return await this.#sendNow(client, entry, options);
      // Without its files, the server would have a message that shows nothing.
      announceChange();
      this.#retries.add({ isTransient: true, retryAfterMs: undefined });
      requestSync();
      throw new ApiError(0, { code: "queued", message: texts.errors.queued });
    });
  }

  async #sendNow(client: ApiClient, entry: OutboxEntry, options: RequestOptions): Promise<Response> {
    const kept = putEntry(entry).catch(() => undefined);
    const id = options.keepalive ? undefined : await kept;
    try {
      const response = await client.send(entry.method, entry.path, { ...options, headers: entry.headers });
      void kept.then((id) => this.#remove(entry.key, id));
      return response;
    } catch (thrown) {
      const error = asApiError(thrown);
      if (!options.signal?.aborted && !error.isTransient) {
        await this.#remove(entry.key, await kept);
        throw thrown;
      }
      await this.refresh();
      announceChange();
      this.#retries.add({ isTransient: true, retryAfterMs: error.retryAfterMs });
      requestSync();
      if (options.signal?.aborted || id === undefined) throw thrown;
      const { retryAfterMs } = error;
      throw new ApiError(0, { code: "queued", message: texts.errors.queued }, { cause: thrown, retryAfterMs });
    }
  }

  /** True if an earlier change of the same conversation waits, or a file that this one names. */
  #isBehind(entry: OutboxEntry): boolean {
    const { conversationId, key } = entry;
    const entries = this.entries.peek();
    return needsAny(entry, entries) ||
      entries.some((other) =>
        other.problem === undefined && other.key !== key && other.conversationId === conversationId
      );
  }

  async #remove(key: string, id: string | undefined): Promise<void> {
    if (id === undefined) return;
    await removeEntry(key, id).catch(() => {});
    if (!this.entries.peek().some((entry) => entry.key === key)) return;
    await this.refresh();
    announceChange();
  }

  #toEntry(method: string, path: string, options: RequestOptions): OutboxEntry | undefined {
    const rule = KEPT.find(([methods, pattern]) => methods.split(" ").includes(method) && pattern.test(path));
    if (!rule) return undefined;
    const [, pattern, kind] = rule;
    const id = pattern.exec(path)![1];
    const headers = { ...options.headers };
    // A later one replaces it.
    const isNamed = method === "PUT" || ["draft", "decision", "stop"].includes(kind) || path.includes("?id=");
    const body = options.body as Record<string, unknown> | undefined;
    const entry: OutboxEntry = {
      kind,
      key: isNamed ? `${method} ${path}` : newId(),
      method,
      path,
      headers,
      body,
      blob: options.blob,
      form: options.form && [...options.form],
      person: getPerson(this.#getStatus()),
      time: Date.now(),
      ...(id !== undefined && { conversationId: decodeURIComponent(id) }),
      ...options.outbox,
    };
    // These make something under a new id.
    if (method === "POST" && !["send", "decision", "stop"].includes(kind)) headers["idempotency-key"] ??= newId();
    if (kind === "send") return toChatEntry(entry, options.body as ChatRequest);
    if (kind === "draft") entry.text = String(body?.draft ?? "");
    if (kind === "edit_message" && body?.content !== undefined) {
      entry.text = getContentText(body.content as Message["content"]);
    }
    if (kind === "edit_message" && entry.text === undefined) entry.kind = "change";
    // Without the condition, a repetition would empty a conversation.
    if (method === "PUT" && id !== undefined && !("if-none-match" in headers)) return undefined;
    return entry;
  }
}

/** Key of the entry that asks for a reply. */
export function replyKey(messageId: string): string {
  return `POST /api/chat ${messageId}`;
}

/** Key of the entry that stops a reply. */
export function stopKey(messageId: string, conversationId: string): string {
  const [reply, conversation] = [messageId, conversationId].map(encodeURIComponent);
  return `POST /api/chat/replies/${reply}/stop?conversation_id=${conversation}`;
}

/** Key of the entry with the draft of a conversation. */
export function draftKey(conversationId: string): string {
  return `PATCH /api/conversations/${encodeURIComponent(conversationId)}/draft`;
}

/** Key of the entry that uploads a document. */
export function documentKey(id: string): string {
  return `POST /api/documents?id=${encodeURIComponent(id)}`;
}

/** Undefined for a request that stores nothing. */
function toChatEntry(entry: OutboxEntry, request: ChatRequest): OutboxEntry | undefined {
  const { conversation_id, assistant_message_id, action, messages = [] } = request;
  if (conversation_id == null || assistant_message_id == null || action === "impersonate") return undefined;
  const isReply = action === "regenerate" || action === "continue" || messages.at(-1)?.role !== "user";
  return {
    ...entry,
    kind: isReply ? "reply" : "send",
    key: replyKey(assistant_message_id),
    conversationId: conversation_id,
    text: isReply ? undefined : getContentText(messages.at(-1)!.content as Message["content"]),
  };
}

/** Lets the browser wake the service worker when the network returns, even without a page. */
function requestSync(): void {
  const serviceWorker = findServiceWorker(globalThis.navigator);
  if (!serviceWorker?.controller) return;
  serviceWorker.ready.then((registration: SyncingRegistration) => registration.sync?.register(OUTBOX_SYNC))
    .catch(() => {}); // Without the permission, the page sends it on the next visit.
}
