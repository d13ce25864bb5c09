/** How many tokens each model can hold: what the owner says, else what its server says, else an assumption. */
import type { Provider, UpstreamTarget } from "../../llm/provider.ts";

/** Assumed if unknown. */
const ASSUMED_CONTEXT_SIZE = 8192;

/** A context size in tokens. */
export interface ContextSize {
  tokens: number;
  /** True when neither owner nor server said it. */
  isAssumed: boolean;
}

/** For how long an answer, and that there was none, is kept: another model may be loaded any time. */
const KEPT_MS = 5 * 60 * 1000;
const NONE_KEPT_MS = 60 * 1000;
/** A reply waits no longer for it. */
const WITHIN_MS = 3_000;
const MODELS = 200;

/** Looks context sizes up. */
export class ContextSizes {
  readonly #provider: Pick<Provider, "readContextSize">;
  readonly #known = new Map<string, { size: Promise<number | undefined>; untilMs: number }>();

  constructor(provider: Pick<Provider, "readContextSize">) {
    this.#provider = provider;
  }

  /** Gives the context size of a model. Never fails, and takes about three seconds at most. */
  async of(target: UpstreamTarget, model: string): Promise<ContextSize> {
    const said = target.contextSize ?? await this.#read(target, model);
    return said === undefined ? { tokens: ASSUMED_CONTEXT_SIZE, isAssumed: true } : { tokens: said, isAssumed: false };
  }

  /** Those who ask together share one answer, which therefore ends with none of them. */
  #read(target: UpstreamTarget, model: string): Promise<number | undefined> {
    const key = `${target.kind} ${target.baseUrl} ${model}`;
    const known = this.#known.get(key);
    if (known !== undefined && known.untilMs > performance.now()) return known.size;
    const size = this.#provider.readContextSize(target, model, AbortSignal.timeout(WITHIN_MS)).catch(() => undefined);
    const entry = { size, untilMs: Infinity };
    if (this.#known.size >= MODELS) this.#known.clear();
    this.#known.set(key, entry);
    size.then((found) => entry.untilMs = performance.now() + (found === undefined ? NONE_KEPT_MS : KEPT_MS));
    return size;
  }
}
