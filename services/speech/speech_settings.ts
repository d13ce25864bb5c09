/** The settings of the speech server: one sealed document that includes the API key, bound to one origin. */
import { Mutex } from "../async/keyed_mutex.ts";
import { type BoundKey, updateBoundKey } from "../http/api_key.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { normalizeBaseUrl, parseOrigin } from "../http/base_url.ts";
import type { Database } from "../storage/database/database.ts";
import type { AudioFormat } from "./audio_format.ts";
import { type ExpectedVersion, isExpected } from "../storage/preconditions.ts";

/** The settings without the key. */
export interface SpeechConfig {
  /** As `normalizeBaseUrl` returns it. Empty if no server is configured. */
  baseUrl: string;
  model: string;
  voice: string;
  format: AudioFormat;
  /** 0.25 to 4; 1 is the voice's normal speed. */
  speed: number;
  hasKey: boolean;
  /** Increases with every write; 0 before the first one. */
  version: number;
}

/** Changes to the settings. Undefined fields keep their value; `null` resets it. */
export interface SpeechConfigInput {
  baseUrl?: string | null;
  model?: string | null;
  voice?: string | null;
  format?: AudioFormat | null;
  speed?: number | null;
  /** Undefined keeps the stored key if the origin stays the same; `null` clears it. */
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
/** Key in the table `setting`, and the id in change events. */
const KEY = "speech";

/** The settings of the speech server. */
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

  /** @throws {AppError} `internal` if the stored settings can't be decrypted */
  get(): SpeechConfig {
    const { version, content: { key, ...settings } } = this.#load();
    return { ...settings, hasKey: key !== undefined, version };
  }

  /** Finds the stored key for a base URL. The key is bound to its origin. */
  findKey(baseUrl: string): string | undefined {
    const { key } = this.#load().content;
    return key !== undefined && key.origin === parseOrigin(baseUrl) ? key.value : undefined;
  }

  /**
   * Changes the settings.
   *
   * @param expectedVersion The version the stored settings must have.
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`
   */
  put(input: SpeechConfigInput, expectedVersion?: ExpectedVersion): Promise<SpeechConfig> {
    return this.#lock.run(() => this.#write(input, expectedVersion));
  }

  async #write(input: SpeechConfigInput, expectedVersion: ExpectedVersion | undefined): Promise<SpeechConfig> {
    const before = this.#load();
    if (!isExpected(expectedVersion, before.version)) {
      throw new AppError(
        "revision_mismatch",
        `The speech settings have changed: they are at version ${before.version}`,
      );
    }
    const content = applyInput(input, before.content);
    const version = before.version + 1;
    const sealed = this.#sealer.sealNow(createAad(version), JSON.stringify(content));
    const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, ?, ?)";
    await this.#db.write([{ sql, params: [KEY, version, sealed] }]);
    this.#known = { version, content };
    this.#events.publish({ kind: "speech", id: KEY, revision: version });
    return this.get();
  }

  #load(): { version: number; content: Content } {
    return this.#known ??= this.#read();
  }

  #read(): { version: number; content: Content } {
    const row = this.#db.get<{ version: number; sealed: Uint8Array }>(
      "SELECT version, sealed FROM setting WHERE key = ?",
      KEY,
    );
    if (row === undefined) return { version: 0, content: DEFAULTS };
    const text = new TextDecoder().decode(this.#sealer.openNow(createAad(row.version), row.sealed));
    return { version: row.version, content: { ...DEFAULTS, ...JSON.parse(text) } };
  }
}

function applyInput(input: SpeechConfigInput, before: Content): Content {
  const inputUrl = input.baseUrl === undefined ? before.baseUrl : input.baseUrl?.trim() ?? "";
  const baseUrl = inputUrl === "" ? "" : normalizeBaseUrl(inputUrl);
  return {
    baseUrl,
    model: (input.model === undefined ? before.model : input.model ?? "").trim(),
    voice: (input.voice === undefined ? before.voice : input.voice ?? "").trim(),
    format: input.format === undefined ? before.format : input.format ?? DEFAULTS.format,
    speed: input.speed === undefined ? before.speed : input.speed ?? DEFAULTS.speed,
    ...(baseUrl === "" ? {} : updateBoundKey(baseUrl, input.apiKey, before.key)),
  };
}

function createAad(version: number) {
  return { table: "setting", id: KEY, field: "value", version };
}
