import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sillyTavernCard, sillyTavernPng } from "../../helpers/files/cards.ts";
import { type FakeCardSite, openFakeCardSite } from "../../helpers/fakes/fake_card_site.ts";
import { fixtureImage } from "../../helpers/files/image_files.ts";
import { PRIVATE, PUBLIC } from "../../helpers/network/loopback_guard.ts";
import { openSilentListener } from "../../helpers/network/loopback_servers.ts";
import { picture } from "../../helpers/files/pictures.ts";
import { listLongJson } from "../../helpers/app/long_json.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let site: FakeCardSite;
let app: TestApp;
beforeEach(async () => {
  site = openFakeCardSite();
  app = await openTestApp({ config: { cardSiteUrl: site.url, guardAllow: [`${PUBLIC}/32`] } });
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const importUrl = (url: string) => app.post("/api/characters/import-url", { url });
const search = async (query: string) => await (await app.get(`/api/characters/search?${query}`)).json();
const names = async (): Promise<string[]> =>
  (await (await app.get("/api/characters")).json()).map(({ name }: { name: string }) => name);

describe("search", () => {
  const heron = {
    fullPath: "ann/grey-heron",
    name: "Grey Heron",
    tagline: "Stands and waits",
    topics: ["Bird", "Water"],
    starCount: 12,
    nChats: 340,
    lastActivityAt: "2026-03-01T10:00:00Z",
    avatar_url: "http://169.254.169.254/latest/meta-data",
    max_res_url: "http://127.0.0.3/secret.png",
  };

  test("returns the site's results in Parlor's format, with images at Parlor's address", async () => {
    site.nodes = [heron];
    expect(await search("q=heron&tags=bird,%20water&sort=stars&page=1")).toEqual({
      items: [{
        id: "ann/grey-heron",
        name: "Grey Heron",
        tagline: "Stands and waits",
        creator: "ann",
        tags: ["Bird", "Water"],
        avatar_url: "/api/characters/search/ann/grey-heron/avatar",
        page_url: `${site.url}/characters/ann/grey-heron`,
        downloads: 340,
        stars: 12,
        updated_at: "2026-03-01T10:00:00.000Z",
      }],
      next_cursor: null,
    });
    const sent = new URL(site.asked[0]!, site.url).searchParams;
    expect(Object.fromEntries(sent)).toMatchObject({
      search: "heron",
      sort: "star_count",
      page: "1",
      namespace: "characters",
      nsfw: "false",
      tags: "bird,water",
      topics: "bird,water",
    });
  });

  test("filters the results of the site by tags and for adult content", async () => {
    const adult = { ...heron, fullPath: "ann/adult", nsfw_image: true };
    const labelled = { ...heron, fullPath: "ann/labelled", labels: [{ title: "NSFW" }] };
    site.nodes = [heron, { ...heron, fullPath: "ann/crow", topics: ["bird"] }, adult, labelled];
    const ids = async (query: string) => (await search(query)).items.map(({ id }: { id: string }) => id);
    expect(await ids("tags=WATER")).toEqual(["ann/grey-heron"]);
    expect(await ids("tags=bird&nsfw=true")).toHaveLength(4);
  });

  test("leads from page to page, and doesn't repeat a recent request to the site", async () => {
    site.isOldForm = true;
    site.nodes = Array.from({ length: 35 }, (_, n) => ({ fullPath: `ann/c${n}`, name: `C${n}` }));
    const first = await search("q=c");
    expect([first.items.length, first.next_cursor]).toEqual([30, "2"]);
    const second = await search("q=c&page=2");
    expect([second.items.length, second.next_cursor]).toEqual([5, null]);
    expect(await search("q=c")).toEqual(first);
    expect(site.asked).toHaveLength(2);
  });

  test("doesn't trust the site: fields of any type, results without names, responses without results", async () => {
    site.nodes = [
      { fullPath: "ann/odd", name: "Odd", topics: "bird", starCount: "many", lastActivityAt: 5, tagline: { a: 1 } },
      ...["ann", "a/b/c", "../x", "ann/..", "", "ann/a?b"].map((fullPath) => ({ fullPath, name: "No" })),
      { fullPath: "ann/unnamed", name: 5 as unknown as string },
    ];
    const { items } = await search("q=odd");
    expect(items).toMatchObject([{
      id: "ann/odd",
      tags: [],
      tagline: "",
      stars: null,
      downloads: null,
      updated_at: null,
    }]);
    for (const answer of ["<html>", "[]", '{"data":5}', "null"]) {
      site.files.set("/search", new TextEncoder().encode(answer));
      const refused = await app.get(`/api/characters/search?q=${answer.length}`);
      expect([refused.status, (await refused.json()).error.code]).toEqual([502, "upstream_error"]);
    }
    site.files.set("/search", () => new Response("", { status: 403 }));
    const blocked = await app.get("/api/characters/search?q=blocked");
    expect([blocked.status, (await blocked.json()).error.message]).toEqual([502, expect.stringContaining("403")]);
  });

  test.each(["page=0", "page=x", "sort=secret", "nsfw=1", `q=${"x".repeat(201)}`])("%s is 400", async (query) => {
    expect((await app.get(`/api/characters/search?${query}`)).status).toBe(400);
    expect(site.asked).toEqual([]);
  });

  test(
    "the URL of an image is built from its names alone, and no URL in a response is requested",
    { tags: ["W05"] },
    async () => {
      await using secret = openSilentListener(PRIVATE);
      site.nodes = [{ ...heron, avatar_url: `http://${PRIVATE}:${secret.port}/a.png` }];
      site.files.set("/avatars/ann/grey-heron/avatar.webp", fixtureImage("quarters_lossy.webp"));
      const [{ avatar_url: url }] = (await search("q=heron")).items;
      const answer = await app.get(url);
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "image/webp"]);
      expect(answer.headers.get("content-security-policy")).toContain("sandbox");
      expect(new Uint8Array(await answer.arrayBuffer())).toEqual(fixtureImage("quarters_lossy.webp"));
      const other = encodeURIComponent(`http://${PRIVATE}:${secret.port}`);
      for (const path of [`${other}/x`, `x/${other}`, "..%2f..%2fsearch/x", "%2e%2e/x", "x/a%3fb", "x/a%23b"]) {
        const refused = await app.get(`/api/characters/search/${path}/avatar?url=${other}`);
        expect([400, 404], path).toContain(refused.status);
        await refused.body?.cancel();
      }
      expect(secret.connections).toBe(0);
      expect(site.asked.every((path) => /^\/(search\?|avatars\/)/.test(path))).toBe(true);
    },
  );

  test("doesn't serve a file that isn't an image as one", { tags: ["P08"] }, async () => {
    site.files.set("/avatars/a/b/avatar.webp", new TextEncoder().encode("<svg onload=alert(1)>".padEnd(50)));
    expect((await app.get("/api/characters/search/a/b/avatar")).status).toBe(502);
    expect((await app.get("/api/characters/search/a/none/avatar")).status).toBe(404);
  });
});

