import { afterEach, beforeEach, expect, test } from "vitest";
import { addDocument } from "../helpers/files/document_files.ts";
import { picture, putPicture } from "../helpers/files/pictures.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
let nowMs = Date.parse("2026-03-01T12:00:00Z");
beforeEach(async () => {
  app = await openTestApp({ now: () => nowMs++ });
});
afterEach(() => app[Symbol.asyncDispose]());

const get = async (path: string) => {
  const response = await app.get(path);
  expect(response.status).toBe(200);
  return await response.json();
};
const list = (query = "") => get(`/api/library/documents${query}`);

interface Item {
  name: string;
  conversations: { id: string; title: string }[];
}

test("lists documents with the chats that use them, and follows changes", async () => {
  const a = await addDocument(app, "map.md", "# Map");
  const b = await addDocument(app, "keys.md", "# Keys");
  await addDocument(app, "unused.md", "# Nothing");
  const say = (id: string) => ({ role: "user", content: "Read it.", documents: [{ id, use: "auto" }] });
  await app.put("/api/conversations/c1", { title: "Mill", messages: [{ ...say(a.id), id: "u1" }] });
  await app.put("/api/conversations/c2", {
    title: "River",
    messages: [{ ...say(a.id), id: "u1" }, { id: "a1", role: "assistant", content: "Read." }],
    documents: [{ id: b.id, use: "auto" }],
  });
  const usesOf = async (query = "") =>
    Object.fromEntries((await list(query)).items.map((item: Item) => [item.name, item.conversations]));
  const [mill, river] = [{ id: "c1", title: "Mill" }, { id: "c2", title: "River" }];
  expect(await usesOf()).toEqual({ "unused.md": [], "keys.md": [river], "map.md": [river, mill] });
  expect(await usesOf("?conversation_id=c1")).toEqual({ "map.md": [river, mill] });
  await app.patch("/api/conversations/c1", { title: "Old mill" });
  await app.delete("/api/conversations/c2");
  expect(await usesOf()).toEqual({ "unused.md": [], "keys.md": [], "map.md": [{ id: "c1", title: "Old mill" }] });
  await app.delete(`/api/documents/${a.id}`);
  expect(Object.keys(await usesOf())).toEqual(["unused.md", "keys.md"]);
});

test("finds the chats of a document among more than are compared in one step, and follows changes of each", async () => {
  const { id } = await addDocument(app, "map.md", "# Map");
  const documents = [{ id, use: "auto" }];
  const names = Array.from({ length: 410 }, (_, n) => `c${String(n).padStart(3, "0")}`);
  const using = ["c000", "c199", "c200", "c409"];
  // Several at a time, because each waits for the disk.
  const put = async (name: string) => {
    const has = using.includes(name) ? { documents } : {};
    const body = { title: name, messages: [{ id: `${name}-u`, role: "user", content: "Hi", ...has }] };
    expect((await app.put(`/api/conversations/${name}`, body)).status).toBe(201);
  };
  for (let at = 0; at < names.length; at += 41) await Promise.all(names.slice(at, at + 41).map(put));
  const usesOf = async () => (await list()).items[0].conversations.map(({ id }: { id: string }) => id).toSorted();
  expect(await usesOf()).toEqual(using);
  await app.delete("/api/conversations/c199");
  await app.patch("/api/conversations/c200/messages/c200-u", { documents: [] });
  await app.patch("/api/conversations/c300/messages/c300-u", { documents });
  expect(await usesOf()).toEqual(["c000", "c300", "c409"]);
  expect(await list("?conversation_id=c300")).toMatchObject({ items: [{ id }] });
  expect((await list("?conversation_id=c200")).items).toEqual([]);
});

test("forgets a document that a message no longer has", async () => {
  const { id } = await addDocument(app, "map.md", "# Map");
  const message = { role: "user", content: "Read it.", documents: [{ id, use: "auto" }] };
  await app.put("/api/conversations/c1", { messages: [{ ...message, id: "u1" }] });
  await app.patch("/api/conversations/c1/messages/u1", { content: "Never mind.", documents: [] });
  expect((await list()).items).toMatchObject([{ name: "map.md", conversations: [] }]);
});

test("pages through the documents and filters them by name", async () => {
  for (const name of ["a.md", "Bär.md", "c.md", "d.md"]) await addDocument(app, name, `# ${name}`);
  const names = ({ items }: { items: Item[] }) => items.map(({ name }) => name);
  const first = await list("?limit=3");
  expect(names(first)).toEqual(["d.md", "c.md", "Bär.md"]);
  const second = await list(`?limit=3&cursor=${first.next_cursor}`);
  expect([names(second), second.next_cursor]).toEqual([["a.md"], null]);
  expect(names(await list("?q=bar"))).toEqual(["Bär.md"]);
  expect((await app.get("/api/library/documents?cursor=x")).status).toBe(400);
});

test("lists the documents and images of a chat with the messages that have them last", async () => {
  const { id } = await addDocument(app, "map.md", "# Map");
  const always = await addDocument(app, "rules.md", "# Rules");
  for (const name of ["a.png", "b.png"]) await putPicture(app, name, picture());
  const image = { type: "image_url", image_url: { url: "/api/attachments/a.png" } };
  await app.put("/api/conversations/c1", {
    documents: [{ id: always.id, use: "whole" }, { id: "gone", use: "auto" }],
    messages: [
      { id: "u1", role: "user", content: [{ type: "text", text: "See" }, image], documents: [{ id, use: "auto" }] },
      { id: "a1", role: "assistant", content: "A fox", attachments: ["b.png"] },
      { id: "u2", role: "user", content: "Again", documents: [{ id, use: "auto" }] },
    ],
  });
  const { documents, images } = await get("/api/conversations/c1/files");
  expect(documents).toMatchObject([{ name: "rules.md", message_id: null }, { name: "map.md", message_id: "u2" }]);
  expect(images).toMatchObject([
    { name: "b.png", url: "/api/attachments/b.png", message_id: "a1" },
    { name: "a.png", message_id: "u1" },
  ]);
  expect((await app.get("/api/conversations/none/files")).status).toBe(404);
});
