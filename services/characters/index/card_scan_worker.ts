/**
 * The Worker of card_scan.ts: lists card folders, compares them with the index by a read-only database connection, and
 * hands over the bytes of files. It doesn't look at them: cards are read in the sandbox.
 */
import { getErrorMessage } from "../../errors.ts";
import { reportDefects } from "../../process/worker.ts";
import { openReader, type Reader } from "../../storage/database/database.ts";
import { type CardFileStat, isPngPath } from "../card/card_head.ts";
import {
  type CardChanges,
  findDifferentRows,
  type KnownFile,
  readWholeRows,
  scanFolders,
  type ScannedCard,
  type ScannedFolder,
  toCardChanges,
  toUnknownFiles,
} from "./card_rows.ts";
import type { CardRead, CardScanOrder } from "./card_scan_child.ts";

/** What to scan. */
export interface CardScanRequest {
  databasePath: string;
  folders: ScannedFolder[];
  /** Whether unchanged files are read again, to find rows that were damaged. */
  isWhole?: boolean;
}

/** Sent by the main thread: a scan, then for each group of files reads and at last its cards. */
export type ScanWorkerOrder =
  | { kind: "scan"; request: CardScanRequest }
  | { kind: "read"; id: number; group: number; reads: CardRead[] }
  | { kind: "cards"; group: number; cards: ScannedCard[] };

/** The result. JSON text is created here, so that the main thread only passes it to the database. */
export interface CardScanResponse {
  changes: CardChanges;
  /** True if the table is damaged. The changes are all of its rows then. */
  isDamaged: boolean;
  /** Number of rows that were damaged; counted only if all files were read. */
  damagedRows: number;
  /** Ids of changed and deleted cards. */
  ids: string[];
  /** Ids of cards that can't be read. */
  unreadable: string[];
}

/** Sent to the main thread. */
export type ScanWorkerMessage =
  /** The next files to read in the sandbox. */
  | { kind: "group"; group: CardGroup }
  | { kind: "bytes"; id: number; answer: CardBytes }
  | { kind: "end"; response: CardScanResponse }
  | { kind: "failure"; message: string };

/** Files to read in the sandbox. */
export interface CardGroup extends CardScanOrder {
  number: number;
  /** Their first bytes, joined. */
  heads: Uint8Array<ArrayBuffer>;
}

/** Bytes for the first of some reads. */
export interface CardBytes {
  /** By read: how many bytes there are; `null` if the file can't be read. */
  lengths: (number | null)[];
  joined: Uint8Array<ArrayBuffer>;
}

/** What the reader of a PNG asks for first. */
const HEAD_BYTES = 128;
/** Files that the sandbox reads at once. */
const GROUP_FILES = 256;
/** Groups at once: one is read, and the next is ready. */
const MAX_GROUPS = 2;
/** JSON cards are read whole. */
const GROUP_BYTES = 64 * 1024 * 1024;
/** No chunk with a card is longer. */
const MAX_READ_BYTES = 16 * 1024 * 1024;
/** Size of an answer, if there is more than one read in it. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/** Files that the sandbox reads. Those that it has begun to read are open; Linux takes long to open hundreds. */
class FileGroup {
  readonly #open = new Map<number, Deno.FsFile>();
  /** Numbers of files that can't be read. */
  readonly #unreadable = new Set<number>();
  readonly #cards = Promise.withResolvers<ScannedCard[]>();

  constructor(readonly files: readonly CardFileStat[]) {}

  /** Starts to read the files in the sandbox. */
  start(number: number): void {
    const { lengths, joined } = this.read(this.files.map((_, n) => [n, 0, HEAD_BYTES]));
    const files = this.files.map(({ size, path }, n) => ({ size, isPng: isPngPath(path), headBytes: lengths[n] ?? 0 }));
    post({ kind: "group", group: { number, files, heads: joined } }, [joined.buffer]);
  }

  /** Ends with the cards that the sandbox has found. */
  end(cards: readonly ScannedCard[]): void {
    for (const n of this.#open.keys()) this.#close(n);
    this.#cards.resolve(this.files.map((_, n) => this.#unreadable.has(n) ? "unreadable" : cards[n] ?? "invalid"));
  }

  get cards(): Promise<ScannedCard[]> {
    return this.#cards.promise;
  }

  read(reads: readonly CardRead[]): CardBytes {
    const asked: CardRead[] = [];
    let sum = 0;
    for (const [n, at, length] of reads) {
      const sizeBytes = Math.max(0, Math.min(length, (this.files[n]?.size ?? 0) - at, MAX_READ_BYTES));
      if (asked.length > 0 && sum + sizeBytes > ANSWER_BYTES) break;
      asked.push([n, at, sizeBytes]);
      sum += sizeBytes;
    }
    const joined = new Uint8Array(sum);
    let filled = 0;
    const lengths = asked.map(([n, at, length]) => {
      const count = this.#readFile(n, at, joined.subarray(filled, filled + length));
      filled += count ?? 0;
      return count;
    });
    return { lengths, joined: filled < sum ? joined.slice(0, filled) : joined };
  }

  #close(n: number): void {
    this.#open.get(n)?.close();
    this.#open.delete(n);
  }

