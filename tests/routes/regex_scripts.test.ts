import { afterEach, beforeEach, expect, test } from "vitest";
import { gather, useModel } from "../helpers/app/chat_client.ts";
import { readConversation, say } from "../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { type FakeLlm, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp();
  llm = await openFakeLlm({ pieces: ["Right."] });
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const json = async (response: Response | Promise<Response>) => await (await response).json();
const put = (id: string, fields: Record<string, unknown>) => app.put(`/api/regex_scripts/${id}`, fields);
const listNames = async () => (await json(app.get("/api/regex_scripts"))).map(({ name }: { name: string }) => name);
const BOTH = ["user_input", "ai_output"];
/** A script of a card or preset, in SillyTavern's form. */
const tavern = (findRegex: string, replaceString: string, fields = {}) => ({
  ...{ scriptName: findRegex, findRegex, replaceString, trimStrings: [], placement: [1, 2, 5], promptOnly: true },
  ...fields,
});

async function chat(fields: Record<string, unknown> = {}) {
  const greeting = { ...say("m0", "Hello, traveller.", "assistant"), character_id: "fox" };
  await app.put("/api/conversations/c1", {
    ...{ title: "Fox", participants: [{ character_id: "fox" }], messages: [greeting] },
    ...fields,
  });
}

/** Sends a message, and returns the texts of the chat that reach the model. */
async function ask(content: string): Promise<string[]> {
  const body = { conversation_id: "c1", context: "server", messages: [{ role: "user", content }] };
  await gather(await app.post("/api/chat", body));
  const { messages } = llm.chats.at(-1)!.json as { messages: { role: string; content: string }[] };
  return messages.filter(({ role }) => role !== "system").map(({ content }) => content);
}

const show = async (texts: unknown[], purpose = "display") =>
  await json(app.post("/api/conversations/c1/regex_scripts/run", { purpose, texts }));

test("creates, changes, orders and deletes scripts", async () => {
  const created = await put("s1", { name: "Quotes", find: '/"/g', replace: "“", min_depth: 1 });
  expect([created.status, created.headers.get("etag")]).toEqual([201, '"1"']);
  expect(await created.json()).toEqual({
    ...{ id: "s1", name: "Quotes", find: '/"/g', replace: "“", trim: [], placement: ["ai_output"], enabled: true },
    ...{ display_only: false, prompt_only: false, run_on_edit: false, find_macros: "none", order: 1 },
    ...{ min_depth: 1, max_depth: null, created_at: expect.any(String), updated_at: expect.any(String) },
  });
  await put("s2", { name: "Dashes" });
  await put("s3", { name: "Dots" });
  expect(await listNames()).toEqual(["Quotes", "Dashes", "Dots"]);
  expect(await json(put("s3", { order: 0.5 }))).toMatchObject({ name: "Dots", order: 0.5 });
  expect(await listNames()).toEqual(["Dots", "Quotes", "Dashes"]);
  expect(await json(put("s1", { min_depth: null, max_depth: 3 }))).toMatchObject({ min_depth: null, max_depth: 3 });
  expect(await json(app.get("/api/regex_scripts/s1"))).toMatchObject({ name: "Quotes", max_depth: 3 });
  expect((await app.put("/api/regex_scripts/s1", { name: "No" }, { headers: { "If-Match": '"1"' } })).status).toBe(412);
  expect((await app.delete("/api/regex_scripts/s1")).status).toBe(204);
  expect((await app.get("/api/regex_scripts/s1")).status).toBe(404);
  expect(await listNames()).toEqual(["Dots", "Dashes"]);
  expect((await put("s4", { find: "a".repeat(50_001) })).status).toBe(400);
});

