/** @slow Each flow of a first visit is done on the real page, some at two widths. */
import { gzipSync } from "node:zlib";
import type { Browser, BrowserContextOptions, Response } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  findAxeProblems,
  findAxeProblemsInBothSchemes,
  openBrowser,
  openPage,
  type WatchedPage,
} from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { type ChildServer, connectModel, startChildServer } from "../../helpers/app/child_server.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { eventually, sendMessage } from "../../helpers/browser/ui_page.ts";
import { freePort } from "../../real/helpers/free_port.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

/** Where nothing listens, so that no other server is found. */
const NOWHERE = "127.0.0.1:9";

/** A real server on a fresh data directory. @param searched Where it looks for model servers. */
async function openServer(args: string[] = [], searched = NOWHERE): Promise<ChildServer> {
  const dataDir = await Deno.makeTempDir({ prefix: "parlor-page-" });
  const server = await startChildServer({ dataDir, args: ["--discover-hosts", searched, ...args] });
  // Calls of the model are counted.
  await server.json("PATCH", "/api/settings", { auto_title: false, auto_summary: false });
  return {
    ...server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await Deno.remove(dataDir, { recursive: true });
    },
  };
}

async function openAt(server: ChildServer, path: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const watched = await openPage(browser, new URL(server.url).origin, options);
  await watched.page.goto(server.url + path);
  return watched;
}

/** Checks accessibility, foreign requests and errors, then closes the pages. */
async function expectClean(...pages: WatchedPage[]): Promise<void> {
  for (const { page, context, foreign, errors } of pages) {
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
    await context.close();
  }
}

test("a newcomer opens the page, writes to the demo and reads its reply", async () => {
  await using server = await openServer();
  const ui = await openAt(server, "/");
  await ui.page.getByRole("heading", { name: "Choose a model" }).waitFor();
  await ui.page.getByRole("button", { name: "Skip" }).click();
  await ui.page.getByRole("heading", { name: "Your name" }).waitFor();
  await ui.page.getByRole("button", { name: "Skip" }).click();
  await ui.page.getByRole("button", { name: "Start chatting" }).click();
  await sendMessage(ui.page, "Hello");
  const prose = ui.page.locator(".reply .prose").last();
  await prose.getByText("not a language model").waitFor();
  await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
  const [summary] = (await server.json<{ items: { id: string }[] }>("GET", "/api/conversations?view=summary")).items;
  const { messages } = await server.json<{ messages: { content: string; status: string }[] }>(
    "GET",
    `/api/conversations/${summary!.id}`,
  );
  // The greeting of the built-in character comes first.
  expect(messages.slice(1)).toMatchObject([{ content: "Hello" }, { status: "complete" }]);
  await expect.poll(async () => (await prose.innerText()).trim()).toBe(messages[2]!.content.trim());
  expect(new URL(ui.page.url()).pathname).toBe(`/c/${summary!.id}`);
  await expectClean(ui);
});

test("a reply outlives a reload, shows live in a second browser, and its Stop works there", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  await using server = await openServer();
  await connectModel(server, llm.url);
  const ui = await openAt(server, "/new");
  await sendMessage(ui.page, "Tell me a story");
  const call = await llm.nextCall();
  await call.emit("Once upon ");
  const prose = ui.page.locator(".reply .prose");
  await prose.getByText("Once upon").waitFor();
  await ui.page.reload();
  await prose.getByText("Once upon").waitFor();
  await call.emit("a time ");
  await prose.getByText("Once upon a time", { exact: true }).waitFor();

  const other = await openAt(server, new URL(ui.page.url()).pathname, { colorScheme: "dark" });
  await other.page.locator(".reply .prose").getByText("Once upon a time", { exact: true }).waitFor();
  await call.emit("there was");
  for (const { page } of [ui, other]) {
    await page.locator(".reply .prose").getByText("Once upon a time there was", { exact: true }).waitFor();
  }
  await other.page.locator(".composer").getByRole("button", { name: "Stop" }).click();
  for (const { page } of [ui, other]) await page.locator(".ending", { hasText: "Stopped" }).waitFor();
  await call.over;
  await expect.poll(() => llm.chats).toHaveLength(1);
  await expectClean(ui, other);
});