  /** Returns how many bytes there are; `null` if the file can't be read. */
  #readFile(n: number, at: number, bytes: Uint8Array): number | null {
    const about = this.files[n];
    if (about === undefined) return null;
    try {
      const file = this.#open.get(n) ?? Deno.openSync(about.path);
      this.#open.set(n, file);
      file.seekSync(at, Deno.SeekMode.Start);
      let filled = 0;
      while (filled < bytes.length) {
        const count = file.readSync(filled === 0 ? bytes : bytes.subarray(filled));
        if (count === null) break;
        filled += count;
      }
      // After the first bytes, other files are next. After the last, it's rarely read again.
      if (at === 0 || at + filled >= about.size) this.#close(n);
      return filled;
    } catch {
      this.#unreadable.add(n);
      return null;
    }
  }
}

/** The open groups, by number. */
const groups = new Map<number, FileGroup>();
let lastGroup = 0;

async function scan({ databasePath, folders, isWhole }: CardScanRequest): Promise<CardScanResponse> {
  const reader = openReader(databasePath);
  let known: KnownFile[] = [];
  let isDamaged = false;
  let stored: ReturnType<typeof readWholeRows> | undefined;
  let found: Awaited<ReturnType<typeof scanFolders>>;
  try {
    // Read before the folders, so that a file written in between looks new at most, never deleted.
    isDamaged = !canReadRows(reader);
    if (!isDamaged && isWhole) known = toUnknownFiles(stored = readWholeRows(reader));
    else if (!isDamaged) known = reader.all<KnownFile>("SELECT id, path, mtime_ms AS mtimeMs, size FROM card_file");
    const findName = (path: string) =>
      reader.get<{ name: string }>(
        "SELECT item ->> '$.name' AS name FROM card_file WHERE path = ? AND name IS NOT NULL",
        path,
      )?.name;
    found = await scanFolders(folders, known, readCards, findName);
  } finally {
    reader.close();
  }
  const { removed } = found;
  const { different: rows, damaged: damagedRows } = stored === undefined
    ? { different: found.rows, damaged: 0 }
    : findDifferentRows(found.rows, stored);
  const removedIds = new Set(removed);
  const ids = [...rows.map(({ id }) => id), ...known.filter(({ path }) => removedIds.has(path)).map(({ id }) => id)];
  const unreadable = rows.filter(({ isUnreadable }) => isUnreadable).map(({ id }) => id);
  return { changes: toCardChanges(rows, removed), isDamaged, damagedRows, ids: [...new Set(ids)], unreadable };
}

function canReadRows(reader: Reader): boolean {
  try {
    return reader.get("SELECT 1 FROM card_file WHERE NOT json_valid(item)") === undefined;
  } catch {
    return false;
  }
}

async function readCards(files: CardFileStat[]): Promise<ScannedCard[]> {
  const found: ScannedCard[] = [];
  let taken = 0;
  while (found.length < files.length) {
    while (taken < files.length && groups.size < MAX_GROUPS) {
      const group = new FileGroup(takeGroup(files, taken));
      taken += group.files.length;
      groups.set(++lastGroup, group);
      group.start(lastGroup);
    }
    const [number, group] = groups.entries().next().value!;
    found.push(...await group.cards);
    groups.delete(number);
  }
  return found;
}

function takeGroup(files: readonly CardFileStat[], from: number): CardFileStat[] {
  const taken: CardFileStat[] = [];
  let bytes = 0;
  for (const file of files.slice(from, from + GROUP_FILES)) {
    if (!isPngPath(file.path)) bytes += file.size;
    if (taken.length > 0 && bytes > GROUP_BYTES) break;
    taken.push(file);
  }
  return taken;
}

function post(message: ScanWorkerMessage, transfer: Transferable[] = []): void {
  self.postMessage(message, transfer);
}

// Importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  reportDefects();
  self.onmessage = async ({ data }: MessageEvent<ScanWorkerOrder>) => {
    if (data.kind === "cards") return groups.get(data.group)!.end(data.cards);
    if (data.kind === "read") {
      const answer = groups.get(data.group)!.read(data.reads);
      return post({ kind: "bytes", id: data.id, answer }, [answer.joined.buffer]);
    }
    try {
      post({ kind: "end", response: await scan(data.request) });
    } catch (error) {
      post({ kind: "failure", message: getErrorMessage(error) });
    }
  };
}
