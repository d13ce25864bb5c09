/** Bytes in memory that can be read like a file, for the ZIP reader. */
import type { RandomAccessFile } from "../../storage/file_pieces.ts";

/** A file in memory. */
export class MemoryFile implements RandomAccessFile {
  #at = 0;

  constructor(readonly bytes: Uint8Array) {}

  stat(): Promise<{ size: number }> {
    return Promise.resolve({ size: this.bytes.length });
  }

  seek(offset: number): Promise<number> {
    return Promise.resolve(this.#at = offset);
  }

  read(into: Uint8Array): Promise<number | null> {
    const piece = this.bytes.subarray(this.#at, this.#at + into.length);
    into.set(piece);
    this.#at += piece.length;
    return Promise.resolve(piece.length === 0 && into.length > 0 ? null : piece.length);
  }
}
