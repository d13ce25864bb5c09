/** Requests to an OpenAI-compatible speech server: speak, list voices, list models (docs/protocols/tts.md#speech-request). */
import { AppError } from "../errors.ts";
import { endpointPrefixes, serverRoot } from "../http/base_url.ts";
import type { OwnerClient, OwnerRequest } from "../http/http_client.ts";
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
import type { Voice } from "./voice_lists.ts";
import { notAudio, refusalOf } from "./speech_error.ts";
import { parseVoiceList } from "./voice_list.ts";

/** A speech server and how to talk to it. */
export interface SpeechTarget {
  baseUrl: string;
  apiKey?: string;
}

/** Audio as it comes. */
export interface SpokenAudio {
  /** What the bytes are, whatever was asked for. */
  format: AudioFormat;
  contentType: string;
  /** Errors when the server breaks off; raw audio has no other sign of it. */
  body: ReadableStream<Uint8Array>;
}

/** A request for speech: JSON, or a form where a sample travels along. */
export interface SpeechCall {
  /** Below the prefix: `/audio/speech`. */
  path: string;
  body: string | FormData;
  /** Asked for; headerless PCM can be told from nothing else. */
  format: AudioFormat;
}

const CONNECT_MS = 5_000;
/** The first call may load the model, or download it. */
const FIRST_BYTE_MS = 300_000;
const IDLE_MS = 120_000;
const LIST_MS = 15_000;
const MAX_LIST_BYTES = 4 * 1024 * 1024;
const MAX_AUDIO_BYTES = 50 * 1024 * 1024;
/** No speech server sends a tag this long before its audio. */
const MAX_HEAD_BYTES = 1024 * 1024;
/** Rate of headerless PCM at OpenAI and Kokoro. */
const PCM_RATE = 24_000;

/** One server; cheap to make, keeps nothing but the prefix that worked. */
export class SpeechServer {
  #prefix: string | undefined;

  constructor(readonly client: OwnerClient, readonly target: SpeechTarget) {}

