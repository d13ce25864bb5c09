/** What remains usable when part of the database can't be read. */
import { Buffer } from "node:buffer";
import type { SQLInputValue } from "node:sqlite";
import { unzipSync } from "fflate";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, gather, useModel } from "../helpers/app/chat_client.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { countRows, idsOf, range, readConversation, say, type StoredConversation } from "../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { openStoredDatabase } from "../helpers/files/stored_database.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

const C1 = "/api/conversations/c1";
const GARBAGE = "zeroblob(64)";
const read = () => readConversation(app);
const put = (id: string, body: Record<string, unknown>, headers: Record<string, string> = {}) =>
  app.put(`/api/conversations/${id}`, body, { headers });

function tamper(sql: string, ...params: SQLInputValue[]): void {
  using file = openStoredDatabase(app.dataDir);
  file.prepare(sql).run(...params);
}

/** Messages in three blocks, the second of them damaged. Returns the IDs of those in it. */
async function damageSecondOfThree(): Promise<string[]> {
  await put("c1", { title: "Chat", messages: range(70).map((i) => say(`m${i}`, `needle ${i} ${"x".repeat(400)}`)) });
  using file = openStoredDatabase(app.dataDir);
  const blocks = file.prepare("SELECT id FROM block WHERE conversation_id = 'c1' ORDER BY position").all();
  expect(blocks).toHaveLength(3);
  const mids = file.prepare("SELECT mid FROM message WHERE block_id = ?").all(blocks[1]!.id!).map(({ mid }) =>
    `${mid}`
  );
  await app.restart(() => Promise.resolve(tamper(`UPDATE block SET sealed = ${GARBAGE} WHERE id = ?`, blocks[1]!.id!)));
  return mids.sort((one, other) => Number(one.slice(1)) - Number(other.slice(1)));
}

async function exported(): Promise<Record<string, Uint8Array>> {
  return unzipSync(await (await app.get("/api/export")).bytes());
}

const json = (bytes: Uint8Array | undefined) => JSON.parse(new TextDecoder().decode(bytes));

test("reads a conversation with a damaged draft, reports it, and keeps the draft until it is replaced", async () => {
  await put("c1", { title: "Chat", messages: [say("m1")], draft: "Dear" });
  await app.restart(() => Promise.resolve(tamper(`UPDATE draft SET sealed = ${GARBAGE}`)));
  const found = await read();
  expect(found).toMatchObject({ title: "Chat", draft: "", messages: [{ id: "m1" }], damaged: [{ part: "draft" }] });
  expect(await (await app.get(`${C1}?view=recent`)).json()).toMatchObject({ damaged: [{ part: "draft" }] });
  expect((await put("c1", found)).status).toBe(200);
  expect(countRows(app, "draft", `sealed = ${GARBAGE}`), "a save of what was read").toBe(1);
  expect((await app.patch(`${C1}/draft`, { draft: "Dearest" })).status).toBe(204);
  const healed = await read();
  expect(healed).toMatchObject({ draft: "Dearest" });
  expect(healed).not.toHaveProperty("damaged");
  expect((await app.delete(C1)).status).toBe(204);
});

test("reads, exports and deletes a conversation whose settings are damaged, and replaces them only with If-Match", async () => {
  await put("c1", { title: "Chat", system_prompt: "Be brief", messages: [say("m1")] });
  await app.restart(() => Promise.resolve(tamper(`UPDATE conversation SET head = ${GARBAGE}`)));
  const found = await read();
  expect(found).toMatchObject({ title: "Chat", messages: [{ id: "m1" }], damaged: [{ part: "head" }] });
  expect(await (await app.get("/api/conversations")).json()).toEqual([
    { id: "c1", error: { code: "unreadable" }, messages: [] },
  ]);
  expect(await (await app.get(`${C1}/messages`)).json()).toMatchObject({ items: [{ id: "m1" }] });
  const zip = await exported();
  expect(json(zip["unreadable.json"])).toEqual(["conversations/c1"]);
  expect(json(zip["conversations/c1.json"])).toMatchObject({ messages: [{ id: "m1" }], damaged: [{ part: "head" }] });
  const refused = await put("c1", found);
  expect([refused.status, (await refused.json()).error.code]).toEqual([409, "conflict"]);
  expect((await app.patch(C1, { title: "Other" })).status).toBe(500);
  expect((await app.delete(C1)).status).toBe(204);
  const [item] = await (await app.get("/api/trash")).json();
  expect(item.title).toBe("Chat");
  expect((await app.post(`/api/trash/${item.id}/restore`)).status).toBe(204);
  expect((await put("c1", found, { "If-Match": '"1"' })).status).toBe(200);
  const healed = await read();
  expect(healed).toMatchObject({ title: "Chat", revision: 2, messages: [{ id: "m1" }] });
  expect(healed).not.toHaveProperty("damaged");
});

