/** Files of other programs, as folders, zips, backups and single files. They are read in a Worker, so only an end counts. */
import { zipSync } from "fflate";
import { dirname } from "node:path";
import { IMPORT_KINDS, type ImportKind, type ImportStep } from "../../../services/import_export/import_item.ts";
import { addLine, createReport } from "../../../services/import_export/import_report.ts";
import { Sandbox } from "../../../services/platform/sandbox/sandbox.ts";
import { readImport } from "../../../services/import_export/import_reading.ts";
import { agnaiBook, agnaiCharacter, agnaiExport, agnaiFolder } from "../../helpers/files/agnai_files.ts";
import { sillyTavernCard, sillyTavernPng } from "../../helpers/files/cards.ts";
import { picture } from "../../helpers/files/pictures.ts";
import {
  RISU_FORMS,
  risuBackup,
  risuChat,
  risuDatabase,
  risuFolder,
  risuLore,
  risuModule,
  risuPersona,
  risuPreset,
  risuSave,
} from "../../helpers/files/risu_files.ts";
import { tavernFolder } from "../../helpers/files/tavern_folder.ts";
import { joined, jsonText, mutateBytes, mutateJson } from "../mutations.ts";
import type { Random } from "../random.ts";
import { claim, target, unlessRefusedLater } from "../target.ts";

type Files = Record<string, Uint8Array>;

/** What to import. */
interface Import {
  kind: ImportKind;
  /** Of a folder or zip by path; a single one is read as it is unless `isZip`. */
  files: Files;
  isZip: boolean;
  /** The zip, if there is one, as it arrives. */
  packed?: Uint8Array<ArrayBuffer>;
  /** Chats that have to be accounted for, each with a step of its own. */
  chats?: number;
}

/** Of a line in a report as JSON: three texts, each letter escaped. */
const MAX_LINE_CHARS = 10_000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const json = (value: unknown) => encoder.encode(JSON.stringify(value));

