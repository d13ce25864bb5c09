/** @slow Three pages in a browser, on the real server. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { findAxeProblems, openBrowser, openPage } from "../../helpers/browser/browser.ts";
import { PHONE } from "../../helpers/browser/ui_page.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());

test("the pages of a character, a preset and a lorebook say what Parlor doesn't use, in three languages", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const regex_scripts = [{ scriptName: "Bold" }, { scriptName: "Trim" }];
  await app.put("/api/characters/fox", { name: "Fox", description: "Red.", extensions: { regex_scripts } });
  await app.put("/api/presets/warm", { name: "Warm", rest: { extensions: { regex_scripts } } });
  await app.put("/api/lorebooks/forest", { name: "Forest", book: { entries: [{ keys: [], content: "" }] } });
  const cases = [
    {
      locale: "en-US",
      path: "/characters/fox",
      line: "2 × regex scripts: they run in a chat once you allow them there",
      list: "Bold, Trim",
    },
    {
      locale: "de-DE",
      path: "/settings/presets/warm",
      line: "2 × Regex-Skripte: Sie laufen in einem Chat, sobald Sie sie dort erlauben",
      list: "Bold, Trim",
    },
    { locale: "ja-JP", path: "/settings/lorebooks/forest", line: "1 × キーも本文もなく効果のないエントリ" },
  ];
  for (const { locale, path, line, list } of cases) {
    const { page, errors, context } = await openPage(browser, app.url, { ...PHONE, locale });
    await page.goto(app.url + path);
    const ledger = page.locator("main .ledger");
    await ledger.getByText(line).first().waitFor();
    if (list !== undefined) {
      await ledger.locator("summary").click();
      await ledger.getByRole("listitem").getByText(list).waitFor();
    }
    await expect.poll(() => findAxeProblems(page), { message: path }).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/ledger-${locale}.png`, fullPage: true });
    expect(errors).toEqual([]);
    await context.close();
  }
});
