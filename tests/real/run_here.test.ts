/** A downloaded model is run, used and stopped from the page, with the real llama.cpp server. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser, openPage } from "../helpers/browser/browser.ts";
import { builtUi } from "../helpers/browser/built_ui.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { PHONE, sendMessage } from "../helpers/browser/ui_page.ts";
import { openFakeHub } from "../helpers/fakes/fake_hub.ts";
import { realPart } from "./helpers/real_part.ts";
import { startTimes } from "./helpers/times.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
const MODEL = "gemma-3-270m-q4_k_m.gguf";
/** For one step on a busy machine: a start, a download, a reply. */
const SLOW_MS = 300_000;
const ALL_STEPS_MS = 3 * SLOW_MS;
/** The smallest model that the first run offers: its repository and its file. The real model here stands in for it. */
const OFFERED = { repo: "ggml-org/gemma-3-1b-it-GGUF", file: "gemma-3-1b-it-Q4_K_M.gguf" };

/** The reply to the last message of the newest conversation, as far as it's written. */
async function readReply(parlor: ChildServer): Promise<{ content: string; status: string } | undefined> {
  const [chat] = (await parlor.json<{ items: { id: string }[] }>("GET", "/api/conversations?view=summary")).items;
  if (chat === undefined) return undefined;
  const { messages } = await parlor.json<{ messages: { role: string; content: string; status: string }[] }>(
    "GET",
    `/api/conversations/${chat.id}`,
  );
  // The greeting before the message isn't a reply.
  const last = messages.at(-1);
  return last?.role === "assistant" && messages.at(-2)?.role === "user" ? last : undefined;
}

test.skipIf(INSTALLED === undefined).each([["a phone", PHONE], ["a desktop", {}]] as const)(
  "a fresh server downloads the model that the first run offers, runs it and replies (%s)",
  { timeout: ALL_STEPS_MS },
  async (_, device) => {
    await builtUi();
    const model = await Deno.readFile(`${INSTALLED}/model/${MODEL}`);
    await using hub = openFakeHub({ [OFFERED.repo]: { files: { [OFFERED.file]: model } } });
    const dataDir = await Deno.makeTempDir({ prefix: "parlor-first-" });
    const [program] = await Array.fromAsync(Deno.readDir(`${INSTALLED}/bin`));
    const args = ["--llama-server-path", `${INSTALLED}/bin/${program!.name}`];
    args.push("--hub-url", hub.url, "--guard-allow", "127.0.0.2/31");
    const times = startTimes();
    const parlor = await startChildServer({ dataDir, args });
    times.note("listening");
    const browser = await openBrowser();
    try {
      const { page, foreign, errors } = await openPage(browser, parlor.url, device);
      await page.goto(parlor.url);
      await page.getByRole("heading", { name: "Choose a model" }).waitFor();
      times.note("first screen");
      await page.getByRole("button", { name: "Download: Gemma 3 1B" }).click();
      await page.getByRole("heading", { name: "Your name" }).waitFor({ timeout: SLOW_MS });
      times.note("model runs");
      await page.getByLabel("Your name").fill("Ada");
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByRole("button", { name: "Start chatting" }).click();
      await page.getByRole("log").getByText("Ada").first().waitFor();
      await sendMessage(page, "Tell me a story about a lighthouse");
      await expect.poll(async () => (await readReply(parlor))?.content ?? "", { timeout: SLOW_MS }).toMatch(/\S/);
      await expect.poll(() => page.locator(".reply .prose").last().innerText()).toMatch(/\S/);
      times.note("reply");
      times.print();
      // A small model may go on until its context is full: a few words of it are enough. A reply that is still written
      // when the server stops goes on at the model server, which is left running.
      await page.getByRole("button", { name: "Stop" }).evaluateAll((buttons) => (buttons[0] as HTMLElement)?.click());
      await expect.poll(async () => (await readReply(parlor))?.status, { timeout: SLOW_MS }).not.toBe("streaming");
      expect((await readReply(parlor))?.content).toMatch(/\S/);
      expect(await parlor.json("GET", "/api/models/local/runner")).toMatchObject({ state: "running" });
      expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
    } finally {
      await browser.close();
      await parlor.kill("SIGTERM");
      await Deno.remove(dataDir, { recursive: true });
    }
  },
);

describe.skipIf(INSTALLED === undefined)("with a real model under models/", { timeout: ALL_STEPS_MS }, () => {
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
