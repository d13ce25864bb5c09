/** The settings of the speech server: one sealed document that includes the API key, bound to one origin. */
import { type BoundKey, updateBoundKey } from "../http/api_key.ts";
import { normalizeBaseUrl, parseOrigin } from "../http/base_url.ts";
import { SealedSetting, type SealedSettingDeps } from "../storage/documents/sealed_setting.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import type { AudioFormat } from "./audio_format.ts";

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

/** The settings of the speech server. */
export class SpeechSettings {
  readonly #setting: SealedSetting<Content>;

  /** @param deps.sealer For the purpose "speech". */
  constructor(deps: SealedSettingDeps) {
    this.#setting = new SealedSetting(deps, { key: "speech", label: "The speech settings", defaults: DEFAULTS });
  }

  /** @throws {AppError} `internal` if the stored settings can't be decrypted */
  get(): SpeechConfig {
    const { version, content: { key, ...settings } } = this.#setting.load();
    return { ...settings, hasKey: key !== undefined, version };
  }

  /** Finds the stored key for a base URL. The key is bound to its origin. */
  findKey(baseUrl: string): string | undefined {
    const { key } = this.#setting.load().content;
    return key !== undefined && key.origin === parseOrigin(baseUrl) ? key.value : undefined;
  }

  /**
   * Changes the settings.
   *
   * @param expectedVersion The version the stored settings must have.
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`
   */
  async put(input: SpeechConfigInput, expectedVersion?: ExpectedVersion): Promise<SpeechConfig> {
    await this.#setting.change((before) => applyInput(input, before), expectedVersion);
    return this.get();
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
