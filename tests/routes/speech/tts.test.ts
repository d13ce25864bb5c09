import { expect, test } from "vitest";
import { fakeAudio, openFakeSpeech, silentMp3, wavFile } from "../../helpers/fakes/fake_speech.ts";
import { joined } from "../../helpers/app/joined.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

async function bytesOf(response: Response): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer());
}

async function errorOf(response: Response): Promise<{ status: number; code: string; message: string }> {
  const { error } = await response.json();
  return { status: response.status, code: error.code, message: error.message };
}

async function addSample(app: TestApp, name = "Grandma"): Promise<string> {
  const form = new FormData();
  form.append("audio", new Blob([wavFile(1)]), "voice.wav");
  form.append("name", name);
  const response = await app.post("/api/voices", form);
  expect(response.status).toBe(201);
  return (await response.json()).id;
}

test("text is spoken by the configured server with the configured model, voice and format", async () => {
  await using speech = openFakeSpeech();
  await using app = await openTestApp();
  const put = await app.put("/api/tts/config", {
    base_url: speech.url,
    model: "kokoro",
    voice: "af_heart",
    api_key: "k1",
  });
  expect(await put.json()).toEqual({
    base_url: speech.url,
    model: "kokoro",
    voice: "af_heart",
    format: "mp3",
    speed: 1,
    has_key: true,
  });
  const answer = await app.post("/api/tts/speak", { text: "Good evening." });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("audio/mpeg");
  expect(answer.headers.get("cache-control")).toContain("no-store");
  expect(await bytesOf(answer)).toEqual(fakeAudio("mp3", "Good evening."));
  const [request] = speech.requests;
  expect(request!.json).toEqual({ model: "kokoro", input: "Good evening.", voice: "af_heart", response_format: "mp3" });
  expect(request!.headers.get("authorization")).toBe("Bearer k1");
});

test.each([
  {
    server: "with lists",
    models: { data: [{ id: "whisper-1" }, { id: "kokoro" }, { id: "tts-1" }] },
    voices: { voices: ["af_sky", "af_heart"] },
    pages: {},
    sends: { model: "kokoro", voice: "af_sky" },
  },
  {
    server: "with documented voices",
    models: { data: [{ id: "gpt-4.1" }, { id: "tts-1" }] },
    voices: undefined,
    pages: {},
    sends: { model: "tts-1", voice: "alloy" },
  },
  {
    server: "that lists the voices of each model",
    models: {
      data: [{ id: "Systran/whisper", task: "automatic-speech-recognition" }, { id: "a/b", task: "text-to-speech" }],
    },
    voices: undefined,
    pages: { "/v1/models/a/b": { id: "a/b", voices: [{ name: "emma" }] } },
    sends: { model: "a/b", voice: "emma" },
  },
])("a server $server that requires model and voice gets the first of each, and is asked for them once", async (one) => {
  const { models, voices, pages, sends } = one;
  await using speech = openFakeSpeech({ models, voices, pages, required: ["model", "voice"] });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url });
  expect((await app.post("/api/tts/speak", { text: "One" })).headers.get("content-type")).toBe("audio/mpeg");
  const sent = () => speech.requests.filter(({ path }) => path === "/v1/audio/speech").map(({ json }) => json);
  expect(sent()).toMatchObject([{ input: "One" }, { input: "One", ...sends }]);
  const asked = speech.requests.length;
  expect((await app.post("/api/tts/speak", { text: "Two" })).status).toBe(200);
  expect(speech.requests).toHaveLength(asked + 1);
  expect(sent()[2]).toMatchObject({ input: "Two", ...sends });
  // What the owner chose stays.
  expect((await app.post("/api/tts/speak", { text: "Three", voice: "mine" })).status).toBe(200);
  expect(sent().at(-1)).toMatchObject({ model: sends.model, voice: "mine" });
});

test("a server that requires a voice and lists none says so, and is asked no more than once for one text", async () => {
  await using speech = openFakeSpeech({ models: { data: [{ id: "m" }] }, voices: undefined, required: ["voice"] });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url, model: "m" });
  expect(await errorOf(await app.post("/api/tts/speak", { text: "Hi" }))).toMatchObject({
    status: 502,
    message: expect.stringContaining("voice: Field required"),
  });
  expect(speech.requests.filter(({ path }) => path === "/v1/audio/speech")).toHaveLength(1);
});