const CHATGPT = {
  title: "Evening",
  conversation_id: "c",
  create_time: 1_700_000_000,
  update_time: 1_700_000_009,
  current_node: "3",
  mapping: {
    1: { id: "1", parent: null, children: ["2", "4"], message: null },
    2: {
      id: "2",
      parent: "1",
      children: ["3"],
      message: { author: { role: "user" }, content: { content_type: "text", parts: ["Hi", {}] }, create_time: 1.5 },
    },
    3: {
      id: "3",
      parent: "2",
      children: [],
      message: {
        author: { role: "assistant" },
        content: { content_type: "code", text: "x" },
        recipient: "all",
        metadata: { model_slug: "m" },
      },
    },
    4: { id: "4", parent: "1", children: [], message: { author: { role: "tool" }, content: {} } },
  },
};
const OPENWEBUI = {
  id: "o",
  title: "Evening",
  created_at: 1_700_000_000,
  updated_at: 1_700_000_009,
  chat: {
    params: { system: "Be calm." },
    history: {
      currentId: "b",
      messages: {
        a: { id: "a", parentId: null, childrenIds: ["b"], role: "user", content: "Hi", timestamp: 1_700_000_000 },
        b: {
          id: "b",
          parentId: "a",
          childrenIds: [],
          role: "assistant",
          model: "m",
          files: [{ type: "image", url: "x" }],
          content: '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> Hm.\n</details>\nHello',
        },
      },
    },
  },
};
const CLAUDE = {
  uuid: "c",
  name: "Evening",
  created_at: "2025-01-02T03:04:05.678Z",
  chat_messages: [
    {
      uuid: "1",
      sender: "human",
      text: "Hi",
      attachments: [{ file_name: "a.txt", extracted_content: "x" }],
      files: [{}],
    },
    { uuid: "2", parent_message_uuid: "1", sender: "assistant", content: [{ type: "text", text: "Hello" }] },
  ],
};
const LIBRECHAT = {
  conversationId: "l",
  title: "Evening",
  options: { promptPrefix: "Be calm." },
  messages: [{
    messageId: "1",
    parentMessageId: "00000000-0000-0000-0000-000000000000",
    isCreatedByUser: true,
    text: "Hi",
    children: [{
      messageId: "2",
      parentMessageId: "1",
      content: [{ type: "text", text: { value: "Hello" } }],
      children: [],
    }],
  }],
};
const LOBECHAT = {
  exportType: "sessions",
  state: {
    sessions: [{ id: "s", meta: { title: "Fox" }, config: { systemRole: "Be calm." } }],
    topics: [{ id: "t", sessionId: "s", title: "Evening", createdAt: 1_700_000_000_000 }],
    messages: [
      { id: "1", sessionId: "s", topicId: "t", role: "user", content: "Hi", createdAt: 1_700_000_000_000 },
      {
        id: "2",
        sessionId: "s",
        topicId: "t",
        parentId: "1",
        role: "assistant",
        content: "Hello",
        createdAt: 1_700_000_001_000,
      },
    ],
  },
  version: 7,
};
const LOBE_DATABASE = {
  data: {
    agents: [{ id: "a", title: "Fox", systemRole: "Be calm." }],
    agentsToSessions: [{ agentId: "a", sessionId: "s" }],
    threads: [{ id: "h", sourceMessageId: "1" }],
    topics: [{ id: "t", sessionId: "s", title: "Evening", createdAt: "2026-03-01T10:00:00.000Z" }],
    messages: [
      ...LOBECHAT.state.messages,
      { id: "3", agentId: "a", topicId: "t", threadId: "h", role: "user", content: "Hm", createdAt: null },
    ],
  },
  schemaHash: "x",
};
const CHATBOX = {
  __exported_items: ["conversations"],
  "session:b": {
    id: "b",
    name: "Evening",
    messages: [
      { id: "1", role: "system", contentParts: [{ type: "text", text: "Be calm." }] },
      { id: "2", role: "user", contentParts: [{ type: "text", text: "Hi" }, { type: "image", storageKey: "k" }] },
      { id: "3", role: "assistant", content: "Hello" },
    ],
    messageForksHash: {
      4: { position: 0, lists: [{ messages: [] }, { messages: [{ id: "6", role: "user", content: "Ho" }] }] },
      2: { position: 0, lists: [{ messages: [] }, { messages: [{ id: "4", role: "assistant", content: "Hey" }] }] },
    },
    threads: [{ id: "t", name: "Before", messages: [{ id: "5", role: "user", content: "Hm" }] }],
  },
};
const PARLOR: Files = {
  "parlor-export.json": json({ format: 2, version: "0.1.0" }),
  "personas/p1.json": json({ name: "Ann", description: "A sailor." }),
  "personas/p1.png": picture(1),
  "lorebooks/b1.json": json({ name: "Harbour", scope: "chat", book: { entries: [{ keys: ["pier"], content: "x" }] } }),
  "presets/s1.json": json({ name: "Calm", models: ["m*"], preset: { sampler: { temperature: 0.5 } } }),
  "connections/n1.json": json({ name: "Desk", kind: "openai", base_url: "http://127.0.0.1:8080" }),
  "image_connections/i1.json": json({ name: "Comfy", kind: "comfyui", base_url: "http://127.0.0.1:8188" }),
  "workflows/w1.json": json({ 1: { class_type: "KSampler", inputs: {} } }),
  "voices/v1.json": json({ name: "Ann", format: "wav", createdAtMs: 5 }),
  "voices/v1.wav": encoder.encode("RIFF"),
  "characters/h1.png": sillyTavernPng(sillyTavernCard("Fox")),
  "attachments/boat.png": picture(2),
  "conversations/c1.json": json({
    title: "Evening",
    participants: [{ character_id: "h1" }],
    created_at: "2025-01-02T03:04:00.000Z",
    messages: [{ id: "m1", role: "user", content: "Hi" }, { id: "m2", role: "assistant", content: "Hello" }],
  }),
  "variants/c1.jsonl": encoder.encode('{"message_id":"m2","n":1,"text":{"content":"Hey"}}\n'),
  "settings.json": json({ theme: "dark" }),
};

