import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { ImportedConversation, ImportStep } from "../../../../services/import_export/import_item.ts";
import { readImport } from "../../../../services/import_export/import_reading.ts";
import { Sandbox } from "../../../../services/platform/sandbox/sandbox.ts";
import { picture } from "../../../helpers/files/pictures.ts";
import { tempFolder } from "../../../helpers/files/storage_folder.ts";

const sandbox = new Sandbox();
afterAll(() => sandbox.close());

/** A message of the export. */
interface Message {
  role: string;
  content: object;
  recipient?: string;
  metadata?: object;
}

const said = (text: string) => ({ content_type: "text", parts: [text] });

/** Returns a conversation whose messages follow one another. */
function chatOf(title: string, messages: readonly Message[]): object {
  const ids = ["root", ...messages.map((_, n) => `n${n}`)];
  const nodes = messages.map(({ role, content, recipient = "all", metadata = {} }, n) => ({
    id: `n${n}`,
    parent: ids[n],
    children: ids.slice(n + 2, n + 3),
    message: { id: `n${n}`, author: { role }, create_time: 1_760_000_000 + n, content, recipient, metadata },
  }));
  const mapping = {
    root: { id: "root", children: ["n0"] },
    ...Object.fromEntries(nodes.map((node) => [node.id, node])),
  };
  return { title, conversation_id: title, mapping, current_node: ids.at(-1) };
}

/** Reads an export of files. */
async function read(files: Record<string, string | Uint8Array>): Promise<ImportStep[]> {
  await using folder = await tempFolder();
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder.path, "export", name);
    await Deno.mkdir(dirname(path), { recursive: true });
    await Deno.writeFile(path, typeof content === "string" ? new TextEncoder().encode(content) : content);
  }
  const request = {
    kind: "chatgpt",
    path: join(folder.path, "export"),
    scratch: join(folder.path, "scratch"),
  } as const;
  return await Array.fromAsync(readImport(sandbox, request));
}

/** Reads one conversation. */
async function readOne(messages: readonly Message[], files: Record<string, Uint8Array> = {}) {
  const steps = await read({ "conversations.json": JSON.stringify([chatOf("A", messages)]), ...files });
  const conversation = steps.find((step): step is ImportedConversation => step.what === "conversation");
  const notes = steps.flatMap((step) => step.what === "note" ? [[step.code, step.count, step.params?.kinds]] : []);
  return { messages: conversation?.messages ?? [], notes, steps };
}

test("imports what was said in a voice chat, and says that the recordings aren't", async () => {
  const spoken = (text: string) => ({
    content_type: "multimodal_text",
    parts: [{ content_type: "audio_transcription", text }, { content_type: "audio_asset_pointer", format: "wav" }],
  });
  const { messages, notes } = await readOne([
    { role: "user", content: spoken("Good morning") },
    { role: "assistant", content: spoken("Did you sleep well?") },
  ]);
  expect(messages.map(({ role, content }) => [role, content])).toEqual([
    ["user", "Good morning"],
    ["assistant", "Did you sleep well?"],
  ]);
  expect(notes).toEqual([["chatgpt_audio", 2, undefined]]);
});

test("imports a canvas as a titled block, with each of its versions", async () => {
  const canvas = (recipient: string, json: object): Message => ({
    role: "assistant",
    recipient,
    content: { content_type: "code", language: "json", text: JSON.stringify(json) },
  });
  const { messages, notes } = await readOne([
    { role: "user", content: said("Write a letter") },
    canvas("canmore.create_textdoc", { name: "Letter", type: "document", content: "Dear neighbors,\nhello." }),
    { role: "tool", content: said("Successfully created") },
    canvas("canmore.update_textdoc", { updates: [{ pattern: "hello\\.", replacement: "good day." }] }),
    canvas("canmore.update_textdoc", { updates: [{ pattern: ".*", replacement: "Dear $& friends" }] }),
    canvas("canmore.update_textdoc", {
      updates: [
        { pattern: "(?P<who>\\w+) (\\S+) friends", replacement: "\\g<who> \\2 neighbors", multiple: true },
        { pattern: "(?P<x>\\w)(?(x)y|z)", replacement: "x" },
      ],
    }),
    // Takes longer than any limit, and ends neither the import nor the edit after it.
    canvas("canmore.create_textdoc", { name: "Slow", type: "document", content: `${"a".repeat(60)}!` }),
    canvas("canmore.update_textdoc", {
      updates: [{ pattern: "(a|a)+$", replacement: "x" }, { pattern: "^a{60}", replacement: "b" }],
    }),
    canvas("canmore.create_textdoc", { name: "Tool", type: "code/python", content: "print('```')" }),
  ]);
  expect(messages.slice(1).map(({ content }) => content)).toEqual([
    "**Letter**\n\n```markdown\nDear neighbors,\nhello.\n```",
    "**Letter**\n\n```markdown\nDear neighbors,\ngood day.\n```",
    "**Letter**\n\n```markdown\nDear $& friends\n```",
    "**Letter**\n\n```markdown\nDear $& neighbors\n```",
    `**Slow**\n\n\`\`\`markdown\n${"a".repeat(60)}!\n\`\`\``,
    "**Slow**\n\n```markdown\nb!\n```",
    "**Tool**\n\n````python\nprint('```')\n````",
  ]);
  expect(notes).toEqual([["chatgpt_canvas_edits", 2, "(?P<x>\\w)(?(x)y|z), (a|a)+$"]]);
});

