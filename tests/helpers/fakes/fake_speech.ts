/** Fake OpenAI-compatible speech server with a switch per quirk in docs/protocols/tts.md. */
import { joined } from "../app/joined.ts";

/** Switches of the fake. */
export interface FakeSpeechSwitches {
  /** Format of all audio, regardless of the request. */
  format: "mp3" | "wav" | "pcm";
  /** Creates the audio of a text, for example audio that browsers can play. */
  audio: ((text: string) => Uint8Array<ArrayBuffer>) | undefined;
  /** Content-Type of the audio. */
  contentType: string;
  /** Status and body of an error response. */
  refusal: { status: number; body: unknown; retryAfter?: string } | undefined;
  /** Fields without which a request for speech is refused, as OpenAI's and Speaches' are. */
  required: ("model" | "voice")[];
  /** Body with status 200 instead of audio: nothing, or text. */
  instead: string | undefined;
  /** Disconnects after this number of bytes. */
  cutAfterBytes: number | undefined;
  /** Resolves when the response may break off. By default that is at once: what the client hasn't read by then is lost. */
  beforeCut: (() => Promise<unknown>) | undefined;
  /** Sends headers and a first part, then waits for `go`. */
  isManual: boolean;
  /** Answer of `/v1/audio/voices`; undefined is 404. */
  voices: unknown;
  /** Answer of `/v1/models`; undefined is 404. */
  models: unknown;
  /** Responses of other paths. */
  pages: Record<string, unknown>;
  /** Path prefix of the endpoints. */
  prefix: string;
  /** Redirects all requests to this URL. */
  redirectTo: string | undefined;
}

/** A recorded request. */
export interface SpeechRequest {
  method: string;
  path: string;
  headers: Headers;
  json: Record<string, unknown> | undefined;
  form: FormData | undefined;
  /** Resolves when the client disconnects before the end of the response. */
  left: Promise<void>;
}

/** A running fake server. */
export interface FakeSpeech extends AsyncDisposable {
  /** Base URL, as users enter it. */
  readonly url: string;
  readonly origin: string;
  readonly requests: SpeechRequest[];
  readonly switches: FakeSpeechSwitches;
  /** Continues waiting responses in manual mode. */
  go(): void;
  /** Maximum number of concurrent speech requests so far. */
  readonly peak: number;
}

const PLAIN: FakeSpeechSwitches = {
  format: "mp3",
  audio: undefined,
  contentType: "audio/mpeg",
  refusal: undefined,
  required: [],
  instead: undefined,
  cutAfterBytes: undefined,
  beforeCut: undefined,
  isManual: false,
  voices: { voices: [{ id: "joe", name: "Joe", language: "en" }] },
  models: { object: "list", data: [{ id: "tts-1" }, { id: "tts-1" }, { id: "kokoro" }] },
  pages: {},
  prefix: "/v1",
  redirectTo: undefined,
};

/** Audio whose length depends on its text. */
export function fakeAudio(format: FakeSpeechSwitches["format"], text: string): Uint8Array<ArrayBuffer> {
  const samples = new Uint8Array(400 + text.length * 20).map((_, i) => (i * 7) % 251);
  if (format === "pcm") return samples;
  if (format === "mp3") return joined([new Uint8Array([0xff, 0xfb, 0x90, 0xc4]), samples]);
  return joined([wavHeader(0xffff_ffff), samples]);
}

/** An MP3 of silence that a browser plays: frames of MPEG 1, layer III, 128 kbit/s, mono, with nothing in them. */
export function silentMp3(seconds: number): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(417);
  frame.set([0xff, 0xfb, 0x90, 0xc4]);
  return joined(Array.from({ length: Math.ceil(seconds * 44_100 / 1152) }, () => frame));
}

/** A whole WAV file of silence: mono, 16 bit. */
export function wavFile(seconds: number, rate = 24_000): Uint8Array<ArrayBuffer> {
  const bytes = Math.round(seconds * rate) * 2;
  return joined([wavHeader(bytes, rate), new Uint8Array(bytes)]);
}

