/** Character generation on the real server with a fake model. */
import { Buffer } from "node:buffer";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  findAxeProblems,
  holdToasts,
  openBrowser,
  openPage,
  type WatchedPage,
} from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { useModel } from "../../../helpers/app/chat_client.ts";
import { type FakeLlm, type ManualAnswer, openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { noise } from "../../../helpers/files/pictures.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { eventually, PHONE } from "../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

interface Bench extends WatchedPage, AsyncDisposable {
  app: TestApp;
  llm: FakeLlm;
}

/** The dialog for an idea, with a model that the test controls. */
async function openBench(options: BrowserContextOptions = {}): Promise<Bench> {
  const llm = await openFakeLlm({ switches: { manual: "on" } });
  const app = await openTestApp();
  await useModel(app, llm);
  await app.post("/api/setup/complete", {});
  const watched = await openPage(browser, app.url, options);
  await watched.page.goto(`${app.url}/characters`);
  await openIdea(watched.page);
  return {
    ...watched,
    app,
    llm,
    async [Symbol.asyncDispose]() {
      await watched.context.close();
      await app[Symbol.asyncDispose]();
      await llm.close();
    },
  };
}

async function openIdea(page: Page): Promise<void> {
  await page.getByRole("main").getByRole("button", { name: "New character" }).first().click();
  await page.getByRole("tab", { name: "From an idea" }).click();
}

/** Enters an idea, sends it, and returns the model's side. */
async function write({ page, llm }: Bench, button = "Write"): Promise<ManualAnswer> {
  const asked = llm.nextCall();
  await page.getByLabel("Idea", { exact: true }).fill("a lighthouse keeper");
  await page.getByRole("button", { name: button, exact: true }).click();
  return await asked;
}

const BEGIN = '{"name": "Fern", "description": "Keeps a light';
const END = 'house.", "personality": "calm", "first_mes": "Come in.", "tags": ["sea"]}';

async function written(app: TestApp) {
  const all: { id: string; name: string; has_avatar: boolean }[] = await (await app.get("/api/characters")).json();
  const found = all.find(({ name }) => name !== "Pim");
  return found && await (await app.get(`/api/characters/${found.id}`)).json();
}

const expectClean = async (page: Page) => {
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
  }
};

test("fills the editor while the model writes, keeps edited fields, and stores the card", async () => {
  await using bench = await openBench();
  const { page, app } = bench;
  await expectClean(page);
  const call = await write(bench);
  await page.getByText("Waiting for the model, ").waitFor();
  await expectClean(page);
  await call.emit(BEGIN);
  const description = page.getByLabel("Description");
  await eventually(() => description.inputValue(), (text) => text === "Keeps a light");
  await page.getByText("The model is writing: Description").waitFor();
  await expectClean(page);
  await page.getByLabel("Name", { exact: true }).fill("Fern Hill");
  await call.emit(END);
  await eventually(() => description.inputValue(), (text) => text === "Keeps a lighthouse.");
  await call.finish();
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  const character = await eventually(() => written(app), (found) => found?.card.data.first_mes === "Come in.");
  expect(character.card.data).toMatchObject({ name: "Fern Hill", description: "Keeps a lighthouse.", tags: ["sea"] });
  expect(bench.errors).toEqual([]);
});

test("Stop stops the model and keeps what arrived", async () => {
  await using bench = await openBench(PHONE);
  const { page, app, llm } = bench;
  const call = await write(bench);
  await call.emit(BEGIN);
  await page.getByText("The model is writing: Description").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await call.over;
  await eventually(() => llm.abandoned, ({ length }) => length === 1);
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  await expect.poll(() => page.getByLabel("Description").inputValue()).toBe("Keeps a light");
  await eventually(() => written(app), (found) => found?.card.data.description === "Keeps a light");
});

test("Stop before the first text returns to the idea and stores nothing", async () => {
  await using bench = await openBench();
  const call = await write(bench);
  await bench.page.getByRole("button", { name: "Stop" }).click();
  await call.over;
  const idea = bench.page.getByLabel("Idea", { exact: true });
  await idea.waitFor();
  await expect.poll(() => idea.inputValue()).toBe("a lighthouse keeper");
  expect(await written(bench.app)).toBeUndefined();
});