test("values of the request take precedence over the configured ones", async () => {
  await using speech = openFakeSpeech({ format: "wav", contentType: "text/html" });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url, model: "a", voice: "b" });
  const answer = await app.post("/api/tts/speak", { text: "Hi", model: "c", voice: "d", format: "wav" });
  // The type comes from the bytes: this server labels its audio text/html.
  expect(answer.headers.get("content-type")).toBe("audio/wav");
  expect(await bytesOf(answer)).toEqual(fakeAudio("wav", "Hi"));
  expect(speech.requests[0]!.json).toMatchObject({ model: "c", voice: "d", response_format: "wav" });
});

test("another speed than the voice's own is requested, stored, and limited", async () => {
  await using speech = openFakeSpeech();
  await using app = await openTestApp();
  const put = await app.put("/api/tts/config", { base_url: speech.url, speed: 1.5 });
  expect(await put.json()).toMatchObject({ speed: 1.5 });
  await (await app.post("/api/tts/speak", { text: "Hi" })).body!.cancel();
  await (await app.post("/api/tts/speak", { text: "Hi", speed: 2 })).body!.cancel();
  await (await app.post("/api/tts/speak", { text: "Hi", speed: 1 })).body!.cancel();
  expect(speech.requests.map(({ json }) => json!.speed)).toEqual([1.5, 2, undefined]);
  expect(await errorOf(await app.put("/api/tts/config", { speed: 5 }))).toMatchObject({ status: 400 });
  await app.restart();
  expect(await (await app.put("/api/tts/config", { speed: null })).json()).toMatchObject({ speed: 1 });
});

test("headerless PCM is passed on with its sample rate when requested", async () => {
  await using speech = openFakeSpeech({ format: "pcm", contentType: "audio/pcm; rate=22050" });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url, format: "pcm" });
  const answer = await app.post("/api/tts/speak", { text: "Hi" });
  expect(answer.headers.get("content-type")).toBe("audio/pcm;rate=22050;channels=1;encoding=s16le");
  expect(await bytesOf(answer)).toEqual(fakeAudio("pcm", "Hi"));
});

test.each(["audio/pcm", "audio/mpeg", "application/octet-stream"])(
  "PCM that begins like a frame of MP3 stays PCM, sent as %s",
  async (contentType) => {
    const samples = joined([new Uint8Array([0xff, 0xfb, 0x90, 0xc4]), fakeAudio("pcm", "a loud beginning".repeat(9))]);
    await using speech = openFakeSpeech({ contentType, audio: () => samples });
    await using app = await openTestApp();
    await app.put("/api/tts/config", { base_url: speech.url, format: "pcm" });
    const answer = await app.post("/api/tts/speak", { text: "Hi" });
    expect(answer.headers.get("content-type")).toMatch(/^audio\/pcm;/);
    expect(await bytesOf(answer)).toEqual(samples);
  },
);

test("the format of MP3 sent in place of requested PCM is detected from its bytes", async () => {
  await using speech = openFakeSpeech({ audio: () => silentMp3(1) });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url, format: "pcm" });
  const answer = await app.post("/api/tts/speak", { text: "Hi" });
  expect(answer.headers.get("content-type")).toBe("audio/mpeg");
  expect(await bytesOf(answer)).toEqual(silentMp3(1));
});

test("the first bytes are passed on before the server has made the rest", async () => {
  await using speech = openFakeSpeech({ isManual: true });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url });
  const answer = await app.post("/api/tts/speak", { text: "A long sentence" });
  const reader = answer.body!.getReader();
  const first = await reader.read();
  expect(first.value!.length).toBeGreaterThan(0);
  speech.go();
  let size = first.value!.length;
  for (let part = await reader.read(); !part.done; part = await reader.read()) size += part.value.length;
  expect(size).toBe(fakeAudio("mp3", "A long sentence").length);
});

test("a client that disconnects ends the call at the speech server and frees its place in the queue", async () => {
  await using speech = openFakeSpeech({ isManual: true });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url });
  const leaving = await Promise.all([1, 2].map(() => app.post("/api/tts/speak", { text: "Never mind" })));
  for (const answer of leaving) await answer.body!.cancel();
  await Promise.all(speech.requests.map(({ left }) => left));
  speech.switches.isManual = false;
  const answer = await app.post("/api/tts/speak", { text: "Now" });
  expect(await bytesOf(answer)).toEqual(fakeAudio("mp3", "Now"));
});

