/**
 * Macros that are too expensive, in every text that comes from outside.
 *
 * @slow Each text has macros that use up the whole budget.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { gather, useModel } from "../helpers/app/chat_client.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { type FakeLlm, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { BRACES, DOUBLING, LEVELS, LONG_NAME, NESTED_BRACES } from "../helpers/files/macro_attacks.ts";
import { cpuSecondsOf } from "../helpers/processes/processes.ts";
import { sample } from "../helpers/files/sample.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeAll(async () => {
  app = await openTestApp();
  llm = await openFakeLlm({ personality: "llama.cpp" });
  llm.contextSize = 1_000_000;
  await useModel(app, llm);
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const made = async (asked: Response | Promise<Response>) => {
  const response = await asked;
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return await response.json();
};
const cardOf = (data: Record<string, unknown>) => ({
  card: { spec: "chara_card_v3", spec_version: "3.0", data: { name: "Ada", ...data } },
});
const ENTRY = { extensions: {}, enabled: true, insertion_order: 10, use_regex: false };
const bookOf = (entry: Record<string, unknown>) => ({ extensions: {}, entries: [{ keys: [], ...ENTRY, ...entry }] });
const turn = (conversation_id: string) => ({
  conversation_id,
  context: "server",
  messages: [{ role: "user", content: "Hello {{char}}" }],
});

interface Aad {
  card?: Record<string, unknown>;
  persona?: string;
  preset?: Record<string, unknown>;
  lorebook?: Record<string, unknown>;
  chat?: Record<string, unknown>;
}

async function openChat({ card = {}, persona = "", preset, lorebook, chat = {} }: Aad): Promise<string> {
  await made(app.put("/api/characters/ada", cardOf(card)));
  await made(app.put("/api/personas/sam", { name: "Sam", description: persona }));
  const more: Record<string, unknown> = {};
  if (preset !== undefined) {
    const form = new FormData();
    form.set("file", new File([JSON.stringify(preset)], "Foreign.json", { type: "application/json" }));
    more.preset_id = (await made(app.post("/api/presets/import", form))).id;
  }
  if (lorebook !== undefined) {
    await made(app.put("/api/lorebooks/foreign", { name: "Foreign", scope: "chat", book: lorebook }));
    more.lorebook_ids = ["foreign"];
  }
  const { id } = await made(app.post("/api/conversations", { character_ids: ["ada"], persona_id: "sam" }));
  await made(app.patch(`/api/conversations/${id}`, { ...more, ...chat }));
  return id;
}

const presetOf = (prompt: Record<string, unknown>, texts: Record<string, unknown> = {}) => ({
  prompts: [{ identifier: "own", name: "Foreign rules", role: "system", ...prompt }],
  prompt_order: [{
    character_id: 100001,
    order: ["main", "own", "chatHistory"].map((identifier) => ({ identifier, enabled: true })),
  }],
  temperature: 1,
  ...texts,
});

test.each<[string, Aad, { field: string; source?: unknown }]>([
  ["a greeting", { card: { first_mes: DOUBLING } }, { field: "history", source: expect.any(String) }],
  ["a description", { card: { description: DOUBLING } }, { field: "description" }],
  ["a personality", { card: { personality: DOUBLING } }, { field: "personality" }],
  ["a scenario", { card: { scenario: DOUBLING } }, { field: "scenario" }],
  ["examples", { card: { mes_example: DOUBLING } }, { field: "examples" }],
  ["a system prompt", { card: { system_prompt: DOUBLING } }, { field: "main", source: "card" }],
  ["final instructions", { card: { post_history_instructions: DOUBLING } }, { field: "instructions", source: "card" }],
  ["a note of the card", { card: { extensions: { depth_prompt: { prompt: DOUBLING } } } }, { field: "character_note" }],
  ["a book of the card", { card: { character_book: bookOf({ name: "Mill", constant: true, content: DOUBLING }) } }, {
    field: "lorebook",
    source: expect.stringContaining("Mill"),
  }],
  ["a lorebook", { lorebook: bookOf({ name: "Mill", constant: true, content: DOUBLING }) }, {
    field: "lorebook",
    source: "Foreign: Mill",
  }],
  ["a key of a lorebook", { lorebook: bookOf({ name: "Mill", keys: [DOUBLING], content: "A mill." }) }, {
    field: "lorebook",
    source: "Foreign: Mill",
  }],
  ["a persona", { persona: DOUBLING }, { field: "persona" }],
  ["a prompt of a preset", { preset: presetOf({ content: DOUBLING }) }, { field: "preset", source: "Foreign rules" }],
  ["a note of the chat", { chat: { note: { text: DOUBLING, depth: 1 } } }, { field: "note" }],
  ["a system prompt of the chat", { chat: { system_prompt: DOUBLING } }, { field: "main", source: "chat" }],
  ["a scenario of the chat", { chat: { scenario: DOUBLING } }, { field: "scenario" }],
])(
  "a variable that is doubled in %s leaves that text unexpanded, and the preview names it",
  { tags: ["F01"] },
  async (_, place, field) => {
    const id = await openChat(place);
    const seen = await made(app.post("/api/chat/preview", turn(id)));
    expect(seen.not_expanded).toEqual([{ ...field, reason: "variables" }]);
    const sent = JSON.stringify(seen.messages);
    if (!place.lorebook?.entries || !JSON.stringify(place.lorebook).includes("A mill.")) {
      expect(sent).toContain(JSON.stringify(DOUBLING).slice(1, -1));
    }
    expect(sent).toContain("Hello Ada");
    const reply = await gather(await app.post("/api/chat", turn(id)));
    expect(reply).toMatchObject({ isDone: true, finish: "stop" });
    expect(llm.chats.at(-1)!.json!.messages).toEqual(seen.messages);
  },
);

test(
  "fields that insert each other four levels deep stay unexpanded, and others don't",
  { tags: ["F01"] },
  async () => {
    const id = await openChat({ card: LEVELS, persona: "{{user}} asks." });
    const seen = await made(app.post("/api/chat/preview", turn(id)));
    expect(seen.not_expanded).toEqual([
      { field: "description", reason: "steps" },
      { field: "personality", reason: "steps" },
    ]);
    const pieces = seen.parts.flatMap(({ pieces = [] }) => pieces) as { part: string; text: string }[];
    const textOf = (part: string) => pieces.find((piece) => piece.part === part)?.text;
    expect(textOf("main")).toBe("Be Ada.");
    expect(textOf("persona")).toBe("Sam asks.");
    expect(textOf("description")).toBe(LEVELS.description);
    expect(textOf("examples")).toContain("Be Ada.Be Ada.");
  },
);

test("a format that would multiply a text is omitted", { tags: ["F01"] }, async () => {
  const preset = presetOf({ content: "Rules." }, {
    wi_format: "{0}".repeat(10_000),
    scenario_format: "{{scenario}}".repeat(10_000),
    new_example_chat_prompt: "x".repeat(100_000),
  });
  preset.prompt_order[0]!.order = ["main", "worldInfoBefore", "scenario", "dialogueExamples", "chatHistory"]
    .map((identifier) => ({ identifier, enabled: true }));
  const text = "A mill. ".repeat(100).trim();
  const id = await openChat({
    preset,
    lorebook: bookOf({ name: "Mill", constant: true, content: text }),
    card: { scenario: text, mes_example: "<START>\nHi\n".repeat(100) },
  });
  const seen = await made(app.post("/api/chat/preview", turn(id)));
  expect(seen.not_expanded).toEqual([
    { field: "lorebook", source: "Foreign: Mill", reason: "bytes" },
    { field: "scenario", reason: "bytes" },
    { field: "examples", reason: "bytes" },
  ]);
  const pieces = seen.parts.flatMap(({ pieces = [] }) => pieces) as { part: string; text: string }[];
  expect(pieces.filter(({ part }) => part === "lorebook" || part === "scenario").map((piece) => piece.text))
    .toEqual([text, text]);
  expect(JSON.stringify(seen).length).toBeLessThan(12 * 1024 * 1024);
});

test("a prompt whose macros stay within their budget reports nothing", async () => {
  const id = await openChat({ card: { description: "{{char}} counts.", first_mes: "Hi {{user}}" } });
  expect((await made(app.post("/api/chat/preview", turn(id)))).not_expanded).toEqual([]);
  const body = { messages: [{ role: "user", content: "Hello" }] };
  expect((await made(app.post("/api/chat/preview", body))).not_expanded).toEqual([]);
});

test("a group greeting over budget is stored unexpanded", { tags: ["F01"] }, async () => {
  await made(app.put("/api/characters/ada", cardOf({ group_only_greetings: [DOUBLING] })));
  await made(app.put("/api/characters/bob", cardOf({ name: "Bob", first_mes: "I am {{char}}." })));
  const { id } = await made(app.post("/api/conversations", { character_ids: ["ada", "bob"] }));
  const { messages } = await made(app.get(`/api/conversations/${id}`));
  expect(messages.map(({ content }: { content: string }) => content)).toEqual([DOUBLING]);
});

test("a lorebook test has a budget, too", { tags: ["F01"] }, async () => {
  const id = await openChat({ card: { name: LONG_NAME } });
  const content = `${"{{char}}".repeat(1_000)}${DOUBLING}`;
  const book = bookOf({ name: "Mill", keys: ["hello"], content });
  const found = await made(app.post("/api/lorebooks/test", { book, conversation_id: id, text: "hello" }));
  expect(found.entries[0].content).toBe(content);
});

/** Up to three chats are created, previewed and answered. Without a budget, nested braces alone take a minute. */
const MAX_CPU_SECONDS = 15;

