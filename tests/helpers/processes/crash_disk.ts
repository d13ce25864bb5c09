/**
 * A disk that loses power: what a process did to files, as disk_recorder.c wrote it down, and every state in which a power
 * cut may leave them. What was synced is there; of the rest each write may be there, missing or torn, in any order.
 */

/** An operation on a file or folder. */
export interface DiskRecord {
  op: "C" | "W" | "T" | "S" | "R" | "L" | "U" | "M";
  path: string;
  offset: number;
  data: Uint8Array;
  /** Bytes of the log up to its end. */
  end: number;
}

/** Files after a power cut: `undefined` for a folder. */
export type DiskImage = Map<string, Uint8Array | undefined>;

const SECTOR_BYTES = 512;

/** Reads a log. Ignores an incomplete last record. */
export function readDiskLog(log: Uint8Array): DiskRecord[] {
  const view = new DataView(log.buffer, log.byteOffset, log.byteLength);
  const decoder = new TextDecoder();
  const records: DiskRecord[] = [];
  for (let at = 0; at + 17 <= log.length;) {
    const op = String.fromCharCode(log[at]!) as DiskRecord["op"];
    const pathEnd = at + 5 + view.getUint32(at + 1, true);
    if (pathEnd + 12 > log.length) break;
    const dataBegin = pathEnd + 12;
    const end = dataBegin + view.getUint32(pathEnd + 8, true);
    if (end > log.length) break;
    records.push({
      op,
      path: decoder.decode(log.subarray(at + 5, pathEnd)),
      offset: Number(view.getBigUint64(pathEnd, true)),
      data: log.subarray(dataBegin, end),
      end,
    });
    at = end;
  }
  return records;
}

type Change = { offset: number; data: Uint8Array } | { cutTo: number };

/** Content of a file, independent of its names. */
interface Inode {
  durable: FileBytes;
  pending: Change[];
}

/** What happens to names as one step: a rename gives one and takes one. */
type NameChange = { path: string; inode: Inode | undefined | "gone" }[];

/** Plays records one after another, and can lose power after each of them. */
export class CrashDisk {
  readonly #honoursSync: boolean;
  readonly #durableNames = new Map<string, Inode | undefined>();
  readonly #names = new Map<string, Inode | undefined>();
  #pendingNames: NameChange[] = [];

  /** @param honoursSync False for a disk on which nothing was ever synced. */
  constructor({ honoursSync }: { honoursSync: boolean }) {
    this.#honoursSync = honoursSync;
  }

  play({ op, path, offset, data }: DiskRecord): void {
    const inode = this.#names.get(path);
    const target = () => new TextDecoder().decode(data);
    if (op === "C") this.#rename({ path, inode: { durable: new FileBytes(), pending: [] } });
    else if (op === "M") this.#rename({ path, inode: undefined });
    else if (op === "U") this.#rename({ path, inode: "gone" });
    else if (op === "L") this.#rename({ path: target(), inode });
    else if (op === "R") this.#rename({ path: target(), inode }, { path, inode: "gone" });
    else if (op === "W") inode?.pending.push({ offset, data });
    else if (op === "T") inode?.pending.push({ cutTo: offset });
    else if (this.#honoursSync && inode !== undefined) settle(inode);
    else if (this.#honoursSync) {
      // A folder: the names in it, in their order, and with them those that had to come before.
      const isIn = (change: NameChange) => change.some((step) => step.path.startsWith(`${path}/`));
      const settled = this.#pendingNames.splice(0, this.#pendingNames.findLastIndex(isIn) + 1);
      for (const change of settled) apply(this.#durableNames, change);
    }
  }

  /**
   * Returns what a power cut now may leave. The disk itself keeps its power.
   *
   * @param random Gives numbers from 0 to 1.
   */
  cut(random: () => number): DiskImage {
    const names = new Map(this.#durableNames);
    // File systems keep the order of names in their journal: a prefix of what is not synced may be there.
    const kept = Math.floor(random() * (this.#pendingNames.length + 1));
    for (const change of this.#pendingNames.slice(0, kept)) apply(names, change);
    return new Map([...names].map(([path, inode]) => [path, inode && torn(inode, random)]));
  }

  #rename(...change: NameChange): void {
    apply(this.#names, change);
    this.#pendingNames.push(change);
  }
}

/** Bytes of a file, with room to grow in place. */
class FileBytes {
  #bytes = new Uint8Array();
  #size = 0;

  copy(): FileBytes {
    const copy = new FileBytes();
    copy.#bytes = this.#bytes.slice(0, this.#size);
    copy.#size = this.#size;
    return copy;
  }

  change(change: Change): void {
    if ("cutTo" in change) this.#resize(change.cutTo);
    else {
      const { offset, data } = change;
      if (offset + data.length > this.#size) this.#resize(offset + data.length);
      this.#bytes.set(data, offset);
    }
  }

  toBytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#size);
  }

  #resize(size: number): void {
    if (size > this.#bytes.length) {
      const longer = new Uint8Array(2 * size);
      longer.set(this.toBytes());
      this.#bytes = longer;
    }
    // What is cut off is zero when the file grows again.
    if (size < this.#size) this.#bytes.fill(0, size, this.#size);
    this.#size = size;
  }
}

function apply(names: Map<string, Inode | undefined>, change: NameChange): void {
  for (const { path, inode } of change) {
    if (inode === "gone") names.delete(path);
    else names.set(path, inode);
  }
}

function settle(inode: Inode): void {
  for (const change of inode.pending) inode.durable.change(change);
  inode.pending = [];
}

/** Chooses the unsynced writes that survive: a prefix, or a random subset with torn writes. */
function torn({ durable, pending }: Inode, random: () => number): Uint8Array {
  const isPrefix = random() < 0.3;
  const keep = random();
  const upTo = Math.floor(random() * (pending.length + 1));
  const content = durable.copy();
  pending.forEach((change, index) => {
    if (isPrefix ? index >= upTo : random() > keep) return;
    content.change("data" in change && random() < 0.3 ? tornWrite(change, random) : change);
  });
  return content.toBytes();
}

/** The first sectors of a write. */
function tornWrite({ offset, data }: { offset: number; data: Uint8Array }, random: () => number): Change {
  const end = Math.max(1, Math.floor(random() * Math.ceil(data.length / SECTOR_BYTES))) * SECTOR_BYTES;
  return { offset, data: data.subarray(0, end) };
}
