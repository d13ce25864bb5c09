import { expect, test } from "vitest";
import { silentMp3, wavFile } from "../../helpers/fakes/fake_speech.ts";
import { openFakeTranscription } from "../../helpers/fakes/fake_transcription.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

const EVENTS = { headers: { accept: "text/event-stream" } };

function toForm(audio: Uint8Array<ArrayBuffer>, fields: Record<string, string> = {}): FormData {
  const form = new FormData();
  form.append("file", new Blob([audio], { type: "audio/wav" }), "speech.wav");
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
}

function withSignature(...head: (number | string)[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(200);
  let at = 0;
  for (const part of head) {
    const next = typeof part === "string" ? new TextEncoder().encode(part) : [part];
    bytes.set(next, at);
    at += next.length;
  }
  return bytes;
}

async function errorOf(response: Response) {
  const { error } = await response.json();
  return { status: response.status, code: error.code, message: error.message as string };
}

async function configure(app: TestApp, fields: Record<string, unknown>): Promise<void> {
  expect((await app.put("/api/stt/config", fields)).status).toBe(200);
}

test("transcribes a recording with the configured server, model and language", async () => {
  await using server = openFakeTranscription();
  await using app = await openTestApp();
  const put = await app.put("/api/stt/config", {
    base_url: `${server.origin}/v1/audio/transcriptions`,
    model: "whisper-1",
    language: "en",
    api_key: "sk-hearing",
  });
  const config = { base_url: `${server.origin}/v1`, model: "whisper-1", language: "en", has_key: true };
  expect(await put.json()).toEqual(config);
  const audio = wavFile(0.5);
  const response = await app.post("/api/stt/transcribe", toForm(audio, { prompt: "Mara, Juniper" }));
  expect(response.headers.get("cache-control")).toContain("no-store");
  expect(await response.json()).toEqual({ text: "Good evening, keeper.", language: "english", duration_s: 1.5 });
  const [call] = server.calls;
  expect(call!.fields).toEqual({
    model: "whisper-1",
    language: "en",
    prompt: "Mara, Juniper",
    response_format: "verbose_json",
  });
  expect(call!.file).toEqual({ name: "recording.wav", type: "audio/wav", bytes: audio });
  expect(call!.headers.get("authorization")).toBe("Bearer sk-hearing");
  expect(Number(call!.headers.get("content-length"))).toBeGreaterThan(audio.length);
  await app.restart();
  expect(await (await app.get("/api/stt/config")).json()).toEqual(config);
});

test("names the server's transcription model if none is configured, and the language of the request", async () => {
  await using server = openFakeTranscription();
  await using app = await openTestApp();
  await configure(app, { base_url: server.origin, language: "en" });
  for (const language of ["de", "ja"]) await app.post("/api/stt/transcribe", toForm(wavFile(0.1), { language }));
  expect(server.calls.map(({ fields }) => [fields.model, fields.language])).toEqual([
    ["whisper-1", "de"],
    ["whisper-1", "ja"],
  ]);
  expect(server.paths.filter((path) => path === "GET /v1/models")).toHaveLength(1);
});

test("uses whisper.cpp's own path, and remembers it", async () => {
  await using server = openFakeTranscription({
    path: "/inference",
    models: undefined,
    text: " Good evening,\n keeper.\n",
  });
  await using app = await openTestApp();
  await configure(app, { base_url: `${server.origin}/inference` });
  for (let i = 0; i < 2; i++) {
    const response = await app.post("/api/stt/transcribe", toForm(wavFile(0.1)));
    expect(await response.json()).toMatchObject({ text: "Good evening, keeper." });
  }
  expect(server.paths.filter((path) => path.startsWith("POST"))).toEqual([
    ...["POST /v1/audio/transcriptions", "POST /audio/transcriptions", "POST /inference", "POST /inference"],
  ]);
});

test("asks for plain JSON once a server has refused the form with language and duration", async () => {
  await using server = openFakeTranscription({ responseFormats: ["json"] });
  await using app = await openTestApp();
  await configure(app, { base_url: server.origin });
  for (let i = 0; i < 2; i++) {
    const response = await app.post("/api/stt/transcribe", toForm(wavFile(0.1)));
    expect(await response.json()).toEqual({ text: "Good evening, keeper." });
  }
  expect(server.calls.map(({ fields }) => fields.response_format)).toEqual(["verbose_json", "json", "json"]);
});

test.each([
  ["wav", wavFile(0.1), "recording.wav"],
  ["webm", withSignature(0x1a, 0x45, 0xdf, 0xa3), "recording.webm"],
  ["ogg", withSignature("OggS"), "recording.ogg"],
  ["mp4", withSignature(0, 0, 0, 24, "ftypisom"), "recording.mp4"],
  ["mp3", silentMp3(0.2), "recording.mp3"],
  ["flac", withSignature("fLaC"), "recording.flac"],
])("accepts %s by its signature", async (_format, audio, name) => {
  await using server = openFakeTranscription();
  await using app = await openTestApp();
  await configure(app, { base_url: server.origin });
  expect((await app.post("/api/stt/transcribe", toForm(audio))).status).toBe(200);
  expect(server.calls[0]!.file.name).toBe(name);
});

test.each([
  ["a web page", withSignature("<!doctype html>")],
  ["raw AAC", withSignature(0xff, 0xf1, 0x50, 0x80)],
  ["an empty file", new Uint8Array(0)],
])("rejects %s with 415, and asks no server", async (_what, audio) => {
  await using server = openFakeTranscription();
  await using app = await openTestApp();
  await configure(app, { base_url: server.origin });
  const error = await errorOf(await app.post("/api/stt/transcribe", toForm(audio)));
  expect(error).toMatchObject({ status: 415, code: "unsupported_media_type" });
  expect(server.paths).toEqual([]);
});

test("rejects a recording above 25 MiB and accepts one of exactly that size", async () => {
  await using server = openFakeTranscription();
  await using app = await openTestApp();
  await configure(app, { base_url: server.origin });
  const audio = new Uint8Array(25 * 1024 * 1024 + 1);
  audio.set(wavFile(0.1));
  expect(await errorOf(await app.post("/api/stt/transcribe", toForm(audio)))).toMatchObject({ status: 413 });
  expect((await app.post("/api/stt/transcribe", toForm(audio.slice(1).fill(0).map((_, i) => audio[i]!)))).status).toBe(
    200,
  );
  expect(server.calls.map(({ file }) => file.bytes.length)).toEqual([25 * 1024 * 1024]);
});

test("rejects a language that isn't a code, and a form without a file", async () => {
  await using app = await openTestApp();
  await configure(app, { base_url: "http://127.0.0.1:9" });
  const form = new FormData();
  form.append("language", "en");
  expect(await errorOf(await app.post("/api/stt/transcribe", form))).toMatchObject({ status: 400 });
  const wrong = await errorOf(await app.post("/api/stt/transcribe", toForm(wavFile(0.1), { language: "my own" })));
  expect(wrong).toMatchObject({ status: 400, code: "invalid_request" });
});

test.each([
  [401, { error: { message: "Incorrect API key: sk-hearing" } }, "Incorrect API key: [key] (status 401)"],
  [400, { error: "failed to read audio data" }, "failed to read audio data (status 400)"],
  [200, { error: { message: "model not loaded: sk-hearing" } }, "model not loaded: [key]"],
  [500, { detail: [{ msg: "out of memory" }] }, "out of memory (status 500)"],
])(
  "passes on a rejection with status %i as 502 with the server's message, without the key",
  async (status, body, message) => {
    await using server = openFakeTranscription({ refusal: { status, body } });
    await using app = await openTestApp();
    await configure(app, { base_url: server.origin, model: "w", api_key: "sk-hearing" });
    for (const options of [{}, EVENTS]) {
      const error = await errorOf(await app.post("/api/stt/transcribe", toForm(wavFile(0.1)), options));
      expect(error).toMatchObject({ status: 502, code: "upstream_error" });
      expect(error.message).toContain(message);
      expect(error.message).not.toContain("sk-hearing");
    }
  },
);

test("reports that no server is configured, and that one isn't running", async () => {
  await using app = await openTestApp();
  const none = await errorOf(await app.post("/api/stt/transcribe", toForm(wavFile(0.1))));
  expect(none).toMatchObject({ status: 503, code: "not_available" });
  await configure(app, { base_url: "http://127.0.0.1:9" });
  expect((await app.post("/api/stt/transcribe", toForm(wavFile(0.1)))).status).toBe(502);
});

test("streams the text as the server sends it, then the transcript", async () => {
  await using server = openFakeTranscription();
  await using app = await openTestApp();
  await configure(app, { base_url: server.origin });
  const response = await app.post("/api/stt/transcribe", toForm(wavFile(0.1)), EVENTS);
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  expect(await response.text()).toBe(
    'event: delta\ndata: {"text":"Good"}\n\nevent: delta\ndata: {"text":" evening,"}\n\n' +
      'event: delta\ndata: {"text":" keeper."}\n\nevent: done\ndata: {"text":"Good evening, keeper."}\n\n',
  );
});

test.each(["ignored", "refused"] as const)("sends the whole text at once if streaming is %s", async (streaming) => {
  await using server = openFakeTranscription({ streaming });
  await using app = await openTestApp();
  await configure(app, { base_url: server.origin });
  for (let i = 0; i < 2; i++) {
    const text = await (await app.post("/api/stt/transcribe", toForm(wavFile(0.1)), EVENTS)).text();
    expect(text).toContain('event: delta\ndata: {"text":"Good evening, keeper."}\n\nevent: done');
  }
  expect(server.calls).toHaveLength(streaming === "refused" ? 3 : 2);
});

test("ends the stream with the error of a server that fails in the middle", async () => {
  await using server = openFakeTranscription({ streamError: { error: { message: "out of memory" } } });
  await using app = await openTestApp();
  await configure(app, { base_url: server.origin });
  const text = await (await app.post("/api/stt/transcribe", toForm(wavFile(0.1)), EVENTS)).text();
  expect(text).toContain('event: delta\ndata: {"text":"Good"}\n\nevent: error');
  expect(text).toContain("out of memory");
  expect(text).not.toContain("event: done");
});

test("another origin drops the key unless a new one is sent, and null clears it", async () => {
  await using app = await openTestApp();
  const put = async (body: Record<string, unknown>) => (await (await app.put("/api/stt/config", body)).json()).has_key;
  expect(await put({ base_url: "http://127.0.0.1:9/v1", api_key: "sk-hearing" })).toBe(true);
  expect(await put({ base_url: "http://127.0.0.1:9/proxy/v1" })).toBe(true);
  expect(await put({ base_url: "http://127.0.0.1:10/v1" })).toBe(false);
  expect(await put({ base_url: "http://127.0.0.1:9/v1" })).toBe(false);
  expect(await put({ api_key: "sk-hearing" })).toBe(true);
  expect(await put({ api_key: null })).toBe(false);
});

test("tests a server before it's saved, and lists the models that transcribe", async () => {
  const server = openFakeTranscription();
  await using app = await openTestApp();
  const good = await (await app.post("/api/stt/test", { base_url: server.origin, model: "whisper-1" })).json();
  expect(good).toEqual({ reachable: true, models: ["whisper-1"], latency_ms: expect.any(Number) });
  expect(await (await app.get("/api/stt/config")).json()).toMatchObject({ base_url: "" });
  server.switches.refusal = { status: 401, body: { error: { message: "Incorrect API key" } } };
  const refused = await (await app.post("/api/stt/test", { base_url: server.origin })).json();
  expect(refused).toMatchObject({ reachable: true, error: expect.stringContaining("Incorrect API key (status 401)") });
  await server[Symbol.asyncDispose]();
  const away = await (await app.post("/api/stt/test", { base_url: server.origin })).json();
  expect(away).toMatchObject({ reachable: false, error: expect.stringContaining("connection refused") });
  expect((await app.post("/api/stt/test", { base_url: "http://169.254.169.254" })).status).toBe(403);
});

test("the test lends the stored key only to its own origin", async () => {
  await using server = openFakeTranscription();
  await using other = openFakeTranscription();
  await using app = await openTestApp();
  await configure(app, { base_url: server.origin, api_key: "sk-hearing" });
  await app.post("/api/stt/test", { base_url: `${server.origin}/v1` });
  await app.post("/api/stt/test", { base_url: other.origin });
  expect(server.calls[0]!.headers.get("authorization")).toBe("Bearer sk-hearing");
  expect(other.calls[0]!.headers.has("authorization")).toBe(false);
});
