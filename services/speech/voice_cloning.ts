/** Identifies speech servers and passes voice samples to them (docs/protocols/tts.md#voice-cloning). */
import { AppError } from "../errors.ts";
import { serverRoot } from "../http/base_url.ts";
import { AUDIO_TYPES, type AudioFormat } from "./audio_format.ts";
import { refusalOf } from "./speech_error.ts";
import type { SpeechCall, SpeechServer } from "./speech_server.ts";
import { plainCall, type SpokenText } from "./spoken_text.ts";
import { isJsonObject } from "../json/type_guards.ts";

/** A voice sample of the library. */
export interface ReferenceSample {
  id: string;
  name: string;
  format: AudioFormat;
  /** Absolute. */
  path: string;
}

/** The kinds of server that take samples. */
export type CloningFamily = "mlx-audio" | "chatterbox-server" | "chatterbox-api" | "localai";

/** What tells a family: an address of its own and what its answer holds. */
const FINGERPRINTS: { family: CloningFamily; path: string; isIt(value: unknown): boolean }[] = [
  {
    family: "localai",
    path: "/api/voice-profiles",
    isIt: (value) => Array.isArray(value) || hasKey(value, "profiles"),
  },
  { family: "chatterbox-server", path: "/api/model-info", isIt: (value) => isJsonObject(value) },
  { family: "chatterbox-api", path: "/ping", isIt: (value) => isJsonObject(value) && value.status === "ok" },
  { family: "mlx-audio", path: "/", isIt: (value) => isJsonObject(value) && /mlx.?audio/i.test(String(value.message)) },
];

const CONNECT_MS = 5_000;
const UPLOAD_MS = 60_000;
/** A server that was replaced by another kind at the same address is found out after this long. */
const REMEMBERED_MS = 10 * 60 * 1000;
const MAX_REMEMBERED = 200;

/** Hands samples to servers; remembers what each server is and has been given. */
export class VoiceCloning {
  readonly #families = new Map<string, { family: CloningFamily | undefined; askedAtMs: number }>();
  /** What a server calls a sample it was given; by base URL and sample. */
  readonly #given = new Map<string, string>();

  /** Tells which family a server is of; `undefined` for one that is not known to take samples. */
  async familyOf(server: SpeechServer, signal: AbortSignal): Promise<CloningFamily | undefined> {
    const { baseUrl } = server.target;
    const known = this.#families.get(baseUrl);
    if (known !== undefined && performance.now() - known.askedAtMs < REMEMBERED_MS) return known.family;
    const root = serverRoot(baseUrl);
    let family: CloningFamily | undefined;
    for (const fingerprint of FINGERPRINTS) {
      const value = await server.getJson(root + fingerprint.path, signal).catch((error) => {
        if (signal.aborted || !(error instanceof AppError)) throw error;
        return undefined;
      });
      if (value === undefined || !fingerprint.isIt(value)) continue;
      family = fingerprint.family;
      break;
    }
    if (this.#families.size >= MAX_REMEMBERED) this.#families.clear();
    this.#families.set(baseUrl, { family, askedAtMs: performance.now() });
    return family;
  }

  /**
   * Makes the request that speaks in the voice of a sample.
   *
   * @throws {AppError} `unprocessable` where this server cannot have the sample; `upstream_error`, `upstream_timeout`
   */
  async callWith(
    sample: ReferenceSample,
    server: SpeechServer,
    spoken: SpokenText,
    signal: AbortSignal,
  ): Promise<SpeechCall> {
    switch (await this.familyOf(server, signal)) {
      case "mlx-audio":
        return plainCall(spoken, { ref_audio: localPath(sample, server) });
      case "chatterbox-server":
        return plainCall({ ...spoken, voice: await this.#once(sample, server, () => upload(sample, server, signal)) });
      case "localai":
        return plainCall({ ...spoken, voice: await this.#once(sample, server, () => profile(sample, server, signal)) });
      case "chatterbox-api":
        return await formCall(sample, spoken);
      case undefined:
        throw new AppError(
          "unprocessable",
          `Cannot speak in the voice of "${sample.name}": the speech server at "${server.target.baseUrl}" is of no kind known to take voice samples`,
        );
    }
  }

  async #once(sample: ReferenceSample, server: SpeechServer, give: () => Promise<string>): Promise<string> {
    const key = JSON.stringify([server.target.baseUrl, sample.id]);
    const known = this.#given.get(key);
    if (known !== undefined) return known;
    const voice = await give();
    if (this.#given.size >= MAX_REMEMBERED) this.#given.clear();
    this.#given.set(key, voice);
    return voice;
  }
}

/** mlx-audio reads the sample from its own disk, so it has to be this machine's. */
function localPath(sample: ReferenceSample, server: SpeechServer): string {
  const { hostname } = new URL(server.target.baseUrl);
  if (/^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname)) return sample.path;
  throw new AppError(
    "unprocessable",
    `Cannot speak in the voice of "${sample.name}": a server of this kind reads samples from its own disk, and "${hostname}" is another machine`,
  );
}

/** Puts the sample into the folder of Chatterbox-TTS-Server, where its file name is the voice. */
async function upload(sample: ReferenceSample, server: SpeechServer, signal: AbortSignal): Promise<string> {
  const form = new FormData();
  const name = fileName(sample);
  form.append("files", await fileOf(sample), name);
  await post(server, `${serverRoot(server.target.baseUrl)}/upload_reference`, form, signal);
  return name;
}

/** Makes a voice profile at LocalAI. */
async function profile(sample: ReferenceSample, server: SpeechServer, signal: AbortSignal): Promise<string> {
  const form = new FormData();
  form.append("audio", await fileOf(sample), fileName(sample));
  form.append("name", `parlor-${sample.id}`);
  form.append("consent_confirmed", "true");
  const answer = await post(server, `${serverRoot(server.target.baseUrl)}/api/voice-profiles`, form, signal);
  const id = isJsonObject(answer) && typeof answer.id === "string" ? answer.id : undefined;
  if (id !== undefined) return `localai://voice-profiles/${id}`;
  throw new AppError("upstream_error", `The speech server at "${server.target.baseUrl}" made no profile of the sample`);
}

/** chatterbox-tts-api takes the sample along with every text. */
async function formCall(sample: ReferenceSample, spoken: SpokenText): Promise<SpeechCall> {
  const form = new FormData();
  form.append("input", spoken.text);
  form.append("response_format", spoken.format);
  form.append("voice_file", await fileOf(sample), fileName(sample));
  return { path: "/audio/speech/upload", body: form, format: spoken.format };
}

async function post(server: SpeechServer, url: string, body: FormData, signal: AbortSignal): Promise<unknown> {
  const response = await server.send({
    url,
    method: "POST",
    body,
    connectMs: CONNECT_MS,
    firstByteMs: UPLOAD_MS,
    signal,
  });
  if (!response.ok) throw await refusalOf(server.target.baseUrl, response, server.target.apiKey);
  return await response.json().catch(() => undefined);
}

async function fileOf(sample: ReferenceSample): Promise<Blob> {
  return new Blob([await Deno.readFile(sample.path)], { type: AUDIO_TYPES[sample.format] });
}

function fileName(sample: ReferenceSample): string {
  return `parlor-${sample.id}.${sample.format}`;
}

function hasKey(value: unknown, key: string): boolean {
  return isJsonObject(value) && key in value;
}