test("imports a file of SillyTavern and exports it unchanged", async () => {
  const file = {
    ...{ id: "x", scriptName: "Bold", findRegex: "/a/g", replaceString: "b", trimStrings: ["c"], placement: [1, 5] },
    ...{ disabled: true, markdownOnly: false, promptOnly: true, runOnEdit: false, substituteRegex: 1 },
    ...{ minDepth: null, maxDepth: 9, author: "Ada" },
  };
  const [one] = await json(app.post("/api/regex_scripts/import", file));
  expect(one).toMatchObject({ name: "Bold", placement: ["user_input", "world_info"], enabled: false, max_depth: 9 });
  const exported = await app.get(`/api/regex_scripts/${one.id}/export`);
  expect(exported.headers.get("content-disposition")).toContain("regex-Bold.json");
  expect(await exported.json()).toEqual({ ...file, id: one.id });
  const added = await json(app.post("/api/regex_scripts/import", [tavern("a", "b"), tavern("c", "d")]));
  expect(added.map(({ name }: { name: string }) => name)).toEqual(["a", "c"]);
  for (const broken of [[], {}, [tavern("a", "b"), { scriptName: "Half" }]]) {
    expect((await app.post("/api/regex_scripts/import", broken)).status).toBe(422);
  }
  expect(await listNames()).toEqual(["Bold", "a", "c"]);
});

test("tests a script without storing it", async () => {
  const body = { script: { find: "/(fox)/g", replace: "{{user}}'s $1" }, text: "A fox.", user: "Ada" };
  expect(await json(app.post("/api/regex_scripts/test", body))).toEqual({ text: "A Ada's fox." });
  expect(await json(app.post("/api/regex_scripts/test", { script: { find: "(" }, text: "A fox." })))
    .toEqual({ text: "A fox.", problem: "invalid" });
  expect(await listNames()).toEqual([]);
});

test("changes what is sent, by role and depth, before macros and names; the stored text stays", async () => {
  await app.put("/api/characters/fox", { name: "Fox" });
  await put("s1", { find: "/traveller/g", replace: "{{user}} of {{char}}", prompt_only: true, placement: BOTH });
  await put("s2", { find: "/a/g", replace: "A", placement: ["user_input"] });
  await put("s3", { find: "/$/", replace: "!", prompt_only: true, placement: BOTH, min_depth: 1 });
  await put("s4", { find: "/./g", replace: "x", display_only: true, placement: BOTH });
  await chat();
  await app.patch("/api/settings", { display_name: "Ada" });
  expect(await ask("What a day")).toEqual(["Hello, Ada of Fox.!", "WhAt A dAy"]);
  expect(await ask("Yes")).toEqual(["Hello, Ada of Fox.!", "WhAt A dAy!", "Right.!", "Yes"]);
  const { messages } = await readConversation(app);
  expect(messages.map(({ content }) => content)).toEqual([
    "Hello, traveller.",
    "What a day",
    "Right.",
    "Yes",
    "Right.",
  ]);
});

test("a reply that is continued is at depth -1, and isn't changed if the model goes on with it", async () => {
  await app.put("/api/characters/fox", { name: "Fox" });
  await put("s1", { find: "/$/", replace: "!", prompt_only: true, placement: BOTH, min_depth: 0 });
  await put("s2", { find: "/^/", replace: ">", prompt_only: true, placement: BOTH, max_depth: 0 });
  await chat({ messages: [say("m1", "Hi"), say("m2", "Hello", "assistant")] });
  await gather(
    await app.post("/api/chat", {
      ...{ conversation_id: "c1", context: "server", action: "continue", assistant_message_id: "m2", messages: [] },
    }),
  );
  const { messages } = llm.chats.at(-1)!.json as { messages: { role: string; content: string }[] };
  expect(messages.filter(({ role }) => role !== "system").map(({ content }) => content)).toEqual([">Hi!", "Hello"]);
});

test("changes entries of lorebooks that are sent", async () => {
  await app.put("/api/characters/fox", { name: "Fox" });
  const entries = [{ keys: ["mill"], content: "The mill of {{char}}.", constant: true }];
  await app.put("/api/lorebooks/b1", { name: "Mills", scope: "global", book: { entries } });
  await put("s1", { find: "/mill of Fox/", replace: "old mill", prompt_only: true, placement: ["world_info"] });
  await chat();
  await ask("Hi");
  expect(JSON.stringify(llm.chats.at(-1)!.json)).toContain("The old mill.");
});

