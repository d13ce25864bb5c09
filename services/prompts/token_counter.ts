/**
 * Counts the tokens of messages with the server's tokenizer, or with an estimate. `TokenRatios` learns from the `usage`
 * of replies how much estimates differ for each model.
 */
import { createHash } from "node:crypto";
import type { ChatMessage, Usage } from "../llm/chat_event.ts";
import type { Provider, UpstreamTarget } from "../llm/provider.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { estimateTokens, IMAGE_TOKENS, MESSAGE_TOKENS, splitContent, toCountedText } from "../llm/token_count.ts";
import { Mutex } from "../async/locks.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { getErrorMessage } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database/database.ts";

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
/** Maximum number of texts per request. Others are estimated, and counted next time. */
const TEXTS_AT_ONCE = 600;
const CHARS_AT_ONCE = 1024 * 1024;
/** Maximum length of a text to count. Longer ones are estimated: tokenizers take about a second per megabyte. */
const MAX_TEXT_CHARS = 256 * 1024;
/** Maximum time that counting may delay a reply. */
const TIMEOUT_MS = 2_000;

/** Counts tokens. */
export class TokenCounter {
  readonly #provider: Pick<Provider, "countTokens">;
  readonly #ratios: TokenRatios;
  readonly #timeoutMs: number;
  /** Oldest first. */
  readonly #known = new Map<string, number>();

  constructor(provider: Pick<Provider, "countTokens">, ratios: TokenRatios, timeoutMs = TIMEOUT_MS) {
    this.#provider = provider;
    this.#ratios = ratios;
    this.#timeoutMs = timeoutMs;
  }

