/** Finds under which prefix a server's endpoints lie, and remembers it. */
import { endpointPrefixes } from "../../http/base_url.ts";
import { UpstreamError } from "../../http/upstream_error.ts";

const MAX_REMEMBERED = 200;

/** Remembers, per base URL, the prefix that worked. */
export class EndpointSearch {
  readonly #known = new Map<string, string>();

  /**
   * Tries an endpoint under each possible prefix, the one that worked before first.
   *
   * Only answers that may mean a wrong path (not found, a web page, JSON of another shape) lead on to the next one.
   *
   * @throws What `attempt` threw: the most telling failure when none worked.
   */
  async find<T>(baseUrl: string, attempt: (prefix: string) => Promise<T>): Promise<T> {
    const known = this.#known.get(baseUrl);
    const prefixes = endpointPrefixes(baseUrl);
    if (known !== undefined) prefixes.sort((a, b) => Number(b === known) - Number(a === known));
    const failures: UpstreamError[] = [];
    for (const prefix of prefixes) {
      try {
        const result = await attempt(prefix);
        this.#remember(baseUrl, prefix);
        return result;
      } catch (thrown) {
        if (!(thrown instanceof UpstreamError) || !mayBeWrongPath(thrown)) throw thrown;
        failures.push(thrown);
      }
    }
    throw failures.find((failure) => failure.kind === "not_found") ?? failures[0];
  }

  #remember(baseUrl: string, prefix: string): void {
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    this.#known.set(baseUrl, prefix);
  }
}

function mayBeWrongPath(error: UpstreamError): boolean {
  return error.kind === "not_found" || error.kind === "web_page" || error.kind === "bad_answer";
}
