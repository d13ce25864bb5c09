/**
 * Documents that an owner names, changes and removes, sealed in the table `document`: a short head, which lists show, and
 * a body that is opened when it is asked for. What both hold their rooms know.
 */
import { uuidV7 } from "../../crypto/random.ts";
import type { Place, PurposeSealer } from "../../crypto/sealer.ts";
import { AppError, messageOf } from "../../errors.ts";
import type { EventHub } from "../../events/event_hub.ts";
import type { Database, Statement } from "../database/database.ts";
import { KeyedMutex } from "../../async/keyed_mutex.ts";
import { BodyCache } from "./document_cache.ts";
import { bodyOf, headOf, joined, partPlace, removedRow, wholeHeadBytes } from "./sealed_document.ts";
import { type ExpectedVersion, isExpected } from "../preconditions.ts";

/** A document without its body. `head` is `undefined` where it cannot be opened. */
export interface ListedDocument<Head> {
  id: string;
  /** Counts from 1, with every write. */
  version: number;
  createdAtMs: number;
  updatedAtMs: number;
  head: Head | undefined;
}

/** A whole document. */
export interface StoredDocument<Head, Body> extends ListedDocument<Head> {
  head: Head;
  body: Body;
}

/** What a store stands on. */
export interface DocumentStoreOptions<Head> {
  /** Of rows, of change events, and of entries in the trash. */
  kind: string;
  /** What messages call one: `"lorebook"`. */
  noun: string;
  db: Database;
  /** Of a purpose of its own. */
  sealer: PurposeSealer;
  events: EventHub;
  trash: { put(kind: string, title: string, record: unknown, id?: string): Statement; changed(): void };
  now(): number;
  /** What the trash calls a document. */
  titleOf(head: Head): string;
}

interface Row {
  id: string;
  version: number;
  created_at: number;
  updated_at: number;
  sealed: Uint8Array;
}

/** What the trash keeps: where the row went. */
interface TrashRecord {
  id: string;
  entry: string;
}

const decoder = new TextDecoder();
/** Read of each row for a list; a longer head is read again. */
const HEAD_BYTES = 4 * 1024;

/** The documents of one kind. Heads stay in memory, so that lists cost nothing. */
export class DocumentStore<Head, Body> {
  readonly #options: DocumentStoreOptions<Head>;
  readonly #locks = new KeyedMutex();
  readonly #bodies = new BodyCache<Body>();
  #known: Map<string, ListedDocument<Head>> | undefined;

  constructor(options: DocumentStoreOptions<Head>) {
    this.#options = options;
  }

  /** Gives all, the newest first; one that cannot be opened stands there without a head. */
  list(): ListedDocument<Head>[] {
    return [...this.#heads().values()].sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1));
  }

  /** Finds a whole document. The body is shared: not to be changed. @throws {AppError} `internal` when it cannot be opened */
  async find(id: string): Promise<StoredDocument<Head, Body> | undefined> {
    const listed = this.#heads().get(id);
    if (listed === undefined) return undefined;
    const { version, head } = listed;
    const body = this.#bodies.get(id, version);
    return head !== undefined && body !== undefined ? { ...listed, head, body } : await this.#read(id);
  }

  /** As `find`. @throws {AppError} `not_found` */
  async get(id: string): Promise<StoredDocument<Head, Body>> {
    const found = await this.find(id);
    if (found === undefined) throw new AppError("not_found", `There is no ${this.#options.noun} "${id}"`);
    return found;
  }

  /**
   * Creates or replaces a document.
   *
   * @param make Gets the document that stands, if one does and can be read.
   * @param expectedVersion Refuses unless this version stands.
   * @throws {AppError} `revision_mismatch`; `conflict` for an id that differs from another by letter case alone
   */
  put(
    id: string,
    make: (before: StoredDocument<Head, Body> | undefined) => { head: Head; body: Body },
    expectedVersion?: ExpectedVersion,
  ): Promise<StoredDocument<Head, Body> & { isNew: boolean }> {
    return this.#locks.run(id.toLowerCase(), async () => {
      const before = this.#heads().get(id);
      this.#expect(id, before, expectedVersion);
      if (before === undefined) this.#refuseOtherCase(id);
      const { head, body } = make(await this.#readable(id));
      const updatedAtMs = this.#options.now();
      const listed = {
        ...{ id, head, updatedAtMs },
        version: (before?.version ?? 0) + 1,
        createdAtMs: before?.createdAtMs ?? updatedAtMs,
      };
      await this.#options.db.write([await this.#save(listed, body, before)]);
      this.#heads().set(id, listed);
      this.#publish(id, listed.version);
      return { ...listed, body, isNew: before === undefined };
    });
  }