test("reads everything around a damaged block and names its messages in lists, pages and exports", async () => {
  const lost = await damageSecondOfThree();
  const found = await read();
  const all = range(70).map((i) => `m${i}`);
  expect(idsOf(found.messages)).toEqual(all.filter((mid) => !lost.includes(mid)));
  const after = all[all.indexOf(lost[0]!) - 1];
  const damaged = found.damaged as { part: string; message_ids: string[]; after: string }[];
  expect(damaged).toMatchObject([{ part: "messages", after }]);
  expect([...damaged[0]!.message_ids].sort()).toEqual([...lost].sort());
  expect(await (await app.get("/api/conversations")).json()).toEqual([
    { id: "c1", error: { code: "unreadable" }, messages: [] },
  ]);

  const pages: StoredConversation["messages"] = [];
  const missing: string[] = [];
  for (let before = "";;) {
    const page = await (await app.get(`${C1}/messages?limit=20${before}`)).json();
    pages.unshift(...page.items);
    missing.push(...(page.damaged ?? []).flatMap(({ message_ids: ids }: { message_ids: string[] }) => ids));
    if (page.next_cursor === null) break;
    before = `&before=${page.next_cursor}`;
  }
  expect(pages).toEqual(found.messages);
  expect(missing.sort(), "each is named once").toEqual([...lost].sort());

  const hits = await (await app.get("/api/search?q=needle")).json();
  expect(hits.items.length).toBeGreaterThan(0);
  const unreadable: string[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const page: { unreadable?: string[]; next_cursor: string | null } =
      await (await app.get(`/api/search?q=needle${cursor && `&cursor=${cursor}`}`)).json();
    unreadable.push(...page.unreadable ?? []);
    cursor = page.next_cursor;
  }
  expect(unreadable).toContain("c1");

  const zip = await exported();
  expect(json(zip["unreadable.json"])).toEqual(["conversations/c1"]);
  expect(json(zip["conversations/c1.json"])).toEqual(found);
  expect((await app.get(`${C1}/export?format=markdown`)).status).toBe(200);
});

test("rejects a save that would drop unreadable messages, and accepts one that has them all", async () => {
  const lost = await damageSecondOfThree();
  const found = await read();
  for (const headers of [{}, { "If-Match": `"${found.revision}"` }] as Record<string, string>[]) {
    const refused = await put("c1", found, headers);
    const { error } = await refused.json();
    expect([refused.status, error.code]).toEqual([409, "conflict"]);
    expect(error.message).toContain(lost[0]);
  }
  expect(await read()).toEqual(found);
  const whole = range(70).map((i) => found.messages.find(({ id }) => id === `m${i}`) ?? say(`m${i}`, "from a copy"));
  expect((await put("c1", { ...found, messages: whole })).status).toBe(200);
  const healed = await read();
  expect(idsOf(healed.messages)).toEqual(range(70).map((i) => `m${i}`));
  expect(healed).not.toHaveProperty("damaged");
  await app.restart();
  expect(await read()).toEqual(healed);
});

test("adds, edits, answers and deletes in a conversation with a damaged block, the unreadable messages too", async () => {
  const lost = await damageSecondOfThree();
  expect((await app.patch(`${C1}/messages/m0`, { content: "edited" })).status).toBe(200);
  expect((await app.post(`${C1}/messages`, { message: say("n1") })).status).toBe(201);
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  const asked = await ask(app, 1, { context: "server" });
  expect(await gather(asked)).toMatchObject({ text: "Hello", isDone: true });
  expect((await app.patch(`${C1}/messages/${lost[0]}`, { content: "x" })).status).toBe(500);
  for (const mid of lost) expect((await app.delete(`${C1}/messages/${mid}`)).status, mid).toBe(204);
  const found = await read();
  expect(found).not.toHaveProperty("damaged");
  expect(idsOf(found.messages).slice(-3)).toEqual(["n1", "u1", "a1"]);
  expect((await put("c1", found)).status).toBe(200);
});

