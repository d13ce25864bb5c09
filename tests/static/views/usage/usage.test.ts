/** Settings, Usage, and the sums of a chat, on the real server. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { ask, gather, useModel } from "../../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";
import type { CallSample } from "../../../../services/llm/upstream_client.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");
const DAY_MS = 24 * 60 * 60 * 1000;
const NOON_MS = Date.parse("2026-05-31T12:00:00Z");

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

/** Records replies of the last 40 days: a local model each day, a paid one every third. */
async function seed(app: TestApp, clock: { nowMs: number }): Promise<void> {
  const usage = await app.services.usage();
  const local: CallSample = {
    connection: { id: "local", name: "This machine" },
    model: "Mistral-Small-24B-Instruct-Q4_K_M",
    origin: { kind: "reply" },
    usage: { prompt_tokens: 2_000, completion_tokens: 250, prompt_tokens_details: { cached_tokens: 1_500 } },
    firstWordMs: 1_400,
    writingMs: 20_000,
  };
  const paid: CallSample = {
    ...local,
    connection: { id: "router", name: "OpenRouter" },
    model: "anthropic/claude-sonnet",
    usage: { prompt_tokens: 3_000, completion_tokens: 400, cost: 0.015 },
  };
  for (let ago = 39; ago >= 0; ago--) {
    clock.nowMs = NOON_MS - ago * DAY_MS;
    for (let n = 0; n <= ago * 7 % 5; n++) usage.record(local);
    usage.record({ ...local, origin: { kind: "background" } });
    if (ago % 3 === 0) usage.record(paid);
    await usage.flush();
  }
}

test.each(
  [
    ["light", "en", {}],
    ["dark", "en", PHONE],
    ["dark", "de", {}],
    ["light", "ja", PHONE],
  ] as const,
)("shows figures, charts and tables without problems (%s, %s)", async (colorScheme, language, device) => {
  const clock = { nowMs: NOON_MS };
  await using app = await openTestApp({ now: () => clock.nowMs, config: { setupCompleted: true } });
  await app.patch("/api/settings", { language });
  await seed(app, clock);
  const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
  await page.goto(`${app.url}/settings/usage`);
  await page.locator(".usage-table").first().waitFor();
  await expect.poll(() => page.locator(".usage-chart svg").count()).toBe(4);
  await expect.poll(() => page.locator(".usage-table tbody tr th").first().innerText()).toContain("Mistral-Small");
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth > innerWidth)).toBe(false);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  if (SCREENSHOTS) {
    await page.setViewportSize({ width: page.viewportSize()!.width, height: 2_300 });
    await page.screenshot({ path: `${SCREENSHOTS}/usage-${language}-${colorScheme}.png` });
  }
  expect(errors).toEqual([]);
  await context.close();
});

test("sets a price, changes the range and deletes everything, all by keyboard", async () => {
  const clock = { nowMs: NOON_MS };
  await using app = await openTestApp({ now: () => clock.nowMs, config: { setupCompleted: true } });
  await seed(app, clock);
  const { page, errors, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/usage`);
  const main = page.getByRole("main");
  const table = main.getByRole("region", { name: "By model" });
  const row = table.getByRole("row", { name: /Mistral-Small.*Chats/ });
  await row.getByRole("cell", { name: "–" }).waitFor();
  // 30 titles count apart.
  await expect.poll(() => main.locator(".usage-sums dd").allInnerTexts()).toEqual(
    ["100", "30", "270,000", "180,000", "34,000", "1.4 s", "13.1", "$0.15"],
  );
  await expect.poll(() => main.getByRole("img", { name: /^Replies: most on / }).count()).toBe(1);
  const button = row.getByRole("button", { name: /^Set the price of Mistral/ });
  await button.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await expect.poll(() => dialog.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
  await dialog.getByLabel("Prompt", { exact: true }).fill("0,5");
  await dialog.getByLabel("Reply", { exact: true }).fill("2");
  if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/usage-price.png` });
  await dialog.getByRole("button", { name: "Save" }).press("Enter");
  await dialog.waitFor({ state: "detached" });
  // 90 replies of 2,000 and 250 tokens
  await row.getByRole("cell", { name: "90", exact: true }).waitFor();
  await row.getByRole("cell", { name: "$0.135", exact: true }).waitFor();
  expect(await (await app.get("/api/usage/prices")).json()).toMatchObject([{ prompt: 0.5, completion: 2 }]);

  const days = main.getByRole("region", { name: "By day" }).getByRole("rowheader");
  await expect.poll(() => days.count()).toBe(30);
  await main.getByLabel("Time", { exact: true }).selectOption("7");
  await expect.poll(() => days.count()).toBe(7);
  await main.getByLabel("Time", { exact: true }).selectOption("365");
  await expect.poll(() => days.count()).toBe(40);
  // A year is shown by weeks.
  await expect.poll(() => main.getByRole("img", { name: /^Replies:/ }).locator("g").count()).toBe(53);

  await main.getByRole("button", { name: "Delete usage" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Delete usage" }).press("Enter");
  await main.getByRole("heading", { name: "No replies in this period" }).waitFor();
  expect((await (await app.get("/api/usage?days=366")).json()).models).toEqual([]);
  expect(errors).toEqual([]);
  await context.close();
});

test("a chat's options have its sums, which grow with each reply", async () => {
  await using llm = await openFakeLlm();
  await using app = await openTestApp({ config: { setupCompleted: true } });
  await useModel(app, llm);
  await gather(await ask(app, 1));
  const { page, errors, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/c/c1`);
  await page.getByRole("button", { name: "Chat options" }).click();
  const section = page.getByRole("region", { name: "Usage" });
  const value = (name: string) =>
    section.locator("div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd");
  await expect.poll(() => value("Replies").allInnerTexts()).toEqual(["1"]);
  await expect.poll(() => value("Prompt tokens").allInnerTexts()).toEqual(["11"]);
  await gather(await ask(app, 2));
  await expect.poll(() => value("Replies").allInnerTexts()).toEqual(["2"]);
  if (SCREENSHOTS) {
    await section.scrollIntoViewIfNeeded();
    await page.screenshot({ path: `${SCREENSHOTS}/usage-chat.png` });
  }
  expect(errors).toEqual([]);
  await context.close();
});
