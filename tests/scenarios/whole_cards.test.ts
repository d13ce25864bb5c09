import { Buffer } from "node:buffer";
import { strFromU8, unzipSync } from "fflate";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  cardChunk,
  cardUnder,
  chunksOf,
  END,
  header,
  pixels,
  plainPng,
  pngOf,
  type RawChunk,
} from "../helpers/files/cards.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
const LIMIT = 300_000;
beforeEach(async () => {
  app = await openTestApp({ config: { builtinAppInstalled: true, maxUploadBodyBytes: LIMIT } });
});
afterEach(() => app[Symbol.asyncDispose]());

const text = (keyword: string, value: string): RawChunk => ["tEXt", Buffer.from(`${keyword}\0${value}`, "latin1")];
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
const JOY = plainPng(4, 4);
const THEME = new Uint8Array([0x49, 0x44, 0x33, 1, 2, 3]);
const card = {
  spec: "chara_card_v3",
  spec_version: "3.0",
  data: {
    name: "Fox",
    description: "d",
    extensions: { risuai: { additionalAssets: [["theme", "__asset:1", "mp3"]] } },
    assets: [
      { type: "icon", uri: "ccdefault:", name: "main", ext: "png" },
      { type: "emotion", uri: "__asset:0", name: "joy", ext: "png" },
      { type: "x_theme", uri: "__asset:1", name: "theme", ext: "mp3" },
    ],
  },
};
/** A card as RisuAI exports it: an animated image with a color profile and text chunks. */
const risuPng = () =>
  pngOf(
    header(8, 12),
    ["pHYs", new Uint8Array([0, 0, 11, 19, 0, 0, 11, 19, 1])],
    text("Software", "a painting program"),
    text("parameters", "1fox, masterpiece"),
    text("chara-ext-asset_:0", base64(JOY)),
    text("chara-ext-asset_:1", base64(THEME)),
    text("vendor-notes", "of another program"),
    ["prVt", new Uint8Array([1, 2, 3])],
    cardChunk("ccv3", card),
    pixels(8, 12),
    END,
  );
const json = async (path: string) => await (await app.get(path)).json();
const bytes = async (path: string) => new Uint8Array(await (await app.get(path)).arrayBuffer());
async function importCard(file: Uint8Array<ArrayBuffer>, path = "/api/characters/import"): Promise<Response> {
  const form = new FormData();
  form.append("file", new Blob([file]), "card.png");
  return await app.post(path, form);
}
const idOf = async (answer: Response) => (await answer.json()).id as string;
const setAvatar = (id: string, png: Uint8Array<ArrayBuffer>) =>
  app.put(`/api/characters/${id}/avatar`, png, { headers: { "content-type": "image/png" } });
const named = (png: Uint8Array) =>
  chunksOf(png).map(({ type, text }) => type === "tEXt" ? text.slice(0, text.indexOf("\0")) : type);

test("a new image keeps the files and other programs' data in the PNG, and drops the description of the old image", async () => {
  const imported = await importCard(risuPng());
  const character = await imported.json();
  expect(character.has_assets).toBe(true);
  const other = pngOf(
    header(20, 30),
    text("parameters", "1owl"),
    text("chara-ext-asset_:0", "bm90IG91cnM="),
    cardChunk("chara", { name: "Owl", description: "another card" }),
    pixels(20, 30),
    END,
  );
  const answer = await setAvatar(character.id, other);
  expect(await answer.json()).toMatchObject({ has_assets: true, name: "Fox" });
  const png = await bytes(`/api/characters/${character.id}/avatar`);
  expect(named(png).sort()).toEqual(
    [
      "IDAT",
      "IEND",
      "IHDR",
      "ccv3",
      "chara",
      "chara-ext-asset_:0",
      "chara-ext-asset_:1",
      "parameters",
      "prVt",
      "vendor-notes",
    ],
  );
  const texts = chunksOf(png).map((chunk) => chunk.text);
  expect(texts).toContain(`chara-ext-asset_:0\0${base64(JOY)}`);
  expect(texts).toContain("parameters\x001owl");
  expect(new DataView(png.buffer).getUint32(16)).toBe(20);
  expect(await json(`/api/characters/${character.id}`)).toMatchObject({ has_assets: true });
});

test("a CHARX export includes the files in the PNG, under the names in its card", async () => {
  const id = await idOf(await importCard(risuPng()));
  const files = unzipSync(await bytes(`/api/characters/${id}/export?format=charx`));
  const { data } = JSON.parse(strFromU8(files["card.json"]!));
  const [icon, joy, theme] = data.assets.map(({ uri }: { uri: string }) => uri.replace("embeded://", ""));
  expect(files[joy]).toEqual(JOY);
  expect(files[theme]).toEqual(THEME);
  expect(joy).toBe("assets/emotion/images/0.png");
  expect(theme).toBe("assets/x_theme/other/1.mp3");
  expect(data.extensions.risuai.additionalAssets).toEqual([["theme", `embeded://${theme}`, "mp3"]]);
  expect(named(files[icon]!)).not.toContain("chara-ext-asset_:0");
  const again = await importCard(await bytes(`/api/characters/${id}/export?format=charx`));
  expect(await again.json()).toMatchObject({ name: "Fox", has_assets: true });
  expect(named(await bytes(`/api/characters/${id}/export?format=png`))).toContain("chara-ext-asset_:1");
});

