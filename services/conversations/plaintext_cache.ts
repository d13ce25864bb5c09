/**
 * The texts of what was sealed or opened last: blocks, and heads of conversations. Who has just saved a conversation, or been
 * answered in it, comes back to the same ones, and to open and decode them again costs more than all else that a small
 * change does.
 */
import { Buffer } from "node:buffer";

/** Characters kept. As much again goes for the sealed bytes: 2 MiB where the text is Latin. */
const MAX_CHARS = 1024 * 1024;

/** One version of something, as it lies in the database. */
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

/** Remembers what sealed bytes hold; the ones used last stay. */
export class PlaintextCache<Id> {
  readonly #maxChars: number;
  readonly #entries = new Map<Id, Entry>();
  #chars = 0;

  constructor(maxChars = MAX_CHARS) {
    this.#maxChars = maxChars;
  }

  /**
   * Gives the text of a version.
   *
   * Only for the very bytes and the version it was kept with: what was changed on disk, and a version whose write failed, is
   * not found.
   */
  find({ id, version, sealed }: SealedVersion<Id>): string | undefined {
    const entry = this.#entries.get(id);
    if (entry?.version !== version || Buffer.compare(entry.sealed, sealed) !== 0) return undefined;
    this.#entries.delete(id); // to the end of the order of use
    this.#entries.set(id, entry);
    return entry.text;
  }

  /** Remembers a version in place of the one before. */
  keep({ id, version, sealed }: SealedVersion<Id>, text: string): void {
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
