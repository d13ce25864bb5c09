import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { checkFiles } from "../../../services/integrity/file_check.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { cardChunk, END, header, pixels, plainPng, pngOf } from "../../helpers/files/cards.ts";

const KEYS = 20_000;
const extensions = Object.fromEntries(Array.from({ length: KEYS }, (_, n) => [`k${n}`, n]));
const entries = Array.from({ length: 2_000 }, (_, n) => ({ keys: [`fox ${n}`], content: `Red ${n}.`, extensions: {} }));
const card = {
  spec: "chara_card_v3",
  spec_version: "3.0",
  data: { name: "Fox", description: "Red.", first_mes: "Hi.", extensions, character_book: { entries } },
};
const png = pngOf(header(8, 12), cardChunk("ccv3", card), pixels(8, 12), END);
/** What the serving thread may parse or write at once: a piece of a list, or a small card. */
const MAX_CHARS = 100_000;

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp({ config: { builtinAppInstalled: true } });
});
afterEach(() => app[Symbol.asyncDispose]());

/** Runs something, and returns the lengths of all long JSON that this thread has parsed or written meanwhile. */
async function listLongJson(run: () => Promise<void>): Promise<number[]> {
  const lengths: number[] = [];
  const { parse, stringify } = JSON;
  const note = (text: unknown) => {
    if (typeof text === "string" && text.length > MAX_CHARS) lengths.push(text.length);
  };
  vi.spyOn(JSON, "parse").mockImplementation((text, ...more) => {
    note(text);
    return parse(text, ...more);
  });
  vi.spyOn(JSON, "stringify").mockImplementation((...args: Parameters<typeof stringify>) => {
    const text = stringify(...args);
    note(text);
    return text;
  });
  try {
    await run();
  } finally {
    vi.restoreAllMocks();
  }
  return lengths;
}

const read = async (response: Response, status = 200) => {
  const text = await response.text();
  expect([response.status, text.slice(0, 300)]).toEqual([status, expect.anything()]);
  return text;
};
const upload = (path: string, file: Uint8Array<ArrayBuffer>) => {
  const form = new FormData();
  form.append("file", new Blob([file]), "fox.png");
  return app.request("POST", path, form);
};
const image = { headers: { "content-type": "image/png" } };
const idIn = (text: string) => /"id":"([^"]+)"/.exec(text)![1]!;

test("a card of very many keys is imported, shown, changed, exported, deleted and restored without parsing it here", {
  tags: ["J01"],
}, async () => {
  const texts: Record<string, string> = {};
  const long = await listLongJson(async () => {
    texts.imported = await read(await upload("/api/characters/import", png), 201);
    const path = `/api/characters/${idIn(texts.imported)}`;
    texts.read = await read(await app.get(path));
    texts.list = await read(await app.get("/api/characters?view=full"));
    for (const format of ["json", "png", "charx"]) {
      texts[format] = await read(await app.get(`${path}/export?format=${format}`));
    }
    texts.avatar = await read(await app.put(`${path}/avatar`, plainPng(9, 9), image));
    texts.version = await read(await app.get(`${path}/versions/1`));
    texts.back = await read(await app.request("POST", `${path}/versions/1/restore`));
    await read(await app.request("DELETE", path), 204);
    const { items } = { items: await read(await app.get("/api/trash")) };
    await read(await app.request("POST", `/api/trash/${idIn(items)}/restore`), 204);
    texts.again = await read(await app.get(path));
  });
  expect(long).toEqual([]);
  const kept = { name: "Fox", extensions, character_book: { entries: { length: 2_000 } } };
  for (const name of ["imported", "read", "avatar", "version", "back", "again"]) {
    expect(JSON.parse(texts[name]!)).toMatchObject({ card: { data: kept } });
  }
  expect(JSON.parse(texts.list!)).toMatchObject([{ name: "Fox", card: { data: kept } }]);
  expect(JSON.parse(texts.json!)).toMatchObject({ data: kept });
});

test("a persona's card of very many keys is imported, listed, changed and exported without parsing it here", async () => {
  const own = { ...card, data: { ...card.data, extensions: { ...extensions, "parlor/persona": { version: 1 } } } };
  const file = pngOf(header(8, 12), cardChunk("chara", own), pixels(8, 12), END);
  let exported = "";
  const long = await listLongJson(async () => {
    const path = `/api/personas/${idIn(await read(await upload("/api/personas/import", file), 201))}`;
    await read(await app.put(path, { name: "Vixen", description: "Redder." }));
    await read(await app.put(`${path}/avatar`, plainPng(9, 9), image));
    await read(await app.get("/api/personas"));
    exported = await read(await app.get(`${path}/export`));
  });
  expect(long).toEqual([]);
  expect(exported.length).toBeGreaterThan(KEYS * 8);
});

test("a pass over the files of a large card doesn't parse it here", async () => {
  await Deno.writeFile(`${app.dataDir}/characters/fox.png`, png);
  await Deno.writeTextFile(`${app.dataDir}/characters/broken.json`, JSON.stringify(card).slice(0, -1));
  const found: Record<string, boolean> = {};
  const place = { dataDir: app.dataDir, sealer: undefined as never, database: { all: () => [] } };
  const long = await listLongJson(async () => {
    for (const path of ["characters/fox", "characters/broken"]) {
      for await (const { isReadable } of checkFiles(place, path)) found[path] = isReadable;
    }
  });
  expect([long, found]).toEqual([[], { "characters/fox": true, "characters/broken": false }]);
});
