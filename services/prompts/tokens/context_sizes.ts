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
  readonly #provider: Pick<Provider, "readContextSize">;
  readonly #known = new Map<string, { size: Promise<number | undefined>; untilMs: number }>();

  constructor(provider: Pick<Provider, "readContextSize">) {
    this.#provider = provider;
  }

  /** Returns the context size of a model. Never fails and takes at most about three seconds. */
  async lookUp(target: UpstreamTarget, model: string): Promise<ContextSize> {
    const said = target.contextSize ?? await this.#read(target, model);
    return said === undefined ? { tokens: DEFAULT_CONTEXT_SIZE, isAssumed: true } : { tokens: said, isAssumed: false };
  }

  /** Concurrent callers share one request, so none of them can abort it. */
  #read(target: UpstreamTarget, model: string): Promise<number | undefined> {
    const key = `${target.kind} ${target.baseUrl} ${model}`;
    const known = this.#known.get(key);
    if (known !== undefined && known.untilMs > performance.now()) return known.size;
    const size = this.#provider.readContextSize(target, model, AbortSignal.timeout(TIMEOUT_MS)).catch(() => undefined);
    const entry = { size, untilMs: Infinity };
    if (this.#known.size >= MODELS) this.#known.clear();
    this.#known.set(key, entry);
    size.then((found) => entry.untilMs = performance.now() + (found === undefined ? FAILURE_CACHE_MS : CACHE_MS));
    return size;
  }
}
