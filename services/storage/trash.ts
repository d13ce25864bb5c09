/** What was removed and can still come back: sealed records of every kind, for seven days. What a record holds its kind knows. */
import { uuidV7 } from "../crypto/random.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Database, Statement } from "./database/database.ts";

/** One entry of the trash. */
export interface TrashItem {
  id: string;
  kind: string;
  /** What the owner knew it by. */
  title: string;
  deleted_at: string;
}

/** What one kind of removed things does with its records. */
export interface TrashKind {
  /**
   * Brings a thing back in one write with `takeOut`, which removes the entry.
   *
   * @throws {AppError} `conflict` when its place is gone or taken; the entry stays then.
   */
  restore(record: unknown, takeOut: Statement): Promise<void>;
  /** Removes for good what lies outside the record, in one write with `takeOut`. Absent where there is nothing. */
  purge?(record: unknown, takeOut: Statement): Promise<void>;
}

interface Row {
  id: string;
  kind: string;
  deleted_at: number;
  sealed: Uint8Array;
}

/** What the trash stands on. */
export interface TrashOptions {
  db: Database;
  /** For the purpose "trash". */
  sealer: PurposeSealer;
  events: EventHub;
  now(): number;
  /** Opens who registers a kind that nobody has registered yet. */
  openKind?(kind: string): Promise<unknown>;
}

/** How long an entry stays. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1000;
const MAX_TITLE = 200;
/** The sealed title stands first, behind its length, so that a list need not read the record: 200 characters at most. */
const BEGIN_BYTES = 2 + 2048;

const decoder = new TextDecoder();

/** The trash of all kinds. */
export class Trash {
  #db: Database;
  #sealer: PurposeSealer;
  #events: EventHub;
  #now: () => number;
  #openKind: (kind: string) => Promise<unknown>;
  #kinds = new Map<string, TrashKind>();

  constructor({ db, sealer, events, now, openKind = () => Promise.resolve() }: TrashOptions) {
    this.#db = db;
    this.#sealer = sealer;
    this.#events = events;
    this.#now = now;
    this.#openKind = openKind;
  }

  /** Makes a kind known: what opens it does so before anybody can ask for it. */
  register(kind: string, handler: TrashKind): void {
    this.#kinds.set(kind, handler);
  }

  /** Statement that puts something into the trash. @param record What its kind needs to bring it back; JSON. */
  put(kind: string, title: string, record: unknown, id = uuidV7()): Statement {
    const deletedAt = this.#now();
    const sealedTitle = this.#sealer.sealNow(place(id, "title", deletedAt), title.slice(0, MAX_TITLE).toWellFormed());
    const sealedRecord = this.#sealer.sealNow(place(id, "record", deletedAt), JSON.stringify(record));
    const sealed = new Uint8Array(2 + sealedTitle.length + sealedRecord.length);
    new DataView(sealed.buffer).setUint16(0, sealedTitle.length);
    sealed.set(sealedTitle, 2);
    sealed.set(sealedRecord, 2 + sealedTitle.length);
    return {
      sql: "INSERT OR REPLACE INTO trash (id, kind, deleted_at, sealed) VALUES (?, ?, ?, ?)",
      params: [id, kind, deletedAt, sealed],
    };
  }

  /** Tells everybody who listens that there is more, or less, in it than before; to be called after the write. */
  changed(): void {
    this.#events.publish({ kind: "trash", id: "trash" });
  }

  /** Lists what can be restored, removed last first. */
  list(): TrashItem[] {
    return this.#db.all<Row>(
      `SELECT id, kind, deleted_at, substr(sealed, 1, ${BEGIN_BYTES}) AS sealed FROM trash WHERE deleted_at >= ?
       ORDER BY deleted_at DESC, id DESC`,
      this.#now() - KEPT_MS,
    ).map((row) => ({
      id: row.id,
      kind: row.kind,
      title: this.#title(row),
      deleted_at: new Date(row.deleted_at).toISOString(),
    }));
  }

  /** An item whose title can't be read is listed all the same, and can be purged. */
  #title({ id, deleted_at, sealed }: Row): string {
    try {
      return decoder.decode(this.#sealer.openNow(place(id, "title", deleted_at), titlePart(sealed)));
    } catch {
      return "";
    }
  }

  /** @throws {AppError} `not_found`, `conflict` when its place is gone or taken */
  async restore(id: string): Promise<void> {
    const row = this.#rows("id = ? AND deleted_at >= ?", id, this.#now() - KEPT_MS)[0];
    if (row === undefined) throw new AppError("not_found", `There is nothing "${id}" in the trash`);
    await (await this.#kind(row.kind)).restore(this.#record(row), takeOut(row.id));
    this.changed();
  }

  /** Removes everything in it for good. */
  async empty(): Promise<void> {
    await this.#purge(this.#rows("deleted_at <= ?", this.#now()));
  }

  /** Removes for good what has been in it for longer than it is kept. */
  async sweep(): Promise<void> {
    await this.#purge(this.#rows("deleted_at < ?", this.#now() - KEPT_MS));
  }

  /** One that can't be purged keeps no other from it. @throws What the first of them threw, once all were tried. */
  async #purge(rows: Row[]): Promise<void> {
    const failures: unknown[] = [];
    for (const row of rows) {
      try {
        const kind = await this.#kind(row.kind);
        if (kind.purge === undefined) await this.#db.write([takeOut(row.id)]);
        else await kind.purge(this.#record(row), takeOut(row.id));
      } catch (error) {
        failures.push(error);
      }
    }
    if (rows.length > failures.length) this.changed();
    if (failures.length > 0) throw failures[0];
  }

  #rows(where: string, ...params: (string | number)[]): Row[] {
    return this.#db.all<Row>(`SELECT id, kind, deleted_at, sealed FROM trash WHERE ${where}`, ...params);
  }

  async #kind(kind: string): Promise<TrashKind> {
    if (!this.#kinds.has(kind)) await this.#openKind(kind);
    const handler = this.#kinds.get(kind);
    if (handler === undefined) throw new AppError("internal", `Nobody knows what to do with a removed "${kind}"`);
    return handler;
  }

  #record({ id, deleted_at, sealed }: Row): unknown {
    const record = sealed.subarray(2 + titlePart(sealed).length);
    return JSON.parse(decoder.decode(this.#sealer.openNow(place(id, "record", deleted_at), record)));
  }
}

function titlePart(sealed: Uint8Array): Uint8Array {
  const length = new DataView(sealed.buffer, sealed.byteOffset).getUint16(0);
  return sealed.subarray(2, 2 + length);
}

function takeOut(id: string): Statement {
  return { sql: "DELETE FROM trash WHERE id = ?", params: [id], expectChanges: 1 };
}

function place(id: string, field: "title" | "record", version: number) {
  return { table: "trash", id, field, version };
}
