import { Buffer } from "node:buffer";
import { strToU8, zipSync } from "fflate";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cardChunk, END, header, pixels, plainPng, pngOf, sillyTavernCard } from "../../helpers/files/cards.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp({ config: { builtinAppInstalled: true } });
});
afterEach(() => app[Symbol.asyncDispose]());

const emotion = (name: string, uri: string, ext = "png") => ({ type: "emotion", uri, name, ext });
const cardWith = (assets: unknown[], extensions = {}) => ({
  spec: "chara_card_v3",
  spec_version: "3.0",
  data: { ...sillyTavernCard("Fox").data, assets, extensions },
});

async function importFile(bytes: Uint8Array, name: string): Promise<string> {
  const form = new FormData();
  form.append("file", new Blob([bytes as Uint8Array<ArrayBuffer>]), name);
  const answer = await app.request("POST", "/api/characters/import", form);
  expect(answer.status).toBe(201);
  return (await answer.json()).id;
}
const list = async (id: string) => await (await app.get(`/api/characters/${id}/expressions`)).json();
const read = (id: string, n: number) => app.get(`/api/characters/${id}/expressions/${n}`);

test("lists and serves the expressions of a CHARX, but only images that exist", async () => {
  const joy = plainPng(4, 4);
  const card = cardWith([
    { type: "icon", uri: "embeded://assets/icon/main.png", name: "main", ext: "png" },
    emotion("joy", "embeded://assets/emotion/joy.png"),
    emotion("gone", "embeded://assets/emotion/gone.png"),
    emotion("web", "https://example.org/a.png"),
    emotion("up", "embeded://../../app.db"),
    emotion("film", "embeded://assets/emotion/film.mp4", "mp4"),
    emotion("fake", "embeded://assets/emotion/fake.png"),
  ]);
  const id = await importFile(
    zipSync({
      "card.json": strToU8(JSON.stringify(card)),
      "assets/icon/main.png": plainPng(),
      "assets/emotion/joy.png": joy,
      "assets/emotion/film.mp4": strToU8("film"),
      "assets/emotion/fake.png": strToU8("<script>alert(1)</script>"),
    }),
    "fox.charx",
  );
  expect(await list(id)).toEqual([{ n: 1, name: "joy" }, { n: 6, name: "fake" }]);
  const image = await read(id, 1);
  expect(image.headers.get("content-type")).toBe("image/png");
  expect(await image.bytes()).toEqual(joy);
  expect((await read(id, 6)).status).toBe(422);
  for (const n of [0, 2, 3, 4, 5, 99]) expect((await read(id, n)).status, String(n)).toBe(404);
  expect((await read("nobody", 0)).status).toBe(404);
  expect((await app.get("/api/characters/nobody/expressions")).status).toBe(404);
});

test("lists and serves those in a PNG card of RisuAI, and as earlier versions name them", async () => {
  const sad = plainPng(6, 6);
  const card = cardWith([emotion("sad", "__asset:0")], {
    risuai: { emotions: [["angry", "__asset:1"], ["x", "__asset:9"]] },
  });
  const chunk = (n: number, bytes: Uint8Array): [string, Uint8Array] => [
    "tEXt",
    Buffer.concat([Buffer.from(`chara-ext-asset_:${n}\0`), Buffer.from(Buffer.from(bytes).toString("base64"))]),
  ];
  const png = pngOf(
    header(8, 12),
    pixels(8, 12),
    cardChunk("ccv3", card),
    chunk(0, sad),
    chunk(1, plainPng(5, 5)),
    END,
  );
  const id = await importFile(png, "fox.png");
  expect(await list(id)).toEqual([{ n: 0, name: "sad" }, { n: 1, name: "angry" }]);
  expect(await (await read(id, 0)).bytes()).toEqual(sad);
  expect((await read(id, 1)).status).toBe(200);
});
