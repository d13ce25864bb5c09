import { gzipSync } from "node:zlib";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import type { ImportKind, ImportStep } from "../../../services/import_export/import_item.ts";
import { readImport } from "../../../services/import_export/import_reading.ts";
import { addLine, createReport, importReason } from "../../../services/import_export/import_report.ts";
import { Sandbox } from "../../../services/platform/sandbox/sandbox.ts";
import { joinBytes } from "../../../services/storage/atomic_file.ts";
import { listLongJson } from "../../helpers/app/long_json.ts";
import { listDescendants } from "../../helpers/processes/proc.ts";

const sandbox = new Sandbox();
afterAll(() => sandbox.close());
let folder: string;
beforeEach(async () => {
  folder = await Deno.makeTempDir();
});
afterEach(() => Deno.remove(folder, { recursive: true }));

/** Reads a folder of files. */
async function read(kind: ImportKind, files: Record<string, string>): Promise<ImportStep[]> {
  const path = join(folder, "import");
  await Deno.mkdir(path);
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(join(path, name), text);
  return await Array.fromAsync(readImport(sandbox, { kind, path, scratch: join(folder, "scratch") }));
}

/** A RisuAI database of 40 million empty lists, as a file of 45 kB. */
function createBomb(): Uint8Array {
  const lists = joinBytes([Uint8Array.of(0xdd, 0, 0x0f, 0x42, 0x40), new Uint8Array(1_000_000).fill(0x90)]);
  const database = [Uint8Array.of(0x81, 0xaa), new TextEncoder().encode("characters"), Uint8Array.of(0xdc, 0, 40)];
  return gzipSync(joinBytes([...database, ...Array.from({ length: 40 }, () => lists)]));
}

test.each([
  ["time", { maxCpuMs: 100 }, "it took longer than 1 s"],
  ["memory", { maxResidentBytes: 300 * 1024 * 1024 }, "it needs more than 300 MiB of memory"],
])(
  "an import that needs too much %s ends, and no process or file of it is left",
  { tags: ["J01"] },
  async (_, limits, found) => {
    const path = join(folder, "database.bin");
    await Deno.writeFile(path, createBomb());
    await using own = new Sandbox();
    const before = listDescendants(Deno.pid);
    const scratch = join(folder, "scratch");
    const reading = Array.fromAsync(readImport(own, { kind: "risuai", path, scratch, limits }));
    await expect(reading).rejects.toMatchObject({ code: "unprocessable", message: `Can't read the import: ${found}` });
    expect(listDescendants(Deno.pid, before)).toEqual([]);
    expect(await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).toEqual(["database.bin"]);
  },
);

test("an import that is stopped while it's read ends with its child", async () => {
  const path = join(folder, "database.bin");
  await Deno.writeFile(path, createBomb());
  await using own = new Sandbox();
  const before = listDescendants(Deno.pid);
  const stopping = new AbortController();
  const scratch = join(folder, "scratch");
  const begin = () => stopping.abort(new Error("stopped"));
  const reading = Array.fromAsync(
    readImport(own, { kind: "risuai", path, scratch, begin, signal: stopping.signal }),
  );
  await expect(reading).rejects.toThrow("stopped");
  expect(listDescendants(Deno.pid, before)).toEqual([]);
});

const levels = (count: number) => `${'{"a":'.repeat(count)}1${"}".repeat(count)}`;
const chat = (id: string, content: string) =>
  JSON.stringify({ id, chat: { messages: [{ role: "assistant", content }] } });

