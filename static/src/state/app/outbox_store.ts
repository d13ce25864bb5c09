/**
 * Changes that were made in this browser and that the server hasn't confirmed. The page and the service worker send them.
 *
 * They are stored in IndexedDB, sealed by a key that scripts can use but not read, so that what waits can be shown and
 * sent after the page, the browser or the server was away. Requests with secrets are never stored.
 */
import { isTransientFailure, parseErrorBody } from "../../api/failures.ts";
import type { ErrorBody } from "../../api/types.ts";
import { answerInTime, openChannel, withLock } from "./browser_parts.ts";

const ENTRIES = "outbox";
const KEYS = "keys";
const KEY_NAME = "outbox";

/** Held by the one that sends. */
const LOCK = "parlor.outbox";

/** Channel that notifies all pages of changes. */
export const OUTBOX_CHANNEL = "parlor.outbox";

/** Tag of the background synchronization, in browsers that have it. */
export const OUTBOX_SYNC = "parlor.outbox";

/** The limit of all files that wait, in bytes. */
const MAX_FILE_BYTES = 50_000_000;

const FULL = `More than ${MAX_FILE_BYTES / 1_000_000} MB of files wait to be sent`;

/** What the page shows of a change that waits. */
export interface OutboxSubject {
  /** A `queued` message isn't a request yet: it waits for the end of a reply. */
  kind: "send" | "queued" | "edit_message" | "reply" | "draft" | "decision" | "stop" | "delete" | "file" | "change";
  conversationId?: string;
  /** The text that was written, if any. */
  text?: string;
  /** Of a changed message: its content before. */
  base?: unknown;
}

/** One request that waits. */
export interface OutboxEntry extends OutboxSubject {
  /** A later entry with the same key replaces this one. */
  key: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent unchanged. */
  blob?: Blob;
  /** Sent as a form. */
  form?: [name: string, value: string | File][];
  /** A request after this one; its failure changes nothing. */
  next?: Pick<OutboxEntry, "method" | "path" | "headers" | "body">;
  /** Whose change it is; no other person sends it. */
  person: string;
  /** When it was made, in milliseconds since 1970. */
  time: number;
  /** Why the server refused it: it then waits for the user. */
  problem?: ErrorBody & { status: number; theirs?: string };
}

/** An entry as it's stored. `id` differs each time that a key is written. */
export interface StoredEntry extends OutboxEntry {
  id: string;
}

/** How it is stored: `sealed` has all but the files, which follow in order. */
interface Row {
  key: string;
  id: string;
  time: number;
  fileBytes: number;
  sealed: Sealed;
  files: Sealed[];
}

/** Sealed data. */
export interface Sealed {
  iv: Uint8Array<ArrayBuffer>;
  data: ArrayBuffer;
}

/** A database of this browser. It's opened at the first use, and again after a failure. */
export class BrowserDatabase {
  readonly #name: string;
  readonly #create: (database: IDBDatabase) => void;
  #opened: Promise<IDBDatabase> | undefined;

  /** @param create Creates the object stores of a new database. */
  constructor(name: string, create: (database: IDBDatabase) => void) {
    this.#name = name;
    this.#create = create;
  }

  /**
   * Runs a transaction and resolves with the value of `work` when it's on the disk.
   *
   * @throws {DOMException} if the browser stores nothing, as in some private windows
   */
  async transact<T>(
    stores: string[],
    mode: IDBTransactionMode,
    work: (transaction: IDBTransaction) => IDBRequest<T> | undefined,
  ): Promise<T | undefined> {
    const database = await this.#open();
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(stores, mode);
      const request = work(transaction);
      transaction.oncomplete = () => resolve(request?.result);
      transaction.onabort = transaction.onerror = () => reject(transaction.error ?? request?.error);
    });
  }

  #open(): Promise<IDBDatabase> {
    this.#opened ??= answerInTime(
      new Promise<IDBDatabase>((resolve, reject) => {
        const request = indexedDB.open(this.#name, 1);
        request.onupgradeneeded = () => this.#create(request.result);
        request.onsuccess = () => {
          const database = request.result;
          database.onversionchange = database.onclose = () => {
            database.close();
            this.#opened = undefined;
          };
          resolve(database);
        };
        request.onerror = () => reject(request.error);
      }),
    ).catch((error) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }
}

const database = new BrowserDatabase("parlor", (database) => {
  database.createObjectStore(ENTRIES, { keyPath: "key" });
  database.createObjectStore(KEYS);
});

/** Returns the key of this browser, and makes it the first time. Its bytes can't be read by any script. */
export async function getSealingKey(): Promise<CryptoKey> {
  const find = () => database.transact<CryptoKey>([KEYS], "readonly", (tx) => tx.objectStore(KEYS).get(KEY_NAME));
  const known = await find();
  if (known) return known;
  const made = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  try {
    // Of two pages that make one at the same time, the first wins.
    await database.transact([KEYS], "readwrite", (tx) => tx.objectStore(KEYS).add(made, KEY_NAME));
    return made;
  } catch (error) {
    const other = await find();
    if (other) return other;
    throw error;
  }
}

