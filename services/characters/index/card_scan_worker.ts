/** The Worker that looks through card folders: a connection that can only read, and files opened for reading. card_index.ts is its other end. */
import { messageOf } from "../../errors.ts";
import { openReader } from "../../storage/database/reader.ts";
import { type CardChanges, changesOf } from "./card_rows.ts";
import { type CardFolder, type KnownFile, scanFolders } from "./card_scan.ts";

/** What the serving thread sends. */
export interface ScanOrder {
  databasePath: string;
  folders: CardFolder[];
}

/** What it gets back; JSON texts, since that is what the database takes and costs this thread and not the serving one. */
export interface ScanAnswer {
  changes: CardChanges;
  /** Ids of all that changed or went. */
  ids: string[];
  failure?: string;
}

function scan({ databasePath, folders }: ScanOrder): ScanAnswer {
  const reader = openReader(databasePath);
  let known: KnownFile[];
  try {
    // Read before the folders are: a file written meanwhile is then seen as new at most, never as gone.
    known = reader.all<KnownFile>("SELECT id, path, mtime_ms AS mtimeMs, size FROM card_file");
  } finally {
    reader.close();
  }
  const { rows, removed } = scanFolders(folders, known);
  const gone = new Set(removed);
  const ids = [...rows.map(({ id }) => id), ...known.filter(({ path }) => gone.has(path)).map(({ id }) => id)];
  return { changes: changesOf(rows, removed), ids: [...new Set(ids)] };
}

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = ({ data }: MessageEvent<ScanOrder>) => {
    try {
      self.postMessage(scan(data));
    } catch (error) {
      self.postMessage({ changes: changesOf([], []), ids: [], failure: messageOf(error) } satisfies ScanAnswer);
    }
  };
}