test("long lorebooks, presets and chats with branches are received without parsing them at once", async () => {
  const words = "The fox is red. ".repeat(12);
  const entries = Array.from({ length: 3_000 }, (_, n) => ({ keys: [`fox ${n}`], content: words, odd: { n } }));
  const prompts = Array.from({ length: 1_500 }, (_, n) => ({ identifier: `p${n}`, content: words }));
  const say = (list: string, count: number) =>
    Array.from(
      { length: count },
      (_, n) => ({ id: `${list}${n}`, role: n % 2 ? "assistant" : "user", content: words }),
    );
  const [first, branch, last] = [say("a", 3_000), say("b", 900), say("c", 900)];
  const continuations = [{ message_id: "a1", n: 1, messages: branch }, { message_id: "b1", n: 2, messages: last }];
  const nodes = Object.fromEntries(
    Array.from({ length: 50 }, (_, n) => [n, { class_type: "Save", inputs: { text: words } }]),
  );
  const files = {
    "parlor-export.json": { format: 1 },
    "lorebooks/woods.json": { name: "Woods", book: { name: "Woods", own: 1, entries } },
    "lorebooks/broken.json": { name: "Broken", book: { entries: 1 } },
    "lorebooks/many.json": { name: "Many", book: { entries: [{ keys: Array(60_000).fill("fox") }] } },
    "presets/woods.json": { name: "Woods", preset: { sampler: { top_p: 0.5 }, prompts, rest: { own: 1 } } },
    "workflows/woods.json": nodes,
    "conversations/small.json": { title: "Small", messages: say("s", 3), draft: "Hm" },
    "conversations/woods.json": { title: "Woods", messages: first },
    "conversations/many.json": { messages: [{ ...say("m", 1)[0], own: Array(300_000).fill(1) }] },
  };
  for (const name of ["lorebooks", "presets", "workflows", "conversations", "continuations"]) {
    await Deno.mkdir(join(folder, "import", name), { recursive: true });
  }
  for (const [name, json] of Object.entries(files)) {
    await Deno.writeTextFile(join(folder, "import", name), JSON.stringify(json));
  }
  const lines = continuations.map((list) => JSON.stringify(list)).join("\n");
  await Deno.writeTextFile(join(folder, "import/continuations/woods.jsonl"), lines);
  let steps: ImportStep[] = [];
  const long = await listLongJson(async () => {
    const request = { kind: "parlor", path: join(folder, "import"), scratch: join(folder, "scratch") } as const;
    steps = await Array.fromAsync(readImport(sandbox, request));
  });
  expect(long).toEqual([]);
  const find = (source: string) => steps.find((step) => step.source === source);
  expect(find("lorebooks/woods.json")).toMatchObject({ book: { own: 1, entries: { 2999: { keys: ["fox 2999"] } } } });
  expect(find("lorebooks/broken.json")).toMatchObject({
    what: "lorebook",
    fault: "Can't read the lorebook: it has no list of entries",
  });
  expect(find("presets/woods.json")).toMatchObject({ json: { sampler: { top_p: 0.5 }, prompts, rest: { own: 1 } } });
  expect(find("workflows/woods.json")).toMatchObject({ json: nodes });
  expect(find("conversations/small.json")).toMatchObject({
    head: { title: "Small" },
    draft: "Hm",
    messages: [{}, {}, {}],
  });
  const ids = (messages: { id: string }[]) => messages.map(({ id }) => id);
  const whole = find("conversations/woods.json");
  if (whole?.what !== "conversation") throw new Error("The conversation is missing");
  expect(ids(whole.messages)).toEqual(ids(first));
  expect(whole.continuations!.map(({ message_id, n, messages }) => ({ message_id, n, ids: ids(messages) }))).toEqual([
    { message_id: "a1", n: 1, ids: ids(branch) },
    { message_id: "b1", n: 2, ids: ids(last) },
  ]);
  for (const source of ["lorebooks/many.json", "conversations/many.json"]) {
    expect(find(source)).toMatchObject({ what: "note", level: "refused", code: "too_long" });
  }
});

test("a chat that is nested too deep is the only one rejected", async () => {
  const chats = [
    chat("a", "Hi"),
    `{"id":"b","chat":{"messages":[{"role":"user","content":${levels(50_000)}}]}}`,
    chat("c", "Hi"),
  ];
  const steps = await read("openwebui", { "chats.json": `[${chats.join()}]` });
  expect(steps.map(({ what, source }) => [what, source])).toEqual([
    ["conversation", "chats.json#0"],
    ["note", "chats.json#1"],
    ["conversation", "chats.json#2"],
  ]);
  expect(steps[1]).toMatchObject({ level: "refused", reason: "it is nested deeper than 100 levels" });
});

