/**
 * Creates the services for documents: their store, and the indexes of their passages.
 *
 * Documents are divided into passages, parts of a page that are ranked and sent separately. BM25 finds those that match
 * a question. Indexes are built in memory from the encrypted text and dropped when idle; they're never stored.
 */
import type { CloseHook } from "../async/lazy.ts";
import { Documents, type DocumentsDeps } from "./documents.ts";
import MiniSearch from "minisearch";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import type { DocumentPage } from "./document.ts";

/** The services of documents. */
export interface DocumentServices {
  documents: Documents;
  passages: PassageIndexes;
}

/** Creates the services. */
export function openDocuments(deps: DocumentsDeps, onClose: (hook: CloseHook) => void): DocumentServices {
  const documents = new Documents({ ...deps, onTextChange: (id) => passages.forget(id) });
  const passages = new PassageIndexes((id) => documents.readPages(id));
  onClose(() => passages.close());
  return { documents, passages };
}

/** Reads the pages of a document. */
type ReadPages = (id: string) => AsyncIterable<DocumentPage>;

/** A question, to find passages for. */
export interface PassageQuery {
  /** The question. */
  text: string;
  /** Earlier messages, which count less. */
  context: string;
}

/** A passage, and how well it matches. */
export interface RankedPassage {
  documentId: string;
  passage: Passage;
  score: number;
}

/** The passages of one document. */
interface OpenIndex {
  passages: Passage[];
  search: MiniSearch<Passage>;
  chars: number;
}

/** How long an index is cached after its last use. */
const IDLE_MS = 5 * 60 * 1000;
/** Maximum number of UTF-16 units of all indexed texts; an index takes about four times as many bytes. */
const MAX_CHARS = 24 * 1024 * 1024;
/** Maximum number of terms. More don't make a question clearer. */
const MAX_TERMS = 200;
/** Weight of earlier messages. */
const CONTEXT_WEIGHT = 0.3;
/** Weight of a word that only starts with a term: plurals and other endings. */
const PREFIX_WEIGHT = 0.35;
/** Minimum length of such a term. Shorter terms are the start of too many words. */
const MIN_PREFIX_LENGTH = 4;

/** The indexes of documents in use. */
export class PassageIndexes {
  readonly #readPages: ReadPages;
  /** By document, least recently used first. */
  readonly #indexes = new Map<string, Promise<OpenIndex>>();
  #idleTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(readPages: ReadPages) {
    this.#readPages = readPages;
  }

  /** Returns the matching passages, the best first. @throws Errors of reading the pages. */
  async rank(documentIds: readonly string[], query: PassageQuery): Promise<RankedPassage[]> {
    const found: RankedPassage[] = [];
    for (const documentId of documentIds) {
      const { passages, search } = await this.#open(documentId);
      const scores = new Map<number, number>();
      for (const [text, weight] of [[query.text, 1], [query.context, CONTEXT_WEIGHT]] as const) {
        const terms = [...new Set(tokenize(text))].slice(0, MAX_TERMS);
        if (terms.length === 0) continue;
        for (const { id, score } of search.search(terms.join(" "))) {
          scores.set(id, (scores.get(id) ?? 0) + score * weight);
        }
        await yieldIfTickUsedUp();
      }
      for (const [n, score] of scores) found.push({ documentId, passage: passages[n]!, score });
    }
    return found.sort((a, b) => b.score - a.score || a.passage.n - b.passage.n);
  }

  /** Returns the passages of a document in reading order. */
  async list(documentId: string): Promise<readonly Passage[]> {
    return (await this.#open(documentId)).passages;
  }

  /** Drops the index of a document whose text has changed. */
  forget(documentId: string): void {
    this.#indexes.delete(documentId);
  }

  /** Drops all indexes. */
  close(): void {
    clearTimeout(this.#idleTimer);
    this.#indexes.clear();
  }

  async #open(id: string): Promise<OpenIndex> {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => this.#indexes.clear(), IDLE_MS);
    Deno.unrefTimer(this.#idleTimer);
    const opening = this.#indexes.get(id) ?? this.#build(id);
    this.#indexes.delete(id); // Moves it to the end.
    this.#indexes.set(id, opening);
    try {
      const opened = await opening;
      await this.#dropOldest();
      return opened;
    } catch (error) {
      this.#indexes.delete(id);
      throw error;
    }
  }

  async #build(id: string): Promise<OpenIndex> {
    const search = new MiniSearch<Passage>({
      idField: "n",
      fields: ["text"],
      tokenize,
      processTerm: (term) => term,
      searchOptions: {
        prefix: (term) => term.length >= MIN_PREFIX_LENGTH,
        weights: { prefix: PREFIX_WEIGHT, fuzzy: 0 },
      },
    });
    const passages: Passage[] = [];
    let chars = 0;
    for await (const page of this.#readPages(id)) {
      for (const passage of toPassages(page, passages.length)) {
        passages.push(passage);
        chars += passage.text.length;
        search.add(passage);
        await yieldIfTickUsedUp();
      }
    }
    return { passages, search, chars };
  }

  /** Drops the least recently used indexes until the rest is small enough. The last one stays. */
  async #dropOldest(): Promise<void> {
    const sizes = await Promise.all(
      [...this.#indexes].map(async ([id, opening]) => ({
        id,
        chars: (await opening.catch(() => undefined))?.chars ?? 0,
      })),
    );
    let sum = sizes.reduce((total, { chars }) => total + chars, 0);
    for (const { id, chars } of sizes.slice(0, -1)) {
      if (sum <= MAX_CHARS) return;
      this.#indexes.delete(id);
      sum -= chars;
    }
  }
}

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** Scripts without spaces between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;

