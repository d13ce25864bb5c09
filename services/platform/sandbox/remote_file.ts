/** A file on disk that a child of the sandbox reads piece by piece, through Parlor. Both sides of it are here. */
import type { RandomAccessFile } from "../../storage/atomic_file.ts";
import type { SandboxHost } from "./child.ts";
import type { SandboxFunction } from "./sandbox.ts";

/** Maximum size of a piece. */
export const PIECE_BYTES = 1024 * 1024;
/** Minimum size of a piece: what follows is usually read next, and each request takes a round trip. */
const AHEAD_BYTES = 64 * 1024;

/** The position and maximum size of a piece. */
interface PieceRequest {
  at: number;
  length: number;
  /** Absent if the job has only one file. */
  id?: string;
}

/** Returns the function `file`, by which a job reads an open file. */
export function offerFile(file: Deno.FsFile): Record<"file", SandboxFunction> {
  return { file: async (value) => ({ bytes: [await readPiece(file, value)] }) };
}

/** Reads the piece that a child has asked for. */
export async function readPiece(file: Deno.FsFile, request: unknown): Promise<Uint8Array> {
  const { at, length } = (request ?? {}) as Partial<PieceRequest>;
  const position = Number.isSafeInteger(at) && at! >= 0 ? at! : 0;
  const piece = new Uint8Array(Math.max(0, Math.min(Number(length) || 0, PIECE_BYTES)));
  await file.seek(position, Deno.SeekMode.Start);
  return piece.subarray(0, await file.read(piece) ?? 0);
}

/** The child's side of `offerFile`. */
export class RemoteFile implements RandomAccessFile {
  #at = 0;
  /** The last piece, and its position. */
  #piece: Uint8Array = new Uint8Array();
  #pieceAt = 0;

  /** @param id Names the file, if the job has several. */
  constructor(readonly host: SandboxHost, readonly sizeBytes: number, readonly id?: string) {}

  /** Returns the size. */
  stat(): Promise<{ size: number }> {
    return Promise.resolve({ size: this.sizeBytes });
  }

  /** Sets the position of the next read. @param whence Only from the start. */
  seek(offset: number, _whence: Deno.SeekMode): Promise<number> {
    this.#at = offset;
    return Promise.resolve(offset);
  }

  /**
   * Reads at most a megabyte.
   *
   * @returns The number of bytes; `null` at the end.
   * @throws {Error} if Parlor can't read the file.
   */
  async read(into: Uint8Array): Promise<number | null> {
    if (into.length === 0) return 0;
    const behind = this.#at - this.#pieceAt;
    if (behind < 0 || behind >= this.#piece.length) {
      const request: PieceRequest = { at: this.#at, length: Math.max(into.length, AHEAD_BYTES), id: this.id };
      const { value, bytes: [piece] } = await this.host.call("file", request);
      if (piece === undefined) throw new Error(String(value));
      [this.#piece, this.#pieceAt] = [piece, this.#at];
    }
    const found = this.#piece.subarray(this.#at - this.#pieceAt).subarray(0, into.length);
    if (found.length === 0) return null;
    into.set(found);
    this.#at += found.length;
    return found.length;
  }
}
