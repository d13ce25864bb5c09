/** The partial file of a download, hashed while it's written. */
import { createHash, type Hash } from "node:crypto";
import type { TransferTarget } from "./file_download.ts";

/** Size of reads, in bytes. */
const BLOCK_BYTES = 1024 * 1024;
/**
 * Size of writes, in bytes. Larger ones cost more CPU time: per byte, 1 MiB takes three times as much as 64 KiB on ext4
 * with Linux 6.18, because the kernel then looks for larger pages in its cache.
 */
const WRITE_BYTES = 64 * 1024;
/** Number of bytes after which data is synced, so that the last sync is short. */
const SYNC_EVERY_BYTES = 64 * BLOCK_BYTES;

/** Called with the number of bytes so far. */
export type OnBytes = (bytes: number) => void;

/** Creates a hash of the kind that verifies the file. */
export function createFileHash({ hash, sizeBytes }: TransferTarget): Hash {
  if (hash === "sha256") return createHash("sha256");
  return createHash("sha1").update(`blob ${sizeBytes}\0`); // Like git's ID of a blob
}

/** Creates a buffer for {@link hashFile}. */
export function createBlock(): Uint8Array {
  return new Uint8Array(BLOCK_BYTES);
}

/**
 * Hashes a file from its current position to its end.
 *
 * @returns Number of bytes hashed.
 * @throws The reason of `signal`.
 */
export async function hashFile(
  file: Deno.FsFile,
  hash: Hash,
  block: Uint8Array,
  signal: AbortSignal,
  onBytes: OnBytes,
): Promise<number> {
  let bytes = 0;
  for (let count = await file.read(block); count !== null; count = await file.read(block)) {
    signal.throwIfAborted();
    hash.update(block.subarray(0, count));
    onBytes(bytes += count);
  }
  return bytes;
}

/** An open part file. Writes block the thread, so only use it in Workers. */
export class PartFile {
  readonly target: TransferTarget;
  readonly #file: Deno.FsFile;
  /** A second handle of the same file, so that writes don't wait for a sync. */
  readonly #syncFile: Deno.FsFile;
  /** Buffer for all attempts. */
  readonly #block = createBlock();
  #hash: Hash;
  #unsynced = 0;
  #syncing = Promise.resolve();
  /** Size of the file. */
  bytes = 0;
  /** Number of restarts. */
  generation = 0;

  private constructor(target: TransferTarget, file: Deno.FsFile, syncFile: Deno.FsFile) {
    this.target = target;
    this.#file = file;
    this.#syncFile = syncFile;
    this.#hash = createFileHash(target);
  }

  /**
   * Opens or creates a partial file and hashes its content, because the state of a hash can't be stored. Empties a file
   * that is longer than the target.
   */
  static async open(target: TransferTarget, signal: AbortSignal, onBytes: OnBytes): Promise<PartFile> {
    const file = await Deno.open(target.path, { read: true, write: true, create: true, mode: 0o600 });
    let part: PartFile | undefined;
    try {
      part = new PartFile(target, file, await Deno.open(target.path, { write: true }));
      if ((await file.stat()).size > target.sizeBytes) await file.truncate(0);
      else part.bytes = await hashFile(file, part.#hash, part.#block, signal, onBytes);
    } catch (error) {
      (part ?? file).close();
      throw error;
    }
    return part;
  }

  /** Empties the file. */
  async restart(): Promise<void> {
    await this.#file.truncate(0);
    await this.#file.seek(0, Deno.SeekMode.Start);
    this.#hash = createFileHash(this.target);
    this.bytes = 0;
    this.generation++;
  }

  /** Returns a writer that appends. Use one at a time. @param onBytes Called after each write. */
  openWriter(onBytes: OnBytes): BlockWriter {
    return new BlockWriter(this.#block, (bytes) => {
      this.#append(bytes);
      onBytes(this.bytes);
    });
  }

  /** Waits for the running sync. @throws Its error. */
  async settle(): Promise<void> {
    await this.#syncing;
  }

  /** Syncs the file and returns its hash in hex. Call it only once. */
  async finish(): Promise<string> {
    await this.#file.sync();
    return this.#hash.digest("hex");
  }

  close(): void {
    this.#file.close();
    this.#syncFile.close();
  }

  #append(bytes: Uint8Array): void {
    for (let written = 0; written < bytes.length;) {
      const count = this.#file.writeSync(bytes.subarray(written, written + WRITE_BYTES));
      this.#hash.update(bytes.subarray(written, written + count)); // Only what was written
      this.bytes += count;
      written += count;
    }
    this.#unsynced += bytes.length;
    if (this.#unsynced < SYNC_EVERY_BYTES) return;
    this.#unsynced = 0;
    this.#syncing = this.#syncing.then(() => this.#syncFile.syncData());
    this.#syncing.catch(() => {}); // `settle` reports it.
  }
}

/** Collects bytes in a block and appends them when it's full, or on `flush`. */
class BlockWriter {
  readonly #block: Uint8Array;
  readonly #append: (bytes: Uint8Array) => void;
  /** Range of the block that isn't written yet. A read into the space after it may be pending. */
  #from = 0;
  #to = 0;

  constructor(block: Uint8Array, append: (bytes: Uint8Array) => void) {
    this.#block = block;
    this.#append = append;
  }

  /** Space for the next bytes; never empty. */
  get freeSpace(): Uint8Array {
    return this.#block.subarray(this.#to);
  }

  /** Number of bytes in the block that aren't in the file yet. */
  get unwrittenBytes(): number {
    return this.#to - this.#from;
  }

  /** Adds the first `count` bytes of `freeSpace`. @throws The error of a write. */
  commit(count: number): void {
    this.#to += count;
    if (this.#to < this.#block.length) return;
    this.flush();
    this.#from = this.#to = 0;
  }

  /** Appends the collected bytes. @throws The error of a write. */
  flush(): void {
    if (this.#from === this.#to) return;
    const bytes = this.#block.subarray(this.#from, this.#to);
    this.#from = this.#to;
    this.#append(bytes);
  }
}