test("a server gets two requests at once, others wait", async () => {
  await using speech = openFakeSpeech({ isManual: true });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url });
  const asked = ["a", "b", "c", "d"].map((text) => app.post("/api/tts/speak", { text }).then(bytesOf));
  while (speech.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  speech.switches.isManual = false;
  speech.go();
  expect((await Promise.all(asked)).map((bytes) => bytes.length)).toEqual(
    ["a", "b", "c", "d"].map((text) => fakeAudio("mp3", text).length),
  );
  expect(speech.peak).toBe(2);
});

test.each([
  ["nested", { error: { message: "no such voice", type: "x" } }, "no such voice"],
  ["flat", { message: "no such voice.", code: 400 }, "no such voice"],
  ["a detail", { detail: "no such voice" }, "no such voice"],
  ["a list of details", { detail: [{ loc: ["body"], msg: "no such voice" }] }, "no such voice"],
  ["nested in a detail", { detail: { error: "validation_error", message: "m" } }, "validation_error"],
  ["plain text", "out of memory", "out of memory"],
  ["a page", "<html>gateway</html>", "status 400"],
])("an error has the server's message: %s", async (_, body, said) => {
  await using speech = openFakeSpeech({ refusal: { status: 400, body } });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url });
  const error = await errorOf(await app.post("/api/tts/speak", { text: "Hi" }));
  expect(error).toMatchObject({ status: 502, code: "upstream_error" });
  expect(error.message).toContain(said);
});

test("a key that the server echoes is masked, and its Retry-After is passed on", { tags: ["U03"] }, async () => {
  const refusal = { status: 429, body: { error: { message: "bad key sk-secret-1" } }, retryAfter: "7" };
  await using speech = openFakeSpeech({ refusal });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url, api_key: "sk-secret-1" });
  const answer = await app.post("/api/tts/speak", { text: "Hi" });
  expect(answer.headers.get("retry-after")).toBe("7");
  const text = await answer.text();
  expect(text).toContain("[key]");
  expect(text + app.logLines.join()).not.toContain("sk-secret-1");
});

test.each([
  ["nothing", ""],
  ["an error as JSON", JSON.stringify({ error: "model not loaded" })],
  ["a page", "<html><body>Welcome, this is certainly no sound at all and long enough to be looked at</body></html>"],
])("status 200 with %s in place of audio is a failure", async (_, instead) => {
  await using speech = openFakeSpeech({ instead });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url });
  const error = await errorOf(await app.post("/api/tts/speak", { text: "Hi" }));
  expect(error).toMatchObject({ status: 502, code: "upstream_error" });
});

test("audio that breaks off also breaks off for the client, and never looks complete", async () => {
  const hasBegun = Promise.withResolvers<void>();
  await using speech = openFakeSpeech({ cutAfterBytes: 300, beforeCut: () => hasBegun.promise });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url });
  const answer = await app.post("/api/tts/speak", { text: "Hello there" });
  expect(answer.status).toBe(200);
  hasBegun.resolve();
  await expect(answer.arrayBuffer()).rejects.toThrow();
});

test("finds endpoints without a version prefix", async () => {
  await using speech = openFakeSpeech({ prefix: "" });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: `${speech.origin}/` });
  const answer = await app.post("/api/tts/speak", { text: "Hi" });
  expect(await bytesOf(answer)).toEqual(fakeAudio("mp3", "Hi"));
  await (await app.post("/api/tts/speak", { text: "Hi" })).body?.cancel();
  expect(speech.requests.map(({ path }) => path)).toEqual(["/v1/audio/speech", "/audio/speech", "/audio/speech"]);
});

test("without a server, a request gets a clear 503; an empty or too long text is rejected", async () => {
  await using app = await openTestApp();
  expect(await errorOf(await app.post("/api/tts/speak", { text: "Hi" }))).toMatchObject({
    status: 503,
    code: "not_available",
  });
  expect((await app.post("/api/tts/speak", { text: "  " })).status).toBe(400);
  expect((await app.post("/api/tts/speak", { text: "x".repeat(4097) })).status).toBe(400);
});

test("the stored key is sent to no other origin: not by base_url of a request, and not after a change of the address", {
  tags: ["U01"],
}, async () => {
  await using speech = openFakeSpeech();
  await using other = openFakeSpeech();
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url, api_key: "k1" });
  await (await app.post("/api/tts/speak", { text: "Hi", base_url: other.url })).body!.cancel();
  expect(other.requests[0]!.headers.get("authorization")).toBeNull();
  await (await app.post("/api/tts/speak", { text: "Hi", base_url: `${speech.origin}/v1` })).body!.cancel();
  expect(speech.requests[0]!.headers.get("authorization")).toBe("Bearer k1");
  const moved = await app.put("/api/tts/config", { base_url: other.url });
  expect(await moved.json()).toMatchObject({ has_key: false });
});