  /**
   * Asks for speech and passes it on from its first bytes.
   *
   * @throws {AppError} `upstream_error`, `upstream_timeout`, `address_not_allowed`
   * @throws The reason of `signal`, when that fired.
   */
  async speak(call: SpeechCall, signal: AbortSignal): Promise<SpokenAudio> {
    const response = await this.#ask(call.path, (url) => ({
      url,
      method: "POST",
      body: call.body,
      ...(typeof call.body === "string" && { headers: { "content-type": "application/json" } }),
      firstByteMs: FIRST_BYTE_MS,
      idleMs: IDLE_MS,
      connectMs: CONNECT_MS,
      signal,
    }));
    if (!response.ok) throw await refusalOf(this.target.baseUrl, response, this.target.apiKey);
    return await this.#audioOf(response, call.format);
  }

  /** Lists the voices the server says it has; `undefined` where it does not say. @throws as `speak` */
  async voices(model: string, signal: AbortSignal): Promise<Voice[] | undefined> {
    const query = model === "" ? "" : `?model=${encodeURIComponent(model)}`;
    const root = serverRoot(this.target.baseUrl);
    const addresses = [
      ...endpointPrefixes(this.target.baseUrl).flatMap((prefix) => [
        `${prefix}/audio/voices${query}`,
        `${prefix}/voices${query}`,
      ]),
      `${root}/api/voices`,
    ];
    for (const url of new Set(addresses)) {
      const value = await this.getJson(url, signal);
      const voices = value === undefined ? undefined : parseVoiceList(value);
      if (voices !== undefined) return voices;
    }
    return undefined;
  }

  /** Lists the server's models as it gives them; an empty list where it has none to tell of. @throws as `speak` */
  async models(signal: AbortSignal): Promise<{ id: string }[]> {
    for (const prefix of endpointPrefixes(this.target.baseUrl)) {
      const value = await this.getJson(`${prefix}/models`, signal);
      const data = typeof value === "object" && value !== null && "data" in value ? value.data : value;
      if (!Array.isArray(data)) continue;
      const ids = data.map((entry) => entry?.id).filter((id) => typeof id === "string" && id !== "");
      return [...new Set<string>(ids)].map((id) => ({ id }));
    }
    return [];
  }

  /**
   * Asks an address for JSON.
   *
   * @returns `undefined` when it has none to give: a refusal, a page, an answer that is too long.
   * @throws {AppError} `upstream_error` when the server cannot be reached or refuses the key, `upstream_timeout`
   */
  async getJson(url: string, signal: AbortSignal): Promise<unknown> {
    const response = await this.send({ url, connectMs: CONNECT_MS, firstByteMs: LIST_MS, signal });
    if (response.status === 401) throw await refusalOf(this.target.baseUrl, response, this.target.apiKey);
    if (!response.ok) {
      await response.body?.cancel();
      return undefined;
    }
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_LIST_BYTES) return undefined;
    }
    try {
      return JSON.parse(await new Blob(chunks).text());
    } catch {
      return undefined;
    }
  }

  /** Sends any request to this server, with its key. */
  send(request: OwnerRequest): Promise<Response> {
    return this.client.send({ ...request, apiKey: this.target.apiKey });
  }

  /** Tries the endpoint under each prefix it may have; a wrong path says 404 or 405. */
  async #ask(path: string, request: (url: string) => OwnerRequest): Promise<Response> {
    const prefixes = this.#prefix === undefined ? endpointPrefixes(this.target.baseUrl) : [this.#prefix];
    for (const [i, prefix] of prefixes.entries()) {
      const response = await this.send(request(prefix + path));
      const isWrongPath = response.status === 404 || response.status === 405;
      if (isWrongPath && i < prefixes.length - 1) {
        await response.body?.cancel();
        continue;
      }
      if (!isWrongPath) this.#prefix = prefix;
      return response;
    }
    throw new AppError("internal", "A base URL without any prefix");
  }

  async #audioOf(response: Response, asked: AudioFormat): Promise<SpokenAudio> {
    const reader = response.body?.getReader();
    const { head, isAll } = await readHead(reader, asked);
    const format = asked === "pcm" ? formatOfPcm(head, response) : sniffAudio(head);
    if (reader === undefined || format === undefined || (isAll && head.length < SIGNATURE_BYTES && format !== "pcm")) {
      await reader?.cancel();
      throw notAudio(this.target.baseUrl, head, this.target.apiKey);
    }
    const contentType = format === "pcm" ? pcmType(response) : AUDIO_TYPES[format];
    return { format, contentType, body: this.#bounded(reader, head) };
  }

  /** The head that was read, then the rest as it comes, up to the cap. */
  #bounded(reader: ReadableStreamDefaultReader<Uint8Array>, head: Uint8Array): ReadableStream<Uint8Array> {
    let size = head.length;
    const place = this.target.baseUrl;
    return new ReadableStream({
      start: (controller) => controller.enqueue(head),
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        size += value.length;
        if (size > MAX_AUDIO_BYTES) {
          const error = new AppError(
            "upstream_error",
            `The speech server at "${place}" gave more than ${MAX_AUDIO_BYTES} bytes`,
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

/** Reads until the format can be told. */
async function readHead(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  asked: AudioFormat,
): Promise<{ head: Uint8Array; isAll: boolean }> {
  let head = new Uint8Array();
  const isEnough = () => {
    // PCM that begins like a frame of MP3 takes a longer look.
    const isOdd = asked === "pcm" && sniffContainer(head) === undefined && sniffAudio(head) === "mp3";
    return head.length >= Math.min(MAX_HEAD_BYTES, Math.max(bytesToSniff(head), isOdd ? TWO_FRAMES_BYTES : 0));
  };
  while (reader !== undefined && !isEnough()) {
    const { done, value } = await reader.read();
    if (done) return { head, isAll: true };
    const joined = new Uint8Array(head.length + value.length);
    joined.set(head);
    joined.set(value, head.length);
    head = joined;
  }
  return { head, isAll: false };
}

/** A server may ignore that PCM was asked for, but loud samples look like the header of an MP3 frame. */
function formatOfPcm(head: Uint8Array, response: Response): AudioFormat | undefined {
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

function pcmType(response: Response): string {
  const rate = /rate=(\d{4,6})/.exec(response.headers.get("content-type") ?? "")?.[1] ?? PCM_RATE;
  return `audio/pcm;rate=${rate};channels=1;encoding=s16le`;
}
