/** Transcription: converts recordings to text with the owner's transcription server. */
import { KeyedSemaphore } from "../async/semaphore.ts";
import { AppError } from "../errors.ts";
import { parseOrigin } from "../http/base_url.ts";
import type { HttpClient } from "../http/http_client.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import { AUDIO_TYPES, sniffAudio, type SniffedFormat } from "../speech/audio_format.ts";
import { ListedModels } from "../speech/voice_lists.ts";
import {
  MAX_RECORDING_BYTES,
  type TranscriptionConfigInput,
  type TranscriptionSettings,
} from "./transcription_settings.ts";
import type { TranscriptEvent } from "./transcript_events.ts";
import {
  type Transcript,
  TRANSCRIPTION_MODEL,
  type TranscriptionInput,
  TranscriptionServer,
} from "./transcription_server.ts";

/** A recording to transcribe. Undefined fields come from the settings. */
export interface TranscriptionRequest {
  /** Its format is detected by its signature. */
  audio: Uint8Array<ArrayBuffer>;
  model?: string;
  /** ISO 639-1: `"en"`. */
  language?: string;
  /** Text that spells the names in the recording. */
  prompt?: string;
}

/** The result of a test. */
export interface TranscriptionTestResult {
  /** An HTTP server responded. */
  isReachable: boolean;
  /** Why it can't transcribe. */
  error?: string;
  /** The models that transcribe; all models if none looks like it. */
  models: string[];
  latencyMs: number;
}

/** Recordings that are accepted, and the extension that servers know them by. */
const EXTENSIONS: Partial<Record<SniffedFormat, string>> = {
  wav: "wav",
  webm: "webm",
  ogg: "ogg",
  opus: "ogg",
  m4a: "mp4",
  mp3: "mp3",
  flac: "flac",
};
/** Concurrent requests to one server: one that runs and one that is sent. */
const MAX_CONCURRENT = 2;
/** Servers that are remembered. */
const MAX_SERVERS = 20;
/** A person waits for the test, but the first request may load the model. */
const TEST_TIMEOUTS = { connectMs: 5_000, firstByteMs: 60_000, idleMs: 15_000 };

/** Transcribes through the configured server. */
export class Transcription {
  readonly settings: TranscriptionSettings;
  readonly #client: HttpClient;
  readonly #semaphore = new KeyedSemaphore(MAX_CONCURRENT);
  readonly #servers = new Map<string, TranscriptionServer>();
  readonly #listed = new ListedModels((signal) => this.models(signal));

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

  /** Transcribes a recording and yields its text as it arrives. The last event is `done`. @throws as `transcribe` */
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
  async models(signal: AbortSignal): Promise<string[]> {
    return await this.#getServer().models(signal);
  }

  /** Returns the model to use for one that a client names; see `ListedModels`. @throws as `models` */
  async chooseModel(name: string, signal: AbortSignal): Promise<string> {
    return await this.#listed.choose(name, this.settings.get(), signal);
  }

  /**
   * Transcribes a second of silence with changed settings, which aren't saved.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`: errors in the input rather than of the server
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
      models = chooseTranscriptionModels(await server.models(signal));
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
        "No transcription server is configured. Enter its address under Settings, Voice.",
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

/** Returns the models that transcribe by their names; all if none does. */
export function chooseTranscriptionModels(models: string[]): string[] {
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
const HEADER_BYTES = 44;

/** Creates one second of almost silence as WAV: mono, 16 bit, 16 kHz. Some servers refuse a recording of zeros only. */
export function createTestRecording(): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + RATE_HZ * 2);
  const view = new DataView(bytes.buffer);
  const writeText = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at);
  writeText(0, "RIFF");
  view.setUint32(4, bytes.length - 8, true);
  writeText(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true); // channels
  view.setUint32(24, RATE_HZ, true);
  view.setUint32(28, RATE_HZ * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  writeText(36, "data");
  view.setUint32(40, RATE_HZ * 2, true);
  for (let i = 0; i < RATE_HZ; i++) view.setInt16(HEADER_BYTES + i * 2, (i * 31) % 17 - 8, true);
  return bytes;
}
