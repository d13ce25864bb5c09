/**
 * A model that returns pictures, sound and sources, as OpenRouter and OpenAI document it.
 *
 * @see https://openrouter.ai/docs/features/multimodal/image-generation
 * @see https://openrouter.ai/docs/features/multimodal/audio
 * @see https://platform.openai.com/docs/guides/audio
 */
import { Buffer } from "node:buffer";

/** A picture of one pixel. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/** A source. */
export const SOURCE = { url: "https://example.com/wet", title: "Wet" };
/** The sample rate of streamed sound, in Hz. */
const RATE_HZ = 24_000;

/** One reply of the model. */
export interface MediaReply {
  text?: string;
  /** Pictures, as base64 of PNG files. */
  images?: string[];
  /** Seconds of sound, with its transcript. */
  sound?: { seconds: number; transcript: string; id?: string; expiresAt?: number };
  sources?: { url: string; title: string }[];
  /** The reply never ends. */
  isEndless?: boolean;
}

/** A running model. */
export interface MediaModel extends AsyncDisposable {
  url: string;
  requests: Record<string, unknown>[];
  /** The next reply. */
  reply: MediaReply;
}

/** Starts the model. */
export function openMediaModel(reply: MediaReply): MediaModel {
  const leaving = new AbortController();
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {}, signal: leaving.signal },
    async (request) => {
      if (request.method === "GET") return Response.json({ data: [{ id: "m" }] });
      model.requests.push(await request.json());
      const { isEndless } = model.reply;
      const lines = toChunks(model.reply).map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const line of lines) controller.enqueue(new TextEncoder().encode(line));
          if (!isEndless) controller.close();
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  );
  const model: MediaModel = {
    url: `http://127.0.0.1:${server.addr.port}/v1`,
    requests: [],
    reply,
    [Symbol.asyncDispose]() {
      leaving.abort();
      return server.finished;
    },
  };
  return model;
}

/** Returns PCM as a sound of this length has it. */
export function makePcm(seconds: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(Math.round(RATE_HZ * seconds) * 2));
  for (let n = 0; n < view.byteLength / 2; n++) view.setInt16(n * 2, Math.sin(n / 9) * 8_000, true);
  return new Uint8Array(view.buffer);
}

function toChunks({ text = "", images = [], sound, sources = [], isEndless }: MediaReply): unknown[] {
  const deltas: Record<string, unknown>[] = [{ role: "assistant", content: text }];
  for (const data of images) {
    const url = `data:image/png;base64,${data}`;
    deltas.push({ content: "", images: [{ type: "image_url", image_url: { url } }] });
  }
  if (sound !== undefined) {
    const { id = "audio_1", expiresAt = 4_000_000_000 } = sound;
    const pcm = makePcm(sound.seconds);
    const middle = Math.floor(pcm.length / 2) + 1;
    deltas.push({ audio: { id, transcript: sound.transcript } });
    for (const piece of [pcm.subarray(0, middle), pcm.subarray(middle)]) {
      deltas.push({ audio: { data: Buffer.from(piece).toString("base64") } });
    }
    deltas.push({ audio: { expires_at: expiresAt } });
  }
  if (sources.length > 0) {
    deltas.push({ annotations: sources.map((source) => ({ type: "url_citation", url_citation: source })) });
  }
  return [
    ...deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] })),
    ...(isEndless ? [] : [{ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }]),
  ];
}
