/** Pages of other sites: the requests for them, and the errors where nothing can be imported. */
import { afterAll, expect, test } from "vitest";
import { CardSite } from "../../../../services/characters/sites/card_site.ts";
import type { GuardedInit } from "../../../../services/http/guard/guarded_fetch.ts";
import { Sandbox } from "../../../../services/platform/sandbox/sandbox.ts";
import { plainPng, sillyTavernCard, sillyTavernPng } from "../../../helpers/files/cards.ts";

const sandbox = new Sandbox();
afterAll(() => sandbox.close());

const ID = "0190c1b2-aaaa-4bbb-8ccc-0123456789ab";
const card = sillyTavernCard("Heron");
const png = sillyTavernPng(card) as Uint8Array<ArrayBuffer>;

/** A site whose guard responds from a table and records its requests. */
function siteWith(answers: Record<string, () => Response>) {
  const asked: string[] = [];
  const fetch = (url: string | URL, init: GuardedInit = {}) => {
    asked.push(`${init.method ?? "GET"} ${url}${init.body ? ` ${init.body}` : ""}`);
    return Promise.resolve(answers[String(url)]?.() ?? new Response("no", { status: 404 }));
  };
  const site = new CardSite({
    guard: { fetch },
    sandbox,
    siteUrl: "https://api.chub.ai",
    maxCardBytes: 20_000_000,
    now: () => 0,
  });
  return { asked, import: (url: string) => site.fetchCard(url, new AbortController().signal) };
}

const EXPORT = `https://server.pygmalion.chat/api/export/character/${ID}/v2`;
const AVATAR = "https://assets.pygmalion.chat/heron.png";

test.each([
  `https://pygmalion.chat/character/${ID}`,
  `https://www.pygmalion.chat/character/${ID.toUpperCase()}/chat?x=1#y`,
  `https://pygmalion.chat/chat?character=${ID}`,
])("%s returns the card and its image", async (url) => {
  const { asked, import: fetchCard } = siteWith({
    [EXPORT]: () => Response.json({ character: { ...card, data: { ...card.data, avatar: AVATAR } } }),
    [AVATAR]: () => new Response(plainPng()),
  });
  const { bytes, image } = await fetchCard(url);
  expect(JSON.parse(new TextDecoder().decode(bytes)).data.name).toBe("Heron");
  expect(image).toEqual(plainPng());
  expect(asked).toEqual([`GET ${EXPORT}`, `GET ${AVATAR}`]);
});

test.each([["gone", 404, "x"], ["none", 200, "<html>"]])(
  "a card is used even if its image is %s",
  async (_name, status, body) => {
    const { import: fetchCard } = siteWith({
      [EXPORT]: () => Response.json({ character: { ...card, data: { ...card.data, avatar: AVATAR } } }),
      [AVATAR]: () => new Response(body, { status }),
    });
    expect((await fetchCard(`https://pygmalion.chat/character/${ID}`)).image).toBeUndefined();
  },
);

const DOWNLOAD = "https://api.jannyai.com/api/v1/download";
const FILE = "https://files.jannyai.com/heron.png";

test.each([`https://jannyai.com/characters/${ID}_character-heron`, `https://janitorai.com/characters/${ID}_heron`])(
  "%s returns the file that the site names",
  async (url) => {
    const { asked, import: fetchCard } = siteWith({
      [DOWNLOAD]: () => Response.json({ status: "ok", downloadUrl: FILE }),
      [FILE]: () => new Response(png),
    });
    expect((await fetchCard(url)).bytes).toEqual(png);
    expect(asked).toEqual([`POST ${DOWNLOAD} {"characterId":"${ID}"}`, `GET ${FILE}`]);
  },
);

test("if the site rejects servers, the error explains how to download with the browser", async () => {
  const { import: fetchCard } = siteWith({ [DOWNLOAD]: () => new Response("Just a moment", { status: 403 }) });
  const refused = fetchCard(`https://jannyai.com/characters/${ID}_heron`);
  await expect(refused).rejects.toMatchObject({ code: "upstream_error" });
  await expect(refused).rejects.toThrow(/api\.jannyai\.com.*403.*Download the card there with a browser/);
});

test("a response with another structure is reported as an error of the site", async () => {
  for (const answer of [{}, { character: null }, [], "x"]) {
    const { import: fetchCard } = siteWith({ [EXPORT]: () => Response.json(answer) });
    const failed = fetchCard(`https://pygmalion.chat/character/${ID}`);
    await expect(failed).rejects.toMatchObject({ code: "upstream_error" });
  }
  const { import: fetchCard } = siteWith({ [DOWNLOAD]: () => Response.json({ status: "ok", downloadUrl: 1 }) });
  await expect(fetchCard(`https://jannyai.com/characters/${ID}`)).rejects.toMatchObject({ code: "upstream_error" });
});

test.each([
  ["https://realm.risuai.net/character/abc", "https://realm.risuai.net/api/v1/download/png-v3/abc?non_commercial=true"],
  [
    "https://aicharactercards.com/character-cards/ann/heron/",
    "https://aicharactercards.com/wp-json/pngapi/v1/image/ann/heron",
  ],
])("requests the file from %s", async (url, file) => {
  const { asked, import: fetchCard } = siteWith({ [file]: () => new Response(png) });
  expect((await fetchCard(url)).bytes).toEqual(png);
  expect(asked).toEqual([`GET ${file}`]);
});

test("a page without a character is rejected, and so is a host that only contains a known name", async () => {
  const { asked, import: fetchCard } = siteWith({});
  for (const url of ["https://pygmalion.chat/explore", "https://jannyai.com/"]) {
    await expect(fetchCard(url)).rejects.toMatchObject({ code: "invalid_request" });
  }
  expect(asked).toEqual([]);
  const foreign = `https://evil.example/pygmalion.chat/character/${ID}`;
  await expect(fetchCard(foreign)).rejects.toMatchObject({ code: "upstream_error" });
  await expect(fetchCard(`https://notpygmalion.chat/character/${ID}`)).rejects.toThrow(/notpygmalion\.chat/);
  expect(asked).toEqual([`GET ${foreign}`, `GET https://notpygmalion.chat/character/${ID}`]);
});

test("an unknown site is rejected with the list of known ones", async () => {
  const { import: fetchCard } = siteWith({
    "https://cards.example/heron": () => new Response("\n<!doctype html><title>Heron</title>"),
  });
  const refused = fetchCard("https://cards.example/heron");
  await expect(refused).rejects.toMatchObject({ code: "unprocessable" });
  await expect(refused).rejects.toThrow(
    /cards\.example.*chub\.ai.*pygmalion\.chat.*jannyai\.com.*address of a card file/,
  );
});
