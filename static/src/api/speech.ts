/** The calls about speech and voice samples. */
import type { SpeechConfig, SpeechConfigPatch, VoiceImport, Voices, VoiceSample } from "./types.ts";
import type { ApiClient, RequestOptions } from "./client.ts";

/** The calls about speech. They throw `ApiError` as the client does. */
export interface SpeechApi {
  /** Returns the audio while the server generates it. */
  speak(request: { text: string; voice: string | undefined }, signal: AbortSignal): Promise<Response>;
  getSpeechConfig(): Promise<SpeechConfig>;
  changeSpeechConfig(changes: SpeechConfigPatch): Promise<SpeechConfig>;
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

/** Binds the calls to one client. */
export function speechApi(client: ApiClient): SpeechApi {
  async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
    return await (await client.send(method, path, options)).json() as T;
  }
  const sample = (id: string) => `/api/voices/${encodeURIComponent(id)}`;
  return {
    speak: (request, signal) => client.send("POST", "/api/tts/speak", { body: request, signal }),
    getSpeechConfig: () => json("GET", "/api/tts/config"),
    changeSpeechConfig: (changes) => json("PUT", "/api/tts/config", { body: changes }),
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
