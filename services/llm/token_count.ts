/** Counts tokens with the tokenizer endpoint of a model server (docs/protocols/llm.md, "Token counting"), or estimates them. */
import { getServerRoot } from "../http/base_url.ts";
import type { HttpClient } from "../http/http_client.ts";
import { readText } from "../http/read_body.ts";
import { readField } from "../json/type_guards.ts";
import { createAuthHeaders, type UpstreamTarget } from "./provider.ts";
import { ModelCall, sendRequest } from "./model_call.ts";
import type { ChatCall, ChatMessage, OpenAiCompletion, Usage } from "./chat_event.ts";

/** One kind of tokenizer endpoint. */
interface Tokenizer {
  path: string;
  createBody(model: string, text: string): unknown;
  parseCount(response: unknown): number | undefined;
}

const TOKENIZERS: Tokenizer[] = [
  {
    // llama.cpp. Only a server with several models uses the model name.
    path: "/tokenize",
    createBody: (model, content) => ({ model, content, add_special: false }),
    parseCount: (response) => {
      const tokens = readField(response, "tokens");
      return Array.isArray(tokens) ? tokens.length : undefined;
    },
  },
  {
    // KoboldCpp
    path: "/api/extra/tokencount",
    createBody: (_, prompt) => ({ prompt }),
    parseCount: (response) => {
      const value = readField(response, "value");
      return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
    },
  },
];

/** Maximum size of a response. Enough for a list of a million tokens. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;
/** Maximum number of concurrent requests to a server. */
const MAX_CONCURRENT = 8;
/** How long a server without a tokenizer isn't asked again. */
const NO_TOKENIZER_TTL_MS = 10 * 60 * 1000;
/** Statuses that mean the path doesn't exist, instead of that the server is busy or requires a key. */
const UNKNOWN_PATH_STATUSES = new Set([404, 405, 501]);
/** Sent to find the tokenizer. Contains nothing private. */
const SAMPLE_TEXT = "Hello";

/** Counts tokens and remembers which servers can. */
export class TokenCounts {
  readonly #http: HttpClient;
  readonly #known = new Map<string, { tokenizer: Tokenizer | undefined; untilMs: number }>();

  constructor(http: HttpClient) {
    this.#http = http;
  }

  /**
   * Counts the tokens of each text, without special tokens at its start.
   *
   * @returns `undefined` if the server can't count, or on failure
   * @throws The caller's abort reason.
   */
  async count(
    target: UpstreamTarget,
    model: string,
    texts: string[],
    signal: AbortSignal,
  ): Promise<number[] | undefined> {
    try {
      const tokenizer = await this.#findTokenizer(target, model, signal);
      if (tokenizer === undefined) return undefined;
      const counts: number[] = [];
      let next = 0;
      const work = async () => {
        while (next < texts.length) {
          const index = next++;
          const count = await this.#request(tokenizer, target, model, texts[index]!, signal);
          if (count === undefined) throw new Error("The tokenizer endpoint no longer exists");
          counts[index] = count;
        }
      };
      await Promise.all(Array.from({ length: Math.min(MAX_CONCURRENT, texts.length) }, work));
      return counts;
    } catch {
      signal.throwIfAborted();
      this.#known.delete(target.baseUrl); // Another server may run there now.
      return undefined;
    }
  }

