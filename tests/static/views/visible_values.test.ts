/** Values of others that the owner decides by, on each page that shows them: nothing in them is hidden. */
import { Buffer } from "node:buffer";
import { zipSync } from "fflate";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { openFakeMcpHttp } from "../../helpers/fakes/fake_mcp_http.ts";
import { tavernFolder } from "../../helpers/files/tavern_folder.ts";
import { WIDTHS } from "../../helpers/browser/ui_page.ts";

const SCREENSHOTS = Deno.env.get("SCREENSHOTS");
const OVERRIDE = "\u202E";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

/** Checks that the page holds no character that changes the reading order, in each width. */
async function look(page: Page, name: string): Promise<void> {
  expect(await page.locator("main").textContent(), name).not.toMatch(/[\u202A-\u202E\u2066-\u2069\u200B]/);
  for (const [width] of WIDTHS) {
    await page.setViewportSize(width === "narrow" ? { width: 390, height: 844 } : { width: 1280, height: 800 });
    const measure = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await expect.poll(measure).toBe(0);
    await expect.poll(() => findAxeProblems(page), { message: `${name} ${width}` }).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/visible-${name}-${width}.png`, fullPage: true });
  }
}

test("names of connections, and the model's list", { tags: ["J10"] }, async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  await app.put("/api/connections", {
    id: "x",
    name: `Local ${OVERRIDE}lanretxe pаypal`,
    base_url: "http://127.0.0.1:9",
  });
  const { page, context, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/connections`);
  const card = page.locator(".card.connection").filter({ hasText: "Local" });
  await card.getByText("⟨U+202E⟩").first().waitFor();
  await card.getByText("⟨mixes Cyrillic, Latin⟩").first().waitFor();
  await page.getByRole("button", { name: "Test: Local ⟨U+202E⟩lanretxe" }).waitFor();
  await look(page, "connections");
  expect(errors).toEqual([]);
  await context.close();
});

test("tool servers, their tools, and the address to sign in at", { tags: ["J10"] }, async () => {
  await using tools = openFakeMcpHttp({ isAdder: true, description: `Adds ${OVERRIDE}numbers` });
  await using login = openFakeMcpHttp();
  const { origin } = new URL(login.url);
  await using locked = openFakeMcpHttp({ isProtected: true, authorizationServer: origin });
  await using app = await openTestApp({ config: { setupCompleted: true } });
  await app.put("/api/tools/servers/a", { name: `Sum${OVERRIDE}s`, transport: "http", url: tools.url });
  await app.put("/api/tools/servers/b", {
    name: "Locked",
    transport: "http",
    url: locked.url,
    trusted_origins: [origin],
  });
  const { page, context, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/tools`);
  const first = page.locator(".tool-server").filter({ hasText: "Sum" });
  await first.getByRole("heading", { name: "Sum⟨U+202E⟩s" }).waitFor();
  await first.getByText("1 tool", { exact: true }).click();
  await first.getByText("⟨U+202E⟩numbers").waitFor();
  await page.getByRole("button", { name: "Sign in: Locked" }).click();
  await page.getByText(`${origin}/authorize`, { exact: true }).waitFor();
  const link = page.getByRole("link", { name: "Continue" });
  await expect.poll(async () => new URL((await link.getAttribute("href"))!).origin).toBe(origin);
  await look(page, "tools");
  expect(errors).toEqual([]);
  await context.close();
});

test("proposed memories, before and while they're edited", { tags: ["J10"] }, async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  await app.patch("/api/settings", { memory_proposals: true, memory_asked: true });
  const { proposals } = await app.services.memory();
  expect(await proposals.add({ text: `Sam likes ${OVERRIDE}aet`, scope: { kind: "everything" } })).toBe("proposed");
  const { page, context, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/memory`);
  await page.locator(".memory-proposal").getByText("Sam likes ⟨U+202E⟩aet").waitFor();
  await look(page, "memory");
  await page.getByRole("button", { name: "Edit and accept" }).click();
  const preview = page.getByRole("group", { name: "With hidden characters shown" });
  await preview.getByText("Sam likes ⟨U+202E⟩aet").waitFor();
  await page.getByRole("textbox", { name: "Memory", exact: true }).fill("Sam likes tea");
  await expect.poll(() => preview.count()).toBe(0);
  expect(errors).toEqual([]);
  await context.close();
});

test("reports of imports", { tags: ["J10"] }, async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/data/import`);
  const files = tavernFolder();
  files[`characters/Bad${OVERRIDE}gnp.exe.png`] = new TextEncoder().encode("no picture");
  const zip = { name: "default-user.zip", mimeType: "application/zip", buffer: Buffer.from(zipSync(files)) };
  await page.locator("main input[type=file]").setInputFiles([zip]);
  await page.getByRole("button", { name: "Preview import" }).click();
  await page.getByRole("heading", { name: "Import preview" }).waitFor();
  await page.getByText("1 item not imported").click();
  await page.getByText("characters/Bad⟨U+202E⟩gnp.exe.png").waitFor();
  await look(page, "import");
  expect(errors).toEqual([]);
  await context.close();
});