/** Seals data. @param row What it belongs to; it can't be opened as another one. */
export async function seal(key: CryptoKey, row: string, data: BufferSource): Promise<Sealed> {
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const additionalData = new TextEncoder().encode(row);
  return { iv, data: await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData }, key, data) };
}

/** Opens what `seal` made. @throws {DOMException} for another key or row */
export function unseal(key: CryptoKey, row: string, { iv, data }: Sealed): Promise<ArrayBuffer> {
  const additionalData = new TextEncoder().encode(row);
  return crypto.subtle.decrypt({ name: "AES-GCM", iv, additionalData }, key, data);
}

/**
 * Stores an entry. One with the same key keeps its place.
 *
 * @returns The id of what was stored.
 * @throws {Error} if the browser stores nothing, or if more than 50 MB of files would wait
 */
export async function putEntry(entry: OutboxEntry): Promise<string> {
  const id = crypto.randomUUID();
  const key = await getSealingKey();
  const files = [entry.blob, ...(entry.form ?? []).map(([, value]) => value)].filter((part) => part instanceof Blob);
  const fileBytes = files.reduce((sum, { size }) => sum + size, 0);
  if (fileBytes > MAX_FILE_BYTES) throw new Error(FULL);
  const { blob, form, ...plain } = entry;
  const header = {
    ...plain,
    blobType: blob?.type,
    form: form?.map(([name, value]) => [name, value instanceof File ? { name: value.name, type: value.type } : value]),
  };
  const sealed = await seal(key, id, new TextEncoder().encode(JSON.stringify(header)));
  const sealedFiles: Sealed[] = [];
  for (const file of files) sealedFiles.push(await seal(key, id, await file.arrayBuffer()));
  const row: Row = { key: entry.key, id, time: entry.time, fileBytes, sealed, files: sealedFiles };
  let isFull = false;
  await database.transact([ENTRIES], "readwrite", (tx) => {
    const store = tx.objectStore(ENTRIES);
    const all: IDBRequest<Row[]> = store.getAll();
    all.onsuccess = () => {
      const others = all.result.filter((other) => other.key !== row.key);
      isFull = fileBytes > 0 && others.reduce((sum, other) => sum + other.fileBytes, fileBytes) > MAX_FILE_BYTES;
      if (isFull) return;
      // Later than all others by this browser's clock, which may be set back.
      const before = all.result.find((other) => other.key === row.key);
      row.time = before?.time ?? Math.max(row.time, ...others.map(({ time }) => time + 1));
      store.put(row);
    };
    return undefined;
  });
  if (isFull) throw new Error(FULL);
  return id;
}

/** Returns all entries in order. Those that can't be opened are deleted: their key is gone. */
export async function listEntries(): Promise<StoredEntry[]> {
  const rows = await database.transact<Row[]>([ENTRIES], "readonly", (tx) => tx.objectStore(ENTRIES).getAll());
  if (!rows || rows.length === 0) return [];
  const key = await getSealingKey();
  const entries: StoredEntry[] = [];
  for (const row of rows.sort((a, b) => a.time - b.time)) {
    try {
      entries.push(await openRow(key, row));
    } catch {
      await removeEntry(row.key, row.id);
    }
  }
  return entries;
}

async function openRow(key: CryptoKey, row: Row): Promise<StoredEntry> {
  const { blobType, form, ...plain } = JSON.parse(
    new TextDecoder().decode(await unseal(key, row.id, row.sealed)),
  ) as Omit<OutboxEntry, "form"> & { blobType?: string; form?: [string, string | { name: string; type: string }][] };
  const files = await Promise.all(row.files.map((file) => unseal(key, row.id, file)));
  return {
    ...plain,
    id: row.id,
    blob: blobType === undefined ? undefined : new Blob([files.shift()!], { type: blobType }),
    form: form?.map(([name, value]) => [
      name,
      typeof value === "string" ? value : new File([files.shift()!], value.name, { type: value.type }),
    ]),
  };
}

/** Deletes an entry, unless another one has taken its place. @param id Undefined for any. */
export async function removeEntry(key: string, id?: string): Promise<void> {
  await database.transact([ENTRIES], "readwrite", (tx) => {
    const store = tx.objectStore(ENTRIES);
    const found: IDBRequest<Row | undefined> = store.get(key);
    found.onsuccess = () => {
      if (found.result && (id === undefined || found.result.id === id)) store.delete(key);
    };
    return undefined;
  });
}