  async #findTokenizer(target: UpstreamTarget, model: string, signal: AbortSignal): Promise<Tokenizer | undefined> {
    const known = this.#known.get(target.baseUrl);
    if (known !== undefined && known.untilMs > performance.now()) return known.tokenizer;
    let tokenizer: Tokenizer | undefined;
    for (const candidate of TOKENIZERS) {
      const count = await this.#request(candidate, target, model, SAMPLE_TEXT, signal);
      if (count === undefined || count === 0) continue;
      tokenizer = candidate;
      break;
    }
    const untilMs = tokenizer === undefined ? performance.now() + NO_TOKENIZER_TTL_MS : Infinity;
    this.#known.set(target.baseUrl, { tokenizer, untilMs });
    return tokenizer;
  }

  /** Returns `undefined` if the server doesn't have this endpoint. Throws if that can't be determined. */
  async #request(
    tokenizer: Tokenizer,
    target: UpstreamTarget,
    model: string,
    text: string,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const call = new ModelCall(target, signal);
    try {
      const response = await sendRequest(this.#http, call, {
        url: `${getServerRoot(target.baseUrl)}${tokenizer.path}`,
        headers: createAuthHeaders(target),
        body: tokenizer.createBody(model, text),
      });
      if (!response.ok) {
        if (!UNKNOWN_PATH_STATUSES.has(response.status)) throw await call.readError(response);
        return void await response.body?.cancel();
      }
      const body = await readText(response, MAX_RESPONSE_BYTES);
      try {
        return tokenizer.parseCount(JSON.parse(body));
      } catch {
        return undefined; // A web page
      }
    } finally {
      call.timer.end();
    }
  }
}

// Estimates tokens without a tokenizer.

/** Number of tokens that a chat template adds per message. */
export const MESSAGE_TOKENS = 4;
/** Number of tokens of an image: between 85 (OpenAI, low detail) and about 1,600 (Anthropic, full size). */
export const IMAGE_TOKENS = 768;

/** About four characters of alphabetic text make one token. */
const TOKENS_PER_CHAR = 0.25;
/** In scripts without spaces, almost every character is a token. */
const TOKENS_PER_WIDE_CHAR = 0.85;
/** Han, kana and Hangul start here. Everything above, including emoji, counts the same. */
const FIRST_WIDE = 0x2e80;
const HAS_WIDE = /[\u2e80-\uffff]/;

/** Returns the text of a message and its number of images. */
export function splitContent({ content }: ChatMessage): { text: string; images: number } {
  if (typeof content === "string") return { text: content, images: 0 };
  if (content === null) return { text: "", images: 0 };
  const texts = content.flatMap((part) => typeof part.text === "string" ? [part.text] : []);
  const images = content.filter((part) => part.type === "image_url" || part.type === "image").length;
  return { text: texts.join("\n"), images };
}

/** Returns everything in a message that counts: its text and its tool calls. */
export function toCountedText(message: ChatMessage): { text: string; images: number } {
  const { text, images } = splitContent(message);
  const { tool_calls: calls } = message;
  return calls === undefined ? { text, images } : { text: `${text}\n${JSON.stringify(calls)}`, images };
}

/** Estimates the number of tokens of a text for an average tokenizer. */
export function estimateTokens(text: string): number {
  let wide = 0;
  if (HAS_WIDE.test(text)) {
    for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= FIRST_WIDE) wide++;
  }
  return (text.length - wide) * TOKENS_PER_CHAR + wide * TOKENS_PER_WIDE_CHAR;
}

/** Estimates the number of tokens of a whole call: messages, images and tool definitions. */
export function estimateCallTokens({ messages, params }: Pick<ChatCall, "messages" | "params">): number {
  let tokens = params.tools === undefined ? 0 : estimateTokens(JSON.stringify(params.tools));
  for (const message of messages) {
    const { text, images } = splitContent(message);
    const calls = message.tool_calls === undefined ? "" : JSON.stringify(message.tool_calls);
    tokens += MESSAGE_TOKENS + estimateTokens(text) + estimateTokens(calls) + images * IMAGE_TOKENS;
  }
  return Math.ceil(tokens);
}

/** Estimates the token counts of a call whose server sends none. They are marked as `estimated`. */
export function estimateUsage(call: Pick<ChatCall, "messages" | "params">, reply: string): Usage {
  const prompt = estimateCallTokens(call);
  const completion = Math.ceil(estimateTokens(reply));
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, estimated: true };
}

/** Returns everything that a model wrote, for an estimate of its tokens. */
export function getReplyText({ choices }: Pick<OpenAiCompletion, "choices">): string {
  return choices.map(({ message: { content, reasoning_content: reasoning = "", tool_calls: calls } }) =>
    `${reasoning}${content ?? ""}${calls === undefined ? "" : JSON.stringify(calls)}`
  ).join("");
}
