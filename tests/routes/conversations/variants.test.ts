import { afterEach, beforeEach, expect, test } from "vitest";
import { createOldVariantAad, createVariantAad } from "../../../services/conversations/stored_form.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { loadStorageKey } from "../../../services/crypto/storage_key.ts";
import { ask, gather, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { readConversation, say, type StoredConversation } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openStoredDatabase } from "../../helpers/files/stored_database.ts";

const C1 = "/api/conversations/c1";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  [app, llm] = await Promise.all([openTestApp(), openFakeLlm()]);
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

/** Lets a model write a reply and another version of it. */
async function twoTexts(): Promise<void> {
  llm.pieces = ["first"];
  llm.reasoning = ["Hm"];
  await gather(await ask(app, 1));
  [llm.pieces, llm.reasoning] = [["second"], []];
  await gather(await ask(app, 1, { action: "regenerate" }));
}

const textsOf = async (mid = "a1") =>
  (await (await app.get(`${C1}/messages/${mid}/variants`)).json()).map(({ content }: { content: string }) => content);
const whole = async (): Promise<StoredConversation> => await (await app.get(`${C1}?variants=1`)).json();
const replyOf = ({ messages }: StoredConversation) =>
  messages.find(({ id }) => id === "a1")! as Record<string, unknown>;

test("returns all versions with variants=1: for a conversation, all conversations, a page and a message", async () => {
  await twoTexts();
  await app.put("/api/conversations/c2", { messages: [say("m1")] });
  const variants = [
    {
      n: 0,
      content: "first",
      reasoning: "Hm",
      model: "fake-model",
      connection_id: "double",
      created_at: expect.any(String),
    },
    { n: 1, content: "second", model: "fake-model", connection_id: "double", created_at: expect.any(String) },
  ];
  expect(await (await app.get(`${C1}/messages/a1/variants`)).json()).toEqual(variants);
  const [u1, a1] = (await readConversation(app, "c1")).messages;
  const expected = [u1, { ...a1, variants }];
  expect((await whole()).messages).toEqual(expected);
  const all: StoredConversation[] = await (await app.get("/api/conversations?variants=1")).json();
  expect(all.map(({ id }) => id)).toEqual(["c2", "c1"]);
  expect(all[0]!.messages[0]).not.toHaveProperty("variants");
  expect(all[1]!.messages).toEqual(expected);
  expect((await (await app.get(`${C1}/messages?variants=1`)).json()).items).toEqual(expected);
  expect(await (await app.get(`${C1}/messages/a1?variants=1`)).json()).toEqual(expected[1]);
  for (const path of [C1, `${C1}?variants=0`, `${C1}/messages`, `${C1}/messages/a1`, "/api/conversations"]) {
    expect(await (await app.get(path)).text(), path).not.toContain("variants");
  }
  expect((await app.get(`${C1}?variants=yes`)).status).toBe(400);
});

test("shows the versions of a message while a reply writes it", async () => {
  llm.pieces = ["first"];
  await gather(await ask(app, 1));
  llm.switches.manual = "on";
  const running = ask(app, 1, { action: "regenerate" });
  const call = await llm.nextCall();
  await call.emit("sec");
  await gather(await running, 2);
  expect(replyOf(await whole())).toMatchObject({
    content: "sec",
    variants: [{ n: 0, content: "first" }, { n: 1, content: "sec" }],
  });
  await call.finish();
});

test("changes nothing when a conversation with variants is saved again, and copies it completely to another server", async () => {
  await twoTexts();
  const document = await whole();
  expect((await app.put(C1, document)).status).toBe(200);
  expect(await (await app.get(`${C1}/revisions`)).json(), "nothing to bring back").toEqual([]);
  const { revision: _, updated_at: __, ...same } = await whole();
  expect(document).toMatchObject(same);

  await using other = await openTestApp();
  expect((await other.put(C1, document)).status).toBe(201);
  const copy = await (await other.get(`${C1}?variants=1`)).json();
  expect(copy.messages).toEqual(document.messages);
  await other.patch(`${C1}/messages/a1`, { active_variant: 0 });
  expect(await (await other.get(`${C1}/messages/a1`)).json()).toMatchObject({ content: "first", reasoning: "Hm" });
});