/** Deletes all entries and the key. */
export async function clearEntries(): Promise<void> {
  await database.transact([ENTRIES, KEYS], "readwrite", (tx) => {
    tx.objectStore(KEYS).clear();
    return tx.objectStore(ENTRIES).clear();
  });
}

/** What became of an entry: the server has it, it was refused, or it has to wait for the server or another reply. */
type Attempt = "sent" | "later" | "busy" | NonNullable<OutboxEntry["problem"]>;

/** The callbacks of `sendEntries`. */
export interface SendOptions {
  fetch: typeof fetch;
  /** Headers of all requests. */
  headers?: Record<string, string>;
  /** Sends also what was refused before. */
  isForced?: (entry: StoredEntry) => boolean;
  /** Returns true if the page sends the entry itself, because it follows the reply. */
  isLeft?: (entry: StoredEntry) => boolean;
  onSent?: (entry: StoredEntry) => void;
}

/**
 * Sends all entries in order, if nothing else in this browser does.
 *
 * @returns False if some have to wait longer.
 */
export async function sendEntries(options: SendOptions): Promise<boolean> {
  return await withLock(LOCK, async (isFree) => !isFree || await sendAll(options), { ifAvailable: true });
}

async function sendAll({ fetch, headers = {}, isForced, isLeft, onSent }: SendOptions): Promise<boolean> {
  const entries = (await listEntries()).filter(({ kind }) => kind !== "queued");
  if (entries.length === 0) return true;
  const request = (method: string, path: string, init: RequestInit = {}) =>
    fetch(path, { ...init, method, cache: "no-store", headers: { ...headers, ...init.headers } });
  const person = await readPerson(request);
  if (person === undefined) return false;
  let isDone = true;
  let hasChanged = false;
  const unsent = new Set(entries);
  for (const entry of entries) {
    if (entry.person !== person) continue;
    if (needsAny(entry, unsent)) continue;
    if ((entry.problem && !isForced?.(entry)) || isLeft?.(entry)) continue;
    // One that the page is sending right now is left to it.
    const attempt = await lockEntry(entry.key, async (isFree) => {
      if (!isFree) return "busy";
      return await hasEntry(entry) ? await sendEntry(entry, request) : undefined;
    }, { ifAvailable: true });
    if (attempt === undefined || attempt === "sent") unsent.delete(entry);
    if (attempt === undefined) continue;
    if (attempt === "later") {
      isDone = false;
      break;
    }
    if (attempt === "busy") isDone = false;
    else {
      hasChanged = true;
      if (attempt === "sent") {
        await removeEntry(entry.key, entry.id);
        onSent?.(entry);
      } else await replaceEntry(entry, { ...entry, problem: attempt });
    }
  }
  if (hasChanged) announceChange();
  return isDone;
}

/** True if a request names a file that waits itself: its turn comes after the file. */
export function needsAny({ key, body }: OutboxEntry, entries: Iterable<OutboxEntry>): boolean {
  let json: string | undefined;
  for (const { kind, path, key: other } of entries) {
    const id = kind === "file" && other !== key
      ? /^\/api\/(?:attachments\/|documents\?id=)(.+)$/.exec(path)?.[1]
      : undefined;
    if (id !== undefined && (json ??= JSON.stringify(body) ?? "").includes(id)) return true;
  }
  return false;
}

/**
 * Runs `work` while nothing else in this browser sends the entry with this key.
 *
 * @param options.ifAvailable Doesn't wait; `work` then gets false if something else sends it.
 */
export function lockEntry<T>(
  key: string,
  work: (isFree: boolean) => Promise<T>,
  options: Pick<LockOptions, "ifAvailable"> = {},
): Promise<T> {
  return withLock(`${LOCK} ${key}`, work, options);
}

/** False if the entry was sent or replaced meanwhile. */
async function hasEntry({ key, id }: StoredEntry): Promise<boolean> {
  const row = await database.transact<Row>([ENTRIES], "readonly", (tx) => tx.objectStore(ENTRIES).get(key));
  return row?.id === id;
}

/** Notifies the pages of this browser that the entries have changed. */
export function announceChange(): void {
  const channel = openChannel(OUTBOX_CHANNEL);
  channel?.postMessage("changed");
  channel?.close();
}

/** Writes an entry again, unless another one has taken its place. */
async function replaceEntry(before: StoredEntry, { id: _, ...entry }: StoredEntry): Promise<void> {
  if (await hasEntry(before)) await putEntry(entry);
}

type SendRequest = (method: string, path: string, init?: RequestInit) => Promise<Response>;

/** Returns who is signed in; undefined if the server can't be reached or nobody is. */
async function readPerson(request: SendRequest): Promise<string | undefined> {
  try {
    const response = await request("GET", "/api/auth/status");
    if (!response.ok) return undefined;
    return getPerson(await response.json());
  } catch {
    return undefined;
  }
}