test.each([
  [
    "folded",
    '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> Hm.\n</details>\nHello',
    "Hello",
    "Hm.",
  ],
  ["without a summary", '<details type="reasoning">\n> Hm.\n</details>Hello', "Hello", "Hm."],
  ["that never ends", '<details type="reasoning">Hm.', '<details type="reasoning">Hm.', undefined],
])("reasoning %s in an Open WebUI message is separated from its text", async (_, said, content, reasoning) => {
  const [conversation] = await read("openwebui", { "chats.json": chat("a", said) });
  expect(conversation).toMatchObject({ messages: [{ content, ...(reasoning !== undefined && { reasoning }) }] });
});

test("an Agnai character without persona and date is imported with the others", async () => {
  const characters = [{ kind: "character", name: "Fox" }, { _id: "o", kind: "character", name: "Owl" }];
  const steps = await read("agnai", { "characters.json": JSON.stringify(characters), "chats.json": "[]" });
  expect(steps.filter(({ what }) => what === "character").map((step) => "name" in step && step.name)).toEqual([
    "Fox",
    "Owl",
  ]);
});

test("rejects an Agnai folder that is nested too deep with a reason", async () => {
  const files = { "characters.json": `[{"name":"Fox","persona":${levels(50_000)}}]`, "chats.json": "[]" };
  await expect(read("agnai", files)).rejects.toMatchObject({
    code: "unprocessable",
    message: `Can't import "characters.json": it is nested deeper than 100 levels`,
  });
});

test("a line of a report contains at most 500 characters of a foreign name", () => {
  const report = createReport("sillytavern", true);
  const reason = importReason("members_missing", { cards: "x".repeat(1_000_000) });
  addLine(report, { level: "changed", source: "groups/1.json", ...reason });
  expect(report.lines[0]).toMatchObject({ code: "members_missing", params: { cards: "x".repeat(500) } });
});

/** The conversations without the fields that every import adds. */
const chatsOf = (steps: ImportStep[]) =>
  steps.flatMap((step) =>
    step.what === "conversation"
      ? [{
        title: step.name,
        system: step.head.system_prompt,
        texts: step.messages.map(({ role, content }) => [role, content]),
      }]
      : []
  );

test("Claude's export keeps thinking, attached texts and branches, and reports the files that it lacks", async () => {
  const message = (uuid: string, sender: string, text: string, more = {}) => ({ uuid, sender, text, ...more });
  const steps = await read("claude", {
    "users.json": "[]",
    "conversations.json": JSON.stringify([{
      uuid: "c1",
      name: "Lighthouse",
      created_at: "2025-01-02T03:04:05.678901Z",
      chat_messages: [
        message("1", "human", "Read this", {
          attachments: [{ file_name: "log.txt", extracted_content: "Day 1" }],
          files: [{ file_name: "photo.png" }],
        }),
        message("2", "assistant", "", {
          parent_message_uuid: "1",
          content: [{ type: "thinking", thinking: "Hm." }, { type: "tool_use", name: "x" }, {
            type: "text",
            text: "Done",
          }],
        }),
        message("3", "assistant", "Again", { parent_message_uuid: "1" }),
        message("4", "human", "Thanks", { parent_message_uuid: "3" }),
      ],
    }]),
  });
  expect(chatsOf(steps)).toEqual([{
    title: "Lighthouse",
    system: undefined,
    texts: [["user", "Read this\n\nlog.txt:\n\nDay 1"], ["assistant", "Again"], ["user", "Thanks"]],
  }]);
  const [conversation] = steps.filter((step) => step.what === "conversation");
  expect(conversation!.messages[1]).toMatchObject({
    active_variant: 1,
    variants: [{ content: "Done", reasoning: "Hm." }, { content: "Again" }],
  });
  expect(steps).toContainEqual(expect.objectContaining({ code: "files_not_in_export", count: 1 }));
});