test("a reply started elsewhere shows live in a page that has the chat open", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  await using server = await openServer();
  await connectModel(server, llm.url);
  await server.json("PUT", "/api/conversations/c1", { title: "Shared", messages: [] });
  const ui = await openAt(server, "/c/c1");
  await ui.page.getByRole("heading", { name: "Shared" }).waitFor();
  const answer = await server.request("POST", "/api/chat", {
    conversation_id: "c1",
    messages: [{ role: "user", content: "From a script" }],
  }).then((response) => ({ response }));
  const call = await llm.nextCall();
  await call.emit("Seen everywhere");
  await ui.page.getByText("From a script").first().waitFor();
  await ui.page.locator(".reply .prose").getByText("Seen everywhere").waitFor();
  await call.finish();
  await answer.response.body?.cancel();
  await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
  await expectClean(ui);
});

test("a failed model is shown with its reason, and Retry gets the reply", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  await using server = await openServer();
  await connectModel(server, llm.url);
  const ui = await openAt(server, "/new");
  await sendMessage(ui.page, "Go on");
  const first = await llm.nextCall();
  await first.emit("Half a");
  await ui.page.locator(".reply .prose").getByText("Half a").waitFor();
  await first.fail("cut");
  await ui.page.locator(".ending.danger").waitFor();
  await expect.poll(() => ui.page.locator(".reply .prose").innerText()).toBe("Half a");
  await ui.page.getByRole("button", { name: "Retry" }).click();
  const second = await llm.nextCall();
  await second.emit("A whole reply");
  await second.finish();
  await ui.page.locator(".reply .prose").getByText("A whole reply", { exact: true }).waitFor();
  await expect.poll(() => ui.page.locator(".reply").count()).toBe(1);
  await expectClean(ui);
});

test("a server killed in the middle of a reply leaves it interrupted, and it can be continued", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const dataDir = await Deno.makeTempDir({ prefix: "parlor-page-" });
  const port = String(freePort());
  const first = await startChildServer({ dataDir, port });
  await connectModel(first, llm.url);
  const ui = await openAt(first, "/new");
  await sendMessage(ui.page, "Tell me");
  await (await llm.nextCall()).emit("Until here");
  await ui.page.locator(".reply .prose").getByText("Until here").waitFor();
  await first.kill();
  await ui.page.locator(".reply-state", { hasText: "Connection lost" }).waitFor();

  // The page finds its server at the same address again and reconnects.
  await using server = await startChildServer({ dataDir, port });
  expect(server.url).toBe(first.url);
  await ui.page.getByText("The server stopped before the reply was complete", { exact: true }).waitFor();
  await expect.poll(() => ui.page.locator(".reply .prose").innerText()).toBe("Until here");
  await ui.page.getByRole("button", { name: "Continue" }).click();
  const more = await llm.nextCall();
  await more.emit(" and no further.");
  await more.finish();
  await ui.page.locator(".reply .prose").getByText("Until here and no further.", { exact: true }).waitFor();
  await expectClean(ui);
  await Deno.remove(dataDir, { recursive: true }).catch(() => {});
});

test("a draft follows from one browser to another", async () => {
  await using server = await openServer();
  await server.json("PUT", "/api/conversations/c1", { title: "Shared", messages: [] });
  const [ui, other] = [await openAt(server, "/c/c1"), await openAt(server, "/c/c1")];
  for (const { page } of [ui, other]) await page.getByRole("heading", { name: "Shared" }).waitFor();
  await ui.page.getByLabel("Message", { exact: true }).fill("Half a thought");
  const text = () => other.page.getByLabel("Message", { exact: true }).inputValue();
  await eventually(text, (value) => value === "Half a thought");
  await expectClean(ui, other);
});

test("one click finds a model, adds it and uses it; settings test, change and delete it", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", pieces: ["From the ", "model"] });
  await using server = await openServer([], `127.0.0.1:${llm.port}`);
  const ui = await openAt(server, "/new");
  await ui.page.getByRole("button", { name: "Find a model" }).click();
  await ui.page.getByRole("button", { name: /^Add and use: llama\.cpp/ }).click();
  await ui.page.getByText("Now using “llama.cpp”").waitFor();
  await sendMessage(ui.page, "Who answers?");
  await ui.page.locator(".reply .prose").getByText("From the model", { exact: true }).waitFor();
  await expect.poll(() => llm.chats).toHaveLength(1);

  await ui.page.goto(`${server.url}/settings/connections`);
  await ui.page.getByRole("button", { name: "Test: llama.cpp" }).click();
  await ui.page.getByText("The connection works").waitFor();
  await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
  await ui.page.getByRole("link", { name: "Edit" }).click();
  await ui.page.getByLabel("Name").fill("My model");
  await ui.page.getByLabel("API key").fill("sk-very-secret");
  await ui.page.getByRole("button", { name: "Save", exact: true }).click();
  await ui.page.getByRole("heading", { name: "My model" }).waitFor();
  await ui.page.getByRole("link", { name: "Edit" }).click();
  await ui.page.getByText("A key is saved.").waitFor();
  await expect.poll(() => ui.page.getByLabel("API key").inputValue()).toBe("");
  await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
  await ui.page.getByRole("button", { name: "Remove saved key" }).click();
  await ui.page.getByText("Key removed").waitFor();
  await ui.page.getByLabel("URL").fill("http://127.0.0.1:9");
  await ui.page.getByRole("button", { name: "Test" }).click();
  await ui.page.getByText("The connection doesn’t work").waitFor();
  await ui.page.getByRole("link", { name: "Cancel" }).click();
  await ui.page.getByRole("button", { name: "Delete: Demo" }).click();
  await ui.page.goto("about:blank");
  const names = () =>
    server.json<{ name: string }[]>("GET", "/api/connections").then((all) => all.map((each) => each.name));
  await eventually(names, (all) => all.join() === "My model");
  await ui.page.goto(`${server.url}/settings/connections`);
  await ui.page.getByRole("heading", { name: "My model" }).waitFor();
  await expectClean(ui);
});

