/** Finds the context size of models: as configured, as reported by the server, or a default. */
import type { Provider, UpstreamTarget } from "../../llm/provider.ts";

/** Assumed if unknown. */
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
/** Maximum delay of a reply. */
const TIMEOUT_MS = 3_000;
const MODELS = 200;

/** Looks up context sizes. */
export class ContextSizes {
  readonly #provider: Pick<Provider, "readContextSize" | "chooseContextSize">;
  readonly #known = new Map<string, { size: Promise<number | undefined>; untilMs: number; isUnknown?: boolean }>();

  constructor(provider: Pick<Provider, "readContextSize" | "chooseContextSize">) {
    this.#provider = provider;
  }

  /**
   * Returns the context size of a model. Never fails and takes at most about three seconds. Where calls set the size
   * (Ollama), this is the most it can be.
   */
  async lookUp(target: UpstreamTarget, model: string): Promise<ContextSize> {
    const said = isSetByCalls(target)
      ? least(target.contextSize, await this.#read(target, model))
      : target.contextSize ?? await this.#read(target, model);
    return said === undefined ? { tokens: DEFAULT_CONTEXT_SIZE, isAssumed: true } : { tokens: said, isAssumed: false };
  }

  /**
   * Returns the context size that a call is sent with. Never fails and takes at most about three seconds.
   *
   * @param needed Tokens of prompt and answer.
   * @param most What `lookUp` returned.
   */
  async choose(target: UpstreamTarget, model: string, needed: number, most: ContextSize): Promise<ContextSize> {
    const { chooseContextSize } = this.#provider;
    if (!isSetByCalls(target) || chooseContextSize === undefined) return most;
    const chosen = await chooseContextSize(target, model, needed, AbortSignal.timeout(TIMEOUT_MS)).catch(() =>
      undefined
    );
    return chosen === undefined ? { ...most, isAssumed: true } : { tokens: chosen, isAssumed: most.isAssumed };
  }

  /** Forgets that a model's size is unknown: servers that load a model with its first call know it from then on. */
  forgetUnknown(target: UpstreamTarget, model: string): void {
    const key = toKey(target, model);
    if (this.#known.get(key)?.isUnknown) this.#known.delete(key);
  }

  /** Concurrent callers share one request, so none of them can abort it. */
  #read(target: UpstreamTarget, model: string): Promise<number | undefined> {
    const key = toKey(target, model);
    const known = this.#known.get(key);
    if (known !== undefined && known.untilMs > performance.now()) return known.size;
    const size = this.#provider.readContextSize(target, model, AbortSignal.timeout(TIMEOUT_MS)).catch(() => undefined);
    const entry = { size, untilMs: Infinity, isUnknown: false };
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

/** The owner's limit counts only with calls that set the size, so two connections to one server may differ. */
function toKey(target: UpstreamTarget, model: string): string {
  const limit = isSetByCalls(target) ? target.contextSize ?? "" : "";
  return `${target.kind} ${target.baseUrl} ${model} ${limit}`;
}

function least(first: number | undefined, second: number | undefined): number | undefined {
  return first === undefined || second === undefined ? first ?? second : Math.min(first, second);
}
