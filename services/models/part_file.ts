/** The part file of a download: its bytes, written and hashed as they come. What they are worth is for others to say. */
import { createHash, type Hash } from "node:crypto";
import type { TransferTarget } from "./transfer_protocol.ts";

/** Read, hashed and written as one; two are in use at a time. BENCH.md, "What was found on the way". */
const BLOCK_BYTES = 1024 * 1024;
/** After so many bytes the system is asked to bring them to the disk, so that the last sync is short. */
const SYNC_EVERY_BYTES = 64 * BLOCK_BYTES;

/** Told how many bytes are there. */
export type OnBytes = (bytes: number) => void;

/** Gives a hash of the kind that the target is checked by. */
export function newHash({ hash, sizeBytes }: TransferTarget): Hash {
  if (hash === "sha256") return createHash("sha256");
  return createHash("sha1").update(`blob ${sizeBytes}\0`); // git's object id of a blob
}

/** Hashes a file from where it stands to its end. @returns Its bytes. Throws the signal's reason. */
export async function hashFile(file: Deno.FsFile, hash: Hash, signal: AbortSignal, onBytes: OnBytes): Promise<number> {
  const block = new Uint8Array(BLOCK_BYTES);
  let bytes = 0;
  for (let count = await file.read(block); count !== null; count = await file.read(block)) {
    signal.throwIfAborted();
    hash.update(block.subarray(0, count));
    onBytes(bytes += count);
  }
  return bytes;
}

/** An open part file. */
export class PartFile {
  readonly target: TransferTarget;
  readonly #file: Deno.FsFile;
  /** The same file: calls on one handle follow one another, and writing is not to wait for the disk. */
  readonly #syncFile: Deno.FsFile;
  #hash: Hash;
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
      else part.bytes = await hashFile(file, part.#hash, signal, onBytes);
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

  /** Appends what comes. One taker at a time. */
  take(onBytes: OnBytes): BlockTaker {
    const writer = new PartWriter(this.#file, this.#syncFile);
    return new BlockTaker((bytes) => {
      const written = writer.write(bytes);
      this.#hash.update(bytes);
      onBytes(this.bytes += bytes.length);
      return written;
    }, () => writer.end());
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
}

/** Gathers what comes in blocks: one is written while the next is filled. */
export class BlockTaker {
  readonly #append: (bytes: Uint8Array) => Promise<void>;
  readonly #end: () => Promise<void>;
  #block = new Block();
  #other = new Block();
  /** Of what is in the block and not on its way to the disk. */
  #from = 0;
  #to = 0;

  constructor(append: (bytes: Uint8Array) => Promise<void>, end: () => Promise<void>) {
    this.#append = append;
    this.#end = end;
  }

  /** Where the next bytes belong; never empty. */
  get room(): Uint8Array {
    return this.#block.bytes.subarray(this.#to);
  }

  /** Bytes taken that are not on their way to the disk. */
  get waitingBytes(): number {
    return this.#to - this.#from;
  }

  /** So many bytes are in the room. @throws What writing the block before threw. */
  async took(count: number): Promise<void> {
    this.#to += count;
    if (this.#to < this.#block.bytes.length) return;
    this.flush();
    [this.#block, this.#other, this.#from, this.#to] = [this.#other, this.#block, 0, 0];
    await this.#block.written;
  }

  /** Sends what waits on its way. */
  flush(): void {
    if (this.#from === this.#to) return;
    const bytes = this.#block.bytes.subarray(this.#from, this.#to);
    this.#from = this.#to;
    this.#block.written = this.#append(bytes);
  }

  /** Waits until all that was flushed is in the file. */
  end(): Promise<void> {
    return this.#end();
  }
}

class Block {
  readonly bytes = new Uint8Array(BLOCK_BYTES);
  written = Promise.resolve();
}

/** Writes one block at a time, and sees to it that the system does not gather too much unwritten. */
class PartWriter {
  readonly #file: Deno.FsFile;
  readonly #syncFile: Deno.FsFile;
  #writing = Promise.resolve();
  #syncing = Promise.resolve();
  #unsynced = 0;

  constructor(file: Deno.FsFile, syncFile: Deno.FsFile) {
    this.#file = file;
    this.#syncFile = syncFile;
  }

  /** Writes behind what came before; the bytes must stay as they are until it resolves. */
  write(bytes: Uint8Array): Promise<void> {
    this.#writing = this.#writing.then(() => writeAll(this.#file, bytes));
    this.#writing.catch(() => {}); // looked at by whoever waits for it
    this.#unsynced += bytes.length;
    if (this.#unsynced >= SYNC_EVERY_BYTES) {
      this.#unsynced = 0;
      this.#syncing = Promise.all([this.#syncing, this.#writing]).then(() => this.#syncFile.syncData());
      this.#syncing.catch(() => {});
    }
    return this.#writing;
  }

  async end(): Promise<void> {
    await Promise.all([this.#writing, this.#syncing]);
  }
}

async function writeAll(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) written += await file.write(bytes.subarray(written));
}
