/** Remembers what requests with an `Idempotency-Key` made, so that a repetition makes nothing twice. */
import { KeyedMutex } from "../async/locks.ts";
import { createUuidV7, nodeCrypto } from "../crypto/random.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { Database } from "./database/database.ts";
import type { IsExpired } from "./retention_clock.ts";

/** How long a key is known. */
const IDEMPOTENCY_KEY_MS = 7 * 24 * 60 * 60 * 1000;

const PREFIX = "idempotency:";

/** What is stored of a request. */
interface Result {
  /** The id of what it makes. */
  id: string;
  /** Hash of its body; undefined until it's done. */
  fingerprint?: string;
  createdAtMs: number;
}

/** A request that makes something under a new id. */
export interface IdempotentRequest {
  /** The kind of request: a key counts for one kind only. */
  kind: string;
  /** Undefined for a request without one. */
  key: string | undefined;
  /** The id that the client chose, if any. */
  id?: string;
  /** Reports whether what it makes exists. */
  exists(id: string): boolean | Promise<boolean>;
  /** Makes it and returns the hash of the body. */
  make(id: string): Promise<string>;
  /** Returns the hash of the body, of a repetition. */
  readFingerprint(): Promise<string>;
}

/** The results of the last seven days. */
export class IdempotentResults {
  readonly #db: Database;
  readonly #sealer: PurposeSealer;
  readonly #isExpired: IsExpired;
  readonly #now: () => number;
  readonly #locks = new KeyedMutex();

  /** @param deps.sealer For the purpose "settings". */
  constructor({ db, sealer, isExpired, now }: {
    db: Database;
    sealer: PurposeSealer;
    isExpired: IsExpired;
    now(): number;
  }) {
    this.#db = db;
    this.#sealer = sealer;
    this.#isExpired = isExpired;
    this.#now = now;
  }

  /**
   * Makes something, or finds what an earlier request with the same key made. The id is stored before it's made, so that
   * also a stop in between makes nothing twice.
   *
   * @returns The id of what was made, now or before.
   * @throws {AppError} `unprocessable` if the earlier request had another body; errors of `make`
   */
  run(request: IdempotentRequest): Promise<string> {
    const { kind, key, id = createUuidV7(), exists, make, readFingerprint } = request;
    if (key === undefined) return makeNew(id, make);
    const name = PREFIX + nodeCrypto().createHash("sha256").update(`${kind}\n${key}`).digest("base64url");
    return this.#locks.run(name, async () => {
      const known = this.#find(name);
      if (known?.fingerprint !== undefined) {
        if (known.fingerprint === await readFingerprint()) return known.id;
        throw new AppError("unprocessable", "This Idempotency-Key was used for a request with another body");
      }
      if (known !== undefined && await exists(known.id)) return known.id;
      const result: Result = known ?? { id, createdAtMs: this.#now() };
      await this.#save(name, result);
      const fingerprint = await make(result.id);
      await this.#save(name, { ...result, fingerprint });
      return result.id;
    });
  }

  /** Forgets old keys. */
  async sweep(): Promise<void> {
    const rows = this.#db.all<{ key: string }>("SELECT key FROM setting WHERE key LIKE ?", `${PREFIX}%`);
    const old = rows.filter(({ key }) => this.#find(key) === undefined);
    if (old.length === 0) return;
    await this.#db.write(old.map(({ key }) => ({ sql: "DELETE FROM setting WHERE key = ?", params: [key] })));
  }

  #find(name: string): Result | undefined {
    const row = this.#db.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", name);
    if (row === undefined) return undefined;
    const result = JSON.parse(new TextDecoder().decode(this.#sealer.openNow(toAad(name), row.sealed))) as Result;
    return this.#isExpired(result.createdAtMs, IDEMPOTENCY_KEY_MS) ? undefined : result;
  }

  async #save(name: string, result: Result): Promise<void> {
    await this.#db.write([{
      sql: "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)",
      params: [name, this.#sealer.sealNow(toAad(name), JSON.stringify(result))],
    }]);
  }
}

async function makeNew(id: string, make: IdempotentRequest["make"]): Promise<string> {
  await make(id);
  return id;
}

function toAad(name: string) {
  return { table: "setting", id: name, field: "value", version: 1 };
}

/** Returns the hash of a JSON body. */
export function hashJson(value: unknown): string {
  return nodeCrypto().createHash("sha256").update(JSON.stringify(value)).digest("base64url");
}

/** Hashes a stream that is read, or already was. */
export class HashedStream {
  readonly #content: AsyncIterable<Uint8Array<ArrayBuffer>>;
  readonly #hash = nodeCrypto().createHash("sha256");

  constructor(content: AsyncIterable<Uint8Array<ArrayBuffer>>) {
    this.#content = content;
  }

  /** Passes the content on. */
  async *read(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for await (const piece of this.#content) {
      this.#hash.update(piece);
      yield piece;
    }
  }

  /** Returns the hash of what was read. */
  digest(): string {
    return this.#hash.digest("base64url");
  }

  /** Reads to the end and returns the hash. */
  async drain(): Promise<string> {
    for await (const _ of this.read());
    return this.digest();
  }
}
