/** Image backends, generation from a chat, the viewer and portraits, on the real server with fake backends. */
import { Buffer } from "node:buffer";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, holdToasts, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { until, useModel } from "../../../helpers/app/chat_client.ts";
import { FakeA1111 } from "../../../helpers/fakes/fake_a1111.ts";
import { FakeComfy } from "../../../helpers/fakes/fake_comfy.ts";
import { openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

async function openBench() {
  const comfy = new FakeComfy();
  const a1111 = new FakeA1111();
  const llm = await openFakeLlm({ pieces: ["<think>A fox.</think>Prompt: red fox, ", "evening sun"] });
  const app = await openTestApp({ config: { discoverHosts: [], builtinAppInstalled: true } });
  await app.post("/api/setup/complete", {});
  const contexts: { close(): Promise<void> }[] = [];
  return {
    comfy,
    a1111,
    llm,
    app,
    async open(path: string, options: BrowserContextOptions = {}) {
      const watched = await openPage(browser, app.url, options);
      contexts.push(watched.context);
      await watched.page.goto(app.url + path);
      return watched;
    },
    async withChat() {
      await useModel(app, llm);
      await app.put("/api/image/connections", { id: "b", name: "Forge", kind: "a1111", base_url: a1111.url });
      const messages = [
        { id: "u1", role: "user", content: "Where are you?" },
        { id: "a1", role: "assistant", content: "A red fox looks out of the fern." },
      ];
      await app.put("/api/conversations/c1", { title: "Forest", messages });
    },
    async [Symbol.asyncDispose]() {
      for (const context of contexts) await context.close();
      await app[Symbol.asyncDispose]();
      await comfy[Symbol.asyncDispose]();
      await a1111[Symbol.asyncDispose]();
      await llm.close();
    },
  };
}

const draw = (page: Page) => page.getByRole("button", { name: "Generate image" });
const pictures = (page: Page) => page.locator(".message-images img");

test("adds an image backend by hand, tests, edits, activates and deletes it", async () => {
  await using bench = await openBench();
  const { page, errors, foreign } = await bench.open("/settings/images");
  await page.getByText("No image servers found").waitFor();
  await page.getByRole("link", { name: "Add an image server" }).click();
  await page.getByLabel("Type").selectOption({ label: "A1111, Forge" });
  await expect.poll(() => page.getByLabel("URL").inputValue()).toBe("http://127.0.0.1:7860");
  await page.getByLabel("URL").fill(bench.comfy.url);
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByText("doesn't have the API of A1111").waitFor();
  await page.getByLabel("Type").selectOption({ label: "ComfyUI" });
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByText("The server works").waitFor();
  await page.getByLabel("API key").fill("k1");
  await expect.poll(() => page.getByText("This URL isn’t encrypted").count()).toBe(0);
  await page.getByLabel("URL").fill("http://192.168.1.9:8188");
  await page.getByText("This URL isn’t encrypted").waitFor();
  await page.getByLabel("API key").fill("");
  await page.getByText("This URL isn’t encrypted").waitFor({ state: "detached" });
  await page.getByLabel("URL").fill(bench.comfy.url);
  await page.getByLabel("Width").fill("9");
  await page.getByText("Enter a number from 16 to 8192").waitFor();
  await expect.poll(() => page.getByRole("button", { name: "Save", exact: true }).isDisabled()).toBe(true);
  await page.getByLabel("Width").fill("640");
  await page.getByLabel("Name").fill("Workstation");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const card = page.getByRole("listitem").filter({ hasText: "Workstation" });
  await card.getByText("In use").waitFor();

  await card.getByRole("link", { name: "Edit" }).click();
  // The field suggests the server's checkpoints.
  await page.locator("datalist option[value='sub/big.safetensors']").waitFor({ state: "attached" });
  await expect.poll(() => page.getByLabel("Width").inputValue()).toBe("640");
  await page.getByLabel("Checkpoint").fill("sub/big.safetensors");
  await page.getByLabel("API key").fill("k1");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByText("sub/big.safetensors").waitFor();

  // A stored key is removed separately; other changes wait for Save.
  await card.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Width").fill("704");
  await page.getByRole("button", { name: "Remove saved key" }).click();
  await page.getByText("Key removed").waitFor();
  await page.getByRole("button", { name: "Remove saved key" }).waitFor({ state: "detached" });
  await expect.poll(() => page.getByLabel("Width").inputValue()).toBe("704");
  const [kept] = await (await bench.app.get("/api/image/connections")).json();
  expect(kept).toMatchObject({ has_key: false, name: "Workstation", checkpoint: "sub/big.safetensors" });
  expect(kept.defaults).toMatchObject({ width: 640 });
  await page.getByRole("link", { name: "Cancel" }).click();
  await card.waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);

  await holdToasts(page);
  await card.getByRole("button", { name: "Delete: Workstation" }).click();
  await card.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await card.waitFor();
  expect([errors, foreign]).toEqual([[], []]);
});

