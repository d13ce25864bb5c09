import { afterEach, beforeEach, expect, test } from "vitest";
import { cardChunk, END, header, pixels, plainPng, pngOf } from "../helpers/files/cards.ts";
import { fixtureImage, makeGif } from "../helpers/files/image_files.ts";
import { attachmentFiles, putPicture } from "../helpers/files/pictures.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp({ config: { builtinAppInstalled: true } });
});
afterEach(() => app[Symbol.asyncDispose]());

const WHOLE: Record<string, Uint8Array<ArrayBuffer>> = {
  png: plainPng(40, 60),
  jpg: fixtureImage("quarters.jpg"),
  gif: makeGif({ width: 5, height: 6 }, { width: 5, height: 6 }),
  webp: fixtureImage("quarters_lossy.webp"),
};
const bytes = async (path: string) => new Uint8Array(await (await app.get(path)).arrayBuffer());
const put = (path: string, image: Uint8Array<ArrayBuffer>) =>
  app.put(path, image, { headers: { "content-type": "image/png" } });

/** A place for an image: how to set and read it. */
const PLACES: [string, { prepare: () => Promise<unknown>; path: string }][] = [
  ["attachment", { prepare: () => putPicture(app, "a.png", plainPng(8, 8)), path: "/api/attachments/a.png" }],
  ["avatar", {
    prepare: async () => {
      await app.put("/api/characters/fox", { name: "Fox", description: "d" });
      await put("/api/characters/fox/avatar", plainPng(8, 8));
    },
    path: "/api/characters/fox/avatar",
  }],
  ["persona's avatar", {
    prepare: async () => {
      await app.put("/api/personas/me", { name: "Me" });
      await put("/api/personas/me/avatar", plainPng(8, 8));
    },
    path: "/api/personas/me/avatar",
  }],
];

test.each(PLACES)(
  "a truncated image gets 422 as an %s, and the complete one stays",
  { tags: ["P05"] },
  async (_, { prepare, path }) => {
    await prepare();
    const before = await bytes(path);
    for (const [ending, whole] of Object.entries(WHOLE)) {
      for (const share of [0.5, 0.9, 0.99]) {
        const cut = whole.slice(0, Math.min(whole.length - 3, Math.floor(whole.length * share)));
        const answer = await put(path, cut);
        expect([answer.status, (await answer.json()).error.code], `${ending} ${share}`).toEqual([422, "unprocessable"]);
        expect(await bytes(path), `${ending} ${share}`).toEqual(before);
      }
    }
    const owner = path.replace(/\/avatar$/, "");
    const kept = path === owner ? 0 : 1; // from before it had an image
    expect(await (await app.get(`${owner}/versions`)).json()).toHaveLength(kept);
    for (const whole of Object.values(WHOLE)) expect((await put(path, whole)).status).toBe(200);
  },
);

test("a truncated image creates no attachment and leaves no file", { tags: ["P05"] }, async () => {
  for (const [ending, whole] of Object.entries(WHOLE)) {
    expect((await putPicture(app, `new.${ending}`, whole.slice(0, -3))).status, ending).toBe(422);
    expect((await app.get(`/api/attachments/new.${ending}`)).status).toBe(404);
  }
  expect(await attachmentFiles(app)).toEqual([]);
});

test("a card with a truncated image gets 422 and creates no character", { tags: ["P05"] }, async () => {
  const card = { spec: "chara_card_v2", spec_version: "2.0", data: { name: "Fox", description: "d" } };
  const whole = pngOf(header(40, 60), cardChunk("chara", card), pixels(40, 60), END);
  const send = (file: Uint8Array<ArrayBuffer>) => {
    const form = new FormData();
    form.append("file", new Blob([file]), "fox.png");
    return app.post("/api/characters/import", form);
  };
  for (const length of [whole.length - 1, whole.length - 12, whole.length - 30]) {
    expect((await send(whole.slice(0, length))).status, String(length)).toBe(422);
  }
  expect(await (await app.get("/api/characters")).json()).toEqual([]);
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/characters`))).toEqual([]);
  expect((await send(whole)).status).toBe(201);
});
