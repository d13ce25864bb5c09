import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Avatars } from "../../../../services/characters/character_images.ts";
import { BUILTIN_AVATAR } from "../../../../services/characters/builtin_avatar.ts";
import { openDatabase } from "../../../../services/storage/database/database.ts";
import { MIGRATIONS } from "../../../../services/storage/database/migrations.ts";
import { drawAvatar, HEIGHT_PX, WIDTH_PX } from "../../../builtin_avatar.ts";
import { chunksOf, plainPng, sillyTavernCard, sillyTavernPng, sillyTavernReads } from "../../../helpers/files/cards.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { listDescendants } from "../../../helpers/processes/proc.ts";
import { inflateSync } from "node:zlib";

const WIDTHS = 10_000;

let app: TestApp;
let outside: string;
beforeEach(async () => {
  outside = await Deno.makeTempDir({ prefix: "parlor-cards-" });
  app = await openTestApp({ config: { builtinAppInstalled: true, cardDirs: [outside] } });
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await Deno.remove(outside, { recursive: true });
});

const card = (name: string) => JSON.stringify({ spec: "chara_card_v2", spec_version: "2.0", data: { name } });
const list = async () => await (await app.get("/api/characters")).json();
const names = async () => (await list()).map(({ name }: { name: string }) => name);
const own = (name: string) => `${app.dataDir}/characters/${name}`;
const findByName = async (name: string) => (await list()).find((item: { name: string }) => item.name === name);

/** Waits for the change event after which the list is as expected. */
async function untilNames(wanted: string[]): Promise<void> {
  const settled = Promise.withResolvers<void>();
  let looking = Promise.resolve();
  const look = () =>
    looking = looking.then(async () => {
      if (JSON.stringify(await names()) === JSON.stringify(wanted)) settled.resolve();
    });
  const end = app.services.events.subscribe(() => void look());
  await look();
  await settled.promise;
  end();
  await looking;
}

test("the sandbox starts for the first list, and for later ones only if a file has changed", async () => {
  const before = listDescendants(Deno.pid);
  const children = () => listDescendants(Deno.pid, before);
  await list();
  expect(children()).not.toEqual([]);
  await app.put("/api/characters/fox", { card: JSON.parse(card("Fox")) });
  await app.restart();
  expect(await names()).toEqual(["Fox"]);
  expect(children()).toEqual([]);
});

test("a damaged row is made again from its file", async () => {
  await app.put("/api/characters/fox", { card: JSON.parse(card("Fox")) });
  await app.put("/api/characters/owl", { card: JSON.parse(card("Owl")) });
  const before = await list();
  await app.restart(async () => {
    const path = `${app.dataDir}/app.db`;
    const file = await Deno.readFile(path);
    // As a damaged disk changes it: SQLite itself refuses to store it.
    const [from, to] = ['"tags":[],"creator"', '"tags":[M,"creator"'].map((text) => new TextEncoder().encode(text));
    const at = file.findIndex((_, start) => from!.every((byte, i) => file[start + i] === byte));
    file.set(to!, at);
    await Deno.writeFile(path, file);
  });
  expect(await list()).toEqual(before);
  expect((await app.get("/api/characters/fox")).status).toBe(200);
  expect(app.logLines.filter((line) => line.includes("list of cards was damaged"))).toHaveLength(1);
});

test("the check of all data makes rows again that are damaged but readable", async () => {
  await app.put("/api/characters/fox", { card: JSON.parse(card("Fox")) });
  await app.put("/api/characters/owl", { card: JSON.parse(card("Owl")) });
  const before = await list();
  const damaged = () => app.logLines.filter((line) => line.includes("Rows of the list of cards were damaged"));
  await app.post("/api/data/check");
  expect(damaged()).toEqual([]);
  await app.restart(async () => {
    const path = `${app.dataDir}/app.db`;
    const file = await Deno.readFile(path);
    const [from, to] = ['"name":"Fox"', '"name":"Fix"'].map((text) => new TextEncoder().encode(text));
    const at = file.findIndex((_, start) => from!.every((byte, i) => file[start + i] === byte));
    file.set(to!, at);
    await Deno.writeFile(path, file);
  });
  expect(await names()).toEqual(["Fix", "Owl"]);
  await app.post("/api/data/check");
  expect(await list()).toEqual(before);
  expect(damaged()).toHaveLength(1);
  expect(damaged()[0]).toContain('"count":1');
});

