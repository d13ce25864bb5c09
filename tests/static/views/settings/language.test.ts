import { afterAll, beforeAll, expect, test } from "vitest";
import { openUiBench, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

test("the page uses the browser's language if available, otherwise English", async () => {
  await using german = await bench.open("/new", { locale: "de-AT" });
  await german.page.getByRole("heading", { name: "Was beschäftigt Sie?" }).waitFor();
  await expect.poll(() => german.page.getAttribute("html", "lang")).toBe("de");
  await using japanese = await bench.open("/new", { locale: "ja-JP" });
  const greeting = japanese.page.getByRole("heading", { name: "何を話しましょうか" });
  await expect.poll(() => greeting.evaluate((heading) => getComputedStyle(heading).wordBreak)).toBe("auto-phrase");
  await using french = await bench.open("/new", { locale: "fr-FR" });
  await french.page.getByRole("heading", { name: "What’s on your mind?" }).waitFor();
  await expect.poll(() => french.page.getAttribute("html", "lang")).toBe("en");
});

test("the first load contains only English; another language is one more file", async () => {
  await using ui = await bench.open("/new", { locale: "en-GB" });
  await ui.page.getByText("What’s on your mind?").waitFor();
  const loaded = await ui.page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  const scripts = await Promise.all(
    loaded.filter((name) => name.endsWith(".js")).map(async (name) => (await fetch(name)).text()),
  );
  // The bundler escapes non-ASCII letters.
  const code = scripts.join().replace(/\\u([0-9a-f]{4})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  expect(code).toContain("What’s on your mind?");
  expect(code).not.toMatch(/Was beschäftigt Sie|何を話しましょうか/);
});

test("applies a language at once, on other devices too, and without a request on the next visit", async () => {
  await using ui = await bench.open("/settings/general", { locale: "en-GB" });
  await using other = await bench.open("/new", { locale: "en-GB", api: ui.api });
  await other.page.getByText("What’s on your mind?").waitFor();
  await ui.page.getByLabel("Language").selectOption("ja");
  await ui.page.getByRole("heading", { name: "設定" }).waitFor();
  await other.page.getByText("何を話しましょうか").waitFor();
  await expect.poll(() => ui.api.settings.language).toBe("ja");
  ui.api.refuse("GET /api/settings", { status: 500, code: "internal", message: "No" });
  await ui.page.reload();
  await ui.page.getByRole("heading", { name: "設定" }).waitFor();
  await ui.page.getByLabel("言語").selectOption("");
  await ui.page.getByRole("heading", { name: "Settings" }).waitFor();
});
