/**
 * Parses the header of a GGUF file. Model files are untrusted, so every count and length is checked against the file
 * size, and only a few values are in memory.
 *
 * @see https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 * @see docs/decisions/0035-gguf-headers.md
 */

/** The values that Parlor uses. All are `undefined` if the header is broken, hostile or of an unknown version. */
export interface GgufHeader {
  architecture?: string;
  name?: string;
  /** As declared in the file, such as `"8B"`. */
  sizeLabel?: string;
  /** Number of weights in this file; for a shard, only its own. */
  parameters?: number;
  contextSize?: number;
  layers?: number;
  /** Whether the file has a chat template. Base models have none: they continue text, and don't answer. */
  hasChatTemplate?: boolean;
  /** From `general.file_type`. */
  quantization?: string;
}

/** Maximum size of a header. The largest vocabularies with their merges have about 15 MB. */
const MAX_HEADER_BYTES = 64 * 1024 * 1024;
const BUFFER_BYTES = 256 * 1024;
const MAX_KEYS = 10_000;
const MAX_KEY_BYTES = 65_535;
const MAX_USED_TEXT_BYTES = 1024;
const MAX_TENSORS = 1_000_000;
const MAX_DIMENSIONS = 8;
const MAX_NESTING = 4;
const CHAT_TEMPLATE = "tokenizer.chat_template";

enum Type {
  Uint8,
  Int8,
  Uint16,
  Int16,
  Uint32,
  Int32,
  Float32,
  Bool,
  String,
  Array,
  Uint64,
  Int64,
  Float64,
}

const SIZES: Partial<Record<Type, number>> = {
  [Type.Uint8]: 1,
  [Type.Int8]: 1,
  [Type.Uint16]: 2,
  [Type.Int16]: 2,
  [Type.Uint32]: 4,
  [Type.Int32]: 4,
  [Type.Float32]: 4,
  [Type.Bool]: 1,
  [Type.Uint64]: 8,
  [Type.Int64]: 8,
  [Type.Float64]: 8,
};

/** Values of `llama_ftype` in llama.cpp's llama.h. */
const FILE_TYPES: Record<number, string> = {
  0: "F32",
  1: "F16",
  2: "Q4_0",
  3: "Q4_1",
  7: "Q8_0",
  8: "Q5_0",
  9: "Q5_1",
  10: "Q2_K",
  11: "Q3_K_S",
  12: "Q3_K_M",
  13: "Q3_K_L",
  14: "Q4_K_S",
  15: "Q4_K_M",
  16: "Q5_K_S",
  17: "Q5_K_M",
  18: "Q6_K",
  19: "IQ2_XXS",
  20: "IQ2_XS",
  21: "Q2_K_S",
  22: "IQ3_XS",
  23: "IQ3_XXS",
  24: "IQ1_S",
  25: "IQ4_NL",
  26: "IQ3_S",
  27: "IQ3_M",
  28: "IQ2_S",
  29: "IQ2_M",
  30: "IQ4_XS",
  31: "IQ1_M",
  32: "BF16",
  36: "TQ1_0",
  37: "TQ2_0",
  38: "MXFP4",
};

/**
 * Reads the header of a file.
 *
 * @returns `undefined` if it isn't a GGUF file
 * @throws The runtime's error if the file can't be read.
 */
export async function readGgufHeader(path: string): Promise<GgufHeader | undefined> {
  using file = await Deno.open(path);
  const { size } = await file.stat();
  const reader = new HeaderReader(file, size);
  try {
    if (await reader.readText(4) !== "GGUF") return undefined;
  } catch (error) {
    if (error instanceof MalformedHeader) return undefined; // Shorter than 4 bytes
    throw error;
  }
  try {
    return await parse(reader);
  } catch (error) {
    if (error instanceof MalformedHeader) return {};
    throw error;
  }
}

class MalformedHeader extends Error {}

async function parse(reader: HeaderReader): Promise<GgufHeader> {
  const version = await reader.readUint32();
  if (version !== 2 && version !== 3) throw new MalformedHeader(); // Version 1 was short-lived; big-endian files read as 50331648.
  const tensors = await reader.count(MAX_TENSORS);
  const keys = await reader.count(MAX_KEYS);
  const found = new Map<string, string | number>();
  let hasChatTemplate = false;
  for (let n = 0; n < keys; n++) {
    const key = await reader.readString(MAX_KEY_BYTES);
    hasChatTemplate ||= key === CHAT_TEMPLATE;
    const value = await readValue(reader, await reader.readUint32(), isUsedKey(key));
    if (value !== undefined && !found.has(key)) found.set(key, value);
  }
  let parameters = 0;
  for (let n = 0; n < tensors; n++) {
    await reader.skipString();
    const dimensions = await reader.readUint32();
    if (dimensions > MAX_DIMENSIONS) throw new MalformedHeader();
    let elements = 1;
    for (let d = 0; d < dimensions; d++) elements *= await reader.count(Number.MAX_SAFE_INTEGER);
    parameters += elements;
    await reader.skip(4 + 8); // Type and offset
  }
  const architecture = toText(found.get("general.architecture"));
  const fileType = toNumber(found.get("general.file_type"));
  return {
    architecture,
    name: toText(found.get("general.name")),
    sizeLabel: toText(found.get("general.size_label")),
    parameters: Number.isSafeInteger(parameters) && parameters > 0 ? parameters : undefined,
    contextSize: toNumber(found.get(`${architecture}.context_length`)),
    layers: toNumber(found.get(`${architecture}.block_count`)),
    hasChatTemplate,
    quantization: fileType === undefined ? undefined : FILE_TYPES[fileType],
  };
}

