import { afterEach, beforeEach, expect, test } from "vitest";
import { checkFiles } from "../../../services/integrity/file_check.ts";
import { listLongJson } from "../../helpers/app/long_json.ts";
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
let app: TestApp;
beforeEach(async () => {
  app = await openTestApp({ config: { builtinAppInstalled: true } });
});
afterEach(() => app[Symbol.asyncDispose]());

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

const json = { headers: { "content-type": "application/json" } };

test("a card of very many keys is created and saved by PUT without parsing it here", async () => {
  const [bare, wrapped] = [card, { card, documents: [], ledger: [] }].map((body) => JSON.stringify(body));
  const texts: string[] = [];
  const long = await listLongJson(async () => {
    texts.push(await read(await app.request("PUT", "/api/characters/fox", bare, json), 201));
    texts.push(await read(await app.request("PUT", "/api/characters/fox", wrapped, json)));
    await read(await app.put("/api/characters/fox/avatar", plainPng(9, 9), image));
    texts.push(await read(await app.request("PUT", "/api/characters/fox", wrapped, json)));
  });
  expect(long).toEqual([]);
  for (const text of texts) {
    const kept = { name: "Fox", extensions, character_book: { entries: { length: 2_000 } } };
    expect(JSON.parse(text)).toMatchObject({ card: { data: kept }, ledger: [{ kind: "program_data" }] });
  }
});

const named = { name: "Fox", description: "Red.", first_mes: "Hi." };
const nest = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

const BODIES: [string, string | Uint8Array<ArrayBuffer>, number][] = [
  ["a card alone", JSON.stringify(named), 200],
  ["a card with documents", JSON.stringify({ card: named, documents: null }), 200],
  ["a card with a ledger", JSON.stringify({ card: { ...named, extensions: { own: 1 }, odd: "{{odd}}" } }), 200],
  ["a field named card next to data", JSON.stringify({ card: {}, data: named }), 200],
  ["no card", JSON.stringify({ card: {} }), 422],
  ["another kind of file", JSON.stringify({ card: { spec: "other", data: named } }), 422],
  ["a number without end", '{"card":{"name":"Fox","description":"","scale":1e999}}', 422],
  ["a card of 101 levels", `{"card":{"name":"Fox","description":"","deep":${nest(101)}}}`, 422],
  ["documents that are none", JSON.stringify({ card: {}, documents: "all" }), 400],
  ["invalid documents", JSON.stringify({ card: named, documents: [{ id: "a b", use: "pages" }, 1, { id: [] }] }), 400],
  [
    "too many documents",
    JSON.stringify({ card: named, documents: Array.from({ length: 300 }, () => ({ id: "a" })) }),
    400,
  ],
  ["a list", "[1]", 400],
  ["null", "null", 400],
  ["half of the text", '{"card":{"name":"Fox"', 400],
  ["501 levels", nest(501), 400],
  ["text that isn't UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), 400],
];

test("a long body is answered like a short one, whatever is wrong with it", async () => {
  await read(await app.put("/api/characters/fox", named), 201);
  const spaces = new Uint8Array(70_000).fill(0x20);
  const put = async (name: string, ...parts: BlobPart[]) => {
    const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
    const response = await app.request("PUT", "/api/characters/fox", bytes, json);
    const { updated_at: _, error, ...rest } = await response.json();
    return [name, response.status, { ...rest, ...error, request_id: "" }, response.headers.get("etag")];
  };
  for (const [name, body, status] of BODIES) {
    const short = await put(name, body);
    expect(short.slice(0, 2)).toEqual([name, status]);
    expect(await put(name, body, spaces)).toEqual(short);
  }
});

test("a long card is saved only over the version that its client knows, and the one before can be restored", async () => {
  const saved = await app.put("/api/characters/fox", named);
  const body = JSON.stringify({ ...named, tags: ["t".repeat(70_000)] });
  const send = (etag: string) =>
    app.request("PUT", "/api/characters/fox", body, { headers: { ...json.headers, "if-match": etag } });
  await read(await send('"other"'), 412);
  const etag = saved.headers.get("etag")!;
  const changed = await send(etag);
  await read(changed);
  await read(await send(etag), 412);
  expect((await app.get("/api/characters/fox")).headers.get("etag")).toBe(changed.headers.get("etag"));
  await read(await app.request("POST", "/api/characters/fox/versions/1/restore"));
  expect((await app.get("/api/characters/fox")).headers.get("etag")).toBe(etag);
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
