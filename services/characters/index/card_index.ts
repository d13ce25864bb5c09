/** Keeps table `card_file` in sync with the card folders: watches them if possible, otherwise scans them. */
import { basename } from "node:path";
import { getErrorMessage } from "../../errors.ts";
import type { EventHub } from "../../events/event_hub.ts";
import type { Log } from "../../log.ts";
import type { Sandbox } from "../../platform/sandbox/sandbox.ts";
import type { Database } from "../../storage/database/database.ts";
import type { CardRow } from "../card/card_head.ts";
import {
  CARD_NAME,
  findCardRowByPath,
  hasNoRows,
  removeRows,
  replaceRow,
  replaceRows,
  type ScannedFolder,
} from "./card_rows.ts";
import { CardScan } from "./card_scan.ts";

/** Dependencies of the index. */
export interface CardIndexDeps {
  db: Database;
  /** Path of the database, which the Worker opens itself. */
  databasePath: string;
  folders: ScannedFolder[];
  /** Awaited before the first scan, so that its files are found. */
  prepared?: Promise<void>;
  events: EventHub;
  log: Log;
  /** Called with the IDs of cards that can't be read. */
  onUnreadable?(ids: readonly string[]): void;
  sandbox: Sandbox;
  /** Watches a folder; by default `Deno.watchFs`. */
  watch?: (path: string) => Deno.FsWatcher;
}

/** Delay for programs that write many files. */
const SETTLE_MS = 100;
/** Network folders don't report changes. After this time, a list triggers a scan in the background. */
const MAX_AGE_MS = 60_000;
/** Above this number of changes, one event reports all of them. */
const MAX_EVENTS = 100;

/** The index of card files. Nothing is read before the first use. */
export class CardIndex {
  readonly #options: CardIndexDeps;
  #watchers: Deno.FsWatcher[] | undefined;
  #isWatched = true;
  #isStale = true;
  #scannedAtMs = 0;
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  #changeTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #scanner: CardScan;
  #isClosed = false;
  /**
   * Paths being written by `write`, and those written since the current scan started: its results for them may be
   * outdated.
   */
  #writing = new Map<string, number>();
  #written = new Set<string>();
  /** Whether the next scan reads all files. */
  #isWholeDue = false;

  constructor(options: CardIndexDeps) {
    this.#options = options;
    this.#scanner = new CardScan(options.sandbox);
  }

