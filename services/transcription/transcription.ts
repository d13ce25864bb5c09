/** Transcription: converts recordings to text with the owner's transcription server. */
import { KeyedSemaphore } from "../async/locks.ts";
import { AppError } from "../errors.ts";
import { type BoundKey, normalizeBaseUrl, parseOrigin, updateBoundKey } from "../http/base_url.ts";
import { type HttpClient, openHttpClient } from "../http/http_client.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import { AUDIO_TYPES, sniffAudio, type SniffedFormat } from "../speech/audio_format.ts";
import { ListedModels } from "../speech/voice_lists.ts";
import { SealedSetting, type SealedSettingDeps } from "../storage/documents/sealed_document.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import type { TranscriptEvent } from "./transcript_events.ts";
import {
  type Transcript,
  TRANSCRIPTION_MODEL,
  type TranscriptionInput,
  TranscriptionServer,
} from "./transcription_server.ts";
import type { CloseHook } from "../async/lazy.ts";
import type { Sealer } from "../crypto/sealer.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Database } from "../storage/database/database.ts";
import { toWaveFile } from "../speech/wave_file.ts";

/** The settings without the key. */
export interface TranscriptionConfig {
  /** From `normalizeBaseUrl`. Empty if no server is configured. */
  baseUrl: string;
  /** Empty for the server's first model that transcribes. */
  model: string;
  /** ISO 639-1. Empty if the server detects the language. */
  language: string;
  hasKey: boolean;
  /** Increases with every write; 0 before the first one. */
  version: number;
}

/** Changes to the settings. `undefined` fields don't change; `null` resets a field. */
export interface TranscriptionConfigInput {
  baseUrl?: string | null;
  model?: string | null;
  language?: string | null;
  /** `undefined` preserves the stored key if the origin stays the same; `null` clears it. */
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
    const label = "transcription settings";
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
   * Returns the settings after a change, without saving them.
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

/** Maximum size of a recording, the same as OpenAI's. */
export const MAX_RECORDING_BYTES = 25 * 1024 * 1024;

/** A recording to transcribe. `undefined` fields come from the settings. */
export interface TranscriptionRequest {
  /** Its format is detected by its signature. */
  audio: Uint8Array<ArrayBuffer>;
  model?: string;
  /** ISO 639-1: `"en"`. */
  language?: string;
  /** Text with the spelling of names in the recording. */
  prompt?: string;
}

/** The result of a test. */
export interface TranscriptionTestResult {
  /** Whether an HTTP server responded. */
  isReachable: boolean;
  /** Why it can't transcribe. */
  error?: string;
  /** The models that transcribe; all models if none looks like it. */
  models: string[];
  latencyMs: number;
}

/** Accepted formats, with the extensions that servers expect. */
const EXTENSIONS: Partial<Record<SniffedFormat, string>> = {
  wav: "wav",
  webm: "webm",
  ogg: "ogg",
  opus: "ogg",
  m4a: "mp4",
  mp3: "mp3",
  flac: "flac",
};
/** Maximum number of concurrent requests to a server: one that is processed and one that is being sent. */
const MAX_CONCURRENT = 2;
/** Maximum number of servers to remember. */
const MAX_SERVERS = 20;
/** Time limits of a test. Someone is waiting, but the first request may load the model. */
const TEST_TIMEOUTS = { connectMs: 5_000, firstByteMs: 60_000, idleMs: 15_000 };

/** Transcribes through the configured server. */
class Transcription {
  readonly settings: TranscriptionSettings;
  readonly #client: HttpClient;
  readonly #semaphore = new KeyedSemaphore(MAX_CONCURRENT);
  readonly #servers = new Map<string, TranscriptionServer>();
  readonly #listed = new ListedModels((signal) => this.listModels(signal));

  constructor(deps: { settings: TranscriptionSettings; client: HttpClient }) {
    this.settings = deps.settings;
    this.#client = deps.client;
  }

  /**
   * Transcribes a recording.
   *
   * @throws {AppError} `unsupported_media_type` for other formats, `too_large`, `not_available` if no server is configured,
   *   `upstream_error`, `upstream_timeout`, `address_not_allowed`
   * @throws The abort reason of `signal`.
   */
  async transcribe(request: TranscriptionRequest, signal: AbortSignal): Promise<Transcript> {
    const { server, input } = this.#prepare(request);
    const release = await this.#semaphore.acquire(parseOrigin(server.target.baseUrl), signal);
    try {
      return await server.transcribe(input, signal);
    } finally {
      release();
    }
  }

  /** Transcribes a recording and yields its text as it arrives. The last event is `done`. @throws Like `transcribe` */
  async *stream(request: TranscriptionRequest, signal: AbortSignal): AsyncGenerator<TranscriptEvent> {
    const { server, input } = this.#prepare(request);
    const release = await this.#semaphore.acquire(parseOrigin(server.target.baseUrl), signal);
    try {
      yield* server.stream(input, signal);
    } finally {
      release();
    }
  }

