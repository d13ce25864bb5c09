/** The owner's speech endpoint: one sealed document, its key inside and bound to one origin. */
import { Mutex } from "../async/keyed_mutex.ts";
import { type BoundKey, keyAfter } from "../http/api_key.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { normaliseBaseUrl, originOf } from "../http/base_url.ts";
import type { Database } from "../storage/database/database.ts";
import type { AudioFormat } from "./audio_format.ts";
import { type ExpectedVersion, isExpected } from "../storage/preconditions.ts";

/** What the owner has set, without the key. */
export interface SpeechConfig {
  /** As normaliseBaseUrl leaves it; empty while there is none. */
  baseUrl: string;
  model: string;
  voice: string;
  format: AudioFormat;
  /** Times the voice's own speed, 0.25 to 4. */
  speed: number;
  hasKey: boolean;
  /** Moves with every write; 0 while nobody has made one. */
  version: number;
}

/** What may be changed; what is left out stays. */
export interface SpeechConfigInput {
  baseUrl?: string | null;
  model?: string | null;
  voice?: string | null;
  format?: AudioFormat | null;
  speed?: number | null;
  /** Left out it keeps the stored key as long as the origin stays, `null` clears it. */
  apiKey?: string | null;
}

interface Content {
  baseUrl: string;
  model: string;
  voice: string;
  format: AudioFormat;
  speed: number;
  key?: BoundKey;
}

const DEFAULTS: Content = { baseUrl: "", model: "", voice: "", format: "mp3", speed: 1 };
/** Row of `setting`, and the id that change events carry. */
const KEY = "speech";

/** Reads and changes the speech endpoint. */
export class SpeechSettings {
  readonly #db: Database;
  readonly #sealer: PurposeSealer;
  readonly #events: EventHub;
  #known: { version: number; content: Content } | undefined;
  readonly #lock = new Mutex();

  /** @param options.sealer For the purpose "speech". */
  constructor({ db, sealer, events }: { db: Database; sealer: PurposeSealer; events: EventHub }) {
    this.#db = db;
    this.#sealer = sealer;
    this.#events = events;
  }

  /** @throws {AppError} `internal` when what is stored cannot be opened */
  get(): SpeechConfig {
    const { version, content: { key, ...shown } } = this.#stored();
    return { ...shown, hasKey: key !== undefined, version };
  }

  /** Gives the stored key for a base URL of the origin it was entered for. */
  keyFor(baseUrl: string): string | undefined {
    const { key } = this.#stored().content;
    return key !== undefined && key.origin === originOf(baseUrl) ? key.value : undefined;
  }

  /**
   * Changes the endpoint, in turn with other changes.
   *
   * @param expectedVersion Refuses unless this version stands.
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`
   */
  put(input: SpeechConfigInput, expectedVersion?: ExpectedVersion): Promise<SpeechConfig> {
    return this.#lock.run(() => this.#write(input, expectedVersion));
  }

  async #write(input: SpeechConfigInput, expectedVersion: ExpectedVersion | undefined): Promise<SpeechConfig> {
    const before = this.#stored();
    if (!isExpected(expectedVersion, before.version)) {
      throw new AppError(
        "revision_mismatch",
        `The speech settings are at version ${before.version}, not at the one asked for`,
      );
    }
    const content = contentFrom(input, before.content);
    const version = before.version + 1;
    const sealed = this.#sealer.sealNow(placeOf(version), JSON.stringify(content));
    const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, ?, ?)";
    await this.#db.write([{ sql, params: [KEY, version, sealed] }]);
    this.#known = { version, content };
    this.#events.publish({ kind: "speech", id: KEY, revision: version });
    return this.get();
  }

  #stored(): { version: number; content: Content } {
    return this.#known ??= this.#read();
  }

  #read(): { version: number; content: Content } {
    const row = this.#db.get<{ version: number; sealed: Uint8Array }>(
      "SELECT version, sealed FROM setting WHERE key = ?",
      KEY,
    );
    if (row === undefined) return { version: 0, content: DEFAULTS };
    const text = new TextDecoder().decode(this.#sealer.openNow(placeOf(row.version), row.sealed));
    return { version: row.version, content: { ...DEFAULTS, ...JSON.parse(text) } };
  }
}

function contentFrom(input: SpeechConfigInput, before: Content): Content {
  const given = input.baseUrl === undefined ? before.baseUrl : input.baseUrl?.trim() ?? "";
  const baseUrl = given === "" ? "" : normaliseBaseUrl(given);
  return {
    baseUrl,
    model: (input.model === undefined ? before.model : input.model ?? "").trim(),
    voice: (input.voice === undefined ? before.voice : input.voice ?? "").trim(),
    format: input.format === undefined ? before.format : input.format ?? DEFAULTS.format,
    speed: input.speed === undefined ? before.speed : input.speed ?? DEFAULTS.speed,
    ...(baseUrl === "" ? {} : keyAfter(baseUrl, input.apiKey, before.key)),
  };
}

function placeOf(version: number) {
  return { table: "setting", id: KEY, field: "value", version };
}
