import type { Browser } from "playwright-core";
import { afterAll, beforeAll, test } from "vitest";
import { openBrowser, openPage } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { type ChildServer, startChildServer } from "../../helpers/app/child_server.ts";
import { isLong } from "../../helpers/files/sample.ts";
import { eventually } from "../../helpers/browser/ui_page.ts";

let browser: Browser;
let server: ChildServer;
let dataDir: string;
beforeAll(async () => {
  await builtUi();
  dataDir = await Deno.makeTempDir({ prefix: "parlor-stale-" });
  [browser, server] = await Promise.all([
    openBrowser(),
    startChildServer({ dataDir, args: ["--discover-hosts", "127.0.0.1:9"] }),
  ]);
  await server.json("POST", "/api/setup/complete");
  for (const id of ["c1", "c2"]) {
    await server.json("PUT", `/api/conversations/${id}`, {
      title: `About ${id}`,
      messages: [
        { id: "m0", role: "user", content: "How old is it?" },
        { id: "m1", role: "assistant", content: "Very old." },
        { id: "m2", role: "user", content: "Who built it?" },
      ],
    });
  }
  const card = { spec: "chara_card_v2", spec_version: "2.0", data: { name: "Mason", description: "", first_mes: "" } };
  await server.json("PUT", "/api/characters/mason", { card });
});
afterAll(async () => {
  await browser.close();
  await server[Symbol.asyncDispose]();
  await Deno.remove(dataDir, { recursive: true });
});

/** A change of another device: where it shows, the request, and the text that shows it. */
type Change = [
  what: string,
  page: string,
  method: string,
  path: string,
  body: unknown,
  text: string,
];

const C1 = "/api/conversations/c1";
const CONNECTION = { id: "attic", name: "Attic", kind: "openai", base_url: "http://127.0.0.1:9/v1", model: "m" };
const MASON = {
  spec: "chara_card_v2",
  spec_version: "2.0",
  data: { name: "Old Mason", description: "", first_mes: "" },
};

const CHANGES: Change[] = [
  ["an edited message", "/c/c1", "PATCH", `${C1}/messages/m1`, { content: "Built in May." }, "Built in May."],
  ["an added message", "/c/c1", "POST", `${C1}/messages`, { message: { role: "user", content: "Why?" } }, "Why?"],
  ["a title", "/c/c1", "PATCH", C1, { title: "About the tower" }, "About the tower"],
  ["another chat", "/c/c1", "PUT", "/api/conversations/c3", { title: "A new chat", messages: [] }, "A new chat"],
  ["a connection", "/settings/connections", "PUT", "/api/connections", CONNECTION, "Attic"],
  ["a setting", "/settings/general", "PATCH", "/api/settings", { language: "de" }, "Sprache"],
  ["a deleted chat", "/settings/trash", "DELETE", "/api/conversations/c2", undefined, "About c2"],
  ["a persona", "/settings/personas", "PUT", "/api/personas/p1", { name: "Wanderer" }, "Wanderer"],
  ["a character", "/characters", "PUT", "/api/characters/mason", { card: MASON }, "Old Mason"],
  ["a character's page", "/characters/mason", "PUT", "/api/characters/mason", { card: MASON }, "Old Mason"],
  ["a lorebook", "/settings/lorebooks", "PUT", "/api/lorebooks/l1", { name: "Towers", entries: {} }, "Towers"],
  ["a note", "/settings/memory", "PUT", "/api/memories/n1", { text: "Likes towers" }, "Likes towers"],
];

/** A usual run takes every second one. */
test.each(CHANGES.filter((_, n) => isLong() || n % 2 === 0))(
  "a page whose fetches are each cut once after %s becomes like a fresh page",
  async (...change) => {
    const [, path, method, api, body, text] = change;
    const origin = new URL(server.url).origin;
    await using ui = await openOn(origin);
    await ui.page.goto(server.url + path);
    await ui.page.locator("main").waitFor();
    const cut = new Set<string>();
    let isCutting = false;
    await ui.context.route((url) => url.pathname.startsWith("/api/") && url.pathname !== "/api/events", (route) => {
      const { pathname } = new URL(route.request().url());
      if (!isCutting || route.request().method() !== "GET" || cut.has(pathname)) return route.fallback();
      cut.add(pathname);
      return route.abort("connectionreset");
    });
    // What the page starts with is loaded.
    await ui.page.waitForLoadState("load");
    await eventually(async () => ui.hears() && await ui.isQuiet(), Boolean);
    isCutting = true;
    await (await server.request(method, api, body)).body?.cancel();
    // The text of a deleted chat stands in the sidebar before the page hears of the change.
    await eventually(() => cut.size, (count) => count > 0);
    await ui.page.getByText(text).first().waitFor();
    await using fresh = await openOn(origin);
    await fresh.page.goto(server.url + path);
    const read = async () => await Promise.all([ui.page, fresh.page].map((page) => page.locator("main").innerText()));
    await eventually(read, ([shown, right]) => shown === right && right!.includes(text) === shown!.includes(text));
    if (method === "PATCH" && api === "/api/settings") await server.json("PATCH", api, { language: null });
  },
);

async function openOn(origin: string) {
  const watched = await openPage(browser, origin);
  // Files count, too: a screen that is loaded on demand asks for its content once its code is there.
  const requests = new Set<unknown>();
  let requested = 0;
  let hears = false;
  const isFeed = (url: string) => url.endsWith("/api/events");
  watched.page.on("request", (request) => {
    if (isFeed(request.url())) return;
    requests.add(request);
    requested++;
  });
  watched.page.on("response", (response) => hears ||= isFeed(response.url()));
  watched.page.on("requestfinished", (request) => requests.delete(request));
  watched.page.on("requestfailed", (request) => requests.delete(request));
  /** Nothing is asked for, and what came was put to use without asking for more. */
  const isQuiet = async () => {
    const before = requested;
    if (requests.size > 0) return false;
    await watched.page.evaluate(async () => {
      for (let turn = 0; turn < 3; turn++) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        await new Promise((resolve) => requestIdleCallback(resolve));
      }
    });
    return requests.size === 0 && requested === before;
  };
  return { ...watched, isQuiet, hears: () => hears, [Symbol.asyncDispose]: () => watched.context.close() };
}
