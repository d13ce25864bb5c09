import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { ImportKind, ImportStep } from "../../../../services/import_export/import_item.ts";
import { readImport } from "../../../../services/import_export/import_reading.ts";
import { Sandbox } from "../../../../services/platform/sandbox/sandbox.ts";
import { tempFolder } from "../../../helpers/files/storage_folder.ts";

const sandbox = new Sandbox();
afterAll(() => sandbox.close());

/** Reads a folder of files; values that aren't texts are written as JSON. */
async function read(kind: ImportKind, files: Record<string, unknown>): Promise<ImportStep[]> {
  await using folder = await tempFolder();
  const path = join(folder.path, "import");
  for (const [name, content] of Object.entries(files)) {
    const file = join(path, name);
    await Deno.mkdir(join(file, ".."), { recursive: true });
    await Deno.writeTextFile(file, typeof content === "string" ? content : JSON.stringify(content));
  }
  return await Array.fromAsync(readImport(sandbox, { kind, path, scratch: join(folder.path, "scratch") }));
}

const chatsOf = (steps: ImportStep[]) =>
  steps.flatMap((step) =>
    step.what === "conversation"
      ? [{
        title: step.head.title,
        system: step.head.system_prompt,
        texts: step.messages.map(({ role, content }) => [role, content]),
      }]
      : []
  );
const notesOf = (steps: ImportStep[]) =>
  steps.flatMap((step) => step.what === "note" ? [[step.code, step.params?.kinds, step.count]] : []);

const text = (text: string) => [{ type: "text", text }];

test("LM Studio: versions, reasoning, the model, the system prompt, and what isn't imported", async () => {
  const steps = await read("lmstudio", {
    "1.conversation.json": {
      name: "Fox",
      createdAt: 1_700_000_000_000,
      perChatPredictionConfig: { fields: [{ key: "llm.prediction.systemPrompt", value: "Be calm." }] },
      messages: [
        {
          currentlySelected: 0,
          versions: [{ type: "singleStep", role: "user", content: [...text("Hi"), { type: "file" }] }],
        },
        {
          currentlySelected: 1,
          versions: [
            { type: "multiStep", role: "assistant", steps: [{ type: "contentBlock", content: text("Old") }] },
            {
              type: "multiStep",
              role: "assistant",
              senderInfo: { senderName: "qwen" },
              steps: [
                { type: "contentBlock", style: { type: "thinking" }, content: text("Hm.") },
                { type: "contentBlock", content: text("Hello") },
                { type: "toolStatus" },
              ],
            },
          ],
        },
      ],
    },
  });
  expect(chatsOf(steps)).toEqual([
    { title: "Fox", system: "Be calm.", texts: [["user", "Hi"], ["assistant", "Hello"]] },
  ]);
  const [chat] = steps.filter((step) => step.what === "conversation");
  expect(chat!.messages[1]).toMatchObject({
    reasoning: "Hm.",
    model: "qwen",
    variants: [{ content: "Hello" }, { content: "Old" }],
    active_variant: 0,
  });
  expect(notesOf(steps)).toEqual([["other_parts", "file, toolStatus", 2]]);
});

test("Jan: the messages of a thread with the assistant's instructions", async () => {
  const said = (role: string, value: string) =>
    JSON.stringify({ id: value, role, content: [{ type: "text", text: { value } }], created_at: 1_700_000_000 });
  const steps = await read("jan", {
    "threads/a/thread.json": {
      id: "a",
      title: "Fox",
      assistants: [{ instructions: "Be calm." }],
      created: 1_700_000_000,
    },
    "threads/a/messages.jsonl": [said("user", "Hi"), said("assistant", "<think>\nHm.</think>\nHello"), "{"].join("\n"),
    "assistants/jan/assistant.json": {},
  });
  expect(chatsOf(steps)).toEqual([
    { title: "Fox", system: "Be calm.", texts: [["user", "Hi"], ["assistant", "Hello"]] },
  ]);
  expect(notesOf(steps)).toEqual([["other_files", undefined, 1], ["not_json", undefined, undefined]]);
});

