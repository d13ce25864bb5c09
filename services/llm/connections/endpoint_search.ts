/** Finds the prefix of a server's endpoints and remembers it. */
import { listEndpointPrefixes } from "../../http/base_url.ts";
import { UpstreamError, type UpstreamErrorKind } from "../../http/upstream_error.ts";

const MAX_REMEMBERED = 200;
/** Errors that can mean a wrong path. */
const PATH_ERRORS = new Set<UpstreamErrorKind>(["not_found", "web_page", "bad_answer"]);

/** Remembers the working prefix of each base URL. */
export class EndpointSearch {
  readonly #known = new Map<string, string>();

  /**
   * Tries an endpoint under each possible prefix, starting with the one that worked before.
   *
   * Only errors that can mean a wrong path lead to the next prefix.
   *
   * @throws What `attempt` threw; `not_found` first if no prefix worked.
   */
  async find<T>(baseUrl: string, attempt: (prefix: string) => Promise<T>): Promise<T> {
    const known = this.#known.get(baseUrl);
    const prefixes = listEndpointPrefixes(baseUrl);
    if (known !== undefined) prefixes.sort((a, b) => Number(b === known) - Number(a === known));
    const failures: UpstreamError[] = [];
    for (const prefix of prefixes) {
      try {
        const result = await attempt(prefix);
        if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
        this.#known.set(baseUrl, prefix);
        return result;
      } catch (thrown) {
        if (!(thrown instanceof UpstreamError) || !PATH_ERRORS.has(thrown.kind)) throw thrown;
        failures.push(thrown);
      }
    }
    throw failures.find((failure) => failure.kind === "not_found") ?? failures[0];
  }
}
