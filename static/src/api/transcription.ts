/** The calls about transcription. */
import { texts } from "../texts/texts.ts";
import type { ApiClient } from "./client.ts";
import { ApiError, parseErrorBody } from "./client.ts";
import { readEvents } from "./event_stream.ts";
import type {
  DetectedTranscriptionServer,
  Transcript,
  TranscriptionConfig,
  TranscriptionConfigPatch,
  TranscriptionTest,
} from "./types.ts";

/** The calls about transcription. They throw `ApiError` as the client does. */
export interface TranscriptionApi {
  getConfig(): Promise<TranscriptionConfig>;
  changeConfig(changes: TranscriptionConfigPatch): Promise<TranscriptionConfig>;
  test(changes: TranscriptionConfigPatch): Promise<TranscriptionTest>;
  discover(): Promise<DetectedTranscriptionServer[]>;
  /** @param onText Called with the text so far. */
  transcribe(
    audio: Blob,
    options: { prompt?: string; signal?: AbortSignal; onText?: (text: string) => void },
  ): Promise<Transcript>;
}

/** Binds the calls to one client. */
export function transcriptionApi(client: ApiClient): TranscriptionApi {
  async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return await (await client.send(method, path, { body })).json() as T;
  }
  return {
    getConfig: () => json("GET", "/api/stt/config"),
    changeConfig: (changes) => json("PUT", "/api/stt/config", changes),
    test: (changes) => json("POST", "/api/stt/test", changes),
    discover: () => json("POST", "/api/stt/discover"),
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
