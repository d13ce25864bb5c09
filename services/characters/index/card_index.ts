/** Keeps table `card_file` true to the folders: watched where the system can, looked through where it cannot. */
import { basename } from "node:path";
import { AppError, messageOf } from "../../errors.ts";
import type { EventHub } from "../../events/event_hub.ts";
import type { Log } from "../../log.ts";
import type { Database } from "../../storage/database/database.ts";
import type { CardRow } from "../card/card_head.ts";
import { findPath, replaceRow, replaceRows } from "./card_rows.ts";
import { CARD_NAME, type CardFolder } from "./card_scan.ts";
import type { ScanAnswer, ScanOrder } from "./card_scan_worker.ts";

/** How to open the index. */
export interface CardIndexOptions {
  db: Database;
  /** The file behind `db`, which the Worker reads by itself. */
  databasePath: string;
  folders: CardFolder[];
  /** Done before anything is looked at: what it writes is found. */
  prepared?: Promise<void>;
  events: EventHub;
  log: Log;
  /** Watches folders; `Deno.watchFs` unless a test brings a system that cannot. */
  watch?: (path: string) => Deno.FsWatcher;
}

/** Something that writes many files is waited for this long. */
const SETTLE_MS = 100;
/** Changes on a network folder are not told: after this long a list has the folders looked through beside its answer. */
const DISTRUST_MS = 60_000;
/** A Worker that nobody needs costs memory, and a new one 50 ms. */
const IDLE_MS = 20_000;
/** More changes at once are one event. */
const MAX_EVENTS = 100;

/** The index of card files. Nothing is looked at before somebody asks for a card. */
export class CardIndex {
  readonly #options: CardIndexOptions;
  #watchers: Deno.FsWatcher[] | undefined;
  #isWatched = true;
  #isDirty = true;
  #scannedAtMs = 0;
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  #settleTimer: ReturnType<typeof setTimeout> | undefined;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #worker: Worker | undefined;
  #isClosed = false;
  /** Paths under way by `write`, and those that were since the present scan began: what it saw of them may be old. */
  #writing = new Map<string, number>();
  #written = new Set<string>();

  constructor(options: CardIndexOptions) {
    this.#options = options;
  }

  /**
   * Resolves once the table says what the folders hold.
   *
   * @throws {AppError} `internal` when they cannot be looked through.
   */
  async fresh(): Promise<void> {
    // Beside each other: what both threads need to begin takes longer than what is prepared.
    if (this.#isDirty && !this.#isClosed) {
      this.#startWorker();
      this.#options.db.prepare();
    }
    await this.#options.prepared;
    this.#watch();
    if (this.#isDirty || !this.#isWatched) await this.#scan();
    else if (performance.now() - this.#scannedAtMs > DISTRUST_MS) this.#scanBeside();
  }

  /**
   * Writes files of ours and what the table says of them; nobody takes the change for somebody else's.
   *
   * @param paths All files that change.
   * @param change Changes them and gives the new row, or the path that is gone, or both; and what is left to be done to the
   *   files once the table says so.
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
      this.#isDirty = true; // the file may have changed and the table not
      throw error;
    } finally {
      for (const path of paths) {
        const count = this.#writing.get(path)! - 1;
        if (count > 0) this.#writing.set(path, count);
        else this.#writing.delete(path);
      }
    }
  }

  /** Has the folders looked through at the next use: the table was seen to be wrong. */
  distrust(): void {
    this.#isDirty = true;
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#settleTimer);
    for (const watcher of this.#watchers ?? []) watcher.close();
    await this.#queued?.catch(() => {});
    await this.#running?.catch(() => {});
    this.#endWorker();
  }

  #scan(): Promise<void> {
    // One that runs may have passed the change by, so at most one more waits behind it.
    return this.#queued ??= (this.#running ?? Promise.resolve()).catch(() => {}).then(() => {
      this.#queued = undefined;
      if (this.#isClosed) return;
      this.#isDirty = false;
      this.#running = this.#scanOnce().finally(() => this.#running = undefined);
      return this.#running;
    });
  }

  #scanBeside(): void {
    this.#scan().catch((error) =>
      this.#options.log("error", "Cannot look through the card folders", { error: messageOf(error) })
    );
  }

  async #scanOnce(): Promise<void> {
    const { db, databasePath, folders, events } = this.#options;
    this.#written = new Set(this.#writing.keys());
    try {
      const { changes, ids } = await this.#askWorker({ databasePath, folders });
      if (ids.length > 0) {
        await db.write(replaceRows(changes, [...this.#written]));
        if (ids.length > MAX_EVENTS) events.publish({ kind: "characters", id: "all" });
        else for (const id of ids) events.publish({ kind: "character", id });
      }
      this.#scannedAtMs = performance.now();
    } catch (error) {
      this.#isDirty = true;
      throw error;
    }
  }

  #askWorker(order: ScanOrder): Promise<ScanAnswer> {
    clearTimeout(this.#idleTimer);
    const worker = this.#startWorker();
    return new Promise<ScanAnswer>((resolve, reject) => {
      const fail = (found: string) =>
        reject(new AppError("internal", `Cannot look through the card folders: ${found}`));
      worker.onmessage = ({ data }: MessageEvent<ScanAnswer>) =>
        data.failure === undefined ? resolve(data) : fail(data.failure);
      worker.onerror = (event) => {
        event.preventDefault(); // else it would end the process
        this.#endWorker();
        fail(event.message);
      };
      worker.postMessage(order);
    }).finally(() => {
      if (!this.#isClosed) this.#idleTimer = setTimeout(() => this.#endWorker(), IDLE_MS);
    });
  }

  #startWorker(): Worker {
    return this.#worker ??= new Worker(new URL("./card_scan_worker.ts", import.meta.url), { type: "module" });
  }

  #endWorker(): void {
    clearTimeout(this.#idleTimer);
    this.#worker?.terminate();
    this.#worker = undefined;
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
        log("warn", "Cannot watch a folder with cards; every list looks through it", { error: messageOf(error) });
      }
    }
  }

  async #listen(watcher: Deno.FsWatcher, folder: string): Promise<void> {
    try {
      for await (const { kind, paths } of watcher) {
        if (kind === "access") continue;
        // The folder itself may be all that is named, as when the system lost count.
        const isNews = kind === "other" || paths.includes(folder) || await this.#anyDiffers(paths);
        if (isNews && !this.#isClosed) this.#settle();
      }
    } catch (error) {
      this.#options.log("warn", "Cannot watch a folder with cards any longer", { error: messageOf(error) });
    }
    this.#isWatched = false;
  }

  async #anyDiffers(paths: string[]): Promise<boolean> {
    for (const path of paths) {
      if (!CARD_NAME.test(basename(path)) || this.#writing.has(path)) continue;
      const info = await Deno.lstat(path).catch(() => undefined);
      if (this.#isClosed) return false;
      const row = findPath(this.#options.db, path);
      const isFile = info?.isFile ?? false;
      if (isFile !== (row !== undefined)) return true;
      if (isFile && (row!.size !== info!.size || row!.mtimeMs !== info!.mtime?.getTime())) return true;
    }
    return false;
  }

  #settle(): void {
    this.#isDirty = true;
    clearTimeout(this.#settleTimer);
    this.#settleTimer = setTimeout(() => this.#isDirty && this.#scanBeside(), SETTLE_MS);
  }
}
