/** Recordings as attachments of user messages. */
import { Buffer } from "node:buffer";
import { unzipSync } from "fflate";
import { afterEach, beforeEach, expect, test } from "vitest";
import { importReport } from "../../helpers/app/imported.ts";
import { ask, gather, savedMessage, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { attachmentFiles, picture, putPicture } from "../../helpers/files/pictures.ts";
import { recording } from "../../helpers/files/recordings.ts";
import { filesWithText } from "../../helpers/files/storage_folder.ts";
import { passTime } from "../../helpers/app/pass_time.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** A revision is kept for 30 days, the trash for 7. */
const LONG_MS = 31 * DAY_MS;
let app: TestApp;
let llm: FakeLlm;
let nowMs: number;
beforeEach(async () => {
  nowMs = Date.now();
  app = await openTestApp({ now: () => nowMs++ });
  llm = await openFakeLlm();
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const put = (name: string, bytes: Uint8Array<ArrayBuffer>, type = "audio/wav", at = app) =>
  at.put(`/api/attachments/${name}`, bytes, { headers: { "Content-Type": type } });
const send = async (n: number, message: Record<string, unknown>, fields: Record<string, unknown> = {}) =>
  await gather(await ask(app, n, { messages: [{ role: "user", ...message }], ...fields }));
const findStatus = async (name: string) => {
  const response = await app.get(`/api/attachments/${name}`);
  await response.body?.cancel();
  return response.status;
};

async function sweep(passedMs: number): Promise<void> {
  await passTime(app, passedMs, (stepMs) => nowMs += stepMs);
}

test.each(
  [
    ["wav", "audio/wav"],
    ["webm", "audio/webm"],
    ["ogg", "audio/ogg"],
    ["m4a", "audio/mp4"],
    ["mp3", "audio/mpeg"],
    ["flac", "audio/flac"],
  ] as const,
)("a %s is stored sealed and served under the type of its content, to be played only", {
  tags: ["P08"],
}, async (format, type) => {
  const bytes = recording(format);
  const stored = await put("a.bin", bytes, "audio/anything; codecs=opus");
  expect(stored.status).toBe(201);
  expect(await stored.json()).toEqual({
    name: "a.bin",
    url: "/api/attachments/a.bin",
    content_type: type,
    size_bytes: bytes.length,
  });
  await app.restart();
  const { headers, body } = await app.get("/api/attachments/a.bin");
  await body?.cancel();
  expect([headers.get("content-type"), headers.get("x-content-type-options")]).toEqual([type, "nosniff"]);
  expect(headers.get("content-security-policy")).toMatch(/default-src 'none'.*sandbox/);
  expect(headers.get("content-disposition")).toBe('attachment; filename="a.bin"');
  expect(headers.get("accept-ranges")).toBe("bytes");
  expect(await filesWithText(app.dataDir, Buffer.from(bytes.subarray(-200)).toString("latin1"))).toEqual([]);
});

test("a player gets the part that it seeks to", async () => {
  const bytes = recording();
  const etag = (await put("a.wav", bytes)).headers.get("etag")!;
  const ask = (headers: Record<string, string>) => app.get("/api/attachments/a.wav", { headers });
  const part = await ask({ Range: "bytes=1000-1999" });
  expect([part.status, part.headers.get("content-range"), part.headers.get("content-length")])
    .toEqual([206, `bytes 1000-1999/${bytes.length}`, "1000"]);
  expect(await part.bytes()).toEqual(bytes.slice(1000, 2000));
  const end = await ask({ Range: "bytes=-100", "If-Range": etag });
  expect([end.status, await end.bytes()]).toEqual([206, bytes.slice(-100)]);
  const other = await ask({ Range: "bytes=0-0", "If-Range": '"1"' });
  expect([other.status, (await other.bytes()).length]).toEqual([200, bytes.length]);
  const beyond = await ask({ Range: `bytes=${bytes.length}-` });
  expect([beyond.status, (await beyond.json()).error.code]).toEqual([416, "range_not_satisfiable"]);
});

test("a recording larger than the limit is rejected and leaves nothing behind", async () => {
  await using small = await openTestApp({ config: { maxUploadBodyBytes: 4_096 } });
  expect((await put("a.wav", recording(), "audio/wav", small)).status).toBe(201);
  const large = Buffer.concat([recording(), recording()]);
  expect((await put("b.wav", new Uint8Array(large), "audio/wav", small)).status).toBe(413);
  expect((await attachmentFiles(small)).length).toBe(1);
});

test("the model never gets the recording of a message, only its text", async () => {
  await put("said.wav", recording());
  await send(1, { content: "When does the ferry come in?", attachments: ["said.wav"] });
  expect(await savedMessage(app, "u1")).toMatchObject({ attachments: ["said.wav"] });
  await send(2, { content: "And back?" }, { context: "server" });
  for (const { json } of llm.chats) {
    expect(JSON.stringify(json)).not.toContain("said.wav");
    expect((json!.messages as { content: unknown }[]).some(({ content }) => content === "When does the ferry come in?"))
      .toBe(true);
  }
});

test("a recording in place of an image is omitted from the prompt and rejected elsewhere", async () => {
  await put("said.wav", recording());
  const part = { type: "image_url", image_url: { url: "/api/attachments/said.wav" } };
  const reply = await send(1, { content: [{ type: "text", text: "Listen" }, part] });
  expect(reply.error).toBeUndefined();
  expect((llm.chats[0]!.json!.messages as { content: unknown }[]).at(-1)!.content).toEqual([
    { type: "text", text: "Listen" },
    { type: "text", text: "[a recording, not sent]" },
  ]);
  const written = await app.post("/api/characters/create", { picture: "said.wav" });
  expect([written.status, (await written.json()).error.code]).toEqual([422, "unprocessable"]);
  await app.put("/api/image/connections", { id: "b", name: "Images", kind: "a1111", base_url: llm.url });
  await app.post("/api/image/connections/b/activate");
  const drawn = await app.post("/api/image/generate", { prompt: "a fox", init_image: "said.wav" });
  expect([drawn.status, (await drawn.json()).error.code]).toEqual([422, "unprocessable"]);
});

test("a recording stays as long as its message can be restored", async () => {
  await put("said.wav", recording());
  await put("unsent.wav", recording("wav", 1));
  await send(1, { content: "Hello", attachments: ["said.wav"] });
  await sweep(2 * DAY_MS);
  await sweep(2 * DAY_MS);
  expect([await findStatus("said.wav"), await findStatus("unsent.wav")]).toEqual([200, 404]);
  expect((await app.delete("/api/conversations/c1/messages/u1?following=true")).status).toBe(204);
  await sweep(2 * DAY_MS);
  expect(await findStatus("said.wav")).toBe(200); // in the trash
  await sweep(LONG_MS);
  await sweep(2 * DAY_MS);
  expect([await findStatus("said.wav"), await attachmentFiles(app)]).toEqual([404, []]);
});

test("a recording that was deleted manually can be restored from the trash", async () => {
  const bytes = recording("webm");
  await put("said.webm", bytes, "audio/webm");
  await app.delete("/api/attachments/said.webm");
  expect(await findStatus("said.webm")).toBe(404);
  const [item] = await (await app.get("/api/trash")).json();
  expect(item).toMatchObject({ kind: "attachment", title: "said.webm" });
  await app.post(`/api/trash/${item.id}/restore`, {});
  const restored = await app.get("/api/attachments/said.webm");
  expect(restored.headers.get("content-type")).toBe("audio/webm");
  expect(await restored.bytes()).toEqual(bytes);
});

test("an export of everything contains recordings and generated images, and another server imports them", async () => {
  await put("said.wav", recording());
  await putPicture(app, "drawn.png", picture(3));
  await send(1, { content: "Hello", attachments: ["said.wav"] });
  await app.patch("/api/conversations/c1/messages/a1", { attachments: ["drawn.png"] });
  const zip = await (await app.get("/api/export")).bytes();
  expect(Object.keys(unzipSync(zip))).toEqual(
    expect.arrayContaining(["attachments/said.wav", "attachments/drawn.png"]),
  );
  await using second = await openTestApp();
  const { lines } = await importReport(second, "kind=parlor", zip);
  expect(lines).toEqual([expect.objectContaining({ code: "server_not_chosen" })]);
  expect(await (await second.get("/api/attachments/said.wav")).bytes()).toEqual(recording());
  const [message] = (await (await second.get("/api/conversations/c1")).json()).messages;
  expect(message.attachments).toEqual(["said.wav"]);
});

test.each(["markdown", "tavern", "json"])("a chat with a recording is exported as %s", async (format) => {
  await put("said.wav", recording());
  await send(1, { content: "Hello there", attachments: ["said.wav"] });
  const exported = await app.get(`/api/conversations/c1/export?format=${format}`);
  expect([exported.status, (await exported.text()).includes("Hello there")]).toEqual([200, true]);
});
