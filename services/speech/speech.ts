/**
 * Speech: converts text to audio with the owner's speech server and lists its voices and models. Opened together with
 * the voice samples.
 */
import { AppError } from "../errors.ts";
import { type BoundKey, normalizeBaseUrl, parseOrigin, updateBoundKey } from "../http/base_url.ts";
import { type HttpClient, openHttpClient } from "../http/http_client.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import { KeyedSemaphore } from "../async/locks.ts";
import { SealedSetting, type SealedSettingDeps } from "../storage/documents/sealed_document.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import type { AudioFormat } from "./audio_format.ts";
import { ListedModels, listKnownVoices, type Voice } from "./voice_lists.ts";
import { createSpeechRequest, type SpeechInput, SpeechServer, type SpokenAudio } from "./speech_server.ts";
import { type ReferenceSample, VoiceCloning } from "./voice_cloning.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import type { CloseHook } from "../async/lazy.ts";
import type { Sealer } from "../crypto/sealer.ts";
import type { Trash } from "../storage/trash.ts";
import { VoiceImports, type VoiceImportsDeps } from "./voice_import.ts";
import { VoiceSamples, type VoiceSamplesDeps } from "./voice_samples.ts";

/** The settings without the key. */
export interface SpeechConfig {
  /** From `normalizeBaseUrl`. Empty if no server is configured. */
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

/** Changes to the settings. `undefined` fields don't change; `null` resets a field. */
export interface SpeechConfigInput {
  baseUrl?: string | null;
  model?: string | null;
  voice?: string | null;
  format?: AudioFormat | null;
  speed?: number | null;
  /** `undefined` preserves the stored key if the origin stays the same; `null` clears it. */
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
    this.#setting = new SealedSetting(deps, { key: "speech", label: "speech settings", defaults: DEFAULTS });
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

/** A text to speak. `undefined` fields come from the settings. */
export interface SpeakRequest {
  text: string;
  /** A voice of the server, or the id of a voice sample. */
  voice?: string;
  model?: string;
  format?: AudioFormat;
  /** 0.25 to 4; 1 is the voice's normal speed. */
  speed?: number;
  /** A server to use instead of the configured one. The stored key is only sent if the origin is the same. */
  baseUrl?: string;
  /** Id of a voice sample. */
  refAudio?: string;
}

/** The available voices and their source. */
interface VoiceChoice {
  source: "upstream" | "files" | "catalogue";
  voices: Voice[];
}

/** The voice samples. */
interface SampleSource {
  list(): { id: string; name: string }[];
  /** @throws {AppError} `not_found` */
  get(id: string): ReferenceSample;
}

/** Responses to a request that lacks a required field. Some servers fail instead of refusing it. */
const MAY_LACK_FIELD = new Set([400, 404, 422, 500]);
/** Maximum number of concurrent requests to a server. */
const MAX_CONCURRENT = 2;
/** Ids of voice samples are UUIDs of version 7. */
const SAMPLE_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Maximum number of servers whose working prefix is remembered. */
const MAX_SERVERS = 50;

/** Speaks through the configured server, or one in the request. */
class Speech {
  readonly settings: SpeechSettings;
  readonly #client: HttpClient;
  readonly #samples: SampleSource;
  readonly #semaphore = new KeyedSemaphore(MAX_CONCURRENT);
  readonly #servers = new Map<string, SpeechServer>();
  readonly #cloning = new VoiceCloning();
  readonly #listed = new ListedModels(async (signal) => (await this.listModels(signal)).map(({ id }) => id));

  constructor(options: { settings: SpeechSettings; client: HttpClient; samples: SampleSource }) {
    this.settings = options.settings;
    this.#client = options.client;
    this.#samples = options.samples;
  }

  /**
   * Speaks a text. Streams the audio as the server generates it; canceling the stream ends the request.
   *
   * @throws {AppError} `not_available` if no server is configured, `not_found` for an unknown sample, `unprocessable` if the
   *   server doesn't support samples; `upstream_error`, `upstream_timeout`, `address_not_allowed`
   */
  async speak(request: SpeakRequest, signal: AbortSignal): Promise<SpokenAudio> {
    const config = this.settings.get();
    const server = this.#getServer(config, request.baseUrl);
    const voice = request.voice || config.voice;
    // `voices` lists samples by id. Voices of servers never have such names.
    const isSample = SAMPLE_ID.test(voice);
    const sampleId = request.refAudio ?? (isSample ? voice : undefined);
    const sample = sampleId === undefined ? undefined : this.#samples.get(sampleId);
    const release = await this.#semaphore.acquire(parseOrigin(server.target.baseUrl), signal);
    try {
      const audio = await this.#speakWith(server, sample, {
        text: request.text,
        model: request.model || config.model,
        voice: isSample ? "" : voice,
        format: request.format ?? config.format,
        speed: request.speed ?? config.speed,
      }, signal);
      return { ...audio, body: withEnd(audio.body, release) };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** A server that refuses a request without a model or a voice gets the first that it lists. */
  async #speakWith(
    server: SpeechServer,
    sample: ReferenceSample | undefined,
    input: SpeechInput,
    signal: AbortSignal,
  ): Promise<SpokenAudio> {
    const speak = async () => {
      const completed = server.complete(input);
      const request = sample === undefined
        ? createSpeechRequest(completed)
        : await this.#cloning.createRequest(sample, server, completed, signal);
      return await server.speak(request, signal);
    };
    try {
      return await speak();
    } catch (refusal) {
      const isRefused = refusal instanceof UpstreamError && MAY_LACK_FIELD.has(refusal.status ?? 0);
      const isIncomplete = input.model === "" || (input.voice === "" && sample === undefined);
      if (!isRefused || !isIncomplete) throw refusal;
      const isFilled = await server.chooseFirst(input, sample === undefined, signal).catch(() => false);
      signal.throwIfAborted();
      if (!isFilled) throw refusal;
      try {
        return await speak();
      } catch (error) {
        server.forgetFirst(input);
        throw error;
      }
    }
  }

