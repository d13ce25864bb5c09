import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeA1111 } from "../../helpers/fakes/fake_a1111.ts";
import { FakeComfy } from "../../helpers/fakes/fake_comfy.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openStoredDatabase } from "../../helpers/files/stored_database.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

let app: TestApp;
let a1111: FakeA1111;
let nowMs = Date.parse("2026-03-01T12:00:00Z");
beforeEach(async () => {
  a1111 = new FakeA1111();
  app = await openTestApp({ now: () => nowMs });
  const defaults = { negative_prompt: "blurry", width: 640, steps: 8 };
  await app.put("/api/image/connections", { id: "b", kind: "a1111", base_url: a1111.url, defaults });
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await a1111[Symbol.asyncDispose]();
});

async function generate(body: Record<string, unknown>): Promise<string> {
  const answer = await app.post("/api/image/generate", body);
  expect(answer.status).toBe(200);
  return (await answer.json()).images[0].name;
}

async function list(query = "") {
  const answer = await app.get(`/api/image/gallery${query}`);
  expect(answer.status).toBe(200);
  return await answer.json();
}

async function putChat() {
  const messages = [{ id: "u1", role: "user", content: "Hi" }, { id: "a1", role: "assistant", content: "A red fox" }];
  await app.put("/api/conversations/c1", { messages });
}

test("lists images with everything they were generated with, newest first, also after a restart", async () => {
  await putChat();
  const first = await generate({ prompt: "a red fox", seed: 1, conversation_id: "c1", message_id: "a1" });
  const second = await generate({ prompt: "a heron", seed: 2, sampler: "Euler", checkpoint: "heron" });
  await app.restart();
  const { items, next_cursor } = await list();
  expect(next_cursor).toBeNull();
  expect(items).toEqual([
    {
      id: expect.any(String),
      name: second,
      url: `/api/attachments/${second}`,
      width: 4,
      height: 3,
      size_bytes: expect.any(Number),
      prompt: "a heron",
      settings: {
        negative_prompt: "blurry",
        width: 640,
        height: 512,
        steps: 8,
        cfg_scale: 7,
        sampler: "Euler",
        seed: 2,
      },
      checkpoint: "heron",
      profile_id: "b",
      created_at: "2026-03-01T12:00:00.000Z",
    },
    expect.objectContaining({ name: first, prompt: "a red fox", conversation_id: "c1", message_id: "a1" }),
  ]);
  expect((await list(`?attachment=${first}`)).items).toMatchObject([{ prompt: "a red fox" }]);
});

test("pages through the images", async () => {
  for (const seed of [1, 2, 3]) await generate({ prompt: `fox ${seed}`, seed });
  const first = await list("?limit=2");
  expect(first.items.map(({ prompt }: { prompt: string }) => prompt)).toEqual(["fox 3", "fox 2"]);
  const second = await list(`?limit=2&cursor=${first.next_cursor}`);
  expect(second).toMatchObject({ items: [{ prompt: "fox 1" }], next_cursor: null });
});

test("sends a small JPEG of an image", async () => {
  await generate({ prompt: "a fox", seed: 1 });
  const { items: [{ id }] } = await list();
  for (let count = 0; count < 2; count++) {
    const answer = await app.get(`/api/image/gallery/${id}/thumbnail`);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "image/jpeg"]);
    expect([...(await answer.bytes()).slice(0, 2)]).toEqual([0xff, 0xd8]);
  }
  expect((await app.get("/api/image/gallery/none/thumbnail")).status).toBe(404);
});

test("deletes an image, and removes it from its message", async () => {
  await putChat();
  const name = await generate({ prompt: "a fox", seed: 1, conversation_id: "c1", message_id: "a1" });
  const { items: [{ id }] } = await list();
  expect((await app.delete(`/api/image/gallery/${id}`)).status).toBe(204);
  expect((await list()).items).toEqual([]);
  const { messages } = await (await app.get("/api/conversations/c1")).json();
  expect(messages[1]).not.toHaveProperty("attachments");
  expect((await app.get(`/api/attachments/${name}`)).status).toBe(200); // for Undo in the chat's history
  expect((await app.delete(`/api/image/gallery/${id}`)).status).toBe(404);
});