test("replaces versions on a save with variants, and keeps them without", async () => {
  await twoTexts();
  const plain = await readConversation(app, "c1");
  await app.put(C1, { ...plain, title: "Another" });
  expect(await textsOf()).toEqual(["first", "second"]);

  const given = await whole();
  Object.assign(replyOf(given), {
    variants: [{ content: "one" }, { content: "two" }, { content: "three", reasoning: "Why" }],
    active_variant: 2,
    content: null,
  });
  const saved: StoredConversation = await (await app.put(C1, given)).json();
  expect(replyOf(saved)).toMatchObject({ content: "three", reasoning: "Why", variant_count: 3, active_variant: 2 });
  expect(await textsOf()).toEqual(["one", "two", "three"]);
  await app.patch(`${C1}/messages/a1`, { active_variant: 0 });
  expect(replyOf(await readConversation(app, "c1"))).toMatchObject({ content: "one", active_variant: 0 });

  Object.assign(replyOf(given), { variants: [{ content: "alone" }], active_variant: 0, content: "alone, edited" });
  await app.put(C1, given);
  expect(await textsOf()).toEqual(["alone, edited"]);
});

test("rejects a save whose variants lack the active one or are empty", async () => {
  await twoTexts();
  const before = await whole();
  for (const fields of [{ active_variant: 2 }, { variants: [] }, { variants: [{ model: "x" }] }, { variants: "all" }]) {
    const given = structuredClone(before);
    Object.assign(replyOf(given), fields);
    const refused = await app.put(C1, given);
    expect(refused.status, JSON.stringify(fields)).toBe(400);
    expect((await refused.json()).error).toMatchObject({ code: "invalid_request" });
  }
  expect(await whole()).toEqual(before);
});

test("restores versions removed by a save from any revision before it, and can undo that", async () => {
  await twoTexts();
  const before = await whole();
  await app.put(C1, { ...await readConversation(app, "c1"), messages: [...before.messages, say("m9")] });
  const given = await whole();
  Object.assign(replyOf(given), { variants: [{ content: "other" }, { content: "another" }], active_variant: 0 });
  Object.assign(replyOf(given), { content: "other" });
  await app.put(C1, given);
  expect(await textsOf()).toEqual(["other", "another"]);

  const { revision } = await whole();
  await app.post(`${C1}/revisions/${before.revision}/restore`);
  expect((await whole()).messages, "two saves later").toEqual(before.messages);
  await app.post(`${C1}/revisions/${revision}/restore`);
  expect(await textsOf(), "the restore undone").toEqual(["other", "another"]);
});

test("restores the versions of a message that a later save dropped", async () => {
  await twoTexts();
  const before = await whole();
  await app.put(C1, { ...before, messages: [...before.messages, say("m9")] });
  await app.put(C1, { ...before, messages: [say("m9")] });
  await app.post(`${C1}/revisions/${before.revision}/restore`);
  expect((await whole()).messages).toEqual(before.messages);
});

test("keeps versions of messages with the same id in two conversations apart", async () => {
  await twoTexts();
  await app.put("/api/conversations/c2", { ...await whole(), id: "c2" });
  await app.put("/api/conversations/c2", {
    messages: [{ ...say("a1", "", "assistant"), variants: [{ content: "x" }, { content: "y" }], content: null }],
  });
  expect(await textsOf()).toEqual(["first", "second"]);
  await app.delete("/api/conversations/c2/messages/a1");
  expect(await textsOf()).toEqual(["first", "second"]);
  await app.post(`${C1}/revisions/${(await (await app.get(`${C1}/revisions`)).json())[0]?.n ?? 1}/restore`);
  expect(await textsOf()).toEqual(["first", "second"]);
});

test(
  "fails to open a version that was moved to another conversation",
  { tags: ["K02"] },
  async () => {
    await twoTexts();
    await app.put("/api/conversations/c2", { ...await whole(), id: "c2" });
    const db = openStoredDatabase(app.dataDir);
    db.exec(
      "UPDATE variant SET sealed = (SELECT sealed FROM variant WHERE conversation_id = 'c1') WHERE conversation_id = 'c2'",
    );
    db.close();
    expect((await app.get("/api/conversations/c2/messages/a1/variants")).status).toBe(500);
    expect(await textsOf()).toEqual(["first", "second"]);
  },
);

test("opens versions sealed before schema 3", async () => {
  await twoTexts();
  const key = await loadStorageKey({ dataDir: app.dataDir, sealedDataExists: true });
  const sealer = createSealer(key).forPurpose("conversations");
  const db = openStoredDatabase(app.dataDir);
  const { n, version, sealed } = db.prepare("SELECT n, version, sealed FROM variant").get() as {
    n: number;
    version: number;
    sealed: Uint8Array;
  };
  const name = { mid: "a1", n, version };
  const text = sealer.openNow(createVariantAad("c1", name), sealed);
  db.prepare("UPDATE variant SET sealed = ?").run(sealer.sealNow(createOldVariantAad(name), text));
  db.close();
  expect(await textsOf()).toEqual(["first", "second"]);
  expect(replyOf(await whole()).variants).toMatchObject([{ content: "first" }, { content: "second" }]);
  await app.patch(`${C1}/messages/a1`, { active_variant: 0 });
  expect(await textsOf()).toEqual(["first", "second"]);
});
