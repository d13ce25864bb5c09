/** Cache of opened document bodies, least recently used first out. */

const MAX_BYTES = 32 * 1024 * 1024;

interface Entry<Body> {
  version: number;
  body: Body;
  /** About the length of its JSON. */
  bytes: number;
}

/** Bodies by id, one version each. */
export class BodyCache<Body> {
  readonly #entries = new Map<string, Entry<Body>>();
  #bytes = 0;

  /** Returns the body of exactly this version. */
  get(id: string, version: number): Body | undefined {
    const entry = this.#entries.get(id);
    if (entry?.version !== version) return undefined;
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    return entry.body;
  }

  set(id: string, entry: Entry<Body>): void {
    this.delete(id);
    if (entry.bytes > MAX_BYTES) return;
    this.#entries.set(id, entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= MAX_BYTES) break;
      this.delete(oldest);
    }
  }

  delete(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#bytes -= entry.bytes;
  }
}
