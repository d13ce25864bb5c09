/**
 * Encrypted JSON documents: rows of the table `document`, rows of the table `setting`, and files that the owner may
 * delete, restore or damage while the server runs.
 */
import type { Aad, PurposeSealer } from "../../crypto/sealer.ts";
import { Mutex } from "../../async/locks.ts";
import { AppError } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { type FileState, readFileState, writeFileAtomic } from "../atomic_file.ts";
import { type EventHub, RESTORED } from "../../events/event_hub.ts";
import type { Database } from "../database/database.ts";
import { assertExpected, type ExpectedVersion } from "../preconditions.ts";

/** Key of a row in the table `document`. */
export interface SealedDocumentRow {
  kind: string;
  id: string;
}

const LENGTH_BYTES = 4;
/** Prefix of the kind of a row in the trash. */
const REMOVED = "removed ";

/**
 * Returns the row of a document in the trash.
 *
 * @param entry ID of the trash item, because the same document ID can be deleted more than once.
 */
export function createTrashRow({ kind, id }: SealedDocumentRow, entry: string): SealedDocumentRow {
  return { kind: REMOVED + kind, id: `${id}/${entry}` };
}

/** Returns the additional authenticated data of a part. That of a row in the trash doesn't change. */
export function createPartAad({ kind, id }: SealedDocumentRow, field: "head" | "body", version: number): Aad {
  const isRemoved = kind.startsWith(REMOVED);
  const name = isRemoved ? `${kind.slice(REMOVED.length)}/${id.split("/")[0]}` : `${kind}/${id}`;
  return { table: "document", id: name, field, version };
}

/** Joins a sealed head and a sealed body. */
export function joinSealed(head: Uint8Array, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(LENGTH_BYTES + head.length + body.length);
  new DataView(whole.buffer).setUint32(0, head.length);
  whole.set(head, LENGTH_BYTES);
  whole.set(body, LENGTH_BYTES + head.length);
  return whole;
}

/** Returns the number of bytes needed to decrypt the head; `Infinity` if the data isn't a sealed document. */
export function measureHead(begin: Uint8Array): number {
  return begin.length < LENGTH_BYTES ? Infinity : LENGTH_BYTES + readHeadLength(begin);
}

/** Returns the sealed head. @param begin The whole value, or its first bytes. */
export function openHead(begin: Uint8Array): Uint8Array {
  return begin.subarray(LENGTH_BYTES, LENGTH_BYTES + readHeadLength(begin));
}

/** Returns the sealed body. */
export function openBody(whole: Uint8Array): Uint8Array {
  return whole.subarray(Math.min(whole.length, LENGTH_BYTES + readHeadLength(whole)));
}

function readHeadLength(begin: Uint8Array): number {
  return begin.length < LENGTH_BYTES ? 0 : new DataView(begin.buffer, begin.byteOffset).getUint32(0);
}

/**
 * A sealed JSON file that the owner may delete, restore or damage while the server runs. The file on disk is always
 * used.
 */
export interface SealedDocument<T> {
  /** Returns the content; `undefined` if the file certainly doesn't exist; an `internal` error if it can't be read. */
  read(): Promise<T | undefined | AppError>;
  /**
   * Replaces the content after pending changes; durable when it resolves.
   *
   * @param next Returns the new content for the current one, or `undefined` for no change. It can be called twice if
   *   the file changes concurrently; its errors pass through.
   * @throws {AppError} `internal` if the file can't be read or written, `storage_full` if the disk is full.
   */
  change(next: (current: T | undefined) => T | undefined): Promise<void>;
}

/** Thrown internally if the file changed between read and write, so that it's read again. */
class ChangedMeanwhile extends Error {}

/** Maximum number of attempts. Nobody replaces these files that often. */
const MAX_TRIES = 5;

/**
 * Opens a sealed file.
 *
 * @param options.parse Validates the content; if it throws, the file counts as unreadable.
 * @param options.untilRepaired Consequence while the file is unreadable, for the log: `"every address requires
 *   sign-in"`.
 */
