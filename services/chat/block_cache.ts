/**
 * The texts of the blocks that were written or opened last. Who has just saved a conversation, or been answered in it, comes
 * back to the same blocks, and to open and decode them again costs more than all else that a small change does.
 */
import { Buffer } from "node:buffer";

/** Characters kept. As much again goes for the sealed bytes: 2 MiB where the text is Latin. */
const MAX_CHARS = 1024 * 1024;

interface Entry {
  sealed: Uint8Array;
  text: string;
}

/** Remembers what sealed bytes hold; the ones used last stay. */
export class BlockCache {
  readonly #maxChars: number;
  readonly #entries = new Map<number, Entry>();
  #chars = 0;

  constructor(maxChars = MAX_CHARS) {
    this.#maxChars = maxChars;
  }

  /**
   * Gives the text of a block.
   *
   * Only for the very bytes it was kept with: what was changed on disk, and a version whose write failed, is not found.
   */
  find({ id, sealed }: { id: number; sealed: Uint8Array }): string | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined || Buffer.compare(entry.sealed, sealed) !== 0) return undefined;
    this.#entries.delete(id); // to the end of the order of use
    this.#entries.set(id, entry);
    return entry.text;
  }

  /** Remembers a block in place of its earlier version. */
  keep({ id, sealed }: { id: number; sealed: Uint8Array }, text: string): void {
    this.#drop(id);
    if (text.length > this.#maxChars) return;
    this.#entries.set(id, { sealed, text });
    this.#chars += text.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#chars <= this.#maxChars) break;
      this.#drop(oldest);
    }
  }

  #drop(id: number): void {
    this.#chars -= this.#entries.get(id)?.text.length ?? 0;
    this.#entries.delete(id);
  }
}
