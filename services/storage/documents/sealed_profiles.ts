/** Profiles of the owner's servers: encrypted documents of one kind, cached in memory. One of them can be active. */
import { Mutex } from "../../async/locks.ts";
import { createUuidV7 } from "../../crypto/random.ts";
import type { Aad, PurposeSealer } from "../../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../../errors.ts";
import { type EventHub, RESTORED } from "../../events/event_hub.ts";
import type { Log } from "../../log.ts";
import type { Database, Statement } from "../database/database.ts";
import { assertExpected, type ExpectedVersion } from "../preconditions.ts";

/** A row of the table. */
export interface ProfileRecord<Content> {
  id: string;
  /** Increases with every write. */
  version: number;
  createdAtMs: number;
  updatedAtMs: number;
  /** `undefined` if it can't be decrypted. */
  content: Content | undefined;
}

/** Names and dependencies of one kind of profile. */
export interface ProfileOptions {
  db: Database;
  /** For the kind's own purpose. */
  sealer: PurposeSealer;
  events: EventHub;
  log: Log;
  now?: () => number;
  /** Kind of the documents and of change events. */
  kind: string;
  /** Key in `setting` of the active profile's ID; without it, no profile can be active. */
  activeKey?: string;
  /** False if changes aren't published as events. Default: true. */
  isPublished?: boolean;
  /** Name of a profile in errors: `"connection"`. */
  what: string;
}

interface Row {
  id: string;
  version: number;
  created_at: number;
  updated_at: number;
  sealed: Uint8Array;
}

/** Options of a write. */
export interface ProfileWrite {
  /** The required stored version. */
  expectedVersion?: ExpectedVersion;
  /** Statements for the same transaction. */
  extraStatements?: Statement[];
  /** True for a profile of an import, which never becomes active by itself. */
  isImport?: boolean;
  /** When a new profile was created; the default is now. */
  createdAtMs?: number;
}

/** The profiles of one kind. Writes are on disk before they are visible. */
export class SealedProfiles<Content extends object> {
  readonly #options: ProfileOptions;
  readonly #records = new Map<string, ProfileRecord<Content>>();
  #activeId: string | undefined;
  readonly #lock = new Mutex();

  /** Reads the stored profiles. Unreadable ones stay in the list without content. */
  static async open<Content extends object>(options: ProfileOptions): Promise<SealedProfiles<Content>> {
    const profiles = new SealedProfiles(options, await readRecords<Content>(options));
    options.events.subscribe(({ kind }) => {
      if (kind === RESTORED) void profiles.#lock.run(() => profiles.#reload());
    });
    return profiles;
  }

  async #reload(): Promise<void> {
    const records = await readRecords<Content>(this.#options);
    this.#records.clear();
    for (const record of records) this.#records.set(record.id, record);
  }

  private constructor(options: ProfileOptions, records: ProfileRecord<Content>[]) {
    this.#options = options;
    for (const record of records) this.#records.set(record.id, record);
    const active = options.activeKey === undefined ? undefined : this.readSetting(options.activeKey);
    this.#activeId = active !== undefined && this.#records.has(active) ? active : undefined;
  }

  /** Id of the active profile. */
  get activeId(): string | undefined {
    return this.#activeId;
  }

