/** Fake transcription server with a switch per server and quirk in docs/protocols/stt.md. */

/** Switches of the fake. */
export interface FakeTranscriptionSwitches {
  /** The transcript. */
  text: string;
  /** Path of the endpoint: OpenAI's, or `/inference`. */
  path: string;
  /** Formats it supports; others are 400. */
  responseFormats: string[];
  /** `events` streams if asked; `ignored` returns JSON then; `refused` is 400. */
  streaming: "events" | "ignored" | "refused";
  /** Ids in `/v1/models`; undefined is 404. */
  models: unknown[] | undefined;
  /** JSON, or HTML, of other paths. */
  pages: Record<string, unknown>;
  serverHeader: string | undefined;
  /** Status and body of an error instead of a transcript. */
  refusal: { status: number; body: unknown } | undefined;
  /** Breaks the stream off with this event after the first delta. */
  streamError: unknown;
  /** Responses wait for this. */
  held: Promise<void> | undefined;
}

/** One request for a transcript as it came. */
export interface TranscriptionCall {
  path: string;
  headers: Headers;
  fields: Record<string, string>;
  file: { name: string; type: string; bytes: Uint8Array };
}

/** A running fake server. */
export interface FakeTranscription extends AsyncDisposable {
  readonly origin: string;
  readonly calls: TranscriptionCall[];
  /** Method and path of all requests. */
  readonly paths: string[];
  readonly switches: FakeTranscriptionSwitches;
}

const DEFAULTS: FakeTranscriptionSwitches = {
  text: "Good evening, keeper.",
  path: "/v1/audio/transcriptions",
  responseFormats: ["json", "verbose_json"],
  streaming: "events",
  models: [{ id: "gemma" }, { id: "whisper-1" }],
  pages: {},
  serverHeader: undefined,
  refusal: undefined,
  streamError: undefined,
  held: undefined,
};

/** Starts the fake server on a free port. */
export function openFakeTranscription(changes: Partial<FakeTranscriptionSwitches> = {}): FakeTranscription {
  const switches = { ...DEFAULTS, ...changes };
  const calls: TranscriptionCall[] = [];
  const paths: string[] = [];

  const handle = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    paths.push(`${request.method} ${pathname}`);
    if (request.method === "POST" && pathname === switches.path) {
      const form = await request.formData();
      const file = form.get("file") as File;
      const bytes = new Uint8Array(await file.arrayBuffer());
      const fields = Object.fromEntries([...form].filter(([name]) => name !== "file")) as Record<string, string>;
      const { headers } = request;
      calls.push({
        path: pathname,
        headers,
        fields,
        file: { name: file.name, type: file.type, bytes },
      });
      await switches.held;
      return transcribe(fields);
    }
    await request.body?.cancel();
    const page = switches.pages[pathname];
    if (typeof page === "string") return new Response(page, { headers: { "content-type": "text/html" } });
    if (page !== undefined) return Response.json(page);
    if (pathname === "/v1/models" && switches.models !== undefined) {
      return Response.json({ object: "list", data: switches.models });
    }
    return Response.json({ error: { message: "File Not Found" } }, { status: 404 });
  };

  const transcribe = (fields: Record<string, string>): Response => {
    const { refusal, text, responseFormats, streaming, streamError } = switches;
    if (refusal !== undefined) return Response.json(refusal.body, { status: refusal.status });
    const format = fields.response_format ?? "json";
    if (!responseFormats.includes(format)) return createRefusal(`response_format '${format}' is not supported`);
    if (fields.stream === "true" && streaming === "refused") return createRefusal("unknown field: stream");
    if (fields.stream === "true" && streaming === "events") {
      const words = text.split(/(?= )/);
      const events = words.map((delta) => ({ type: "transcript.text.delta", delta }));
      const sent = streamError === undefined
        ? [...events, { type: "transcript.text.done", text }]
        : [events[0], streamError];
      const frames = sent.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
      return new Response(frames, { headers: { "content-type": "text/event-stream" } });
    }
    const more = format === "verbose_json" ? { language: "english", duration: 1.5, segments: [{ id: 0, text }] } : {};
    return Response.json({ text, ...more });
  };

  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {}, onError: () => new Response(null) },
    async (request) => {
      const response = await handle(request);
      if (switches.serverHeader !== undefined) response.headers.set("server", switches.serverHeader);
      return response;
    },
  );
  return {
    origin: `http://127.0.0.1:${server.addr.port}`,
    calls,
    paths,
    switches,
    async [Symbol.asyncDispose]() {
      await server.shutdown();
    },
  };
}

function createRefusal(message: string): Response {
  return Response.json({ error: { message, type: "invalid_request_error" } }, { status: 400 });
}