function wavHeader(dataBytes: number, rate = 24_000): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(44);
  const view = new DataView(header.buffer);
  const text = (at: number, word: string) => header.set(new TextEncoder().encode(word), at);
  text(0, "RIFF");
  view.setUint32(4, dataBytes === 0xffff_ffff ? dataBytes : dataBytes + 36, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, dataBytes, true);
  return header;
}

/** Starts the fake server on a free port. */
export function openFakeSpeech(changes: Partial<FakeSpeechSwitches> = {}): FakeSpeech {
  const switches = { ...PLAIN, ...changes };
  const requests: SpeechRequest[] = [];
  let go = Promise.withResolvers<void>();
  let open = 0;
  let peak = 0;

  const handler = async (request: Request): Promise<Response> => {
    const path = new URL(request.url).pathname + new URL(request.url).search;
    const left = Promise.withResolvers<void>();
    request.signal.addEventListener("abort", () => left.resolve());
    const type = request.headers.get("content-type") ?? "";
    const form = type.startsWith("multipart/") ? await request.formData() : undefined;
    const json = type.includes("json") ? await request.json() : undefined;
    requests.push({ method: request.method, path, headers: request.headers, json, form, left: left.promise });
    if (switches.redirectTo !== undefined) {
      return new Response(null, { status: 307, headers: { location: switches.redirectTo } });
    }
    const route = path.split("?")[0]!;
    if (Object.hasOwn(switches.pages, route)) return Response.json(switches.pages[route]);
    if (route === `${switches.prefix}/models` && switches.models !== undefined) return Response.json(switches.models);
    if (route === `${switches.prefix}/audio/voices` && switches.voices !== undefined) {
      return Response.json(switches.voices);
    }
    if (route.startsWith(`${switches.prefix}/audio/speech`) && request.method === "POST") {
      const missing = switches.required.filter((field) => !(json?.[field] ?? form?.get(field)));
      if (missing.length > 0) {
        const detail = missing.map((field) => ({ type: "missing", loc: ["body", field], msg: "Field required" }));
        return Response.json({ detail }, { status: 422 });
      }
      return speak(String(json?.input ?? form?.get("input") ?? ""));
    }
    return Response.json({ detail: "Not Found" }, { status: 404 });
  };

  const speak = (text: string): Response => {
    const { refusal, instead, contentType } = switches;
    if (refusal !== undefined) {
      const body = typeof refusal.body === "string" ? refusal.body : JSON.stringify(refusal.body);
      const headers = new Headers({ "content-type": "application/json" });
      if (refusal.retryAfter !== undefined) headers.set("retry-after", refusal.retryAfter);
      return new Response(body, { status: refusal.status, headers });
    }
    if (instead !== undefined) return new Response(instead, { headers: { "content-type": contentType } });
    const audio = switches.audio?.(text) ?? fakeAudio(switches.format, text);
    const first = audio.slice(0, 200);
    peak = Math.max(peak, ++open);
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(first);
        if (switches.isManual) await go.promise;
        if (switches.cutAfterBytes !== undefined) {
          controller.enqueue(audio.slice(200, switches.cutAfterBytes));
          await (switches.beforeCut?.() ?? new Promise((resolve) => setTimeout(resolve, 20)));
          controller.error(new Error("the engine failed"));
        } else {
          controller.enqueue(audio.slice(200));
          controller.close();
        }
        open--;
      },
    });
    return new Response(body, { headers: { "content-type": contentType } });
  };

  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {}, onError: () => new Response(null) },
    handler,
  );
  const origin = `http://127.0.0.1:${server.addr.port}`;
  return {
    origin,
    url: `${origin}/v1`,
    requests,
    switches,
    get peak() {
      return peak;
    },
    go() {
      go.resolve();
      go = Promise.withResolvers();
    },
    async [Symbol.asyncDispose]() {
      go.resolve();
      await server.shutdown();
    },
  };
}