test("names of object methods are handled like other unknown roles and folders", async () => {
  const chat = { uuid: "c1", name: "Odd", chat_messages: [{ uuid: "1", sender: "toString", text: "x" }] };
  const [claude] = await read("claude", { "conversations.json": JSON.stringify([chat]) });
  expect(claude).not.toMatchObject({ messages: [{}] });
  await Deno.remove(join(folder, "import"), { recursive: true });
  const steps = await read("sillytavern", { "settings.json": "{}", "constructor": "x" });
  expect(steps).toContainEqual(expect.objectContaining({ code: "sillytavern_own", source: "constructor" }));
});

test("LibreChat's trees and lists give the same conversation, even one of 500 messages", async () => {
  const root = "00000000-0000-0000-0000-000000000000";
  const message = (n: number) => ({
    messageId: `m${n}`,
    parentMessageId: n === 0 ? root : `m${n - 1}`,
    isCreatedByUser: n % 2 === 0,
    ...(n % 2 === 0
      ? { text: `q${n}` }
      : { content: [{ type: "think", think: "Hm." }, { type: "text", text: { value: `a${n}` } }] }),
    model: n % 2 === 0 ? null : "gpt-4-turbo",
    createdAt: new Date(1_700_000_000_000 + n * 1000).toISOString(),
  });
  const list = Array.from({ length: 500 }, (_, n) => message(n));
  const tree = list.toReversed().reduce<object[]>((children, one) => [{ ...one, children }], []);
  const head = { conversationId: "l1", title: "Harbor", options: { promptPrefix: "Be calm." } };
  const steps = await read("librechat", {
    "list.json": JSON.stringify({ ...head, messages: list }),
    "old.json": JSON.stringify({ ...head, messagesTree: tree }),
    "tree.json": JSON.stringify({ ...head, recursive: true, messages: tree }),
  });
  const chats = chatsOf(steps);
  expect(chats).toHaveLength(3);
  expect(chats[0]).toMatchObject({ title: "Harbor", system: "Be calm." });
  expect(chats[0]!.texts.slice(0, 2)).toEqual([["user", "q0"], ["assistant", "a1"]]);
  expect(chats[0]!.texts).toHaveLength(500);
  expect(chats[1]).toEqual(chats[0]);
  expect(chats[2]).toEqual(chats[0]);
  expect(new Set(steps.map((step) => "hash" in step ? step.hash : step.what)).size).toBe(1);
});

test("LobeChat's topics become conversations, with the role of their assistant and both replies", async () => {
  const at = 1_700_000_000_000;
  const message = (id: string, role: string, content: string, more = {}) => ({
    id,
    role,
    content,
    sessionId: "s",
    ...more,
  });
  const steps = await read("lobechat", {
    "lobe.json": JSON.stringify({
      exportType: "sessions",
      state: {
        sessions: [{ id: "s", meta: { title: "Fox" }, config: { systemRole: "Be calm." } }],
        topics: [{ id: "t", sessionId: "s", title: "Evening" }],
        messages: [
          message("2", "assistant", "One", {
            topicId: "t",
            parentId: "1",
            createdAt: at + 1,
            extra: { fromModel: "m" },
          }),
          message("1", "user", "Hi", { topicId: "t", createdAt: at }),
          message("3", "assistant", "Two", { topicId: "t", parentId: "1", createdAt: at + 2 }),
          message("5", "tool", "{}", { topicId: "t", createdAt: at + 3 }),
          message("4", "user", "Alone", { createdAt: at + 4 }),
        ],
      },
      version: 7,
    }),
  });
  expect(chatsOf(steps)).toEqual([
    { title: "Evening", system: "Be calm.", texts: [["user", "Hi"], ["assistant", "Two"]] },
    { title: "Fox", system: "Be calm.", texts: [["user", "Alone"]] },
  ]);
  const [evening] = steps.filter((step) => step.what === "conversation");
  expect(evening!.messages[1]).toMatchObject({ variants: [{ content: "One", model: "m" }, { content: "Two" }] });
});

