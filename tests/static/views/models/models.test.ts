/** The models page on the real server, with a fake hub and a fake llama-server. */
import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblemsInBothSchemes, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { until } from "../../../helpers/app/chat_client.ts";
import { openFakeHub } from "../../../helpers/fakes/fake_hub.ts";
import { fakeLlamaServer } from "../../../helpers/fakes/llm/fake_llama_server.ts";
import { ggufFile } from "../../../helpers/files/gguf_file.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { PHONE, sendMessage, WIDTHS } from "../../../helpers/browser/ui_page.ts";

const KEYS = { "general.architecture": "qwen3", "qwen3.context_length": 40960, "qwen3.block_count": 28 };
const MODEL = ggufFile({ sizeBytes: 3_000_000, keys: KEYS, tensors: [[1024, 1000, 600]] });
const NAME = "Qwen3-0.6B-Q4_K_M.gguf";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

async function openBench({ hasProgram = true } = {}) {
  const hub = openFakeHub({
    "owner/Qwen3-0.6B-GGUF": {
      files: { [NAME]: MODEL, "mmproj-F16.gguf": ggufFile({ sizeBytes: 2000 }) },
      license: "apache-2.0",
      downloads: 12345,
    },
    "owner/Gated-GGUF": { files: { "gated-Q8_0.gguf": MODEL }, gated: "manual" },
  });
  const folder = await Deno.makeTempDir({ prefix: "parlor-llama-" });
  const llamaServerPath = hasProgram ? await fakeLlamaServer(folder, "good") : `${folder}/nothing`;
  const app = await openTestApp({ config: { hubUrl: hub.url, guardAllow: ["127.0.0.2/31"], llamaServerPath } });
  const pages: { close(): Promise<void> }[] = [];
  return {
    hub,
    app,
    /** Opens the models page as another device. */
    async open(options: BrowserContextOptions = {}) {
      const watched = await openPage(browser, app.url, options);
      pages.push(watched.context);
      await watched.page.goto(`${app.url}/settings/models`);
      await watched.page.getByRole("heading", { name: "Models", exact: true }).waitFor();
      return watched;
    },
    async [Symbol.asyncDispose]() {
      for (const page of pages) await page.close();
      await app[Symbol.asyncDispose]();
      await hub[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

test("finds, downloads with progress on every device, runs and deletes a model", async () => {
  await using bench = await openBench();
  const held = Promise.withResolvers<void>();
  bench.hub.faults.hold = { afterBytes: 1_000_000, until: held.promise };
  const { page, errors, foreign } = await bench.open();
  const other = (await bench.open(PHONE)).page;
  await page.getByText("No models yet").waitFor();
  await page.getByLabel("Name").fill("qwen");
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByText("12.3K downloads a month · apache-2.0 · updated Aug 1, 2026").waitFor();
  await page.getByRole("button", { name: "Show files: owner/Qwen3-0.6B-GGUF" }).click();
  await page.getByText("Q4_K_M · 3 MB").waitFor();
  const projectors = page.getByRole("list", { name: "owner/Qwen3-0.6B-GGUF: Vision projectors" });
  await projectors.getByText("2 kB").waitFor();
  await expect.poll(() => page.getByRole("link", { name: "View on the hub" }).getAttribute("href")).toBe(
    `${bench.hub.url}/owner/Qwen3-0.6B-GGUF`,
  );
  await page.getByRole("button", { name: `Download: ${NAME}` }).click();
  const offered = page.getByRole("list", { name: "owner/Qwen3-0.6B-GGUF", exact: true });
  await offered.getByText("Downloading").waitFor();

  for (const device of [page, other]) await device.getByText("1 MB of 3 MB").first().waitFor();
  await page.reload();
  await page.getByText("1 MB of 3 MB").waitFor();
  await expect.poll(() => page.getByRole("progressbar", { name: NAME }).getAttribute("value")).toMatch(/^0\.33/);
  held.resolve();
  for (const device of [page, other]) {
    await device.getByText("owner/Qwen3-0.6B-GGUF · GGUF · Q4_K_M · 614.4M parameters · context 41K · 3 MB").waitFor();
    await device.getByText("1 MB of 3 MB").waitFor({ state: "detached" });
  }

  await page.getByRole("button", { name: /^Run here/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("The model supports up to 40,960.").waitFor();
  await dialog.getByText(/^This file has no chat template/).waitFor();
  await dialog.getByLabel("Context size in tokens").fill("12");
  await dialog.getByText("Enter a whole number, 256 or more").waitFor();
  await expect.poll(() => dialog.getByRole("button", { name: "Start" }).isDisabled()).toBe(true);
  await dialog.getByLabel("Context size in tokens").fill("4096");
  await dialog.getByRole("button", { name: "Start" }).click();
  for (const device of [page, other]) await device.getByText("Running").first().waitFor();
  await page.getByText("Latest output").click();
  await page.getByText(/main: loading model from .*context 4096/).waitFor();
  expect(
    (await (await bench.app.get("/api/connections")).json()).find(({ id }: { id: string }) => id === "local").active,
  )
    .toBe(true);
  await other.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped").first().waitFor();

  await page.getByRole("button", { name: /^Delete: owner/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  for (const device of [page, other]) await device.getByText("No models yet").waitFor();
  expect(errors).toEqual([]);
  expect(foreign).toEqual([]);
}, 180_000);

test("Run, a reply in the chat, Stop: then the chat says why there is no reply", async () => {
  await using bench = await openBench();
  await Deno.writeFile(`${bench.app.dataDir}/models/small.gguf`, MODEL);
  const { page, errors } = await bench.open();
  await page.getByRole("button", { name: "Run here: small.gguf" }).click();
  const dialog = page.getByRole("dialog");
  const idle = dialog.getByLabel("Stop when idle (minutes)");
  await expect.poll(() => idle.inputValue()).toBe("30");
  await idle.fill("10081");
  await dialog.getByText("Enter a whole number up to 10,080").waitFor();
  await expect.poll(() => dialog.getByRole("button", { name: "Start" }).isDisabled()).toBe(true);
  await idle.fill("45");
  await dialog.getByRole("button", { name: "Start" }).click();
  await page.getByText("Running").first().waitFor();
  const runner = await bench.app.get("/api/models/local/runner");
  expect(await runner.json()).toMatchObject({ idle_minutes: 45, context_size: 8192 });

  await page.goto(`${bench.app.url}/new`);
  await sendMessage(page, "Good evening");
  await page.locator(".reply", { hasText: "Good evening from this machine" }).waitFor();

  await page.goto(`${bench.app.url}/settings/models`);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByText("Stopped").first().waitFor();
  await page.goto(`${bench.app.url}/new`);
  await sendMessage(page, "Are you still there?");
  await page.getByText("The local model is stopped. Start it in Settings > Models").first().waitFor();
  expect(errors).toEqual([]);
}, 180_000);

test("cancels a download; resumes or discards a failed one that shows why", async () => {
  await using bench = await openBench();
  const held = Promise.withResolvers<void>();
  bench.hub.faults.hold = { afterBytes: 1_000_000, until: held.promise };
  const { page } = await bench.open();
  const ask = (repo: string, file: string) => bench.app.post("/api/models/download", { repo, format: "gguf", file });
  await ask("owner/Qwen3-0.6B-GGUF", NAME);
  await page.getByRole("button", { name: `Cancel: ${NAME}` }).click();
  await page.getByRole("heading", { name: "Downloads" }).waitFor({ state: "detached" });
  held.resolve();
  bench.hub.faults.hold = undefined;
  await ask("owner/Gated-GGUF", "gated-Q8_0.gguf");
  await page.getByText(/accept its terms/).waitFor();
  await page.getByRole("button", { name: "Discard: gated-Q8_0.gguf" }).click();
  await page.getByRole("heading", { name: "Downloads" }).waitFor({ state: "detached" });
  await ask("owner/Gated-GGUF", "gated-Q8_0.gguf");
  await page.getByText(/accept its terms/).waitFor();
  bench.hub.repos["owner/Gated-GGUF"]!.gated = false;
  await page.getByRole("button", { name: "Resume: gated-Q8_0.gguf" }).click();
  await page.getByText("owner/Gated-GGUF · GGUF · Q8_0").waitFor();
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByRole("button", { name: "Show files: owner/Gated-GGUF" }).click();
  await page.getByRole("list", { name: "owner/Gated-GGUF" }).getByText("Downloaded").waitFor();
});

test("toggles files with a button that keeps the focus, and ignores a late response", async () => {
  await using bench = await openBench();
  const { page } = await bench.open();
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByRole("button", { name: "Show files: owner/Qwen3-0.6B-GGUF" }).press("Enter");
  await page.getByText("Q4_K_M · 3 MB").waitFor();
  const hide = page.getByRole("button", { name: "Hide files: owner/Qwen3-0.6B-GGUF" });
  await expect.poll(() => hide.getAttribute("aria-expanded")).toBe("true");
  await expect.poll(() => hide.evaluate((element) => element === document.activeElement)).toBe(true);
  await page.keyboard.press("Enter");
  await page.getByText("Q4_K_M · 3 MB").waitFor({ state: "detached" });
  const show = page.getByRole("button", { name: "Show files: owner/Qwen3-0.6B-GGUF" });
  await expect.poll(() => show.evaluate((element) => element === document.activeElement)).toBe(true);

  let asked = 0;
  const late = Promise.withResolvers<void>();
  await page.route("**/api/models/browse/files?*", async (route) => {
    asked++;
    await late.promise;
    await route.continue();
  });
  await show.press("Enter");
  await until(() => asked === 1, "the files are asked for");
  await hide.press("Enter");
  await show.waitFor();
  late.resolve();
  // A resource has an entry once its response has ended.
  await page.waitForFunction(() =>
    performance.getEntriesByType("resource").filter(({ name }) => name.includes("/browse/files?")).length === 2
  );
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await expect.poll(() => page.getByText("Q4_K_M · 3 MB").count()).toBe(0);
});

test("on phones the figures of a download stay inside its card", async () => {
  await using bench = await openBench();
  const held = Promise.withResolvers<void>();
  bench.hub.faults.hold = { afterBytes: 1_000_000, until: held.promise };
  await bench.app.post("/api/models/download", { repo: "owner/Qwen3-0.6B-GGUF", format: "gguf", file: NAME });
  const { page } = await bench.open(PHONE);
  const figures = page.locator(".progress-text");
  await page.getByText("1 MB of 3 MB").waitFor();
  // The longest texts: with a rate and remaining hours, in German.
  await figures.evaluate((element) =>
    element.textContent = "12,4 GB von 123,4 GB · 12,3 MB je Sekunde · noch 12 Std. 34 Min."
  );
  const [card, words] = await Promise.all([
    page.locator(".card", { has: figures }).boundingBox(),
    figures.boundingBox(),
  ]);
  expect(words!.x + words!.width).toBeLessThanOrEqual(card!.x + card!.width);
  held.resolve();
});

test("without llama-server the page says how to get it, and shows the command for this file", async () => {
  await using bench = await openBench({ hasProgram: false });
  await Deno.writeFile(`${bench.app.dataDir}/models/small.gguf`, MODEL);
  const { page } = await bench.open();
  await page.getByRole("button", { name: "Run here: small.gguf" }).click();
  await page.getByText(/brew install llama\.cpp/).waitFor();
  await page.getByText(/llama-server --model .*small\.gguf .*--port 8080/).waitFor();
});

test.each(WIDTHS)(
  "axe finds nothing with models in all states, light and dark, %s",
  async (width, options) => {
    await using bench = await openBench();
    const held = Promise.withResolvers<void>();
    bench.hub.faults.hold = { afterBytes: 1_000_000, until: held.promise };
    await Deno.writeFile(`${bench.app.dataDir}/models/small.gguf`, MODEL);
    await bench.app.post("/api/models/download", { repo: "owner/Gated-GGUF", format: "gguf", file: "gated-Q8_0.gguf" });
    await bench.app.post("/api/models/download", { repo: "owner/Qwen3-0.6B-GGUF", format: "gguf", file: NAME });
    await bench.app.post("/api/models/local/run", { path: "small.gguf" });
    const { page } = await bench.open({ ...options, reducedMotion: "reduce" });
    await page.getByText(/accept its terms/).waitFor();
    await page.getByText("1 MB of 3 MB").waitFor();
    await page.getByText("Running").first().waitFor();
    await page.getByText("Latest output").click();
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByRole("button", { name: "Show files: owner/Gated-GGUF" }).click();
    await page.getByText("The owner controls access").waitFor();
    const shots = Deno.env.get("SCREENSHOTS");
    const look = async (name: string) => {
      const find = () =>
        findAxeProblemsInBothSchemes(page, async (colorScheme) => {
          if (shots) await page.screenshot({ path: `${shots}/models-${width}-${colorScheme}-${name}.png` });
        });
      await expect.poll(find, { message: name }).toEqual([]);
    };
    await look("all");
    if (shots) {
      await page.getByText("Find a model").scrollIntoViewIfNeeded();
      await page.locator(".settings").evaluate((element) => element.scrollTo(0, element.scrollHeight));
      await page.screenshot({ path: `${shots}/models-${width}-end.png` });
    }
    await page.getByRole("button", { name: /^Delete: small/ }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Run here: small.gguf" }).click();
    await page.getByLabel("GPU layers").waitFor();
    await look("run");
    held.resolve();
  },
  180_000,
);
