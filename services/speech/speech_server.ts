/** Requests to an OpenAI-compatible speech server: speak, list voices, list models (docs/protocols/tts.md). */
import { AppError } from "../errors.ts";
import { getServerRoot, listEndpointPrefixes, maskKey, toBearerHeader } from "../http/base_url.ts";
import { createResponseError, findErrorMessage, readBytes, readErrorText } from "../http/read_body.ts";
import type { HttpClient } from "../http/http_client.ts";
import type { CallTimeouts } from "../http/upstream_error.ts";
import {
  AUDIO_TYPES,
  type AudioFormat,
  bytesToSniff,
  hasTwoMp3Frames,
  SIGNATURE_BYTES,
  sniffAudio,
  sniffContainer,
  TWO_FRAMES_BYTES,
} from "./audio_format.ts";
import { asObject, isNonEmptyString } from "../json/type_guards.ts";
import { listKnownVoices, parseVoiceList, type Voice } from "./voice_lists.ts";

/** The address of a speech server. */
export interface SpeechTarget {
  baseUrl: string;
  apiKey?: string;
}

/** Audio that is being received. */
export interface SpokenAudio {
  /** The format of the bytes, which may differ from the requested one. */
  format: AudioFormat;
  contentType: string;
  /** Fails if the connection breaks. For raw audio, this is the only sign of that. */
  body: ReadableStream<Uint8Array>;
}

/** What to speak. */
export interface SpeechInput {
  text: string;
  /** Empty for the server's default. */
  model: string;
  /** Empty for the server's default. */
  voice: string;
  /** 1 is the voice's normal speed, which isn't sent: some servers reject unknown fields. */
  speed: number;
  format: AudioFormat;
}

/** A request for speech: JSON, or a form that includes a voice sample. */
export interface SpeechRequest {
  /** Below the prefix: `/audio/speech`. */
  path: string;
  body: string | FormData;
  /** The requested format. Only this shows that a response is PCM without a header. */
  format: AudioFormat;
}

/** Creates a request in OpenAI's format (docs/protocols/tts.md, "Speech request"). Empty fields are omitted. */
export function createSpeechRequest(input: SpeechInput, extra: Record<string, string> = {}): SpeechRequest {
  const { text, model, voice, format, speed } = input;
  const optional = { ...(model && { model }), ...(voice && { voice }), ...(speed !== 1 && { speed }) };
  const body = { ...optional, input: text, response_format: format, ...extra };
  return { path: "/audio/speech", body: JSON.stringify(body), format };
}

/** Time limits. The first request may load the model, or download it. */
const SPEECH_TIMEOUTS = { connectMs: 5_000, firstByteMs: 300_000, idleMs: 120_000 };
const LIST_TIMEOUTS = { connectMs: 5_000, firstByteMs: 15_000, idleMs: 15_000 };
const MAX_LIST_BYTES = 4 * 1024 * 1024;
const MAX_AUDIO_BYTES = 50 * 1024 * 1024;
/** Maximum number of bytes before the audio, above any ID3 tag that speech servers send. */
const MAX_HEAD_BYTES = 1024 * 1024;
/** Sample rate of PCM from OpenAI and Kokoro. */
const PCM_RATE = 24_000;

/** How to fix an error, by status. */
const ADVICE = {
  401: "check its API key",
  403: "check its API key",
  404: "check the address and the model name",
  503: "its model may still be loading",
};

/** A model and a voice. Empty for the server's default. */
type VoiceOfModel = Pick<SpeechInput, "model" | "voice">;

/** Names of models that speak. Servers also list their other models. */
export const SPEAKING_MODEL = /tts|kokoro|piper|orpheus|chatterbox|speech|voice|bark|vits|zonos|dia\b/i;

/** A speech server. Remembers the working prefix, and the model and voice it requires. */
export class SpeechServer {
  #prefix: string | undefined;
  /** The choice for a model that a request names, or none. Filled once the server has refused a request without one. */
  readonly #firsts = new Map<string, VoiceOfModel>();

  constructor(readonly client: HttpClient, readonly target: SpeechTarget) {}

  /**
   * Requests speech and streams it.
   *
   * @throws {AppError} `upstream_error`, `upstream_timeout`, `address_not_allowed`
   * @throws The caller's abort reason.
   */
  async speak(request: SpeechRequest, signal: AbortSignal): Promise<SpokenAudio> {
    const response = await this.#sendSpeech(request, signal);
    if (!response.ok) throw await this.readError(response);
    return await this.#toAudio(response, request.format);
  }

  /** Fills what a request doesn't name, if the server is known to require it. */
  complete<Input extends VoiceOfModel>(input: Input): Input {
    const first = this.#firsts.get(input.model);
    return first === undefined
      ? input
      : { ...input, model: input.model || first.model, voice: input.voice || first.voice };
  }

