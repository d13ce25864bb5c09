/** Requests to a transcription server: in OpenAI's format, or to whisper.cpp's own path (docs/protocols/stt.md). */
import { AppError } from "../errors.ts";
import { getServerRoot, listEndpointPrefixes, maskKey, toBearerHeader } from "../http/base_url.ts";
import { createResponseError, findErrorMessage, readErrorText, readText } from "../http/read_body.ts";
import { type HttpClient, type HttpTarget, type Probe, probeAll, type ProbeOptions } from "../http/http_client.ts";
import { type CallTimeouts, UpstreamError } from "../http/upstream_error.ts";
import { asArray, asNumber, asObject, isNonEmptyString } from "../json/type_guards.ts";
import { parseTranscriptEvents, type TranscriptEvent } from "./transcript_events.ts";

/** The address of a transcription server. */
export interface TranscriptionTarget {
  baseUrl: string;
  apiKey?: string;
}

/** A recording and what is known about it. */
export interface TranscriptionInput {
  audio: Uint8Array<ArrayBuffer>;
  /** With the extension of its format, which many servers rely on. */
  fileName: string;
  contentType: string;
  /** Empty if the server has only one, or lists them. */
  model: string;
  /** Empty if the server detects the language. */
  language: string;
  /** Text with the spelling of names in the recording. Empty if there is none. */
  prompt: string;
}

/** The text of a recording. */
export interface Transcript {
  /** Empty if nobody spoke. */
  text: string;
  /** The server's name for it: `"en"` or `"english"`. */
  language?: string;
  durationS?: number;
  /** OpenAI's `segments`, if the server sent them. */
  segments?: unknown[];
}

/** The endpoint of whisper.cpp's server. It ignores `model` and `stream`. */
const WHISPER_CPP_PATH = "/inference";
/** Time limits. The first request may load the model, and an hour of speech takes minutes. */
const TIMEOUTS = { connectMs: 5_000, firstByteMs: 300_000, idleMs: 120_000 };
const LIST_TIMEOUTS = { connectMs: 5_000, firstByteMs: 15_000, idleMs: 15_000 };
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
/** Names of models that transcribe. Servers also list their other models. */
export const TRANSCRIPTION_MODEL =
  /whisper|transcribe|\bstt\b|\basr\b|parakeet|canary|moonshine|voxtral|^(tiny|base|small|medium|large)\b/i;

/** How to fix an error, by status. */
const ADVICE = {
  401: "check its API key",
  403: "check its API key",
  404: "check the address and the model name",
  413: "the recording is too long for it",
  503: "its model may still be loading",
};

/** A transcription server. Remembers the working path and what the server doesn't support. */
export class TranscriptionServer {
  #url: string | undefined;
  #model: string | undefined;
  /** False once the server has rejected the format with language and duration, but accepted plain JSON. */
  #hasVerboseJson = true;
  #canStream = true;

  constructor(readonly client: HttpClient, readonly target: TranscriptionTarget) {}

  /**
   * Transcribes a recording.
   *
   * @throws {AppError} `upstream_error`, `upstream_timeout`, `address_not_allowed`
   * @throws The caller's abort reason.
   */
  async transcribe(
    input: TranscriptionInput,
    signal: AbortSignal,
    timeouts: CallTimeouts = TIMEOUTS,
  ): Promise<Transcript> {
    const model = await this.#findModel(input, signal);
    // OpenAI's newer models only support plain JSON.
    const isVerbose = this.#hasVerboseJson && !/^gpt-4o/i.test(model);
    const createFields = (format: string) => ({ ...toFields(input, model), response_format: format });
    let response = await this.#send(input, createFields(isVerbose ? "verbose_json" : "json"), timeouts, signal);
    if (isVerbose && isRefusal(response)) {
      const refused = await this.#readError(response);
      response = await this.#send(input, createFields("json"), timeouts, signal);
      // The recording itself is rejected in both formats.
      if (isRefusal(response)) throw (await response.body?.cancel(), refused);
      this.#hasVerboseJson = false;
    }
    if (!response.ok) throw await this.#readError(response);
    return this.#parse(await readText(response, MAX_RESPONSE_BYTES));
  }

  /**
   * Transcribes a recording and yields its text as the server sends it: deltas, then the transcript. A server that
   * can't stream sends everything in one event.
   *
   * @throws Like `transcribe`, before the first event or after any
   */
  async *stream(input: TranscriptionInput, signal: AbortSignal): AsyncGenerator<TranscriptEvent> {
    const response = this.#canStream ? await this.#startStream(input, signal) : undefined;
    if (response !== undefined && /event-stream/i.test(response.headers.get("content-type") ?? "")) {
      return yield* this.#readStream(response);
    }
    const transcript = response === undefined
      ? await this.transcribe(input, signal)
      : this.#parse(await readText(response, MAX_RESPONSE_BYTES));
    // It rejected the stream, but not the recording: the next call doesn't request a stream.
    if (response === undefined) this.#canStream = false;
    if (transcript.text !== "") yield { kind: "delta", text: transcript.text };
    yield { kind: "done", transcript };
  }