test("appends after a damaged last block, and deletes a conversation that is entirely unreadable", async () => {
  await put("c1", { title: "Chat", messages: [say("m1")] });
  await app.restart(() => {
    tamper(`UPDATE block SET sealed = ${GARBAGE}`);
    tamper(`UPDATE conversation SET head = ${GARBAGE}, summary = ${GARBAGE}`);
    return Promise.resolve();
  });
  expect(await read()).toMatchObject({
    title: "",
    messages: [],
    damaged: [{ part: "head" }, { part: "messages", message_ids: ["m1"], after: null }],
  });
  const page = await (await app.get("/api/conversations?view=summary")).json();
  expect(page.items).toEqual([{ id: "c1", error: { code: "unreadable" } }]);
  expect((await app.delete(C1)).status).toBe(204);
  expect((await app.delete("/api/trash")).status).toBe(204);
  expect((await put("c1", { messages: [say("m1")] })).status).toBe(201);
  await app.restart(() => Promise.resolve(tamper(`UPDATE block SET sealed = ${GARBAGE}`)));
  expect((await app.post(`${C1}/messages`, { message: say("m2") })).status).toBe(201);
  expect(await read()).toMatchObject({ messages: [{ id: "m2" }], damaged: [{ message_ids: ["m1"], after: null }] });
});

test("reads a conversation with a damaged version of a message without its versions, and exports all others", async () => {
  const variants = [{ content: "one" }, { content: "two" }, { content: "three" }];
  await put("c1", { messages: [{ ...say("m1", "one"), variants, active_variant: 0 }] });
  await app.restart(() => Promise.resolve(tamper(`UPDATE variant SET sealed = ${GARBAGE} WHERE n = 1`)));
  expect(await (await app.get(`${C1}?variants=1`)).json()).toMatchObject({
    messages: [{ content: "one" }],
    damaged: [{ part: "variants", message_ids: ["m1"] }],
  });
  const zip = await exported();
  expect(json(zip["unreadable.json"])).toEqual(["variants/c1/m1/1"]);
  expect(new TextDecoder().decode(zip["variants/c1.jsonl"])).toContain("three");
});

/** A conversation whose second question has two versions; the first is followed by three more messages and isn't active. */
async function withVersions(): Promise<void> {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  const asked = range(3).flatMap((n) => [say(`u${n}`, `question ${n}`), say(`a${n}`, "text", "assistant")]);
  await put("c1", { title: "Chat", messages: asked });
  const edit = { action: "edit", messages: [{ role: "user", content: "other" }], context: "server" };
  await gather(await ask(app, 1, { ...edit, user_message_id: "u1", assistant_message_id: "b1" }));
}

const blockOf = (mid: string) => `(SELECT block_id FROM message WHERE mid = '${mid}')`;
const switchTo = (n: number) => app.patch(`${C1}/messages/u1`, { active_variant: n });

test("leaves a damaged block that follows another version alone, and names it where that version is active", async () => {
  await withVersions();
  await app.restart(() => Promise.resolve(tamper(`UPDATE block SET sealed = ${GARBAGE} WHERE id = ${blockOf("a2")}`)));
  const found = await read();
  expect(found).not.toHaveProperty("damaged");
  expect(idsOf(found.messages)).toEqual(["u0", "a0", "u1", "b1"]);
  expect((await put("c1", { ...found, messages: [...found.messages, say("n1")] })).status).toBe(200);
  const saved = await read();
  const lacking = await put("c1", { ...saved, messages: saved.messages.filter(({ id }) => id !== "u1") });
  expect(lacking.status, "without the message whose other version it follows").toBe(409);
  expect(json((await exported())["unreadable.json"])).toEqual(["continuations/c1/u1/0"]);
  expect((await switchTo(0)).status).toBe(200);
  const switched = await read();
  expect(idsOf(switched.messages)).toEqual(["u0", "a0", "u1"]);
  expect(switched.damaged).toEqual([{ part: "messages", message_ids: ["a1", "a2", "u2"], after: "u1" }]);
  const whole = [...switched.messages, ...["a1", "u2", "a2"].map((mid) => say(mid, "from a copy"))];
  expect((await put("c1", { ...switched, messages: switched.messages })).status).toBe(409);
  expect((await put("c1", { ...switched, messages: whole })).status).toBe(200);
  expect(await read()).not.toHaveProperty("damaged");
  expect((await switchTo(1)).status).toBe(200);
  expect(idsOf((await read()).messages)).toEqual(["u0", "a0", "u1", "b1", "n1"]);
  expect((await switchTo(0)).status).toBe(200);
  expect(idsOf((await read()).messages)).toEqual(["u0", "a0", "u1", "a1", "u2", "a2"]);
});