const LM_STUDIO = {
  name: "Evening",
  createdAt: 1_700_000_000_000,
  messages: [
    { currentlySelected: 0, versions: [{ role: "user", content: [{ type: "text", text: "Hi" }] }] },
    {
      currentlySelected: 0,
      versions: [{ role: "assistant", steps: [{ type: "contentBlock", content: [{ type: "text", text: "Hello" }] }] }],
    },
  ],
};
const LLAMA_CPP = {
  conv: { id: "c", name: "Evening", currNode: "2" },
  messages: [
    { id: "0", type: "root", parent: null },
    { id: "1", role: "user", parent: "0", content: "Hi", extra: [{ type: "TEXT", name: "a", content: "b" }] },
    { id: "2", role: "assistant", parent: "1", content: "<think>Hm.</think>Hello" },
  ],
};
const CHERRY_STUDIO = {
  localStorage: {},
  indexedDB: {
    topics: [{
      id: "t",
      messages: [{ id: "1", role: "user", blocks: ["b"] }, { id: "2", role: "assistant", askId: "1" }],
    }],
    message_blocks: [{ id: "b", type: "main_text", content: "Hi" }],
  },
};
const KOBOLD = {
  gamestarted: true,
  prompt: "A mill.",
  actions: ["{{[INPUT]}}Hi{{[OUTPUT]}}", "Hello"],
  memory: "Be calm.",
  worldinfo: [{ key: "mill", content: "Old." }],
};
const CHARACTER_AI = {
  histories: { histories: [{ external_id: "h", msgs: [{ text: "Hi", src: { is_human: true } }] }] },
};

function backyardArchive(): Record<string, Uint8Array> {
  return {
    "manifest.json": json({ characters: ["characters/a/character.json"], scenarios: ["scenarios/1.json"] }),
    "characters/a/character.json": json({
      id: "a",
      displayName: "Fox",
      persona: "{character}",
      loreItems: [{ key: "a" }],
    }),
    "scenarios/1.json": json({
      firstMessages: [{ characterID: "a", text: "Hi" }],
      messages: [{ type: "human", text: "Hi" }, { type: "ai", outputs: [{ text: "Ahoy" }, { text: "Hello" }] }],
    }),
  };
}

/** A list of chats, some of which are changed. */
function someChats(random: Random, chat: unknown, path: string): Partial<Import> {
  const texts = random.list(
    1 + random.below(4),
    () => jsonText(random, random.chance(0.7) ? mutateJson(random, chat) : chat),
  );
  if (random.chance(0.2)) return { files: { [path]: mutateBytes(random, encoder.encode(`[${texts.join()}]`)) } };
  return { files: { [path]: encoder.encode(`[${texts.join()}]`) }, chats: texts.length };
}

const SAMPLES: Record<ImportKind, (random: Random) => Partial<Import>> = {
  sillytavern: (random) => ({ files: changed(random, tavernFolder()) }),
  tavern: (random) => ({ files: changed(random, { "Evening.jsonl": tavernFolder()["chats/Fox/Evening.jsonl"]! }) }),
  risuai: someRisu,
  agnai: (random) =>
    random.chance(0.5)
      ? { files: changed(random, agnaiFolder()) }
      : { files: changed(random, { "x.json": json(random.pick([agnaiBook, agnaiCharacter, agnaiExport])()) }) },
  chatgpt: (random) => someChats(random, CHATGPT, "conversations.json"),
  openwebui: (random) => someChats(random, OPENWEBUI, "chats.json"),
  claude: (random) => someChats(random, CLAUDE, "conversations.json"),
  librechat: (random) => someChats(random, LIBRECHAT, "chats.json"),
  lobechat: (random) => ({
    files: changed(random, { "lobe.json": json(random.pick([LOBECHAT, LOBE_DATABASE])) }),
  }),
  chatbox: (random) => ({ files: changed(random, { "chatbox.json": json(CHATBOX) }) }),
  lmstudio: (random) => someChats(random, LM_STUDIO, "1.conversation.json"),
  jan: (random) => ({
    files: changed(random, {
      "threads/a/thread.json": json({ id: "a", title: "Evening", assistants: [{ instructions: "Be calm." }] }),
      "threads/a/messages.jsonl": json({ id: "1", role: "user", content: [{ type: "text", text: { value: "Hi" } }] }),
    }),
  }),
  llamacpp: (random) => someChats(random, LLAMA_CPP, "chats.json"),
  cherrystudio: (random) => ({ files: changed(random, { "data.json": json(CHERRY_STUDIO) }) }),
  koboldcpp: (random) => someChats(random, KOBOLD, "save.json"),
  textgen: (random) => someChats(random, { internal: [["Hi", "Hello"]], metadata: {} }, "log.json"),
  characterai: (random) => someChats(random, CHARACTER_AI, "dump.json"),
  backyard: (random) => ({ files: changed(random, backyardArchive()) }),
  parlor: (random) => ({ files: changed(random, PARLOR) }),
};

