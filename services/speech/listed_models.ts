/** Chooses the model for a name that comes from a client made for OpenAI, which asks for models that few other servers have. */

/** How long a server's list of models is used. */
const TTL_MS = 60_000;

/** Remembers the models of one server. */
export class ListedModels {
  readonly #list: (signal: AbortSignal) => Promise<string[]>;
  #known: { baseUrl: string; ids: string[]; untilMs: number } | undefined;

  /** @param list Asks the configured server. */
  constructor(list: (signal: AbortSignal) => Promise<string[]>) {
    this.#list = list;
  }

  /**
   * Returns the named model if the server lists it, otherwise the configured one.
   *
   * @returns Empty for the server's default.
   * @throws What the list throws.
   */
  async choose(name: string, configured: { baseUrl: string; model: string }, signal: AbortSignal): Promise<string> {
    const { baseUrl, model } = configured;
    if (this.#known?.baseUrl !== baseUrl || this.#known.untilMs < performance.now()) {
      this.#known = { baseUrl, ids: await this.#list(signal), untilMs: performance.now() + TTL_MS };
    }
    const { ids } = this.#known;
    // A server without a list and without a configured model may need to be told one.
    return ids.includes(name) || (ids.length === 0 && model === "") ? name : model;
  }
}
