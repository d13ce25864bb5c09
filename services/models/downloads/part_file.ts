/** The part file of a download: its bytes, written and hashed as they come. What they are worth is for others to say. */
import { createHash, type Hash } from "node:crypto";
import type { TransferTarget } from "./download_protocol.ts";

/** Bytes read and hashed at a time. */
const BLOCK_BYTES = 1024 * 1024;
/**
 * Handed to the system as one. For larger writes it looks for larger pieces of memory to keep them in: 1 MiB at a time takes
 * three times the CPU time of 64 KiB on ext4 of Linux 6.18, and each write of its own thread another half.
 */
const WRITE_BYTES = 64 * 1024;
/** After so many bytes the system is asked to bring them to the disk, so that the last sync is short. */
const SYNC_EVERY_BYTES = 64 * BLOCK_BYTES;

/** Told how many bytes are there. */
export type OnBytes = (bytes: number) => void;

/** Gives a hash of the kind that the target is checked by. */
export function newHash({ hash, sizeBytes }: TransferTarget): Hash {
  if (hash === "sha256") return createHash("sha256");
  return createHash("sha1").update(`blob ${sizeBytes}\0`); // git's object id of a blob
}

/** Gives room for {@link hashFile}. */
export function newBlock(): Uint8Array {
  return new Uint8Array(BLOCK_BYTES);
}

/** Hashes a file from where it stands to its end. @returns Its bytes. Throws the signal's reason. */
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

/** An open part file, for a Worker: writing waits for the disk, and nothing else goes on meanwhile. */
export class PartFile {
  readonly target: TransferTarget;
  readonly #file: Deno.FsFile;
  /** The same file: calls on one handle follow one another, and writing is not to wait for a sync. */
  readonly #syncFile: Deno.FsFile;
  /** The one block; used again for every try. */
  readonly #block = newBlock();
  #hash: Hash;
  #unsynced = 0;
  #syncing = Promise.resolve();
  /** What it holds. */
  bytes = 0;
  /** Moves when it begins anew. */
  generation = 0;

  private constructor(target: TransferTarget, file: Deno.FsFile, syncFile: Deno.FsFile) {
    this.target = target;
    this.#file = file;
    this.#syncFile = syncFile;
    this.#hash = newHash(target);
  }

  /**
   * Opens or makes it, and hashes what it holds: the state of a running hash cannot be kept over a restart. One that is
   * too long begins anew.
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

  /** Drops what it holds. */
  async restart(): Promise<void> {
    await this.#file.truncate(0);
    await this.#file.seek(0, Deno.SeekMode.Start);
    this.#hash = newHash(this.target);
    this.bytes = 0;
    this.generation++;
  }

  /** Appends what comes. One taker at a time. @param onBytes Told what it holds. */
  take(onBytes: OnBytes): BlockTaker {
    return new BlockTaker(this.#block, (bytes) => {
      this.#append(bytes);
      onBytes(this.bytes);
    });
  }

  /** Waits for what the system was asked to bring to the disk. @throws What that threw. */
  async settle(): Promise<void> {
    await this.#syncing;
  }

  /** Brings it to the disk for good. @returns The hash of its bytes, as hex. To be called once. */
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
      this.#hash.update(bytes.subarray(written, written + count)); // what is not in the file is not hashed either
      this.bytes += count;
      written += count;
    }
    this.#unsynced += bytes.length;
    if (this.#unsynced < SYNC_EVERY_BYTES) return;
    this.#unsynced = 0;
    this.#syncing = this.#syncing.then(() => this.#syncFile.syncData());
    this.#syncing.catch(() => {}); // looked at by `settle`
  }
}

/** Gathers what comes in a block, and appends that when it is full or told to. */
class BlockTaker {
  readonly #block: Uint8Array;
  readonly #append: (bytes: Uint8Array) => void;
  /** Of what is in the block and was not appended yet; a read into the room behind it may be under way. */
  #from = 0;
  #to = 0;

  constructor(block: Uint8Array, append: (bytes: Uint8Array) => void) {
    this.#block = block;
    this.#append = append;
  }

  /** Where the next bytes belong; never empty. */
  get room(): Uint8Array {
    return this.#block.subarray(this.#to);
  }

  /** Bytes taken that are not in the file. */
  get waitingBytes(): number {
    return this.#to - this.#from;
  }

  /** So many bytes are in the room. @throws What writing threw. */
  took(count: number): void {
    this.#to += count;
    if (this.#to < this.#block.length) return;
    this.flush();
    this.#from = this.#to = 0;
  }

  /** Appends what waits. @throws What writing threw. */
  flush(): void {
    if (this.#from === this.#to) return;
    const bytes = this.#block.subarray(this.#from, this.#to);
    this.#from = this.#to;
    this.#append(bytes);
  }
}
