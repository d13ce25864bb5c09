/** Decodes UTF-8 that arrives in reads of any size. */

/** Decodes one body. A read may end inside a character. */
export class ReadDecoder {
  // ignoreBOM: a byte order mark inside the text is part of it, even at the start of a read.
  readonly #whole = new TextDecoder("utf-8", { ignoreBOM: true });
  #split: TextDecoder | undefined;

  /** Decodes one read. A read whose last byte is ASCII ends between two characters; without state that is several times faster. */
  decode(bytes: Uint8Array): string {
    const endsWithAscii = bytes.length === 0 || bytes[bytes.length - 1]! < 0x80;
    if (this.#split === undefined) {
      if (endsWithAscii) return this.#whole.decode(bytes);
      this.#split = new TextDecoder("utf-8", { ignoreBOM: true });
    }
    const text = this.#split.decode(bytes, { stream: true });
    // After an ASCII byte, the decoder holds nothing back.
    if (bytes.length > 0 && endsWithAscii) this.#split = undefined;
    return text;
  }

  /** Returns what an unfinished character at the end decodes to. */
  end(): string {
    return this.#split?.decode() ?? "";
  }
}