  /**
   * Resolves once the table matches the folders.
   *
   * @throws {AppError} `internal` if they can't be scanned
   */
  async refresh(): Promise<void> {
    // Starts both concurrently: their startup takes longer than the preparation.
    if (this.#isStale && !this.#isClosed) {
      await this.#scanner.prepare(hasNoRows(this.#options.db));
      this.#options.db.prepare();
    }
    await this.#options.prepared;
    this.#watch();
    if (this.#isStale || !this.#isWatched) await this.#scan();
    else if (performance.now() - this.#scannedAtMs > MAX_AGE_MS) this.#scanInBackground();
  }

  /**
   * Writes our files and the table together, so that the watcher doesn't report the change as external.
   *
   * @param paths All files that change.
   * @param change Changes the files. Returns the new row, the removed path or both, and what to do after the table is
   *   updated.
   */
  async write(
    paths: string[],
    change: () => Promise<{ row?: CardRow; removedPath?: string; afterwards?: () => Promise<void> }>,
  ): Promise<void> {
    for (const path of paths) {
      this.#writing.set(path, (this.#writing.get(path) ?? 0) + 1);
      this.#written.add(path);
    }
    try {
      const { row, removedPath, afterwards } = await change();
      await this.#options.db.write(replaceRow(row, removedPath));
      await afterwards?.();
    } catch (error) {
      this.#isStale = true; // The files may have changed without the table.
      throw error;
    } finally {
      for (const path of paths) {
        const count = this.#writing.get(path)! - 1;
        if (count > 0) this.#writing.set(path, count);
        else this.#writing.delete(path);
      }
    }
  }

  /**
   * Reads all files again, also unchanged ones, and corrects rows that differ: those that a disk has damaged.
   *
   * @throws {AppError} `internal` if the folders can't be scanned
   */
  async verify(): Promise<void> {
    await this.#options.prepared;
    this.#isWholeDue = true;
    await this.#scan();
  }

  /** Requests a scan at the next use, because the table is known to be wrong. */
  markStale(): void {
    this.#isStale = true;
  }

  /** Stops all work. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#changeTimer);
    for (const watcher of this.#watchers ?? []) watcher.close();
    await this.#queued?.catch(() => {});
    await this.#running?.catch(() => {});
    this.#scanner.close();
  }

  #scan(): Promise<void> {
    // The running scan may have missed the change, so at most one more is queued.
    return this.#queued ??= (this.#running ?? Promise.resolve()).catch(() => {}).then(() => {
      this.#queued = undefined;
      if (this.#isClosed) return;
      this.#isStale = false;
      this.#running = this.#scanOnce().finally(() => this.#running = undefined);
      return this.#running;
    });
  }

  #scanInBackground(): void {
    this.#scan().catch((error) =>
      this.#options.log("error", "Can't scan the card folders", { error: getErrorMessage(error) })
    );
  }

  async #scanOnce(): Promise<void> {
    const { db, databasePath, folders, events, log, onUnreadable } = this.#options;
    this.#written = new Set(this.#writing.keys());
    const isWhole = this.#isWholeDue;
    this.#isWholeDue = false;
    try {
      const { changes, isDamaged, damagedRows, ids, unreadable } = await this.#scanner.scan({
        databasePath,
        folders,
        isWhole,
      });
      if (damagedRows > 0) {
        log("warn", "Rows of the list of cards were damaged in the database, so they were made again from the files", {
          count: damagedRows,
        });
      }
      if (isDamaged) {
        log("warn", "The list of cards was damaged in the database, so it was made again from the files");
        await db.write([...removeRows(), ...replaceRows(changes)]);
        this.#isStale ||= this.#written.size > 0;
      } else if (ids.length > 0) await db.write(replaceRows(changes, [...this.#written]));
      if (ids.length > 0) {
        if (ids.length > MAX_EVENTS) events.publish({ kind: "characters", id: "all" });
        else for (const id of ids) events.publish({ kind: "character", id });
      }
      if (unreadable.length > 0) onUnreadable?.(unreadable);
      this.#scannedAtMs = performance.now();
    } catch (error) {
      this.#isStale = true;
      throw error;
    }
  }

  #watch(): void {
    if (this.#watchers !== undefined) return;
    this.#watchers = [];
    const { folders, log, watch = (path) => Deno.watchFs(path, { recursive: false }) } = this.#options;
    for (const { path } of folders) {
      try {
        const watcher = watch(path);
        this.#watchers.push(watcher);
        void this.#listen(watcher, path);
      } catch (error) {
        this.#isWatched = false;
        log("warn", "Can't watch a card folder; it's scanned each time characters are listed", {
          error: getErrorMessage(error),
        });
      }
    }
  }

  async #listen(watcher: Deno.FsWatcher, folder: string): Promise<void> {
    try {
      for await (const { kind, paths } of watcher) {
        if (kind === "access") continue;
        // The event may only name the folder, for example after a queue overflow.
        const isNews = kind === "other" || paths.includes(folder) || await this.#hasChanges(paths);
        if (isNews && !this.#isClosed) this.#scanSoon();
      }
    } catch (error) {
      this.#options.log("warn", "Can't watch a card folder anymore", { error: getErrorMessage(error) });
    }
    this.#isWatched = false;
  }

  async #hasChanges(paths: string[]): Promise<boolean> {
    for (const path of paths) {
      if (!CARD_NAME.test(basename(path)) || this.#writing.has(path)) continue;
      const info = await Deno.lstat(path).catch(() => undefined);
      if (this.#isClosed) return false;
      const row = findCardRowByPath(this.#options.db, path);
      const isFile = info?.isFile ?? false;
      if (isFile !== (row !== undefined)) return true;
      if (isFile && (row!.size !== info!.size || row!.mtimeMs !== info!.mtime?.getTime())) return true;
    }
    return false;
  }

  #scanSoon(): void {
    this.#isStale = true;
    clearTimeout(this.#changeTimer);
    this.#changeTimer = setTimeout(() => this.#isStale && this.#scanInBackground(), SETTLE_MS);
  }
}
