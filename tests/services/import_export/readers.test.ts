import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { importReason } from "../../../services/import_export/import_reasons.ts";
import { addLine, newReport } from "../../../services/import_export/import_report.ts";
import type { ImportKind, ImportStep } from "../../../services/import_export/import_item.ts";
import { openSource } from "../../../services/import_export/import_source.ts";
import { READERS } from "../../../services/import_export/readers.ts";
import { Scratch } from "../../../services/import_export/scratch_folder.ts";

let folder: string;
beforeEach(async () => {
  folder = await Deno.makeTempDir();
});
afterEach(() => Deno.remove(folder, { recursive: true }));

/** Reads a folder of files. */
async function read(kind: ImportKind, files: Record<string, string>): Promise<ImportStep[]> {
  const root = join(folder, "import");
  await Deno.mkdir(root);
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(join(root, name), text);
  const source = await openSource(root);
  return await Array.fromAsync(READERS[kind](source, new Scratch(join(folder, "scratch"))));
}

const levels = (count: number) => `${'{"a":'.repeat(count)}1${"}".repeat(count)}`;
const chat = (id: string, content: string) =>
  JSON.stringify({ id, chat: { messages: [{ role: "assistant", content }] } });

test("a chat that is nested too deep is refused alone", async () => {
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
])("reasoning %s in an Open WebUI message is told from its text", async (_, said, content, reasoning) => {
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

test("an Agnai folder that is nested too deep is refused with a reason", async () => {
  const files = { "characters.json": `[{"name":"Fox","persona":${levels(50_000)}}]`, "chats.json": "[]" };
  await expect(read("agnai", files)).rejects.toMatchObject({
    code: "unprocessable",
    message: `Can't import "characters.json": it is nested deeper than 100 levels`,
  });
});

test("a line of a report holds 500 characters of a foreign name at most", () => {
  const report = newReport("sillytavern", true);
  const reason = importReason("members_missing", { cards: "x".repeat(1_000_000) });
  addLine(report, { level: "changed", source: "groups/1.json", ...reason });
  expect(report.lines[0]).toMatchObject({ code: "members_missing", params: { cards: "x".repeat(500) } });
});
