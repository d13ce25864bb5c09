/** Counts the tokens of messages with the server's tokenizer, or with an estimate calibrated from earlier replies. */
import { createHash } from "node:crypto";
import type { ChatMessage } from "../../llm/chat_event.ts";
import type { Provider, UpstreamTarget } from "../../llm/provider.ts";
import { yieldIfTickUsedUp } from "../../async/yield_to_event_loop.ts";
import { estimateTokens, IMAGE_TOKENS, MESSAGE_TOKENS, toCountedText } from "../../llm/token_estimate.ts";
import type { TokenRatios } from "./token_ratios.ts";

/** The model to count for. */
export interface CountedModel {
  target: UpstreamTarget;
  model: string;
}

/** Token counts of messages, in their order. */
export interface TokenCount {
  tokens: number[];
  /** True if the server counted every text. */
  isExact: boolean;
}

/** Maximum number of cached counts. */
const MAX_CACHED = 20_000;
/** Limits of one request. Further texts are estimated, and counted next time. */
const TEXTS_AT_ONCE = 600;
const CHARS_AT_ONCE = 1024 * 1024;
/** Longer texts are estimated: tokenizers take about a second per megabyte. */
const MAX_TEXT_CHARS = 256 * 1024;
/** Maximum delay of a reply. */
const TIMEOUT_MS = 2_000;

/** Counts tokens. */
export class TokenCounter {
  readonly #provider: Pick<Provider, "countTokens">;
  readonly #ratios: TokenRatios;
  /** Oldest first. */
  readonly #known = new Map<string, number>();

  constructor(provider: Pick<Provider, "countTokens">, ratios: TokenRatios) {
    this.#provider = provider;
    this.#ratios = ratios;
  }

  /** Estimates the tokens of a message without a request. */
  estimate(message: ChatMessage, model: string): number {
    const { text, images } = toCountedText(message);
    return Math.ceil(estimateTokens(text) * this.#ratios.get(model)) + MESSAGE_TOKENS + images * IMAGE_TOKENS;
  }

  /** Returns how many tokens of a model one estimated token is. */
  ratioOf(model: string): number {
    return this.#ratios.get(model);
  }

  /** Counts messages. Takes at most about two seconds. @throws The reason of `signal` if aborted. */
  async count(messages: readonly ChatMessage[], asked: CountedModel, signal: AbortSignal): Promise<TokenCount> {
    const parts = messages.map(toCountedText);
    const keys: string[] = [];
    for (const { text } of parts) {
      keys.push(toCacheKey(asked, text));
      await yieldIfTickUsedUp();
    }
    signal.throwIfAborted();
    await this.#learn(parts.map(({ text }) => text), keys, asked, signal);
    let isExact = true;
    const tokens = parts.map(({ images }, index) => {
      const known = this.#known.get(keys[index]!);
      if (images > 0 || known === undefined) isExact = false;
      if (known === undefined) return this.estimate(messages[index]!, asked.model);
      return known + MESSAGE_TOKENS + images * IMAGE_TOKENS;
    });
    return { tokens, isExact };
  }

  /** Requests counts of unknown texts, up to the limits of one request. */
  async #learn(texts: string[], keys: string[], { target, model }: CountedModel, signal: AbortSignal): Promise<void> {
    const wanted = new Map<string, string>();
    let chars = 0;
    for (const [index, key] of keys.entries()) {
      const text = texts[index]!;
      if (this.#known.has(key) || wanted.has(key) || text.length > MAX_TEXT_CHARS) continue;
      if (wanted.size >= TEXTS_AT_ONCE || chars + text.length > CHARS_AT_ONCE) break;
      wanted.set(key, text);
      chars += text.length;
    }
    if (wanted.size === 0) return;
    const limit = AbortSignal.timeout(TIMEOUT_MS);
    const within = AbortSignal.any([signal, limit]);
    try {
      const counts = await this.#provider.countTokens(target, model, [...wanted.values()], within);
      if (counts === undefined) return;
      [...wanted.keys()].forEach((key, index) => this.#remember(key, counts[index]!));
    } catch (error) {
      if (!limit.aborted || signal.aborted) throw error;
    }
  }

  #remember(key: string, count: number): void {
    if (this.#known.size >= MAX_CACHED) this.#known.delete(this.#known.keys().next().value!);
    this.#known.set(key, count);
  }
}

/** Hashes the text, which may be long. */
function toCacheKey({ target, model }: CountedModel, text: string): string {
  return createHash("sha256").update(`${target.baseUrl}\n${model}\n`).update(text).digest("base64");
}