test("a file put into the folder appears, changes and disappears, under its name or an ID derived from it", async () => {
  expect(await names()).toEqual([]);
  await Deno.writeFile(own("fox.png"), sillyTavernPng(sillyTavernCard("Fox")));
  await Deno.writeTextFile(own("My Own Wolf.json"), card("Wolf"));
  await untilNames(["Fox", "Wolf"]);
  expect((await findByName("Fox")).id).toBe("fox");
  const wolf = await findByName("Wolf");
  expect(wolf).toMatchObject({ id: expect.stringMatching(/^f-[\w-]{22}$/), external: false, has_avatar: false });

  expect((await app.put(`/api/characters/${wolf.id}`, { card: JSON.parse(card("Grey Wolf")) })).status).toBe(200);
  expect(JSON.parse(await Deno.readTextFile(own("My Own Wolf.json"))).data.name).toBe("Grey Wolf");
  await Deno.writeTextFile(own("My Own Wolf.json"), card("White Wolf"));
  await untilNames(["Fox", "White Wolf"]);
  const picture = { headers: { "content-type": "image/png" } };
  expect((await app.put(`/api/characters/${wolf.id}/avatar`, plainPng(), picture)).status).toBe(200);
  expect(await names()).toEqual(["Fox", "White Wolf"]);
  expect((await findByName("White Wolf")).id).toBe(wolf.id);
  await app.restart();
  expect((await findByName("White Wolf")).id).toBe(wolf.id);

  await Deno.remove(own("fox.png"));
  await untilNames(["White Wolf"]);
  expect((await app.get("/api/characters/fox")).status).toBe(404);
});

test("file names that aren't valid IDs, or whose ID is taken, get another ID", async () => {
  await Deno.writeTextFile(own("search.json"), card("A"));
  await Deno.writeTextFile(own("fox.json"), card("B"));
  await Deno.writeFile(own("fox.png"), sillyTavernPng(sillyTavernCard("C")));
  await Deno.writeTextFile(own("FOX.json"), card("D"));
  await Deno.writeTextFile(own(".hidden.json"), card("E"));
  await Deno.writeTextFile(own("notes.txt"), card("F"));
  const items: { id: string; name: string }[] = await list();
  expect(items.map(({ name }) => name)).toEqual(["A", "B", "C", "D"]);
  expect(new Set(items.map(({ id }) => id.toLowerCase())).size).toBe(4);
  expect(items.find(({ name }) => name === "C")!.id).toBe("fox");
  for (const { id, name } of items) {
    expect((await (await app.get(`/api/characters/${id}`)).json()).name).toBe(name);
  }
});

test("lists a file of ours that isn't a card as unreadable, and reads it again once it changes", async () => {
  await Deno.writeFile(own("fox.png"), sillyTavernPng(sillyTavernCard("Fox")).slice(0, 90));
  await Deno.writeFile(own("plain.png"), plainPng());
  expect(await names()).toEqual(["fox", "plain"]);
  expect((await list()).map(({ unreadable }: { unreadable?: true }) => unreadable)).toEqual([true, true]);
  expect((await app.get("/api/characters/plain")).status).toBe(422);
  expect((await app.put("/api/characters/plain", { card: JSON.parse(card("X")) })).status).toBe(409);
  await Deno.writeFile(own("fox.png"), sillyTavernPng(sillyTavernCard("Fox")));
  await untilNames(["Fox", "plain"]);
  expect((await app.delete("/api/characters/plain")).status).toBe(204);
});