test("scripts of a card and a preset run after the owner's, once they're accepted", async () => {
  const change = (name: string) => ({ regex_scripts: [tavern("/(?<=^|,)([^,]*)$/", `$1,${name}`)] });
  await app.put("/api/characters/fox", { name: "Fox", extensions: change("card") });
  await app.put("/api/presets/p1", { name: "Mine", rest: { extensions: change("preset") } });
  await put("s1", { find: "/$/", replace: ",own", prompt_only: true, placement: BOTH });
  await chat({ preset_id: "p1" });
  expect(await ask("a")).toEqual(["Hello, traveller.,own", "a,own"]);
  const { attached, has_active } = await json(app.get("/api/conversations/c1/regex_scripts"));
  expect(attached).toMatchObject([
    { kind: "preset", id: "p1", name: "Mine", state: "undecided", scripts: [{ prompt_only: true }] },
    { kind: "character", id: "fox", name: "Fox", state: "undecided" },
  ]);
  expect(has_active).toBe(false);
  for (const { hash } of attached) {
    expect((await app.post("/api/regex_scripts/decisions", { hash, accepted: true })).status).toBe(204);
  }
  expect(await ask("b")).toContain("b,own,preset,card");
  await app.post("/api/regex_scripts/decisions", { hash: attached[0].hash, accepted: false });
  expect(await ask("c")).toContain("c,own,card");
  // Other scripts have to be accepted again.
  await app.put("/api/characters/fox", { name: "Fox", extensions: change("changed") });
  expect(await ask("d")).toContain("d,own");
  expect((await json(app.get("/api/conversations/c1/regex_scripts"))).attached).toMatchObject([
    { kind: "preset", state: "declined" },
    { kind: "character", state: "undecided" },
  ]);
});

test("changes what is shown and edited", async () => {
  await app.put("/api/characters/fox", { name: "Fox" });
  await chat();
  const texts = [
    { text: "a", placement: "user_input", depth: 1 },
    { text: "a", placement: "ai_output", depth: 0, character_id: "fox" },
    { text: "a", placement: "reasoning", depth: 0 },
  ];
  expect(await show(texts)).toEqual({ texts: ["a", "a", "a"], problems: [] });
  await put("s1", {
    find: "a",
    replace: "{{char}}",
    display_only: true,
    placement: [...BOTH, "reasoning"],
    max_depth: 0,
  });
  await put("s2", { find: "/^/", replace: "+", placement: BOTH, run_on_edit: true });
  await put("s3", { find: "/^/", replace: "-", placement: BOTH, prompt_only: true });
  await put("s4", { name: "Broken", find: "(", placement: BOTH });
  expect((await json(app.get("/api/conversations/c1/regex_scripts"))).has_active).toBe(true);
  const problems = [{ name: "Broken", problem: "invalid" }];
  expect(await show(texts)).toEqual({ texts: ["+a", "+Fox", "Fox"], problems });
  expect(await show(texts, "edit")).toEqual({ texts: ["+a", "+a", "a"], problems: [] });
});

test("a script that is too slow is switched off, and named", { timeout: 300_000 }, async () => {
  await app.put("/api/characters/fox", { name: "Fox" });
  await chat();
  await put("s1", { name: "Slow", find: "/^(?=(x|y|xy|yx|yy)+$)(x|y|xy|yx|yy)+z$/", placement: BOTH });
  const texts = [{ text: `${"xy".repeat(60)} `, placement: "ai_output" }];
  expect(await show(texts)).toEqual({ texts: [texts[0]!.text], problems: [{ name: "Slow", problem: "too_slow" }] });
  expect(await json(app.get("/api/regex_scripts/s1"))).toMatchObject({ enabled: false, problem: "too_slow" });
  expect(await json(put("s1", { order: 7 }))).toMatchObject({ enabled: false, problem: "too_slow" });
  expect(await json(put("s1", { find: "/^x/", enabled: true }))).not.toHaveProperty("problem");
});