test("Chatbox's chats import threads, other continuations and the system prompt, but not keys and images", async () => {
  const part = (text: string, type = "text") => ({ type, text });
  const message = (id: string, role: string, ...contentParts: object[]) => ({
    id,
    role,
    contentParts,
    timestamp: 1_700_000_000_000,
  });
  const steps = await read("chatbox", {
    "chatbox.json": JSON.stringify({
      __exported_items: ["setting", "conversations"],
      settings: { providers: { openai: { apiKey: "sk-needle" } } },
      "chat-sessions-list": [{ id: "b", name: "Evening" }],
      "session:b": {
        id: "b",
        name: "Evening",
        messages: [
          message("1", "system", part("Be calm.")),
          message("2", "user", part("Hi"), { type: "image", storageKey: "k" }),
          message("3", "assistant", part("Hm.", "reasoning"), part("Hello")),
        ],
        messageForksHash: {
          2: { position: 1, lists: [{ messages: [message("4", "assistant", part("Hey"))] }, { messages: [] }] },
        },
        threads: [{ id: "t", name: "Before", messages: [{ id: "5", role: "user", content: "Old" }] }],
      },
    }),
  });
  expect(chatsOf(steps)).toEqual([
    { title: "Evening", system: "Be calm.", texts: [["user", "Hi"], ["assistant", "Hello"]] },
    { title: "Before", system: undefined, texts: [["user", "Old"]] },
  ]);
  const [evening] = steps.filter((step) => step.what === "conversation");
  expect(evening!.messages[1]!.variants).toMatchObject([{ content: "Hello", reasoning: "Hm." }, { content: "Hey" }]);
  expect(steps.flatMap((step) => "code" in step ? [step.code] : [])).toEqual([
    "service_keys_left_out",
    "chatgpt_images",
  ]);
  expect(JSON.stringify(steps)).not.toContain("needle");
});

test("Claude's artifacts are imported as code, its placeholders aren't, and two first messages become versions", async () => {
  const first = "00000000-0000-4000-8000-000000000000";
  const tool = (name: string, input: object) => ({ type: "tool_use", name, input });
  const message = (uuid: string, parent: string, sender: string, content: object[], text = "") => ({
    uuid,
    parent_message_uuid: parent,
    sender,
    text,
    content,
  });
  const block = "```\nThis block is not supported on your current device yet.\n```";
  const steps = await read("claude", {
    "conversations.json": JSON.stringify([{
      uuid: "c1",
      name: "Harbor",
      chat_messages: [
        message("1", first, "human", [{ type: "text", text: "A page" }]),
        message("2", "1", "assistant", [
          tool("web_search", { query: "x" }),
          { type: "tool_result", name: "web_search", content: [{ type: "text", text: "found" }] },
          { type: "text", text: "Here:" },
          tool("artifacts", { command: "create", id: "a", title: "Notes", content: "Use ```js``` here" }),
          tool("artifacts", { command: "update", id: "a", old_str: "Use", new_str: "Write" }),
          tool("create_file", { path: "/mnt/out/page.html", file_text: "<p>Hi</p>" }),
          { type: "text", text: "Done" },
        ], `Here:\n${block}\n\nDone`),
        message("3", first, "human", [{ type: "text", text: "Another page" }]),
        message("4", "3", "assistant", [], `Well\n${block}\n\nno`),
        message("5", "4", "human", []),
        message("6", "5", "assistant", [tool("web_search", { query: "y" })], block),
      ],
    }]),
  });
  expect(chatsOf(steps)).toMatchObject([{ texts: [["user", "Another page"], ["assistant", "Well\n\nno"]] }]);
  const [conversation] = steps.filter((step) => step.what === "conversation");
  expect(conversation!.messages[0]!.variants).toMatchObject([{ content: "A page" }, { content: "Another page" }]);
  expect(conversation!.continuations).toMatchObject([{
    messages: [{
      content: "Here:\n\n**Notes**\n\n````\nUse ```js``` here\n````\n\n**page.html**\n\n```\n<p>Hi</p>\n```\n\nDone",
    }],
  }]);
  expect(steps).toContainEqual(expect.objectContaining({ code: "artifact_edits", count: 1 }));
});