test("thoughts, code and its output are the reasoning of the reply after them", async () => {
  const { messages } = await readOne([
    { role: "user", content: said("How many?") },
    {
      role: "assistant",
      content: { content_type: "thoughts", thoughts: [{ summary: "Counting", content: "One by one." }] },
    },
    {
      role: "assistant",
      recipient: "python",
      content: { content_type: "code", language: "python", text: "print(3)" },
    },
    { role: "tool", content: { content_type: "execution_output", text: "3" } },
    { role: "assistant", content: said("Three.") },
    { role: "user", content: said("And now?") },
    { role: "assistant", content: said("Still three.") },
  ]);
  expect(messages.map(({ content, reasoning }) => [content, reasoning])).toEqual([
    ["How many?", undefined],
    ["Three.", "**Counting**\n\nOne by one.\n\n```python\nprint(3)\n```\n\n```\n3\n```"],
    ["And now?", undefined],
    ["Still three.", undefined],
  ]);
});

test("imports images that are in the export, of the user and of the model, and counts those that are missing", async () => {
  const png = picture();
  const image = (pointer: string) => ({ content_type: "image_asset_pointer", asset_pointer: pointer });
  const { messages, notes, steps } = await readOne([
    { role: "user", content: { content_type: "multimodal_text", parts: [image("file-service://file-AbC1"), "What?"] } },
    { role: "assistant", content: said("A pixel.") },
    { role: "tool", content: { content_type: "multimodal_text", parts: [image("sediment://file_00ff")] } },
    {
      role: "user",
      content: { content_type: "multimodal_text", parts: [image("file-service://file-Gone"), "And this?"] },
    },
  ], { "file-AbC1-photo.png": png, "dalle-generations/file_00ff-b.png": png, "notes.txt": png });
  const attachments = steps.filter((step) => step.what === "attachment");
  expect(attachments.map(({ source }) => source)).toEqual(["file-AbC1-photo.png", "dalle-generations/file_00ff-b.png"]);
  const url = (n: number) => ({ type: "image_url", image_url: { url: `/api/attachments/${attachments[n]!.id}` } });
  expect(messages.map(({ role, content }) => [role, content])).toEqual([
    ["user", [url(0), { type: "text", text: "What?" }]],
    ["assistant", "A pixel."],
    ["assistant", [url(1)]],
    ["user", "And this?"],
  ]);
  expect(notes).toEqual([["chatgpt_images", 1, undefined], ["other_files", 1, undefined]]);
});

test("replaces the marks of citations by links, and leaves out those without", async () => {
  const mark = "\ue200cite\ue202turn0search0\ue201";
  const { messages, notes } = await readOne([
    { role: "user", content: said("Who?") },
    {
      role: "assistant",
      content: said(`Ann ${mark} and Bo \ue200cite\ue202turn9\ue201.`),
      metadata: {
        content_references: [{ matched_text: mark, items: [{ title: "A [page]", url: "https://example.org/a_(b)" }] }],
      },
    },
    {
      role: "assistant",
      content: said("Old 【4†source】 mark"),
      metadata: { citations: [{ start_ix: 4, end_ix: 14, metadata: { title: "T", url: "https://example.org" } }] },
    },
  ]);
  expect(messages.slice(1).map(({ content }) => content)).toEqual([
    "Ann ([A page](https://example.org/a_%28b%29)) and Bo .",
    "Old ([T](https://example.org)) mark",
  ]);
  expect(notes).toEqual([["chatgpt_citations", 1, undefined]]);
});

test("names messages and parts of kinds that Parlor doesn't know", async () => {
  const { messages, notes } = await readOne([
    { role: "user", content: { content_type: "multimodal_text", parts: ["Look", { content_type: "hologram" }] } },
    { role: "assistant", content: { content_type: "interpretive_dance", steps: 3 } },
    {
      role: "assistant",
      content: said("Nice."),
      metadata: { attachments: [{ name: "a.pdf", mime_type: "application/pdf" }] },
    },
  ]);
  expect(messages.map(({ content }) => content)).toEqual(["Look", "Nice."]);
  expect(notes).toEqual([
    ["chatgpt_unknown", 2, "hologram, interpretive_dance"],
    ["chatgpt_files", 1, "a.pdf"],
  ]);
});

test.each(["conversations (1).json", "conversations-002.json", "my chats.json"])("recognizes %s", async (name) => {
  const chat = chatOf("Renamed", [{ role: "user", content: said("Hi") }]);
  const steps = await read({ [name]: JSON.stringify([chat]), "user.json": "{}" });
  expect(steps.filter((step) => step.what === "conversation").map((step) => step.name)).toEqual(["Renamed"]);
});
