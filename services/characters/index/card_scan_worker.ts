/** The Worker of card_index.ts: scans card folders with a read-only database connection. */
import { getErrorMessage } from "../../errors.ts";
import { openReader } from "../../storage/database/database.ts";
import { type CardChanges, type KnownFile, scanFolders, type ScannedFolder, toCardChanges } from "./card_rows.ts";
import { reportDefects } from "../../process/worker.ts";

/** Sent by the main thread. */
export interface CardScanRequest {
  databasePath: string;
  folders: ScannedFolder[];
}

/** Sent to the main thread. JSON text is created here, so that the main thread only passes it to the database. */
export interface CardScanResponse {
  changes: CardChanges;
  /** Ids of changed and deleted cards. */
  ids: string[];
  /** Ids of cards that can't be read. */
  unreadable: string[];
  failure?: string;
}

function scan({ databasePath, folders }: CardScanRequest): CardScanResponse {
  const reader = openReader(databasePath);
  let known: KnownFile[];
  let found: ReturnType<typeof scanFolders>;
  try {
    // Read before the folders, so that a file written in between looks new at most, never deleted.
    known = reader.all<KnownFile>("SELECT id, path, mtime_ms AS mtimeMs, size FROM card_file");
    const findName = (path: string) =>
      reader.get<{ name: string }>(
        "SELECT item ->> '$.name' AS name FROM card_file WHERE path = ? AND name IS NOT NULL",
        path,
      )?.name;
    found = scanFolders(folders, known, findName);
  } finally {
    reader.close();
  }
  const { rows, removed } = found;
  const removedIds = new Set(removed);
  const ids = [...rows.map(({ id }) => id), ...known.filter(({ path }) => removedIds.has(path)).map(({ id }) => id)];
  const unreadable = rows.filter(({ isUnreadable }) => isUnreadable).map(({ id }) => id);
  return { changes: toCardChanges(rows, removed), ids: [...new Set(ids)], unreadable };
}

// Importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  reportDefects();
  self.onmessage = ({ data }: MessageEvent<CardScanRequest>) => {
    try {
      self.postMessage(scan(data));
    } catch (error) {
      self.postMessage(
        {
          changes: toCardChanges([], []),
          ids: [],
          unreadable: [],
          failure: getErrorMessage(error),
        } satisfies CardScanResponse,
      );
    }
  };
}