test("shows the model's refusal next to the idea, which stays", async () => {
  await using bench = await openBench();
  const { page } = bench;
  const call = await write(bench);
  await call.emit("I'm sorry, I can't.");
  await call.finish();
  await page.getByText("didn't write a character. Its reply: I'm sorry, I can't").waitFor();
  await expect.poll(() => page.getByLabel("Idea", { exact: true }).inputValue()).toBe("a lighthouse keeper");
  await expectClean(page);
});

test("keeps an incomplete response in the editor and says so", async () => {
  await using bench = await openBench();
  const { page, app } = bench;
  const call = await write(bench);
  await call.emit(BEGIN);
  await page.getByText("The model is writing: Description").waitFor();
  await call.fail("cut");
  await page.getByText("The model stopped early. The text so far is saved.").waitFor();
  await expectClean(page);
  await eventually(() => written(app), (found) => found?.card.data.description === "Keeps a light");
});

test("completes the card even if the editor is left", async () => {
  await using bench = await openBench();
  const { page, app } = bench;
  const call = await write(bench);
  await call.emit(BEGIN);
  await page.getByText("The model is writing: Description").waitFor();
  await page.getByRole("link", { name: "Done" }).click();
  await page.getByRole("button", { name: "More actions" }).waitFor();
  await call.emit(END);
  await call.finish();
  await eventually(() => written(app), (found) => found?.card.data.description === "Keeps a lighthouse.");
});

test("sends an image to the model and makes it the portrait", async () => {
  await using bench = await openBench();
  const { page, app } = bench;
  await page.locator(".generation-image input[type=file]").setInputFiles({
    name: "keeper.png",
    mimeType: "image/png",
    buffer: Buffer.from(noise(64, 96)),
  });
  await page.getByRole("switch", { name: "Use the image as the portrait" }).waitFor();
  await expectClean(page);
  const call = await write(bench);
  expect(JSON.stringify(call.request.json!.messages)).toContain("data:image/jpeg;base64,");
  await call.emit(BEGIN);
  await page.getByText("The model is writing: Description").waitFor();
  await eventually(() => written(app), (found) => found?.has_avatar === true);
  await call.emit(END);
  await call.finish();
  await eventually(() => written(app), (found) => found?.has_avatar === true);
});

test("in the background: counts in a badge, and links to the character from a toast and the activity list", async () => {
  await using bench = await openBench();
  const { page, app } = bench;
  await holdToasts(page);
  const call = await write(bench, "Continue in background");
  const nav = page.getByRole("navigation");
  await nav.locator("a[href='/activity'] .badge").waitFor();
  await page.locator(".toast").filter({ hasText: "Writing the character" }).getByRole("button", {
    name: "Show",
  })
    .click();
  await page.getByRole("main").getByText("a lighthouse keeper").first().waitFor();
  await call.emit(BEGIN + END);
  await call.finish();
  const toast = page.locator(".toast").filter({ hasText: "Fern is ready" });
  await toast.waitFor();
  await nav.locator("a[href='/activity'] .badge").waitFor({ state: "detached" });
  const { id } = await written(app);
  await expect.poll(() => page.getByRole("main").locator(`a[href='/characters/${id}']`).count()).toBe(1);
  await expectClean(page);
  await toast.getByRole("button", { name: "Open" }).click();
  await page.getByRole("heading", { name: "Fern", level: 2 }).waitFor();
  expect(bench.errors).toEqual([]);
});

test("shows a failed job, and lists its reason", async () => {
  await using bench = await openBench();
  const { page } = bench;
  await holdToasts(page);
  const call = await write(bench, "Continue in background");
  await call.emit("No.");
  await call.finish();
  const toast = page.locator(".toast").filter({ hasText: "Couldn’t write" });
  await toast.getByRole("button", { name: "Show" }).click();
  await page.getByRole("main").getByText("didn't write a character. Its reply: No").waitFor();
});