  /** Lists the server's models. Returns an empty list if it has no list. @throws Like `transcribe` */
  async listModels(signal: AbortSignal): Promise<string[]> {
    for (const prefix of listEndpointPrefixes(this.target.baseUrl)) {
      const response = await this.#request(`${prefix}/models`, undefined, LIST_TIMEOUTS, signal);
      if (response.status === 401) throw await this.#readError(response);
      if (!response.ok) {
        await response.body?.cancel();
        continue;
      }
      const data = asObject(parseJson(await readText(response, MAX_RESPONSE_BYTES))).data;
      if (!Array.isArray(data)) continue;
      return [...new Set(data.map((entry) => asObject(entry).id).filter(isNonEmptyString))];
    }
    return [];
  }

  /**
   * Returns the model to send: the chosen one, or else the server's only transcription model. OpenAI requires a name.
   */
  async #findModel(input: TranscriptionInput, signal: AbortSignal): Promise<string> {
    if (input.model !== "") return input.model;
    if (this.#model === undefined) {
      const models = await this.listModels(signal);
      this.#model = models.find((id) => TRANSCRIPTION_MODEL.test(id)) ?? models[0] ?? "";
    }
    return this.#model;
  }

  /** Requests a stream. Returns `undefined` if the server rejects the request, perhaps only because of the stream. */
  async #startStream(input: TranscriptionInput, signal: AbortSignal): Promise<Response | undefined> {
    const fields = {
      ...toFields(input, await this.#findModel(input, signal)),
      response_format: "json",
      stream: "true",
    };
    const response = await this.#send(input, fields, TIMEOUTS, signal);
    if (response.ok) return response;
    const error = await this.#readError(response);
    if (!isRefusal(response)) throw error;
    return undefined;
  }

  async *#readStream(response: Response): AsyncGenerator<TranscriptEvent> {
    let text = "";
    for await (const event of parseTranscriptEvents(response)) {
      if (event.kind === "error") throw this.#createError(findErrorMessage(event.body) ?? "the transcription failed");
      if (event.kind === "delta") text += event.text;
      if (event.kind !== "done") yield event;
      else {return yield {
          kind: "done",
          transcript: { ...event.transcript, text: event.transcript.text || text.trim() },
        };}
    }
    // Servers whose segments are the whole stream don't mark its end; a broken connection throws.
    yield { kind: "done", transcript: { text: text.trim() } };
  }

  /** Sends a recording to each possible path. Status 404 or 405 means a wrong path, or for OpenAI an unknown model. */
  async #send(
    input: TranscriptionInput,
    fields: Record<string, string>,
    timeouts: CallTimeouts,
    signal: AbortSignal,
  ): Promise<Response> {
    const { baseUrl } = this.target;
    const paths = [
      ...listEndpointPrefixes(baseUrl).map((prefix) => `${prefix}/audio/transcriptions`),
      getServerRoot(baseUrl) + WHISPER_CPP_PATH,
    ];
    let first: Response | undefined;
    for (const url of this.#url === undefined ? paths : [this.#url]) {
      const response = await this.#request(url, createForm(input, fields), timeouts, signal);
      if (response.status !== 404 && response.status !== 405) {
        await first?.body?.cancel();
        this.#url = url;
        return response;
      }
      if (first === undefined) first = response;
      else await response.body?.cancel();
    }
    return first!;
  }

  #request(
    url: string,
    body: FormData | undefined,
    timeouts: CallTimeouts,
    signal: AbortSignal,
  ): Promise<Response> {
    const headers = toBearerHeader(this.target.apiKey);
    const method = body === undefined ? "GET" : "POST";
    const target = { ...this.target, timeouts } satisfies HttpTarget;
    return this.client.fetch("the transcription server", target, { url, method, headers, body }, signal);
  }

  #parse(text: string): Transcript {
    const masked = maskKey(text, this.target.apiKey);
    const value = parseJson(masked);
    // LocalAI and older whisper.cpp servers return errors with status 200.
    const error = asObject(value).error;
    if (error) throw this.#createError(findErrorMessage(masked) ?? "the transcription failed");
    const transcript = parseTranscript(value);
    if (transcript === undefined) throw this.#createError("the response isn't a transcript");
    return transcript;
  }

  async #readError(response: Response): Promise<AppError> {
    const message = findErrorMessage(await readErrorText(response, this.target.apiKey));
    return createResponseError("The transcription server", this.target, response, message, ADVICE);
  }

  #createError(reason: string): AppError {
    return new UpstreamError("bad_answer", `The transcription server at "${this.target.baseUrl}" failed: ${reason}`);
  }
}

