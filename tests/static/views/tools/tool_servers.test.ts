/** Settings, Tools, Tool servers: the page on the real server, with a real program. */
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblemsInBothSchemes, holdToasts, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { WIDTHS } from "../../../helpers/browser/ui_page.ts";

const FAKE = fileURLToPath(new URL("../../../helpers/fakes/fake_mcp_stdio.ts", import.meta.url));
const FOLDER = Deno.env.get("SCREENSHOTS");

let browser: Browser;
let uiFolder: string;
beforeAll(async () => {
  uiFolder = await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

test("adds a program, lists its tools, sets a permission, and pastes a list", async () => {
  await using app = await openTestApp({ uiFolder, config: { toolsAllowPrograms: true } });
  await app.post("/api/setup/complete", {});
  const { page, context, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/tools`);
  await page.getByRole("button", { name: "Add a tool server" }).click();
  await page.getByLabel("Type").selectOption("stdio");
  await page.getByLabel("Name", { exact: true }).fill("Fake files");
  await page.getByRole("textbox", { name: "Command" }).fill(Deno.execPath());
  await page.getByRole("textbox", { name: "Arguments" }).fill(`run\n--no-config\n-A\n${FAKE}`);
  await page.getByLabel("Environment variables").fill("API_KEY");
  await page.getByRole("button", { name: "Save" }).first().click();
  await page.getByText("Each line needs a name and an equals sign").waitFor();
  await page.getByLabel("Environment variables").fill("API_KEY=k-123456");
  await page.getByRole("button", { name: "Save" }).first().click();

  const card = page.locator(".tool-server");
  await card.getByText("Ready").waitFor();
  await card.getByText("12 tools").click();
  await card.getByLabel("echo").selectOption("allow");
  await card.getByText("According to the server, it only reads data").waitFor();
  const stored = async () => (await (await app.get("/api/tools/servers/fake-files")).json());
  await expect.poll(async () =>
    (await stored()).tools.find((tool: { name: string }) => tool.name === "echo").permission
  )
    .toBe("allow");
  await expect.poll(() => stored()).toMatchObject({ name: "Fake files", env_names: ["API_KEY"] });

  await page.getByRole("button", { name: "Paste JSON" }).click();
  const json = page.getByLabel("Server list of another program");
  await json.fill("[]");
  await page.getByRole("button", { name: "Add servers" }).click();
  await page.getByText("This isn’t a JSON object").waitFor();
  const list = { remote: { url: "http://127.0.0.1:9/mcp", disabled: true }, old: { type: "sse", url: "http://x/sse" } };
  await json.fill(JSON.stringify({ mcpServers: list }));
  await page.getByRole("button", { name: "Add servers" }).click();
  await page.getByText("old: It uses the older SSE transport").waitFor();
  await page.getByText("1 server added").waitFor();
  await page.locator("#main").getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Edit: remote" }).click();
  await page.getByText("Custom OAuth client").waitFor();

  for (const [width] of WIDTHS) {
    await page.setViewportSize(width === "narrow" ? { width: 390, height: 844 } : { width: 1280, height: 800 });
    const findProblems = () =>
      findAxeProblemsInBothSchemes(page, async (theme) => {
        if (FOLDER) await page.screenshot({ path: `${FOLDER}/servers-${theme}-${width}.png`, fullPage: true });
      });
    await expect.poll(findProblems, { message: width }).toEqual([]);
    const measure = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await expect.poll(measure, { message: width }).toBe(0);
  }
  await page.getByRole("button", { name: "Delete: Fake files" }).click();
  await expect.poll(() => page.locator(".tool-server").count()).toBe(1);
  expect(errors).toEqual([]);
  await context.close();
});

test("deletes a server with Undo; the focus goes to a form and back", async () => {
  await using app = await openTestApp({ uiFolder });
  await app.post("/api/setup/complete", {});
  const server = { name: "Remote", transport: "http", url: "http://127.0.0.1:9/mcp", enabled: false };
  await app.put("/api/tools/servers/remote", server);
  const { page, context, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/tools`);
  const focused = () => page.evaluate(() => document.activeElement?.localName);
  for (const name of ["Add a tool server", "Edit: Remote"]) {
    await page.getByRole("button", { name }).press("Enter");
    await expect.poll(focused).toBe("select");
    await page.locator("#main").getByRole("button", { name: "Cancel" }).press("Enter");
    await expect.poll(() => page.getByRole("button", { name }).evaluate((one) => one === document.activeElement))
      .toBe(true);
  }

  const card = page.locator(".tool-server");
  await holdToasts(page);
  await page.getByRole("button", { name: "Delete: Remote" }).click();
  await card.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await card.waitFor();
  await expect.poll(async () => (await app.get("/api/tools/servers/remote")).status).toBe(200);
  await page.getByRole("button", { name: "Delete: Remote" }).click();
  await card.waitFor({ state: "detached" });
  await page.goto("about:blank");
  await expect.poll(async () => (await app.get("/api/tools/servers/remote")).status).toBe(404);
  expect(errors).toEqual([]);
  await context.close();
});

test("says how to allow programs where they aren't allowed", async () => {
  await using app = await openTestApp({ uiFolder });
  await app.post("/api/setup/complete", {});
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/tools`);
  await page.getByRole("button", { name: "Paste JSON" }).click();
  await page.getByLabel("Server list of another program").fill('{"mcpServers": {"files": {"command": "npx"}}}');
  await page.getByRole("button", { name: "Add servers" }).click();
  await page.getByText("Programs aren’t allowed").waitFor();
  await page.getByText("tools_allow_programs = true").waitFor();
  await context.close();
});
