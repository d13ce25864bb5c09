import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  chunksOf,
  END,
  header,
  pixels,
  plainPng,
  pngOf,
  sillyTavernCard,
  sillyTavernPng,
  sillyTavernReads,
} from "../helpers/files/cards.ts";
import { parseCard } from "../../services/characters/card/card.ts";
import { embedCard } from "../../services/characters/png/png_card.ts";
import { passTime } from "../helpers/app/pass_time.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp({ config: { builtinAppInstalled: true } });
});
afterEach(() => app[Symbol.asyncDispose]());

const v2 = (name: string, more: Record<string, unknown> = {}) => ({
  spec: "chara_card_v2",
  spec_version: "2.0",
  data: { name, description: `about ${name}`, first_mes: "hi", ...more },
});
const put = (id: string, card: unknown, init?: RequestInit) => app.put(`/api/characters/${id}`, { card }, init);
const get = async (id: string) => await (await app.get(`/api/characters/${id}`)).json();
const list = async (query = "") => await (await app.get(`/api/characters${query}`)).json();
const names = async (query = "") => (await list(query)).map(({ name }: { name: string }) => name);
const avatarOf = async (id: string, query = "") =>
  new Uint8Array(await (await app.get(`/api/characters/${id}/avatar${query}`)).arrayBuffer());
const widthOf = (png: Uint8Array) => new DataView(png.buffer).getUint32(16);
const putAvatar = (id: string, image: Uint8Array<ArrayBuffer>, init: RequestInit = {}) =>
  app.put(`/api/characters/${id}/avatar`, image, {
    ...init,
    headers: { "content-type": "image/png", ...init.headers as Record<string, string> },
  });
function importFile(content: Uint8Array<ArrayBuffer> | string, fileName = "card.png", init?: RequestInit) {
  const form = new FormData();
  form.append("file", new Blob([content]), fileName);
  return app.request("POST", "/api/characters/import", form, init);
}
const files = async (folder = "characters") =>
  (await Array.fromAsync(Deno.readDir(`${app.dataDir}/${folder}`))).map(({ name }) => name).sort();

test("a card is created, read, changed and deleted, and its file can be shared", async () => {
  const created = await put("fox", v2("Fox"));
  expect(created.status).toBe(201);
  const character = await created.json();
  expect(character).toMatchObject({
    id: "fox",
    name: "Fox",
    external: false,
    has_avatar: false,
    tags: [],
    creator: "",
  });
  expect(character.card).toMatchObject({ spec: "chara_card_v3", data: { name: "Fox", extensions: {} } });
  expect(await get("fox")).toEqual(character);
  expect((await app.put("/api/characters/fox", { name: "Vixen", description: "bare" })).status).toBe(200);
  expect(await get("fox")).toMatchObject({ name: "Vixen", card: { data: { description: "bare" } } });
  expect(JSON.parse(await Deno.readTextFile(`${app.dataDir}/characters/fox.json`)).data.name).toBe("Vixen");
  expect((await app.delete("/api/characters/fox")).status).toBe(204);
  expect((await app.get("/api/characters/fox")).status).toBe(404);
  expect(await files()).toEqual([]);
  expect(await list()).toEqual([]);
});

test("every change publishes an event with the id only", async () => {
  const told: unknown[] = [];
  app.services.events.subscribe((event) => void told.push(event));
  await put("fox", v2("Fox"));
  await putAvatar("fox", plainPng());
  await app.delete("/api/characters/fox");
  const [item] = await (await app.get("/api/trash")).json();
  await app.post(`/api/trash/${item.id}/restore`);
  expect(told.filter((event) => (event as { kind: string }).kind === "character")).toEqual(
    Array.from({ length: 4 }, () => ({ kind: "character", id: "fox" })),
  );
});

