import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { openHttpClient } from "../../../../services/http/http_client.ts";
import type { JsonObject } from "../../../../services/json/type_guards.ts";
import type { ToolOutput } from "../../../../services/tools/tool_registry.ts";
import { Sandbox } from "../../../../services/platform/sandbox/sandbox.ts";
import { PAGE_LIMITS, type PageLimits, PageReader } from "../../../../services/tools/web/page_reader.ts";
import { WebTools } from "../../../../services/tools/web/web_tools.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { openTestGuard, PRIVATE, PUBLIC, type TestGuard } from "../../../helpers/network/loopback_guard.ts";
import { openSilentListener } from "../../../helpers/network/loopback_servers.ts";
import { happened, standingClock } from "../../../helpers/fakes/standing_clock.ts";
import { type FakeSearxng, openFakeSearxng, searchResult } from "../../../helpers/fakes/fake_searxng.ts";

let app: TestApp;
let guard: TestGuard;
let searxng: FakeSearxng;
let site: Deno.HttpServer<Deno.NetAddr>;
let serve: (request: Request) => Response | Promise<Response>;
let requests: string[];
const signal = new AbortController().signal;

beforeEach(async () => {
  app = await openTestApp();
  guard = await openTestGuard({ "inside.example": [PRIVATE], "two.example": [PRIVATE, PUBLIC] });
  searxng = openFakeSearxng();
  requests = [];
  serve = () => html("<title>Tea</title><p>Green tea.</p>");
  site = Deno.serve({ port: 0, hostname: PUBLIC, onListen() {} }, (request) => {
    requests.push(new URL(request.url).pathname);
    return serve(request);
  });
  await (await app.services.webTools()).settings.put({ searchUrl: searxng.origin });
});
afterEach(async () => {
  await site.shutdown();
  await searxng[Symbol.asyncDispose]();
  await guard[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
});

const sandbox = new Sandbox();
afterAll(() => sandbox.close());

const at = (path: string) => `http://${PUBLIC}:${site.addr.port}${path}`;
const html = (text: string, type = "text/html; charset=utf-8") =>
  new Response(`<!doctype html><html>${text}`, { headers: { "content-type": type } });

/** The tools with the settings of the app, and a guard that treats a loopback address as public. */
async function openTools(limits: Partial<PageLimits> = {}, now = Date.now) {
  const { settings } = await app.services.webTools();
  const client = openHttpClient();
  const tools = new WebTools({
    settings,
    client,
    pages: new PageReader({ sandbox, openGuard: () => Promise.resolve(guard), now, limits }),
  });
  return {
    tools,
    async call(name: string, args: JsonObject, options: { maxBytes?: number; timeoutMs?: number } = {}) {
      const tool = (await tools.findTool("web", name))!;
      return await tools.callTool(tool, args, { signal, timeoutMs: 60_000, maxBytes: 65_536, ...options });
    },
    [Symbol.dispose]: () => client.close(),
  };
}

const textOf = ({ parts }: ToolOutput) => parts.map((part) => part.type === "text" ? part.text : "").join("");

test("searches and lists title, address and excerpt of ten results", async () => {
  using web = await openTools();
  searxng.switches.pages = [[], Array.from({ length: 25 }, (_, n) => searchResult(n + 1))];
  searxng.switches.pages[1]![0] = searchResult(1, {
    title: " Tea\n\u202etime ",
    content: `Leaves\u0000 ${"and water ".repeat(100)}`,
    publishedDate: "2026-05-01T00:00:00",
  });
  searxng.switches.pages[1]![1] = searchResult(2, { url: "javascript:alert(1)" });
  searxng.switches.answers = [{ answer: "4 minutes", url: "https://example.org" }, "hot"];
  const output = await web.call("web_search", { query: " tea ", page: 2, time_range: "year" });
  expect(searxng.queries).toEqual([{ q: "tea", format: "json", pageno: "2", time_range: "year" }]);
  const blocks = textOf(output).split("\n\n");
  expect(blocks.slice(0, 2)).toEqual(["Answer: 4 minutes", "Answer: hot"]);
  expect(blocks[2]).toMatch(
    /^1\. Tea time\nhttps:\/\/example\.org\/1\n2026-05-01T00:00:00\nLeaves and water .{400,500}…$/,
  );
  expect(blocks[3]).toBe("2. Result 3\nhttps://example.org/3\nExcerpt 3");
  expect(blocks).toHaveLength(12);
  expect(output).toMatchObject({ isError: false, truncated: false });
});

test("says that nothing was found, and which engines didn't respond", async () => {
  using web = await openTools();
  searxng.switches.pages = [];
  expect(await web.call("web_search", { query: "tea" })).toMatchObject({
    isError: false,
    parts: [{ text: "The search found nothing." }],
  });
  searxng.switches.unresponsiveEngines = [["brave", "Suspended: CAPTCHA"], ["qwant"], [], "x"];
  const output = await web.call("web_search", { query: "tea" });
  expect(output.isError).toBe(true);
  expect(textOf(output)).toContain("didn't respond: brave (Suspended: CAPTCHA), qwant.");
  searxng.switches.pages = [[searchResult(1)]];
  expect((await web.call("web_search", { query: "tea" })).isError).toBe(false);
});

test.each<[string, Partial<FakeSearxng["switches"]>, string, RegExp]>([
  [
    "JSON is off",
    { formats: ["html"] },
    "upstream_error",
    /status 403.*add json to search\.formats in its settings\.yml/,
  ],
  ["the limiter refuses", { limit: 0 }, "upstream_error", /status 429.*limiter.*settings\.yml/],
  ["it answers with a page", { answer: html("Sign in") }, "upstream_error", /web page instead of JSON/],
  ["it isn't JSON", { answer: new Response("{") }, "upstream_error", /it isn't JSON/],
  ["it has another shape", { answer: Response.json([1]) }, "upstream_error", /it has no results/],
  ["it is huge", { answer: new Response(" ".repeat(1_100_000)) }, "upstream_error", /larger than/],
  [
    "it redirects elsewhere",
    { answer: new Response(null, { status: 302, headers: { location: "http://127.0.0.1:1/" } }) },
    "upstream_error",
    /redirects to/,
  ],
])("fails with advice if %s", async (_what, switches, code, message) => {
  using web = await openTools();
  Object.assign(searxng.switches, switches);
  await expect(web.call("web_search", { query: "tea" })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
});

test("ends a search that takes longer than the call may", async () => {
  using web = await openTools();
  searxng.switches.delayMs = 2_000;
  const call = web.call("web_search", { query: "tea" }, { timeoutMs: 50 });
  await expect(call).rejects.toMatchObject({ code: "upstream_timeout" });
});

test.each([
  ["web_search", {}],
  ["web_search", { query: " " }],
  ["web_search", { query: "x".repeat(501) }],
  ["web_search", { query: "tea", page: 0 }],
  ["web_search", { query: "tea", time_range: "hour" }],
  ["read_page", {}],
  ["read_page", { url: "tea" }],
  ["read_page", { url: "file:///etc/passwd" }],
  ["read_page", { url: "http://example.org/", start: -1 }],
  ["read_page", { url: "http://example.org/", start: "10" }],
])("answers %s with arguments %j with an error and sends no request", async (name, args) => {
  using web = await openTools();
  expect(await web.call(name, args)).toMatchObject({ isError: true });
  expect(searxng.queries).toEqual([]);
  expect(guard.lookups).toEqual([]);
});

test("reads the main text of a page without its navigation", async () => {
  using web = await openTools();
  const article = "Green tea is made from leaves that haven't withered, and it is brewed with water below boiling. ";
  const menu = `<ul>${"<li><a href=/x>Menu item</a></li>".repeat(30)}</ul>`;
  serve = () =>
    html(`<head><title>Green tea</title></head><body><nav class="menu">${menu}</nav><article><h1>Green tea</h1>
      ${`<p>${article.repeat(4)}</p>`.repeat(5)}<script>steal()</script></article><footer>${menu}</footer></body>`);
  const text = textOf(await web.call("read_page", { url: at("/tea") }));
  expect(text.split("\n").slice(0, 3)).toEqual(["Green tea", at("/tea"), ""]);
  expect(text).toContain(article.trim());
  expect(text).not.toMatch(/Menu item|steal/);
});

test("continues reading where it stopped, without fetching the page again", async () => {
  let nowMs = 0;
  using web = await openTools({}, () => nowMs);
  const whole = Array.from({ length: 5_000 }, (_, n) => `word${n}`).join(" ");
  serve = () => new Response(whole, { headers: { "content-type": "text/plain" } });
  const pieces: string[] = [];
  for (const start of [0, 20_000, 40_000]) {
    const text = textOf(await web.call("read_page", { url: at("/long.txt"), start }));
    const end = text.indexOf("\n\n");
    expect(text.slice(0, end)).toContain(`[characters ${start} to `);
    expect(text.slice(0, end).includes("for more, use start")).toBe(start < 40_000);
    pieces.push(text.slice(end + 2));
  }
  const read = pieces.join("");
  expect(read.replace(/\s+/g, " ")).toBe(whole);
  expect(requests).toEqual(["/long.txt"]);
  const beyond = await web.call("read_page", { url: at("/long.txt"), start: read.length });
  expect(beyond.isError).toBe(true);
  expect(textOf(beyond)).toContain(`only ${read.length} characters`);
  nowMs += 11 * 60_000;
  await web.call("read_page", { url: at("/long.txt") });
  expect(requests).toHaveLength(2);
});

test("cuts the text at the limit of the call, at a whole character", async () => {
  using web = await openTools();
  serve = () => new Response("茶".repeat(1_000), { headers: { "content-type": "text/plain; charset=utf-8" } });
  const output = await web.call("read_page", { url: at("/tea.txt") }, { maxBytes: 1_000 });
  expect(output.truncated).toBe(true);
  expect(textOf(output)).toMatch(/茶$/);
  expect(new TextEncoder().encode(textOf(output)).length).toBeLessThanOrEqual(1_000);
});

test("reads nothing at internal addresses, or after a redirect to one", { tags: ["E03"] }, async () => {
  using web = await openTools();
  await using inside = openSilentListener(PRIVATE);
  await using local = openSilentListener("127.0.0.1");
  const urls = [
    `http://${PRIVATE}:${inside.port}/`,
    `http://127.0.0.1:${local.port}/`,
    `http://2130706433:${local.port}/`,
    `http://[::ffff:127.0.0.1]:${local.port}/`,
    `http://localhost:${local.port}/`,
    `http://inside.example:${inside.port}/`,
    "http://169.254.169.254/latest/meta-data/",
    "http://metadata.google.internal/",
    "http://user:secret@192.168.0.1/",
  ];
  for (const url of urls) {
    const direct = await web.call("read_page", { url });
    expect(direct.isError, url).toBe(true);
    expect(textOf(direct)).not.toContain("secret");
    serve = () => new Response(null, { status: 302, headers: { location: url } });
    expect((await web.call("read_page", { url: at("/redirect") })).isError, url).toBe(true);
  }
  expect([inside.connections, local.connections]).toEqual([0, 0]);
});

test("follows a redirect to a public address and names the final one", async () => {
  using web = await openTools();
  serve = (request) =>
    new URL(request.url).pathname === "/old" ? Response.redirect(at("/new"), 302) : html("<p>Moved here.</p>");
  expect(textOf(await web.call("read_page", { url: at("/old") }))).toBe(`${at("/new")}\n\nMoved here.`);
  serve = () => Response.redirect(at("/loop"), 302);
  expect((await web.call("read_page", { url: at("/loop") })).isError).toBe(true);
});

test("rejects a page above the limit, even one that grows when it's decompressed", async () => {
  using web = await openTools({ maxBytes: 100_000 });
  serve = () => new Response("tea ".repeat(50_000), { headers: { "content-type": "text/plain" } });
  expect(await web.call("read_page", { url: at("/huge") })).toMatchObject({ isError: true });
  const zipped = await new Response(
    new Blob(["tea ".repeat(1_000_000)]).stream().pipeThrough(new CompressionStream("gzip")),
  ).bytes();
  expect(zipped.length).toBeLessThan(50_000);
  serve = () => new Response(zipped, { headers: { "content-type": "text/plain", "content-encoding": "gzip" } });
  expect(await web.call("read_page", { url: at("/bomb") })).toMatchObject({ isError: true });
  serve = () => html("<p>Still here.</p>");
  expect((await web.call("read_page", { url: at("/") })).isError).toBe(false);
});

test("stops reading a page that trickles, and one that takes too much to parse", async () => {
  using web = await openTools({ fetchMs: 200, reader: { ...PAGE_LIMITS.reader, chars: 1_000 } });
  const left = Promise.withResolvers<void>();
  let isAsked = false;
  serve = () =>
    new Response(
      new ReadableStream({
        start(controller) {
          isAsked = true;
          controller.enqueue(new TextEncoder().encode("<p>slow"));
        },
        cancel: () => left.resolve(),
      }),
      { headers: { "content-type": "text/html" } },
    );
  {
    using clock = standingClock();
    const call = web.call("read_page", { url: at("/slow") });
    await happened(() => isAsked);
    expect(await clock.until(call, 200)).toMatchObject({ isError: true });
  }
  await left.promise;
  serve = () => html(`<p>${"tea ".repeat(1_000)}</p>`);
  expect(await web.call("read_page", { url: at("/long") })).toMatchObject({ isError: true });
});

test.each<[string, () => Response, RegExp]>([
  ["an image", () => new Response(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 1])), /isn't a web page/],
  ["a missing page", () => new Response("gone", { status: 404 }), /status 404/],
  ["an empty page", () => html("<script>render()</script>"), /no text/],
])("answers with an error for %s", async (_what, answer, message) => {
  using web = await openTools();
  serve = answer;
  const output = await web.call("read_page", { url: at("/x") });
  expect(output.isError).toBe(true);
  expect(textOf(output)).toMatch(message);
});

test("offers nothing until configured, and no disabled tool", async () => {
  using web = await openTools();
  const names = async () => (await web.tools.listTools()).tools.map(({ name }) => name);
  const { settings } = web.tools;
  expect(await names()).toEqual(["web_search", "read_page"]);
  const tool = (await web.tools.findTool("web", "web_search"))!;
  await settings.put({ searchUrl: null });
  expect(await names()).toEqual([]);
  expect(await web.tools.findTool("other", "read_page")).toBeUndefined();
  const options = { signal, timeoutMs: 1_000, maxBytes: 1_000 };
  await expect(web.tools.callTool(tool, { query: "tea" }, options)).rejects.toMatchObject({ code: "not_found" });
  await settings.put({ readPage: true });
  expect(await names()).toEqual(["read_page"]);
  await settings.put({ searchUrl: searxng.origin, search: false });
  expect(await names()).toEqual(["read_page"]);
});

test("keeps a permission for one definition of the tool, and asks by default", async () => {
  using web = await openTools();
  const tool = (await web.tools.findTool("web", "web_search"))!;
  expect(tool.permission).toBe("ask");
  await web.tools.setPermission(tool, "allow");
  expect((await web.tools.findTool("web", "web_search"))!.permission).toBe("allow");
  expect((await web.tools.findTool("web", "read_page"))!.permission).toBe("ask");
  await web.tools.setPermission({ ...tool, fingerprint: "an earlier description" }, "allow");
  expect((await web.tools.findTool("web", "web_search"))!.permission).toBe("ask");
});