export function openSealedDocument<T>(options: {
  path: string;
  aad: Aad;
  sealer: PurposeSealer;
  parse(value: unknown): T;
  /** Formats content that `parse` can read; plain JSON by default. */
  stringify?(content: T): string;
  log: Log;
  untilRepaired: string;
}): SealedDocument<T> {
  const { path, aad, sealer, parse, stringify = JSON.stringify, log, untilRepaired } = options;
  let known: { state: FileState; content: T | undefined | AppError } | undefined;
  const lock = new Mutex();

  async function read(): Promise<T | undefined | AppError> {
    const state = readFileState(path);
    if (known?.state.id === state.id && known.state.isSettled) return known.content;
    let content: T | undefined | AppError;
    try {
      content = state.id === "absent" ? undefined : parse(parseJson(await sealer.open(aad, await Deno.readFile(path))));
    } catch (cause) {
      // Removed between the two checks. A dangling link exists and can't be read.
      if (cause instanceof Deno.errors.NotFound && readFileState(path).id === "absent") return undefined;
      content = new AppError(
        "internal",
        `Can't read "${path}": it's damaged, encrypted with another key, or unreadable`,
        { cause },
      );
      if (known?.state.id !== state.id) {
        log("error", `${content.message}; ${untilRepaired} until it is restored or removed`);
      }
    }
    known = { state, content };
    return content;
  }

  async function write(next: (current: T | undefined) => T | undefined): Promise<void> {
    for (let tries = 1;; tries++) {
      const current = await read();
      if (current instanceof AppError) throw current;
      const seen = known?.state.id;
      const content = next(current);
      if (content === undefined) return;
      try {
        await writeFileAtomic(path, sealer.sealNow(aad, stringify(content)), {
          beforeReplace: () => {
            // Deleted by hand in the meantime: don't restore its content.
            if (readFileState(path).id !== seen) throw new ChangedMeanwhile();
          },
        });
        known = { state: readFileState(path), content };
        return;
      } catch (error) {
        const changed = error instanceof AppError && error.cause instanceof ChangedMeanwhile;
        if (!changed || tries === MAX_TRIES) throw error;
      }
    }
  }

  return {
    read,
    change: (next) => lock.run(() => write(next)),
  };
}

function parseJson(plain: Uint8Array): unknown {
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(plain));
}

/** Dependencies of a sealed setting. */
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

/** One row of the table `setting`: a sealed JSON document with a version, cached in memory. */
export class SealedSetting<Content extends object> {
  readonly #deps: SealedSettingDeps;
  readonly #key: string;
  readonly #label: string;
  readonly #defaults: Content;
  #known: SettingVersion<Content> | undefined;
  readonly #lock = new Mutex();

  /**
   * @param options.key Key in the table, and kind and id of its change events.
   * @param options.label Name in errors: `"speech settings"`.
   * @param options.defaults Values of fields that aren't stored.
   */
  constructor(deps: SealedSettingDeps, options: { key: string; label: string; defaults: Content }) {
    this.#deps = deps;
    this.#key = options.key;
    this.#label = options.label;
    this.#defaults = options.defaults;
    deps.events.subscribe(({ kind }) => {
      if (kind === RESTORED) this.#known = undefined;
    });
  }

  /** @throws {AppError} `internal` if the stored document can't be decrypted */
  load(): SettingVersion<Content> {
    return this.#known ??= this.#read();
  }

  /**
   * Replaces the content, one write after another.
   *
   * @param update Returns the new content. If it throws, the setting doesn't change.
   * @param expectedVersion The version the stored document must have.
   * @throws {AppError} `revision_mismatch`
   */
  change(update: (before: Content) => Content, expectedVersion?: ExpectedVersion): Promise<SettingVersion<Content>> {
    return this.#lock.run(async () => {
      const before = this.load();
      assertExpected(this.#label, expectedVersion, before.version);
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
