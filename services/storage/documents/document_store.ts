/**
 * Named documents, encrypted in the table `document`: a short head for lists, and a body that is decrypted on request.
 */
import { LRUCache } from "lru-cache";
import { createUuidV7 } from "../../crypto/random.ts";
import type { Aad, PurposeSealer } from "../../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../../errors.ts";
import { type EventHub, RESTORED } from "../../events/event_hub.ts";
import type { Log } from "../../log.ts";
import type { Database, Statement } from "../database/database.ts";
import { KeyedMutex } from "../../async/locks.ts";
import { parseJsonIncrementally } from "../../json/incremental_parse.ts";
import { MAX_PARSED_BYTES } from "../../json/json_body.ts";
import { createPartAad, createTrashRow, joinSealed, measureHead, openBody, openHead } from "./sealed_document.ts";
import { assertExpected, type ExpectedVersion } from "../preconditions.ts";

/** A document without its body. `head` is `undefined` if it can't be decrypted. */
export interface ListedDocument<Head> {
  id: string;
  /** Starts at 1 and increases with every write. */
  version: number;
  createdAtMs: number;
  updatedAtMs: number;
  head: Head | undefined;
}

/** A whole document. */
export interface OpenedDocument<Head, Body> extends ListedDocument<Head> {
  head: Head;
  body: Body;
}

interface MadeDocument<Head, Body> {
  head: Head;
  body: Body;
  text?: string;
  createdAtMs?: number | undefined;
}

/** Dependencies and names of a store. */
export interface DocumentStoreOptions<Head> {
  /** Kind of the rows, change events and trash items. */
  kind: string;
  /** Name of a document in messages: `"lorebook"`. */
  noun: string;
  db: Database;
  /** For the store's own purpose. */
  sealer: PurposeSealer;
  events: EventHub;
  log: Log;
  trash: { put(kind: string, title: string, record: unknown, id?: string): Statement; publishChange(): void };
  now(): number;
  /** Returns the title for the trash. */
  getTitle(head: Head): string;
}

interface Row {
  id: string;
  version: number;
  created_at: number;
  updated_at: number;
  sealed: Uint8Array;
}