  /**
   * Lists voices: those of the server, or else the samples if the server supports them, or else the known voices of the
   * model.
   */
  async listVoices(model: string | undefined, signal: AbortSignal): Promise<VoiceChoice> {
    const config = this.settings.get();
    const name = model ?? config.model;
    if (config.baseUrl !== "") {
      // If the server is unreachable, lists the known voices.
      const listed = await this.#getServer(config).listVoices(name, signal).catch((error) => {
        if (signal.aborted || !(error instanceof AppError)) throw error;
        return undefined;
      });
      if (listed !== undefined) return { source: "upstream", voices: listed };
    }
    const samples = this.#samples.list();
    const supportsSamples = samples.length > 0 &&
      (config.baseUrl === "" || await this.#cloning.detectFamily(this.#getServer(config), signal) !== undefined);
    return supportsSamples
      ? { source: "files", voices: samples.map(({ id, name }) => ({ id, name })) }
      : { source: "catalogue", voices: listKnownVoices(name) };
  }

  /** Lists the server's models. @throws {AppError} `not_available`, `upstream_error`, `upstream_timeout` */
  async listModels(signal: AbortSignal): Promise<{ id: string }[]> {
    return await this.#getServer(this.settings.get()).listModels(signal);
  }

  /** Returns the model to use for a client's model name; see `ListedModels`. @throws Like `listModels` */
  async chooseModel(name: string, signal: AbortSignal): Promise<string> {
    return await this.#listed.choose(name, this.settings.get(), signal);
  }

  #getServer(config: SpeechConfig, override?: string): SpeechServer {
    const baseUrl = override ? normalizeBaseUrl(override) : config.baseUrl;
    if (baseUrl === "") {
      throw new AppError("not_available", "No speech server is configured. Enter its address in Settings > Voice");
    }
    const apiKey = this.settings.findKey(baseUrl);
    const known = this.#servers.get(baseUrl);
    if (known !== undefined && known.target.apiKey === apiKey) return known;
    if (this.#servers.size >= MAX_SERVERS) this.#servers.clear();
    const server = new SpeechServer(this.#client, { baseUrl, apiKey });
    this.#servers.set(baseUrl, server);
    return server;
  }
}

/** Calls `onEnd` when the audio ends, fails or is canceled. */
function withEnd(body: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        onEnd();
        controller.close();
      } catch (error) {
        onEnd();
        throw error;
      }
    },
    cancel(reason) {
      onEnd();
      return reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}

/** Text-to-speech and voice samples. */
export interface SpeechServices {
  speech: Speech;
  voices: VoiceSamples;
  voiceImports: VoiceImports;
}

/** Dependencies of speech. */
interface SpeechDeps
  extends Pick<VoiceSamplesDeps, "db" | "events" | "versions" | "sandbox" | "now">, Pick<VoiceImportsDeps, "jobs"> {
  config: { ytDlpPath: string | null };
  sealer: Sealer;
  trash: Trash;
  folders: Record<"voices" | "imports", string>;
  ownListeners?: OwnListeners;
}

/** Opens text-to-speech and the voice samples. */
export async function openSpeech(
  deps: SpeechDeps,
  guard: Guard,
  onClose: (hook: CloseHook) => void,
): Promise<SpeechServices> {
  const { config, db, sealer, events, jobs, trash, versions, sandbox, now, folders } = deps;
  const voices = new VoiceSamples({
    db,
    sealer: sealer.forPurpose("voices"),
    folder: folders.voices,
    trash,
    versions,
    sandbox,
    events,
    now,
  });
  trash.register("voice", voices.createTrashHandler());
  const voiceImports = await VoiceImports.open({
    jobs,
    guard,
    samples: voices,
    folder: folders.imports,
    ytDlpPath: config.ytDlpPath ?? undefined,
  });
  const client = openHttpClient({ ownListeners: deps.ownListeners });
  onClose(() => client.close());
  const speech = new Speech({
    settings: new SpeechSettings({ db, sealer: sealer.forPurpose("speech"), events }),
    client,
    samples: { list: () => voices.list(), get: (id) => voices.getReference(id) },
  });
  return { speech, voices, voiceImports };
}
