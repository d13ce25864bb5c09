/** The Worker with the only writing connection. `writer.ts` starts it and runs the statements. */

import { DatabaseSync } from "node:sqlite";
import { getErrorMessage } from "../../errors.ts";
import { ManifestKeeper, type ManifestPlan } from "./manifest.ts";
import { getResultCode } from "./sqlite.ts";
import { commitGroup, createStatementCache, type Statement, type StatementCache, type UnitOutcome } from "./writer.ts";
import { reportDefects } from "../../process/worker.ts";

/** Messages from the serving thread. */
export type WriterRequest = { kind: "open"; path: string; manifest: ManifestPlan | undefined } | {
  kind: "group";
  units: Statement[][];
  /** True if its blobs have many megabytes. */
  isLarge: boolean;
} | { kind: "close" };

/** Messages from the Worker: one outcome per unit, that the manifest was made again, or the end. */
export type WriterResponse = { kind: "group"; outcomes: UnitOutcome[] } | { kind: "remade" } | { kind: "closed" };

/** Maximum size of the write-ahead log between checkpoints. A larger one is truncated. */
const MAX_IDLE_WAL_BYTES = 16 * 1024 * 1024;

/** How long another program, such as a backup, may hold the write lock before a write fails, in milliseconds. */
const BUSY_TIMEOUT_MS = 5000;

interface Connection {
  database: DatabaseSync;
  cache: StatementCache;
  manifest: ManifestKeeper | undefined;
}

let path = "";
let plan: ManifestPlan | undefined;
let connection: Connection | undefined;

/** Opens the connection on first use, and again after a failure: once the cause is fixed, no restart is needed. */
function openConnection(): Connection {
  if (connection === undefined) {
    const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    database.exec(`
      PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS};
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA journal_size_limit = ${MAX_IDLE_WAL_BYTES};
      PRAGMA temp_store = MEMORY;
    `);
    const keeper = plan && tryKeepManifest(database, plan);
    connection = { database, cache: createStatementCache(database), manifest: keeper };
  }
  return connection;
}

/** A damaged page may prevent a manifest. The check of stored data reports it, and writing continues. */
function tryKeepManifest(database: DatabaseSync, plan: ManifestPlan): ManifestKeeper | undefined {
  try {
    return new ManifestKeeper(database, plan, () => respond({ kind: "remade" }));
  } catch (error) {
    const msg = "Can't list what is stored, so changed rows won't be noticed";
    console.warn(JSON.stringify({ level: "warn", msg, error: getErrorMessage(error) }));
  }
}

/** Frees blobs immediately: an idle thread would retain them until its next garbage collection. */
function freeBlobs(units: Statement[][]): void {
  for (const { params = [] } of units.flat()) {
    for (const value of params) {
      if (value instanceof Uint8Array && value.buffer instanceof ArrayBuffer) value.buffer.transfer(0);
    }
  }
}

function respond(message: WriterResponse): void {
  self.postMessage(message);
}

// Importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  reportDefects();
  self.onmessage = ({ data }: MessageEvent<WriterRequest>) => {
    switch (data.kind) {
      case "open":
        ({ path, manifest: plan } = data);
        try {
          openConnection();
        } catch {
          // The first write tries again and reports the error.
        }
        break;
      case "group": {
        let outcomes: UnitOutcome[];
        try {
          const { database, cache, manifest } = openConnection();
          outcomes = commitGroup(database, cache, data.units, manifest);
        } catch (error) {
          const failure = { message: getErrorMessage(error), resultCode: getResultCode(error) };
          outcomes = data.units.map(() => ({ failure }));
        }
        respond({ kind: "group", outcomes });
        if (data.isLarge) freeBlobs(data.units);
        break;
      }
      case "close":
        connection?.database.close(); // Closing the last connection empties the write-ahead log.
        respond({ kind: "closed" });
        self.close();
    }
  };
}