test.each([["one", false], ["a list", true]])(
  "llama.cpp: %s of its page's conversations with branches and files",
  async (_, isList) => {
    const image = "data:image/png;base64,AA==";
    const chat = {
      conv: { id: "c", name: "Fox", currNode: "3", lastModified: 1_700_000_000_000 },
      messages: [
        { id: "0", type: "root", role: "system", parent: null, content: "" },
        {
          id: "1",
          role: "user",
          parent: "0",
          content: "Hi",
          timestamp: 1_700_000_000_000,
          extra: [{ type: "TEXT", name: "a.txt", content: "Red." }, { type: "IMAGE", base64Url: image }, {
            type: "AUDIO",
          }],
        },
        { id: "2", role: "assistant", parent: "1", content: "Old" },
        { id: "3", role: "assistant", parent: "1", content: "Hello", reasoningContent: "Hm.", model: "qwen" },
      ],
    };
    const steps = await read("llamacpp", { "export.json": isList ? [chat] : chat });
    expect(chatsOf(steps)).toEqual([{
      title: "Fox",
      system: undefined,
      texts: [
        ["user", [{ type: "text", text: "Hi\n\na.txt:\n\nRed." }, { type: "image_url", image_url: { url: image } }]],
        ["assistant", "Hello"],
      ],
    }]);
    const [one] = steps.filter((step) => step.what === "conversation");
    expect(one!.messages[1]).toMatchObject({ reasoning: "Hm.", variants: [{ content: "Old" }, { content: "Hello" }] });
    expect(notesOf(steps)).toEqual([["other_parts", "AUDIO", 1]]);
  },
);

test("Cherry Studio: blocks of messages, replies of several models, titles and prompts of topics", async () => {
  const assistants = JSON.stringify({ assistants: [{ prompt: "Be calm.", topics: [{ id: "t", name: "Fox" }] }] });
  const steps = await read("cherrystudio", {
    "data.json": {
      version: 5,
      localStorage: { "persist:cherry-studio": JSON.stringify({ assistants, llm: "{}" }) },
      indexedDB: {
        topics: [{
          id: "t",
          messages: [
            { id: "1", role: "user", blocks: ["b1"], createdAt: "2025-01-01T00:00:00Z" },
            { id: "2", role: "assistant", askId: "1", blocks: ["b2", "b3", "b5"], model: { name: "One" } },
            { id: "3", role: "assistant", askId: "1", blocks: ["b4"], model: { name: "Two" } },
          ],
        }],
        message_blocks: [
          { id: "b1", type: "main_text", content: "Hi" },
          { id: "b2", type: "thinking", content: "Hm." },
          { id: "b3", type: "main_text", content: "Hello" },
          { id: "b4", type: "main_text", content: "Hey" },
          { id: "b5", type: "tool", content: {} },
        ],
      },
    },
  });
  expect(chatsOf(steps)).toEqual([
    { title: "Fox", system: "Be calm.", texts: [["user", "Hi"], ["assistant", "Hey"]] },
  ]);
  const [chat] = steps.filter((step) => step.what === "conversation");
  expect(chat!.messages[1]!.variants).toMatchObject([{ content: "Hello", reasoning: "Hm." }, { content: "Hey" }]);
  expect(notesOf(steps)).toEqual([["service_keys_left_out", undefined, 1], ["other_parts", "tool", 1]]);
});