  /**
   * Chooses the first model and voice that the server lists for what a refused request didn't name.
   *
   * @param isVoiceNeeded False if the request has the voice of a sample.
   * @returns False if there is nothing to fill in.
   */
  async chooseFirst(input: VoiceOfModel, isVoiceNeeded: boolean, signal: AbortSignal): Promise<boolean> {
    if (this.#firsts.has(input.model)) return false;
    const model = input.model || await this.#findFirstModel(signal);
    const voice = input.voice || !isVoiceNeeded ? "" : await this.#findFirstVoice(model, signal);
    const isFilled = (input.model === "" && model !== "") || voice !== "";
    if (isFilled) this.#firsts.set(input.model, { model, voice });
    return isFilled;
  }

  /** Forgets a choice that didn't help. */
  forgetFirst({ model }: VoiceOfModel): void {
    this.#firsts.delete(model);
  }

  async #findFirstModel(signal: AbortSignal): Promise<string> {
    const ids = (await this.listModels(signal)).map(({ id }) => id);
    return ids.find((id) => SPEAKING_MODEL.test(id)) ?? ids[0] ?? "";
  }

  async #findFirstVoice(model: string, signal: AbortSignal): Promise<string> {
    const [first] = await this.listVoices(model, signal) ?? listKnownVoices(model);
    return first?.id ?? "";
  }

  /** Lists the server's voices. Returns `undefined` if it has no list. @throws Like `speak` */
  async listVoices(model: string, signal: AbortSignal): Promise<Voice[] | undefined> {
    const query = model === "" ? "" : `?model=${encodeURIComponent(model)}`;
    const root = getServerRoot(this.target.baseUrl);
    const urls = [
      ...listEndpointPrefixes(this.target.baseUrl).flatMap((prefix) => [
        `${prefix}/audio/voices${query}`,
        `${prefix}/voices${query}`,
        // Speaches lists the voices with the model.
        ...(model === "" ? [] : [`${prefix}/models/${model.split("/").map(encodeURIComponent).join("/")}`]),
      ]),
      `${root}/api/voices`,
    ];
    for (const url of new Set(urls)) {
      const value = await this.findJson(url, signal);
      const voices = value === undefined ? undefined : parseVoiceList(value);
      if (voices !== undefined) return voices;
    }
    return undefined;
  }

  /**
   * Lists the server's models; only those that speak, if it says what each is for. Returns an empty list if it has no list.
   *
   * @throws Like `speak`
   */
  async listModels(signal: AbortSignal): Promise<{ id: string }[]> {
    for (const prefix of listEndpointPrefixes(this.target.baseUrl)) {
      const value = await this.findJson(`${prefix}/models`, signal);
      const data = typeof value === "object" && value !== null && "data" in value ? value.data : value;
      if (!Array.isArray(data)) continue;
      const entries = data.map(asObject);
      const speaking = entries.filter(({ task }) => task === "text-to-speech");
      const ids = (speaking.length > 0 ? speaking : entries).map(({ id }) => id).filter(isNonEmptyString);
      return [...new Set(ids)].map((id) => ({ id }));
    }
    return [];
  }

  /**
   * Requests JSON.
   *
   * @returns `undefined` for an error response, a web page or a response that is too long
   * @throws {AppError} `upstream_error` if the server can't be reached or rejects the key, `upstream_timeout`
   */
  async findJson(url: string, signal: AbortSignal): Promise<unknown> {
    const response = await this.send(url, undefined, LIST_TIMEOUTS, signal);
    if (response.status === 401) throw await this.readError(response);
    if (!response.ok) {
      await response.body?.cancel();
      return undefined;
    }
    const bytes = await readBytes(response, MAX_LIST_BYTES);
    try {
      return bytes && JSON.parse(new TextDecoder().decode(bytes));
    } catch {
      return undefined;
    }
  }

  /** Sends a request to this server, with its key: POST if there is a body, otherwise GET. */
  send(
    url: string,
    body: string | FormData | undefined,
    timeouts: CallTimeouts,
    signal: AbortSignal,
  ): Promise<Response> {
    const contentType: Record<string, string> = typeof body === "string" ? { "content-type": "application/json" } : {};
    const headers = { ...toBearerHeader(this.target.apiKey), ...contentType };
    const method = body === undefined ? "GET" : "POST";
    return this.client.fetch("the speech server", { ...this.target, timeouts }, { url, method, headers, body }, signal);
  }

  /** Reads an error response and creates its error. */
  async readError(response: Response): Promise<AppError> {
    const message = findErrorMessage(await readErrorText(response, this.target.apiKey));
    return createResponseError("The speech server", this.target, response, message, ADVICE);
  }

  /** Tries the endpoint under each prefix. Status 404 or 405 means a wrong path. */
  async #sendSpeech(request: SpeechRequest, signal: AbortSignal): Promise<Response> {
    const prefixes = this.#prefix === undefined ? listEndpointPrefixes(this.target.baseUrl) : [this.#prefix];
    for (const [i, prefix] of prefixes.entries()) {
      const response = await this.send(prefix + request.path, request.body, SPEECH_TIMEOUTS, signal);
      const isWrongPath = response.status === 404 || response.status === 405;
      if (isWrongPath && i < prefixes.length - 1) {
        await response.body?.cancel();
        continue;
      }
      if (!isWrongPath) this.#prefix = prefix;
      return response;
    }
    throw new AppError("internal", "The base URL has no prefixes");
  }

  async #toAudio(response: Response, requested: AudioFormat): Promise<SpokenAudio> {
    const reader = response.body?.getReader();
    const { head, isComplete } = await readHead(reader, requested);
    const format = requested === "pcm" ? detectPcm(head, response) : sniffAudio(head);
    if (
      reader === undefined || format === undefined || (isComplete && head.length < SIGNATURE_BYTES && format !== "pcm")
    ) {
      await reader?.cancel();
      throw this.#createNoAudioError(head);
    }
    const contentType = format === "pcm" ? toPcmType(response) : AUDIO_TYPES[format];
    return { format, contentType, body: this.#limitBody(reader, head) };
  }

  /** Creates the error for JSON or a web page with status 200 instead of audio. */
  #createNoAudioError(head: Uint8Array): AppError {
    const { baseUrl, apiKey } = this.target;
    const text = maskKey(new TextDecoder().decode(head), apiKey).trim();
    const message = text.startsWith("{") ? findErrorMessage(text) : undefined;
    const reason = head.length === 0 ? "the response is empty" : message ?? "the response isn't audio";
    return new AppError("upstream_error", `The speech server at "${baseUrl}" returned no audio: ${reason}`);
  }

  /** Streams the head, then the rest up to the size limit. */
  #limitBody(reader: ReadableStreamDefaultReader<Uint8Array>, head: Uint8Array): ReadableStream<Uint8Array> {
    let sizeBytes = head.length;
    const { baseUrl } = this.target;
    return new ReadableStream({
      start: (controller) => controller.enqueue(head),
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        sizeBytes += value.length;
        if (sizeBytes > MAX_AUDIO_BYTES) {
          const error = new AppError(
            "upstream_error",
            `The speech server at "${baseUrl}" sent more than ${MAX_AUDIO_BYTES} bytes`,
          );
          await reader.cancel(error);
          throw error;
        }
        controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    }, { highWaterMark: 0 });
  }
}