test("LibreChat's parts take precedence over the text, old reasoning is removed from the text, and files are reported", async () => {
  const steps = await read("librechat", {
    "chat.json": JSON.stringify({
      conversationId: "l1",
      title: "Harbor",
      messages: [
        { messageId: "1", isCreatedByUser: true, text: "Look", files: [{ file_id: "f", filename: "boat.png" }] },
        { messageId: "2", parentMessageId: "1", text: ":::thinking\nHm.\n:::\nA boat", model: "r1" },
        { messageId: "3", parentMessageId: "2", isCreatedByUser: true, text: "Draw it" },
        {
          messageId: "4",
          parentMessageId: "3",
          text: "old",
          content: [
            { type: "think", think: "Ok." },
            { type: "tool_call", tool_call: { id: "t", name: "dalle", args: "{}" } },
            { type: "image_file", image_file: { filepath: "/images/1/boat.png" } },
            { type: "text", text: "There" },
          ],
        },
      ],
    }),
  });
  const [conversation] = steps.filter((step) => step.what === "conversation");
  expect(conversation!.messages).toMatchObject([
    { role: "user", content: "Look" },
    { role: "assistant", content: "A boat", reasoning: "Hm.", model: "r1" },
    { role: "user", content: "Draw it" },
    { role: "assistant", content: "There", reasoning: "Ok." },
  ]);
  expect(steps).toContainEqual(expect.objectContaining({ code: "files_not_in_export", count: 2 }));
});

/** The tables of LobeChat's database. */
const lobeTables = () => {
  const at = (second: number) => `2026-03-01T10:00:0${second}.000Z`;
  const message = (id: string, role: string, content: string, second: number, more = {}) => ({
    ...{ id, role, content, reasoning: null, model: null, parentId: null, threadId: null, agentId: null },
    ...{ sessionId: "ssn_1", topicId: "tpc_1", createdAt: at(second), updatedAt: at(second), ...more },
  });
  return {
    userSettings: [],
    agents: [{ id: "agt_1", title: "Fox", systemRole: "Be calm." }, { id: "agt_2", title: "Owl", systemRole: "Hoot." }],
    aiProviders: [{ id: "openai", keyVaults: '{"apiKey":"sk-needle"}' }],
    messages: [
      message("msg_3", "user", "More", 3, { parentId: "msg_2" }),
      message("msg_2", "assistant", "Hello", 2, { parentId: "msg_1", model: "m1", reasoning: { content: "Hm." } }),
      message("msg_1", "user", "Hi", 1),
      message("msg_4", "assistant", "", 4, { parentId: "msg_3", tools: [{ id: "call_1" }] }),
      message("msg_5", "tool", "{}", 5, { parentId: "msg_4" }),
      message("msg_6", "assistant", "Found", 6, { parentId: "msg_5" }),
      message("msg_7", "user", "Aside", 7, { threadId: "thd_1" }),
      message("msg_8", "user", "Night", 8, { sessionId: null, topicId: "tpc_2", agentId: "agt_2" }),
    ],
    sessions: [{ id: "ssn_1", slug: "fox", title: null, type: "agent" }],
    threads: [{ id: "thd_1", topicId: "tpc_1", sourceMessageId: "msg_2", type: "continuation" }],
    topics: [
      { id: "tpc_1", title: "Evening", sessionId: "ssn_1", createdAt: at(1) },
      { id: "tpc_2", title: null, sessionId: null, agentId: "agt_2" },
    ],
    agentsToSessions: [{ agentId: "agt_1", sessionId: "ssn_1" }],
  };
};

test("LobeChat's database gives topics with their agent's role, threads and reasoning, without keys", async () => {
  const file = { data: lobeTables(), mode: "postgres", schemaHash: "abc" };
  const steps = await read("lobechat", { "lobe.json": JSON.stringify(file) });
  expect(chatsOf(steps)).toEqual([
    {
      title: "Evening",
      system: "Be calm.",
      texts: [["user", "Hi"], ["assistant", "Hello"], ["user", "More"], ["assistant", "Found"]],
    },
    { title: "Owl", system: "Hoot.", texts: [["user", "Night"]] },
  ]);
  const [evening] = steps.filter((step) => step.what === "conversation");
  expect(evening!.messages[1]).toMatchObject({ model: "m1", reasoning: "Hm.", created_at: "2026-03-01T10:00:02.000Z" });
  expect(evening!.messages[2]!.variants).toMatchObject([{ content: "More" }, { content: "Aside" }]);
  expect(steps).toContainEqual(expect.objectContaining({ code: "service_keys_left_out" }));
  expect(JSON.stringify(steps)).not.toContain("needle");
});