test("keeps the path through a message with unreadable versions until a save includes it again", async () => {
  await withVersions();
  await app.restart(() => Promise.resolve(tamper(`UPDATE block SET sealed = ${GARBAGE} WHERE id = ${blockOf("u1")}`)));
  const found = await read();
  expect(idsOf(found.messages)).toEqual(["b1"]);
  expect(found.damaged).toEqual([{ part: "messages", message_ids: ["a0", "u0", "u1"], after: null }]);
  expect((await app.delete(`${C1}/messages/u1`)).status).toBe(409);
  expect((await put("c1", found)).status).toBe(409);
  const copy = ["u0", "a0", "u1"].map((mid) => say(mid, "from a copy"));
  expect((await put("c1", { ...found, messages: [...copy, ...found.messages] })).status).toBe(200);
  const healed = await read();
  expect(healed).not.toHaveProperty("damaged");
  expect(idsOf(healed.messages)).toEqual(["u0", "a0", "u1", "b1"]);
});

/** Overwrites the database page with the start of a value, as a failing disk would. */
async function damagePageOf(table: string, column: string, where: string): Promise<void> {
  using file = openStoredDatabase(app.dataDir);
  file.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  const row = file.prepare(`SELECT ${column} AS value FROM ${table} WHERE ${where}`).get()!;
  const value = (row.value as Uint8Array).subarray(0, 64);
  const pageSize = Number(file.prepare("PRAGMA page_size").get()!.page_size);
  file.close();
  const path = `${app.dataDir}/app.db`;
  const bytes = await Deno.readFile(path);
  const at = Buffer.from(bytes.buffer).indexOf(value);
  expect(at).toBeGreaterThan(0);
  bytes.fill(0, at - at % pageSize, at - at % pageSize + pageSize);
  await Deno.writeFile(path, bytes);
}

test(
  "reads, searches, exports and deletes everything outside a damaged page of the database file",
  { tags: ["D05"] },
  async () => {
    for (const id of range(5).map((i) => `c${i}`)) {
      await put(id, {
        title: `needle ${id}`,
        messages: range(6).map((i) => say(`m${i}`, `needle ${"x".repeat(1_000)}`)),
      });
    }
    await app.restart(() => damagePageOf("block", "sealed", "conversation_id = 'c2'"));
    const bad = await readConversation(app, "c2");
    expect(bad).toMatchObject({
      title: "needle c2",
      messages: [],
      damaged: [{ part: "messages", message_ids: range(6).map((i) => `m${i}`), after: null }],
    });
    const readable: string[] = [];
    for (const id of range(5).map((i) => `c${i}`)) {
      const { messages, damaged } = await readConversation(app, id);
      if (damaged === undefined) readable.push(id);
      expect(messages.length + ((damaged as { message_ids: string[] }[])?.[0]?.message_ids.length ?? 0)).toBe(6);
    }
    expect(readable.length).toBeGreaterThanOrEqual(3);
    const list: { id: string; error?: unknown }[] = await (await app.get("/api/conversations")).json();
    expect(list.filter(({ error }) => error === undefined).map(({ id }) => id).sort()).toEqual(readable);
    const hits = await (await app.get("/api/search?q=needle")).json();
    expect(hits.unreadable).toContain("c2");
    for (const id of readable) {
      const own = await (await app.get(`/api/search?q=needle&conversation_id=${id}`)).json();
      expect(own.items).toHaveLength(7);
    }
    const zip = await exported();
    expect(Object.keys(zip)).toEqual(expect.arrayContaining(readable.map((id) => `conversations/${id}.json`)));
    expect(json(zip["unreadable.json"])).toContain("conversations/c2");
    const refused = await put("c2", { messages: [say("m0")] });
    expect(refused.status).toBe(409);
    expect((await app.delete("/api/conversations/c2")).status).toBe(204);
    expect((await app.get("/api/conversations/c2")).status).toBe(404);
  },
);