/** Reads until the format can be detected. */
async function readHead(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  requested: AudioFormat,
): Promise<{ head: Uint8Array; isComplete: boolean }> {
  let head = new Uint8Array();
  const isEnough = () => {
    // PCM can start like an MP3 frame; then more bytes are needed.
    const isAmbiguous = requested === "pcm" && sniffContainer(head) === undefined && sniffAudio(head) === "mp3";
    return head.length >= Math.min(MAX_HEAD_BYTES, Math.max(bytesToSniff(head), isAmbiguous ? TWO_FRAMES_BYTES : 0));
  };
  while (reader !== undefined && !isEnough()) {
    const { done, value } = await reader.read();
    if (done) return { head, isComplete: true };
    const joined = new Uint8Array(head.length + value.length);
    joined.set(head);
    joined.set(value, head.length);
    head = joined;
  }
  return { head, isComplete: false };
}

/** Detects the format of a response to a PCM request. The server may send another format, but loud PCM can look like an MP3 frame. */
function detectPcm(head: Uint8Array, response: Response): AudioFormat | undefined {
  const container = sniffContainer(head);
  if (container !== undefined) return container;
  if (hasTwoMp3Frames(head)) return "mp3";
  return isLikelyPcm(head, response) ? "pcm" : undefined;
}

function isLikelyPcm(head: Uint8Array, response: Response): boolean {
  if (head.length === 0) return false;
  const type = response.headers.get("content-type") ?? "";
  return !/json|html|text/i.test(type) && head[0] !== 0x7b && head[0] !== 0x3c;
}

function toPcmType(response: Response): string {
  const rate = /rate=(\d{4,6})/.exec(response.headers.get("content-type") ?? "")?.[1] ?? PCM_RATE;
  return `audio/pcm;rate=${rate};channels=1;encoding=s16le`;
}
