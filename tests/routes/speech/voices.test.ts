import { expect, test } from "vitest";
import { fakeAudio, wavFile } from "../../helpers/fakes/fake_speech.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

function formOf(audio: Uint8Array<ArrayBuffer> | string, name: string | undefined, description?: string): FormData {
  const form = new FormData();
  form.append("audio", new Blob([audio]), "../../../etc/passwd.desktop");
  if (name !== undefined) form.append("name", name);
  if (description !== undefined) form.append("description", description);
  return form;
}

async function upload(app: TestApp, name = "Grandma", audio = wavFile(1.5)) {
  const response = await app.post("/api/voices", formOf(audio, name));
  expect(response.status).toBe(201);
  return await response.json();
}

async function names(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder), (entry) => entry.name)).sort();
}

test("a sample is stored with its length and sample rate, listed by name, and exists after a restart", async () => {
  await using app = await openTestApp();
  const response = await app.post("/api/voices", formOf(wavFile(1.5), " Grandma ", "From the tape of 1987"));
  const sample = await response.json();
  expect(sample).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    name: "Grandma",
    description: "From the tape of 1987",
    format: "wav",
    content_type: "audio/wav",
    duration_s: 1.5,
    sample_rate_hz: 24_000,
    size_bytes: wavFile(1.5).length,
    created_at: expect.any(String),
  });
  await upload(app, "Aunt");
  await app.restart();
  const list = await (await app.get("/api/voices")).json();
  expect(list.map((item: { name: string }) => item.name)).toEqual(["Aunt", "Grandma"]);
  expect(await (await app.get(`/api/voices/${sample.id}`)).json()).toEqual(sample);
});

test(
  "the file has a generated name and mode 0600, and its description is encrypted",
  { tags: ["K08"] },
  async () => {
    await using app = await openTestApp();
    const response = await app.post("/api/voices", formOf(wavFile(1), "needle-name", "needle-description"));
    const { id } = await response.json();
    expect(await names(`${app.dataDir}/voices`)).toEqual([`${id}.wav`]);
    expect((await Deno.stat(`${app.dataDir}/voices/${id}.wav`)).mode! & 0o777).toBe(0o600);
    for (const name of await names(app.dataDir)) {
      const stat = await Deno.stat(`${app.dataDir}/${name}`);
      if (!stat.isFile) continue;
      const text = new TextDecoder("latin1").decode(await Deno.readFile(`${app.dataDir}/${name}`));
      expect(text.includes("needle"), name).toBe(false);
    }
  },
);

test(
  "audio is served with its fixed type and sandboxed, never as something a page could run",
  { tags: ["P08"] },
  async () => {
    await using app = await openTestApp();
    const { id } = await upload(app);
    const answer = await app.get(`/api/voices/${id}/audio`);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "audio/wav",
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox; default-src 'none'",
      "content-disposition": "attachment",
      "accept-ranges": "bytes",
    });
    expect(new Uint8Array(await answer.arrayBuffer())).toEqual(wavFile(1.5));
  },
);

test.each([
  ["bytes=0-99", 0, 99],
  ["bytes=100-", 100, 72_043],
  ["bytes=-10", 72_034, 72_043],
  ["bytes=72000-99999", 72_000, 72_043],
])("a player gets the requested part: %s", async (range, start, end) => {
  await using app = await openTestApp();
  const { id } = await upload(app);
  const answer = await app.get(`/api/voices/${id}/audio`, { headers: { range } });
  expect([answer.status, answer.headers.get("content-range")]).toEqual([206, `bytes ${start}-${end}/72044`]);
  expect(answer.headers.get("content-length")).toBe(String(end - start + 1));
  expect(new Uint8Array(await answer.arrayBuffer())).toEqual(wavFile(1.5).slice(start, end + 1));
});

test.each(["bytes=5-2", "bytes=0-1,5-6", "items=0-1", "bytes=-"])(
  "an invalid range returns the whole file: %s",
  async (range) => {
    await using app = await openTestApp();
    const { id } = await upload(app);
    const answer = await app.get(`/api/voices/${id}/audio`, { headers: { range } });
    expect(answer.status).toBe(200);
    expect((await answer.arrayBuffer()).byteLength).toBe(72_044);
  },
);

test("a sample gets another name and description, and keeps them", async () => {
  await using app = await openTestApp();
  const sample = await upload(app, "Recording 1");
  const path = `/api/voices/${sample.id}`;
  const renamed = await app.patch(path, { name: " Aunt " });
  expect(await renamed.json()).toEqual({ ...sample, name: "Aunt" });
  await app.patch(path, { description: "On the phone" });
  await app.restart();
  expect(await (await app.get(path)).json()).toEqual({ ...sample, name: "Aunt", description: "On the phone" });
  expect(await (await app.patch(path, { description: null })).json()).toMatchObject({ name: "Aunt", description: "" });
  expect((await app.patch(path, { name: " " })).status).toBe(400);
  expect((await app.patch("/api/voices/nobody", { name: "A" })).status).toBe(404);
});