test("detects the kind of an image server from its address, and leaves a chosen one alone", async () => {
  await using bench = await openBench();
  const { page, errors } = await bench.open("/settings/images/new", PHONE);
  const kind = page.getByLabel("Type");
  const enter = async (url: string) => {
    await page.getByLabel("URL").fill(url);
    await page.getByLabel("Name").focus();
  };
  await enter(bench.a1111.url);
  await page.getByText("Found: A1111, Forge").waitFor();
  await expect.poll(() => kind.inputValue()).toBe("a1111");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await enter("http://127.0.0.1:9");
  await page.getByText("No response at this URL").waitFor();
  await enter(bench.llm.url);
  await page.getByText("neither ComfyUI nor A1111").waitFor();
  await kind.selectOption("a1111");
  await enter(bench.comfy.url);
  await page.getByText("looks like ComfyUI").waitFor();
  await expect.poll(() => kind.inputValue()).toBe("a1111");

  // Enter in the field: Save waits for the detection.
  const other = (await bench.open("/settings/images/new")).page;
  await other.getByLabel("URL").fill(bench.a1111.url);
  await other.getByLabel("URL").press("Enter");
  await other.getByRole("listitem").filter({ hasText: "A1111, Forge" }).getByText("In use").waitFor();
  expect(errors).toEqual([]);
});

