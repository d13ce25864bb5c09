/** The sources that a model or its server names for a reply (docs/protocols/llm.md, "Pictures, sound and sources"). */
import { isJsonObject, isNonEmptyString, readField } from "../json/type_guards.ts";

/** A source as a server names it. At least one field is set. */
export interface NamedSource {
  url?: string;
  title?: string;
  /** The cited text. */
  quote?: string;
}

/** A source of a message. */
export interface Source extends NamedSource {
  /** Its number, from 1. */
  n: number;
}

const MAX_SOURCES = 200;
const MAX_URL_CHARS = 4_000;
const MAX_TITLE_CHARS = 500;
const MAX_QUOTE_CHARS = 2_000;

/** Collects the sources of one reply. Servers repeat them in later events. */
export class SourceList {
  readonly #sources: NamedSource[] = [];

  /** Adds sources. A source with a known URL, or without one and with a known title and quote, adds what is missing. */
  add(named: readonly NamedSource[]): void {
    for (const source of named) {
      const known = this.#sources.find((one) => isSame(one, source));
      if (known !== undefined) Object.assign(known, { ...source, ...known });
      else if (this.#sources.length < MAX_SOURCES) this.#sources.push({ ...source });
    }
  }

  /** Returns the sources with their numbers. */
  all(): Source[] {
    return this.#sources.map((source, index) => ({ n: index + 1, ...source }));
  }
}

function isSame(a: NamedSource, b: NamedSource): boolean {
  return b.url === undefined ? a.title === b.title && a.quote === b.quote : a.url === b.url;
}

/**
 * Reads the sources of a chunk or response in OpenAI's format, with its first choice and message: `citations` and
 * `search_results` (Perplexity, xAI), `annotations` (OpenAI, OpenRouter), and grounding (Gemini).
 */
export function readSources(...values: unknown[]): NamedSource[] {
  return values.filter(isJsonObject).flatMap((value) => [
    ...[value.citations].flat().map(readCitation),
    ...[value.search_results].flat().map(readCitation),
    ...[value.annotations].flat().map((one) => readCitation(readField(one, "url_citation") ?? one)),
    ...readGrounding(value.grounding_metadata ?? value.groundingMetadata),
  ]).filter((source) => source !== undefined);
}

/** Reads one source: a URL, or an object under the names of any server. */
export function readCitation(value: unknown): NamedSource | undefined {
  if (typeof value === "string") return isUrl(value) ? toSource(value, undefined, undefined) : undefined;
  if (!isJsonObject(value)) return undefined;
  return toSource(
    value.url ?? value.uri ?? value.link,
    value.title ?? value.document_title,
    value.cited_text ?? value.snippet ?? value.content,
  );
}

function readGrounding(metadata: unknown): (NamedSource | undefined)[] {
  const chunks = readField(metadata, "grounding_chunks") ?? readField(metadata, "groundingChunks");
  if (!Array.isArray(chunks)) return [];
  return chunks.map((chunk) => readCitation(readField(chunk, "web") ?? readField(chunk, "retrievedContext")));
}

function toSource(url: unknown, title: unknown, quote: unknown): NamedSource | undefined {
  const source: NamedSource = {
    ...(isNonEmptyString(url) && url.length <= MAX_URL_CHARS && { url }),
    ...(isNonEmptyString(title) && { title: title.slice(0, MAX_TITLE_CHARS) }),
    ...(isNonEmptyString(quote) && { quote: quote.slice(0, MAX_QUOTE_CHARS) }),
  };
  return Object.keys(source).length === 0 ? undefined : source;
}

function isUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
}
