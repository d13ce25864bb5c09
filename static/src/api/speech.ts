/** API calls for speech servers, voices and transcription. */
import type {
  SpeechConfig,
  SpeechConfigPatch,
  SpeechDetection,
  Transcript,
  TranscriptionConfig,
  TranscriptionConfigPatch,
  TranscriptionTest,
  VoiceImport,
  Voices,
  VoiceSample,
} from "./types.ts";
import { type ApiClient, ApiError, readEvents, type RequestOptions } from "./client.ts";
import { parseErrorBody } from "./failures.ts";
import { texts } from "../texts/texts.ts";

/** API calls for speech. All calls throw `ApiError`. */
export interface SpeechApi {
  /** Returns the audio while the server generates it. */
  speak(request: { text: string; voice: string | undefined }, signal: AbortSignal): Promise<Response>;
  getSpeechConfig(): Promise<SpeechConfig>;
  changeSpeechConfig(changes: SpeechConfigPatch): Promise<SpeechConfig>;
  /** Finds out what the server at an address is. */
  detectSpeechServer(baseUrl: string): Promise<SpeechDetection>;
  listVoices(): Promise<Voices>;
  listSpeechModels(): Promise<string[]>;
  listVoiceSamples(): Promise<VoiceSample[]>;
  addVoiceSample(audio: Blob, name: string): Promise<VoiceSample>;
  /** Resolves after the import job has ended. */
  importVoiceSample(request: VoiceImport): Promise<VoiceSample>;
  changeVoiceSample(id: string, changes: { name?: string; description?: string }): Promise<VoiceSample>;
  deleteVoiceSample(id: string, options?: RequestOptions): Promise<void>;
  /** Returns the audio. */
  openVoiceSample(id: string, signal: AbortSignal): Promise<Response>;
}

/** Returns the calls, bound to a client. */
export function speechApi(client: ApiClient): SpeechApi {
  async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
    return await (await client.send(method, path, options)).json() as T;
  }
  const sample = (id: string) => `/api/voices/${encodeURIComponent(id)}`;
  return {
    speak: (request, signal) => client.send("POST", "/api/tts/speak", { body: request, signal }),
    getSpeechConfig: () => json("GET", "/api/tts/config"),
    changeSpeechConfig: (changes) => json("PUT", "/api/tts/config", { body: changes }),
    detectSpeechServer: (base_url) => json("POST", "/api/tts/detect", { body: { base_url } }),
    listVoices: () => json("GET", "/api/tts/voices"),
    async listSpeechModels() {
      return (await json<{ data: { id: string }[] }>("GET", "/api/tts/models")).data.map(({ id }) => id);
    },
    listVoiceSamples: () => json("GET", "/api/voices"),
    addVoiceSample(audio, name) {
      const form = new FormData();
      form.set("name", name);
      form.set("audio", audio);
      return json("POST", "/api/voices", { form });
    },
    importVoiceSample: (request) => json("POST", "/api/voices/from-url", { body: request }),
    changeVoiceSample: (id, changes) => json("PATCH", sample(id), { body: changes }),
    async deleteVoiceSample(id, options) {
      await (await client.send("DELETE", sample(id), options)).body?.cancel();
    },
    openVoiceSample: (id, signal) => client.send("GET", `${sample(id)}/audio`, { signal }),
  };
}

/** API calls for transcription. All calls throw `ApiError`. */
export interface TranscriptionApi {
  getConfig(): Promise<TranscriptionConfig>;
  changeConfig(changes: TranscriptionConfigPatch): Promise<TranscriptionConfig>;
  test(changes: TranscriptionConfigPatch): Promise<TranscriptionTest>;
  /** @param onText Called with the text so far. */
  transcribe(
    audio: Blob,
    options: { prompt?: string; signal?: AbortSignal; onText?: (text: string) => void },
  ): Promise<Transcript>;
}

/** Returns the calls, bound to a client. */
export function transcriptionApi(client: ApiClient): TranscriptionApi {
  async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return await (await client.send(method, path, { body })).json() as T;
  }
  return {
    getConfig: () => json("GET", "/api/stt/config"),
    changeConfig: (changes) => json("PUT", "/api/stt/config", changes),
    test: (changes) => json("POST", "/api/stt/test", changes),
    async transcribe(audio, { prompt, signal, onText }) {
      const form = new FormData();
      if (prompt) form.set("prompt", prompt);
      form.set("file", audio);
      const headers = { accept: "text/event-stream" };
      const response = await client.send("POST", "/api/stt/transcribe", { form, headers, signal });
      let text = "";
      try {
        for await (const events of readEvents(response)) {
          for (const { event, data } of events) {
            const value = JSON.parse(data);
            if (event === "done") return value as Transcript;
            if (event === "error") {
              throw new ApiError(502, parseErrorBody(value) ?? { code: "internal", message: data });
            }
            text += value.text;
            onText?.(text.trim());
          }
        }
      } catch (thrown) {
        if (thrown instanceof ApiError || signal?.aborted) throw thrown;
        throw new ApiError(0, { code: "no_answer", message: texts.errors.noAnswer }, { cause: thrown });
      }
      throw new ApiError(0, { code: "no_answer", message: texts.errors.noAnswer });
    },
  };
}
