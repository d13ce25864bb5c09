/** Settings: Data and About, on the real server. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { tempFolder } from "../../../helpers/files/storage_folder.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

test.each([["light", {}], ["dark", PHONE]] as const)(
  "shows disk usage, backups, and findings with what to do (%s)",
  async (colorScheme, device) => {
    // Removed after the server has ended, which may still be writing today's backup there.
    await using home = await tempFolder();
    const backupDir = home.file("backups");
    await Deno.mkdir(backupDir, { mode: 0o700 });
    await Deno.writeTextFile(`${backupDir}/parlor-2026-01-01T000000Z.backup`, "sealed");
    await using app = await openTestApp({ config: { backupDir, setupCompleted: true } });
    await Deno.chmod(`${app.dataDir}/storage-key`, 0o644);
    const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
    const look = async (name: string) => {
      const isTooWide = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      await expect.poll(isTooWide, { message: name }).toBe(false);
      await expect.poll(() => findAxeProblems(page), { message: name }).toEqual([]);
      if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/upkeep-${name}-${colorScheme}.png` });
    };
    await page.goto(`${app.url}/settings/data`);
    const main = page.getByRole("main");
    await main.getByRole("list", { name: "Storage space" }).getByText("Chats and settings").waitFor();
    await main.getByRole("list", { name: "Backups" }).getByText("parlor-2026-01-01T000000Z.backup").waitFor();
    await expect.poll(() => main.getByLabel("Backup folder").inputValue()).toBe(backupDir);
    await look("data");
    await page.goto(`${app.url}/settings/about`);
    const findings = main.getByRole("list", { name: "Health check" });
    await findings.getByRole("listitem").first().getByText("chmod 0600").waitFor();
    await main.getByText("1 problem found.").or(main.getByText(/^\d+ problems found\.$/)).waitFor();
    await look("about");
    await main.getByRole("button", { name: "Show licenses" }).click();
    await main.getByLabel("Find a package").fill("preact");
    await main.getByText("2 packages").or(main.getByText("3 packages")).waitFor();
    await main.getByText(/^preact /).click();
    await main.getByRole("region", { name: "preact", exact: true }).getByText("The MIT License (MIT)").waitFor();
    await look("licences");
    await Deno.chmod(`${app.dataDir}/storage-key`, 0o600);
    await main.getByRole("button", { name: "Check again" }).click();
    await findings.getByText("chmod 0600").waitFor({ state: "detached" });
    await page.goto(`${app.url}/settings`);
    await page.getByRole("searchbox", { name: "Search settings" }).fill("space");
    await main.getByRole("link", { name: /Storage/ }).click();
    await page.waitForURL(`${app.url}/settings/data#space`);
    expect(errors).toEqual([]);
    await context.close();
  },
);

test("shows how the command after a backup ended", async () => {
  await using home = await tempFolder();
  const script = home.file("after.sh");
  await Deno.writeTextFile(script, 'test -s "$PARLOR_BACKUP_FILE"');
  const config = { backupDir: home.file("backups"), backupSchedule: "off", backupAfter: ["/bin/sh", script] };
  await using app = await openTestApp({ config: { ...config, setupCompleted: true } });
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/data`);
  const main = page.getByRole("main");
  const now = main.getByRole("button", { name: "Back up now" });
  await now.click();
  await main.getByRole("status").getByText("/bin/sh").waitFor();
  await Deno.writeTextFile(script, "echo no route to host >&2; exit 3");
  await now.click();
  await main.getByRole("alert").getByText('"/bin/sh" ended with code 3: no route to host').waitFor();
  await main.getByRole("list", { name: "Backups" }).getByRole("listitem").nth(1).waitFor();
  await context.close();
});

test("a check that fails says why, and can be repeated", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context } = await openPage(browser, app.url);
  const failure = { error: { code: "internal", message: "No look was possible", request_id: "r1" } };
  await page.route("**/api/findings", (route) => route.fulfill({ status: 500, json: failure }));
  await page.goto(`${app.url}/settings/about`);
  await page.getByRole("main").getByRole("alert").getByText("No look was possible").waitFor();
  await page.unroute("**/api/findings");
  await page.getByRole("main").getByRole("button", { name: "Check again" }).click();
  await page.getByText("The configuration is valid").waitFor();
  await context.close();
});

test("unreadable licenses say why next to their button", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context } = await openPage(browser, app.url);
  const failure = { error: { code: "not_available", message: "No notices here", request_id: "r1" } };
  await page.route("**/api/licences", (route) => route.fulfill({ status: 503, json: failure }));
  await page.goto(`${app.url}/settings/about`);
  const main = page.getByRole("main");
  await main.getByRole("button", { name: "Show licenses" }).click();
  await main.getByRole("alert").getByText("No notices here").waitFor();
  await page.unroute("**/api/licences");
  await main.getByRole("button", { name: "Try again" }).click();
  await main.getByText(/^\d+ packages$/).waitFor();
  await context.close();
});

test.each([
  ["de-DE", "Die Konfiguration ist lesbar", /chmod 0600 .*erstellen Sie einen neuen Schlüssel/],
  ["ja-JP", "設定は有効です", /chmod 0600 .*新しい鍵を作ってください/],
])("translates findings to the page's language (%s)", async (locale, all, remedy) => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  await Deno.chmod(`${app.dataDir}/storage-key`, 0o644);
  const { page, errors, context } = await openPage(browser, app.url, { locale });
  await page.goto(`${app.url}/settings/about`);
  await page.getByText(all).waitFor();
  await page.getByText(remedy).waitFor();
  await expect.poll(() => page.getByText("can be read").count()).toBe(0);
  expect(errors).toEqual([]);
  await context.close();
});