describe("external folders", () => {
  test("are read in place, appear by themselves and are never written", async () => {
    const png = sillyTavernPng(sillyTavernCard("Fox"), 40, 60);
    await Deno.writeFile(`${outside}/fox.png`, png);
    const [item] = await list();
    expect(item).toMatchObject({ name: "Fox", external: true, has_avatar: true });
    expect(item.id).not.toBe("fox");
    const url = `/api/characters/${item.id}`;
    const picture = { headers: { "content-type": "image/png" } };
    expect((await app.put(url, { card: JSON.parse(card("X")) })).status).toBe(409);
    expect((await app.put(`${url}/avatar`, plainPng(), picture)).status).toBe(409);
    expect((await app.post(`${url}/avatar/generate`)).status).toBe(409);
    expect((await app.delete(url)).status).toBe(409);
    expect((await app.get(`${url}/avatar?w=20`)).status).toBe(200);
    expect(sillyTavernReads(await (await app.get(`${url}/export`)).bytes()).data.name).toBe("Fox");
    expect(await Deno.readFile(`${outside}/fox.png`)).toEqual(png);
    expect((await Array.fromAsync(Deno.readDir(outside))).map(({ name }) => name)).toEqual(["fox.png"]);
    await Deno.writeTextFile(`${outside}/wolf.json`, card("Wolf"));
    await untilNames(["Fox", "Wolf"]);
  });

  test("that don't exist are empty, and every list looks for them again", async () => {
    await app[Symbol.asyncDispose]();
    const late = `${outside}/late`;
    app = await openTestApp({ config: { builtinAppInstalled: true, cardDirs: [late] } });
    expect(await names()).toEqual([]);
    await Deno.mkdir(late);
    await Deno.writeTextFile(`${late}/wolf.json`, card("Wolf"));
    expect(await names()).toEqual(["Wolf"]);
  });
});

test("links in card folders aren't followed", { tags: ["P02"] }, async () => {
  const secret = `${outside}/secret.txt`;
  await Deno.writeTextFile(secret, card("Secret"));
  await Deno.mkdir(`${outside}/folder.json`);
  await Deno.symlink(secret, own("link.json"));
  await Deno.symlink(secret, `${outside}/link.json`);
  await Deno.symlink(outside, own("loop.png"));
  expect(await list()).toEqual([]);
  expect((await app.get("/api/characters/link")).status).toBe(404);
  expect((await app.put("/api/characters/link", { card: JSON.parse(card("X")) })).status).toBe(409);
  expect((await app.put("/api/characters/loop", { card: JSON.parse(card("X")) })).status).toBe(409);
  // A plain file that becomes a link after it was listed.
  await Deno.writeTextFile(own("late.json"), card("Late"));
  await untilNames(["Late"]);
  await Deno.remove(own("late.json"));
  await Deno.symlink(secret, own("late.json"));
  expect((await app.get("/api/characters/late")).status).toBe(404);
  expect(await Deno.readTextFile(secret)).toBe(card("Secret"));
});

test("a thousand indexed files aren't read again, unless the schema is new", async () => {
  for (let n = 0; n < 1000; n++) {
    await Deno.writeTextFile(own(`c${n}.json`), card(`Name ${String(n).padStart(4, "0")}`));
  }
  expect((await list()).length).toBe(1000);
  const told: unknown[] = [];
  app.services.events.subscribe((event) => void told.push(event));
  await app.restart();
  app.services.events.subscribe((event) => void told.push(event));
  const page = await (await app.get("/api/characters?limit=3")).json();
  expect(page.items.map(({ name }: { name: string }) => name)).toEqual(["Name 0000", "Name 0001", "Name 0002"]);
  expect(told).toEqual([]); // nothing was new
  expect(MIGRATIONS.length).toBeGreaterThan(1);
});

