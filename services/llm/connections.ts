/** The owner's connection profiles: stored sealed, one of them active, each key bound to its origin. */
import { uuidV7 } from "../crypto/random.ts";
import type { Place, PurposeSealer } from "../crypto/sealer.ts";
import { AppError, messageOf } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Database, Statement } from "../storage/database.ts";
import {
  type Connection,
  type ConnectionContent,
  connectionFrom,
  type ConnectionInput,
  type ConnectionRecord,
  contentFrom,
} from "./connection_record.ts";
import type { UpstreamTarget, UpstreamTimeouts } from "./provider.ts";

export type { Connection, ConnectionInput } from "./connection_record.ts";

const DOCUMENT_KIND = "connection";
// Rows of `setting`, sealed for the purpose "connections".
const ACTIVE = "active_connection";
const DEMO_INSTALLED = "demo_installed";
const DEMO_ID = "demo";

/** What the profiles need. */
export interface ConnectionsOptions {
  db: Database;
  /** For the purpose "connections". */
  sealer: PurposeSealer;
  events: EventHub;
  now?: () => number;
  /** Used where a profile has no limits of its own. */
  timeouts: UpstreamTimeouts;
}

interface Row {
  id: string;
  version: number;
  created_at: number;
  updated_at: number;
  sealed: Uint8Array;
}

/**
 * Opens the profiles; a fresh data directory gets the demo connection, active.
 *
 * A profile that cannot be opened stays in the list, marked, and harms no other.
 */
export async function openConnections(options: ConnectionsOptions): Promise<Connections> {
  const { db, sealer } = options;
  const rows = db.all<Row>(
    "SELECT id, version, created_at, updated_at, sealed FROM document WHERE kind = ?",
    DOCUMENT_KIND,
  );
  const records = await Promise.all(rows.map(async (row): Promise<ConnectionRecord> => ({
    id: row.id,
    version: row.version,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    content: await openContent(sealer, row),
  })));
  const connections = new Connections(options, records);
  await connections.installDemoOnce();
  return connections;
}

async function openContent(sealer: PurposeSealer, row: Row): Promise<ConnectionContent | undefined> {
  try {
    return JSON.parse(new TextDecoder().decode(await sealer.open(placeOf(row.id, row.version), row.sealed)));
  } catch (error) {
    console.error(`The connection "${row.id}" cannot be read: ${messageOf(error)}`);
    return undefined;
  }
}