test("a redirect to another origin isn't followed", { tags: ["U02"] }, async () => {
  await using other = openFakeSpeech();
  await using speech = openFakeSpeech({ redirectTo: `${other.url}/audio/speech` });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url, api_key: "k1" });
  expect(await errorOf(await app.post("/api/tts/speak", { text: "Hi" }))).toMatchObject({ status: 502 });
  expect(other.requests).toEqual([]);
});

test("metadata and link-local addresses are refused, stored or in a request", { tags: ["E14"] }, async () => {
  await using app = await openTestApp();
  const url = "http://169.254.169.254/v1";
  expect(await errorOf(await app.put("/api/tts/config", { base_url: url }))).toMatchObject({
    status: 403,
    code: "address_not_allowed",
  });
  expect(await errorOf(await app.post("/api/tts/speak", { text: "Hi", base_url: url }))).toMatchObject({ status: 403 });
});

test("the endpoint survives a restart, is checked against If-Match, and its key is cleared alone", async () => {
  await using app = await openTestApp();
  const first = await app.put("/api/tts/config", { base_url: "http://127.0.0.1:9/v1", api_key: "sk-needle-key" });
  const tag = first.headers.get("etag")!;
  await app.put("/api/tts/config", { voice: "v" });
  const stale = await app.put("/api/tts/config", { voice: "w" }, { headers: { "if-match": tag } });
  expect(await errorOf(stale)).toMatchObject({ status: 412, code: "revision_mismatch" });
  await app.restart();
  expect(await (await app.get("/api/tts/config")).json()).toMatchObject({ voice: "v", has_key: true });
  expect(await (await app.put("/api/tts/config", { api_key: null })).json()).toMatchObject({
    voice: "v",
    has_key: false,
  });
});

test.each([
  ["objects", { voices: [{ id: "a", name: "A" }, { id: "b" }] }, ["a", "b"]],
  ["strings", { voices: ["a.wav", "b.wav", "a.wav"] }, ["a.wav", "b.wav"]],
  ["under data", { object: "list", data: [{ voice_id: "a" }] }, ["a"]],
  ["keys of an object", { "en_US-joe": { speakers: 1 }, "de_DE-eva": { speakers: 1 } }, ["en_US-joe", "de_DE-eva"]],
])("voices are read in every format: %s", async (_, voices, ids) => {
  await using speech = openFakeSpeech({ voices });
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url });
  const answer = await (await app.get("/api/tts/voices?model=m1")).json();
  expect(answer.source).toBe("upstream");
  expect(answer.voices.map((voice: { id: string }) => voice.id)).toEqual(ids);
  expect(speech.requests[0]!.path).toBe("/v1/audio/voices?model=m1");
});

test.each([["404", undefined], ["an error in a 200", { error: "hub away", data: [] }]])(
  "for a server that lists no voices (%s), the built-in list of its model is used",
  async (_, voices) => {
    await using speech = openFakeSpeech({ voices });
    await using app = await openTestApp();
    await app.put("/api/tts/config", { base_url: speech.url, model: "kokoro-v1" });
    const answer = await (await app.get("/api/tts/voices")).json();
    expect(answer.source).toBe("catalogue");
    expect(answer.voices).toHaveLength(54);
    expect(answer.voices[0]).toEqual({ id: "af_heart", name: "Heart", language: "en-US" });
    expect((await (await app.get("/api/tts/voices?model=tts-1")).json()).voices).toHaveLength(9);
    expect((await (await app.get("/api/tts/voices?model=other")).json()).voices).toEqual([]);
  },
);

test("the samples are the voices for a server with cloning, and without a server", async () => {
  await using app = await openTestApp();
  const id = await addSample(app);
  const expected = { source: "files", voices: [{ id, name: "Grandma" }] };
  expect(await (await app.get("/api/tts/voices")).json()).toEqual(expected);
  await using plain = openFakeSpeech({ voices: undefined });
  await app.put("/api/tts/config", { base_url: plain.url });
  expect((await (await app.get("/api/tts/voices")).json()).source).toBe("catalogue");
  await using cloning = openFakeSpeech({
    voices: undefined,
    pages: { "/": { message: "Welcome to the MLX Audio API" } },
  });
  await app.put("/api/tts/config", { base_url: cloning.url });
  expect(await (await app.get("/api/tts/voices")).json()).toEqual(expected);
});

