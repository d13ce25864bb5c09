/** A file on disk that a child of the sandbox reads piece by piece, through Parlor. Both sides of it are here. */
import type { RandomAccessFile } from "../../storage/atomic_file.ts";
import type { SandboxHost } from "./child.ts";
import type { SandboxFunction } from "./sandbox.ts";

/** Maximum size of a piece. */
const PIECE_BYTES = 1024 * 1024;

/** The position and maximum size of a piece. */
interface PieceRequest {
  at: number;
  length: number;
}

/** Returns the function `file`, by which a job reads an open file. */
export function offerFile(file: Deno.FsFile): Record<"file", SandboxFunction> {
  return {
    async file(value) {
      const { at, length } = (value ?? {}) as Partial<PieceRequest>;
      const position = Number.isSafeInteger(at) && at! >= 0 ? at! : 0;
      const piece = new Uint8Array(Math.max(0, Math.min(Number(length) || 0, PIECE_BYTES)));
      await file.seek(position, Deno.SeekMode.Start);
      const count = await file.read(piece);
      return { bytes: [piece.subarray(0, count ?? 0)] };
    },
  };
}

/** The child's side of `offerFile`. */
export class RemoteFile implements RandomAccessFile {
  #at = 0;

  constructor(readonly host: SandboxHost, readonly sizeBytes: number) {}

  /** Returns the size. */
  stat(): Promise<{ size: number }> {
    return Promise.resolve({ size: this.sizeBytes });
  }

  /** Sets the position of the next read. @param whence Only from the start. */
  seek(offset: number, _whence: Deno.SeekMode): Promise<number> {
    this.#at = offset;
    return Promise.resolve(offset);
  }

  /** Reads at most a megabyte. @returns The number of bytes; `null` at the end. */
  async read(into: Uint8Array): Promise<number | null> {
    if (into.length === 0) return 0;
    const request: PieceRequest = { at: this.#at, length: into.length };
    const [piece] = (await this.host.call("file", request)).bytes;
    if (piece === undefined || piece.length === 0) return null;
    into.set(piece);
    this.#at += piece.length;
    return piece.length;
  }
}
