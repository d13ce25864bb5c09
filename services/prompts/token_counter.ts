/**
 * Counts the tokens of messages with the server's tokenizer, or with an estimate. `TokenRatios` learns from the `usage`
 * of replies how much estimates differ for each model. `ContextSizes` finds the context sizes of models.
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
    const limit = AbortSignal.timeout(TIMEOUT_MS);
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

/** Assumed if the size is unknown. */
const DEFAULT_CONTEXT_SIZE = 8192;

/** A context size. */
export interface ContextSize {
  tokens: number;
  /** True if neither the settings nor the server provide it. */
  isAssumed: boolean;
}

/** How long a result, or a failure, is cached. Another model may be loaded at any time. */
const CACHE_MS = 5 * 60 * 1000;
const FAILURE_CACHE_MS = 60 * 1000;
/** Maximum time that a request for the context size may delay a reply. */
const CONTEXT_SIZE_TIMEOUT_MS = 3_000;
/** Maximum number of models; the least recently used are dropped. */
const MODELS = 200;

/** A context size that is being requested or was. */
interface CachedSize {
  size: Promise<number | undefined>;
  untilMs: number;
  isUnknown?: boolean;
}

/** Looks up context sizes. */
export class ContextSizes {
  readonly #provider: Pick<Provider, "readContextSize" | "chooseContextSize">;
  readonly #known = new Map<string, CachedSize>();

  constructor(provider: Pick<Provider, "readContextSize" | "chooseContextSize">) {
    this.#provider = provider;
  }

  /**
   * Returns the context size of a model. Never fails and takes at most about three seconds. If calls set the size
   * (Ollama), this is the maximum.
   */
  async lookUp(target: UpstreamTarget, model: string): Promise<ContextSize> {
    const tokens = isSetByCalls(target)
      ? getMinimum(target.contextSize, await this.#read(target, model))
      : target.contextSize ?? await this.#read(target, model);
    return tokens === undefined ? { tokens: DEFAULT_CONTEXT_SIZE, isAssumed: true } : { tokens, isAssumed: false };
  }

  /**
   * Returns the context size of a call. Never fails and takes at most about three seconds.
   *
   * @param needed Number of tokens of prompt and reply.
   * @param most Result of `lookUp`.
   */
  async choose(target: UpstreamTarget, model: string, needed: number, most: ContextSize): Promise<ContextSize> {
    const { chooseContextSize } = this.#provider;
    if (!isSetByCalls(target) || chooseContextSize === undefined) return most;
    const chosen = await chooseContextSize(target, model, needed, AbortSignal.timeout(CONTEXT_SIZE_TIMEOUT_MS)).catch(
      () => undefined,
    );
    return chosen === undefined ? { ...most, isAssumed: true } : { tokens: chosen, isAssumed: most.isAssumed };
  }

  /** Forgets that a model's size is unknown: servers that load a model with its first call know it afterwards. */
  forgetUnknown(target: UpstreamTarget, model: string): void {
    const key = toKey(target, model);
    if (this.#known.get(key)?.isUnknown) this.#known.delete(key);
  }

  /** Requests a size. Concurrent callers share one request, so none of them can abort it. */
  #read(target: UpstreamTarget, model: string): Promise<number | undefined> {
    const key = toKey(target, model);
    const known = this.#known.get(key);
    if (known !== undefined && known.untilMs > performance.now()) return known.size;
    const size = this.#provider.readContextSize(target, model, AbortSignal.timeout(CONTEXT_SIZE_TIMEOUT_MS)).catch(() =>
      undefined
    );
    const entry: CachedSize = { size, untilMs: Infinity, isUnknown: false };
    if (this.#known.size >= MODELS) this.#known.clear();
    this.#known.set(key, entry);
    size.then((found) => {
      entry.isUnknown = found === undefined;
      entry.untilMs = performance.now() + (found === undefined ? FAILURE_CACHE_MS : CACHE_MS);
    });
    return size;
  }
}

/** Reports whether each call sets the context size. */
function isSetByCalls({ kind }: UpstreamTarget): boolean {
  return kind === "ollama";
}

/**
 * Returns the cache key of a model. The owner's limit only matters if calls set the size, so two connections to one
 * server may differ.
 */
function toKey(target: UpstreamTarget, model: string): string {
  const limit = isSetByCalls(target) ? target.contextSize ?? "" : "";
  return `${target.kind} ${target.baseUrl} ${model} ${limit}`;
}

function getMinimum(first: number | undefined, second: number | undefined): number | undefined {
  return first === undefined || second === undefined ? first ?? second : Math.min(first, second);
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