test("keeps an image without a chat until it is deleted", async () => {
  const name = await generate({ prompt: "a fox", seed: 1 });
  const sweep = async () => {
    const attachments = await app.services.attachments();
    await attachments.sweep();
    nowMs += 2 * DAY_MS;
    await attachments.sweep();
  };
  await sweep();
  expect((await list()).items).toMatchObject([{ name }]);
  await app.delete(`/api/image/gallery/${(await list()).items[0].id}`);
  await sweep();
  expect((await app.get(`/api/attachments/${name}`)).status).toBe(404);
});

test("an image is deleted with its chat, together with its settings", async () => {
  await putChat();
  const name = await generate({ prompt: "a fox", seed: 1, conversation_id: "c1" });
  await app.delete("/api/conversations/c1");
  expect((await list()).items).toEqual([]);
  expect((await app.delete("/api/trash")).status).toBe(204);
  const { references } = await app.services.conversations();
  const attachments = await app.services.attachments();
  for (let days = 0; days < 3; days++) {
    await references.sweep();
    await attachments.sweep();
    nowMs += 2 * DAY_MS;
  }
  expect((await app.get(`/api/attachments/${name}`)).status).toBe(404);
  expect((await list()).items).toEqual([]);
});

test("generates with the backend that a request names, and with the active one if that is gone", async () => {
  await using comfy = new FakeComfy();
  await app.put("/api/image/connections", { id: "other", kind: "comfyui", base_url: comfy.url });
  await generate({ prompt: "a fox", seed: 1, profile_id: "other" });
  await app.delete("/api/image/connections/other");
  await generate({ prompt: "a fox", seed: 1, profile_id: "other" });
  const { items } = await list();
  expect(items.map(({ profile_id }: { profile_id: string }) => profile_id)).toEqual(["b", "other"]);
  expect(a1111.orders.length).toBe(1);
});

test("lists an image whose settings can't be decrypted, and deletes it", async () => {
  const name = await generate({ prompt: "a fox", seed: 1 });
  using db = openStoredDatabase(app.dataDir);
  db.exec("UPDATE document SET sealed = zeroblob(64) WHERE kind = 'generated_image'");
  const { items } = await list();
  expect(items).toMatchObject([{ name, prompt: "", error: { code: "unreadable" } }]);
  expect((await app.delete(`/api/image/gallery/${items[0].id}`)).status).toBe(204);
  expect((await list()).items).toEqual([]);
});

test("prompts are never stored in plain text", async () => {
  await generate({ prompt: "a very secret fox", seed: 1 });
  await app.restart(async () => {
    for await (const { name, isFile } of Deno.readDir(app.dataDir)) {
      if (!isFile) continue;
      const text = new TextDecoder("latin1").decode(await Deno.readFile(`${app.dataDir}/${name}`));
      expect(text).not.toContain("very secret fox");
    }
  });
});

test("filters the images by prompt and chat, over pages", async () => {
  await putChat();
  await generate({ prompt: "a red fox", seed: 1, conversation_id: "c1", message_id: "a1" });
  for (const seed of [2, 3, 4]) await generate({ prompt: `a heron ${seed}`, seed });
  await generate({ prompt: "a Réd kite", seed: 5 });
  const prompts = ({ items }: { items: { prompt: string }[] }) => items.map(({ prompt }) => prompt);
  const first = await list("?q=red&limit=1");
  expect(prompts(first)).toEqual(["a Réd kite"]);
  const second = await list(`?q=red&limit=1&cursor=${first.next_cursor}`);
  expect([prompts(second), second.next_cursor]).toEqual([["a red fox"], null]);
  expect(prompts(await list("?conversation_id=c1"))).toEqual(["a red fox"]);
  expect(prompts(await list("?conversation_id=c2"))).toEqual([]);
});