function someRisu(random: Random): Partial<Import> {
  const way = random.below(5);
  const database = () => mutateJson(random, risuDatabaseJson()) as Record<string, unknown>;
  if (way === 0) return { files: { "b.bin": risuBackup(bareSave(random, database())) } };
  if (way === 1) return { files: { "b.bin": mutateBytes(random, risuBackup(bareSave(random, database()))) } };
  if (way === 2) return { files: changed(random, risuFolder()) };
  if (way === 3) return { files: { "database/database.bin": mutateBytes(random, bareSave(random, database())) } };
  const [path, bytes] = random.pick(
    [
      [
        "m.risum",
        () => risuModule(mutateJson(random, { name: "M", id: "m", lorebook: [risuLore("a", "b")] }) as object),
      ],
      ["p.png", () => risuPersona(mutateJson(random, { name: "Cai", personaPrompt: "A cook." }) as object)],
      [
        "c.json",
        () => encoder.encode(jsonText(random, mutateJson(random, { type: "risuChat", ver: 1, data: risuChat() }))),
      ],
      [
        "l.json",
        () => encoder.encode(jsonText(random, mutateJson(random, { type: "risu", data: [risuLore("a", "b")] }))),
      ],
      ["p.risup", () => mutateBytes(random, PRESET)],
    ] as const,
  );
  try {
    return { files: { [path]: bytes() } };
  } catch {
    return { files: { [path]: new Uint8Array() } }; // too deep to be written
  }
}

let PRESET = new Uint8Array();
const risuDatabaseJson = () => JSON.parse(JSON.stringify(risuDatabase()));

/** A database in one of its forms; the writer itself refuses what is nested too deep. */
function bareSave(random: Random, database: Record<string, unknown>): Uint8Array {
  try {
    return risuSave(database, random.pick(RISU_FORMS));
  } catch {
    return risuSave(risuDatabase(), "plain");
  }
}

/** Files of which some are changed, as JSON where they are, else byte by byte. */
function changed(random: Random, files: Files): Files {
  const found: Files = {};
  for (const [path, bytes] of Object.entries(files)) {
    const way = random.next();
    if (way < 0.5) found[path] = bytes;
    else if (way < 0.55) continue;
    else if (way < 0.6) found[random.pick(["../x", "con.json", "a//b", "__proto__/x.json", `${path}.bak`])] = bytes;
    else found[path] = changedFile(random, path, bytes);
  }
  return found;
}

function changedFile(random: Random, path: string, bytes: Uint8Array): Uint8Array {
  if (!/\.jsonl?$/.test(path) || random.chance(0.15)) return mutateBytes(random, bytes);
  const lines = path.endsWith("l") ? decoder.decode(bytes).split("\n") : [decoder.decode(bytes)];
  const texts = lines.map((line) => {
    if (line === "" || random.chance(0.5)) return line;
    return jsonText(random, mutateJson(random, JSON.parse(line)));
  });
  return encoder.encode(texts.join("\n"));
}

let root: string;
let sandbox: Sandbox;

