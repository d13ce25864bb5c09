/** Searches all conversations in a Worker. This file runs on the serving thread. */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { AppError } from "../../errors.ts";
import { foldForSearch } from "../../json/search_fold.ts";
import { type DocumentCursor, type DocumentHit, parseQuery } from "./search_text.ts";
import type { ScanCursor, SearchHit } from "./search_scan.ts";
import type { FindRequest, FoundPage, SearchOrder, SearchWorkerResponse } from "./search_worker.ts";
import { openWorker } from "../../process/worker.ts";

/** A search. */
export interface SearchRequest {
  /** Words and quoted phrases. All of them must occur in the same message or title. */
  query: string;
  conversationId?: string;
  characterId?: string;
  /** Only messages with this role, without titles and documents. */
  role?: string;
  /** Only messages made at this time or later, and before the other; ISO 8601. Without documents. */
  since?: string;
  until?: string;
  /** A conversation to exclude. Documents are excluded then, too. */
  excludedId?: string;
  /** `next_cursor` of the previous page. */
  cursor?: string;
}

/** A page of hits: newest conversations first, and newest messages first within each. */
export interface SearchPage {
  /**
   * At most 20; documents come after all conversations. There may be fewer, with a cursor, if finding more would have
   * taken too long.
   */
  items: (SearchHit | DocumentHit)[];
  /** `null` once everything was searched. */
  next_cursor: string | null;
  /** IDs of conversations that are partly unreadable and so weren't searched completely for this page. */
  unreadable?: string[];
}

/** Options of the search. */
export interface SearchOptions {
  /** The database file. */
  path: string;
  /** For the purpose "conversations". */
  sealer: Pick<PurposeSealer, "copyKey">;
  /** For the purpose "documents". */
  documentSealer: Pick<PurposeSealer, "copyKey">;
  /** Starts the Worker. Defaults to search_worker.ts. */
  startWorker?: () => Worker;
  /** How long the Worker stays after the last search. */
  idleMs?: number;
}

/** An idle Worker uses memory and has a key. Starting a new one takes about 50 ms. */
const IDLE_MS = 5 * 60 * 1000;

interface Waiting {
  resolve(page: FoundPage): void;
  reject(reason: unknown): void;
}

/** Searches conversations. */
export class Search {
  readonly #options: SearchOptions;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #lastId = 0;
  #isClosed = false;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #stopping: Promise<void> = Promise.resolve();

  /** The Worker starts with the first search. */
  constructor(options: SearchOptions) {
    this.#options = options;
  }

