/** Keeps responses and their items for a day, sealed and outside of conversations, so that later requests can refer to them. */
import { createHmac } from "node:crypto";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { KeptItem } from "./response_input.ts";
import type { ResponseObject } from "./response_output.ts";

/** Who may read a response: a limited token only what it stored itself, everyone else everything. */
export interface ResponseCaller {
  /** ID of a token that is limited to the OpenAI-compatible API. */
  tokenId?: string;
  /** Whether such a token may go on with stored conversations, and so read them. */
  readsChats?: boolean;
}

/** A stored response. */
interface ResponseRecord {
  response: ResponseObject;
  /** IDs of all items of its context: earlier ones, its input and its output. */
  itemIds: string[];
}

/** How long responses are kept. OpenAI keeps them for 30 days. */
const KEPT_MS = 24 * 60 * 60 * 1000;

/** Maximum size of what one caller's responses occupy. The oldest are removed first. */
const MAX_CALLER_BYTES = 512 * 1024 * 1024;

/** Values are written once, except for responses, whose version counts. */
const ITEM_VERSION = 1;

/** Dependencies of a ResponseStore. */
interface ResponseStoreDeps {
  db: Database;
  sealer: PurposeSealer;
  now(): number;
  maxCallerBytes?: number;
}

const decoder = new TextDecoder();

/** Stores responses. */
export class ResponseStore {
  readonly #deps: ResponseStoreDeps;
  readonly #idKey: Uint8Array;

  constructor(deps: ResponseStoreDeps) {
    this.#deps = deps;
    this.#idKey = deps.sealer.copyKey();
  }

  /**
   * Returns the ID under which an item of a request is stored. The same item has the same ID, because clients repeat
   * the whole history in each request.
   */
  createInputId(item: KeptItem, { tokenId = "" }: ResponseCaller): string {
    const hash = createHmac("sha256", this.#idKey).update(`${tokenId}\n${JSON.stringify(item)}`).digest("hex");
    return `in_${hash.slice(0, 40)}`;
  }

  /**
   * Saves a response, and items that aren't stored yet. The items of its context are kept as long as itself.
   *
   * @param items By their IDs.
   */
  async save(record: ResponseRecord, items: ReadonlyMap<string, KeptItem>, caller: ResponseCaller): Promise<void> {
    const { db, sealer, now } = this.#deps;
    const owner = caller.tokenId ?? "";
    const expiresAt = now() + KEPT_MS;
    const { id } = record.response;
    const version = (this.#findRow(id)?.version ?? 0) + 1;
    const upsert = async (id: string, version: number, value: unknown): Promise<Statement> => ({
      sql: `INSERT INTO stored_response (id, owner, expires_at, version, sealed) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (id) DO UPDATE SET expires_at = ?3, version = ?4, sealed = ?5`,
      params: [id, owner, expiresAt, version, await sealer.seal(createAad(id, version), JSON.stringify(value))],
    });
    const statements = [
      ...await Promise.all([...items].map(([id, item]) => upsert(id, ITEM_VERSION, item))),
      await upsert(id, version, record),
      {
        sql: "UPDATE stored_response SET expires_at = ?1 WHERE id IN (SELECT value FROM json_each(?2))",
        params: [expiresAt, JSON.stringify(record.itemIds)],
      },
      this.#sweepExpired(),
      {
        sql: `DELETE FROM stored_response WHERE id IN (
                SELECT id FROM (
                  SELECT id, SUM(length(sealed)) OVER (ORDER BY expires_at DESC, rowid DESC) AS total
                  FROM stored_response WHERE owner = ?1
                ) WHERE total > ?2)`,
        params: [owner, this.#deps.maxCallerBytes ?? MAX_CALLER_BYTES],
      },
    ];
    await db.write(statements);
  }

  /** Returns a response. @throws {AppError} `not_found`; also if it was removed or belongs to another limited token. */
  get(id: string, caller: ResponseCaller): ResponseRecord {
    const row = id.startsWith("resp_") ? this.#findReadable(id, caller) : undefined;
    if (row === undefined) throw new AppError("not_found", `Response "${id.slice(0, 200)}" not found`);
    return this.#open(row) as ResponseRecord;
  }

  /** Finds an item. */
  findItem(id: string, caller: ResponseCaller): KeptItem | undefined {
    const row = id.startsWith("resp_") ? undefined : this.#findReadable(id, caller);
    return row && this.#open(row) as KeptItem;
  }

  /** Returns which of the IDs are stored. */
  findStored(ids: readonly string[]): Set<string> {
    const rows = this.#deps.db.all<{ id: string }>(
      "SELECT id FROM stored_response WHERE id IN (SELECT value FROM json_each(?)) AND expires_at > ?",
      JSON.stringify(ids),
      this.#deps.now(),
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** Returns the size of items in bytes, without opening them. */
  getSizeBytes(ids: readonly string[]): number {
    return this.#deps.db.get<{ size: number | null }>(
      "SELECT SUM(length(sealed)) AS size FROM stored_response WHERE id IN (SELECT value FROM json_each(?))",
      JSON.stringify(ids),
    )?.size ?? 0;
  }

  /** Deletes a response and the items of its output. @throws Like `get` */
  async delete(id: string, caller: ResponseCaller): Promise<void> {
    const { response } = this.get(id, caller);
    const ids = [id, ...response.output.map((item) => item.id)];
    await this.#deps.db.write([{
      sql: "DELETE FROM stored_response WHERE id IN (SELECT value FROM json_each(?))",
      params: [JSON.stringify(ids)],
    }]);
  }

  /** Removes what has expired. */
  async sweep(): Promise<void> {
    await this.#deps.db.write([this.#sweepExpired()]);
  }

  #sweepExpired(): Statement {
    return { sql: "DELETE FROM stored_response WHERE expires_at <= ?", params: [this.#deps.now()] };
  }

  #findReadable(id: string, { tokenId }: ResponseCaller): Row | undefined {
    const row = this.#findRow(id);
    return row === undefined || (tokenId !== undefined && row.owner !== tokenId) ? undefined : row;
  }

  #findRow(id: string): Row | undefined {
    return this.#deps.db.get<Row>(
      "SELECT id, owner, version, sealed FROM stored_response WHERE id = ? AND expires_at > ?",
      id,
      this.#deps.now(),
    );
  }

  #open({ id, version, sealed }: Row): unknown {
    return JSON.parse(decoder.decode(this.#deps.sealer.openNow(createAad(id, version), sealed)));
  }
}

interface Row {
  id: string;
  owner: string;
  version: number;
  sealed: Uint8Array;
}

function createAad(id: string, version: number) {
  return { table: "stored_response", id, field: "sealed", version };
}
