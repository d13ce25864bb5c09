/** The settings of the transcription server: one sealed document that includes the API key, bound to one origin. */
import { type BoundKey, updateBoundKey } from "../http/api_key.ts";
import { normalizeBaseUrl, parseOrigin } from "../http/base_url.ts";
import { SealedSetting, type SealedSettingDeps } from "../storage/documents/sealed_setting.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";

/** The settings without the key. */
export interface TranscriptionConfig {
  /** As `normalizeBaseUrl` returns it. Empty if no server is configured. */
  baseUrl: string;
  /** Empty for the server's first model that transcribes. */
  model: string;
  /** ISO 639-1. Empty if the server detects the language. */
  language: string;
  hasKey: boolean;
  /** Increases with every write; 0 before the first one. */
  version: number;
}

/** Changes to the settings. Undefined fields keep their value; `null` resets it. */
export interface TranscriptionConfigInput {
  baseUrl?: string | null;
  model?: string | null;
  language?: string | null;
  /** Undefined keeps the stored key if the origin stays the same; `null` clears it. */
  apiKey?: string | null;
}

interface Content {
  baseUrl: string;
  model: string;
  language: string;
  key?: BoundKey;
}

const DEFAULTS: Content = { baseUrl: "", model: "", language: "" };

/** The settings of the transcription server. */
export class TranscriptionSettings {
  readonly #setting: SealedSetting<Content>;

  /** @param deps.sealer For the purpose "transcription". */
  constructor(deps: SealedSettingDeps) {
    const label = "The transcription settings";
    this.#setting = new SealedSetting(deps, { key: "transcription", label, defaults: DEFAULTS });
  }

  /** @throws {AppError} `internal` if the stored settings can't be decrypted */
  get(): TranscriptionConfig {
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
  async put(input: TranscriptionConfigInput, expectedVersion?: ExpectedVersion): Promise<TranscriptionConfig> {
    await this.#setting.change((before) => applyInput(input, before), expectedVersion);
    return this.get();
  }

  /**
   * Returns what the settings would be after a change, without saving them.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`
   */
  preview(input: TranscriptionConfigInput): { baseUrl: string; model: string; language: string; apiKey?: string } {
    const { key, ...settings } = applyInput(input, this.#setting.load().content);
    return { ...settings, apiKey: key?.value };
  }
}

function applyInput(input: TranscriptionConfigInput, before: Content): Content {
  const inputUrl = input.baseUrl === undefined ? before.baseUrl : input.baseUrl?.trim() ?? "";
  const baseUrl = inputUrl === "" ? "" : normalizeBaseUrl(inputUrl);
  return {
    baseUrl,
    model: (input.model === undefined ? before.model : input.model ?? "").trim(),
    language: (input.language === undefined ? before.language : input.language ?? "").trim(),
    ...(baseUrl === "" ? {} : updateBoundKey(baseUrl, input.apiKey, before.key)),
  };
}

/** Longest recording in bytes, as OpenAI limits it. */
export const MAX_RECORDING_BYTES = 25 * 1024 * 1024;
