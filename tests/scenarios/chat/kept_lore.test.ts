/** The settings of all lorebooks: what is kept until the chat is trimmed, budgets, and what is scanned. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { gather, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";

const FOX = "The fox sleeps in the den.";
let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp();
  llm = await openFakeLlm({ personality: "llama.cpp", pieces: ["As ", "you ", "say."] });
  llm.contextSize = 2_048;
  await useModel(app, llm);
  const character = { card: { spec: "chara_card_v3", spec_version: "3.0", data: { name: "Ada" } } };
  await app.put("/api/characters/ada", character);
  await app.post("/api/conversations", { id: "c1", character_ids: ["ada"] });
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
});

async function saveBook(extensions: Record<string, unknown> = {}): Promise<void> {
  const entries = [{
    keys: ["fox"],
    content: FOX,
    enabled: true,
    insertion_order: 1,
    use_regex: false,
    extensions: {},
  }];
  const book = { name: "Woods", scan_depth: 1, extensions, entries };
  expect((await app.put("/api/lorebooks/woods", { name: "Woods", scope: "global", book })).ok).toBe(true);
}

let n = 0;
/** Says something. Returns whether the prompt had the entry, and the number of its messages. */
async function say(text: string): Promise<{ hasFox: boolean; count: number }> {
  const messages = [{ role: "user", content: text }];
  const ids = { conversation_id: "c1", user_message_id: `u${++n}`, assistant_message_id: `a${n}` };
  const reply = await gather(await app.post("/api/chat", { ...ids, context: "server", messages, max_tokens: 100 }));
  expect(reply.isDone).toBe(true);
  const sent = llm.chats.at(-1)!.json!.messages as { content: string }[];
  return { hasFox: sent.some(({ content }) => content.includes(FOX)), count: sent.length };
}

test("an entry goes with its keyword, unless the setting or its book keeps it", async () => {
  await saveBook();
  expect((await say("A fox!")).hasFox).toBe(true);
  expect((await say("And then?")).hasFox).toBe(false);
  await app.patch("/api/settings", { keep_found_lore: true });
  expect((await say("And now?")).hasFox).toBe(false);
  expect((await say("The fox again!")).hasFox).toBe(true);
  expect((await say("Well?")).hasFox).toBe(true);
  expect((await say("Go on.")).hasFox).toBe(true);
  // The book decides.
  await saveBook({ parlor_keep_found: false });
  expect((await say("Go on.")).hasFox).toBe(false);
  await app.patch("/api/settings", { keep_found_lore: false });
  await saveBook({ parlor_keep_found: true });
  expect((await say("A fox!")).hasFox).toBe(true);
  expect((await say("Well?")).hasFox).toBe(true);
});

test("what is kept goes when the chat is trimmed, in the same prompt, and comes back when it's found again", async () => {
  await saveBook({ parlor_keep_found: true });
  expect((await say("A fox!")).hasFox).toBe(true);
  const long = "word ".repeat(200);
  let last = { hasFox: true, count: 0 };
  for (let turn = 0; turn < 20; turn++) {
    const next = await say(long);
    const isTrimmed = next.count <= last.count;
    expect(next.hasFox).toBe(!isTrimmed);
    last = next;
    if (isTrimmed) break;
  }
  expect(last.hasFox).toBe(false);
  expect((await say("Go on.")).hasFox).toBe(false);
  expect((await say("Is that a fox?")).hasFox).toBe(true);
  expect((await say("Go on.")).hasFox).toBe(true);
});

test("in the prompt that is trimmed, an entry that is found there stays and is kept from then on", async () => {
  await saveBook({ parlor_keep_found: true });
  const long = "fox ".repeat(200);
  let last = 0;
  for (let turn = 0; turn < 20; turn++) {
    const { hasFox, count } = await say(long);
    expect(hasFox).toBe(true);
    if (count <= last) break;
    last = count;
  }
  expect((await say("Go on.")).hasFox).toBe(true);
});

test("the owner's limits apply to all lorebooks: tokens, more messages, names and recursion", async () => {
  await saveBook();
  const change = async (changes: Record<string, unknown>) =>
    expect((await app.patch("/api/settings", changes)).ok).toBe(true);
  expect((await say("A fox!")).hasFox).toBe(true);
  await change({ lore_budget_tokens: 1 });
  expect((await say("A fox!")).hasFox).toBe(false);
  await change({ lore_budget_tokens: null, lore_budget_percent: 0 });
  expect((await say("A fox!")).hasFox).toBe(false);
  await change({ lore_budget_percent: null });
  expect((await say("Well?")).hasFox).toBe(false);
  await change({ lore_min_activations: 1 });
  expect((await say("Go on.")).hasFox).toBe(true);
  await change({ lore_min_activations_depth: 1 });
  expect((await say("Go on.")).hasFox).toBe(false);
  await change({ lore_min_activations: 0, display_name: "Foxy" });
  expect((await say("Go on.")).hasFox).toBe(true);
  await change({ lore_scans_names: false });
  expect((await say("Go on.")).hasFox).toBe(false);
  const entry = (keys: string[], content: string) => ({
    keys,
    content,
    enabled: true,
    insertion_order: 1,
    extensions: {},
  });
  const entries = [entry(["owl"], "An owl hunts at the den."), entry(["hunts"], FOX)];
  await app.put("/api/lorebooks/woods", { name: "Woods", scope: "global", book: { extensions: {}, entries } });
  expect((await say("An owl!")).hasFox).toBe(true);
  await change({ lore_max_recursion: 0 });
  expect((await say("An owl!")).hasFox).toBe(false);
  expect((await app.patch("/api/settings", { lore_order: "sideways" })).status).toBe(400);
});

test.each([
  ["character_first", "The sea is far.\nThe inn is near."],
  ["global_first", "The inn is near.\nThe sea is far."],
])("the owner's order of lorebooks decides between entries of the same order: %s", async (lore_order, text) => {
  const put = (id: string, content: string, fields: Record<string, unknown>) => {
    const entry = { keys: [], content, constant: true, enabled: true, insertion_order: 1, extensions: {} };
    return app.put(`/api/lorebooks/${id}`, { name: id, book: { extensions: {}, entries: [entry] }, ...fields });
  };
  await app.put("/api/conversations/c1", { title: "Ada", participants: [{ character_id: "ada" }], messages: [] });
  await put("everywhere", "The sea is far.", { scope: "global" });
  await put("hers", "The inn is near.", { scope: "character", character_ids: ["ada"] });
  expect((await app.patch("/api/settings", { lore_order })).ok).toBe(true);
  await say("Hello.");
  const sent = llm.chats.at(-1)!.json!.messages as { content: string }[];
  expect(sent.map(({ content }) => content.replace(/\n+/g, "\n")).join("\n")).toContain(text);
});