  /** Lists all profiles, newest first. */
  list(): ProfileRecord<Content>[] {
    return [...this.#records.values()].sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1));
  }

  find(id: string): ProfileRecord<Content> | undefined {
    return this.#records.get(id);
  }

  /** Returns a profile. @throws {AppError} `not_found` */
  get(id: string): ProfileRecord<Content> {
    const record = this.#records.get(id);
    if (record === undefined) {
      throw new AppError(
        "not_found",
        `Can't find the ${this.#options.what} "${id}"`,
      );
    }
    return record;
  }

  /** Returns the content of a profile. @throws {AppError} `not_found`; `conflict` if it can't be read. */
  getContent(id: string): Content {
    const { content } = this.get(id);
    if (content !== undefined) return content;
    const { what } = this.#options;
    throw new AppError("conflict", `Can't read the ${what} "${id}". Save it again`);
  }

  /**
   * Creates or replaces a profile. The first one becomes active.
   *
   * @param id Generated if omitted.
   * @param make Returns the new content for the stored one; its errors pass through.
   * @throws {AppError} `revision_mismatch`; `conflict` if the id differs from another only in case.
   */
  put(
    id: string | undefined,
    make: (before: Content | undefined) => Content,
    write: ProfileWrite = {},
  ): Promise<{ record: ProfileRecord<Content>; isNew: boolean }> {
    return this.#lock.run(async () => {
      const known = id ?? createUuidV7();
      const before = this.#records.get(known);
      assertExpected(`${this.#options.what} "${known}"`, write.expectedVersion, before?.version);
      if (before === undefined) this.#refuseOtherCase(known);
      await this.#save(known, make(before?.content), before, write);
      return { record: this.get(known), isNew: before === undefined };
    });
  }

  /**
   * Changes a profile; does nothing if it can't be read or `make` returns nothing. @throws {AppError} `not_found`,
   * `revision_mismatch`
   */
  change(id: string, make: (before: Content) => Content | undefined, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#lock.run(async () => {
      const record = this.get(id);
      assertExpected(`${this.#options.what} "${id}"`, expectedVersion, record?.version);
      const content = record.content === undefined ? undefined : make(record.content);
      if (content !== undefined) await this.#save(id, content, record);
    });
  }

  /**
   * Removes a profile. If it was active, none is active afterwards: because using another one might cost money.
   *
   * @throws {AppError} `not_found`, `revision_mismatch`
   */
  remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#lock.run(async () => {
      const { db, kind, activeKey } = this.#options;
      const record = this.get(id);
      assertExpected(`${this.#options.what} "${id}"`, expectedVersion, record?.version);
      const statements: Statement[] = [
        { sql: "DELETE FROM document WHERE kind = ? AND id = ?", params: [kind, id], expectChanges: 1 },
      ];
      if (this.#activeId === id) statements.push({ sql: "DELETE FROM setting WHERE key = ?", params: [activeKey!] });
      await db.write(statements);
      this.#records.delete(id);
      if (this.#activeId === id) this.#activeId = undefined;
      this.#publish(id);
    });
  }

  /** Activates a profile of a kind that has an active one. @throws {AppError} `not_found`; `conflict` if it can't be read. */
  activate(id: string): Promise<ProfileRecord<Content>> {
    return this.#lock.run(async () => {
      this.getContent(id);
      const previous = this.#activeId;
      if (previous !== id) {
        await this.#options.db.write([this.createSetting(this.#options.activeKey!, id)]);
        this.#activeId = id;
        if (previous !== undefined) this.#publish(previous);
        this.#publish(id);
      }
      return this.get(id);
    });
  }

  /** Returns the statement that stores a setting with the profiles. */
  createSetting(key: string, value: string): Statement {
    const sealed = this.#options.sealer.sealNow(createSettingAad(key), value);
    return { sql: "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)", params: [key, sealed] };
  }

  /** Returns such a setting; `""` if it can't be read. */
  readSetting(key: string): string | undefined {
    const { db, sealer, log } = this.#options;
    const row = db.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", key);
    if (row === undefined) return undefined;
    try {
      return new TextDecoder().decode(sealer.openNow(createSettingAad(key), row.sealed));
    } catch (error) {
      log("error", "Can't read a setting", { key, error: getErrorMessage(error) });
      return "";
    }
  }

  async #save(
    id: string,
    content: Content,
    before: ProfileRecord<Content> | undefined,
    { extraStatements = [], isImport = false, createdAtMs: givenAtMs }: ProfileWrite = {},
  ): Promise<void> {
    const { db, sealer, now = Date.now, kind, activeKey } = this.#options;
    const updatedAtMs = now();
    const createdAtMs = before?.createdAtMs ?? givenAtMs ?? updatedAtMs;
    const version = (before?.version ?? 0) + 1;
    const sealed = await sealer.seal(toAad(kind, id, version), JSON.stringify(content));
    const statement: Statement = before === undefined
      ? {
        sql: "INSERT INTO document (kind, id, version, created_at, updated_at, sealed) VALUES (?, ?, ?, ?, ?, ?)",
        params: [kind, id, version, createdAtMs, updatedAtMs, sealed],
      }
      : {
        sql: "UPDATE document SET version = ?, updated_at = ?, sealed = ? WHERE kind = ? AND id = ? AND version = ?",
        params: [version, updatedAtMs, sealed, kind, id, before.version],
        expectChanges: 1,
      };
    const isFirst = !isImport && activeKey !== undefined && this.#activeId === undefined &&
      (before === undefined || this.#records.size === 1);
    await db.write([statement, ...extraStatements, ...(isFirst ? [this.createSetting(activeKey, id)] : [])]);
    this.#records.set(id, { id, version, createdAtMs, updatedAtMs, content });
    if (isFirst) this.#activeId = id;
    this.#publish(id);
  }

  #refuseOtherCase(id: string): void {
    const lower = id.toLowerCase();
    for (const other of this.#records.keys()) {
      if (other.toLowerCase() !== lower) continue;
      throw new AppError(
        "conflict",
        `Can't use the ID "${id}" for a ${this.#options.what}: it differs from "${other}" only in case`,
      );
    }
  }

  #publish(id: string): void {
    const { events, kind, isPublished = true } = this.#options;
    if (isPublished) events.publish({ kind, id });
  }
}

async function readRecords<Content>(options: ProfileOptions): Promise<ProfileRecord<Content>[]> {
  const rows = options.db.all<Row>(
    "SELECT id, version, created_at, updated_at, sealed FROM document WHERE kind = ?",
    options.kind,
  );
  return await Promise.all(rows.map(async (row) => ({
    id: row.id,
    version: row.version,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    content: await openContent<Content>(options, row),
  })));
}

async function openContent<Content>(
  { sealer, kind, what, log }: ProfileOptions,
  row: Row,
): Promise<Content | undefined> {
  try {
    return JSON.parse(new TextDecoder().decode(await sealer.open(toAad(kind, row.id, row.version), row.sealed)));
  } catch (error) {
    log("error", `Can't read a stored ${what}`, { id: row.id, error: getErrorMessage(error) });
    return undefined;
  }
}

function toAad(kind: string, id: string, version: number): Aad {
  return { table: "document", id: `${kind}/${id}`, field: "sealed", version };
}

function createSettingAad(key: string): Aad {
  return { table: "setting", id: key, field: "value", version: 1 };
}
