/** Several tabs with running replies, in one browser: it gives a host six connections over HTTP/1.1. */
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ChildServer, connectModel, startChildServer } from "../../helpers/app/child_server.ts";
import { PATIENCE_MS } from "../../helpers/app/patience.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { sendMessage } from "../../helpers/browser/ui_page.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";

let llm: FakeLlm;
let browser: Browser;
let context: BrowserContext;
let server: ChildServer;
let dataDir: string;

beforeAll(async () => {
  await builtUi();
  llm = await openFakeLlm({ switches: { manual: "on" } });
  browser = await chromium.launch({
    executablePath: Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  dataDir = await Deno.makeTempDir({ prefix: "parlor-tabs-" });
  server = await startChildServer({ dataDir, args: ["--discover-hosts", "127.0.0.1:9"] });
  await connectModel(server, llm.url);
  await server.json("POST", "/api/setup/complete");
  context = await browser.newContext({ locale: "en-US" });
  context.setDefaultTimeout(PATIENCE_MS);
  // A browser without a window shows all of its pages.
  await context.addInitScript(() => {
    const state = globalThis as { isHidden?: boolean };
    Object.defineProperty(document, "visibilityState", { get: () => state.isHidden ? "hidden" : "visible" });
    Object.defineProperty(document, "hidden", { get: () => state.isHidden === true });
  });
});
afterAll(async () => {
  await browser.close();
  await server.kill();
  await llm[Symbol.asyncDispose]();
  await Deno.remove(dataDir, { recursive: true });
});

async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((isHidden) => {
    Object.assign(globalThis, { isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
}

const replyOf = (page: Page) => page.locator(".message.reply, .reply").last();

test("eight tabs with running replies open, go on when they're seen again, and can each be stopped", async () => {
  const tabs: { page: Page; call: Awaited<ReturnType<FakeLlm["nextCall"]>> }[] = [];
  for (let n = 0; n < 8; n++) {
    const page = await context.newPage();
    await page.goto(`${server.url}/new`);
    await sendMessage(page, `Question ${n}`);
    const call = await llm.nextCall();
    await call.emit(`Beginning ${n}`);
    await replyOf(page).getByText(`Beginning ${n}`).waitFor();
    await setHidden(page, true);
    tabs.push({ page, call });
  }
  for (const [n, { page, call }] of tabs.entries()) {
    await call.emit(", and more");
    await setHidden(page, false);
    await replyOf(page).getByText(`Beginning ${n}, and more`).waitFor();
    await expect.poll(() => replyOf(page).getByText("Reconnecting").count()).toBe(0);
    // Not the one under a reply without text for 20 s.
    await page.locator(".composer").getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped", { exact: true }).waitFor();
    await call.over;
  }
});