  /**
   * Finds messages and titles that contain all terms of a query.
   *
   * @param client Ends the search, because the client disconnected.
   * @throws {AppError} `invalid_request` for an invalid query or cursor, `internal`
   * @throws The reason of `client`.
   */
  async search(request: SearchRequest, client: AbortSignal): Promise<SearchPage> {
    const { query, conversationId, characterId, role, since, until, excludedId, cursor } = request;
    const documentsFrom = cursor === undefined ? undefined : parseDocumentCursor(cursor);
    const scanRequest: FindRequest = {
      terms: parseQuery(query),
      conversationId,
      characterId,
      excludedId,
      ...(role !== undefined && { role }),
      ...(since !== undefined && { sinceMs: Date.parse(since) }),
      ...(until !== undefined && { untilMs: Date.parse(until) }),
      from: cursor === undefined || documentsFrom !== undefined ? undefined : parseCursor(cursor),
      // These name what only messages have.
      hasDocuments: [conversationId, characterId, excludedId, role, since, until].every((each) => each === undefined),
      documentsFrom,
    };
    client.throwIfAborted();
    if (this.#isClosed) throw new AppError("not_available", "The server is shutting down");
    const { items, next, nextDocument, unreadable } = await this.#ask(scanRequest, client);
    const next_cursor = next !== undefined
      ? formatCursor(next)
      : nextDocument !== undefined
      ? formatDocumentCursor(nextDocument)
      : null;
    return { items, next_cursor, ...(unreadable && { unreadable }) };
  }

  /** Ends all searches and the Worker. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#failAll(new AppError("not_available", "The server is shutting down"));
    await this.#stopWorker();
  }

  async #ask(request: FindRequest, client: AbortSignal): Promise<FoundPage> {
    const id = ++this.#lastId;
    const worker = this.#worker ??= this.#startWorker();
    clearTimeout(this.#idleTimer);
    const answer = Promise.withResolvers<FoundPage>();
    const onAbort = () => {
      post(worker, { kind: "cancel", id });
      answer.reject(client.reason);
    };
    this.#waiting.set(id, answer);
    client.addEventListener("abort", onAbort, { once: true });
    try {
      post(worker, { kind: "search", id, request });
      return await answer.promise;
    } finally {
      client.removeEventListener("abort", onAbort);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0 && !this.#isClosed) this.#scheduleRest();
    }
  }

  /**
   * Starts the Worker. It only gets the subkey of conversations, never the storage key, and imports it right away as a
   * non-extractable key for decryption. The bytes are transferred, so no copy stays on this thread. A CryptoKey would
   * be better, but arrives as an empty object in Deno. Sending plaintext instead would copy all texts to both heaps.
   */
  #startWorker(): Worker {
    const started = this.#options.startWorker?.() ??
      openWorker(new URL("./search_worker.ts", import.meta.url));
    started.onmessage = ({ data }: MessageEvent<SearchWorkerResponse>) => {
      if (data.kind === "page") this.#waiting.get(data.id)?.resolve(data.page);
      else if (data.kind === "failed") this.#replaceWorker(started, data.message);
    };
    started.onerror = (event) => {
      event.preventDefault(); // Otherwise it would end the process.
      this.#replaceWorker(started, event.message);
    };
    started.onmessageerror = () => this.#replaceWorker(started, "the search Worker sent an unreadable result");
    const key = this.#options.sealer.copyKey();
    const documentKey = this.#options.documentSealer.copyKey();
    post(started, { kind: "open", path: this.#options.path, key, documentKey }, [key.buffer, documentKey.buffer]);
    return started;
  }

  /** Fails the running searches. The next search starts another Worker. */
  #replaceWorker(lost: Worker, reason: string): void {
    lost.terminate();
    if (lost !== this.#worker) return;
    this.#worker = undefined;
    this.#failAll(new AppError("internal", `Can't search: ${reason}`));
  }

  #failAll(error: AppError): void {
    for (const { reject } of this.#waiting.values()) reject(error);
  }

  #scheduleRest(): void {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => void this.#stopWorker(), this.#options.idleMs ?? IDLE_MS);
  }

  /** Waits until the Worker has closed the database, because only the last connection can checkpoint the WAL. */
  #stopWorker(): Promise<void> {
    clearTimeout(this.#idleTimer);
    const last = this.#worker;
    if (last === undefined) return this.#stopping;
    this.#worker = undefined;
    const stopped = new Promise<void>((resolve) => {
      last.onmessage = ({ data }: MessageEvent<SearchWorkerResponse>) => data.kind === "closed" && resolve();
      last.onerror = (event) => {
        event.preventDefault();
        resolve();
      };
      post(last, { kind: "close" });
    }).then(() => last.terminate());
    this.#stopping = Promise.all([this.#stopping, stopped]).then(() => {});
    return this.#stopping;
  }
}

function post(worker: Worker, order: SearchOrder, moved: Transferable[] = []): void {
  worker.postMessage(order, moved);
}

function formatCursor({ updatedAtMs, segment, position, index, conversationId }: ScanCursor): string {
  return `${updatedAtMs}.${index}.${segment}.${String(position).replace(".", "p")}.${conversationId}`;
}

function formatDocumentCursor({ createdAtMs, id, page }: DocumentCursor): string {
  return `d.${createdAtMs}.${page}.${id}`;
}

function parseDocumentCursor(text: string): DocumentCursor | undefined {
  const match = /^d\.(\d{1,15})\.(\d{1,9})\.([A-Za-z0-9_-]{1,64})$/.exec(text);
  return match === null ? undefined : { createdAtMs: Number(match[1]), page: Number(match[2]), id: match[3]! };
}

/** @throws {AppError} `invalid_request` */
function parseCursor(text: string): ScanCursor {
  const match = /^(\d{1,15})\.(\d{1,9})\.(\d{1,16})\.(-?\d{1,16}(?:p\d{1,20})?)\.([A-Za-z0-9_-]{1,64})$/.exec(text);
  if (match === null) throw new AppError("invalid_request", "Invalid cursor: it isn't from a search");
  return {
    updatedAtMs: Number(match[1]),
    index: Number(match[2]),
    segment: Number(match[3]),
    position: Number(match[4]!.replace("p", ".")),
    conversationId: match[5]!,
  };
}

// Recall: finds passages of other chats for a question in everyday words. Uses the search for words in encrypted
// messages.

/** A question about other chats. */
export interface RecallRequest {
  query: string;
  /** The chat that asks. It's excluded. */
  conversationId?: string;
}

/** Passages, sorted by the number of words of the question that they contain, then newest first. */
export interface RecallPage {
  items: SearchHit[];
  /** IDs of conversations that weren't searched completely. */
  unreadable?: string[];
}

/** Maximum number of passages per response. */
const MAX_ITEMS = 20;
/** With this many passages that contain all words, others aren't searched for. */
const ENOUGH = 5;
/** Maximum number of words to search for one by one, the longest first. */
const MAX_WORDS = 4;

/** Words in questions that don't describe their topic. */
const STOP_WORDS = new Set(
  ("a about again all am an and any are as at be been but by can could did do does for from had has have he her him his how i if in " +
    "into is it its just know last me my no not of on or our remember said say she should so some talk talked tell that the their " +
    "them then there they this time to told us was we were what when where which who why will with would you your " +
    "aber als am an auf aus bei bin bist da das dass dem den der des die du ein eine einem einen einer er erinnerst es für " +
    "gesagt gesprochen habe haben hat hatte hatten ich ihr im in ist ja kann mal man mein mich mir mit nach nicht noch nun oder " +
    "sagte sagten sich sie sind so über um und uns unser von vor war waren warum was wann wie wir wird wo wer zu zum zur " +
    "こと これ それ あれ です ます した して する いる ある なに 何 いつ どこ だれ 誰 私 あなた 話 言っ 言い 話し について")
    .split(" ").map(foldForSearch),
);

/** Finds passages of other chats. @throws {AppError} Like `Search.search` */
export async function recall(
  search: Pick<Search, "search">,
  { query, conversationId }: RecallRequest,
  client: AbortSignal,
): Promise<RecallPage> {
  const words = extractWords(query);
  const find = (terms: readonly string[]) =>
    search.search({ query: terms.map((term) => `"${term}"`).join(" "), excludedId: conversationId }, client);
  const pages: SearchPage[] = [];
  // A question that only has such words is searched for as it is.
  pages.push(
    words.length === 0 ? await search.search({ query, excludedId: conversationId }, client) : await find(words),
  );
  if (words.length > 1 && listPassages(pages).length < ENOUGH) {
    for (const word of words.slice(0, MAX_WORDS)) pages.push(await find([word]));
  }
  const found = new Map<string, { hit: SearchHit; score: number }>();
  pages.forEach((page, n) => {
    for (const hit of listPassages([page])) {
      const key = `${hit.conversation_id} ${hit.message_id}`;
      const score = (found.get(key)?.score ?? 0) + (n === 0 ? words.length + 1 : 1);
      found.set(key, { hit: found.get(key)?.hit ?? hit, score });
    }
  });
  const items = [...found.values()]
    .sort((a, b) => b.score - a.score || b.hit.created_at.localeCompare(a.hit.created_at))
    .slice(0, MAX_ITEMS).map(({ hit }) => hit);
  const unreadable = [...new Set(pages.flatMap((page) => page.unreadable ?? []))];
  return { items, ...(unreadable.length > 0 && { unreadable }) };
}

/** Returns the words of a question that describe its topic, the longest first. Quoted phrases aren't split. */
function extractWords(query: string): string[] {
  const words = new Set<string>();
  const rest = query.replace(/["“”„]([^"“”„]+)["“”„]/g, (_, phrase: string) => {
    if (phrase.trim() !== "") words.add(foldForSearch(phrase.trim()));
    return " ";
  });
  // Splits Japanese and Chinese text, too.
  for (const { segment, isWordLike } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(rest)) {
    const word = foldForSearch(segment);
    const isParticle = /^\p{Script=Hiragana}{1,2}$/u.test(word);
    if (isWordLike && !isParticle && !STOP_WORDS.has(word) && (word.length > 1 || /\p{Script=Han}/u.test(word))) {
      words.add(word);
    }
  }
  return [...words].sort((a, b) => b.length - a.length);
}

/** Returns the messages among the hits: titles and documents can't be quoted. */
function listPassages(pages: readonly SearchPage[]): SearchHit[] {
  return pages.flatMap(({ items }) =>
    items.filter((item): item is SearchHit => "message_id" in item && item.message_id !== null)
  );
}