test.each([
  [
    "of instructions",
    { prompt: "A mill.", actions: ["{{[INPUT]}}Hi{{[OUTPUT]}}", "Hello"], savedsettings: { opmode: 4 } },
    [["assistant", "A mill."], ["user", "Hi"], ["assistant", "Hello"]],
  ],
  [
    "of a chat",
    {
      prompt: "\nAnn: Hi",
      actions: ["\nFox: Hello\nthere"],
      savedsettings: { opmode: 3, chatname: "Ann", chatopponent: "Fox" },
    },
    [["user", "Hi"], ["assistant", "Hello\nthere"]],
  ],
  [
    "of an adventure",
    { prompt: "A mill.", actions: ["\n> look\n", "It's old."], savedsettings: { opmode: 2 } },
    [["assistant", "A mill."], ["user", "look"], ["assistant", "It's old."]],
  ],
])("KoboldCpp Lite: a save %s with memory, note and World Info", async (_, story, texts) => {
  const steps = await read("koboldcpp", {
    "save.json": {
      gamestarted: true,
      memory: "Be calm.",
      authorsnote: "It rains.",
      worldinfo: [{ key: "mill, wheel", content: "Old.", comment: "Mill" }],
      ...story,
    },
  });
  expect(chatsOf(steps)).toMatchObject([{ system: "Be calm.", texts }]);
  const [book, chat] = steps;
  expect(book).toMatchObject({ what: "lorebook", book: { entries: [{ keys: ["mill", "wheel"], content: "Old." }] } });
  expect(chat).toMatchObject({ head: { note: { text: "It rains." }, lorebook_ids: [(book as { id: string }).id] } });
});

test("text-generation-webui: the greeting, times and versions of a log", async () => {
  const steps = await read("textgen", {
    "logs/chat/Fox/20240101-10-00-00.json": {
      internal: [["<|BEGIN-VISIBLE-CHAT|>", "Welcome"], ["Hi", "Hello"]],
      visible: [["", "Welcome"], ["Hi", "Hello"]],
      metadata: {
        assistant_1: { timestamp: "2024-01-01 10:00:00", versions: [{ content: "Old" }, { content: "Hello" }] },
      },
    },
  });
  expect(chatsOf(steps)).toEqual([{
    title: "Fox 20240101-10-00-00",
    system: undefined,
    texts: [["assistant", "Welcome"], ["user", "Hi"], ["assistant", "Hello"]],
  }]);
  const [chat] = steps.filter((step) => step.what === "conversation");
  expect(chat!.messages[2]).toMatchObject({ variants: [{ content: "Hello" }, { content: "Old" }] });
});

test.each([
  ["messages", {
    info: { character: { name: "Fox" } },
    histories: {
      histories: [{
        external_id: "h",
        msgs: [{ text: "Hi", src: { name: "Ann", is_human: true } }, {
          text: "Hello",
          src: { name: "Fox", is_human: false },
        }],
      }],
    },
  }],
  ["turns", {
    chat_id: "h",
    character: { name: "Fox" },
    turns: [
      {
        create_time: "2024-01-01T00:00:02Z",
        author: { name: "Fox" },
        primary_candidate_id: "b",
        candidates: [{ candidate_id: "a", raw_content: "Old" }, { candidate_id: "b", raw_content: "Hello" }],
      },
      {
        create_time: "2024-01-01T00:00:01Z",
        author: { is_human: true, name: "Ann" },
        candidates: [{ raw_content: "Hi" }],
      },
    ],
  }],
])("Character.AI: a dump with %s", async (_, dump) => {
  const steps = await read("characterai", { "dump.json": dump });
  expect(chatsOf(steps)).toEqual([
    { title: "Fox", system: undefined, texts: [["user", "Hi"], ["assistant", "Hello"]] },
  ]);
});

test.each(["lmstudio", "jan", "llamacpp", "koboldcpp", "textgen", "characterai"] as const)(
  "a %s file of another kind is refused",
  async (kind) => {
    const file = kind === "jan" ? "thread.json" : "file.json";
    expect(await read(kind, { [file]: '{"title":"x","mapping":{}}' })).toMatchObject([
      { what: "note", level: "refused", code: "no_messages" },
    ]);
  },
);

test("Claude: memories become notes and documents of projects documents; instructions are named", async () => {
  const steps = await read("claude", {
    "conversations.json": [],
    "users.json": [],
    "projects.json": [
      {
        uuid: "p",
        name: "Mill",
        prompt_template: "Be calm.",
        docs: [{ uuid: "d", filename: "a.md", content: "Old." }],
      },
    ],
    "memories.json": [{
      conversations_memory: "Likes foxes.",
      project_memories: { p: "Uses oak." },
      account_uuid: "u",
    }],
  });
  expect(steps).toMatchObject([
    { what: "note", code: "other_files", count: 1 },
    { what: "note", code: "claude_instructions", params: { project: "Mill" } },
    { what: "document", name: "a.md", contentType: "text/plain" },
    { what: "memory", fields: { text: "Likes foxes.", scope: { kind: "everything" } } },
    { what: "memory", fields: { text: "Mill:\nUses oak." } },
  ]);
});

