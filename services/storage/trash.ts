/** The trash: deleted resources as encrypted records, for seven days. Each kind of resource knows its own records. */
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { createUuidV7 } from "../crypto/random.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Database, Statement } from "./database/database.ts";
import type { IsExpired } from "./retention_clock.ts";

/** An item in the trash. */
export interface TrashItem {
  id: string;
  kind: string;
  /** Title shown to the owner. */
  title: string;
  deleted_at: string;
}

/** Handles the records of one kind of resource. */
export interface TrashKind {
  /**
   * Restores a resource, in one write with `removal`, which removes the trash item.
   *
   * @throws {AppError} `conflict` if its place no longer exists or is taken; the item stays in the trash.
   */
  restore(record: unknown, removal: Statement): Promise<void>;
  /** Deletes data outside the record, in one write with `removal`. Absent if there is none. */
  purge?(record: unknown, removal: Statement): Promise<void>;
}

interface Row {
  id: string;
  kind: string;
  deleted_at: number;
  sealed: Uint8Array;
}

/** The operations of the trash that services need to delete resources. */
export interface TrashBin {
  /**
   * Returns the statement that adds an item.
   *
   * @param title Title of the item in the list.
   * @param record Data that the kind needs to restore it, as JSON.
   * @param id ID of the item. Defaults to a new one.
   */
  put(kind: string, title: string, record: unknown, id?: string): Statement;
  /** Publishes that the trash has changed. Call it after the write. */
  publishChange(): void;
}

/** Dependencies of the trash. */
export interface TrashOptions {
  db: Database;
  /** For the purpose "trash". */
  sealer: PurposeSealer;
  events: EventHub;
  now(): number;
  isExpired: IsExpired;
  /** Opens the service that registers a kind. */
  openKind?(kind: string): Promise<unknown>;
}

/** How long items stay in the trash. */
const RETENTION_MS = 7 * 24 * 60 * 60 * 1000;
const MAX_TITLE = 200;
/** Number of items that are purged at the same time, so that their writes share commits. */
const PURGED_AT_ONCE = 16;
/** Number of items without other data that one write deletes. */
const PURGED_PER_WRITE = 500;
/**
 * The sealed title comes first, after its length, so that lists don't have to read the record. It has at most 200
 * characters.
 */
const BEGIN_BYTES = 2 + 2048;

const decoder = new TextDecoder();

/** The trash for all kinds of resources. */
export class Trash {
  #db: Database;
  #sealer: PurposeSealer;
  #events: EventHub;
  #now: () => number;
  #isExpired: IsExpired;
  #openKind: (kind: string) => Promise<unknown>;
  #kinds = new Map<string, TrashKind>();
  /** Items of resources by their kind, then by the resource's ID, the latest last. Made when first needed. */
  #items = new Map<string, Promise<Map<string, string[]>>>();

  constructor({ db, sealer, events, now, isExpired, openKind = () => Promise.resolve() }: TrashOptions) {
    this.#db = db;
    this.#sealer = sealer;
    this.#events = events;
    this.#now = now;
    this.#isExpired = isExpired;
    this.#openKind = openKind;
  }

  /** Registers a kind. Must happen before its items are used. */
  register(kind: string, handler: TrashKind): void {
    this.#kinds.set(kind, handler);
  }