test("imports a workflow from a file, refuses the UI format, edits and deletes it", async () => {
  await using bench = await openBench();
  const { page } = await bench.open("/settings/images", PHONE);
  const list = page.getByRole("list", { name: "ComfyUI workflows" });
  await list.getByText("Starter: text to image").waitFor();
  const choose = async (content: unknown) => {
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Add a workflow" }).click();
    const buffer = Buffer.from(JSON.stringify(content));
    await (await chooser).setFiles({ name: "My foxes.json", mimeType: "application/json", buffer });
  };
  const dialog = page.getByRole("dialog");
  await choose({ nodes: [], links: [], version: 1 });
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("it's in ComfyUI's UI format").waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();

  await choose({ "3": { class_type: "KSampler", inputs: { seed: "%seed%" } } });
  await expect.poll(() => dialog.getByLabel("Name").inputValue()).toBe("My foxes");
  await dialog.getByLabel("Workflow", { exact: true }).fill("{");
  await dialog.getByText("Invalid JSON").waitFor();
  await dialog.getByLabel("Workflow", { exact: true }).fill(
    '{"3": {"class_type": "KSampler", "inputs": {"seed": "%seed%", "text": "%prompt%"}}}',
  );
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await list.getByText("My-foxes").waitFor();
  await list.getByText("%prompt% %seed%").waitFor();

  await list.getByRole("button", { name: "Edit: My-foxes" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await list.getByText("My-foxes").waitFor({ state: "detached" });
});

test("writes an image prompt, edits it, generates with progress, attaches and shows the image", async () => {
  await using bench = await openBench();
  await bench.withChat();
  bench.a1111.switches.isManual = true;
  const { page, errors, foreign } = await bench.open("/c/c1");
  await draw(page).click();
  const dialog = page.getByRole("dialog", { name: "Generate image" });
  const prompt = dialog.getByLabel("Image prompt");
  await until(async () => await prompt.inputValue() === "red fox, evening sun", "the prompt");
  expect(JSON.stringify(bench.llm.chats[0]!.json!.messages)).toContain("looks out of the fern");
  await prompt.fill("red fox, rain");
  await dialog.getByRole("button", { name: "Generate", exact: true }).click();
  await bench.a1111.begun();
  bench.a1111.step(5);
  await dialog.getByText("Step 5 of 20").waitFor();
  await dialog.getByAltText("Image preview").waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  bench.a1111.go();
  await dialog.waitFor({ state: "detached" });
  await pictures(page).first().waitFor();
  await expect.poll(() => bench.a1111.orders[0]!.prompt).toBe("red fox, rain");

  await page.getByRole("button", { name: "Enlarge image 1" }).click();
  const large = page.getByRole("dialog", { name: "Image 1" });
  const full = large.getByRole("button", { name: "Full size" });
  await full.click();
  await expect.poll(() => full.getAttribute("aria-pressed")).toBe("true");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await large.waitFor({ state: "detached" });
  expect([errors, foreign]).toEqual([[], []]);
});

test("pages through the images of a chat, shows them as a grid, and removes them from messages", async () => {
  await using bench = await openBench();
  await bench.withChat();
  for (const [seed, message_id] of [[1, "u1"], [2, "a1"], [3, "a1"]] as const) {
    const drawn = await bench.app.post("/api/image/generate", { prompt: "x", seed, conversation_id: "c1", message_id });
    expect(drawn.status).toBe(200);
  }
  const { page, errors } = await bench.open("/c/c1", PHONE);
  await pictures(page).nth(2).waitFor();
  await page.getByRole("button", { name: "Enlarge image 2" }).click();
  const dialog = page.locator("dialog.zoom");
  await dialog.getByText("3 of 3").waitFor();
  await page.keyboard.press("ArrowRight");
  await dialog.getByText("1 of 3").waitFor();
  await dialog.getByRole("button", { name: "Previous image" }).click();
  await dialog.getByText("3 of 3").waitFor();
  await dialog.getByRole("button", { name: "All images in this chat" }).click();
  await dialog.getByRole("listitem").nth(2).waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await holdToasts(page);
  await dialog.getByRole("button", { name: "Enlarge image 2" }).click();
  await dialog.getByText("2 of 3").waitFor();
  await dialog.getByRole("button", { name: "Remove from message" }).click();
  await dialog.getByText("2 of 2").waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Undo" }).click();
  await pictures(page).nth(2).waitFor();
  await until(async () => {
    const { messages } = await (await bench.app.get("/api/conversations/c1")).json();
    return messages[1].attachments?.length === 2;
  }, "the picture's being back");
  expect(errors).toEqual([]);
});

test("a canceled image leaves its prompt, and an unattended one still arrives", async () => {
  await using bench = await openBench();
  await bench.withChat();
  bench.a1111.switches.isManual = true;
  const { page } = await bench.open("/c/c1", PHONE);
  await draw(page).click();
  const dialog = page.getByRole("dialog", { name: "Generate image" });
  const start = dialog.getByRole("button", { name: "Generate", exact: true });
  await start.click();
  await bench.a1111.begun();
  await dialog.getByRole("button", { name: "Cancel image" }).click();
  await until(() => bench.a1111.isIdle, "the server's being free");
  await expect.poll(() => dialog.getByLabel("Image prompt").inputValue()).toBe("red fox, evening sun");
  await start.click();
  await bench.a1111.begun(2);
  await dialog.getByRole("button", { name: "Close" }).click();
  bench.a1111.go();
  await pictures(page).first().waitFor();
});

test("shows all generated images, what they were made with, and generates one again with another prompt", async () => {
  await using bench = await openBench();
  await bench.withChat();
  const empty = (await bench.open("/images", PHONE)).page;
  await empty.getByRole("link", { name: "Open a chat" }).waitFor();
  await expect.poll(() => findAxeProblems(empty)).toEqual([]);
  const generate = (body: Record<string, unknown>) => bench.app.post("/api/image/generate", body);
  expect((await generate({ prompt: "a heron", seed: 5, steps: 9 })).status).toBe(200);
  const attached = { conversation_id: "c1", message_id: "a1" };
  expect((await generate({ prompt: "a red fox", seed: 7, steps: 11, ...attached })).status).toBe(200);
  // The open page follows.
  await empty.getByRole("button", { name: "Image: a red fox" }).waitFor();

  const { page, errors, foreign } = await bench.open("/images");
  const tiles = page.locator(".gallery-grid button");
  await tiles.nth(1).waitFor();
  await page.waitForFunction(() =>
    [...document.querySelectorAll<HTMLImageElement>(".gallery-grid img")].every(({ naturalWidth }) => naturalWidth > 0)
  );
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Image: a red fox" }).click();
  const large = page.getByRole("dialog", { name: "Generated image" });
  await large.getByText("a red fox").waitFor();
  await large.getByText("11", { exact: true }).waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await large.getByRole("button", { name: "Generate again" }).click();
  const dialog = page.getByRole("dialog", { name: "Generate again" });
  const prompt = dialog.getByLabel("Image prompt");
  await until(async () => await prompt.inputValue() === "a red fox", "the prompt");
  await prompt.fill("a red fox, rain");
  await dialog.getByLabel("Seed").fill("x");
  await dialog.getByText("Enter a whole number").waitFor();
  await expect.poll(() => dialog.getByRole("button", { name: "Generate", exact: true }).isDisabled()).toBe(true);
  await dialog.getByLabel("Seed").fill("8");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Generate", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await expect.poll(() => bench.a1111.orders[2]).toMatchObject({ prompt: "a red fox, rain", seed: 8, steps: 11 });
  const { messages } = await (await bench.app.get("/api/conversations/c1")).json();
  expect(messages[1].attachments).toHaveLength(2);

  await holdToasts(page);
  await large.getByRole("button", { name: "Delete" }).click();
  await large.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Image: a red fox, rain" }).waitFor();
  await expect.poll(() => tiles.count()).toBe(2);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect.poll(() => tiles.count()).toBe(3);
  await page.getByRole("button", { name: "Image: a red fox", exact: true }).click();
  await large.getByRole("link", { name: "Go to chat" }).click();
  await page.waitForURL(/\/c\/c1#a1$/);
  expect([errors, foreign]).toEqual([[], []]);
});

test("a list of images that arrives late doesn't hide an image that is newer", async () => {
  await using bench = await openBench();
  await bench.withChat();
  const { page } = await bench.open("/images");
  await page.getByRole("link", { name: "Open a chat" }).waitFor();
  const list = /\/api\/image\/gallery(\?|$)/;
  const [isRead, isAwaited] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await page.route(list, async (route) => {
    const response = await route.fetch();
    isRead.resolve();
    await isAwaited.promise;
    await route.fulfill({ response });
  }, { times: 1 });
  const generate = (prompt: string) => bench.app.post("/api/image/generate", { prompt });
  await generate("a heron");
  await isRead.promise;
  await generate("a red fox");
  const fox = page.getByRole("button", { name: "Image: a red fox" });
  await fox.waitFor();
  const late = page.waitForResponse(list);
  isAwaited.resolve();
  await (await late).finished();
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  expect(await fox.count()).toBe(1);
});

test("generates an image again from its message, with the same settings and a new seed", async () => {
  await using bench = await openBench();
  await bench.withChat();
  const body = { prompt: "a red fox", seed: 7, steps: 11, conversation_id: "c1", message_id: "a1" };
  expect((await bench.app.post("/api/image/generate", body)).status).toBe(200);
  const { page, errors } = await bench.open("/c/c1", PHONE);
  await page.getByRole("button", { name: "Enlarge image 1" }).click();
  await page.locator("dialog.zoom").getByRole("button", { name: "Generate again" }).click();
  const dialog = page.getByRole("dialog", { name: "Generate again" });
  await dialog.getByText("This image’s seed is 7").waitFor();
  await dialog.getByRole("button", { name: "Generate", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  const [first, again] = bench.a1111.orders;
  expect(again).toMatchObject({ prompt: "a red fox", steps: 11 });
  expect(again!.seed).not.toBe(first!.seed);
  await page.locator("dialog.zoom").getByText("1 of 2").waitFor();
  expect(errors).toEqual([]);
});

test("shows a failure in the dialog, and links to the settings without a backend", async () => {
  await using bench = await openBench();
  await bench.withChat();
  bench.a1111.switches.failure = "a1111";
  const { page } = await bench.open("/c/c1");
  await draw(page).click();
  const dialog = page.getByRole("dialog", { name: "Generate image" });
  await dialog.getByRole("button", { name: "Generate", exact: true }).click();
  await dialog.getByText("CUDA out of memory").waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
  await bench.app.delete("/api/image/connections/b");
  await draw(page).click();
  await dialog.getByRole("link", { name: "Find on this machine" }).click();
  await page.getByRole("heading", { name: "Images", exact: true }).waitFor();
});

test("shows the progress of a portrait on every device", async () => {
  await using bench = await openBench();
  await bench.withChat();
  bench.a1111.switches.isManual = true;
  await bench.app.put("/api/characters/fern", { card: { name: "Fern", description: "a red fox" } });
  const { page } = await bench.open("/characters/fern");
  const other = (await bench.open("/characters/fern", PHONE)).page;
  await page.getByRole("button", { name: "Generate portrait" }).click();
  await bench.a1111.begun();
  bench.a1111.step(10);
  for (const device of [page, other]) {
    await device.locator('progress[value="0.5"]').waitFor();
  }
  bench.a1111.go();
  for (const device of [page, other]) {
    await device.locator(".character-picture img").waitFor();
    await device.getByRole("button", { name: "Generate portrait" }).waitFor();
  }
});