describe("lists", () => {
  beforeEach(async () => {
    await put("c1", v2("Émile", { tags: ["French", "poet"], creator: "Ada" }));
    await put("c2", v2("bob", { tags: ["poet"] }));
    await put("c3", v2("Zoë"));
    await put("c4", v2("Ann", { tags: ["POET"] }));
  });

  test("contains all by name, ignoring case and accents, without cards unless requested", async () => {
    expect(await names()).toEqual(["Ann", "bob", "Émile", "Zoë"]);
    const [first] = await list();
    expect(Object.keys(first).sort()).toEqual(
      ["creator", "external", "favorite", "folder", "has_avatar", "id", "name", "tags", "updated_at"],
    );
    expect((await list("?view=full")).map((one: { card: { data: { name: string } } }) => one.card.data.name))
      .toEqual(["Ann", "bob", "Émile", "Zoë"]);
  });

  test("are filtered by SillyTavern's favorite mark, which saving a card changes", async () => {
    await put("c3", v2("Zoë", { extensions: { fav: true, depth: 4 } }));
    await put("c4", v2("Ann", { extensions: { fav: "true" } }));
    expect(await names("?favorite=true")).toEqual(["Ann", "Zoë"]);
    expect(await names("?favorite=false")).toEqual(["bob", "Émile"]);
    expect((await app.get("/api/characters?favorite=yes")).status).toBe(400);
    const zoe = await get("c3");
    expect(zoe).toMatchObject({ favorite: true, card: { data: { extensions: { depth: 4 } } } });
    zoe.card.data.extensions.fav = false;
    await put("c3", zoe.card);
    expect(await names("?favorite=true")).toEqual(["Ann"]);
  });

  test("are sorted with favorites first, across pages", async () => {
    await put("c3", v2("Zoë", { extensions: { fav: true } }));
    await put("c1", v2("Émile", { extensions: { fav: true } }));
    const found: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const page = await list(`?limit=1&sort=favorites${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      found.push(...page.items.map(({ name }: { name: string }) => name));
      cursor = page.next_cursor;
    }
    expect(found).toEqual(["Émile", "Zoë", "Ann", "bob"]);
  });

  test("are filtered by their folder, which the card stores and an exported card omits", async () => {
    const filed = (name: string, folder: unknown, more = {}) =>
      v2(name, { extensions: { parlor: { folder }, ...more } });
    await put("c1", filed("Émile", " Poets "));
    await put("c2", filed("bob", "Poets", { depth: 4 }));
    await put("c3", filed("Zoë", "actors"));
    await put("c4", filed("Ann", 7));
    expect(await list("/folders")).toEqual([{ name: "actors", count: 1 }, { name: "Poets", count: 2 }]);
    expect(await names("?folder=Poets")).toEqual(["bob", "Émile"]);
    expect(await names("?folder=poets")).toEqual([]);
    expect(await names("?folder=")).toEqual(["Ann"]);
    expect(await names("?folder=Poets&q=bob&sort=favorites")).toEqual(["bob"]);
    expect((await app.get(`/api/characters?folder=${"x".repeat(201)}`)).status).toBe(400);
    const bob = await get("c2");
    expect(bob.folder).toBe("Poets");
    const shared = await (await app.get("/api/characters/c2/export?format=json")).json();
    expect(shared.data.extensions).toEqual({ depth: 4 });
    delete bob.card.data.extensions.parlor;
    await put("c2", bob.card);
    expect(await list("/folders")).toEqual([{ name: "actors", count: 1 }, { name: "Poets", count: 1 }]);
    await app.delete("/api/characters/c1");
    expect(await list("/folders")).toEqual([{ name: "actors", count: 1 }]);
    const [item] = await (await app.get("/api/trash")).json();
    await app.post(`/api/trash/${item.id}/restore`);
    expect(await names("?folder=Poets")).toEqual(["Émile"]);
  });

  test("pages by name and by time contain each character once", async () => {
    for (const sort of ["name", "updated"]) {
      const found: string[] = [];
      let cursor: string | null = "";
      while (cursor !== null) {
        const page: { items: { id: string }[]; next_cursor: string | null } = await list(
          `?limit=1&sort=${sort}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
        );
        found.push(...page.items.map(({ id }) => id));
        cursor = page.next_cursor;
      }
      expect(found.length).toBe(4);
      expect(new Set(found).size).toBe(4);
      if (sort === "name") expect(found).toEqual(["c4", "c2", "c1", "c3"]);
    }
    expect((await app.get("/api/characters?limit=2&cursor=nonsense")).status).toBe(400);
    expect((await list("?view=full&limit=1")).items[0].card.data.name).toBe("Ann");
  });

  test("are sorted as in a dictionary, with numbers by value, across pages", async () => {
    const more = ["Unit 10", "Unit 2", "Äbte", "Abt", "Zebra", "unit 1"];
    for (const [n, name] of more.entries()) await put(`n${n}`, v2(name));
    const wanted = ["Abt", "Äbte", "Ann", "bob", "Émile", "unit 1", "Unit 2", "Unit 10", "Zebra", "Zoë"];
    expect(await names()).toEqual(wanted);
    const found: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const page: { items: { name: string }[]; next_cursor: string | null } = await list(
        `?limit=3${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
      );
      found.push(...page.items.map(({ name }) => name));
      cursor = page.next_cursor;
    }
    expect(found).toEqual(wanted);
  });

  test("are searched by words in name, creator and tags, and narrowed to a tag", async () => {
    expect(await names("?q=emile")).toEqual(["Émile"]);
    expect(await names("?q=po%20ADA")).toEqual(["Émile"]);
    expect(await names("?q=%25")).toEqual([]);
    expect(await names("?tag=poet")).toEqual(["Ann", "bob", "Émile"]);
    expect((await list("?tag=poet&limit=2&q=a")).items.map(({ name }: { name: string }) => name))
      .toEqual(["Ann", "Émile"]);
    await put("c4", v2("Ann"));
    expect(await names("?tag=Poet")).toEqual(["bob", "Émile"]);
  });
});

describe("a requested version", () => {
  test("is checked on every write of the card, its image and its deletion", async () => {
    const tag = (await put("fox", v2("Fox"))).headers.get("etag")!;
    expect(tag).toMatch(/^"[\w-]{22}"$/);
    const stale = { headers: { "if-match": '"other"' } };
    const good = { headers: { "if-match": tag } };
    expect((await put("fox", v2("B"), stale)).status).toBe(412);
    expect((await putAvatar("fox", plainPng(), stale)).status).toBe(412);
    expect((await app.delete("/api/characters/fox", stale)).status).toBe(412);
    expect((await put("new", v2("N"), good)).status).toBe(412);
    const withPicture = await putAvatar("fox", plainPng(), good);
    expect(withPicture.headers.get("etag")).toBe(tag); // the image isn't part of the card
    expect((await put("fox", v2("B"), { headers: { "if-match": `W/${tag}` } })).status).toBe(412);
    const saved = await put("fox", v2("B"), { headers: { "if-match": `"other", ${tag}` } });
    expect(saved.status).toBe(200);
    expect(saved.headers.get("etag")).not.toBe(tag);
    expect((await app.get("/api/characters/fox")).headers.get("etag")).toBe(saved.headers.get("etag"));
    expect((await put("fox", v2("C"), good)).status).toBe(412);
    expect((await app.delete("/api/characters/fox", { headers: { "if-match": "*" } })).status).toBe(204);
  });
});

describe("import", () => {
  test("with reuse returns a character that is the same, now or before, and creates one that differs", async () => {
    const reuse = async (card: Uint8Array<ArrayBuffer> | string) => {
      const form = new FormData();
      form.append("file", new Blob([card]), "card.png");
      const response = await app.request("POST", "/api/characters/import?reuse=true", form);
      return [response.status, (await response.json()).id] as const;
    };
    const card = sillyTavernCard("Fox");
    const png = sillyTavernPng(card);
    // Two at once find each other.
    const answers = await Promise.all([reuse(png), reuse(png)]);
    expect(answers.map(([status]) => status).sort()).toEqual([200, 201]);
    const [[, id], [, other]] = answers;
    expect(other).toBe(id);
    const { card: own } = await get(id);
    own.data.extensions.fav = !own.data.extensions.fav;
    own.data.extensions.parlor = { folder: "Forest" };
    await put(id, own);
    expect(await reuse(png)).toEqual([200, id]);
    expect(await reuse(JSON.stringify(card))).toEqual([200, id]); // brings no image
    own.data.description = "Changed here.";
    await put(id, own);
    expect(await reuse(png)).toEqual([200, id]);

    const [status, changed] = await reuse(sillyTavernPng({ ...card, data: { ...card.data, scenario: "At sea." } }));
    expect([status, changed === id]).toEqual([201, false]);
    expect((await importFile(png)).status).toBe(201);
    await app.delete(`/api/characters/${id}`);
    expect(await names()).toEqual(["Fox", "Fox"]);
  });

  test("with reuse compares the image and the other files, too", async () => {
    const reuse = async (image: Uint8Array<ArrayBuffer>) => {
      const form = new FormData();
      form.append("file", new Blob([image]), "card.png");
      return (await app.request("POST", "/api/characters/import?reuse=true", form)).status;
    };
    const card = parseCard(v2("Fox"));
    const [small, large] = [embedCard(plainPng(), card), embedCard(plainPng(32), card)];
    expect([await reuse(small), await reuse(small), await reuse(large), await reuse(large)]).toEqual([
      ...[201, 200, 201, 200],
    ]);
  });

  test("of a SillyTavern card, a new name, and export: nothing else changes, least of all the pixels", async () => {
    const original = sillyTavernPng(sillyTavernCard("Fox"));
    const imported = await importFile(original, "../../etc/fox.png");
    expect(imported.status).toBe(201);
    const character = await imported.json();
    expect(character).toMatchObject({ name: "Fox", has_avatar: true, tags: ["Fox", "tavern"], creator: "somebody" });
    expect(await files()).toEqual([`${character.id}.png`]);
    character.card.data.name = "Vixen 狐";
    expect((await put(character.id, character.card)).status).toBe(200);

    const exported = await app.get(`/api/characters/${character.id}/export?format=png`);
    expect(exported.headers.get("content-disposition")).toBe(
      `attachment; filename="Vixen _.png"; filename*=UTF-8''Vixen%20%E7%8B%90.png`,
    );
    const png = new Uint8Array(await exported.arrayBuffer());
    const wanted = sillyTavernReads(original);
    wanted.name = wanted.data.name = "Vixen 狐";
    expect(JSON.stringify(sillyTavernReads(png))).toBe(JSON.stringify(wanted));
    const others = (file: Uint8Array) =>
      chunksOf(file).filter(({ text }) => !/^(chara|ccv3)\0/.test(text)).map(({ bytes }) => bytes.toBase64());
    expect(others(png)).toEqual(others(original));
  });

  test("of JSON and CHARX files, which export also returns", async () => {
    const { id } = await (await importFile(JSON.stringify(v2("Fox")), "fox.json")).json();
    expect(await files()).toEqual([`${id}.json`]);
    const charx = await app.get(`/api/characters/${id}/export?format=charx`);
    expect(charx.headers.get("content-type")).toBe("application/zip");
    expect((await (await importFile(await charx.bytes(), "x.charx")).json()).name).toBe("Fox");
    await putAvatar(id, plainPng(20, 30));
    const withPicture = await (await app.get(`/api/characters/${id}/export?format=charx`)).bytes();
    const again = await (await importFile(withPicture)).json();
    expect(again).toMatchObject({ name: "Fox", has_avatar: true });
    expect(widthOf(await avatarOf(again.id))).toBe(20);
    const json = await app.get(`/api/characters/${id}/export?format=json`);
    expect(json.headers.get("content-type")).toBe("application/json");
    expect((await json.json()).data.name).toBe("Fox");
  });

  test("a character without an image is still exported as PNG", async () => {
    await put("fox", v2("Fox"));
    const png = await (await app.get("/api/characters/fox/export")).bytes();
    expect(sillyTavernReads(png).data.name).toBe("Fox");
    expect((await putAvatar("fox", png)).status).toBe(200);
  });

  test("rejects a file that isn't a card, or is broken, with 422 and leaves nothing behind", async () => {
    for (
      const content of ["", "hello", "[]", '{"a":1}', plainPng(), sillyTavernPng(sillyTavernCard("Fox")).slice(0, -20)]
    ) {
      const answer = await importFile(content);
      expect(answer.status).toBe(422);
      expect((await answer.json()).error.code).toBe("unprocessable");
    }
    expect(await files()).toEqual([]);
  });

  test("a broken or unusual form gets 400 and none of it is stored", { tags: ["P04"] }, async () => {
    const card = JSON.stringify(v2("Fox"));
    const part = (name: string, body = card) =>
      `--B\r\nContent-Disposition: form-data; name="${name}"; filename="a.json"\r\n\r\n${body}\r\n`;
    const send = (body: string, type = "multipart/form-data; boundary=B") =>
      app.post("/api/characters/import", body, { headers: { "content-type": type } });
    expect((await send(`${part("file")}--B--\r\n`)).status).toBe(201);
    const note = '--B\r\nContent-Disposition: form-data; name="note"\r\n\r\njust text\r\n';
    expect((await send(`preamble\r\n${note}${part("file")}--B--`)).status).toBe(201);
    expect((await send(`${part("file")}--B--`, 'Multipart/Form-Data; charset=utf-8; boundary="B"')).status).toBe(201);
    const before = await files();
    for (
      const [body, type] of [
        [`${part("file")}--B--`, "multipart/form-data"],
        [`${part("file")}--B--`, "multipart/form-data; boundary=C"],
        [part("file").slice(0, -30)],
        [part("file")],
        [`--B\r\n\r\n${card}\r\n--B--`],
        [`${part("other")}${part("another")}--B--`],
        [`${part("file")}${part("file")}--B--`],
        [`${part("x", "").repeat(10_000)}${part("file")}--B--`],
        [`--B\r\nX: ${"y".repeat(10_000)}\r\nContent-Disposition: form-data; name="file"\r\n\r\n${card}\r\n--B--`],
        ["--B--"],
        [""],
      ] as [string, string?][]
    ) {
      expect((await send(body, type)).status, body.slice(0, 60)).toBe(400);
    }
    expect(await files()).toEqual(before);
    expect((await app.post("/api/characters/import", { file: card })).status).toBe(415);
  });

  test("a file above the limit gets 413 before anything is stored", { tags: ["P03"] }, async () => {
    const large = new Uint8Array(21 * 1024 * 1024);
    expect((await importFile(large)).status).toBe(413);
    expect((await put("fox", v2("Fox", { description: "x".repeat(21 * 1024 * 1024) }))).status).toBe(413);
    expect((await put("fox", v2("Fox", { description: "x".repeat(11 * 1024 * 1024) }))).status).toBe(413);
    expect(await files()).toEqual([]);
  });

  test("a form from another origin gets 403 and has no effect", { tags: ["C05"] }, async () => {
    for (
      const [name, value] of [["origin", "https://evil.test"], ["sec-fetch-site", "cross-site"], ["origin", "null"]]
    ) {
      const headers = { [name!]: value! };
      expect((await importFile(JSON.stringify(v2("Fox")), "a.json", { headers })).status).toBe(403);
    }
    expect(await files()).toEqual([]);
  });

  test("a name made to split headers is only a name in a header", { tags: ["C10"] }, async () => {
    await put("fox", v2('a"\r\nSet-Cookie: x=1\u2028/..\\ "%0d'));
    const { headers } = await app.get("/api/characters/fox/export?format=json");
    expect(headers.get("set-cookie")).toBeNull();
    expect(headers.get("content-disposition")).toMatch(
      /^attachment; filename="[^"\r\n\\/]+"; filename\*=UTF-8''[\w%.-]+$/,
    );
  });
});

describe("a card in a request", { tags: ["P07"] }, () => {
  test.each<[string, number, string]>([
    ["null", 400, "null"],
    ["an array", 400, "[]"],
    ["a text", 400, '"x"'],
    ["no JSON", 400, "{"],
    ["empty", 422, "{}"],
    ["a null card", 422, '{"card":null}'],
    [
      "nested 100,000 deep",
      400,
      `{"name":"A","description":"","extensions":{"x":${"[".repeat(1e5)}${"]".repeat(1e5)}}}`,
    ],
  ])("%s is rejected", async (_, status, body) => {
    const answer = await app.put("/api/characters/fox", body, { headers: { "content-type": "application/json" } });
    expect(answer.status).toBe(status);
    expect(await files()).toEqual([]);
  });

  test("with prototype keys, lone surrogates and large numbers is stored as data", async () => {
    const card = '{"name":"A\\ud800","description":"","extensions":{"__proto__":{"x":1},"constructor":2,"n":1e308}}';
    const answer = await app.put("/api/characters/fox", card, { headers: { "content-type": "application/json" } });
    expect(answer.status).toBe(201);
    const text = await (await app.get("/api/characters/fox")).text();
    expect(text).toContain('"__proto__":{"x":1},"constructor":2,"n":1e+308');
    expect(await list()).toHaveLength(1);
  });
});

describe("an id", { tags: ["P01"] }, () => {
  test.each([
    "..",
    "%2e%2e",
    "..%2f..%2fx",
    "a%00b",
    "a%5cb",
    ".hidden",
    "x".repeat(300),
    "e%CC%81",
    "import",
    "a.png",
  ])(
    "rejects %s",
    async (id) => {
      for (const method of ["GET", "PUT", "DELETE"]) {
        const body = method === "PUT" ? v2("Fox") : undefined;
        const { status } = await app.request(method, `/api/characters/${id}`, body);
        expect([400, 404, 405]).toContain(status);
      }
      expect(await files()).toEqual([]);
    },
  );

  test("that differs from another only in case gets 409", async () => {
    await put("fox", v2("Fox"));
    expect((await put("FOX", v2("Other"))).status).toBe(409);
    expect(await get("fox")).toMatchObject({ name: "Fox" });
  });
});

describe("pictures", () => {
  test("are returned unchanged, or in exactly the requested width, never enlarged", async () => {
    const png = pngOf(header(300, 450), pixels(300, 450), END);
    await put("fox", v2("Fox"));
    expect((await app.get("/api/characters/fox/avatar")).status).toBe(404);
    expect((await app.get("/api/characters/none/avatar?w=64")).status).toBe(404);
    const replaced = await putAvatar("fox", png);
    expect(await replaced.json()).toMatchObject({ id: "fox", has_avatar: true, card: { data: { name: "Fox" } } });
    expect(await files()).toEqual(["fox.png"]);
    const whole = await app.get("/api/characters/fox/avatar");
    expect(whole.headers.get("content-type")).toBe("image/png");
    expect(whole.headers.get("cache-control")).toBe("no-store");
    const bytes = await whole.bytes();
    expect(chunksOf(bytes).find(({ type }) => type === "IDAT")!.bytes).toEqual(chunksOf(png)[1]!.bytes);
    for (const w of [64, 256, 299]) {
      const small = await avatarOf("fox", `?w=${w}`);
      expect([w, widthOf(small), new DataView(small.buffer).getUint32(20)]).toEqual([w, w, Math.round(w * 1.5)]);
      expect(chunksOf(small).map(({ type }) => type)).not.toContain("tEXt");
      expect(await avatarOf("fox", `?w=${w}`)).toEqual(small);
    }
    expect(await avatarOf("fox", "?w=300")).toEqual(bytes);
    expect(await avatarOf("fox", "?w=2000")).toEqual(bytes);
  });

  test("a width is given once, as an integer that is clamped to 16 to 2,048", { tags: ["P09"] }, async () => {
    await importFile(sillyTavernPng(sillyTavernCard("Fox"), 40, 40));
    const [{ id }] = await list();
    for (const w of ["-1", "1.5", "1e9", "NaN", "", "0x10", "٣", " 5"]) {
      expect((await app.get(`/api/characters/${id}/avatar?w=${encodeURIComponent(w)}`)).status, w).toBe(400);
    }
    expect((await app.get(`/api/characters/${id}/avatar?w=20&w=30`)).status).toBe(400);
    expect(widthOf(await avatarOf(id, "?w=0"))).toBe(16);
    expect(widthOf(await avatarOf(id, "?w=999999999"))).toBe(40);
  });

  test("a new image keeps the card, replaces the one in the file, and is returned in every width immediately", async () => {
    const { id } = await (await importFile(sillyTavernPng(sillyTavernCard("Fox"), 60, 60))).json();
    const before = await get(id);
    expect(widthOf(await avatarOf(id, "?w=50"))).toBe(50);
    expect((await putAvatar(id, sillyTavernPng(sillyTavernCard("Wolf"), 30, 90))).status).toBe(200);
    const { updated_at: _, ...same } = before;
    expect(await get(id)).toMatchObject(same);
    expect(widthOf(await avatarOf(id, "?w=50"))).toBe(30);
    expect(sillyTavernReads(await avatarOf(id)).data.name).toBe("Fox");
  });

  test("rejects a file that isn't an image by its content and changes nothing", { tags: ["P05", "P08"] }, async () => {
    const { id } = await (await importFile(sillyTavernPng(sillyTavernCard("Fox")))).json();
    const before = await avatarOf(id);
    const bytes = (text: string) => new TextEncoder().encode(text);
    const noise = pngOf(header(8, 8), ["IDAT", new Uint8Array(50).fill(7)], END);
    for (
      const image of [
        bytes("<svg xmlns='http://www.w3.org/2000/svg'/>"),
        bytes("<html>"),
        bytes("%PDF-1.7"),
        new Uint8Array(),
        noise,
        pngOf(header(30_000, 30_000), pixels(8, 8), END),
        plainPng().slice(0, 60),
      ]
    ) {
      expect((await putAvatar(id, image)).status).toBe(422);
    }
    expect((await putAvatar(id, plainPng(), { headers: { "content-type": "application/json" } })).status).toBe(415);
    expect(await avatarOf(id)).toEqual(before);
  });

  test("concurrent saves of image and card leave one complete file, and readers always see complete ones", {
    tags: ["P10"],
  }, async () => {
    const { id } = await (await importFile(sillyTavernPng(sillyTavernCard("Start"), 64, 64))).json();
    const sizes = [64, 80, 96, 112];
    const seen: number[] = [];
    const writes = sizes.flatMap((size, index) => [
      putAvatar(id, plainPng(size, size)),
      put(id, v2(`Name ${index}`)),
    ]);
    const reads = Array.from({ length: 20 }, async () => {
      const png = await avatarOf(id);
      expect(chunksOf(png).at(-1)!.type).toBe("IEND");
      seen.push(widthOf(png));
      expect(widthOf(await avatarOf(id, "?w=40"))).toBe(40);
    });
    for (const answer of await Promise.all(writes)) expect(answer.status).toBe(200);
    await Promise.all(reads);
    expect(seen.every((size) => sizes.includes(size))).toBe(true);
    const character = await get(id);
    const png = await avatarOf(id);
    expect(sillyTavernReads(png).data.name).toBe(character.name);
    expect(await files()).toEqual([`${id}.png`]);
  });
});

test("a deleted character is restored with its image if its ID is free", async () => {
  const { id } = await (await importFile(sillyTavernPng(sillyTavernCard("Fox")))).json();
  const [character, picture] = [await get(id), await avatarOf(id)];
  await app.delete(`/api/characters/${id}`);
  const [item] = await (await app.get("/api/trash")).json();
  expect(item).toMatchObject({ kind: "character", title: "Fox" });
  const [sealed] = await files("trash");
  expect(new TextDecoder("latin1").decode(await Deno.readFile(`${app.dataDir}/trash/${sealed}`))).not.toContain(
    "chara",
  );
  const usurper = new TextEncoder().encode(JSON.stringify(v2("Usurper")));
  await (await app.services.characters()).characters.importCard(usurper, { id });
  expect((await app.post(`/api/trash/${item.id}/restore`)).status).toBe(409);
  await app.delete(`/api/characters/${id}`);
  expect((await app.post(`/api/trash/${item.id}/restore`)).status).toBe(204);
  expect(await avatarOf(id)).toEqual(picture);
  expect((await get(id)).card).toEqual(character.card);
  expect(await names()).toEqual(["Fox"]);
  await app.delete("/api/trash");
  expect(await files("trash")).toEqual([]);
});

test("a deleted character is removed permanently after seven days, also at startup", async () => {
  let nowMs = Date.now();
  await using old = await openTestApp({ config: { builtinAppInstalled: true }, now: () => nowMs });
  await old.put("/api/characters/fox", { card: v2("Fox") });
  await old.delete("/api/characters/fox");
  const sealed = () => Array.fromAsync(Deno.readDir(`${old.dataDir}/trash`));
  expect(await sealed()).toHaveLength(1);
  await passTime(old, 6 * 24 * 60 * 60 * 1000, (stepMs) => nowMs += stepMs);
  expect(await sealed()).toHaveLength(1);
  nowMs += 2 * 24 * 60 * 60 * 1000;
  await old.restart();
  await expect.poll(sealed).toEqual([]);
});

describe("portraits", () => {
  test("without an image backend a portrait fails with the reason, which is still shown after a restart", async () => {
    await put("fox", v2("Fox"));
    const status = async () => await (await app.get("/api/characters/fox/avatar/status")).json();
    expect(await status()).toEqual({ state: "none" });
    const ended = new Promise<void>((resolve) =>
      app.services.events.subscribe(async ({ kind }) => {
        if (kind === "job" && (await status()).state === "failed") resolve();
      })
    );
    const started = await app.post("/api/characters/fox/avatar/generate");
    expect(started.status).toBe(202);
    expect(await started.json()).toMatchObject({ kind: "portrait", title: "Fox" });
    await ended;
    const failed = await status();
    expect(failed).toMatchObject({
      state: "failed",
      error: { code: "not_available", message: expect.stringContaining("No image backend") },
    });
    expect(Date.parse(failed.finished_at)).toBeGreaterThanOrEqual(Date.parse(failed.started_at));
    await app.restart();
    expect(await status()).toEqual(failed);
    expect((await app.get("/api/characters/none/avatar/status")).status).toBe(404);
    expect((await app.post("/api/characters/none/avatar/generate")).status).toBe(404);
  });
});

describe("a conversation with a character", () => {
  const begin = async (body: Record<string, unknown>) => {
    const answer = await app.post("/api/conversations", { character_ids: ["fox"], ...body });
    return { status: answer.status, ...await answer.json() };
  };
  const variantsOf = async (id: string, mid: string) =>
    (await (await app.get(`/api/conversations/${id}/messages/${mid}/variants`)).json())
      .map(({ content }: { content: string }) => content);

  test("begins with the chosen greeting, with names inserted and the other greetings as variants", async () => {
    await app.patch("/api/settings", { display_name: "Ada $& <BOT>" });
    const card = v2("Fox", {
      first_mes: "Hello {{user}}, I am {{CHAR}}.",
      alternate_greetings: ["", "<BOT> nods at <USER>. {{random:a,b}}"],
    });
    await put("fox", card);
    const first = await begin({});
    expect(first).toMatchObject({ status: 201, character_id: "fox", revision: 1 });
    expect(first.messages).toHaveLength(1);
    expect(first.messages[0]).toMatchObject({
      role: "assistant",
      content: "Hello Ada $& <BOT>, I am Fox.",
      character_id: "fox",
      status: "complete",
      variant_count: 2,
      active_variant: 0,
    });
    const other = expect.stringMatching(/^Fox nods at Ada \$& <BOT>\. [ab]$/);
    expect(await variantsOf(first.id, first.messages[0].id)).toEqual([first.messages[0].content, other]);
    const second = await begin({ greeting: 2 });
    expect(second.messages[0]).toMatchObject({ content: other, variant_count: 2, active_variant: 1 });
    const back = await app.patch(`/api/conversations/${second.id}/messages/${second.messages[0].id}`, {
      active_variant: 0,
    });
    expect(await back.json()).toMatchObject({ content: first.messages[0].content, active_variant: 0 });
    expect((await begin({ greeting: 1 })).messages[0].active_variant).toBe(0); // without text: the first that has some
    expect((await begin({ greeting: 3 })).status).toBe(400);
    const [{ snippet }] = (await (await app.get("/api/conversations?view=summary&limit=1")).json()).items;
    expect(snippet).toBe("Hello Ada $& <BOT>, I am Fox.");
  });

  test("starts empty if the character has no greeting, can't be read or doesn't exist", async () => {
    await put("fox", v2("Fox", { first_mes: "  " }));
    expect((await begin({})).messages).toEqual([]);
    await app.delete("/api/characters/fox");
    expect((await begin({})).messages).toEqual([]);
    expect((await begin({ character_ids: [] })).messages).toEqual([]);
  });

  test("uses a card's nickname, and with several characters the first one speaks", async () => {
    await put("fox", v2("Fox", { nickname: "Red", first_mes: "I am {{char}} of {{user}}." }));
    await put("owl", v2("Owl", { first_mes: "Hoo." }));
    const { messages } = await begin({ character_ids: ["fox", "owl"] });
    expect(messages.map(({ content }: { content: string }) => content)).toEqual(["I am Red of User."]);
  });
});

test("a character can be read at any time while it gets its first image", async () => {
  for (let i = 0; i < 20; i++) {
    const id = `fox${i}`;
    await put(id, v2("Fox"));
    let isOver = false;
    const seen: number[] = [];
    const looking = (async () => {
      while (!isOver) {
        const answer = await app.get(`/api/characters/${id}`);
        seen.push(answer.status);
        await answer.body?.cancel();
      }
    })();
    const picture = plainPng(20, 30);
    const headers = { "content-type": "image/png" };
    expect((await app.put(`/api/characters/${id}/avatar`, picture, { headers })).status).toBe(200);
    isOver = true;
    await looking;
    expect(new Set(seen)).toEqual(new Set([200]));
    expect((await app.get(`/api/characters/${id}/avatar`)).status).toBe(200);
  }
});

test("saving a character as it was read changes nothing in its card", async () => {
  await put("fox", v2("Fox", { mes_example: "<START>", extensions: { mine: { deep: 1 } } }));
  const read = await get("fox");
  expect((await app.put("/api/characters/fox", read)).status).toBe(200);
  expect((await get("fox")).card).toEqual(read.card);
  expect((await app.put("/api/characters/fox", { ...read, name: "Only the list's name" })).status).toBe(200);
  expect(await get("fox")).toMatchObject({ name: "Fox", card: read.card });
});

test("an import uses the only file of a form, whatever its part is called; it rejects several", async () => {
  const form = (...parts: string[]) => {
    const body = new FormData();
    body.append("note", "just text");
    for (const part of parts) body.append(part, new Blob([JSON.stringify(v2(`As ${part}`))]), "card.json");
    return app.request("POST", "/api/characters/import", body);
  };
  const taken = await form("avatar");
  expect([taken.status, (await taken.json()).name]).toEqual([201, "As avatar"]);
  for (const parts of [[], ["a", "b"]]) expect((await form(...parts)).status).toBe(400);
});

test("an image may be sent as bytes of any type", async () => {
  await put("fox", v2("Fox"));
  const init = { headers: { "content-type": "application/octet-stream" } };
  expect((await putAvatar("fox", plainPng(), init)).status).toBe(200);
  expect(sillyTavernReads(await avatarOf("fox")).data.name).toBe("Fox");
});

test("lists the characters with given IDs, and ignores unknown IDs", async () => {
  await using app = await openTestApp();
  for (const id of ["one", "two", "three"]) await app.put(`/api/characters/${id}`, { card: { name: id } });
  const items = await (await app.get("/api/characters?ids=three,one,four")).json();
  expect(items.map((item: { id: string }) => item.id)).toEqual(["one", "three"]);
});

test("a character in the own format of Agnai or RisuAI becomes a card wherever it arrives", async () => {
  const agnai = {
    kind: "character",
    name: "Fox",
    persona: { kind: "text", attributes: { text: ["Red."] } },
    greeting: "Hello!",
    characterBook: { kind: "memory", entries: [{ name: "Mill", entry: "Old.", keywords: ["mill"], enabled: true }] },
  };
  const risu = {
    chaId: "c1",
    name: "Owl",
    desc: "Wise.",
    firstMessage: "Hoo.",
    globalLore: [{ key: "mill", content: "Old." }],
  };
  const form = new FormData();
  form.set("file", new File([JSON.stringify(agnai)], "fox.json"));
  const imported = await (await app.post("/api/characters/import", form)).json();
  expect(imported.card.data).toMatchObject({ name: "Fox", description: "Red.", first_mes: "Hello!" });
  expect(imported.card.data.character_book.entries).toMatchObject([{ keys: ["mill"], content: "Old." }]);
  const put = await (await app.put("/api/characters/owl", risu)).json();
  expect(put.card.data).toMatchObject({ name: "Owl", description: "Wise.", first_mes: "Hoo." });
  expect(put.card.data.character_book.entries).toMatchObject([{ keys: ["mill"], content: "Old." }]);
});
