import { expect, test } from "vitest";
import { filesWithText } from "../../helpers/files/storage_folder.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

interface Hit {
  conversation_id: string;
  message_id: string | null;
  title: string;
  role: string | null;
  snippet: string;
  created_at: string;
}
type Page = { items: Hit[]; next_cursor: string | null };

async function search(app: TestApp, q: string, more: Record<string, string> = {}): Promise<Page> {
  const answer = await app.get(`/api/search?${new URLSearchParams({ q, ...more })}`);
  if (answer.status !== 200) throw new Error(await answer.text());
  return await answer.json();
}

/** Follows the cursors to the end. */
async function searchAll(app: TestApp, q: string, more: Record<string, string> = {}): Promise<Hit[]> {
  const hits: Hit[] = [];
  let cursor: string | null = null;
  do {
    const page = await search(app, q, cursor === null ? more : { ...more, cursor });
    hits.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return hits;
}

const idsOf = (hits: Hit[]) => hits.map((hit) => hit.message_id);
const turn = (id: string, content: unknown, role = "user") => ({ id, role, content });

/** A clock that never returns the same time twice, so that conversations have a definite order. */
function ticking(): () => number {
  let now = Date.UTC(2026, 0, 1);
  return () => now += 1000;
}

async function save(app: TestApp, id: string, messages: unknown[], fields: Record<string, unknown> = {}) {
  const answer = await app.put(`/api/conversations/${id}`, { title: `Chat ${id}`, ...fields, messages });
  if (!answer.ok) throw new Error(await answer.text());
  await answer.body?.cancel();
}

test("finds messages by text, newest conversations and newest messages first", async () => {
  await using app = await openTestApp({ now: ticking() });
  await save(app, "old", [
    turn("o1", "The Lighthouse"),
    turn("o2", "nothing"),
    turn("o3", "lighthouse keeper", "assistant"),
  ]);
  await save(app, "new", [turn("n1", [{ type: "text", text: "a LIGHTHOUSE in parts" }])]);
  const { items, next_cursor } = await search(app, "lighthouse");
  expect(next_cursor).toBeNull();
  expect(idsOf(items)).toEqual(["n1", "o3", "o1"]);
  const { messages } = await (await app.get("/api/conversations/old")).json();
  expect(items[1]).toEqual({
    conversation_id: "old",
    message_id: "o3",
    title: "Chat old",
    role: "assistant",
    snippet: "lighthouse keeper",
    created_at: messages[2].created_at,
  });
});

test("finds umlauts, full-width and Japanese text; all words and phrases must be in one message", async () => {
  await using app = await openTestApp();
  await save(app, "c1", [
    turn("m1", "Die Größe der ÜBERRASCHUNG"),
    turn("m2", "ｆｕｌｌ　ｗｉｄｔｈ"),
    turn("m3", "今日は東京で雨が降る"),
    turn("m4", 'line\nbreaks and \\ and "quotes"'),
  ]);
  expect(idsOf(await searchAll(app, "überraschung größe"))).toEqual(["m1"]);
  expect(idsOf(await searchAll(app, "full width"))).toEqual(["m2"]);
  expect(idsOf(await searchAll(app, "東京"))).toEqual(["m3"]);
  expect(idsOf(await searchAll(app, '\\ "breaks and"'))).toEqual(["m4"]);
  expect(idsOf(await searchAll(app, '"größe überraschung"'))).toEqual([]);
  expect(idsOf(await searchAll(app, "größe 東京"))).toEqual([]);
  expect(idsOf(await searchAll(app, "content created_at"))).toEqual([]);
});

test("lists a title before the messages of its conversation", async () => {
  await using app = await openTestApp({ now: ticking() });
  await save(app, "c1", [turn("m1", "about a harbour")], { title: "The Old Harbour" });
  const { created_at } = await (await app.get("/api/conversations/c1")).json();
  const { items } = await search(app, "harbour");
  expect(idsOf(items)).toEqual([null, "m1"]);
  expect(items[0]).toMatchObject({ title: "The Old Harbour", role: null, snippet: "The Old Harbour", created_at });
});

test("pages without gaps or repeats while a conversation changes", async () => {
  await using app = await openTestApp({ now: ticking() });
  const long = "filler ".repeat(300);
  const expected: string[] = [];
  for (let c = 0; c < 5; c++) {
    const messages = Array.from({ length: 30 }, (_, m) => turn(`c${c}m${m}`, `${m % 2 ? "needle" : "hay"} ${long}`));
    await save(app, `c${c}`, messages);
    expected.unshift(...messages.filter((_, m) => m % 2).map(({ id }) => id).reverse());
  }
  const first = await search(app, "needle");
  expect(idsOf(first.items)).toEqual(expected.slice(0, 20));
  // The conversation in which the first page stopped moves to the front, as does one that was not reached.
  await app.patch("/api/conversations/c3/messages/c3m0", { content: "edited" });
  const rest = await searchAll(app, "needle", { cursor: first.next_cursor! });
  expect(idsOf(rest)).toEqual(expected.slice(20));
});

test("limits a search to one conversation or one character", async () => {
  await using app = await openTestApp({ now: ticking() });
  await save(app, "c1", [turn("m1", "needle")], { character_id: "anna" });
  await save(app, "c2", [turn("m2", "needle")], { character_id: "ben" });
  await save(app, "c3", Array.from({ length: 25 }, (_, n) => turn(`x${n}`, "needle")));
  expect(idsOf(await searchAll(app, "needle", { conversation_id: "c1" }))).toEqual(["m1"]);
  expect(idsOf(await searchAll(app, "needle", { character_id: "ben" }))).toEqual(["m2"]);
  expect(await searchAll(app, "needle", { conversation_id: "c1", character_id: "ben" })).toEqual([]);
  expect(await searchAll(app, "needle", { conversation_id: "missing" })).toEqual([]);
  expect(await searchAll(app, "needle", { conversation_id: "c3" })).toHaveLength(25);
});

test("doesn't find edited, removed or trashed text", async () => {
  await using app = await openTestApp();
  await save(app, "c1", [turn("m1", "needle one"), turn("m2", "needle two"), turn("m3", "hay")]);
  await save(app, "c2", [turn("m4", "needle four")]);
  await app.patch("/api/conversations/c1/messages/m1", { content: "changed" });
  await app.patch("/api/conversations/c1/messages/m3", { content: "a needle now" });
  await app.delete("/api/conversations/c1/messages/m2");
  await app.delete("/api/conversations/c2");
  expect(idsOf(await searchAll(app, "needle"))).toEqual(["m3"]);
});

test.each([
  "",
  "q=",
  "q=%20%20",
  `q=${"x".repeat(501)}`,
  "q=a&conversation_id=a%20b",
  "q=a&cursor=x",
  "q=a&cursor=1.2.3",
])(
  "rejects the query %j with 400",
  { tags: ["P12"] },
  async (query) => {
    await using app = await openTestApp();
    const answer = await app.get(`/api/search?${query}`);
    expect([answer.status, (await answer.json()).error.code]).toEqual([400, "invalid_request"]);
  },
);

test("answers many concurrent searches", async () => {
  await using app = await openTestApp();
  await save(app, "c1", Array.from({ length: 60 }, (_, n) => turn(`m${n}`, `word${n}x ${"filler ".repeat(200)}`)));
  const pages = await Promise.all(Array.from({ length: 60 }, (_, n) => search(app, `word${n}x`)));
  expect(pages.map((page) => idsOf(page.items))).toEqual(Array.from({ length: 60 }, (_, n) => [`m${n}`]));
});

test("logs no error when a client disconnects, and continues other searches", async () => {
  await using app = await openTestApp();
  await save(app, "c1", Array.from({ length: 200 }, (_, n) => turn(`m${n}`, `needle ${"filler ".repeat(400)}`)));
  for (let n = 0; n < 5; n++) {
    const leaving = new AbortController();
    const answer = app.get("/api/search?q=nowhere", { signal: leaving.signal });
    leaving.abort();
    await expect(answer).rejects.toThrow();
  }
  expect((await search(app, "needle")).items).toHaveLength(20);
  expect(app.logLines.filter((line) => line.includes("defect"))).toEqual([]);
});

test("leaves no plaintext of a search in the data folder", { tags: ["K01"] }, async () => {
  await using app = await openTestApp();
  await save(app, "c1", [turn("m1", "Needle-in-message and more")], { title: "Needle-in-title" });
  expect(await searchAll(app, "needle-in")).toHaveLength(2);
  await app.restart();
  expect(await filesWithText(app.dataDir, "eedle-in")).toEqual([]);
  expect(app.logLines.filter((line) => line.includes("eedle"))).toEqual([]);
});

test("searches short conversations and those with many blocks in order", async () => {
  await using app = await openTestApp({ now: ticking() });
  const filler = "filler ".repeat(2200); // fills a block
  const expected: string[] = [];
  for (const [n, count] of [2, 90, 3, 1, 70, 5].entries()) {
    const messages = Array.from(
      { length: count },
      (_, i) => turn(`c${n}m${i}`, i % 30 === 0 ? `needle ${filler}` : filler),
    );
    await save(app, `c${n}`, messages);
    const hits = messages.filter(({ content }) => String(content).startsWith("needle")).map(({ id }) => id);
    expected.unshift(...hits.reverse());
  }
  expect(idsOf(await searchAll(app, "needle"))).toEqual(expected);
});

test("finds a changed title by its new words only", async () => {
  await using app = await openTestApp();
  await save(app, "c1", [turn("m1", "text")], { title: "Lighthouse", participants: [{ character_id: "ada" }] });
  expect(await searchAll(app, "lighthouse")).toHaveLength(1);
  await app.patch("/api/conversations/c1", { title: "Harbour", character_id: "eve" });
  expect(await searchAll(app, "lighthouse")).toEqual([]);
  expect(await searchAll(app, "harbour", { character_id: "eve" })).toMatchObject([{ title: "Harbour" }]);
  expect(await searchAll(app, "harbour", { character_id: "ada" })).toEqual([]);
});

test("narrows the search to a role and a time", async () => {
  await using app = await openTestApp();
  const at = (year: number) => ({ created_at: `${year}-06-01T00:00:00.000Z` });
  await save(app, "c1", [
    { ...turn("u1", "A lighthouse?"), ...at(2021) },
    { ...turn("a1", "The lighthouse.", "assistant"), ...at(2022) },
    { ...turn("u2", "Which lighthouse?"), ...at(2023) },
  ], { title: "The lighthouse" });
  const find = async (more: Record<string, string>) => idsOf(await searchAll(app, "lighthouse", more));
  expect(await find({})).toEqual([null, "u2", "a1", "u1"]);
  expect(await find({ role: "user" })).toEqual(["u2", "u1"]);
  expect(await find({ role: "assistant" })).toEqual(["a1"]);
  expect(await find({ since: "2022-01-01T00:00:00Z", until: "2023-06-01T00:00:00.000Z" })).toEqual(["a1"]);
  expect(await find({ since: "2022-06-01T02:00:00+02:00", role: "user" })).toEqual(["u2"]);
  for (const bad of ["since=yesterday", "until=2022-13-40T00:00:00Z", "role=narrator"]) {
    expect((await app.get(`/api/search?q=lighthouse&${bad}`)).status).toBe(400);
  }
});
