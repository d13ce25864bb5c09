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
  type KnownFile,
  scanFolders,
  type ScannedCard,
  type ScannedFolder,
  toCardChanges,
} from "./card_rows.ts";
import type { CardRead, CardScanOrder } from "./card_scan_child.ts";

/** What to scan. */
export interface CardScanRequest {
  databasePath: string;
  folders: ScannedFolder[];
}

/** Sent by the main thread: a scan, then for each group of files reads and at last its cards. */
export type ScanWorkerOrder =
  | { kind: "scan"; request: CardScanRequest }
  | { kind: "read"; id: number; reads: CardRead[] }
  | { kind: "cards"; cards: ScannedCard[] };

/** The result. JSON text is created here, so that the main thread only passes it to the database. */
export interface CardScanResponse {
  changes: CardChanges;
  /** True if the table is damaged. The changes are all of its rows then. */
  isDamaged: boolean;
  /** Ids of changed and deleted cards. */
  ids: string[];
  /** Ids of cards that can't be read. */
  unreadable: string[];
}

/** Sent to the main thread. */
export type ScanWorkerMessage =
  /** The next files to read in the sandbox. */
  | { kind: "group"; files: CardScanOrder["files"] }
  | { kind: "bytes"; id: number; answer: CardBytes }
  | { kind: "end"; response: CardScanResponse }
  | { kind: "failure"; message: string };

/** Bytes for the first of some reads. */
export interface CardBytes {
  /** By read: how many bytes there are; `null` if the file can't be read. */
  lengths: (number | null)[];
  joined: Uint8Array<ArrayBuffer>;
}

/** Files that are open and read at once. */
const GROUP_FILES = 64;
/** JSON cards are read whole. */
const GROUP_BYTES = 64 * 1024 * 1024;
/** No chunk with a card is longer. */
const MAX_READ_BYTES = 16 * 1024 * 1024;
/** Size of an answer, if there is more than one read in it. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/** The files that the sandbox reads at the moment. */
class FileGroup {
  readonly #open = new Map<number, Deno.FsFile>();
  /** Numbers of files that can't be read. */
  readonly unreadable = new Set<number>();

  constructor(readonly files: readonly CardFileStat[]) {}

  read(reads: readonly CardRead[]): CardBytes {
    const lengths: (number | null)[] = [];
    const parts: Uint8Array[] = [];
    let sum = 0;
    for (const [n, at, length] of reads) {
      if (lengths.length > 0 && sum + length > ANSWER_BYTES) break;
      const bytes = this.#readFile(n, at, length);
      lengths.push(bytes === null ? null : bytes.length);
      if (bytes === null) continue;
      sum += bytes.length;
      parts.push(bytes);
    }
    const joined = new Uint8Array(sum);
    let at = 0;
    for (const part of parts) {
      joined.set(part, at);
      at += part.length;
    }
    return { lengths, joined };
  }

  close(): void {
    for (const file of this.#open.values()) file.close();
  }

  #readFile(n: number, at: number, length: number): Uint8Array | null {
    const about = this.files[n];
    if (about === undefined) return null;
    try {
      const file = this.#open.get(n) ?? Deno.openSync(about.path);
      this.#open.set(n, file);
      const bytes = new Uint8Array(Math.max(0, Math.min(length, about.size - at, MAX_READ_BYTES)));
      file.seekSync(at, Deno.SeekMode.Start);
      let filled = 0;
      while (filled < bytes.length) {
        const count = file.readSync(bytes.subarray(filled));
        if (count === null) break;
        filled += count;
      }
      return bytes.subarray(0, filled);
    } catch {
      this.unreadable.add(n);
      return null;
    }
  }
}

let group: FileGroup | undefined;
let cards = Promise.withResolvers<ScannedCard[]>();

async function scan({ databasePath, folders }: CardScanRequest): Promise<CardScanResponse> {
  const reader = openReader(databasePath);
  let known: KnownFile[] = [];
  let isDamaged = false;
  let found: Awaited<ReturnType<typeof scanFolders>>;
  try {
    // Read before the folders, so that a file written in between looks new at most, never deleted.
    isDamaged = !canReadRows(reader);
    if (!isDamaged) known = reader.all<KnownFile>("SELECT id, path, mtime_ms AS mtimeMs, size FROM card_file");
    const findName = (path: string) =>
      reader.get<{ name: string }>(
        "SELECT item ->> '$.name' AS name FROM card_file WHERE path = ? AND name IS NOT NULL",
        path,
      )?.name;
    found = await scanFolders(folders, known, readCards, findName);
  } finally {
    reader.close();
  }
  const { rows, removed } = found;
  const removedIds = new Set(removed);
  const ids = [...rows.map(({ id }) => id), ...known.filter(({ path }) => removedIds.has(path)).map(({ id }) => id)];
  const unreadable = rows.filter(({ isUnreadable }) => isUnreadable).map(({ id }) => id);
  return { changes: toCardChanges(rows, removed), isDamaged, ids: [...new Set(ids)], unreadable };
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
  while (found.length < files.length) {
    const opened = new FileGroup(takeGroup(files, found.length));
    group = opened;
    cards = Promise.withResolvers();
    post({ kind: "group", files: opened.files.map(({ size, path }) => ({ size, isPng: isPngPath(path) })) });
    const read = await cards.promise;
    opened.close();
    opened.files.forEach((_, n) => found.push(opened.unreadable.has(n) ? "unreadable" : read[n] ?? "invalid"));
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
    if (data.kind === "cards") return cards.resolve(data.cards);
    if (data.kind === "read") {
      const answer = group!.read(data.reads);
      return post({ kind: "bytes", id: data.id, answer }, [answer.joined.buffer]);
    }
    try {
      post({ kind: "end", response: await scan(data.request) });
    } catch (error) {
      post({ kind: "failure", message: getErrorMessage(error) });
    }
  };
}
