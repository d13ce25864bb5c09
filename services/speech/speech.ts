/** Speech: reads one piece of text aloud through the owner's speech server, and tells which voices and models it has. */
import { AppError } from "../errors.ts";
import { normaliseBaseUrl, originOf } from "../http/base_url.ts";
import type { OwnerClient } from "../http/http_client.ts";
import type { AudioFormat } from "./audio_format.ts";
import { curatedVoices, type Voice } from "./voice_lists.ts";
import type { SpeechConfig, SpeechSettings } from "./speech_settings.ts";
import { SpeechServer, type SpokenAudio } from "./speech_server.ts";
import { plainCall } from "./spoken_text.ts";
import { KeyedSemaphore } from "../async/semaphore.ts";
import { type ReferenceSample, VoiceCloning } from "./voice_cloning.ts";

/** One piece to speak; what is left out is as configured. */
export interface SpeakRequest {
  text: string;
  /** A voice of the server's, or the id of a voice sample. */
  voice?: string;
  model?: string;
  format?: AudioFormat;
  /** Times the voice's own speed, 0.25 to 4. */
  speed?: number;
  /** Another server than the configured one; it gets the stored key only when it has the same origin. */
  baseUrl?: string;
  /** Id of a voice sample of the library. */
  refAudio?: string;
}

/** The voices there are to choose from, and where that is known from. */
export interface VoiceChoice {
  source: "upstream" | "files" | "catalogue";
  voices: Voice[];
}

/** Where voice samples come from. */
export interface SampleSource {
  list(): { id: string; name: string }[];
  /** @throws {AppError} `not_found` */
  get(id: string): ReferenceSample;
}

/** Calls that one server gets at once. */
const CALLS_AT_ONCE = 2;
/** What ids of samples look like: UUIDs, version 7. */
const SAMPLE_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Servers remembered with the prefix that works there. */
const MAX_SERVERS = 50;

/** The owner's speech server and whatever else a request names. */
export class Speech {
  readonly settings: SpeechSettings;
  readonly #client: OwnerClient;
  readonly #samples: SampleSource;
  readonly #semaphore = new KeyedSemaphore(CALLS_AT_ONCE);
  readonly #servers = new Map<string, SpeechServer>();
  readonly #cloning = new VoiceCloning();

  constructor(options: { settings: SpeechSettings; client: OwnerClient; samples: SampleSource }) {
    this.settings = options.settings;
    this.#client = options.client;
    this.#samples = options.samples;
  }

  /**
   * Speaks one piece. The audio is passed on as the server makes it; leaving ends the call there.
   *
   * @throws {AppError} `not_available` while no server is configured, `not_found` for an unknown sample, `unprocessable` where
   *   the server is of no kind that takes samples; `upstream_error`, `upstream_timeout`, `address_not_allowed`
   */
  async speak(request: SpeakRequest, signal: AbortSignal): Promise<SpokenAudio> {
    const config = this.settings.get();
    const server = this.#server(config, request.baseUrl);
    const voice = request.voice || config.voice;
    // `voices` offers samples by their ids; no server has a voice of such a name.
    const isSample = SAMPLE_ID.test(voice);
    const sampleId = request.refAudio ?? (isSample ? voice : undefined);
    const sample = sampleId === undefined ? undefined : this.#samples.get(sampleId);
    const leave = await this.#semaphore.acquire(originOf(server.target.baseUrl), signal);
    try {
      const spoken = {
        text: request.text,
        model: request.model || config.model,
        voice: isSample ? "" : voice,
        format: request.format ?? config.format,
        speed: request.speed ?? config.speed,
      };
      const call = sample === undefined
        ? plainCall(spoken)
        : await this.#cloning.callWith(sample, server, spoken, signal);
      const audio = await server.speak(call, signal);
      return { ...audio, body: withEnd(audio.body, leave) };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Lists voices: the server's own, else the library's samples where they can be used, else what is known of the model. */
  async voices(model: string | undefined, signal: AbortSignal): Promise<VoiceChoice> {
    const config = this.settings.get();
    const name = model ?? config.model;
    if (config.baseUrl !== "") {
      // A server that cannot be asked just now has a catalogue all the same.
      const listed = await this.#server(config).voices(name, signal).catch((error) => {
        if (signal.aborted || !(error instanceof AppError)) throw error;
        return undefined;
      });
      if (listed !== undefined) return { source: "upstream", voices: listed };
    }
    const samples = this.#samples.list();
    const takesSamples = samples.length > 0 &&
      (config.baseUrl === "" || await this.#cloning.familyOf(this.#server(config), signal) !== undefined);
    return takesSamples
      ? { source: "files", voices: samples.map(({ id, name }) => ({ id, name })) }
      : { source: "catalogue", voices: curatedVoices(name) };
  }

  /** Lists the server's models. @throws {AppError} `not_available`, `upstream_error`, `upstream_timeout` */
  async models(signal: AbortSignal): Promise<{ id: string }[]> {
    return await this.#server(this.settings.get()).models(signal);
  }

  #server(config: SpeechConfig, override?: string): SpeechServer {
    const baseUrl = override ? normaliseBaseUrl(override) : config.baseUrl;
    if (baseUrl === "") {
      throw new AppError("not_available", "There is no speech server yet: set its address under Settings, Voice");
    }
    const apiKey = this.settings.keyFor(baseUrl);
    const known = this.#servers.get(baseUrl);
    if (known !== undefined && known.target.apiKey === apiKey) return known;
    if (this.#servers.size >= MAX_SERVERS) this.#servers.clear();
    const server = new SpeechServer(this.#client, { baseUrl, apiKey });
    this.#servers.set(baseUrl, server);
    return server;
  }
}

/** Gives back the place in the queue when the audio has ended, however it did. */
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
