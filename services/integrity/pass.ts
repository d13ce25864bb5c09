/** A pass over everything that is stored: all rows, all pages of the database, all files. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { Sealer } from "../crypto/sealer.ts";
import { getErrorMessage } from "../errors.ts";
import { type Damage, mergeDamages } from "./damage.ts";
import { checkFiles } from "./file_check.ts";
import { type LostRow, RowCheck } from "./row_check.ts";
import { ManifestCheck } from "./manifest.ts";
import { checkSchema, listTableNames, SCHEMA_PATH } from "./schema_check.ts";
import { DATABASE, TABLES } from "./tables.ts";

/** What to check. */
export interface StoredData {
  dataDir: string;
  sealer: Sealer;
  /** Path of the database; by default that of the data folder. */
  databasePath?: string;
  /** True if SQLite has just checked the pages of all tables. */
  arePagesChecked?: boolean;
}

/** One small step of a pass. */
export interface PassStep {
  /** Bytes that were opened. */
  bytes: number;
  damages: Damage[];
  /** Where a later pass can continue after this step. */
  cursor: string;
}

/** Where a pass is. The second part is a table, or the last item of the manifest. */
type Cursor = [phase: "rows" | "manifest" | "pages" | "files", at?: string, after?: SQLInputValue[]];

/** Maximum number of messages of SQLite per table. */
const MAX_MESSAGES = 20;

/**
 * Checks everything, a little with each step. The caller decides how fast.
 *
 * @param from Cursor of the last step of an interrupted pass.
 * @throws Errors of SQLite and the file system if nothing can be read at all.
 */
export async function* checkAll(data: StoredData, from: string | null = null): AsyncGenerator<PassStep> {
  const { dataDir, sealer, databasePath = `${dataDir}/app.db`, arePagesChecked = false } = data;
  using database = new DatabaseSync(databasePath, { readOnly: true });
  database.exec("PRAGMA busy_timeout = 5000");
  const rows = new RowCheck(database, sealer);
  const [phase, begin, key] = parseCursor(from);
  const tables = Object.keys(TABLES).filter((table) => rows.getColumns(table).all.length > 0);
  const listFrom = (own: Cursor[0], all = tables) =>
    own === phase && begin !== undefined ? all.slice(Math.max(0, all.indexOf(begin))) : all;
  if (phase === "rows") {
    for (const table of listFrom("rows")) {
      let after = table === begin ? key : undefined;
      do {
        const step = rows.checkNext(table, after);
        after = step.after;
        const cursor: Cursor = ["rows", table, after ?? []];
        yield { bytes: step.bytes, damages: step.lost.map(toDamage), cursor: JSON.stringify(cursor) };
      } while (after !== undefined);
    }
  }
  if (phase === "rows" || phase === "manifest") {
    const manifest = new ManifestCheck(database, sealer);
    let after = phase === "manifest" ? begin : undefined;
    do {
      const step = manifest.checkNext(after);
      after = step.after;
      yield { bytes: 0, damages: step.damages, cursor: JSON.stringify(["manifest", after ?? ""] satisfies Cursor) };
    } while (after !== undefined);
    yield { bytes: 0, damages: manifest.checkFolders(), cursor: JSON.stringify(["pages"] satisfies Cursor) };
  }
  if (phase !== "files") {
    yield { bytes: 0, damages: checkSchema(database), cursor: JSON.stringify(["pages"] satisfies Cursor) };
    for (const table of arePagesChecked ? [] : listFrom("pages", listTableNames(database))) {
      const cursor: Cursor = ["pages", table];
      yield { bytes: 0, damages: checkPages(database, table), cursor: JSON.stringify(cursor) };
    }
  }
  const place = { dataDir, sealer, database: { all: <T>(sql: string) => database.prepare(sql).all() as T[] } };
  const cursor: Cursor = ["files"];
  for await (const { path, sizeBytes, isReadable } of checkFiles(place)) {
    const damages = isReadable ? [] : [{ path, parts: ["file"] }];
    yield { bytes: sizeBytes, damages, cursor: JSON.stringify(cursor) };
  }
}

/** Checks the pages of a table and its indexes. */
function checkPages(database: DatabaseSync, table: string): Damage[] {
  try {
    const found = database.prepare(`PRAGMA integrity_check(${table})`).all().slice(0, MAX_MESSAGES);
    return found.every(({ integrity_check }) => integrity_check === "ok")
      ? []
      : [{ path: `${DATABASE}/${table}`, parts: ["pages"] }];
  } catch {
    return [{ path: `${DATABASE}/${table}`, parts: ["pages"] }];
  }
}

/** Checks single items again. @returns Those of them that are damaged now. */
export async function checkItems(data: StoredData, paths: readonly string[]): Promise<Damage[]> {
  const { dataDir, sealer, databasePath = `${dataDir}/app.db` } = data;
  using database = new DatabaseSync(databasePath, { readOnly: true });
  database.exec("PRAGMA busy_timeout = 5000");
  const rows = new RowCheck(database, sealer);
  const found: Damage[] = new ManifestCheck(database, sealer).checkItems(paths);
  for (const path of paths) {
    found.push(...rows.checkItem(path).map(toDamage));
    const [folder, table = ""] = path.split("/");
    if (path === SCHEMA_PATH) found.push(...checkSchema(database));
    if (folder === DATABASE && listTableNames(database).includes(table)) found.push(...checkPages(database, table));
    const place = { dataDir, sealer, database: { all: <T>(sql: string) => database.prepare(sql).all() as T[] } };
    for await (const { isReadable } of checkFiles(place, path)) if (!isReadable) found.push({ path, parts: ["file"] });
  }
  return mergeDamages(found.filter(({ path }) => paths.includes(path)));
}

function toDamage({ path, table, columns }: LostRow): Damage {
  return { path, parts: columns.length === 0 ? [table] : columns.map((column) => `${table}.${column}`) };
}

function parseCursor(text: string | null): Cursor {
  if (text === null) return ["rows"];
  try {
    const [phase, table, after] = JSON.parse(text) as Cursor;
    return [phase, table, after?.length === 0 ? undefined : after];
  } catch (error) {
    throw new Error(`Can't continue the check: ${getErrorMessage(error)}`);
  }
}