function isUsedKey(key: string): boolean {
  return /^general\.(architecture|name|size_label|file_type)$/.test(key) || /\.(context_length|block_count)$/.test(key);
}

async function readValue(
  reader: HeaderReader,
  type: number,
  isUsed: boolean,
  depth = 0,
): Promise<string | number | undefined> {
  if (type === Type.String) {
    if (isUsed) return await reader.readString(MAX_USED_TEXT_BYTES);
    await reader.skipString();
    return undefined;
  }
  if (type === Type.Array) {
    if (depth === MAX_NESTING) throw new MalformedHeader();
    const inner = await reader.readUint32();
    const count = await reader.count(MAX_HEADER_BYTES);
    const size = SIZES[inner as Type];
    if (size !== undefined) await reader.skip(size * count);
    else if (inner === Type.String) await reader.skipStrings(count);
    else for (let n = 0; n < count; n++) await readValue(reader, inner, false, depth + 1);
    return undefined;
  }
  const size = SIZES[type as Type];
  if (size === undefined) throw new MalformedHeader();
  if (isUsed && type === Type.Uint32) return await reader.readUint32();
  if (isUsed && type === Type.Uint64) return await reader.count(Number.MAX_SAFE_INTEGER);
  await reader.skip(size);
  return undefined;
}

function toText(value: string | number | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function toNumber(value: string | number | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** Reads forward through a buffer. Reading beyond the end of the file or the limit throws MalformedHeader. */
class HeaderReader {
  readonly #file: Deno.FsFile;
  readonly #limit: number;
  readonly #buffer = new Uint8Array(BUFFER_BYTES);
  readonly #view = new DataView(this.#buffer.buffer);
  #at = 0;
  #end = 0;
  /** File offset of the buffer's end. */
  #position = 0;

  constructor(file: Deno.FsFile, sizeBytes: number) {
    this.#file = file;
    this.#limit = Math.min(sizeBytes, MAX_HEADER_BYTES);
  }

  async readUint32(): Promise<number> {
    await this.#readAhead(4);
    const value = this.#view.getUint32(this.#at, true);
    this.#at += 4;
    return value;
  }

  /** Reads a 64-bit count. */
  async count(max: number): Promise<number> {
    await this.#readAhead(8);
    const value = this.#view.getBigUint64(this.#at, true);
    this.#at += 8;
    if (value > BigInt(max)) throw new MalformedHeader();
    return Number(value);
  }

  async readString(maxBytes: number): Promise<string> {
    return await this.readText(await this.count(maxBytes));
  }

  async readText(bytes: number): Promise<string> {
    await this.#readAhead(bytes);
    const text = new TextDecoder().decode(this.#buffer.subarray(this.#at, this.#at + bytes));
    this.#at += bytes;
    return text;
  }

  async skipString(): Promise<void> {
    await this.skip(await this.count(MAX_HEADER_BYTES));
  }

  /** Skips strings. Those inside the buffer need no await each: vocabularies have hundreds of thousands. */
  async skipStrings(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      while (n < count && this.#end - this.#at >= 8) {
        const length = Number(this.#view.getBigUint64(this.#at, true));
        if (length > this.#end - this.#at - 8) break;
        this.#at += 8 + length;
        n++;
      }
      if (n < count) await this.skipString();
    }
  }

  async skip(bytes: number): Promise<void> {
    const inBuffer = this.#end - this.#at;
    if (bytes <= inBuffer) {
      this.#at += bytes;
      return;
    }
    this.#position += bytes - inBuffer;
    if (this.#position > this.#limit) throw new MalformedHeader();
    await this.#file.seek(this.#position, Deno.SeekMode.Start);
    this.#at = this.#end = 0;
  }

  async #readAhead(bytes: number): Promise<void> {
    if (this.#end - this.#at >= bytes) return;
    this.#buffer.copyWithin(0, this.#at, this.#end);
    this.#end -= this.#at;
    this.#at = 0;
    while (this.#end < bytes) {
      const free = Math.min(this.#buffer.length - this.#end, this.#limit - this.#position);
      const count = free > 0 ? await this.#file.read(this.#buffer.subarray(this.#end, this.#end + free)) : null;
      if (count === null) throw new MalformedHeader();
      this.#end += count;
      this.#position += count;
    }
  }
}
