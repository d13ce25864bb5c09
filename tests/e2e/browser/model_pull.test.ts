/** A model that Ollama doesn't have is downloaded from the failure's note; then the reply starts by itself. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { PATIENCE_MS } from "../../helpers/app/patience.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { sendMessage } from "../../helpers/browser/ui_page.ts";
import { openFakeOllama } from "../../helpers/fakes/llm/fake_ollama.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

test("a missing Ollama model is downloaded from next to the failure, and the message is answered then", {
  timeout: 240_000,
}, async () => {
  const gate = Promise.withResolvers<void>();
  await using ollama = await openFakeOllama({
    models: { small: {} },
    library: { qwen3: [5_000_000_000] },
    pulling: gate.promise,
  });
  await using app = await openTestApp();
  await app.put("/api/connections", {
    id: "desk",
    name: "Desk",
    kind: "ollama",
    base_url: ollama.url,
    model: "qwen3",
  });
  await app.post("/api/connections/desk/activate", {});
  await app.patch("/api/settings", { auto_title: false, auto_summary: false });
  await app.post("/api/setup/complete", {});
  const { page, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/new`);
  await sendMessage(page, "Hello there");
  const ending = page.locator(".ending");
  await ending.getByText("“Desk” doesn’t have the model “qwen3”").waitFor();
  // The installed models can still be selected.
  await ending.getByLabel("Model for this chat").waitFor();

  // It isn't known yet whether the model has reasoning.
  await expect.poll(() => page.getByRole("button", { name: /^Thinking/ }).count()).toBe(0);
  await ending.getByRole("button", { name: "Download “qwen3”" }).click();
  await ending.getByText("Downloading “qwen3”. The message is sent again when it’s done.").waitFor();
  await expect.poll(() => ending.innerText(), { timeout: PATIENCE_MS }).toMatch(/2\.5\sGB of 5\sGB/);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await ending.getByRole("button", { name: "Cancel “qwen3”" }).click();
  await ending.getByRole("button", { name: "Download “qwen3”" }).waitFor();

  await ending.getByRole("button", { name: "Download “qwen3”" }).click();
  await expect.poll(() => ending.innerText(), { timeout: PATIENCE_MS }).toMatch(/2\.5\sGB of 5\sGB/);
  gate.resolve();
  await page.locator(".reply .prose").last().getByText("Hello", { exact: true }).waitFor();
  await ending.waitFor({ state: "detached" });
  // The new model has reasoning, so its effort can be set.
  await page.getByRole("button", { name: "Thinking: Default" }).waitFor();
  expect(ollama.requests.filter(({ path }) => path === "/api/pull")).toHaveLength(2);
  expect(errors).toEqual([]);
});
