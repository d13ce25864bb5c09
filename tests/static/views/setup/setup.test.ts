/** The first-run setup: three skippable steps, then the built-in character. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { eventually, openUiBench, PHONE, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const fresh = (api: FakeApi) => void (api.isSetupCompleted = false);
const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");

test.each(
  [["light", {}], ["dark", PHONE]] as const,
)("every step can be skipped, Pim says hello, and nothing asks again (%s)", async (colorScheme, device) => {
  await using app = await openTestApp();
  const browser = await openBrowser();
  try {
    const { page, errors, foreign, context } = await openPage(browser, app.url, { ...device, colorScheme });
    const look = async (name: string) => {
      await expect.poll(() => findAxeProblems(page), { message: name }).toEqual([]);
      if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/welcome-${name}-${colorScheme}.png` });
    };
    await page.goto(app.url);
    await page.getByRole("heading", { name: "Choose a model" }).waitFor();
    await page.getByText("Step 1 of 3").waitFor();
    await page.getByText("No servers found").waitFor();
    await look("model");
    await page.getByRole("button", { name: "Skip" }).click();
    await page.getByRole("heading", { name: "Your name" }).waitFor();
    await look("name");
    await page.getByLabel("Your name").fill("Ada");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("heading", { name: "Protect Parlor with a passkey" }).waitFor();
    await page.getByRole("button", { name: "Create passkey" }).waitFor();
    await look("passkey");
    await page.goBack();
    await page.getByRole("button", { name: "Skip" }).click();
    await page.getByRole("button", { name: "Start chatting" }).click();
    await page.getByRole("log").getByText("Ada").first().waitFor();
    await look("hello");
    await expect.poll(async () => (await (await app.get("/api/settings")).json()).display_name).toBe("Ada");
    await expect.poll(async () => (await (await app.get("/api/setup/status")).json()).completed).toBe(true);
    await page.evaluate(() => localStorage.clear());
    await page.goto(app.url);
    await page.waitForURL(`${app.url}/new`);
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
    await context.close();
  } finally {
    await browser.close();
  }
});

test("one click uses a detected model and continues the setup", async () => {
  await using ui = await bench.open("/", {
    prepare: (api) => {
      fresh(api);
      api.found = [{ base_url: "http://127.0.0.1:11434/v1", kind: "openai", software: "Ollama", models: ["gemma"] }];
    },
  });
  await ui.page.getByText("Search finished: 1 server found").waitFor();
  await ui.page.getByRole("button", { name: /^Add and use: Ollama/ }).click();
  await ui.page.getByRole("heading", { name: "Your name" }).waitFor();
  await ui.page.goBack();
  await ui.page.getByText("Using “Ollama”.").waitFor();
  expect(ui.errors).toEqual([]);
});

test("the setup accepts an address by hand, and shows at its field what is wrong with it", async () => {
  await using ui = await bench.open("/", {
    prepare: (api) => {
      fresh(api);
      api.testResult = {
        reachable: false,
        authorized: false,
        models: [],
        latency_ms: 3,
        error: "Nothing listens there",
      };
    },
  });
  await ui.page.getByRole("link", { name: "Enter a URL" }).click();
  await ui.page.getByText("Step 1 of 3").waitFor();
  await ui.page.goBack();
  await ui.page.getByRole("heading", { name: "Choose a model" }).waitFor();
  await ui.page.getByRole("link", { name: "Enter a URL" }).click();
  const url = ui.page.getByLabel("URL");
  await url.fill("http://127.0.0.1:9/v1");
  const readError = (field: typeof url) =>
    field.evaluate((input) => {
      const ids = (input.getAttribute("aria-describedby") ?? "").split(" ");
      return [input.getAttribute("aria-invalid"), ids.map((id) => document.getElementById(id)?.textContent).join(" ")];
    });
  await ui.page.getByRole("button", { name: "Test", exact: true }).click();
  await expect.poll(() => readError(url)).toEqual(["true", expect.stringContaining("Nothing listens there")]);
  ui.api.testResult = { reachable: true, authorized: false, models: [], latency_ms: 3, error: "It wants a key" };
  await ui.page.getByRole("button", { name: "Test", exact: true }).click();
  await expect.poll(() => readError(ui.page.getByLabel("API key")))
    .toEqual(["true", expect.stringContaining("It wants a key")]);
  expect((await readError(url))[0]).toBe("false");
  await expect.poll(() => findAxeProblems(ui.page)).toEqual([]);
  if (SCREENSHOTS) await ui.page.screenshot({ path: `${SCREENSHOTS}/setup-url.png` });
  await ui.page.getByRole("button", { name: "Save and use" }).click();
  await ui.page.getByRole("heading", { name: "Your name" }).waitFor();
  await expect.poll(() => ui.api.isSetupCompleted).toBe(false);
});

test.each([
  ["looks only inside itself", ["127.0.0.1"], "PARLOR_DISCOVER_HOSTS=host.docker.internal"],
  ["looks at its host", ["host.docker.internal"], "Parlor searched host.docker.internal"],
])("in a container that %s an empty search shows what helps, for each server", async (_, discoverHosts, words) => {
  await using ui = await bench.open("/", {
    prepare: (api) => {
      fresh(api);
      api.isContainer = true;
      api.discoverHosts = discoverHosts;
    },
  });
  await ui.page.getByText(words).waitFor();
  for (const software of ["Ollama", "LM Studio", "llama.cpp", "KoboldCpp", "vLLM"]) {
    await ui.page.getByText(software, { exact: true }).waitFor();
  }
  await ui.page.getByText("OLLAMA_HOST=0.0.0.0 ollama serve").waitFor();
  await expect.poll(() => findAxeProblems(ui.page)).toEqual([]);
  if (SCREENSHOTS) await ui.page.screenshot({ path: `${SCREENSHOTS}/container.png`, fullPage: true });
});

test("without the built-in character the setup ends in an empty chat", async () => {
  await using ui = await bench.open("/welcome/passkey", { prepare: fresh });
  await ui.page.getByText("Browsers create passkeys only for domain names").waitFor();
  await ui.page.getByRole("button", { name: "Start chatting" }).click();
  await ui.page.waitForURL(/\/new$/);
  await eventually(() => ui.api.isSetupCompleted, (isCompleted) => isCompleted);
});