test(
  "a model's hostile text reaches the page through the real server and does nothing there",
  { tags: ["W01", "W03"] },
  async () => {
    const far = "https://far.example";
    const pieces = [
      `![i](${far}/1.png) <img src="${far}/2.png" onerror="globalThis.hit=1">\n\n`,
      `<script>globalThis.hit=1</script><style>@import "${far}/3.css"</style>\n\n`,
      `<svg onload="globalThis.hit=1"><image href="${far}/4.png"/></svg><iframe src="${far}/5"></iframe>\n\n`,
      `<form action="${far}/6"><input name="q"><button>Send</button></form>\n\nEnd of it.`,
    ];
    await using llm = await openFakeLlm({ pieces });
    await using server = await openServer();
    await connectModel(server, llm.url);
    const ui = await openAt(server, "/new");
    await sendMessage(ui.page, `<img src="${far}/7.png" onerror="globalThis.hit=1">`);
    await ui.page.locator(".reply .prose").getByText("End of it.").waitFor();
    await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
    await expect.poll(() => ui.page.evaluate(() => "hit" in globalThis)).toBe(false);
    await expect.poll(() => ui.page.locator("img, iframe, .prose form, .prose input, .html-block svg").count()).toBe(0);
    // Tags that aren't allowed are text, whose URLs are links as in any other text.
    await expect.poll(() => ui.page.locator(".prose a").evaluateAll((all) => all.map((a) => a.getAttribute("href"))))
      .toEqual([
        `${far}/1.png`,
        `${far}/2.png`,
        `${far}/3.css`,
        `${far}/4.png%22/%3E`,
        `${far}/5`,
        `${far}/6%22%3E`,
      ]);
    expect(ui.foreign).toEqual([]);
    await ui.context.close();
  },
);

test("a new chat loads at most 100 kB of script and style in its first 2 s, and the messages with the first text", async () => {
  await using server = await openServer();
  const ui = await openPage(browser, new URL(server.url).origin);
  const { page } = ui;
  const loads: Promise<number>[] = [];
  const measure = (response: Response) => {
    if (!/\.(?:js|css)$/.test(new URL(response.url()).pathname)) return;
    loads.push(response.body().then((body) => gzipSync(body, { level: 9 }).length));
  };
  page.on("response", measure);
  // The page's time passes in steps only, so that a slow machine doesn't come to what is loaded later.
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  await page.goto(`${server.url}/new`);
  const heading = page.getByRole("heading", { name: "Connect a language model" });
  let shownAfterMs = 0;
  const step = async () => {
    // What the page waits for can take longer than its first 2 s.
    if (shownAfterMs < 2000) {
      await page.clock.runFor(20);
      shownAfterMs += 20;
    }
    return await heading.isVisible();
  };
  await expect.poll(step, { interval: 100 }).toBe(true);
  await page.clock.runFor(2000 - shownAfterMs);
  await page.evaluate(() => fetch("/healthz").then((answer) => answer.text())); // behind what was asked for before
  page.off("response", measure); // The body of a later one may be asked for when the page is closed.
  const kilobytes = (await Promise.all(loads)).reduce((sum, bytes) => sum + bytes, 0) / 1000;
  expect(loads.length).toBeGreaterThan(2);
  expect(kilobytes).toBeLessThan(100);
  const messages = page.waitForResponse(/MessageList/);
  await page.getByRole("textbox", { name: "Message" }).fill("H");
  expect((await messages).ok()).toBe(true);
  await page.clock.resume();
  await expectClean(ui);
});