function packedFiles(files: Import["files"]): Uint8Array<ArrayBuffer> {
  return zipSync(files as Parameters<typeof zipSync>[0], { level: 1 }) as Uint8Array<ArrayBuffer>;
}

async function laidOut({ files, isZip, packed }: Import): Promise<{ path: string; name?: string }> {
  const path = `${root}/import`;
  await Deno.remove(path, { recursive: true }).catch(() => {});
  if (isZip) {
    await Deno.writeFile(path, packed ?? packedFiles(files));
    return { path, name: "import.zip" };
  }
  const entries = Object.entries(files);
  if (entries.length === 1) {
    await Deno.writeFile(path, entries[0]![1]);
    return { path, name: entries[0]![0] };
  }
  for (const [name, bytes] of entries) {
    const place = `${path}/${name.replaceAll("..", "_")}`;
    await Deno.mkdir(dirname(place), { recursive: true }).catch(() => {});
    await Deno.writeFile(place, bytes).catch(() => {}); // a file may be where another needs a folder
  }
  await Deno.mkdir(path, { recursive: true });
  return { path };
}

async function readAll(request: { kind: ImportKind; path: string; name?: string }): Promise<ImportStep[]> {
  return await Array.fromAsync(readImport(sandbox, { ...request, scratch: `${root}/scratch` }));
}

function assertPlain(step: ImportStep): void {
  for (const field of ["source", ...step.what === "note" ? ["reason", "level"] : ["id", "name"]]) {
    const value = (step as unknown as Record<string, unknown>)[field];
    claim(typeof value === "string", () => `The ${field} of a ${step.what} is ${value}`);
  }
  if (step.what === "note") {
    const report = createReport("parlor", true);
    addLine(report, step);
    const size = JSON.stringify(report.lines).length;
    claim(size < MAX_LINE_CHARS, () => `A line of the report has ${size} characters`);
    claim(
      step.reason !== "it cannot be read",
      () => `A defect is reported as "it cannot be read" for "${step.source}"`,
    );
  }
}

const chats = (kind: "chatgpt" | "openwebui", text: string, count: number): Import => ({
  kind,
  files: { [kind === "chatgpt" ? "conversations.json" : "chats.json"]: encoder.encode(text) },
  isZip: false,
  chats: count,
});
const DEEP = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;

