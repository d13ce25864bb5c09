/** Sends voice samples to speech servers, which do this in different ways (docs/protocols/tts.md, "Voice cloning"). */
import { AppError } from "../errors.ts";
import { getServerRoot } from "../http/base_url.ts";
import { AUDIO_TYPES, type AudioFormat } from "./audio_format.ts";
import { createSpeechRequest, type SpeechInput, type SpeechRequest, type SpeechServer } from "./speech_server.ts";
import { isJsonObject } from "../json/type_guards.ts";

/** A voice sample and its file. */
export interface ReferenceSample {
  id: string;
  name: string;
  format: AudioFormat;
  /** Absolute path of the file. */
  path: string;
}

/** The kinds of server that support samples. */
export type CloningFamily = "mlx-audio" | "chatterbox-server" | "chatterbox-api" | "localai";

/** How to detect each kind: a path that only it has, and the structure of the response. */
const DETECTIONS: { family: CloningFamily; path: string; matches(value: unknown): boolean }[] = [
  {
    family: "localai",
    path: "/api/voice-profiles",
    matches: (value) => Array.isArray(value) || hasKey(value, "profiles"),
  },
  { family: "chatterbox-server", path: "/api/model-info", matches: (value) => isJsonObject(value) },
  { family: "chatterbox-api", path: "/ping", matches: (value) => isJsonObject(value) && value.status === "ok" },
  {
    family: "mlx-audio",
    path: "/",
    matches: (value) => isJsonObject(value) && /mlx.?audio/i.test(String(value.message)),
  },
];

const UPLOAD_TIMEOUTS = { connectMs: 5_000, firstByteMs: 60_000, idleMs: 60_000 };
/** How long the kind of a server is remembered. Another server may run at the same address later. */
const REMEMBERED_MS = 10 * 60 * 1000;
const MAX_REMEMBERED = 200;

/** Creates requests with samples. Remembers the kind of each server and the samples it has. */
export class VoiceCloning {
  readonly #families = new Map<string, { family: CloningFamily | undefined; askedAtMs: number }>();
  /** The voice names of uploaded samples, by base URL and sample id. */
  readonly #uploaded = new Map<string, string>();

  /** Detects the kind of a server. Returns `undefined` if it isn't known to support samples. */
  async detectFamily(server: SpeechServer, signal: AbortSignal): Promise<CloningFamily | undefined> {
    const { baseUrl } = server.target;
    const known = this.#families.get(baseUrl);
    if (known !== undefined && performance.now() - known.askedAtMs < REMEMBERED_MS) return known.family;
    const root = getServerRoot(baseUrl);
    let family: CloningFamily | undefined;
    for (const detection of DETECTIONS) {
      const value = await server.findJson(root + detection.path, signal).catch((error) => {
        if (signal.aborted || !(error instanceof AppError)) throw error;
        return undefined;
      });
      if (value === undefined || !detection.matches(value)) continue;
      family = detection.family;
      break;
    }
    if (this.#families.size >= MAX_REMEMBERED) this.#families.clear();
    this.#families.set(baseUrl, { family, askedAtMs: performance.now() });
    return family;
  }

  /**
   * Creates the request that speaks with the voice of a sample.
   *
   * @throws {AppError} `unprocessable` if this server can't use the sample; `upstream_error`, `upstream_timeout`
   */
  async createRequest(
    sample: ReferenceSample,
    server: SpeechServer,
    input: SpeechInput,
    signal: AbortSignal,
  ): Promise<SpeechRequest> {
    switch (await this.detectFamily(server, signal)) {
      case "mlx-audio":
        return createSpeechRequest(input, { ref_audio: getLocalPath(sample, server) });
      case "chatterbox-server":
        return createSpeechRequest({
          ...input,
          voice: await this.#sendOnce(sample, server, () => uploadReference(sample, server, signal)),
        });
      case "localai":
        return createSpeechRequest({
          ...input,
          voice: await this.#sendOnce(sample, server, () => createProfile(sample, server, signal)),
        });
      case "chatterbox-api":
        return await createFormRequest(sample, input);
      case undefined:
        throw new AppError(
          "unprocessable",
          `Can't use the voice "${sample.name}": the speech server at "${server.target.baseUrl}" isn't known to support voice samples`,
        );
    }
  }

  async #sendOnce(sample: ReferenceSample, server: SpeechServer, upload: () => Promise<string>): Promise<string> {
    const key = JSON.stringify([server.target.baseUrl, sample.id]);
    const known = this.#uploaded.get(key);
    if (known !== undefined) return known;
    const voice = await upload();
    if (this.#uploaded.size >= MAX_REMEMBERED) this.#uploaded.clear();
    this.#uploaded.set(key, voice);
    return voice;
  }
}

/** Returns the path of the sample. mlx-audio reads it from its own disk, so it must run on this machine. */
function getLocalPath(sample: ReferenceSample, server: SpeechServer): string {
  const { hostname } = new URL(server.target.baseUrl);
  if (/^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname)) return sample.path;
  throw new AppError(
    "unprocessable",
    `Can't use the voice "${sample.name}": this kind of server reads samples from its own disk, and "${hostname}" is another machine`,
  );
}

/** Uploads the sample to Chatterbox-TTS-Server, where its file name is the voice. */
async function uploadReference(sample: ReferenceSample, server: SpeechServer, signal: AbortSignal): Promise<string> {
  const form = new FormData();
  const name = getFileName(sample);
  form.append("files", await readSample(sample), name);
  await post(server, `${getServerRoot(server.target.baseUrl)}/upload_reference`, form, signal);
  return name;
}

/** Creates a voice profile in LocalAI. */
async function createProfile(sample: ReferenceSample, server: SpeechServer, signal: AbortSignal): Promise<string> {
  const form = new FormData();
  form.append("audio", await readSample(sample), getFileName(sample));
  form.append("name", `parlor-${sample.id}`);
  form.append("consent_confirmed", "true");
  const answer = await post(server, `${getServerRoot(server.target.baseUrl)}/api/voice-profiles`, form, signal);
  const id = isJsonObject(answer) && typeof answer.id === "string" ? answer.id : undefined;
  if (id !== undefined) return `localai://voice-profiles/${id}`;
  throw new AppError(
    "upstream_error",
    `The speech server at "${server.target.baseUrl}" didn't return a profile for the sample`,
  );
}

/** Creates a request to chatterbox-tts-api, which gets the sample with every text. */
async function createFormRequest(sample: ReferenceSample, input: SpeechInput): Promise<SpeechRequest> {
  const form = new FormData();
  form.append("input", input.text);
  form.append("response_format", input.format);
  form.append("voice_file", await readSample(sample), getFileName(sample));
  return { path: "/audio/speech/upload", body: form, format: input.format };
}

async function post(server: SpeechServer, url: string, body: FormData, signal: AbortSignal): Promise<unknown> {
  const response = await server.send(url, body, UPLOAD_TIMEOUTS, signal);
  if (!response.ok) throw await server.readError(response);
  return await response.json().catch(() => undefined);
}

async function readSample(sample: ReferenceSample): Promise<Blob> {
  return new Blob([await Deno.readFile(sample.path)], { type: AUDIO_TYPES[sample.format] });
}

function getFileName(sample: ReferenceSample): string {
  return `parlor-${sample.id}.${sample.format}`;
}

function hasKey(value: unknown, key: string): boolean {
  return isJsonObject(value) && key in value;
}