describe("the built-in character", () => {
  test("exists from the start, once; if deleted, it stays away until it is requested", async () => {
    const dataDir = `${outside}/data`;
    let fresh = await openTestApp({ dataDir });
    const restart = async () => {
      await fresh[Symbol.asyncDispose]();
      fresh = await openTestApp({ dataDir, config: { builtinAppInstalled: true } }); // as its config.toml says now
    };
    const all = async () => await (await fresh.get("/api/characters")).json();
    const restore = async () => await (await fresh.post("/api/characters/restore-app")).json();
    const [pim] = await all();
    expect(pim).toMatchObject({ id: "pim", name: "Pim", has_avatar: true, external: false });
    expect(await Deno.readTextFile(`${dataDir}/config.toml`)).toBe("builtin_app_installed = true\n");
    const { card } = await (await fresh.get("/api/characters/pim")).json();
    expect(card.data.description).toContain("Parlor");
    expect(card.data.first_mes).toContain("{{user}}");

    await fresh.delete("/api/characters/pim");
    await restart();
    expect(await all()).toEqual([]);
    expect((await restore()).card).toEqual(card);

    await fresh.put("/api/characters/pim", { card: { ...card, data: { ...card.data, name: "Mine" } } });
    expect((await restore()).name).toBe("Pim");
    const trash = async () =>
      (await (await fresh.get("/api/trash")).json()).map((item: { title: string }) => item.title);
    expect((await trash()).sort()).toEqual(["Mine", "Pim"]);
    expect((await restore()).name).toBe("Pim");
    expect(await trash()).toHaveLength(2);
    await restart();
    expect(await all()).toHaveLength(1);
    await fresh[Symbol.asyncDispose]();
  });

  test("has the image that its shapes draw", () => {
    const png = Uint8Array.fromBase64(BUILTIN_AVATAR);
    const data = chunksOf(png).find(({ type }) => type === "IDAT")!.bytes.subarray(8, -4);
    const rows = inflateSync(data);
    const stride = WIDTH_PX * 3;
    const drawn = drawAvatar();
    const stored = new Uint8Array(drawn.length);
    for (let y = 0; y < HEIGHT_PX; y++) {
      for (let i = 0; i < stride; i++) {
        const above = y === 0 ? 0 : stored[(y - 1) * stride + i]!;
        stored[y * stride + i] = rows[y * (stride + 1) + 1 + i]! + above;
      }
    }
    expect(stored).toEqual(drawn);
  });
});

test(
  `of ${WIDTHS} widths few resized images are kept, limited in number and bytes; the least recently used go first`,
  { tags: ["P09"] },
  async () => {
    const folder = `${outside}/reduced`;
    let made = 0;
    const pictures = {
      toPng: () => Promise.reject(new Error("not asked for")),
      resizePng: (_: Uint8Array, { widthPx }: { widthPx: number }) => {
        made++;
        return Promise.resolve(plainPng(widthPx, 1));
      },
    };
    await Deno.writeFile(own("fox.png"), sillyTavernPng(sillyTavernCard("Fox"), 2 * WIDTHS, 2));
    expect(await names()).toEqual(["Fox"]);
    const index = { refresh: () => Promise.resolve(), markStale: () => {} };
    const db = await openDatabase({ path: `${app.dataDir}/app.db` });
    const kept = async () => (await Array.fromAsync(Deno.readDir(folder))).length;
    try {
      const avatars = new Avatars({ db, index, images: pictures, log: () => {}, folder, maxEntries: 10 });
      for (let widthPx = 100; widthPx < 150; widthPx++) await avatars.read("fox", widthPx);
      await avatars.close();
      expect(await kept()).toBe(10);
      await avatars.read("fox", 149);
      expect(made).toBe(50);
      await avatars.read("fox", 100);
      expect(made).toBe(51);
      for (let widthPx = 1; widthPx <= WIDTHS; widthPx++) await avatars.read("fox", widthPx);
      await avatars.close();
      expect(await kept()).toBe(10);

      const smaller = new Avatars({
        db,
        index,
        images: pictures,
        log: () => {},
        folder,
        maxBytes: 3 * plainPng(200, 1).length,
      });
      for (const widthPx of [200, 201, 202, 203, 204, 205]) await smaller.read("fox", widthPx);
      await smaller.close();
      expect(await kept()).toBeLessThanOrEqual(3);
    } finally {
      await db.close();
    }
  },
);