  /** Returns the statement that adds an item. @param record Data that the kind needs to restore the resource; JSON. */
  put(kind: string, title: string, record: unknown, id = createUuidV7()): Statement {
    const deletedAt = this.#now();
    void this.#items.get(kind)?.then((items) => addItem(items, record, id));
    const sealedTitle = this.#sealer.sealNow(
      createTrashAad(id, "title", deletedAt),
      title.slice(0, MAX_TITLE).toWellFormed(),
    );
    const sealedRecord = this.#sealer.sealNow(createTrashAad(id, "record", deletedAt), JSON.stringify(record));
    const sealed = new Uint8Array(2 + sealedTitle.length + sealedRecord.length);
    new DataView(sealed.buffer).setUint16(0, sealedTitle.length);
    sealed.set(sealedTitle, 2);
    sealed.set(sealedRecord, 2 + sealedTitle.length);
    return {
      sql: "INSERT OR REPLACE INTO trash (id, kind, deleted_at, sealed) VALUES (?, ?, ?, ?)",
      params: [id, kind, deletedAt, sealed],
    };
  }

  /**
   * Finds the item with which a deleted resource can be restored.
   *
   * @param resourceId ID that the resource had. @returns ID of the item that was deleted last.
   */
  async findItem(kind: string, resourceId: string): Promise<string | undefined> {
    let items = this.#items.get(kind);
    if (items === undefined) {
      items = this.#listItems(kind);
      this.#items.set(kind, items);
      items.catch(() => this.#items.delete(kind));
    }
    return (await items).get(resourceId)?.findLast((id) => {
      const row = this.#db.get<{ deleted_at: number }>("SELECT deleted_at FROM trash WHERE id = ?", id);
      return row !== undefined && !this.#isExpired(row.deleted_at, RETENTION_MS);
    });
  }

  async #listItems(kind: string): Promise<Map<string, string[]>> {
    const items = new Map<string, string[]>();
    const ids = this.#db.all<{ id: string }>("SELECT id FROM trash WHERE kind = ? ORDER BY deleted_at, id", kind);
    for (const { id } of ids) {
      await yieldIfTickUsedUp();
      const row = this.#findRow(id);
      try {
        if (row !== undefined) addItem(items, this.#record(row), id);
      } catch {
        // What can't be read can't be restored.
      }
    }
    return items;
  }

  /** Publishes that the trash changed. Call it after the write. */
  publishChange(): void {
    this.#events.publish({ kind: "trash", id: "trash" });
  }

  /** Lists the items that can be restored, most recently removed first. */
  async list(): Promise<TrashItem[]> {
    const items: TrashItem[] = [];
    const rows = this.#db.iterate<Row>(
      `SELECT id, kind, deleted_at, substr(sealed, 1, ${BEGIN_BYTES}) AS sealed FROM trash
       ORDER BY deleted_at DESC, id DESC`,
    );
    for (const row of rows) {
      await yieldIfTickUsedUp();
      const { id, kind, deleted_at } = row;
      if (this.#isExpired(deleted_at, RETENTION_MS)) continue;
      items.push({ id, kind, title: this.#openTitle(row), deleted_at: new Date(deleted_at).toISOString() });
    }
    return items;
  }

  /** Returns the title of an item. An item with an unreadable title is listed, too, and can be purged. */
  #openTitle({ id, deleted_at, sealed }: Row): string {
    try {
      return decoder.decode(this.#sealer.openNow(createTrashAad(id, "title", deleted_at), shortenTitle(sealed)));
    } catch {
      return "";
    }
  }

  /**
   * Restores a resource and removes its item.
   *
   * @throws {AppError} `not_found`; `conflict` if its place no longer exists or is taken.
   */
  async restore(id: string): Promise<void> {
    const row = this.#findRow(id);
    if (row === undefined || this.#isExpired(row.deleted_at, RETENTION_MS)) {
      throw new AppError("not_found", `Trash item "${id}" not found`);
    }
    await (await this.#getKind(row.kind)).restore(this.#record(row), createRemoval(row.id));
    this.#items.delete(row.kind);
    this.publishChange();
  }

  /** Permanently deletes all items. */
  async removeAll(): Promise<void> {
    const lastMs = this.#now(); // Items added during the purge stay.
    await this.#purge((deletedAtMs) => deletedAtMs <= lastMs || this.#isExpired(deletedAtMs, RETENTION_MS));
  }

  /** Deletes items that are older than seven days. */
  async sweep(): Promise<void> {
    await this.#purge((deletedAtMs) => this.#isExpired(deletedAtMs, RETENTION_MS));
  }

  /** Deletes items; one that fails doesn't stop the others. @throws The first error, after all were tried. */
  async #purge(isChosen: (deletedAtMs: number) => boolean): Promise<void> {
    const items = this.#db.all<Omit<Row, "sealed">>("SELECT id, kind, deleted_at FROM trash")
      .filter((row) => isChosen(row.deleted_at));
    const failures: unknown[] = [];
    const plain: string[] = [];
    const left = items.values(); // Shared by all concurrent purges
    const purgeItems = async () => {
      for (const { id, kind: name } of left) {
        try {
          const kind = await this.#getKind(name);
          if (kind.purge === undefined) plain.push(id);
          else await this.#purgeItem(id, kind);
        } catch (error) {
          failures.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: PURGED_AT_ONCE }, purgeItems));
    for (let at = 0; at < plain.length; at += PURGED_PER_WRITE) {
      const ids = JSON.stringify(plain.slice(at, at + PURGED_PER_WRITE));
      const sql = "DELETE FROM trash WHERE id IN (SELECT value FROM json_each(?))";
      await this.#db.write([{ sql, params: [ids] }]).catch((error) => failures.push(error));
    }
    this.#items.clear();
    if (items.length > failures.length) this.publishChange();
    if (failures.length > 0) throw failures[0];
  }

  /** Deletes an item with its data. Records can be large, so each is read only now. */
  async #purgeItem(id: string, kind: TrashKind): Promise<void> {
    await yieldIfTickUsedUp();
    const row = this.#findRow(id);
    if (row !== undefined) await kind.purge?.(this.#record(row), createRemoval(id)); // Otherwise it was restored in the meantime.
  }

  #findRow(id: string): Row | undefined {
    return this.#db.get<Row>("SELECT id, kind, deleted_at, sealed FROM trash WHERE id = ?", id);
  }

  async #getKind(kind: string): Promise<TrashKind> {
    if (!this.#kinds.has(kind)) await this.#openKind(kind);
    const handler = this.#kinds.get(kind);
    if (handler === undefined) {
      throw new AppError("internal", `No handler is registered for trash items of kind "${kind}"`);
    }
    return handler;
  }

  #record({ id, deleted_at, sealed }: Row): unknown {
    const record = sealed.subarray(2 + shortenTitle(sealed).length);
    return JSON.parse(decoder.decode(this.#sealer.openNow(createTrashAad(id, "record", deleted_at), record)));
  }
}

/** Adds an item under the ID of its resource; attachments have their name instead. */
function addItem(items: Map<string, string[]>, record: unknown, id: string): void {
  const { id: resourceId, name } = record as { id?: string; name?: string };
  const key = resourceId ?? name;
  if (key !== undefined) items.set(key, [...items.get(key) ?? [], id]);
}

function shortenTitle(sealed: Uint8Array): Uint8Array {
  const length = new DataView(sealed.buffer, sealed.byteOffset).getUint16(0);
  return sealed.subarray(2, 2 + length);
}

function createRemoval(id: string): Statement {
  return { sql: "DELETE FROM trash WHERE id = ?", params: [id], expectChanges: 1 };
}

function createTrashAad(id: string, field: "title" | "record", version: number) {
  return { table: "trash", id, field, version };
}
