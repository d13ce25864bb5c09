/** Finds the context sizes of models. */
import type { Provider, UpstreamTarget } from "./provider.ts";

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
  /** Sizes in errors of servers. They also limit what the owner or the server says, for as long as it's cached. */
  readonly #refused = new Map<string, { tokens: number; untilMs: number }>();

  readonly #timeoutMs: number;

  constructor(
    provider: Pick<Provider, "readContextSize" | "chooseContextSize">,
    timeoutMs = CONTEXT_SIZE_TIMEOUT_MS,
  ) {
    this.#provider = provider;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Returns the context size of a model. Never fails and takes at most about three seconds. If calls set the size
   * (Ollama), this is the maximum.
   */
  async lookUp(target: UpstreamTarget, model: string): Promise<ContextSize> {
    const known = isSetByCalls(target)
      ? getMinimum(target.contextSize, await this.#read(target, model))
      : target.contextSize ?? await this.#read(target, model);
    const refused = this.#refused.get(toKey(target, model));
    const tokens = refused === undefined || refused.untilMs > performance.now()
      ? getMinimum(known, refused?.tokens)
      : known ?? refused.tokens;
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
    const chosen = await chooseContextSize(target, model, needed, AbortSignal.timeout(this.#timeoutMs)).catch(
      () => undefined,
    );
    return chosen === undefined ? { ...most, isAssumed: true } : { tokens: chosen, isAssumed: most.isAssumed };
  }

  /**
   * Learns from a server that refused a prompt as too long: the cached size is wrong.
   *
   * @param tokens The size that the server named, if it did. Otherwise the server is asked again.
   */
  reportOverflow(target: UpstreamTarget, model: string, tokens: number | undefined): void {
    const key = toKey(target, model);
    this.#known.delete(key);
    if (tokens === undefined) return;
    if (this.#refused.size >= MODELS) this.#refused.clear();
    this.#refused.set(key, { tokens, untilMs: performance.now() + CACHE_MS });
  }

  /** Replaces what is known of a model's size by what its server has just said. */
  replace(target: UpstreamTarget, model: string, tokens: number | undefined): void {
    const key = toKey(target, model);
    this.#refused.delete(key);
    this.#known.delete(key);
    if (tokens === undefined) return;
    this.#known.set(key, { size: Promise.resolve(tokens), untilMs: performance.now() + CACHE_MS });
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
    const size = this.#provider.readContextSize(target, model, AbortSignal.timeout(this.#timeoutMs)).catch(() =>
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