/** The profiles, in memory as stored; every write is on disk before it shows. */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #records = new Map<string, ConnectionRecord>();
  #activeId: string | undefined;
  #lastWrite: Promise<unknown> = Promise.resolve();

  /** Use openConnections. */
  constructor(options: ConnectionsOptions, records: ConnectionRecord[]) {
    this.#options = options;
    for (const record of records) this.#records.set(record.id, record);
    const active = this.#readSetting(ACTIVE);
    this.#activeId = active !== undefined && this.#records.has(active) ? active : undefined;
  }

  /** Gives all profiles, the newest first. */
  list(): Connection[] {
    return [...this.#records.values()]
      .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1))
      .map((record) => connectionFrom(record, this.#activeId));
  }

  /** Gives a profile that can be used. */
  find(id: string): Connection | undefined {
    const record = this.#records.get(id);
    return record?.content === undefined ? undefined : connectionFrom(record, this.#activeId);
  }

  /** Gives the active profile. */
  active(): Connection | undefined {
    return this.#activeId === undefined ? undefined : this.find(this.#activeId);
  }

  /**
   * Creates or replaces a profile. The first one that is there becomes active.
   *
   * @param expectedVersion Refuses unless this version stands.
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`
   */
  put(input: ConnectionInput, expectedVersion?: number): Promise<{ connection: Connection; isNew: boolean }> {
    return this.#inTurn(async () => {
      const id = input.id ?? uuidV7();
      const before = this.#records.get(id);
      this.#expect(id, before, expectedVersion);
      this.#refuseOtherCase(id, before);
      await this.#save(id, contentFrom(input, before?.content), before);
      return { connection: this.#get(id), isNew: before === undefined };
    });
  }

  /** Removes a profile. When it was active, none is: another might cost money. @throws {AppError} `not_found` */
  remove(id: string, expectedVersion?: number): Promise<void> {
    return this.#inTurn(async () => {
      const record = this.#record(id);
      this.#expect(id, record, expectedVersion);
      const statements: Statement[] = [
        { sql: "DELETE FROM document WHERE kind = ? AND id = ?", params: [DOCUMENT_KIND, id], expectChanges: 1 },
      ];
      if (this.#activeId === id) statements.push({ sql: "DELETE FROM setting WHERE key = ?", params: [ACTIVE] });
      await this.#options.db.write(statements);
      this.#records.delete(id);
      if (this.#activeId === id) this.#activeId = undefined;
      this.#publish(id);
    });
  }

  /** Forgets the stored key and keeps the profile. @throws {AppError} `not_found` */
  clearKey(id: string, expectedVersion?: number): Promise<void> {
    return this.#inTurn(async () => {
      const record = this.#record(id);
      this.#expect(id, record, expectedVersion);
      if (record.content?.key === undefined) return;
      const { key: _, ...content } = record.content;
      await this.#save(id, content, record);
    });
  }

  /** Makes a profile the active one. @throws {AppError} `not_found`, `conflict` when it cannot be read */
  activate(id: string): Promise<Connection> {
    return this.#inTurn(async () => {
      if (this.#record(id).content === undefined) throw unreadable(id);
      const previous = this.#activeId;
      if (previous !== id) {
        await this.#options.db.write([this.#setting(ACTIVE, id)]);
        this.#activeId = id;
        if (previous !== undefined) this.#publish(previous);
        this.#publish(id);
      }
      return this.#get(id);
    });
  }

  /** Gives what a call through a profile needs, its key included. @throws {AppError} `not_found`, `conflict` */
  targetFor(id: string): UpstreamTarget {
    const { content } = this.#record(id);
    if (content === undefined) throw unreadable(id);
    return this.#target(content);
  }

  /**
   * Gives what a test of an unsaved profile needs. The `id` of a saved one lends its key, to the same origin only.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`
   */
  targetForUnsaved(input: ConnectionInput): UpstreamTarget {
    const stored = input.id === undefined ? undefined : this.#records.get(input.id)?.content;
    return this.#target(contentFrom(input, stored));
  }

  /** Gives a fresh installation its demo; once deleted it does not come back. */
  async installDemoOnce(): Promise<void> {
    if (this.#readSetting(DEMO_INSTALLED) !== undefined) return;
    await this.#inTurn(() =>
      this.#save(DEMO_ID, contentFrom({ kind: "demo", name: "Demo" }, undefined), this.#records.get(DEMO_ID), [
        this.#setting(DEMO_INSTALLED, "true"),
      ])
    );
  }

  #target(content: ConnectionContent): UpstreamTarget {
    const { kind, baseUrl, key, contextSize } = content;
    const timeouts = { ...this.#options.timeouts, ...content.timeouts };
    return { kind, baseUrl, apiKey: key?.value, timeouts, contextSize };
  }

  async #save(
    id: string,
    content: ConnectionContent,
    before: ConnectionRecord | undefined,
    beside: Statement[] = [],
  ): Promise<void> {
    const { db, sealer, now = Date.now } = this.#options;
    const updatedAtMs = now();
    const createdAtMs = before?.createdAtMs ?? updatedAtMs;
    const version = (before?.version ?? 0) + 1;
    const sealed = await sealer.seal(placeOf(id, version), JSON.stringify(content));
    const statement: Statement = before === undefined
      ? {
        sql: "INSERT INTO document (kind, id, version, created_at, updated_at, sealed) VALUES (?, ?, ?, ?, ?, ?)",
        params: [DOCUMENT_KIND, id, version, createdAtMs, updatedAtMs, sealed],
      }
      : {
        sql: "UPDATE document SET version = ?, updated_at = ?, sealed = ? WHERE kind = ? AND id = ? AND version = ?",
        params: [version, updatedAtMs, sealed, DOCUMENT_KIND, id, before.version],
        expectChanges: 1,
      };
    const isFirst = this.#activeId === undefined && (before === undefined || this.#records.size === 1);
    await db.write([statement, ...beside, ...(isFirst ? [this.#setting(ACTIVE, id)] : [])]);
    this.#records.set(id, { id, version, createdAtMs, updatedAtMs, content });
    if (isFirst) this.#activeId = id;
    this.#publish(id);
  }

  #setting(key: string, value: string): Statement {
    const sealed = this.#options.sealer.sealNow(settingPlace(key), value);
    return { sql: "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)", params: [key, sealed] };
  }

  #readSetting(key: string): string | undefined {
    const row = this.#options.db.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", key);
    if (row === undefined) return undefined;
    try {
      return new TextDecoder().decode(this.#options.sealer.openNow(settingPlace(key), row.sealed));
    } catch (error) {
      console.error(`The setting "${key}" cannot be read: ${messageOf(error)}`);
      return "";
    }
  }

  #record(id: string): ConnectionRecord {
    const record = this.#records.get(id);
    if (record === undefined) throw new AppError("not_found", `There is no connection "${id}"`);
    return record;
  }

  #get(id: string): Connection {
    return connectionFrom(this.#record(id), this.#activeId);
  }

  #expect(id: string, record: ConnectionRecord | undefined, expectedVersion: number | undefined): void {
    if (expectedVersion === undefined || expectedVersion === record?.version) return;
    const found = record === undefined ? "it does not exist" : `it is at version ${record.version}`;
    throw new AppError(
      "revision_mismatch",
      `Cannot write the connection "${id}" at another version than asked: ${found}`,
    );
  }

  #refuseOtherCase(id: string, before: ConnectionRecord | undefined): void {
    if (before !== undefined) return;
    const lower = id.toLowerCase();
    for (const other of this.#records.keys()) {
      if (other.toLowerCase() === lower) {
        throw new AppError("conflict", `Cannot name a connection "${id}": "${other}" differs by letter case alone`);
      }
    }
  }

  #publish(id: string): void {
    this.#options.events.publish({ kind: "connection", id });
  }

  /** Writes follow one another, so that each sees what the one before it left. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#lastWrite.then(work);
    this.#lastWrite = result.catch(() => {});
    return result;
  }
}

function placeOf(id: string, version: number): Place {
  return { table: "document", id: `${DOCUMENT_KIND}/${id}`, field: "sealed", version };
}

function settingPlace(key: string): Place {
  return { table: "setting", id: key, field: "value", version: 1 };
}

function unreadable(id: string): AppError {
  return new AppError("conflict", `Cannot use the connection "${id}": its record cannot be read; save it anew`);
}