/** Record in the trash, with the key of the row. */
interface TrashRecord {
  id: string;
  entry: string;
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();
/** Number of bytes read from each row for a list. A longer head is read again. */
const HEAD_BYTES = 4 * 1024;
/** Maximum size of decrypted bodies in memory. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;

/** The documents of one kind. Heads stay in memory, so lists need no I/O. */
export class DocumentStore<Head, Body> {
  readonly #options: DocumentStoreOptions<Head>;
  readonly #locks = new KeyedMutex();
  /** Decrypted bodies by ID, one version each. `bytes` is about the length of its JSON. */
  readonly #bodies = new LRUCache<string, { version: number; body: Body; bytes: number }>({
    maxSize: MAX_BODY_BYTES,
    sizeCalculation: ({ bytes }) => bytes + 1, // At least 1
  });
  #known: Map<string, ListedDocument<Head>> | undefined;

  constructor(options: DocumentStoreOptions<Head>) {
    this.#options = options;
    options.events.subscribe(({ kind }) => {
      if (kind !== RESTORED) return;
      this.#known = undefined;
      this.#bodies.clear();
    });
  }

  /** Lists all documents, newest first. Unreadable ones have no head. */
  list(): ListedDocument<Head>[] {
    return [...this.#listHeads().values()].sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1));
  }

  /**
   * Finds a whole document. The body is shared: don't modify it.
   *
   * @throws {AppError} `internal` if it can't be decrypted.
   */
  async find(id: string): Promise<OpenedDocument<Head, Body> | undefined> {
    const listed = this.#listHeads().get(id);
    if (listed === undefined) return undefined;
    const { version, head } = listed;
    const cached = this.#bodies.get(id);
    return head !== undefined && cached?.version === version
      ? { ...listed, head, body: cached.body }
      : await this.#read(id);
  }

  /** Like `find`. @throws {AppError} `not_found` */
  async get(id: string): Promise<OpenedDocument<Head, Body>> {
    const found = await this.find(id);
    if (found === undefined) {
      throw new AppError(
        "not_found",
        `Can't find the ${this.#options.noun} "${id}"`,
      );
    }
    return found;
  }

  /**
   * Creates or replaces a document.
   *
   * @param make Receives the stored document if there is a readable one. `createdAtMs` counts for new documents only;
   *   the default is now. `text` is the JSON of a long body; by default it's written at once.
   * @param expectedVersion The required stored version.
   * @throws {AppError} `revision_mismatch`; `conflict` if the id differs from another only in case.
   */
  put(
    id: string,
    make: (
      before: OpenedDocument<Head, Body> | undefined,
    ) => MadeDocument<Head, Body> | Promise<MadeDocument<Head, Body>>,
    expectedVersion?: ExpectedVersion,
  ): Promise<OpenedDocument<Head, Body> & { isNew: boolean }> {
    return this.#locks.run(id.toLowerCase(), async () => {
      const before = this.#listHeads().get(id);
      assertExpected(`${this.#options.noun} "${id}"`, expectedVersion, before?.version);
      if (before === undefined) this.#refuseOtherCase(id);
      const { head, body, text, createdAtMs } = await make(await this.#findReadable(id));
      const updatedAtMs = this.#options.now();
      const listed = {
        id,
        head,
        updatedAtMs,
        version: (before?.version ?? 0) + 1,
        createdAtMs: before?.createdAtMs ?? createdAtMs ?? updatedAtMs,
      };
      await this.#options.db.write([await this.#save(listed, { body, text }, before)]);
      this.#listHeads().set(id, listed);
      this.#publish(id, listed.version);
      return { ...listed, body, isNew: before === undefined };
    });
  }

  /** Moves a document to the trash. @throws {AppError} `not_found`, `revision_mismatch` */
  remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#locks.run(id.toLowerCase(), async () => {
      const { db, kind, noun, trash, getTitle } = this.#options;
      const before = this.#listHeads().get(id);
      if (before === undefined) {
        throw new AppError("not_found", `Can't find the ${noun} "${id}"`);
      }
      assertExpected(`${this.#options.noun} "${id}"`, expectedVersion, before?.version);
      const record: TrashRecord = { id, entry: createUuidV7() };
      const removed = createTrashRow({ kind, id }, record.entry);
      const title = before.head === undefined ? id : getTitle(before.head);
      await db.write([
        {
          sql: "UPDATE document SET kind = ?, id = ? WHERE kind = ? AND id = ?",
          params: [removed.kind, removed.id, kind, id],
          expectChanges: 1,
        },
        trash.put(kind, title, record, record.entry),
      ]);
      this.#listHeads().delete(id);
      this.#bodies.delete(id);
      this.#publish(id);
      trash.publishChange();
    });
  }

  /** Permanently deletes a document, without the trash. Does nothing if it doesn't exist. */
  delete(id: string): Promise<void> {
    return this.#locks.run(id.toLowerCase(), async () => {
      const { db, kind } = this.#options;
      if (!this.#listHeads().has(id)) return;
      await db.write([{ sql: "DELETE FROM document WHERE kind = ? AND id = ?", params: [kind, id] }]);
      this.#listHeads().delete(id);
      this.#bodies.delete(id);
      this.#publish(id);
    });
  }

  /** Restores a document from the trash. @throws {AppError} `conflict` if its ID is taken. */
  restore(value: unknown, removal: Statement): Promise<void> {
    const { id, entry } = value as TrashRecord;
    return this.#locks.run(id.toLowerCase(), async () => {
      const { db, kind, noun } = this.#options;
      if (this.#listHeads().has(id)) {
        throw new AppError("conflict", `Can't restore the ${noun}: the ID "${id}" is taken`);
      }
      this.#refuseOtherCase(id);
      const removed = createTrashRow({ kind, id }, entry);
      await db.write([
        {
          sql: "UPDATE document SET kind = ?, id = ? WHERE kind = ? AND id = ?",
          params: [kind, id, removed.kind, removed.id],
          expectChanges: 1,
        },
        removal,
      ]);
      this.#known = undefined;
      this.#publish(id, this.#listHeads().get(id)?.version);
    });
  }

  /** Permanently deletes a document in the trash. */
  async purge(value: unknown, removal: Statement): Promise<void> {
    const { id, entry } = value as TrashRecord;
    const removed = createTrashRow({ kind: this.#options.kind, id }, entry);
    await this.#options.db.write([
      { sql: "DELETE FROM document WHERE kind = ? AND id = ?", params: [removed.kind, removed.id] },
      removal,
    ]);
  }

  #listHeads(): Map<string, ListedDocument<Head>> {
    return this.#known ??= new Map(
      this.#options.db.all<Row>(
        `SELECT id, version, created_at, updated_at, coalesce(substr(sealed, 1, ${HEAD_BYTES}), x'') AS sealed
         FROM document WHERE kind = ?`,
        this.#options.kind,
      ).map((row) => [row.id, this.#openHead(row)]),
    );
  }

  #openHead(row: Row): ListedDocument<Head> {
    const { id, version } = row;
    const frame = { id, version, createdAtMs: row.created_at, updatedAtMs: row.updated_at };
    try {
      const begin = measureHead(row.sealed) > HEAD_BYTES ? this.#readSealed(id) : row.sealed;
      const head = this.#options.sealer.openNow(this.#createAad(id, "head", version), openHead(begin));
      return { ...frame, head: JSON.parse(decoder.decode(head)) };
    } catch (error) {
      const { log, noun } = this.#options;
      log("error", `Can't read a stored ${noun}`, { id, error: getErrorMessage(error) });
      return { ...frame, head: undefined };
    }
  }

  /** Finds a document that can be read. Unreadable ones can be replaced. */
  async #findReadable(id: string): Promise<OpenedDocument<Head, Body> | undefined> {
    try {
      return await this.find(id);
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  /** Reads the row itself: a write may be committed before the heads in memory are updated. */
  async #read(id: string): Promise<OpenedDocument<Head, Body> | undefined> {
    const row = this.#options.db.get<Row>(
      "SELECT id, version, created_at, updated_at, sealed FROM document WHERE kind = ? AND id = ?",
      this.#options.kind,
      id,
    );
    if (row === undefined) return undefined;
    const { head, ...frame } = this.#openHead(row);
    if (head === undefined) throw this.#createUnreadableError(id);
    try {
      const opened = await this.#options.sealer.open(this.#createAad(id, "body", row.version), openBody(row.sealed));
      const body = await parseBody<Body>(opened);
      if (this.#listHeads().get(id)?.version === row.version) {
        this.#bodies.set(id, { version: row.version, body, bytes: opened.length });
      }
      return { ...frame, head, body };
    } catch (cause) {
      throw this.#createUnreadableError(id, cause);
    }
  }

  #readSealed(id: string): Uint8Array {
    const row = this.#options.db.get<{ sealed: Uint8Array }>(
      "SELECT sealed FROM document WHERE kind = ? AND id = ?",
      this.#options.kind,
      id,
    );
    if (row === undefined) throw this.#createUnreadableError(id);
    return row.sealed;
  }

  async #save(
    { id, version, createdAtMs, updatedAtMs, head }: ListedDocument<Head>,
    { body, text: written }: { body: Body; text: string | undefined },
    before: ListedDocument<Head> | undefined,
  ): Promise<Statement> {
    const { kind, sealer } = this.#options;
    const text = written ?? JSON.stringify(body);
    const sealed = joinSealed(
      sealer.sealNow(this.#createAad(id, "head", version), JSON.stringify(head)),
      await sealer.seal(this.#createAad(id, "body", version), text),
    );
    // Parse it again: JSON omits parts of the object in memory.
    this.#bodies.set(id, { version, body: await parseBody(encoder.encode(text)), bytes: text.length });
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

  #refuseOtherCase(id: string): void {
    for (const other of this.#listHeads().keys()) {
      if (other.toLowerCase() === id.toLowerCase()) {
        throw new AppError("conflict", `The ID "${id}" differs from "${other}" only in case`);
      }
    }
  }

  #publish(id: string, revision?: number): void {
    this.#options.events.publish({ kind: this.#options.kind, id, ...(revision !== undefined && { revision }) });
  }

  #createUnreadableError(id: string, cause?: unknown): AppError {
    return new AppError("internal", `Can't read the ${this.#options.noun} "${id}"`, { cause });
  }

  #createAad(id: string, field: "head" | "body", version: number): Aad {
    return createPartAad({ kind: this.#options.kind, id }, field, version);
  }
}

async function parseBody<Body>(opened: Uint8Array): Promise<Body> {
  const isShort = opened.length <= MAX_PARSED_BYTES;
  return isShort ? JSON.parse(decoder.decode(opened)) : await parseJsonIncrementally(opened, Infinity) as Body;
}
