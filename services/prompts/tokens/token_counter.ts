/** Counts the tokens of messages: by the server's tokeniser where it has one, else by an estimate that has been learned. */
import { createHash } from "node:crypto";
import type { ChatMessage } from "../../llm/chat_event.ts";
import type { Provider, UpstreamTarget } from "../../llm/provider.ts";
import { yieldIfTickUsedUp } from "../../async/yield_to_event_loop.ts";
import { countedParts, estimateTokens, IMAGE_TOKENS, MESSAGE_TOKENS } from "./token_estimate.ts";
import type { TokenRatios } from "./token_ratios.ts";

/** Who is asked. */
export interface CountedModel {
  target: UpstreamTarget;
  model: string;
}

/** Tokens of some messages, each in its place. */
export interface TokenCount {
  tokens: number[];
  /** True when the server counted every text itself. */
  isExact: boolean;
}

/** Texts whose count is remembered. */
const REMEMBERED = 20_000;
/** What a server is given to count in one go; what is beyond is estimated, and counted the next time. */
const TEXTS_AT_ONCE = 600;
const CHARS_AT_ONCE = 1024 * 1024;
/** A longer text is estimated: tokenisers take a second a megabyte. */
const MAX_TEXT_CHARS = 256 * 1024;
/** A reply must not wait long for its prompt to be counted. */
const WITHIN_MS = 2_000;

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

  /** Gives what a message takes for this model, without asking anybody. */
  estimate(message: ChatMessage, model: string): number {
    const { text, images } = countedParts(message);
    return Math.ceil(estimateTokens(text) * this.#ratios.of(model)) + MESSAGE_TOKENS + images * IMAGE_TOKENS;
  }

  /** Counts messages. Never takes more than about two seconds. @throws The reason of `signal`, when that fired. */
  async count(messages: readonly ChatMessage[], asked: CountedModel, signal: AbortSignal): Promise<TokenCount> {
    const parts = messages.map(countedParts);
    const keys: string[] = [];
    for (const { text } of parts) {
      keys.push(keyOf(asked, text));
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

  /** Has the server count what is not known yet, as far as that may go at once. */
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
    const limit = AbortSignal.timeout(WITHIN_MS);
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
    if (this.#known.size >= REMEMBERED) this.#known.delete(this.#known.keys().next().value!);
    this.#known.set(key, count);
  }
}

/** The text itself may be long; its hash stands for it. */
function keyOf({ target, model }: CountedModel, text: string): string {
  return createHash("sha256").update(`${target.baseUrl}\n${model}\n`).update(text).digest("base64");
}
