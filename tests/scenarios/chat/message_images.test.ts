import { Buffer } from "node:buffer";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sniffImage } from "../../../services/attachments/images/image_header.ts";
import { ask, gather, savedMessage, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { attachmentFiles, dataUrl, noise, picture, picturePart, putPicture } from "../../helpers/files/pictures.ts";
import { countRows, range, readConversation } from "../../helpers/app/stored_chat.ts";
import { passTime } from "../../helpers/app/pass_time.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openStoredDatabase } from "../../helpers/files/stored_database.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
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

interface Part {
  type: string;
  text?: string;
  image_url?: { url: string; detail?: string };
}

const asked = (index: number) => llm.chats[index]!.json!.messages as { role: string; content: string | Part[] }[];
const urlsIn = (content: unknown) => (content as Part[]).flatMap((part) => part.image_url?.url ?? []);
const nameIn = (url: string) => url.slice("/api/attachments/".length);
const send = async (n: number, content: unknown, fields: Record<string, unknown> = {}) =>
  await gather(await ask(app, n, { messages: [{ role: "user", content }], ...fields }));

/** Advances the clock and deletes everything unreferenced. */
async function sweep(passedMs: number): Promise<void> {
  await passTime(app, passedMs, (stepMs) => nowMs += stepMs);
}

async function isThere(name: string): Promise<boolean> {
  const response = await app.get(`/api/attachments/${name}`);
  await response.body?.cancel();
  return response.status === 200;
}

test("an image of a turn becomes an attachment; the model gets it as a JPEG of at most 1568 pixels", async () => {
  const large = noise(2000, 40);
  await send(1, [{ type: "text", text: "What is it?" }, picturePart(dataUrl(large), { detail: "high" })]);
  const [text, part] = (await savedMessage(app, "u1"))!.content as Part[];
  expect(text).toEqual({ type: "text", text: "What is it?" });
  expect(part).toEqual({
    type: "image_url",
    image_url: { url: expect.stringMatching(/^\/api\/attachments\/[\w-]+\.png$/), detail: "high" },
  });
  const stored = await (await app.get(part!.image_url!.url)).arrayBuffer();
  expect(Buffer.from(stored).equals(Buffer.from(large))).toBe(true);

  const [sentText, sent] = asked(0).at(-1)!.content as Part[];
  expect(sentText).toEqual(text);
  expect(sent!.image_url!.detail).toBe("high");
  const [head, base64] = sent!.image_url!.url.split(",");
  expect(head).toBe("data:image/jpeg;base64");
  expect(sniffImage(Buffer.from(base64!, "base64"))).toEqual({ type: "image/jpeg", widthPx: 1568, heightPx: 31 });
});

test("the same image is stored once", async () => {
  const part = picturePart(dataUrl(picture(7)));
  await send(1, [part, part]);
  await app.post("/api/conversations/c1/messages", { message: { id: "m2", content: [part] } });
  await app.patch("/api/conversations/c1/messages/u1", { content: [part, { type: "text", text: "again" }] });
  await app.put("/api/conversations/c2", { messages: [{ id: "m3", content: [part] }] });
  const names = new Set<string>();
  for (const id of ["c1", "c2"]) {
    for (const { content } of (await readConversation(app, id)).messages) {
      if (typeof content !== "string") urlsIn(content).forEach((url) => names.add(url));
    }
  }
  expect([...names]).toEqual([expect.stringMatching(/^\/api\/attachments\//)]);
  expect(await attachmentFiles(app)).toHaveLength(1);
});

test("the last four images are sent; earlier ones are replaced by a word", async () => {
  const history = range(5).map((n) => ({ role: "user", content: [picturePart(dataUrl(picture(n)))] }));
  await putPicture(app, "mine.png", picture(9));
  await gather(
    await ask(app, 1, {
      messages: [...history, { role: "user", content: [picturePart("/api/attachments/mine.png")] }],
    }),
  );
  const contents = asked(0).map(({ content }) => content as Part[]);
  expect(contents.map((parts) => parts[0]!.type)).toEqual([
    ...["text", "text"],
    ...["image_url", "image_url", "image_url", "image_url"],
  ]);
  for (const [part] of contents.slice(2)) expect(part!.image_url!.url).toMatch(/^data:image\/jpeg;base64,/);
  expect(urlsIn((await savedMessage(app, "u1"))!.content)).toEqual(["/api/attachments/mine.png"]);
});

test("a deleted image is replaced by a word in an earlier turn and is an error in the last one", async () => {
  const gone = [picturePart("/api/attachments/gone.png")];
  await gather(
    await ask(app, 1, { messages: [{ role: "user", content: gone }, { role: "user", content: "and now?" }] }),
  );
  expect(asked(0)[0]!.content).toEqual([{ type: "text", text: expect.stringContaining("no longer exists") }]);
  const answer = await ask(app, 2, { messages: [{ role: "user", content: gone }] });
  expect([answer.status, (await answer.json()).error.code]).toEqual([404, "not_found"]);
  expect(await savedMessage(app, "a2")).toMatchObject({ status: "failed", error: { code: "not_found" } });
});

test("leaves images that aren't attachments to the model server unchanged", async () => {
  const parts = [
    picturePart("https://example.com/a.png"),
    picturePart("data:image/svg+xml;base64,PHN2Zy8+"),
    picturePart("data:image/png,abc"),
    { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
    { type: "image_url", image_url: null },
  ];
  await send(1, parts);
  expect(asked(0).at(-1)!.content).toEqual(parts);
  expect((await savedMessage(app, "u1"))!.content).toEqual(parts);
  expect(await attachmentFiles(app)).toEqual([]);
});

test("a stateless call passes its images on unchanged and stores nothing", async () => {
  const messages = [{ role: "user", content: [picturePart(dataUrl(picture(1)))] }];
  expect((await app.post("/api/chat", { messages, stream: false })).status).toBe(200);
  expect(asked(0)).toEqual(messages);
  expect(await attachmentFiles(app)).toEqual([]);
});

test("an unused image is deleted after a day, not before; one that a message shows stays", async () => {
  await putPicture(app, "free.png", picture(1));
  await putPicture(app, "shown.png", picture(2));
  await putPicture(app, "listed.png", picture(3));
  await send(1, [picturePart("/api/attachments/shown.png")]);
  await app.post("/api/conversations/c1/messages", { message: { content: "look", attachments: ["listed.png"] } });
  await sweep(23 * HOUR_MS);
  expect(await isThere("free.png")).toBe(true);
  await sweep(2 * HOUR_MS);
  expect(await isThere("free.png")).toBe(false);
  await sweep(LONG_MS);
  await sweep(LONG_MS);
  expect([await isThere("shown.png"), await isThere("listed.png")]).toEqual([true, true]);
  expect(await attachmentFiles(app)).toHaveLength(2);
});

/** How many days something can be restored; uses the image `kept.png` in it, and removes it again. */
const owners: [string, number, () => Promise<unknown>, () => Promise<unknown>][] = [
  [
    "a message that was edited since",
    30,
    () => send(1, [picturePart("/api/attachments/kept.png")]),
    () => app.patch("/api/conversations/c1/messages/u1", { content: "no picture" }),
  ],
  [
    "a removed message",
    30,
    () => send(1, [picturePart("/api/attachments/kept.png")]),
    () => app.delete("/api/conversations/c1/messages/u1"),
  ],
  [
    "a removed conversation",
    7,
    () => send(1, [picturePart("/api/attachments/kept.png")]),
    () => app.delete("/api/conversations/c1"),
  ],
  [
    "a conversation that was saved over",
    30,
    () => send(1, [picturePart("/api/attachments/kept.png")]),
    () => app.put("/api/conversations/c1", { messages: [] }),
  ],
];

test.each(owners)(
  "%s keeps its image as long as it can be restored, and a day longer",
  async (_name, days, refer, letGo) => {
    await putPicture(app, "kept.png");
    await refer();
    await letGo();
    await sweep(2 * DAY_MS);
    await sweep(2 * DAY_MS);
    expect(await isThere("kept.png")).toBe(true);
    await sweep((days - 5) * DAY_MS);
    expect(await isThere("kept.png")).toBe(true);
    await sweep(2 * DAY_MS);
    expect(await isThere("kept.png")).toBe(true);
    await sweep(DAY_MS + HOUR_MS);
    expect(await isThere("kept.png")).toBe(false);
    expect(await attachmentFiles(app)).toEqual([]);
    expect(countRows(app, "attachment_ref")).toBe(0);
  },
);

test("a background stays while a chat or the settings use it", async () => {
  await putPicture(app, "chat.png", picture(1));
  await putPicture(app, "all.png", picture(2));
  await app.put("/api/conversations/c1", { messages: [], background: "/api/attachments/chat.png" });
  await app.patch("/api/settings", { chat_background: "/api/attachments/all.png" });
  await sweep(2 * DAY_MS);
  await sweep(2 * DAY_MS);
  expect([await isThere("chat.png"), await isThere("all.png")]).toEqual([true, true]);
  await app.patch("/api/conversations/c1", { background: "none" });
  await app.patch("/api/settings", { chat_background: null });
  await sweep(LONG_MS);
  await sweep(2 * DAY_MS);
  await sweep(2 * DAY_MS);
  expect([await isThere("chat.png"), await isThere("all.png")]).toEqual([false, false]);
});

test.each(["https://fox.example/a.png", "data:image/png;base64,AA==", "/api/attachments/../settings"])(
  "%s can't be a background",
  async (url) => {
    await app.put("/api/conversations/c1", { messages: [] });
    expect((await app.patch("/api/conversations/c1", { background: url })).status).toBe(400);
    expect((await app.patch("/api/settings", { chat_background: url })).status).toBe(400);
  },
);

test("another text of a message keeps the image of the first", async () => {
  await putPicture(app, "kept.png");
  await send(1, "hello");
  await app.patch("/api/conversations/c1/messages/a1", { content: [picturePart("/api/attachments/kept.png")] });
  await send(1, "hello", { action: "regenerate" });
  await sweep(LONG_MS);
  await sweep(2 * DAY_MS);
  expect(await isThere("kept.png")).toBe(true);
  await app.patch("/api/conversations/c1/messages/a1", { active_variant: 0 });
  expect(urlsIn((await savedMessage(app, "a1"))!.content)).toEqual(["/api/attachments/kept.png"]);
});

test("a draft keeps its images until it is sent or discarded", async () => {
  await putPicture(app, "kept.png");
  await send(1, "hello");
  await app.patch("/api/conversations/c1/draft", { draft: "look: ![](/api/attachments/kept.png)" });
  await sweep(LONG_MS);
  await sweep(2 * DAY_MS);
  expect(await isThere("kept.png")).toBe(true);
  await app.patch("/api/conversations/c1/draft", { draft: "" });
  await sweep(HOUR_MS);
  await sweep(DAY_MS + HOUR_MS);
  expect(await isThere("kept.png")).toBe(false);
});

test("a fork keeps the images of the copied messages", async () => {
  await send(1, [picturePart(dataUrl(picture(5)))]);
  const fork = await (await app.post("/api/conversations/c1/fork", { message_id: "a1" })).json();
  await app.delete("/api/conversations/c1");
  await app.delete("/api/trash");
  await sweep(LONG_MS);
  await sweep(2 * DAY_MS);
  const [url] = urlsIn((await readConversation(app, fork.id)).messages[0]!.content);
  expect(await isThere(nameIn(url!))).toBe(true);
});

test("an image sent again on its last day stays for another one", async () => {
  await send(1, [picturePart(dataUrl(picture(5)))]);
  const [url] = urlsIn((await savedMessage(app, "u1"))!.content);
  await app.delete("/api/conversations/c1");
  await app.delete("/api/trash");
  await sweep(HOUR_MS);
  await Promise.all([
    app.put("/api/conversations/c2", { messages: [{ id: "m1", content: [picturePart(dataUrl(picture(5)))] }] }),
    sweep(DAY_MS + HOUR_MS),
  ]);
  await sweep(2 * DAY_MS);
  expect(urlsIn((await readConversation(app, "c2")).messages[0]!.content)).toEqual([url]);
  expect(await isThere(nameIn(url!))).toBe(true);
});

test("an unreadable conversation keeps its images and doesn't affect those of others", async () => {
  for (const id of ["c1", "c2"]) {
    await putPicture(app, `${id}.png`);
    const content = [picturePart(`/api/attachments/${id}.png`)];
    await app.put(`/api/conversations/${id}`, { messages: [{ id: `m-${id}`, content }] });
  }
  await (await app.services.conversations()).conversationTrash.remove("c2");
  await app.delete("/api/trash");
  using db = openStoredDatabase(app.dataDir);
  db.prepare("UPDATE block SET sealed = zeroblob(100) WHERE conversation_id = 'c1'").run();
  // The daily sweep may have checked the conversation already; a changed one is checked again.
  expect((await app.patch("/api/conversations/c1/draft", { draft: "changed" })).status).toBe(204);
  await sweep(HOUR_MS);
  await sweep(LONG_MS);
  expect([await isThere("c1.png"), await isThere("c2.png")]).toEqual([true, false]);
  expect(app.logLines.join("\n")).toContain("Couldn't check the attachments of a conversation");
});

test("files that a crash left without a row are deleted, but none that may still get one", async () => {
  await putPicture(app, "a.png");
  const [stored] = await attachmentFiles(app);
  const folder = `${app.dataDir}/attachments`;
  for (const name of ["0".repeat(40) + ".1", ".half.tmp", "young.1"]) {
    await Deno.writeTextFile(`${folder}/${name}`, "x");
  }
  const longAgo = new Date(Date.now() - 2 * HOUR_MS);
  for (const name of [stored!, "0".repeat(40) + ".1", ".half.tmp"]) {
    await Deno.utime(`${folder}/${name}`, longAgo, longAgo);
  }
  await sweep(0);
  expect(await attachmentFiles(app)).toEqual([stored, "young.1"].sort());
});