test("lists all conversations outside a damaged page", { tags: ["D05"] }, async () => {
  const prompt = "p".repeat(3_000);
  for (const id of range(5).map((i) => `c${i}`)) {
    await put(id, { title: `needle ${id}`, system_prompt: prompt, messages: [say("m1", "needle")] });
  }
  await app.restart(() => damagePageOf("conversation", "head", "id = 'c2'"));
  expect((await app.get("/api/conversations/c2")).status).toBe(500);
  const list: { id: string; error?: unknown }[] = await (await app.get("/api/conversations")).json();
  expect(list.map(({ id }) => id).sort()).toEqual(range(5).map((i) => `c${i}`));
  expect(list.find(({ id }) => id === "c2")).toMatchObject({ error: { code: "unreadable" } });
  const page = await (await app.get("/api/conversations?view=summary")).json();
  expect(page.items.map(({ id }: { id: string }) => id).sort()).toEqual(range(5).map((i) => `c${i}`));
  expect(page.items.find(({ id }: { id: string }) => id === "c2")).toMatchObject({ error: { code: "unreadable" } });
  const hits = await (await app.get("/api/search?q=needle")).json();
  expect(hits.unreadable).toContain("c2");
  expect(hits.items.length).toBeGreaterThanOrEqual(6);
  expect(json((await exported())["unreadable.json"])).toContain("conversations/c2");
});

test("a damaged page with a message that has versions hides neither the path nor what follows the other version", {
  tags: ["D05"],
}, async () => {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  const long = "x".repeat(3_000);
  await put("c1", { messages: range(6).map((n) => say(`m${n}`, `${n} ${long}`)) });
  const edit = { action: "edit", messages: [{ role: "user", content: `other ${long}` }], context: "server" };
  await gather(await ask(app, 1, { ...edit, user_message_id: "m2", assistant_message_id: "b1" }));
  await app.restart(() => damagePageOf("block", "sealed", `live = 1 AND id = ${blockOf("m2")}`));
  const found = await read();
  expect(idsOf(found.messages)).toEqual(["b1"]);
  expect(found.damaged).toEqual([{ part: "messages", message_ids: ["m0", "m1", "m2"], after: null }]);
  expect((await app.get("/api/search?q=Hello&conversation_id=c1")).status).toBe(200);
  expect((await app.delete(`${C1}/messages/m2`)).status).toBe(409);
  expect((await put("c1", found)).status).toBe(409);
  const zip = await exported();
  expect(new TextDecoder().decode(zip["continuations/c1.jsonl"])).toContain('"m5"');
});

test("the log names every document that can't be read, one JSON object per line", { tags: ["D05"] }, async () => {
  const backend = { id: "i1", name: "A1111", kind: "a1111", base_url: "http://127.0.0.1:7860/" };
  for (
    const [path, body] of [
      ["/api/memories/n1", { text: "Ada likes tea." }],
      ["/api/lorebooks/l1", { name: "Sea", entries: [] }],
      ["/api/presets/p1", { name: "Calm" }],
      ["/api/tools/servers/t1", { name: "Clock", transport: "http", url: "http://127.0.0.1:9/mcp" }],
      ["/api/image/connections", backend],
    ] as const
  ) expect([path, (await app.put(path, body)).ok]).toEqual([path, true]);
  await app.restart(() => Promise.resolve(tamper(`UPDATE document SET sealed = ${GARBAGE}`)));
  for (const path of ["memories", "lorebooks", "presets", "tools/servers", "image/connections", "connections"]) {
    expect([path, (await app.get(`/api/${path}`)).status]).toEqual([path, 200]);
  }
  const messages = app.logLines.map((line) => JSON.parse(line).message);
  for (const noun of ["memory", "lorebook", "preset", "tool server", "image backend", "connection"]) {
    expect(messages).toContain(`Can't read a stored ${noun}`);
  }
});