test("a deleted sample disappears immediately, can be restored, and its file is deleted with the trash", async () => {
  await using app = await openTestApp();
  const sample = await upload(app);
  expect((await app.delete(`/api/voices/${sample.id}`)).status).toBe(204);
  expect((await app.get(`/api/voices/${sample.id}`)).status).toBe(404);
  expect((await app.get(`/api/voices/${sample.id}/audio`)).status).toBe(404);
  expect((await app.delete(`/api/voices/${sample.id}`)).status).toBe(404);
  const [item] = await (await app.get("/api/trash")).json();
  expect(item).toMatchObject({ kind: "voice", title: "Grandma" });
  expect((await app.post(`/api/trash/${item.id}/restore`)).status).toBeLessThan(300);
  expect(await (await app.get(`/api/voices/${sample.id}`)).json()).toEqual(sample);
  expect((await app.get(`/api/voices/${sample.id}/audio`)).status).toBe(200);
  await app.delete(`/api/voices/${sample.id}`);
  await app.delete("/api/trash");
  expect(await names(`${app.dataDir}/voices`)).toEqual([]);
});

test.each([
  ["a playlist", "#EXTM3U\n#EXTINF:10,\nfile:///etc/passwd\n#EXT-X-ENDLIST and some more of it to be long enough"],
  ["a page", "<!doctype html><script>alert(1)</script> and some more words so that it is long enough"],
  ["a drawing", '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"></svg> and some more words'],
  ["headerless sound", fakeAudio("pcm", "x")],
  [
    "an ID3v2 tag before a playlist",
    "ID3\x04\0\0\0\0\0\0#EXTM3U\nfile:///etc/passwd\n#EXT-X-ENDLIST and some more of it",
  ],
  ["an ID3v2 tag alone", "ID3\x04\0\0\0\0\x01\0" + "\0".repeat(128)],
  ["nothing", ""],
])("%s is rejected by its signature, and nothing is stored", { tags: ["P11"] }, async (_, content) => {
  await using app = await openTestApp();
  const response = await app.post("/api/voices", formOf(content, "x"));
  expect([response.status, (await response.json()).error.code]).toEqual([415, "unsupported_media_type"]);
  expect(await names(`${app.dataDir}/voices`)).toEqual([]);
});

test("a file that only starts like audio is reported as damaged", async () => {
  await using app = await openTestApp();
  const head = new Uint8Array(400);
  head.set(new TextEncoder().encode("fLaC"));
  const response = await app.post("/api/voices", formOf(head, "x"));
  expect([response.status, (await response.json()).error.code]).toEqual([422, "unprocessable"]);
  expect(await names(`${app.dataDir}/voices`)).toEqual([]);
});

test("broken and oversized forms are rejected and leave nothing behind", { tags: ["P04"] }, async () => {
  await using app = await openTestApp();
  const twice = formOf(wavFile(1), "x");
  twice.append("audio", new Blob([wavFile(1)]), "b.wav");
  const many = formOf(wavFile(1), "x");
  for (let i = 0; i < 10_000; i++) many.append(`part${i}`, "x");
  const textual = new FormData();
  textual.append("audio", "not a file");
  textual.append("name", "x");
  const bodies: [BodyInit, string | undefined, number][] = [
    [twice, undefined, 400],
    [many, undefined, 400],
    [textual, undefined, 400],
    [formOf(wavFile(1), undefined), undefined, 400],
    [formOf(wavFile(1), "   "), undefined, 400],
    [formOf(wavFile(1), "n".repeat(201)), undefined, 400],
    ["no form at all", "multipart/form-data", 400],
    ["--b\r\nContent-Disposition: form-data; name=audio", "multipart/form-data; boundary=b", 400],
    ['{"audio": 1}', "application/json", 415],
  ];
  for (const [body, type, status] of bodies) {
    const headers: HeadersInit = type === undefined ? {} : { "content-type": type };
    const response = await app.request("POST", "/api/voices", body, { headers });
    expect(response.status).toBe(status);
    expect((await response.json()).error.request_id).toBeTruthy();
  }
  const odd = formOf(wavFile(1), "x");
  odd.append("__proto__", "y");
  expect((await app.post("/api/voices", odd)).status).toBe(201);
  expect(await names(`${app.dataDir}/voices`)).toHaveLength(1);
});

test(
  "rejects a body above the limit while reading it, regardless of its declared length",
  { tags: ["P03"] },
  async () => {
    await using app = await openTestApp({ config: { maxVoiceBodyBytes: 100_000 } });
    const response = await app.post("/api/voices", formOf(wavFile(10), "x"));
    expect([response.status, (await response.json()).error.code]).toEqual([413, "too_large"]);
    const boundary = "xyz";
    const chunks = [
      `--${boundary}\r\nContent-Disposition: form-data; name="audio"; filename="a"\r\n\r\n`,
      ...Array.from({ length: 30 }, () => "y".repeat(10_000)),
    ].map((text) => new TextEncoder().encode(text));
    const chunked = await app.request("POST", "/api/voices", ReadableStream.from(chunks), {
      headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
    });
    expect([chunked.status, (await chunked.json()).error.code]).toEqual([413, "too_large"]);
    expect(await names(`${app.dataDir}/voices`)).toEqual([]);
  },
);

test("a form from a page of another origin is rejected before it is read", { tags: ["C05"] }, async () => {
  await using app = await openTestApp();
  for (const [name, value] of [["sec-fetch-site", "cross-site"], ["origin", "http://evil.test"]] as const) {
    const response = await app.post("/api/voices", formOf(wavFile(1), "x"), { headers: { [name]: value } });
    expect([response.status, (await response.json()).error.code]).toEqual([
      403,
      expect.stringMatching(/cross_site|host/),
    ]);
  }
  expect(await (await app.get("/api/voices")).json()).toEqual([]);
});