test("a topic written by LobeChat's Share dialog is a conversation", async () => {
  const message = (id: string, role: string, content: string, more = {}) => ({
    id,
    role,
    content,
    createdAt: "2026-03-01T10:00:00.000Z",
    ...more,
  });
  const topic = {
    version: "2.0",
    title: "Evening",
    messages: [
      message("system-role", "system", "Be calm.", { createdAt: "2026-03-02T10:00:00.000Z" }),
      message("msg_1", "user", "Hi"),
      message("msg_2", "assistant", "Hello", { parentId: "msg_1", model: "m1" }),
    ],
    exportedAt: "2026-03-02T10:00:00.000Z",
  };
  const steps = await read("lobechat", { "topic.json": JSON.stringify(topic) });
  expect(chatsOf(steps)).toEqual([
    { title: "Evening", system: "Be calm.", texts: [["user", "Hi"], ["assistant", "Hello"]] },
  ]);
});

test("Chatbox's forks stay in their thread, including nested forks; stale lists and summaries are skipped", async () => {
  const message = (id: string, role: string, text: string, more = {}) => ({
    id,
    role,
    contentParts: [{ type: "text", text }],
    ...more,
  });
  const fork = (...lists: object[][]) => ({ position: 0, lists: lists.map((messages) => ({ id: "l", messages })) });
  const session = {
    id: "b",
    name: "Evening",
    messages: [
      message("1", "system", "Be calm."),
      message("2", "user", "Hi", { files: [{ id: "f", name: "log.txt", storageKey: "file:1" }] }),
      message("3", "assistant", "Hello"),
      message("9", "assistant", "They greeted.", { isSummary: true }),
    ],
    messageForksHash: {
      // Keys have no order: the message may be in a later list or in a thread.
      6: fork([], [message("8", "assistant", "Later other")]),
      5: fork([], [message("7", "user", "Deep other")]),
      2: fork([], [message("5", "assistant", "Hey"), message("4", "user", "Deep")]),
    },
    threads: [{
      id: "t",
      name: "Before",
      messages: [message("6", "user", "Old"), message("10", "assistant", "Later")],
    }],
  };
  const steps = await read("chatbox", {
    "chatbox.json": JSON.stringify({
      "chat-sessions": [{ id: "b", name: "Stale", messages: [{ id: "2", role: "user", content: "Stale" }] }],
      "session:b": session,
    }),
  });
  expect(chatsOf(steps)).toEqual([
    { title: "Evening", system: "Be calm.", texts: [["user", "Hi"], ["assistant", "Hello"]] },
    { title: "Evening", system: "Be calm.", texts: [["user", "Hi"], ["assistant", "Hey"], ["user", "Deep other"]] },
    { title: "Before", system: undefined, texts: [["user", "Old"], ["assistant", "Later"]] },
  ]);
  const [main, other, before] = steps.filter((step) => step.what === "conversation");
  expect(main!.messages[1]!.variants).toMatchObject([{ content: "Hello" }, { content: "Hey" }]);
  expect(other!.messages[2]!.variants).toMatchObject([{ content: "Deep" }, { content: "Deep other" }]);
  expect(before!.messages[1]!.variants).toMatchObject([{ content: "Later" }, { content: "Later other" }]);
  expect(steps).toContainEqual(expect.objectContaining({ code: "files_not_in_export", count: 1 }));
});

test.each(["claude", "librechat", "lobechat", "chatbox"] as const)(
  "a %s file of another kind is refused",
  async (kind) => {
    const steps = await read(kind, { "conversations.json": '{"title":"x","mapping":{}}' });
    expect(steps).toMatchObject([{ what: "note", level: "refused", code: "no_messages" }]);
  },
);
