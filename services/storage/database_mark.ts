/**
 * How many writes the database had when it was last seen: a sealed file beside it. A start that finds the database
 * behind its mark, or without its log after a sudden end, says so, because an older copy opens without any error.
 */
import type { PurposeSealer } from "../crypto/sealer.ts";
import { getErrorMessage } from "../errors.ts";
import type { Log } from "../log.ts";
import { pathExists, writeFileAtomic } from "./atomic_file.ts";
import type { Database, Statement } from "./database/database.ts";
import { countWrites } from "./database/manifest.ts";

/** What a start noticed. */
export interface DatabaseLoss {
  /**
   * `older`: it lacks writes that it had. `no_log`: the log of the last writes was missing after a sudden end.
   * `manifest`: the manifest was damaged and made again, so earlier changes of plain columns aren't noticed.
   */
  kind: "older" | "no_log" | "manifest";
  /** When it was noticed, in milliseconds since 1970. */
  atMs: number;
  /** How many writes are missing; 0 if that isn't known. */
  writes: number;
}

/** Name of the file. Like the log, it's never part of a backup, and a restore removes it. */
const MARK_NAME = "app.db-mark";
const MARK = { table: MARK_NAME, id: "mark", field: "document", version: 1 };
const LOSSES = { table: "setting", id: "database_losses", field: "value", version: 1 };

/** How long a loss is reported. */
const REPORTED_MS = 30 * 24 * 60 * 60 * 1000;

interface Mark {
  databaseId: string;
  writes: number;
  /** False while a server runs. */
  isClosed: boolean;
}

/** Dependencies. */
interface DatabaseMarkDeps {
  /** Path of the database. */
  path: string;
  db: Database;
  databaseId: string;
  /** For the purpose "settings". */
  sealer: PurposeSealer;
  log: Log;
  now(): number;
}

/** Keeps the mark of an open database. */
export class DatabaseMark {
  readonly #deps: DatabaseMarkDeps;
  readonly #inode: number | null;
  #saved: Mark | undefined;
  #isGone = false;
  #isNoticed = false;
  #listen: (() => void) | undefined;

  private constructor(deps: DatabaseMarkDeps, inode: number | null) {
    this.#deps = deps;
    this.#inode = inode;
  }

  /**
   * Compares the database with its mark.
   *
   * @param options.hadLog False if there was no log before the database was opened.
   * @throws {AppError} if the result can't be stored.
   */
  static async open(deps: DatabaseMarkDeps, { hadLog }: { hadLog: boolean }): Promise<DatabaseMark> {
    const { path, db, databaseId, sealer, log } = deps;
    const last = await readMark(path, sealer);
    const mark = new DatabaseMark(deps, await findInode(path) ?? null);
    const missing = last?.databaseId === databaseId ? last.writes - await countOrRemake(db, last.writes) : 0;
    const isOlder = missing > 0;
    if (isOlder || (last?.databaseId === databaseId && !last.isClosed && !hadLog)) {
      const message = isOlder
        ? "The database is older than at the last run: an older copy was put back, or its log was removed"
        : "The server ended suddenly and the log of its database is missing: the latest changes may be lost";
      log("error", message, { path, ...(isOlder && { writes: missing }) });
      await mark.#add(isOlder ? "older" : "no_log", Math.max(0, missing));
    }
    await mark.save();
    return mark;
  }

  /** True if the file is no longer where it was opened. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** Sets the function to call when something is lost; at once if it was noticed before. */
  listen(listener: () => void): void {
    this.#listen = listener;
    if (this.#isNoticed) listener();
  }

  /** Reports that the manifest was damaged and made again. Never rejects. */
  async reportRemadeManifest(): Promise<void> {
    const { path, log } = this.#deps;
    log("error", "The list of what is stored was damaged and made again: what was changed before isn't noticed", {
      path,
    });
    await this.#add("manifest", 0).catch((error) =>
      log("error", "Can't save what the database lost", { error: getErrorMessage(error) })
    );
  }

  async #add(kind: DatabaseLoss["kind"], writes: number): Promise<void> {
    const { db, sealer, now } = this.#deps;
    await db.write([sealLosses(sealer, [...loadLosses(db, sealer, now()), { kind, atMs: now(), writes }])]);
    this.#notice();
  }

  #notice(): void {
    this.#isNoticed = true;
    this.#listen?.();
  }

  /** Saves the mark if it has changed, and notices that the file was removed. Never rejects. */
  async save({ isClosed = false } = {}): Promise<void> {
    const { path, db, databaseId, sealer, log } = this.#deps;
    const inode = await findInode(path);
    const isGone = inode === undefined || (this.#inode !== null && inode !== this.#inode);
    if (isGone && !this.#isGone) {
      log("error", "The database was removed or replaced while the server runs: stop it, then restore a backup", {
        path,
      });
      this.#notice();
    }
    this.#isGone = isGone;
    if (isGone) return;
    try {
      const mark = { databaseId, writes: countWrites(db), isClosed };
      if (mark.writes === this.#saved?.writes && isClosed === this.#saved.isClosed) return;
      await writeFileAtomic(toMarkPath(path), sealer.sealNow(MARK, JSON.stringify(mark)));
      this.#saved = mark;
    } catch (error) {
      log("warn", "Can't save how far the database is", { error: getErrorMessage(error) });
    }
  }
}

/** @returns `fallback` if that can't be read. */
async function countOrRemake(db: Database, fallback: number): Promise<number> {
  try {
    return countWrites(db);
  } catch {
    await db.write([]); // The writer makes a damaged manifest again.
  }
  try {
    return countWrites(db);
  } catch {
    return fallback;
  }
}

/** Loads what starts noticed in the last 30 days. */
export function loadLosses(database: Pick<Database, "get">, sealer: PurposeSealer, nowMs: number): DatabaseLoss[] {
  const row = database.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", LOSSES.id);
  if (row === undefined) return [];
  try {
    const all: DatabaseLoss[] = JSON.parse(new TextDecoder().decode(sealer.openNow(LOSSES, row.sealed)));
    return all.filter(({ atMs }) => Math.abs(nowMs - atMs) < REPORTED_MS);
  } catch {
    return []; // The check of rows reports it as unreadable.
  }
}

/** Reports whether a database has a log with its latest writes. Call it before the database is opened. */
export function hasLog(path: string): Promise<boolean> {
  return pathExists(`${path}-wal`);
}

function sealLosses(sealer: PurposeSealer, losses: readonly DatabaseLoss[]): Statement {
  return {
    sql: "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)",
    params: [LOSSES.id, sealer.sealNow(LOSSES, JSON.stringify(losses))],
  };
}

function toMarkPath(path: string): string {
  return path.slice(0, -"app.db".length) + MARK_NAME;
}

/** @returns `undefined` if there is none, or none that this key opens */
async function readMark(path: string, sealer: PurposeSealer): Promise<Mark | undefined> {
  try {
    return JSON.parse(new TextDecoder().decode(sealer.openNow(MARK, await Deno.readFile(toMarkPath(path)))));
  } catch {
    return undefined;
  }
}

/** @returns `null` on systems without such numbers; `undefined` if the file is missing */
async function findInode(path: string): Promise<number | null | undefined> {
  try {
    return (await Deno.stat(path)).ino;
  } catch {
    return undefined;
  }
}