describe("import-url", () => {
  const json = new TextEncoder().encode(JSON.stringify(sillyTavernCard("Direct Json")));
  const png = Uint8Array.from(sillyTavernPng(sillyTavernCard("Direct Png")));

  test.each([["/card.png?ex=1#x", png, "Direct Png"], ["/card.json", json, "Direct Json"]])(
    "accepts a direct link to %s",
    async (path, bytes, name) => {
      site.files.set(path.split("?")[0]!, bytes);
      const answer = await importUrl(site.url + path);
      expect(answer.status).toBe(201);
      expect(await answer.json()).toMatchObject({ name });
      expect(await names()).toContain(name);
    },
  );

  test("accepts a page of the card site, and finds its file in the site's response or by its names", async () => {
    site.nodes = [{ fullPath: "ann/heron", name: "Heron", max_res_url: `${site.url}/max.png`, definition: {} }];
    site.files.set("/max.png", png);
    expect((await importUrl(`${site.url}/characters/ann/heron/gallery?x=1#y`)).status).toBe(201);
    site.nodes = [{ fullPath: "ann/heron", name: "Heron", definition: {} }];
    site.files.set("/avatars/ann/heron/chara_card_v2.png", png);
    expect((await importUrl(`${site.url}/characters/ann/heron`)).status).toBe(201);
    expect(site.asked).toContain("/api/characters/ann/heron?full=true");
  });

  test("builds the card from the site's data if its file is missing", async () => {
    const definition = {
      name: "Heron",
      personality: "tall and grey",
      tavern_personality: "patient",
      description: "notes",
      first_message: "…",
      example_dialogs: "<START>",
      scenario: "a lake",
      alternate_greetings: ["Kra!"],
      embedded_lorebook: { entries: [] },
      extensions: { "x/y": 1 },
    };
    site.nodes = [{ fullPath: "ann/heron", name: "Heron", topics: ["bird"], definition }];
    const answer = await importUrl(`${site.url}/characters/ann/heron`);
    expect(answer.status).toBe(201);
    expect((await answer.json()).card.data).toMatchObject({
      name: "Heron",
      description: "tall and grey",
      personality: "patient",
      creator_notes: "notes",
      first_mes: "…",
      mes_example: "<START>",
      scenario: "a lake",
      alternate_greetings: ["Kra!"],
      tags: ["bird"],
      creator: "ann",
      character_book: { entries: [] },
      extensions: { "x/y": 1 },
    });
  });

  test.each([
    ["a page that shows no character", "https://chub.ai/lorebooks/ann/world", 400],
    ["a page of a person", "https://www.characterhub.org/users/ann", 400],
    ["a page without a name", "https://chub.ai/characters/ann", 400],
    ["what is no address", "chub dot ai", 400],
  ])("rejects %s without a request", async (_name, url, status) => {
    const refused = await importUrl(url);
    expect([refused.status, (await refused.json()).error.code]).toEqual([status, "invalid_request"]);
    expect(site.asked).toEqual([]);
  });

  test.each([["a page", "<html>".padEnd(500)], ["JSON that is no card", '{"a":1}'], ["nothing", ""]])(
    "rejects %s at the link",
    async (_name, text) => {
      site.files.set("/x.png", new TextEncoder().encode(text));
      expect((await importUrl(`${site.url}/x.png`)).status).toBe(422);
    },
  );

  test("rejects an image without a card, and says so if the site has none", async () => {
    site.files.set("/x.png", picture());
    expect((await importUrl(`${site.url}/x.png`)).status).toBe(422);
    const missing = await importUrl(`${site.url}/gone.png`);
    expect([missing.status, (await missing.json()).error.message]).toEqual([502, expect.stringContaining("404")]);
  });

  test.each([
    ["E04", [
      "http://127.0.0.3:PORT/x.png",
      "http://2130706435:PORT/",
      "http://0x7f000003:PORT/",
      "http://0177.0.0.3:PORT/",
    ]],
    ["E04", [
      "http://127.3:PORT/",
      "http://１２７.0.0.3:PORT/",
      "http://127.0.0.3.:PORT/",
      "http://[::ffff:7f00:3]:PORT/",
      "http://[::]:PORT/",
    ]],
    ["E05", [
      "http://10.0.0.1/",
      "http://169.254.169.254/latest/",
      "http://192.168.1.1/",
      "http://[fd00::1]/",
      "http://[fe80::1]/",
    ]],
    ["E06", [
      "http://localhost:PORT/",
      "http://x.localhost/",
      "http://printer.local/",
      "http://nas.internal/",
      "http://intranet/",
    ]],
    ["E07", [
      "http://u:p@127.0.0.2:SITE/x.png",
      "ftp://127.0.0.2/x.png",
      "file:///etc/passwd",
      "data:application/json,{}",
      "gopher://127.0.0.2/",
    ]],
    ["E08", [
      "http://127.0.0.2:SITE\\@127.0.0.3:PORT/",
      "http://127.0.0.3:PORT/\t#@127.0.0.2",
      "http://127.0.0.2%00.x/",
    ]],
  ])("%s no connection goes to %j", async (_id, urls) => {
    await using secret = openSilentListener(PRIVATE);
    for (const url of urls) {
      const target = url.replace("PORT", String(secret.port)).replace("SITE", new URL(site.url).port);
      const refused = await importUrl(target);
      expect([400, 403, 502], target).toContain(refused.status);
      await refused.body?.cancel();
    }
    expect(secret.connections).toBe(0);
    expect(await names()).not.toContain("Direct Png");
  });

  test("a redirect to a private address is rejected at that hop, and a loop ends", { tags: ["E03"] }, async () => {
    await using secret = openSilentListener(PRIVATE);
    for (const status of [301, 302, 303, 307, 308]) {
      for (const location of [`http://${PRIVATE}:${secret.port}/x.png`, "file:///etc/passwd", "http://localhost/"]) {
        site.files.set("/x.png", () => new Response(null, { status, headers: { location } }));
        expect([403, 502]).toContain((await importUrl(`${site.url}/x.png`)).status);
      }
    }
    site.files.set("/loop", () => new Response(null, { status: 302, headers: { location: "/loop" } }));
    expect((await importUrl(`${site.url}/loop`)).status).toBe(502);
    expect(site.asked.filter((path) => path === "/loop")).toHaveLength(6);
    expect(secret.connections).toBe(0);
  });

  test("the address of the site's file goes through the guard", { tags: ["E03"] }, async () => {
    await using secret = openSilentListener(PRIVATE);
    const definition = { name: "Heron", personality: "grey" };
    site.nodes = [{
      fullPath: "a/b",
      name: "Heron",
      max_res_url: `http://${PRIVATE}:${secret.port}/x.png`,
      definition,
    }];
    expect((await importUrl(`${site.url}/characters/a/b`)).status).toBe(201);
    expect(secret.connections).toBe(0);
  });

  test("an endless file is cut off at the maximum size of a card", { tags: ["E11"] }, async () => {
    await using small = await openTestApp({
      config: { cardSiteUrl: site.url, guardAllow: [`${PUBLIC}/32`], maxUploadBodyBytes: 1_000_000 },
    });
    let sentBytes = 0;
    site.files.set("/x.png", () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            sentBytes += 65_536;
            controller.enqueue(new Uint8Array(65_536));
          },
        }),
      ));
    const refused = await small.post("/api/characters/import-url", { url: `${site.url}/x.png` });
    expect([refused.status, (await refused.json()).error.code]).toEqual([413, "too_large"]);
    expect(sentBytes).toBeLessThan(20_000_000);
  });

  test("closed, private and unknown targets give the same error", { tags: ["E13"] }, async () => {
    await using secret = openSilentListener(PRIVATE);
    const closed = new URL(site.url);
    closed.port = "9";
    const errors = await Promise.all(
      [closed.href, `http://name.${"x".repeat(8)}.invalid/`].map(async (url) => {
        const { error } = await (await importUrl(url)).json();
        return [error.code, error.message.replace(/"[^"]*"/, "HOST")];
      }),
    );
    const { error } = await (await importUrl(`http://${PRIVATE}:${secret.port}/`)).json();
    expect(errors[0]![1]).toBe(errors[1]![1]);
    expect(error.message.replace(/"[^"]*"/, "HOST")).toBe(errors[0]![1]);
  });
});