  /** Moves a document to the trash. @throws {AppError} `not_found`, `revision_mismatch` */
  remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#locks.run(id.toLowerCase(), async () => {
      const { db, kind, noun, trash, titleOf } = this.#options;
      const before = this.#heads().get(id);
      if (before === undefined) throw new AppError("not_found", `There is no ${noun} "${id}"`);
      this.#expect(id, before, expectedVersion);
      const record: TrashRecord = { id, entry: uuidV7() };
      const removed = removedRow({ kind, id }, record.entry);
      const title = before.head === undefined ? id : titleOf(before.head);
      await db.write([
        {
          sql: "UPDATE document SET kind = ?, id = ? WHERE kind = ? AND id = ?",
          params: [removed.kind, removed.id, kind, id],
          expectChanges: 1,
        },
        trash.put(kind, title, record, record.entry),
      ]);
      this.#heads().delete(id);
      this.#bodies.delete(id);
      this.#publish(id);
      trash.changed();
    });
  }

  /** Brings one back from the trash. @throws {AppError} `conflict` when its id is taken */
  restore(value: unknown, takeOut: Statement): Promise<void> {
    const { id, entry } = value as TrashRecord;
    return this.#locks.run(id.toLowerCase(), async () => {
      const { db, kind, noun } = this.#options;
      if (this.#heads().has(id)) throw new AppError("conflict", `There is a ${noun} "${id}" again`);
      this.#refuseOtherCase(id);
      const removed = removedRow({ kind, id }, entry);
      await db.write([
        {
          sql: "UPDATE document SET kind = ?, id = ? WHERE kind = ? AND id = ?",
          params: [kind, id, removed.kind, removed.id],
          expectChanges: 1,
        },
        takeOut,
      ]);
      this.#known = undefined;
      this.#publish(id, this.#heads().get(id)?.version);
    });
  }

  /** Removes for good what lay in the trash. */
  async purge(value: unknown, takeOut: Statement): Promise<void> {
    const { id, entry } = value as TrashRecord;
    const removed = removedRow({ kind: this.#options.kind, id }, entry);
    await this.#options.db.write([
      { sql: "DELETE FROM document WHERE kind = ? AND id = ?", params: [removed.kind, removed.id] },
      takeOut,
    ]);
  }

  #heads(): Map<string, ListedDocument<Head>> {
    return this.#known ??= new Map(
      this.#options.db.all<Row>(
        `SELECT id, version, created_at, updated_at, coalesce(substr(sealed, 1, ${HEAD_BYTES}), x'') AS sealed
         FROM document WHERE kind = ?`,
        this.#options.kind,
      ).map((row) => [row.id, this.#listed(row)]),
    );
  }

  #listed(row: Row): ListedDocument<Head> {
    const { id, version } = row;
    const frame = { id, version, createdAtMs: row.created_at, updatedAtMs: row.updated_at };
    try {
      const begin = wholeHeadBytes(row.sealed) > HEAD_BYTES ? this.#sealed(id) : row.sealed;
      const head = this.#options.sealer.openNow(this.#place(id, "head", version), headOf(begin));
      return { ...frame, head: JSON.parse(decoder.decode(head)) };
    } catch (error) {
      console.error(`The ${this.#options.noun} "${id}" cannot be read: ${messageOf(error)}`);
      return { ...frame, head: undefined };
    }
  }

  /** A document that cannot be opened may be replaced. */
  async #readable(id: string): Promise<StoredDocument<Head, Body> | undefined> {
    try {
      return await this.find(id);
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  /** Goes by what stands in the row: a write can be committed before word of it has come back to the heads. */
  async #read(id: string): Promise<StoredDocument<Head, Body> | undefined> {
    const row = this.#options.db.get<Row>(
      "SELECT id, version, created_at, updated_at, sealed FROM document WHERE kind = ? AND id = ?",
      this.#options.kind,
      id,
    );
    if (row === undefined) return undefined;
    const { head, ...frame } = this.#listed(row);
    if (head === undefined) throw this.#unreadable(id);
    try {
      const opened = await this.#options.sealer.open(this.#place(id, "body", row.version), bodyOf(row.sealed));
      const body: Body = JSON.parse(decoder.decode(opened));
      if (this.#heads().get(id)?.version === row.version) {
        this.#bodies.set(id, { version: row.version, body, bytes: opened.length });
      }
      return { ...frame, head, body };
    } catch (cause) {
      throw this.#unreadable(id, cause);
    }
  }

  #sealed(id: string): Uint8Array {
    const row = this.#options.db.get<{ sealed: Uint8Array }>(
      "SELECT sealed FROM document WHERE kind = ? AND id = ?",
      this.#options.kind,
      id,
    );
    if (row === undefined) throw this.#unreadable(id);
    return row.sealed;
  }

  async #save(
    { id, version, createdAtMs, updatedAtMs, head }: ListedDocument<Head>,
    body: Body,
    before: ListedDocument<Head> | undefined,
  ): Promise<Statement> {
    const { kind, sealer } = this.#options;
    const text = JSON.stringify(body);
    const sealed = joined(
      sealer.sealNow(this.#place(id, "head", version), JSON.stringify(head)),
      await sealer.seal(this.#place(id, "body", version), text),
    );
    // As it will be read: what JSON drops of the object in memory is not there later either.
    this.#bodies.set(id, { version, body: JSON.parse(text), bytes: text.length });
    if (before === undefined) {
      return {
        sql: "INSERT INTO document (kind, id, version, created_at, updated_at, sealed) VALUES (?, ?, ?, ?, ?, ?)",
        params: [kind, id, version, createdAtMs, updatedAtMs, sealed],
      };
    }
    return {
      sql: "UPDATE document SET version = ?, updated_at = ?, sealed = ? WHERE kind = ? AND id = ? AND version = ?",
      params: [version, updatedAtMs, sealed, kind, id, before.version],
      expectChanges: 1,
    };
  }

  #expect(id: string, before: ListedDocument<Head> | undefined, expectedVersion: ExpectedVersion | undefined): void {
    if (isExpected(expectedVersion, before?.version)) return;
    const found = before === undefined ? "it does not exist" : `it is at version ${before.version}`;
    throw new AppError(
      "revision_mismatch",
      `Cannot write the ${this.#options.noun} "${id}" at another version than asked: ${found}`,
    );
  }

  #refuseOtherCase(id: string): void {
    for (const other of this.#heads().keys()) {
      if (other.toLowerCase() === id.toLowerCase()) {
        throw new AppError("conflict", `The id "${id}" differs from "${other}" by letter case alone`);
      }
    }
  }

  #publish(id: string, revision?: number): void {
    this.#options.events.publish({ kind: this.#options.kind, id, ...(revision !== undefined && { revision }) });
  }

  #unreadable(id: string, cause?: unknown): AppError {
    return new AppError("internal", `The ${this.#options.noun} "${id}" cannot be read`, { cause });
  }

  #place(id: string, field: "head" | "body", version: number): Place {
    return partPlace({ kind: this.#options.kind, id }, field, version);
  }
}