/** Returns the id of the person in an authentication status. */
export function getPerson(status: object | undefined): string {
  const person = status !== undefined && "person" in status ? status.person as { id?: unknown } | null : undefined;
  return typeof person?.id === "string" ? person.id : "owner";
}

async function sendEntry(entry: StoredEntry, request: SendRequest): Promise<Attempt> {
  const attempt = await sendOnce(entry, request);
  if (attempt !== "sent" || entry.next === undefined) return attempt;
  await request(entry.next.method, entry.next.path, toInit(entry.next)).then(drop, () => {});
  return attempt;
}

function toInit({ headers, body, blob, form }: Pick<OutboxEntry, "headers" | "body" | "blob" | "form">): RequestInit {
  if (form !== undefined) {
    const data = new FormData();
    for (const [name, value] of form) data.append(name, value);
    return { headers, body: data };
  }
  if (blob !== undefined) return { headers: { ...headers, "content-type": blob.type }, body: blob };
  if (body === undefined) return { headers };
  return { headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
}

async function drop(response: Response): Promise<void> {
  await response.body?.cancel();
}

async function sendOnce(entry: StoredEntry, request: SendRequest): Promise<Attempt> {
  try {
    const response = await request(entry.method, entry.path, toInit(entry));
    if (response.ok) {
      await drop(response);
      return "sent";
    }
    const { status } = response;
    const error = parseErrorBody(await response.json().catch(() => undefined)) ??
      { code: "unexpected_answer", message: String(status) };
    if (status === 401 || status === 403 || isTransientFailure(status, error.code)) return "later";
    return await judgeRefusal(entry, { ...error, status }, request);
  } catch {
    return "later";
  }
}

/** Finds out whether a refused request was done by an earlier attempt, may be done later, or clashes. */
async function judgeRefusal(
  entry: StoredEntry,
  problem: NonNullable<OutboxEntry["problem"]>,
  request: SendRequest,
): Promise<Attempt> {
  const { status } = problem;
  // It exists already, so an earlier attempt made it.
  if (status === 412 && "if-none-match" in entry.headers) return "sent";
  // What an earlier attempt made was deleted meanwhile. The page chooses the names of files, so nothing else has them.
  if (problem.code === "in_trash" && (entry.kind === "file" || "if-none-match" in entry.headers)) return "sent";
  // The same for a document under the id that this page chose.
  if (status === 409 && entry.path.startsWith("/api/documents?id=")) return "sent";
  // The reply that was to be stopped is gone.
  if (entry.kind === "stop" && status === 404) return "sent";
  // What was to be deleted is gone.
  if (entry.method === "DELETE" && status === 404) return "sent";
  if (entry.path === "/api/chat") {
    if (status < 500 && status !== 409) return problem;
    const { conversation_id, user_message_id, assistant_message_id } = entry.body as Record<string, string>;
    if (status === 409) {
      const running = await readJson<{ conversation_id: string }[]>(request, "/api/chat/replies");
      return running?.some((reply) => reply.conversation_id === conversation_id) ? "busy" : problem;
    }
    // The message is stored before the model is asked.
    const stored = user_message_id ?? assistant_message_id ?? "";
    const message = await readJson(request, messagePath(conversation_id ?? "", stored));
    return message === undefined ? "later" : "sent";
  }
  if (status !== 412) return problem;
  if (entry.kind === "draft") {
    const head = await readJson<{ draft?: string }>(request, entry.path.replace(/\/draft$/, "?view=head"));
    const { draft } = entry.body as { draft: string };
    return (head?.draft ?? "") === draft ? "sent" : { ...problem, theirs: head?.draft ?? "" };
  }
  if (entry.kind !== "edit_message") return problem;
  const theirs = await readJson<{ content?: unknown }>(request, entry.path);
  if (theirs === undefined) return problem;
  const { content } = entry.body as { content?: unknown };
  if (isSame(theirs.content, content)) return "sent";
  if (!isSame(theirs.content, entry.base)) return { ...problem, theirs: getText(theirs.content) };
  // Something else in the chat has changed, so nothing is lost.
  const { "if-match": _, ...headers } = entry.headers;
  return await sendOnce({ ...entry, headers }, request);
}

function messagePath(conversationId: string, messageId: string): string {
  return `/api/conversations/${encodeURIComponent(conversationId)}/messages/${encodeURIComponent(messageId)}`;
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function getText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: { text?: unknown }) => typeof part.text === "string" ? part.text : "").join("");
}

async function readJson<T>(request: SendRequest, path: string): Promise<T | undefined> {
  const response = await request("GET", path);
  if (!response.ok) {
    await drop(response);
    if (isTransientFailure(response.status, undefined)) throw new Error(`The server responded with ${response.status}`);
    return undefined;
  }
  return await response.json();
}
