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
  durable: Uint8Array;
  pending: Change[];
}

/** What happens to names as one step: a rename gives one and takes one. */
type NameChange = { path: string; inode: Inode | undefined | "gone" }[];

/**
 * Plays records and cuts the power.
 *
 * @param random Gives numbers from 0 to 1.
 * @param honoursSync False for a disk on which nothing was ever synced.
 */
export function imageAfterCut(
  records: readonly DiskRecord[],
  random: () => number,
  { honoursSync }: { honoursSync: boolean },
): DiskImage {
  const durableNames = new Map<string, Inode | undefined>();
  const names = new Map<string, Inode | undefined>();
  let pendingNames: NameChange[] = [];
  const rename = (...change: NameChange) => {
    apply(names, change);
    pendingNames.push(change);
  };
  for (const { op, path, offset, data } of records) {
    const inode = names.get(path);
    const target = () => new TextDecoder().decode(data);
    if (op === "C") rename({ path, inode: { durable: new Uint8Array(), pending: [] } });
    else if (op === "M") rename({ path, inode: undefined });
    else if (op === "U") rename({ path, inode: "gone" });
    else if (op === "L") rename({ path: target(), inode });
    else if (op === "R") rename({ path: target(), inode }, { path, inode: "gone" });
    else if (op === "W") inode?.pending.push({ offset, data });
    else if (op === "T") inode?.pending.push({ cutTo: offset });
    else if (honoursSync && inode !== undefined) settle(inode);
    else if (honoursSync) {
      // A folder: the names in it, in their order, and with them those that had to come before.
      const last = pendingNames.findLastIndex((change) => change.some((step) => step.path.startsWith(`${path}/`)));
      for (const change of pendingNames.splice(0, last + 1)) apply(durableNames, change);
    }
  }
  // File systems keep the order of names in their journal: a prefix of what is not synced may be there.
  for (const change of pendingNames.slice(0, Math.floor(random() * (pendingNames.length + 1)))) {
    apply(durableNames, change);
  }
  pendingNames = [];
  return new Map([...durableNames].map(([path, inode]) => [path, inode && torn(inode, random)]));
}

function apply(names: Map<string, Inode | undefined>, change: NameChange): void {
  for (const { path, inode } of change) {
    if (inode === "gone") names.delete(path);
    else names.set(path, inode);
  }
}

function settle(inode: Inode): void {
  for (const change of inode.pending) inode.durable = changed(inode.durable, change);
  inode.pending = [];
}

/** Chooses the unsynced writes that survive: a prefix, or a random subset with torn writes. */
function torn({ durable, pending }: Inode, random: () => number): Uint8Array {
  const isPrefix = random() < 0.3;
  const keep = random();
  const upTo = Math.floor(random() * (pending.length + 1));
  let content = durable;
  pending.forEach((change, index) => {
    if (isPrefix ? index >= upTo : random() > keep) return;
    content = changed(content, "data" in change && random() < 0.3 ? tornWrite(change, random) : change);
  });
  return content;
}

/** The first sectors of a write. */
function tornWrite({ offset, data }: { offset: number; data: Uint8Array }, random: () => number): Change {
  const end = Math.max(1, Math.floor(random() * Math.ceil(data.length / SECTOR_BYTES))) * SECTOR_BYTES;
  return { offset, data: data.subarray(0, end) };
}

function changed(content: Uint8Array, change: Change): Uint8Array {
  if ("cutTo" in change) {
    const cut = new Uint8Array(change.cutTo);
    cut.set(content.subarray(0, change.cutTo));
    return cut;
  }
  const { offset, data } = change;
  const longer = content.length >= offset + data.length ? content.slice() : new Uint8Array(offset + data.length);
  longer.set(content.subarray(0, longer.length));
  longer.set(data, offset);
  return longer;
}
