/** The first model without a terminal, with a fake hub and a fake llama-server. */
import { expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { PHONE, slowDown } from "../../../helpers/browser/ui_page.ts";
import { openFakeHub } from "../../../helpers/fakes/fake_hub.ts";
import { fakeLlamaServer } from "../../../helpers/fakes/llm/fake_llama_server.ts";
import { ggufFile } from "../../../helpers/files/gguf_file.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");
const MODEL = ggufFile({ sizeBytes: 300_000, keys: { "general.architecture": "gemma3" }, tensors: [[1000, 1000]] });

test.each(
  [
    ["light", false, { viewport: { width: 1280, height: 800 } }],
    ["dark", true, PHONE],
  ] as const,
)(
  "downloads a model that fits, runs it and goes on with it (%s, slow connection: %s)",
  async (colorScheme, isSlow, device) => {
    const folder = await Deno.makeTempDir({ prefix: "parlor-llama-" });
    await using hub = openFakeHub({
      "ggml-org/gemma-3-1b-it-GGUF": { files: { "gemma-3-1b-it-Q4_K_M.gguf": MODEL } },
    });
    const llamaServerPath = await fakeLlamaServer(folder, "good");
    await using app = await openTestApp({ config: { hubUrl: hub.url, guardAllow: ["127.0.0.2/31"], llamaServerPath } });
    const browser = await openBrowser();
    try {
      const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
      if (isSlow) await slowDown(page, "**/api/models/**");
      await page.goto(app.url);
      const download = page.getByRole("button", { name: "Download: Gemma 3 1B" });
      await download.waitFor();
      await expect.poll(() => page.getByText(/about \d+ words per second/).count()).toBeGreaterThan(0);
      await expect.poll(() => findAxeProblems(page)).toEqual([]);
      if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/quick-${colorScheme}.png` });
      const findEnd = () => download.evaluate((button) => button.getBoundingClientRect().bottom);
      await expect.poll(findEnd).toBeLessThanOrEqual(page.viewportSize()!.height);
      await download.click();
      await page.getByRole("heading", { name: "Your name" }).waitFor();
      const [connection] = (await (await app.get("/api/connections")).json()).filter((one: { active: boolean }) =>
        one.active
      );
      expect(connection.model).toBe("gemma-3-1b-it-Q4_K_M.gguf");
      expect(errors).toEqual([]);
      await context.close();
    } finally {
      await browser.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
);

test("without llama-server it says how to get it, in one line for the chosen system", async () => {
  await using app = await openTestApp({ config: { llamaServerPath: "/nowhere/llama-server" } });
  const browser = await openBrowser();
  try {
    const { page, context } = await openPage(browser, app.url, { viewport: { width: 1280, height: 800 } });
    // The tests may run in a container, where the programs of the host don't work.
    await page.route("**/api/setup/status", async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...await answer.json(), in_container: false } });
    });
    await page.goto(app.url);
    await page.getByRole("radio", { name: "Windows" }).check();
    await page.getByText("winget install llama.cpp", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Copy" }).waitFor();
    const skip = page.getByRole("button", { name: "Skip" });
    await expect.poll(() => skip.evaluate((button) => button.getBoundingClientRect().bottom)).toBeLessThanOrEqual(800);
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/quick-missing.png` });
    await context.close();
  } finally {
    await browser.close();
  }
});

test("in a container without llama-server it gives one line for compose.yaml, with a model that fits", async () => {
  await using app = await openTestApp({ config: { llamaServerPath: "/nowhere/llama-server" } });
  const browser = await openBrowser();
  try {
    const { page, context } = await openPage(browser, app.url, PHONE);
    await page.route("**/api/setup/status", async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...await answer.json(), in_container: true } });
    });
    await page.goto(app.url);
    const heading = page.getByRole("heading", { name: "Or run a model in another container" });
    await heading.waitFor();
    // The way that the notice names is right below it.
    const isAbove = await page.getByText("PARLOR_DISCOVER_HOSTS=host.docker.internal", { exact: true })
      .evaluate(
        (line, other) => line.getBoundingClientRect().top < other!.getBoundingClientRect().top,
        await heading.elementHandle(),
      );
    expect(isAbove).toBe(true);
    const service = parseYaml(await page.locator(".quick-model code").innerText());
    const { items } = await (await app.get("/api/models/recommended")).json();
    expect(service.llama).toMatchObject({
      image: "ghcr.io/ggml-org/llama.cpp:server",
      command: `-hf ${items[0].repo}:${items[0].quantization} --host 0.0.0.0`,
    });
    // The line belongs below "services:" of the file that Parlor comes with, which looks for a service of that name.
    const compose = parseYaml(await Deno.readTextFile("compose.yaml"));
    expect(compose.services.parlor.environment.PARLOR_DISCOVER_HOSTS.split(",")).toContain(Object.keys(service)[0]);
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/quick-compose.png`, fullPage: true });
    await context.close();
  } finally {
    await browser.close();
  }
});