export const IMPORTS = target<Import>({
  name: "imports",
  async open() {
    sandbox = new Sandbox();
    root = await Deno.makeTempDir({ prefix: "fuzz-imports-" });
    PRESET = await risuPreset({ name: "Calm", temperature: 80 });
  },
  async close() {
    await sandbox.close();
    await Deno.remove(root, { recursive: true });
  },
  generate(random) {
    const kind = random.pick(IMPORT_KINDS);
    const made = SAMPLES[kind](random);
    const isZip = random.chance(0.4);
    const breaks = isZip && random.chance(0.4);
    const input: Import = { kind, files: {}, isZip, ...made };
    // Packed here, because that takes longer than what is measured.
    if (input.isZip) input.packed = packedFiles(input.files);
    if (!breaks || input.packed === undefined) return input;
    return { ...input, packed: mutateBytes(random, input.packed), chats: undefined };
  },
  async run(made) {
    const place = await laidOut(made);
    const steps = await unlessRefusedLater(() => readAll({ kind: made.kind, ...place }));
    if (steps === undefined) return;
    steps.forEach(assertPlain);
    if (made.chats === undefined) return;
    const seen = new Set(steps.map(({ source }) => source).filter((source) => source.includes("#")));
    claim(seen.size === made.chats, () => `${seen.size} of ${made.chats} chats are in the report`);
  },
  cases: {
    "a chat too deep to be hashed, between two others": () =>
      chats("chatgpt", `[${JSON.stringify(CHATGPT)},{"mapping":{"1":${DEEP}}},${JSON.stringify(CHATGPT)}]`, 3),
    "a picture too deep to be hashed": () =>
      chats("openwebui", `[{"chat":{"messages":[{"role":"user","content":"x","model":${DEEP}}]}},{"id":"b"}]`, 2),
    "thoughts that never end": () =>
      chats(
        "openwebui",
        JSON.stringify([{
          chat: { messages: [{ role: "assistant", content: `<details type="reasoning">${" ".repeat(300_000)}` }] },
        }]),
        1,
      ),
    "a chat of 100,000 messages, each the answer to the last": () => {
      const node = (n: number) => [`${n}`, {
        id: `${n}`,
        parent: n > 0 ? `${n - 1}` : null,
        children: [`${n + 1}`],
        message: { author: { role: "user" }, content: { content_type: "text", parts: ["x"] } },
      }];
      const mapping = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => node(n)));
      return chats("chatgpt", JSON.stringify([{ mapping, current_node: "99999" }]), 1);
    },
    "a message with 30,000 other texts": () => {
      const ids = Array.from({ length: 30_000 }, (_, n) => `c${n}`);
      const message = { author: { role: "user" }, content: { content_type: "text", parts: ["x"] } };
      const mapping = Object.fromEntries([
        ["r", { id: "r", parent: null, children: ids, message: null }],
        ...ids.map((id) => [id, { id, parent: "r", children: [], message }]),
      ]);
      return chats("chatgpt", JSON.stringify([{ mapping, current_node: "c0" }]), 1);
    },
    "a Tavern chat with a line too deep to be hashed": () => ({
      kind: "tavern",
      files: { "a.jsonl": encoder.encode(`{"chat_metadata":{}}\n{"mes":"Hi","extra":${DEEP}}\n{"mes":"Hello"}`) },
      isZip: false,
    }),
    "an Agnai character of 50,000 levels": () => ({
      kind: "agnai",
      files: { "a.json": encoder.encode(`{"kind":"character","name":"Fox","persona":${DEEP}}`) },
      isZip: false,
    }),
    "an Agnai folder with a character of 50,000 levels": () => ({
      kind: "agnai",
      files: {
        "characters.json": encoder.encode(`[{"kind":"character","name":"Fox","persona":${DEEP}}]`),
        "chats.json": encoder.encode("[]"),
      },
      isZip: false,
    }),
    "an Agnai character without a persona and a date": () => ({
      kind: "agnai",
      files: { "characters.json": json([{ kind: "character", name: "Fox" }]), "chats.json": json([]) },
      isZip: false,
    }),
    "a RisuAI database of 50,000 levels": () => ({
      kind: "risuai",
      files: { "database/database.bin": deepPack() },
      isZip: false,
    }),
    "a RisuAI character of 50,000 levels, before another": () => ({
      kind: "risuai",
      files: { "database/database.bin": deepCharacter() },
      isZip: false,
    }),
    "a group that names members of 1 MB": () => ({
      kind: "sillytavern",
      files: {
        "settings.json": json({}),
        "groups/1.json": json({ name: "G", members: ["x".repeat(1_000_000)], chat_id: "g", chats: ["g"] }),
        "group chats/g.jsonl": encoder.encode('{"mes":"Hi"}'),
      },
      isZip: false,
    }),
    "a name of a mood with 300,000 underscores": () => ({
      kind: "risuai",
      files: {
        "a.bin": risuBackup(
          risuSave({
            characters: [{ name: "Fox", chaId: "f", emotionImages: [[`a${"_".repeat(300_000)}b`, "assets/10.png"]] }],
          }, "plain"),
          { "10.png": picture(1) },
        ),
      },
      isZip: false,
    }),
  },
});

/** MessagePack of lists inside each other. */
function deepPack(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(50_001).fill(0x91);
}

/** A database with two characters, of which the first has such lists in it. Its writer would refuse them. */
function deepCharacter(): Uint8Array {
  const text = (value: string) => joined(Uint8Array.of(0xa0 | value.length), encoder.encode(value));
  const fox = joined(Uint8Array.of(0x82), text("name"), text("Fox"), text("globalLore"), deepPack(), Uint8Array.of(1));
  const owl = joined(Uint8Array.of(0x81), text("name"), text("Owl"));
  return joined(Uint8Array.of(0x81), text("characters"), Uint8Array.of(0x92), fox, owl);
}
