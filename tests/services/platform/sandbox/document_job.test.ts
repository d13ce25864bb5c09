/** Large files of lorebooks and presets: neither they nor what is stored of them is parsed or written at once. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseLorebookFile } from "../../../../services/lorebooks/lorebook_file.ts";
import { parsePresetFile } from "../../../../services/presets/sillytavern.ts";
import { listLongJson } from "../../../helpers/app/long_json.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";

const TEXT = "The fox is red. ".repeat(12);
const entries = Object.fromEntries(
  Array.from({ length: 3_000 }, (_, n) => [n, { uid: n, key: [`fox ${n}`], content: TEXT, order: n, odd: { n } }]),
);
const prompts = Array.from(
  { length: 1_500 },
  (_, n) => ({ identifier: `p${n}`, role: "system", content: TEXT, own: n }),
);
const FILES = {
  lorebooks: { name: "Woods", scan_depth: 4, entries },
  presets: { name: "Woods", temperature: 0.5, prompts, prompt_order: [], wi_format: "{0}", extra_body: { a: 1 } },
};
const encode = (json: unknown) => new TextEncoder().encode(JSON.stringify(json));
const KINDS = ["lorebooks", "presets"] as const;

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

async function upload(kind: string, file: Uint8Array<ArrayBuffer>): Promise<{ status: number; text: string }> {
  const form = new FormData();
  form.append("file", new Blob([file]), "file.json");
  const response = await app.post(`/api/${kind}/import`, form);
  return { status: response.status, text: await response.text() };
}

test.each(KINDS)(
  "a large file of %s is imported, stored and sent without parsing or writing it at once",
  async (kind) => {
    const file = encode(FILES[kind]);
    const texts: string[] = [];
    const read = async () => {
      const id = /"id":"([^"]+)"/.exec(texts[0]!)![1]!;
      texts.push(await (await app.get(`/api/${kind}/${id}`)).text());
    };
    const long = await listLongJson(async () => {
      const { status, text } = await upload(kind, file);
      expect([status, text.slice(0, 200)]).toEqual([201, expect.anything()]);
      texts.push(text);
      await read();
    });
    await app.restart();
    long.push(...await listLongJson(read));
    expect(long).toEqual([]);
    const expected = kind === "lorebooks" ? { book: parseLorebookFile(file).book } : parsePresetFile(file).preset;
    for (const text of texts) expect(JSON.parse(text)).toMatchObject({ name: "Woods", ...expected });
    expect(new Set(texts).size).toBe(1);
  },
);

const many = Object.fromEntries(Array.from({ length: 21_000 }, (_, n) => [`k${n}`, n]));

test.each<[(typeof KINDS)[number], unknown]>([
  ["lorebooks", { entries: [{ keys: ["fox"], content: "Red.", extensions: many }] }],
  ["lorebooks", { entries: [], extensions: { own: many } }],
  ["presets", { temperature: 1, prompts: [{ identifier: "main", own: many }] }],
  ["presets", { temperature: 1, own: many }],
])("a file of %s with more fields in one part than any has is refused, without parsing it here", async (kind, json) => {
  const file = encode(json);
  let refused = "";
  const long = await listLongJson(async () => {
    const { status, text } = await upload(kind, file);
    expect(status).toBe(422);
    refused = text;
  });
  expect(long).toEqual([]);
  expect(JSON.parse(refused).error.message).toContain("one of its parts has too many fields");
});

test.each(KINDS)("a large file that has no %s is refused like a small one", async (kind) => {
  const spaces = new Uint8Array(70_000).fill(0x20);
  const message = async (...parts: BlobPart[]) => {
    const { status, text } = await upload(kind, new Uint8Array(await new Blob(parts).arrayBuffer()));
    return [status, JSON.parse(text).error.message];
  };
  for (const file of ["{", "[]", '{"own":1}', '{"entries":[],"prompts":[],"deep":1e999}', Uint8Array.of(0xff)]) {
    const short = await message(file);
    expect([file, short]).toEqual([file, [422, expect.any(String)]]);
    expect([file, await message(file, spaces)]).toEqual([file, short]);
  }
});