test("answers of very many fields are read without parsing them here", async () => {
  const extensions = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, n]));
  const definition = { name: "Heron", personality: "Patient.", first_message: "Hm.", extensions };
  const node = { fullPath: "ann/heron", name: "Heron", topics: ["Bird"], extensions, definition };
  const answer = (json: unknown) => new TextEncoder().encode(JSON.stringify(json));
  site.files.set("/search", answer({ data: { nodes: [node, { ...node, labels: [{ title: "nsfl" }] }] } }));
  site.files.set("/api/characters/ann/heron", answer({ node }));
  const list = answer([node, node]);
  const texts: string[] = [];
  const long = await listLongJson(async () => {
    texts.push(await (await app.get("/api/characters/search?q=heron")).text());
    texts.push(await (await importUrl(`${site.url}/characters/ann/heron`)).text());
    site.files.set("/search", list);
    texts.push(await (await app.get("/api/characters/search?q=list")).text());
  });
  expect(long).toEqual([]);
  const [found, imported, refused] = texts.map((text) => JSON.parse(text));
  expect(found.items).toMatchObject([{ id: "ann/heron", name: "Heron", tags: ["Bird"] }]);
  expect(imported).toMatchObject({ name: "Heron", card: { data: { description: "Patient.", extensions } } });
  expect(refused.error.code).toBe("upstream_error");
});
