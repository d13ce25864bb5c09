/** Card files on their way in. What may be a CHARX lies on disk until it was imported; the rest is small and held. */
import { join } from "node:path";
import { AppError } from "../errors.ts";
import { joinedBytes } from "../storage/concat_bytes.ts";
import { writePieces } from "../storage/file_pieces.ts";
import { isCharx, MAX_CHARX_BYTES } from "./charx/charx_format.ts";
import { removeFile } from "../storage/plain_files.ts";

/** As many bytes as tell a CHARX. */
const SIGNATURE_BYTES = 4;

/** Takes files as they come. */
export class ArrivingCards {
  readonly #folder: string;

  /** @param folder Of files on their way. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Removes what an earlier process left. */
  async clear(): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true }).catch(() => {});
  }

  /**
   * Takes a file and hands it on: its bytes, or where it lies for as long as `use` takes.
   *
   * @param maxBytes Of a file that is held. A CHARX may have 512 MiB.
   * @throws {AppError} `too_large`, `storage_full`; what `content` and `use` throw
   */
  async take<T>(
    content: AsyncIterable<Uint8Array>,
    maxBytes: number,
    use: (file: Uint8Array<ArrayBuffer> | string) => Promise<T>,
  ): Promise<T> {
    const pieces = content[Symbol.asyncIterator]();
    const begun: Uint8Array[] = [];
    let size = 0;
    let isEnd = false;
    while (!isEnd && size < SIGNATURE_BYTES) {
      const next = await pieces.next();
      isEnd = next.done === true;
      if (!next.done) size += begun[begun.push(next.value) - 1]!.length;
    }
    const whole = continued(begun, pieces);
    if (isCharx(joinedBytes(begun))) return await this.keep(limited(whole, MAX_CHARX_BYTES), use);
    return await use(joinedBytes(await Array.fromAsync(limited(whole, maxBytes))));
  }

  /** Puts a file on disk and hands on where it lies, for as long as `use` takes. @throws {AppError} as `take` */
  async keep<T>(
    content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    use: (path: string) => Promise<T>,
  ): Promise<T> {
    await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, crypto.randomUUID());
    try {
      await writePieces(path, content);
      return await use(path);
    } finally {
      await removeFile(path);
    }
  }
}

async function* continued(
  begun: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* begun;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* limited(pieces: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > maxBytes) {
      throw new AppError("too_large", `The card file is larger than the ${maxBytes} bytes it may have`);
    }
    yield piece;
  }
}