test("a sample chosen as the voice is used for speech, and its ID isn't sent as a voice of the server", async () => {
  await using app = await openTestApp();
  const id = await addSample(app);
  await using mlx = openFakeSpeech({ pages: { "/": { message: "MLX Audio" } } });
  await app.put("/api/tts/config", { base_url: mlx.url, voice: id });
  await app.post("/api/tts/speak", { text: "Hi" }).then(bytesOf);
  const expected = { input: "Hi", ref_audio: `${app.dataDir}/voices/${id}.wav` };
  expect(mlx.requests.at(-1)!.json).toMatchObject(expected);
  expect(mlx.requests.at(-1)!.json).not.toHaveProperty("voice");
  await app.put("/api/tts/config", { voice: "joe" });
  await app.post("/api/tts/speak", { text: "Hi", voice: id }).then(bytesOf);
  expect(mlx.requests.at(-1)!.json).toMatchObject(expected);
  await app.delete(`/api/voices/${id}`);
  expect(await errorOf(await app.post("/api/tts/speak", { text: "Hi", voice: id }))).toMatchObject({ status: 404 });
});

test("models are listed once each; an unreachable server gets a clear 502", async () => {
  await using speech = openFakeSpeech();
  await using app = await openTestApp();
  await app.put("/api/tts/config", { base_url: speech.url });
  expect(await (await app.get("/api/tts/models")).json()).toEqual({
    object: "list",
    data: [{ id: "tts-1" }, { id: "kokoro" }],
  });
  await app.put("/api/tts/config", { base_url: "http://127.0.0.1:9/v1" });
  const error = await errorOf(await app.get("/api/tts/models"));
  expect(error).toMatchObject({ status: 502, code: "upstream_error" });
});

test("a voice sample is sent to each kind of server in its own way", async () => {
  await using app = await openTestApp();
  const id = await addSample(app);
  const speak = () => app.post("/api/tts/speak", { text: "Hi", ref_audio: id }).then(bytesOf);

  await using mlx = openFakeSpeech({ pages: { "/": { message: "MLX Audio" } } });
  await app.put("/api/tts/config", { base_url: mlx.url });
  await speak();
  expect(mlx.requests.at(-1)!.json).toMatchObject({ input: "Hi", ref_audio: `${app.dataDir}/voices/${id}.wav` });

  await using box = openFakeSpeech({ pages: { "/api/model-info": { model: "chatterbox" }, "/upload_reference": {} } });
  await app.put("/api/tts/config", { base_url: box.url });
  await speak();
  await speak();
  const uploads = box.requests.filter(({ path }) => path === "/upload_reference");
  expect(uploads).toHaveLength(1);
  expect((uploads[0]!.form!.get("files") as File).name).toBe(`parlor-${id}.wav`);
  expect(box.requests.at(-1)!.json).toMatchObject({ voice: `parlor-${id}.wav` });

  await using api = openFakeSpeech({ pages: { "/ping": { status: "ok" } } });
  await app.put("/api/tts/config", { base_url: api.url });
  await speak();
  const last = api.requests.at(-1)!;
  expect(last.path).toBe("/v1/audio/speech/upload");
  expect((last.form!.get("voice_file") as File).size).toBe(wavFile(1).length);

  await using local = openFakeSpeech({ pages: { "/api/voice-profiles": { id: "p1", profiles: [] } } });
  await app.put("/api/tts/config", { base_url: local.url });
  await speak();
  expect(local.requests.at(-1)!.json).toMatchObject({ voice: "localai://voice-profiles/p1" });
});

test("a sample for a server without cloning and a missing sample have different errors", async () => {
  await using speech = openFakeSpeech();
  await using app = await openTestApp();
  const id = await addSample(app);
  await app.put("/api/tts/config", { base_url: speech.url });
  expect(await errorOf(await app.post("/api/tts/speak", { text: "Hi", ref_audio: id }))).toMatchObject({
    status: 422,
    code: "unprocessable",
  });
  expect(await errorOf(await app.post("/api/tts/speak", { text: "Hi", ref_audio: "nobody" }))).toMatchObject({
    status: 404,
  });
});
