/** A downloaded model run, asked and stopped from the page, with the real llama.cpp server. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser, openPage } from "../helpers/app/browser.ts";
import { builtUi } from "../helpers/app/built_ui.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { sendMessage } from "../helpers/app/ui_page.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
const MODEL = "gemma-3-270m-q4_k_m.gguf";
const SLOW_MS = 300_000;

describe.skipIf(INSTALLED === undefined)("with a real model under models/", { timeout: SLOW_MS }, () => {
  let dataDir: string;
  let parlor: ChildServer;

  beforeAll(async () => {
    await builtUi();
    dataDir = await Deno.makeTempDir({ prefix: "parlor-run-" });
    await Deno.mkdir(`${dataDir}/models`, { mode: 0o700 });
    await Deno.copyFile(`${INSTALLED}/model/${MODEL}`, `${dataDir}/models/${MODEL}`);
    const [program] = await Array.fromAsync(Deno.readDir(`${INSTALLED}/bin`));
    parlor = await startChildServer({ dataDir, args: ["--llama-server-path", `${INSTALLED}/bin/${program!.name}`] });
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.kill("SIGTERM");
    if (dataDir !== undefined) await Deno.remove(dataDir, { recursive: true });
  }, SLOW_MS);

  test("Run it here, a reply in the chat, Stop", async () => {
    const browser = await openBrowser();
    const { page, foreign, errors } = await openPage(browser, parlor.url);
    await page.goto(`${parlor.url}/settings/models`);
    await page.getByRole("button", { name: /^Run here/ }).click();
    const dialog = page.getByRole("dialog", { name: `Run ${MODEL}` });
    await dialog.getByLabel("Context size in tokens").fill("1024");
    await dialog.getByRole("button", { name: "Start" }).click();
    const state = (name: string) => page.getByRole("status").filter({ hasText: new RegExp(`^${name}$`) });
    await state("Running").waitFor({ timeout: SLOW_MS });

    await page.goto(`${parlor.url}/new`);
    await sendMessage(page, "Tell me a story about a lighthouse");
    // A base model may go on until its context is full: a few words of it are enough.
    await expect.poll(async () => (await page.locator(".reply .prose").allInnerTexts()).join("").length, {
      timeout: SLOW_MS,
    }).toBeGreaterThan(20);
    // The reply may end by itself first, and its button with it.
    await page.getByRole("button", { name: "Stop" }).evaluateAll((buttons) => (buttons[0] as HTMLElement)?.click());
    await page.getByRole("button", { name: "Regenerate" }).waitFor();
    const [chat] = (await parlor.json<{ items: { id: string }[] }>("GET", "/api/conversations?view=summary")).items;
    const { messages } = await parlor.json<{ messages: { content: string }[] }>(
      "GET",
      `/api/conversations/${chat!.id}`,
    );
    expect(messages[1]!.content.length).toBeGreaterThan(20);

    await page.goto(`${parlor.url}/settings/models`);
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await state("Stopped").waitFor();
    expect(await parlor.json("GET", "/api/models/local/runner")).toMatchObject({ state: "stopped" });
    expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
    await browser.close();
  });
});
