/**
 * The site of docs/, built with VitePress and read with Chromium.
 * @slow VitePress renders every page twice.
 */
import { dirname, extname, join, posix } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildSite } from "../../build/site.ts";
import { openBrowser, openPage } from "../helpers/browser/browser.ts";
import { PHONE } from "../helpers/browser/ui_page.ts";
import { filesBelow, tempFolder } from "../helpers/files/storage_folder.ts";
import { realPart } from "./helpers/real_part.ts";

const PACKAGES = realPart("REAL_SITE_DIR", "site.sh");
/** A path other than `/`, which links and files that ignore it would miss. */
const BASE = "/parlor/";
const BUILD_MS = 600_000;
const TYPES: Record<string, string> = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
};

describe.skipIf(PACKAGES === undefined)("the site", () => {
  let out: Awaited<ReturnType<typeof tempFolder>>;
  let pages: string[];
  let files: Set<string>;
  let browser: Browser;
  let server: Deno.HttpServer<Deno.NetAddr>;
  let url: string;
  beforeAll(async () => {
    out = await tempFolder();
    pages = await buildSite(PACKAGES!, out.file("site"), { base: BASE });
    files = new Set((await filesBelow(out.file("site"))).map((path) => path.slice(out.file("site").length + 1)));
    browser = await openBrowser();
    server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
      const { pathname } = new URL(request.url);
      if (!pathname.startsWith(BASE)) return new Response(null, { status: 404 });
      const path = decodeURIComponent(pathname.slice(BASE.length)).replace(/(^|\/)$/, "$1index.html");
      const body = await Deno.readFile(join(out.file("site"), path)).catch(() => undefined);
      if (body === undefined) return new Response(null, { status: 404 });
      return new Response(body, { headers: { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" } });
    });
    url = `http://127.0.0.1:${server.addr.port}${BASE}`;
  }, BUILD_MS);
  afterAll(async () => {
    await browser?.close();
    await server?.shutdown();
    await out?.[Symbol.asyncDispose]();
  });

  test("has a page for each document, for the changelog and for each part of the API", async () => {
    const documents = (await filesBelow("docs")).filter((path) => path.endsWith(".md"))
      .map((path) => path.replace(/^docs\//, "").replace(/README\.md$/, "index.md").replace(/md$/, "html"));
    expect(documents.length).toBeGreaterThan(80);
    expect(pages).toEqual(expect.arrayContaining([
      ...documents,
      "index.html",
      "changelog.html",
      "decisions/index.html",
      "reference/index.html",
      "reference/conversations.html",
    ]));
    expect(pages.filter((page) => !files.has(page))).toEqual([]);
  });

  test("links between its pages lead to files and headings", async () => {
    const texts = new Map(
      await Promise.all(
        pages.map(async (page) => [page, await Deno.readTextFile(join(out.file("site"), page))] as const),
      ),
    );
    const idsOf = (page: string) =>
      new Set([...texts.get(page)!.matchAll(/ id="([^"]*)"/g)].map(([, id]) => unescapeHtml(id!)));
    const ids = new Map(pages.map((page) => [page, idsOf(page)]));
    const broken: string[] = [];
    let count = 0;
    for (const [page, text] of texts) {
      for (const [, quoted] of text.matchAll(/<(?:a|img|link|script)\b[^>]*? (?:href|src)="([^"]*)"/g)) {
        const target = unescapeHtml(quoted!);
        if (/^[a-z]+:/.test(target)) continue;
        count++;
        const [path = "", anchor = ""] = target.split("#", 2);
        const absolute = path === "" ? BASE + page : posix.join(BASE, dirname(page), path);
        const file = (path.startsWith("/") ? path : absolute).slice(BASE.length).replace(/(^|\/)$/, "$1index.html");
        const hasHeading = anchor === "" || ids.get(file)?.has(decodeURIComponent(anchor)) === true;
        if (!files.has(file) || !hasHeading) broken.push(`${page}: ${target}`);
      }
    }
    expect(broken).toEqual([]);
    expect(count).toBeGreaterThan(2000);
  });

  test("asks no other host, finds a word, and shows macros as they are", async () => {
    const { page, context, foreign, errors } = await openPage(browser, new URL(url).origin);
    await page.goto(url);
    await page.getByRole("heading", { name: "Parlor", level: 1 }).waitFor();
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("searchbox").fill("whisper-server");
    await page.getByRole("option", { name: "Dictation and conversations" }).click();
    await page.waitForURL(/\/guide\/voice\.html/);
    await page.goto(`${url}protocols/cards.html`);
    await page.getByText("(replaces the name in").waitFor();
    expect(await page.getByRole("main").innerText()).toContain("{{char}}");
    expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
    await context.close();
  });

  test.each(["light", "dark"] as const)("fits a phone, %s", async (colorScheme) => {
    const { page, context, errors } = await openPage(browser, new URL(url).origin, { ...PHONE, colorScheme });
    for (const path of ["", "guide/install.html", "configuration.html", "reference/conversations.html"]) {
      await page.goto(url + path);
      await page.getByRole("heading", { level: 1 }).first().waitFor();
      expect(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), path).toBe(false);
      const isDark = () => page.evaluate(() => document.documentElement.classList.contains("dark"));
      await expect.poll(isDark).toBe(colorScheme === "dark");
    }
    expect(errors).toEqual([]);
    await context.close();
  });
});

const ENTITIES: Record<string, string> = { "&amp;": "&", "&quot;": '"', "&#39;": "'", "&lt;": "<", "&gt;": ">" };

function unescapeHtml(text: string): string {
  return text.replace(/&(?:amp|quot|#39|lt|gt);/g, (entity) => ENTITIES[entity]!);
}