/**
 * Returns the terms of a text: words in lower case without accents, and pairs of characters in scripts without spaces.
 */
export function tokenize(text: string): string[] {
  const terms: string[] = [];
  for (const [word] of text.normalize("NFKD").replace(/\p{Mn}+/gu, "").toLowerCase().matchAll(WORD)) {
    if (!UNSPACED.test(word)) {
      terms.push(word.length > 3 ? word.replace(/([^s])s$/, "$1") : word); // Most plurals of European languages
      continue;
    }
    const letters = Array.from(word);
    if (letters.length === 1) terms.push(word);
    for (let n = 0; n + 1 < letters.length; n++) terms.push(letters[n]! + letters[n + 1]!);
  }
  return terms;
}

/** A part of a page. */
export interface Passage {
  /** Number of the passage in reading order, from 0. */
  n: number;
  /** Number of its page. */
  page: number;
  text: string;
}

/** Maximum length of a passage in UTF-16 units: about 200 tokens. */
const PASSAGE_LENGTH = 900;
/** Minimum length. Shorter paragraphs are joined with the next one. */
const MIN_LENGTH = 300;

/** Yields the passages of a page. @param first Number of the first one. */
export function* toPassages({ n: page, text }: DocumentPage, first: number): Generator<Passage> {
  let n = first;
  let passage = "";
  const separator = "\n\n";
  for (const paragraph of splitParagraphs(text)) {
    const isFull = passage.length + paragraph.length + separator.length > PASSAGE_LENGTH;
    if (passage !== "" && (isFull || passage.length >= MIN_LENGTH)) {
      yield { n: n++, page, text: passage };
      passage = "";
    }
    passage = passage === "" ? paragraph : `${passage}${separator}${paragraph}`;
  }
  if (passage !== "") yield { n: n++, page, text: passage };
}

/** Splits a page at empty lines, and longer paragraphs after sentences or else between words. */
function* splitParagraphs(text: string): Generator<string> {
  for (const whole of text.split(/\n\s*\n/)) {
    let rest = whole.trim();
    while (rest.length > PASSAGE_LENGTH) {
      const end = findCut(rest.slice(0, PASSAGE_LENGTH));
      yield rest.slice(0, end).trim();
      rest = rest.slice(end).trim();
    }
    if (rest !== "") yield rest;
  }
}

function findCut(piece: string): number {
  let sentence = 0;
  for (const { index, 0: mark } of piece.matchAll(/[.!?。！？]["”’)]?\s|[。！？]/g)) sentence = index + mark.length;
  if (sentence > PASSAGE_LENGTH / 3) return sentence;
  // The lines of a PDF end inside sentences, so a line break is no better than a space.
  const space = Math.max(piece.lastIndexOf(" "), piece.lastIndexOf("\n")) + 1;
  if (space > PASSAGE_LENGTH / 3) return space;
  return (piece.charCodeAt(piece.length - 1) & 0xfc00) === 0xd800 ? piece.length - 1 : piece.length;
}