  /** Estimates the tokens of a message without a request. */
  estimate(message: ChatMessage, model: string): number {
    const { text, images } = toCountedText(message);
    return Math.ceil(estimateTokens(text) * this.#ratios.get(model)) + MESSAGE_TOKENS + images * IMAGE_TOKENS;
  }

  /** Returns the ratio of a model's tokens to estimated tokens. */
  getRatio(model: string): number {
    return this.#ratios.get(model);
  }

  /** Counts messages. Takes at most about two seconds. @throws The reason of `signal` if aborted. */
  async count(messages: readonly ChatMessage[], target: CountedModel, signal: AbortSignal): Promise<TokenCount> {
    const parts = messages.map(toCountedText);
    const keys: string[] = [];
    for (const { text } of parts) {
      keys.push(toCacheKey(target, text));
      await yieldIfTickUsedUp();
    }
    signal.throwIfAborted();
    await this.#learn(parts.map(({ text }) => text), keys, target, signal);
    let isExact = true;
    const tokens = parts.map(({ images }, index) => {
      const known = this.#known.get(keys[index]!);
      if (images > 0 || known === undefined) isExact = false;
      if (known === undefined) return this.estimate(messages[index]!, target.model);
      return known + MESSAGE_TOKENS + images * IMAGE_TOKENS;
    });
    return { tokens, isExact };
  }

  /** Requests counts of unknown texts, up to the limits of one request. */
  async #learn(texts: string[], keys: string[], { target, model }: CountedModel, signal: AbortSignal): Promise<void> {
    const uncounted = new Map<string, string>();
    let chars = 0;
    for (const [index, key] of keys.entries()) {
      const text = texts[index]!;
      if (this.#known.has(key) || uncounted.has(key) || text.length > MAX_TEXT_CHARS) continue;
      if (uncounted.size >= TEXTS_AT_ONCE || chars + text.length > CHARS_AT_ONCE) break;
      uncounted.set(key, text);
      chars += text.length;
    }
    if (uncounted.size === 0) return;
    const limit = AbortSignal.timeout(this.#timeoutMs);
    const within = AbortSignal.any([signal, limit]);
    try {
      const counts = await this.#provider.countTokens(target, model, [...uncounted.values()], within);
      if (counts === undefined) return;
      [...uncounted.keys()].forEach((key, index) => this.#remember(key, counts[index]!));
    } catch (error) {
      if (!limit.aborted || signal.aborted) throw error;
    }
  }

  #remember(key: string, count: number): void {
    if (this.#known.size >= MAX_CACHED) this.#known.delete(this.#known.keys().next().value!);
    this.#known.set(key, count);
  }
}

/** Returns the cache key of a text. Hashes the text, which may be long. */
function toCacheKey({ target, model }: CountedModel, text: string): string {
  return createHash("sha256").update(`${target.baseUrl}\n${model}\n`).update(text).digest("base64");
}

/** Dependencies of `TokenRatios`. */
export interface TokenRatiosDeps {
  db: Database;
  /** For the purpose "settings". */
  sealer: PurposeSealer;
  log: Log;
}

/** Key in table `setting`. */
const KEY = "token_ratios";
const AAD = { table: "setting", id: KEY, field: "value", version: 1 };
/** Minimum estimate. Below it, the count depends more on the template than on the text. */
const MIN_TOKENS = 40;
/** No tokenizer differs more than this from the estimate. Servers that report otherwise miscount. */
const [LEAST, MOST] = [0.3, 4];
/** Maximum number of models; the oldest are dropped. */
const MODELS = 200;
/** Weight of one reply. */
const WEIGHT = 0.3;
/** Smaller changes aren't saved. */
const MIN_CHANGE = 0.02;

/** The learned ratios. */
export class TokenRatios {
  readonly #options: TokenRatiosDeps;
  #ratios: Map<string, number> | undefined;
  #saved = new Map<string, number>();
  readonly #lock = new Mutex();

  constructor(options: TokenRatiosDeps) {
    this.#options = options;
  }

  /** Returns the factor for estimates of a model; 1 if unknown. */
  get(model: string): number {
    return this.#load().get(model) ?? 1;
  }

  /** Learns from reported usage. Prompts with images are ignored, because their tokens can't be estimated. */
  learn(model: string, messages: readonly ChatMessage[], usage: Usage | undefined): void {
    const reported = usage?.prompt_tokens;
    if (typeof reported !== "number" || !Number.isFinite(reported)) return;
    let estimated = 0;
    for (const message of messages) {
      const { text, images } = splitContent(message);
      if (images > 0) return;
      estimated += estimateTokens(text);
    }
    const ratio = (reported - messages.length * MESSAGE_TOKENS) / estimated;
    if (estimated < MIN_TOKENS || !(ratio >= LEAST && ratio <= MOST)) return;
    const ratios = this.#load();
    const known = ratios.get(model);
    const learned = known === undefined ? ratio : known + (ratio - known) * WEIGHT;
    ratios.delete(model); // Moves it to the end: the oldest is dropped first.
    ratios.set(model, learned);
    if (ratios.size > MODELS) ratios.delete(ratios.keys().next().value!);
    const saved = this.#saved.get(model);
    if (saved === undefined || Math.abs(learned / saved - 1) >= MIN_CHANGE) this.#save();
  }

  /** Waits for pending writes. */
  async close(): Promise<void> {
    await this.#lock.waitUntilSettled();
  }

  #load(): Map<string, number> {
    return this.#ratios ??= this.#read();
  }

  #read(): Map<string, number> {
    const { db, sealer, log } = this.#options;
    try {
      const row = db.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", KEY);
      if (row === undefined) return new Map();
      this.#saved = new Map(JSON.parse(new TextDecoder().decode(sealer.openNow(AAD, row.sealed))));
      return new Map(this.#saved);
    } catch (error) {
      // They're learned again within a few replies.
      log("warn", "Can't read the stored token ratios", { error: getErrorMessage(error) });
      return new Map();
    }
  }

  #save(): void {
    const { db, sealer, log } = this.#options;
    this.#saved = new Map(this.#load());
    const sealed = sealer.sealNow(AAD, JSON.stringify([...this.#saved]));
    const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)";
    this.#lock.run(() => db.write([{ sql, params: [KEY, sealed] }])).catch((error) =>
      log("warn", "Can't save the token ratios", { error: getErrorMessage(error) })
    );
  }
}