/** Reads a transcript in OpenAI's `json` or `verbose_json` format. Returns `undefined` for anything else. */
function parseTranscript(value: unknown): Transcript | undefined {
  const { text, language, duration, segments } = asObject(value);
  if (typeof text !== "string") return undefined;
  const durationS = asNumber(duration);
  return {
    // whisper.cpp puts each segment on a separate line.
    text: text.trim().replace(/\s*\n\s*/g, " "),
    ...(isNonEmptyString(language) && { language }),
    ...(durationS !== undefined && { durationS }),
    ...(Array.isArray(segments) && { segments: asArray(segments) }),
  };
}

function toFields({ language, prompt }: TranscriptionInput, model: string): Record<string, string> {
  return { ...(model && { model }), ...(language && { language }), ...(prompt && { prompt }) };
}

/** Creates the form. Text fields come first, because servers that stream the form need them before the file. */
function createForm({ audio, fileName, contentType }: TranscriptionInput, fields: Record<string, string>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("file", new Blob([audio], { type: contentType }), fileName);
  return form;
}

/** Reports whether the server rejected the request itself, and not the address, the key or the load. */
function isRefusal({ status }: Response): boolean {
  return status === 400 || status === 415 || status === 422 || status === 501;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Some servers always send plain text. Broken JSON and web pages aren't transcripts.
    return /^\s*[<{[]/.test(text) ? undefined : { text };
  }
}

// Detects transcription servers on their default ports by the structure of their responses: model servers use these
// ports, too.  See docs/protocols/stt.md, "Discovery"

/** A detected server. */
export interface DetectedTranscriptionServer {
  baseUrl: string;
  /** Product name: `"Speaches"`, `"whisper.cpp"`. */
  software: string;
  /** Models that transcribe. */
  models: string[];
}

/**
 * The default ports of Speaches and others, LocalAI and whisper.cpp, KoboldCpp, and what guides suggest next to a model
 * server.
 */
const PORTS = [8000, 8080, 5001, 8001, 8081, 9000].map((port) => ({ port }));
const UNKNOWN = "OpenAI-compatible";

/** Probes all hosts and ports at once. Known software is first. */
export async function detectTranscriptionServers(
  options: Omit<ProbeOptions<object>, "ports" | "otherPort"> & { ports?: readonly { port: number }[] },
): Promise<DetectedTranscriptionServer[]> {
  const ports = options.ports ?? PORTS;
  const servers = await probeAll({ ...options, ports, otherPort: {} }, async (origin, _port, probe) => {
    const kobold = asObject((await probe("/api/extra/version"))?.json);
    if (kobold.result === "KoboldCpp") {
      // It lists only its language model. Any name selects the Whisper model.
      return kobold.transcribe === true ? { baseUrl: `${origin}/v1`, software: "KoboldCpp", models: [] } : undefined;
    }
    return await detectByModels(origin, probe) ?? await detectWhisperCpp(origin, probe);
  });
  return servers.toSorted((a, b) => Number(a.software === UNKNOWN) - Number(b.software === UNKNOWN));
}

async function detectByModels(origin: string, probe: Probe): Promise<DetectedTranscriptionServer | undefined> {
  const response = await probe("/v1/models");
  if (response?.status !== 200) return undefined;
  const listed = asArray(asObject(response.json).data).map(asObject);
  // Speaches reports the task of each model.
  const isSpeaches = listed.some((model) => isNonEmptyString(model.task));
  const models = listed
    .filter(({ id, task }) =>
      isSpeaches ? task === "automatic-speech-recognition" : TRANSCRIPTION_MODEL.test(String(id))
    )
    .map(({ id }) => id)
    .filter(isNonEmptyString);
  const baseUrl = `${origin}/v1`;
  if (isSpeaches) return { baseUrl, software: "Speaches", models };
  if (models.length === 0) return undefined;
  const localAi = await probe("/.well-known/localai.json");
  const isLocalAi = localAi?.status === 200 && typeof localAi.json === "object" && localAi.json !== null;
  return { baseUrl, software: isLocalAi ? "LocalAI" : UNKNOWN, models };
}

/** Detects whisper.cpp, which has no list of models, by its header, or behind a proxy by its page. */
async function detectWhisperCpp(origin: string, probe: Probe): Promise<DetectedTranscriptionServer | undefined> {
  const page = await probe("/");
  if (page === undefined) return undefined;
  const isNamed = page.headers.get("server") === "whisper.cpp" || /<title>Whisper\.cpp Server/i.test(page.text);
  return isNamed ? { baseUrl: origin, software: "whisper.cpp", models: [] } : undefined;
}
