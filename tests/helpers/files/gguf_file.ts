/** GGUF files of any size: a valid header, followed by filler. */

/** A key of the head; a list is an array of strings. */
export type GgufValue = string | number | string[];

/** Content of a file. */
export interface GgufOptions {
  /** Keys; numbers as 32-bit. */
  keys?: Record<string, GgufValue>;
  /** Dimensions of its tensors. */
  tensors?: number[][];
  /** Length of the whole file; the rest behind the head is filled. */
  sizeBytes?: number;
  version?: number;
}

const [UINT32, STRING, ARRAY] = [4, 8, 9];

/** Creates a file. */
export function ggufFile(options: GgufOptions = {}): Uint8Array<ArrayBuffer> {
  const { keys = { "general.architecture": "llama" }, tensors = [], version = 3 } = options;
  const out = new Bytes();
  out.text("GGUF").uint32(version).uint64(tensors.length).uint64(Object.keys(keys).length);
  for (const [key, value] of Object.entries(keys)) {
    out.string(key);
    if (typeof value === "number") out.uint32(UINT32).uint32(value);
    else if (typeof value === "string") out.uint32(STRING).string(value);
    else {
      out.uint32(ARRAY).uint32(STRING).uint64(value.length);
      for (const text of value) out.string(text);
    }
  }
  for (const [n, dimensions] of tensors.entries()) {
    out.string(`blk.${n}.weight`).uint32(dimensions.length);
    for (const length of dimensions) out.uint64(length);
    out.uint32(0).uint64(0);
  }
  const head = out.bytes();
  const file = new Uint8Array(options.sizeBytes ?? head.length);
  for (let n = head.length; n < file.length; n++) file[n] = (n * 31 + (n >> 8) * 17) & 255;
  file.set(head.subarray(0, file.length));
  return file;
}

/** Builds little-endian bytes. */
export class Bytes {
  readonly #parts: Uint8Array[] = [];

  text(text: string): this {
    this.#parts.push(new TextEncoder().encode(text));
    return this;
  }

  uint32(value: number): this {
    return this.#number(4, (view) => view.setUint32(0, value, true));
  }

  uint64(value: number | bigint): this {
    return this.#number(8, (view) => view.setBigUint64(0, BigInt(value), true));
  }

  string(text: string): this {
    return this.uint64(new TextEncoder().encode(text).length).text(text);
  }

  bytes(): Uint8Array<ArrayBuffer> {
    const length = this.#parts.reduce((sum, part) => sum + part.length, 0);
    const all = new Uint8Array(length);
    let at = 0;
    for (const part of this.#parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  #number(length: number, set: (view: DataView) => void): this {
    const bytes = new Uint8Array(length);
    set(new DataView(bytes.buffer));
    this.#parts.push(bytes);
    return this;
  }
}
