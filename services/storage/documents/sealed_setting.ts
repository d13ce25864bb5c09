/** One row of the table `setting`: a sealed JSON document with a version, read from memory after the first time. */
import { Mutex } from "../../async/locks.ts";
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { AppError } from "../../errors.ts";
import type { EventHub } from "../../events/event_hub.ts";
import type { Database } from "../database/database.ts";
import { type ExpectedVersion, isExpected } from "../preconditions.ts";

/** What a sealed setting needs. */
export interface SealedSettingDeps {
  db: Database;
  sealer: PurposeSealer;
  events: EventHub;
}

/** A setting and its version: 0 before the first write, increased by every write. */
export interface SettingVersion<Content> {
  version: number;
  content: Content;
}

/** A sealed document that exists once. */
export class SealedSetting<Content extends object> {
  readonly #deps: SealedSettingDeps;
  readonly #key: string;
  readonly #label: string;
  readonly #defaults: Content;
  #known: SettingVersion<Content> | undefined;
  readonly #lock = new Mutex();

  /**
   * @param options.key Key in the table, and kind and id of its change events.
   * @param options.label How errors name it: `"The speech settings"`.
   * @param options.defaults For fields that aren't stored.
   */
  constructor(deps: SealedSettingDeps, options: { key: string; label: string; defaults: Content }) {
    this.#deps = deps;
    this.#key = options.key;
    this.#label = options.label;
    this.#defaults = options.defaults;
  }

  /** @throws {AppError} `internal` if the stored document can't be decrypted */
  load(): SettingVersion<Content> {
    return this.#known ??= this.#read();
  }

  /**
   * Replaces the content, one write after another.
   *
   * @param update Returns the new content. What it throws leaves the setting as it is.
   * @param expectedVersion The version the stored document must have.
   * @throws {AppError} `revision_mismatch`
   */
  change(update: (before: Content) => Content, expectedVersion?: ExpectedVersion): Promise<SettingVersion<Content>> {
    return this.#lock.run(async () => {
      const before = this.load();
      if (!isExpected(expectedVersion, before.version)) {
        throw new AppError("revision_mismatch", `${this.#label} have changed: they are at version ${before.version}`);
      }
      const content = update(before.content);
      const version = before.version + 1;
      const { db, sealer, events } = this.#deps;
      const sealed = sealer.sealNow(this.#createAad(version), JSON.stringify(content));
      const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, ?, ?)";
      await db.write([{ sql, params: [this.#key, version, sealed] }]);
      this.#known = { version, content };
      events.publish({ kind: this.#key, id: this.#key, revision: version });
      return this.#known;
    });
  }

  #read(): SettingVersion<Content> {
    const { db, sealer } = this.#deps;
    const row = db.get<{ version: number; sealed: Uint8Array }>(
      "SELECT version, sealed FROM setting WHERE key = ?",
      this.#key,
    );
    if (row === undefined) return { version: 0, content: this.#defaults };
    const text = new TextDecoder().decode(sealer.openNow(this.#createAad(row.version), row.sealed));
    return { version: row.version, content: { ...this.#defaults, ...JSON.parse(text) } };
  }

  #createAad(version: number) {
    return { table: "setting", id: this.#key, field: "value", version };
  }
}
