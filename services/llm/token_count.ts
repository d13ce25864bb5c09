/** Asks a server to count tokens with its model's tokenizer (docs/protocols/llm.md#token-counting). */
import { readText } from "../http/read_body.ts";
import { headerKey } from "./auth_key.ts";
import { serverRoot } from "../http/base_url.ts";
import type { UpstreamTarget } from "./provider.ts";
import { UpstreamCall, type UpstreamHttp } from "./model_call.ts";
import { readField } from "../json/type_guards.ts";

/** One way to ask. */
interface Tokeniser {
  path: string;
  body(model: string, text: string): unknown;
  count(answer: unknown): number | undefined;
}

const TOKENISERS: Tokeniser[] = [
  {
    // llama.cpp; the model's name is read only by a server that has several.
    path: "/tokenize",
    body: (model, content) => ({ model, content, add_special: false }),
    count: (answer) =>
      Array.isArray(readField(answer, "tokens")) ? (readField(answer, "tokens") as unknown[]).length : undefined,
  },
  {
    path: "/api/extra/tokencount",
    body: (_, prompt) => ({ prompt }),
    count: (answer) => {
      const value = readField(answer, "value");
      return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
    },
  },
];

/** An answer lists its tokens; more than a million of them is no answer to what is asked here. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Requests to one server at once. */
const AT_ONCE = 8;
/** For how long a server that has no tokeniser is not asked again. */
const NONE_KEPT_MS = 10 * 60 * 1000;
/** How a server says that it does not know a path, not that it is busy or wants a key. */
const NO_SUCH_PATH = new Set([404, 405, 501]);
/** A question that tells nobody anything. */
const PROBE = "Hello";

/** Counts tokens, and remembers which server can. */
export class TokenCounts {
  readonly #http: UpstreamHttp;
  readonly #known = new Map<string, { tokeniser: Tokeniser | undefined; untilMs: number }>();

  constructor(http: UpstreamHttp) {
    this.#http = http;
  }

  /**
   * Counts the tokens of each text, without those that mark its begin.
   *
   * @returns `undefined` where the server cannot count, or failed to.
   * @throws The reason of `signal`, when that fired.
   */
  async count(
    target: UpstreamTarget,
    model: string,
    texts: string[],
    signal: AbortSignal,
  ): Promise<number[] | undefined> {
    try {
      const tokeniser = await this.#find(target, model, signal);
      if (tokeniser === undefined) return undefined;
      const counts: number[] = [];
      let next = 0;
      const work = async () => {
        while (next < texts.length) {
          const index = next++;
          const count = await this.#ask(tokeniser, target, model, texts[index]!, signal);
          if (count === undefined) throw new Error("the tokeniser is gone");
          counts[index] = count;
        }
      };
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, texts.length) }, work));
      return counts;
    } catch {
      signal.throwIfAborted();
      this.#known.delete(target.baseUrl); // another server may stand there by now
      return undefined;
    }
  }

  async #find(target: UpstreamTarget, model: string, signal: AbortSignal): Promise<Tokeniser | undefined> {
    const known = this.#known.get(target.baseUrl);
    if (known !== undefined && known.untilMs > performance.now()) return known.tokeniser;
    let found: Tokeniser | undefined;
    for (const candidate of TOKENISERS) {
      const count = await this.#ask(candidate, target, model, PROBE, signal);
      if (count === undefined || count === 0) continue;
      found = candidate;
      break;
    }
    const untilMs = found === undefined ? performance.now() + NONE_KEPT_MS : Infinity;
    this.#known.set(target.baseUrl, { tokeniser: found, untilMs });
    return found;
  }

  /** Gives `undefined` where the server does not know this way; throws where it cannot be told. */
  async #ask(
    tokeniser: Tokeniser,
    target: UpstreamTarget,
    model: string,
    content: string,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const call = new UpstreamCall(target, signal);
    const key = headerKey(target.apiKey);
    try {
      const response = await this.#http.send(call, {
        method: "POST",
        url: `${serverRoot(target.baseUrl)}${tokeniser.path}`,
        headers: { "content-type": "application/json", ...(key !== undefined && { authorization: `Bearer ${key}` }) },
        body: JSON.stringify(tokeniser.body(model, content)),
      });
      if (!response.ok) {
        if (!NO_SUCH_PATH.has(response.status)) throw await call.failed(response);
        return void await response.body?.cancel();
      }
      const text = await readText(response, MAX_BYTES);
      try {
        return tokeniser.count(JSON.parse(text));
      } catch {
        return undefined; // a web page
      }
    } finally {
      call.watch.end();
    }
  }
}