test("Backyard AI: the card with greetings and lore, chats with variants, and what isn't imported", async () => {
  const steps = await read("backyard", {
    "manifest.json": {
      schemaVersion: 1,
      author: { name: "Ann" },
      characters: ["characters/a/character.json"],
      scenarios: ["scenarios/1.json", "scenarios/2.json", "scenarios/3.json"],
    },
    "characters/a/character.json": {
      id: "a",
      name: "Reed",
      displayName: "Reed Fox",
      isNSFW: false,
      persona: "{character} waits for {user}.",
      createdAt: "2026-01-01T00:00:00Z",
      loreItems: [{ key: "mill, water", value: "Old." }],
      images: [{ path: "images/1.png", label: "" }, { path: "images/2.png", label: "" }],
    },
    "characters/a/images/1.png": "image",
    "characters/a/images/2.png": "image",
    "scenarios/1.json": {
      title: "Harbor",
      narrative: "{character} rows.",
      formattingInstructions: "Be calm, {character}.",
      firstMessages: [{ characterID: "a", text: "{character}: Ahoy, {user}!" }],
      exampleMessages: [{ characterID: "a", text: "Hm." }, { characterID: "u", text: "Yes?" }],
      grammar: "root ::= x",
      messages: [
        { type: "human", text: "Hi", createdAt: "2026-01-02T00:00:00Z" },
        {
          type: "ai",
          outputs: [
            { text: "Old", activeTimestamp: "2026-01-02T00:00:01Z" },
            { text: "New", activeTimestamp: "2026-01-02T00:00:09Z" },
          ],
        },
        { type: "telepathy" },
      ],
    },
    "scenarios/2.json": { title: "Storm", narrative: "It rains.", firstMessages: [{ text: "Wet." }], messages: [] },
    "notes.txt": "mine",
  });
  const character = steps.find((step) => step.what === "character")!;
  const { data } = JSON.parse(new TextDecoder().decode(character.file as Uint8Array));
  expect(new TextDecoder().decode(character.avatar)).toBe("image");
  expect(data).toMatchObject({
    name: "Reed Fox",
    nickname: "Reed",
    creator: "Ann",
    description: "{{char}} waits for {{user}}.",
    scenario: "{{char}} rows.",
    system_prompt: "Be calm, {{char}}.",
    first_mes: "{{char}}: Ahoy, {{user}}!",
    alternate_greetings: ["Wet."],
    mes_example: "<START>\n{{char}}: Hm.\n{{user}}: Yes?",
    character_book: { entries: [{ keys: ["mill", "water"], content: "Old." }] },
  });
  const chats = steps.filter((step) => step.what === "conversation");
  expect(chats.map(({ head, messages }) => [head, messages.map(({ role, content }) => [role, content])])).toEqual([[
    { title: "Harbor", participants: [character.id], scenario: "{{char}} rows.", system_prompt: "Be calm, {{char}}." },
    [["assistant", "Reed: Ahoy, {{user}}!"], ["user", "Hi"], ["assistant", "New"]],
  ]]);
  expect(chats[0]!.messages.at(-1)!.variants?.map(({ content }) => content)).toEqual(["New", "Old"]);
  const notes = steps.flatMap((step) =>
    step.what === "note" ? [[step.source, step.code ?? step.reason, step.count]] : []
  );
  expect(notes).toEqual([
    ["scenarios/3.json", "the archive doesn't contain this file", undefined],
    ["characters/a/character.json", "backyard_images", 1],
    ["scenarios/1.json", "other_parts", undefined],
    ["scenarios/1.json", "backyard_sampling", 2],
    ["scenarios/2.json", "backyard_scenario", undefined],
    ["scenarios/1.json", "other_parts", 1],
    ["", "other_files", 1],
  ]);
});
