/**
 * Caches the plaintext of blocks and heads that were sealed or opened last. The next request usually needs the same ones, and
 * opening and decoding them would cost more than the rest of a small change.
 */
import { Buffer } from "node:buffer";

/** Characters in the cache. Their sealed bytes need about as much again: 2 MiB for Latin text. */
const MAX_CHARS = 1024 * 1024;

/** A sealed value and its version. */
export interface SealedVersion<Id> {
  id: Id;
  version: number;
  sealed: Uint8Array;
}

interface Entry {
  version: number;
  sealed: Uint8Array;
  text: string;
}

/** A cache that drops the least recently used values. */
export class PlaintextCache<Id> {
  readonly #maxChars: number;
  readonly #entries = new Map<Id, Entry>();
  #chars = 0;

  constructor(maxChars = MAX_CHARS) {
    this.#maxChars = maxChars;
  }

  /**
   * Finds the plaintext of a sealed value.
   *
   * The version and all bytes have to match, so a value that was changed on disk isn't found, nor one whose write failed.
   */
  find({ id, version, sealed }: SealedVersion<Id>): string | undefined {
    const entry = this.#entries.get(id);
    if (entry?.version !== version || Buffer.compare(entry.sealed, sealed) !== 0) return undefined;
    this.#entries.delete(id); // to the end: now the most recently used
    this.#entries.set(id, entry);
    return entry.text;
  }

  /** Stores a plaintext and replaces the version before. */
  set({ id, version, sealed }: SealedVersion<Id>, text: string): void {
    this.#drop(id);
    if (text.length > this.#maxChars) return;
    this.#entries.set(id, { version, sealed, text });
    this.#chars += text.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#chars <= this.#maxChars) break;
      this.#drop(oldest);
    }
  }

  #drop(id: Id): void {
    this.#chars -= this.#entries.get(id)?.text.length ?? 0;
    this.#entries.delete(id);
  }
}
