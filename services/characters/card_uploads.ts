/** Receives uploaded card files. Possible CHARX files are written to disk, others are small and kept in memory. */
import { join } from "node:path";
import { AppError } from "../errors.ts";
import { joinBytes, removeFile, writePieces } from "../storage/atomic_file.ts";
import { isCharx, MAX_CHARX_BYTES } from "./charx/charx_format.ts";

/** Enough bytes to recognize a CHARX. */
const SIGNATURE_BYTES = 4;

/** Receives card files. */
export class CardUploads {
  readonly #folder: string;

  /** @param folder For temporary files. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Removes temporary files of an earlier process. */
  async clear(): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true }).catch(() => {});
  }

  /**
   * Receives a file and passes its bytes, or its path, to `use`. The path is only valid while `use` runs.
   *
   * @param maxBytes Limit for files in memory. A CHARX may have 512 MiB.
   * @throws {AppError} `too_large`, `storage_full`; errors of `content` and `use`
   */
  async receive<T>(
    content: AsyncIterable<Uint8Array>,
    maxBytes: number,
    use: (file: Uint8Array<ArrayBuffer> | string) => Promise<T>,
  ): Promise<T> {
    const pieces = content[Symbol.asyncIterator]();
    const head: Uint8Array[] = [];
    let size = 0;
    let isEnd = false;
    while (!isEnd && size < SIGNATURE_BYTES) {
      const next = await pieces.next();
      isEnd = next.done === true;
      if (!next.done) size += head[head.push(next.value) - 1]!.length;
    }
    const whole = prepend(head, pieces);
    if (isCharx(joinBytes(head))) return await this.withTemporaryFile(limitBytes(whole, MAX_CHARX_BYTES), use);
    return await use(joinBytes(await Array.fromAsync(limitBytes(whole, maxBytes))));
  }

  /** Writes a temporary file that exists while `use` runs. @throws {AppError} like `receive` */
  async withTemporaryFile<T>(
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

async function* prepend(
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

async function* limitBytes(pieces: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > maxBytes) {
      throw new AppError("too_large", `The card file is larger than the ${maxBytes} bytes it may have`);
    }
    yield piece;
  }
}