test("a file with a path of the V3 specification keeps it, and none is outside the CHARX", async () => {
  const png = pngOf(
    header(8, 12),
    text("chara-ext-asset_:assets/emotion/images/joy.png", base64(JOY)),
    text("chara-ext-asset_:../../evil.png", base64(JOY)),
    text("chara-ext-asset_:card.json", base64(THEME)),
    cardChunk("ccv3", card),
    pixels(8, 12),
    END,
  );
  const id = await idOf(await importCard(png));
  const files = unzipSync(await bytes(`/api/characters/${id}/export?format=charx`));
  expect(Object.keys(files).sort()).toEqual([
    "assets/emotion/images/joy.png",
    "assets/icon/images/main.png",
    "assets/other/images/_evil_png.png",
    "card-2.json",
    "card.json",
  ]);
  expect(JSON.parse(strFromU8(files["card.json"]!)).data.name).toBe("Fox");
});

test("fields next to data that only the V2 copy has survive imports, edits and new images", async () => {
  const v2 = { ...card, spec: "chara_card_v2", spec_version: "2.0", create_date: "2024-1-1", fav: true, name: "Stale" };
  const file = pngOf(header(8, 12), cardChunk("chara", v2), cardChunk("ccv3", { ...card, own: 1 }), pixels(8, 12), END);
  const id = await idOf(await importCard(file));
  await Deno.writeFile(`${app.dataDir}/characters/dropped.png`, file);
  await expect.poll(async () => (await app.get("/api/characters/dropped")).status).toBe(200);
  for (const one of [id, "dropped"]) {
    const { card: read } = await json(`/api/characters/${one}`);
    const edited = { ...read, data: { ...read.data, description: "edited" } };
    expect((await app.put(`/api/characters/${one}`, { card: edited })).status).toBe(200);
    await setAvatar(one, plainPng(20, 30));
    const png = await bytes(`/api/characters/${one}/avatar`);
    expect(cardUnder(png, "chara"), one).toMatchObject({
      spec: "chara_card_v2",
      create_date: "2024-1-1",
      fav: true,
      name: "Fox",
      own: 1,
      data: { description: "edited" },
    });
    expect(cardUnder(png, "ccv3"), one).toMatchObject({ own: 1, data: { description: "edited" } });
  }
});

const WARNING = "larger_than_import_limit";
const warningOf = async (path: string) => {
  const answer = await app.get(path);
  return { warning: answer.headers.get("x-parlor-warning"), file: new Uint8Array(await answer.arrayBuffer()) };
};

test("an export of exactly the import limit can be imported again; a larger one says so and is rejected", async () => {
  const make = async (descriptionBytes: number) => {
    const body = { name: "Fox", description: "x".repeat(descriptionBytes) };
    await app.put("/api/characters/fox", { card: { ...card, data: { ...card.data, ...body } } });
    return await warningOf("/api/characters/fox/export?format=png");
  };
  await app.put("/api/characters/fox", { card });
  await setAvatar("fox", plainPng());
  // Both copies are base64: about 2.7 bytes per byte of the card.
  let descriptionBytes = 90_000;
  let made = await make(descriptionBytes);
  while (made.file.length <= LIMIT) {
    const small = made;
    expect(small.warning).toBeNull();
    expect((await importCard(small.file)).status).toBe(201);
    descriptionBytes += Math.max(12, Math.floor((LIMIT - small.file.length) / 2.8));
    made = await make(descriptionBytes);
  }
  expect(made.warning).toBe(WARNING);
  expect((await importCard(made.file)).status).toBe(413);
  expect((await warningOf("/api/characters/fox/export?format=json")).warning).toBeNull();
  expect((await warningOf("/api/characters/fox/export?format=charx")).warning).toBeNull();
  expect((await app.request("HEAD", "/api/characters/fox/export?format=png")).headers.get("x-parlor-warning")).toBe(
    WARNING,
  );
});

test("a persona's export up to the limit can be imported again, whatever its form adds", async () => {
  await app.put("/api/personas/me", { name: "Me", description: "d" });
  await app.put("/api/personas/me/avatar", plainPng(), { headers: { "content-type": "image/png" } });
  const emptyBytes = (await warningOf("/api/personas/me/export")).file.length;
  const make = async (descriptionBytes: number) => {
    await app.put("/api/personas/me", { name: "Me", description: "x".repeat(descriptionBytes) });
    return await warningOf("/api/personas/me/export");
  };
  // Base64 makes four bytes of three.
  const fitting = Math.floor((LIMIT - emptyBytes) * 3 / 4) - 3;
  const small = await make(fitting);
  expect(small.file.length).toBeGreaterThan(LIMIT - 20);
  expect(small.file.length).toBeLessThanOrEqual(LIMIT);
  expect(small.warning).toBeNull();
  expect((await importCard(small.file, "/api/personas/import")).status).toBe(201);
  const large = await make(fitting + 60);
  expect(large.warning).toBe(WARNING);
  expect((await importCard(large.file, "/api/personas/import")).status).toBe(413);
});