  /** Lists the models of the configured server. @throws {AppError} `not_available`, `upstream_error`, `upstream_timeout` */
  async listModels(signal: AbortSignal): Promise<string[]> {
    return await this.#getServer().listModels(signal);
  }

  /** Returns the model to use for a client's model name; see `ListedModels`. @throws Like `listModels` */
  async chooseModel(name: string, signal: AbortSignal): Promise<string> {
    return await this.#listed.choose(name, this.settings.get(), signal);
  }

  /**
   * Transcribes a second of silence with changed settings, which aren't saved.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`: errors in the input, not of the server
   * @throws The abort reason of `signal`.
   */
  async test(change: TranscriptionConfigInput, signal: AbortSignal): Promise<TranscriptionTestResult> {
    const { baseUrl, apiKey, model, language } = this.settings.preview(change);
    if (baseUrl === "") throw new AppError("invalid_request", "Can't test the transcription server: it has no address");
    const server = new TranscriptionServer(this.#client, { baseUrl, apiKey });
    const startedAtMs = performance.now();
    const getLatencyMs = () => Math.round(performance.now() - startedAtMs);
    let models: string[] = [];
    try {
      models = chooseTranscriptionModels(await server.listModels(signal));
      const input = { ...createInput({ audio: createTestRecording() }), model, language };
      await server.transcribe(input, signal, TEST_TIMEOUTS);
      return { isReachable: true, models, latencyMs: getLatencyMs() };
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof UpstreamError)) throw thrown;
      const isReachable = thrown.status !== undefined || thrown.kind === "bad_answer";
      return { isReachable, error: thrown.message, models, latencyMs: getLatencyMs() };
    }
  }

  #prepare(request: TranscriptionRequest): { server: TranscriptionServer; input: TranscriptionInput } {
    const { model, language } = this.settings.get();
    const input = createInput({ ...request, model: request.model || model, language: request.language || language });
    return { server: this.#getServer(), input };
  }

  #getServer(): TranscriptionServer {
    const { baseUrl } = this.settings.get();
    if (baseUrl === "") {
      throw new AppError(
        "not_available",
        "No transcription server is configured. Enter its address in Settings > Voice",
      );
    }
    const apiKey = this.settings.findKey(baseUrl);
    const known = this.#servers.get(baseUrl);
    if (known !== undefined && known.target.apiKey === apiKey) return known;
    if (this.#servers.size >= MAX_SERVERS) this.#servers.clear();
    const server = new TranscriptionServer(this.#client, { baseUrl, apiKey });
    this.#servers.set(baseUrl, server);
    return server;
  }
}

/** Returns the models whose names indicate transcription; all if none does. */
function chooseTranscriptionModels(models: string[]): string[] {
  const matching = models.filter((id) => TRANSCRIPTION_MODEL.test(id));
  return matching.length > 0 ? matching : models;
}

/** @throws {AppError} `too_large`, `unsupported_media_type` */
function createInput({ audio, model, language, prompt }: TranscriptionRequest): TranscriptionInput {
  if (audio.length > MAX_RECORDING_BYTES) {
    throw new AppError("too_large", `Can't transcribe the recording: it's larger than ${MAX_RECORDING_BYTES} bytes`);
  }
  const format = sniffAudio(audio);
  const extension = format === undefined ? undefined : EXTENSIONS[format];
  if (format === undefined || extension === undefined) {
    throw new AppError(
      "unsupported_media_type",
      "Can't transcribe the recording: its format must be one of wav, webm, ogg, mp4, mp3, flac",
    );
  }
  return {
    audio,
    fileName: `recording.${extension}`,
    contentType: AUDIO_TYPES[format].replace(/;.*/, ""),
    model: model ?? "",
    language: language ?? "",
    prompt: prompt ?? "",
  };
}

const RATE_HZ = 16_000;

/** Creates one second of almost silence as WAV: mono, 16 bit, 16 kHz. Some servers reject a recording of only zeros. */
function createTestRecording(): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(RATE_HZ * 2));
  for (let i = 0; i < RATE_HZ; i++) view.setInt16(i * 2, (i * 31) % 17 - 8, true);
  return toWaveFile(new Uint8Array(view.buffer), RATE_HZ);
}

/** Dependencies of transcription. */
export interface TranscriptionDeps {
  db: Database;
  sealer: Sealer;
  events: EventHub;
  ownListeners?: OwnListeners;
}

/** Opens transcription. It connects with the first request. */
export function openTranscription(
  { db, sealer, events, ownListeners }: TranscriptionDeps,
  onClose: (hook: CloseHook) => void,
): Transcription {
  const client = openHttpClient({ ownListeners });
  onClose(() => client.close());
  const settings = new TranscriptionSettings({ db, sealer: sealer.forPurpose("transcription"), events });
  return new Transcription({ settings, client });
}