/** A small heap: without a budget, each of the attacks ends or blocks this process. */
async function startSmallServer(dataDir: string): Promise<ChildServer> {
  return await startChildServer({ dataDir, denoFlags: ["--v8-flags=--max-old-space-size=400"] });
}

test.each<[string, Record<string, unknown>]>([
  ["a variable doubled 24 times", { first_mes: DOUBLING, description: DOUBLING }],
  ["fields named 100 times over four levels", LEVELS],
  ["1.5 MB of open braces", { first_mes: BRACES, description: BRACES, post_history_instructions: BRACES }],
  ["1.5 MB of nested braces", {
    first_mes: NESTED_BRACES,
    description: NESTED_BRACES,
    post_history_instructions: NESTED_BRACES,
  }],
  ["a name of 1 MB", { name: LONG_NAME, first_mes: "{{char}}".repeat(5_000), description: "<char>".repeat(5_000) }],
])(
  "%s: chats start and continue, including other chats, and the process survives",
  { tags: ["F01"] },
  async (_, data) => {
    await using folder = await tempFolder();
    await using server = await startSmallServer(folder.path);
    await server.json("PUT", "/api/characters/quiet", cardOf({ name: "Bea", first_mes: "I am {{char}}." }));
    await server.json("PUT", "/api/characters/hostile", cardOf(data));
    const answered = new AbortController();
    let beats = 0;
    const beating = (async () => {
      while (!answered.signal.aborted) {
        const answer = await server.request("GET", "/healthz");
        await answer.body?.cancel();
        if (answer.status === 204) beats++;
      }
    })();
    const cpuBefore = Deno.build.os === "linux" ? await cpuSecondsOf(server.pid) : 0;
    for (let round = 0; round < sample(1, 3).count; round++) {
      const { id } = await server.json<{ id: string }>("POST", "/api/conversations", { character_ids: ["hostile"] });
      const other = await server.json<{ id: string }>("POST", "/api/conversations", { character_ids: ["quiet"] });
      const before = beats;
      const [seen, reply, quiet] = await Promise.all([
        server.json<{ messages: unknown[] }>("POST", "/api/chat/preview", turn(id)),
        server.request("POST", "/api/chat", { ...turn(id), messages: [{ role: "user", content: "One word" }] }).then(
          gather,
        ),
        server.request("POST", "/api/chat", turn(other.id)).then(gather),
      ]);
      expect(seen.messages.length).toBeGreaterThan(0);
      expect(reply).toMatchObject({ isDone: true, finish: "stop" });
      expect(quiet).toMatchObject({ isDone: true, finish: "stop" });
      expect(beats).toBeGreaterThan(before);
    }
    answered.abort();
    await beating;
    if (Deno.build.os === "linux") {
      // Measured: 1 to 3 s. CPU time hardly depends on other work of the machine.
      expect(await cpuSecondsOf(server.pid) - cpuBefore).toBeLessThan(MAX_CPU_SECONDS);
    }
    expect((await server.kill("SIGTERM")).code).toBe(0);
  },
);
