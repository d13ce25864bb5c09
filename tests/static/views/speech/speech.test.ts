/**
 * The speech page on the real server, with a fake speech server and a fake external site.
 *
 * @slow Sound is recorded and played in its own time.
 */
import { Buffer } from "node:buffer";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  AUDIO_FLAGS,
  findAxeProblemsInBothSchemes,
  holdToasts,
  openBrowser,
  openPage,
} from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openFakeSpeech, silentMp3, wavFile } from "../../../helpers/fakes/fake_speech.ts";
import { PUBLIC } from "../../../helpers/network/loopback_guard.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { eventually, PHONE, WIDTHS } from "../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser(AUDIO_FLAGS);
});
afterAll(() => browser.close());

async function openBench(config: { discoverHosts?: string[] } = {}) {
  const speech = openFakeSpeech({ audio: () => silentMp3(0.2) });
  const app = await openTestApp({ config: { guardAllow: [`${PUBLIC}/32`], ...config } });
  const pages: { close(): Promise<void> }[] = [];
  return {
    speech,
    app,
    config: async () => await (await app.get("/api/tts/config")).json(),
    samples: async (): Promise<{ id: string; name: string; format: string; duration_s?: number }[]> =>
      await (await app.get("/api/voices")).json(),
    async upload(name: string, audio = wavFile(1.5)) {
      const form = new FormData();
      form.set("name", name);
      form.set("audio", new Blob([audio]), "sample.wav");
      return await (await app.post("/api/voices", form)).json() as { id: string };
    },
    async open(options: BrowserContextOptions = {}) {
      const watched = await openPage(browser, app.url, options);
      pages.push(watched.context);
      await watched.page.goto(`${app.url}/settings/voice`);
      await watched.page.getByRole("heading", { name: "Voice library" }).waitFor();
      return watched;
    },
    async [Symbol.asyncDispose]() {
      for (const page of pages) await page.close();
      await app[Symbol.asyncDispose]();
      await speech[Symbol.asyncDispose]();
    },
  };
}

const library = (page: Page) => page.getByRole("list", { name: "Voice library" });

test("warns of a key over plain HTTP to the speech server, and doesn't send one for another address", async () => {
  await using bench = await openBench();
  await bench.app.put("/api/tts/config", { base_url: "https://speech.example/v1", api_key: "k1" });
  const { page } = await bench.open();
  const exposed = page.getByText("This URL isn’t encrypted");
  const address = page.getByLabel("URL", { exact: true });
  await page.getByText("A key is saved").waitFor();
  await expect.poll(() => exposed.count()).toBe(0);
  await address.fill("http://192.168.1.9:8880");
  await page.getByText("The saved key belongs to another URL").waitFor();
  await expect.poll(() => exposed.count()).toBe(0);
  await page.getByLabel("API key").first().fill("k2");
  await exposed.waitFor();
  await address.fill("http://127.0.0.1:8880");
  await exposed.waitFor({ state: "detached" });
});

test("finds a speech server, says what it is, and uses it with the first model that it lists", async () => {
  await using speech = openFakeSpeech({
    audio: () => silentMp3(0.2),
    models: { data: [{ id: "kokoro", owned_by: "kokoro" }] },
    required: ["model", "voice"],
  });
  const found = [new URL(speech.origin).host];
  await using bench = await openBench({ discoverHosts: found });
  const { page } = await bench.open();
  await page.getByRole("button", { name: "Find speech servers" }).click();
  await page.getByRole("button", { name: `Use Kokoro-FastAPI at ${speech.url}` }).click();
  await page.getByText("Kokoro-FastAPI · 1 model · 1 voice from the server").waitFor();
  await page.getByRole("button", { name: "Save and test" }).click();
  await page.getByText("The speech server works").waitFor();
  await expect.poll(bench.config).toMatchObject({ base_url: speech.url, model: "kokoro", voice: "" });
  expect(speech.requests.findLast(({ json }) => json !== undefined)!.json).toMatchObject({ voice: "joe" });
});

test("says what answers at a typed address: another speech server, or none", async () => {
  await using bench = await openBench();
  const { page } = await bench.open();
  const address = page.getByLabel("URL", { exact: true });
  await address.fill(bench.speech.origin.replace("http://", ""));
  await address.press("Tab");
  await page.getByText("OpenAI-compatible · 2 models · 1 voice from the server").waitFor();
  await address.fill(bench.app.url);
  await address.press("Tab");
  await page.getByText("No response at this URL").waitFor();
});

test("saves a speech server, tests it and selects a voice; another device sees it", async () => {
  await using bench = await openBench();
  const { page, errors, foreign } = await bench.open();
  const other = (await bench.open(PHONE)).page;
  await page.getByLabel("URL", { exact: true }).fill(bench.speech.url);
  await page.getByLabel("API key").first().fill("k1");
  await page.getByRole("button", { name: "Save and test" }).click();
  await page.getByText("The speech server works").waitFor();
  await page.getByText(/^First audio after [\d,]+ ms$/).waitFor();
  await page.getByRole("listitem").getByText("2 models").waitFor();
  expect(bench.speech.requests.find(({ path }) => path === "/v1/audio/speech")!.json).toMatchObject({
    input: "Good evening. This is how I sound.",
  });
  await page.getByText("A key is saved. Leave this empty to use it.").waitFor();
  await expect.poll(() => page.getByLabel("API key").first().inputValue()).toBe("");
  await eventually(() => other.getByLabel("URL", { exact: true }).inputValue(), (url) => url === bench.speech.url);

  await page.getByLabel("Model", { exact: true }).fill("kokoro");
  await page.getByLabel("Format").selectOption("opus");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator(".toast").filter({ hasText: "Speech server saved" }).waitFor();
  await page.getByLabel("Voice", { exact: true }).selectOption({ label: "Joe (en)" });
  await page.getByLabel("Speed").fill("1.5");
  await eventually(bench.config, (config) => config.voice === "joe" && config.speed === 1.5);
  expect(await bench.config()).toEqual({
    base_url: bench.speech.url,
    model: "kokoro",
    voice: "joe",
    format: "opus",
    speed: 1.5,
    has_key: true,
  });
  await page.getByRole("button", { name: "Listen: Voice", exact: true }).click();
  await eventually(
    () => bench.speech.requests.at(-1)!.json,
    (json) => json?.voice === "joe" && json.speed === 1.5 && json.model === "kokoro",
  );

  await page.getByLabel("Voice for narration", { exact: true }).selectOption({ label: "Another name" });
  await page.getByLabel("Voice name").fill("af_bella(2)+af_sky");
  await page.keyboard.press("Tab");
  await page.getByLabel("Voice for dialogue", { exact: true }).selectOption({ label: "Joe (en)" });
  await page.getByRole("switch", { name: "Read replies aloud automatically" }).check();
  await eventually(
    async () => await (await bench.app.get("/api/settings")).json(),
    (settings) =>
      settings.auto_speak && settings.narration_voice === "af_bella(2)+af_sky" && settings.speech_voice === "joe",
  );
  expect(errors).toEqual([]);
  expect(foreign).toEqual([]);
}, 180_000);

test("shows why a server refused, and keeps the input", async () => {
  await using bench = await openBench();
  bench.speech.switches.refusal = { status: 401, body: { error: { message: "no such key" } } };
  const { page } = await bench.open();
  await expect.poll(() => page.getByRole("button", { name: "Save and test" }).isDisabled()).toBe(true);
  await page.getByLabel("URL", { exact: true }).fill("not an address");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Couldn’t save the speech server").waitFor();
  await expect.poll(() => page.getByLabel("URL", { exact: true }).inputValue()).toBe("not an address");
  await page.getByLabel("URL", { exact: true }).fill(bench.speech.url);
  await page.getByRole("button", { name: "Save and test" }).click();
  await page.getByRole("alert").filter({ hasText: "Test failed" }).waitFor();
});

test("records a sample, plays, renames, and deletes it with Undo", async () => {
  await using bench = await openBench();
  const { page, errors } = await bench.open();
  await page.getByText("No samples yet").waitFor();
  await page.getByRole("button", { name: "Record", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Not recording yet").waitFor();
  await dialog.getByRole("button", { name: "Start recording" }).click();
  await dialog.getByRole("status").filter({ hasText: /^Recording$/ }).waitFor();
  await dialog.getByText(/^0:(0[1-9]|[1-5]\d)$/).waitFor();
  await dialog.getByRole("button", { name: "Stop recording" }).click();
  await dialog.getByRole("status").filter({ hasText: /^Recorded$/ }).waitFor();
  await dialog.locator("audio").waitFor();
  await dialog.getByLabel("Name").fill("My voice");
  await dialog.getByRole("button", { name: "Save" }).click();
  await library(page).getByRole("heading", { name: "My voice" }).waitFor();
  expect(await bench.samples()).toMatchObject([{ name: "My voice", format: "webm" }]);

  // The sample lasts a second, which may pass between two looks from outside.
  await library(page).evaluate((list) => {
    const labels: (string | null)[] = [];
    Object.assign(globalThis, { labels });
    const note = () => labels.push(list.querySelector("button")?.ariaLabel ?? null);
    new MutationObserver(note).observe(list, { attributes: true, childList: true, subtree: true });
  });
  await library(page).getByRole("button", { name: "Play My voice" }).click();
  await expect.poll(() => page.evaluate<string[]>("window.labels")).toContain("Stop My voice");
  await library(page).getByRole("button", { name: "Play My voice" }).waitFor();

  await library(page).getByRole("button", { name: "More actions for My voice" }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Aunt");
  await page.keyboard.press("Enter");
  await library(page).getByRole("heading", { name: "Aunt" }).waitFor();

  await holdToasts(page);
  const remove = async () => {
    await library(page).getByRole("button", { name: "More actions for Aunt" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByText("No samples yet").waitFor();
  };
  await remove();
  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await library(page).getByRole("heading", { name: "Aunt" }).waitFor();
  expect(await bench.samples()).toHaveLength(1);
  await remove();
  await page.locator(".toast").getByRole("button", { name: "Close" }).click();
  await eventually(bench.samples, (samples) => samples.length === 0);
  const trash = await (await bench.app.get("/api/trash")).json();
  expect(trash).toMatchObject([{ kind: "voice", title: "Aunt" }]);
  expect(errors).toEqual([]);
}, 180_000);

test("uploads files under their names, and refuses an unsuitable one", async () => {
  await using bench = await openBench();
  const { page } = await bench.open();
  const other = (await bench.open()).page;
  const wave = { mimeType: "audio/wav", buffer: Buffer.from(wavFile(1.5)) };
  await page.locator("input[type=file]").setInputFiles([
    { ...wave, name: "Grandma 1987.tape.wav" },
    { name: "notes.wav", mimeType: "audio/wav", buffer: Buffer.from("no audio at all") },
  ]);
  for (const device of [page, other]) {
    await library(device).getByRole("heading", { name: "Grandma 1987.tape" }).waitFor();
    await library(device).getByText("0:01 · 24 kHz · wav · 72 kB").waitFor();
  }
  await page.getByRole("alert").filter({ hasText: "Couldn’t add the sample" }).waitFor();
});

test(
  "imports a recording from a URL with progress, can cancel it, and shows why it failed",
  async () => {
    await using bench = await openBench();
    let rest = Promise.withResolvers<void>();
    const audio = wavFile(4);
    await using site = Deno.serve({ port: 0, hostname: PUBLIC, onListen() {} }, (request) => {
      if (new URL(request.url).pathname !== "/voice.wav") return new Response("nothing", { status: 404 });
      const held = rest.promise;
      const body = new ReadableStream<Uint8Array>({
        async start(controller) {
          controller.enqueue(audio.slice(0, 96_000));
          await held;
          controller.enqueue(audio.slice(96_000));
          controller.close();
        },
      });
      return new Response(body, { headers: { "content-length": String(audio.length) } });
    });
    const origin = `http://${PUBLIC}:${site.addr.port}`;
    const { page } = await bench.open();
    const fetchFrom = async (path: string, name: string) => {
      await page.getByRole("button", { name: "From a URL" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Recording URL").fill(origin + path);
      await dialog.getByLabel("Name").fill(name);
      await dialog.getByRole("button", { name: "Add sample", exact: true }).click();
    };
    await fetchFrom("/voice.wav", "Guest");
    const bar = page.getByRole("progressbar", { name: "Guest" });
    await page.getByText("96 kB of 192 kB").waitFor();
    await expect.poll(async () => Number(await bar.getAttribute("value"))).toBeCloseTo(0.5, 1);
    rest.resolve();
    await library(page).getByRole("heading", { name: "Guest" }).waitFor();
    await bar.waitFor({ state: "detached" });

    rest = Promise.withResolvers();
    await fetchFrom("/voice.wav", "Unwanted");
    await page.getByRole("button", { name: "Cancel: Unwanted" }).click();
    await page.getByRole("progressbar", { name: "Unwanted" }).waitFor({ state: "detached" });
    rest.resolve();
    await fetchFrom("/nothing", "Nobody");
    await page.getByRole("alert").filter({ hasText: "Couldn’t add the sample" }).waitFor();
    expect((await bench.samples()).map(({ name }) => name)).toEqual(["Guest"]);

    await page.getByRole("button", { name: "From a URL" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Recording URL").fill("file:///etc/passwd");
    await dialog.getByLabel("From", { exact: true }).fill("1:30");
    await dialog.getByLabel("To", { exact: true }).fill("1:15");
    await dialog.getByRole("button", { name: "Add sample", exact: true }).click();
    await dialog.getByText("Enter a URL that starts with http:// or https://").waitFor();
    await dialog.getByText("The end must be after the start").waitFor();
    await dialog.getByText("Enter a name").waitFor();
  },
  180_000,
);

test("stores a voice in a character's card, and keeps other extensions", async () => {
  await using bench = await openBench();
  await bench.app.put("/api/tts/config", { base_url: bench.speech.url });
  const sample = await bench.upload("Grandma");
  await bench.app.put("/api/characters/fox", { card: { name: "Fox", extensions: { "other/app": { kept: true } } } });
  const { page } = await bench.open();
  const extensions = async () =>
    (await (await bench.app.get("/api/characters/fox")).json()).card.data.extensions as Record<string, unknown>;
  await page.goto(`${bench.app.url}/characters/fox/edit`);
  await page.getByRole("tab", { name: "Voice" }).click();
  const picker = page.getByLabel("Voice when read aloud", { exact: true });
  await picker.selectOption({ label: "Grandma" });
  await eventually(extensions, (all) => all["parlor/voice"] === sample.id);
  await picker.selectOption({ label: "Voice from settings" });
  await eventually(extensions, (all) => all["parlor/voice"] === undefined);
  expect(await extensions()).toMatchObject({ "other/app": { kept: true } });
});

test("without a microphone the dialog says what to do", async () => {
  await using bench = await openBench();
  const { page } = await bench.open();
  await page.evaluate(() => Object.defineProperty(navigator, "mediaDevices", { value: undefined }));
  await page.getByRole("button", { name: "Record", exact: true }).click();
  await page.getByRole("button", { name: "Start recording" }).click();
  await page.getByRole("dialog").getByText("only over HTTPS or on localhost").waitFor();
});

test.each(WIDTHS)(
  "axe finds nothing on the page and its dialogs, light and dark, %s",
  async (width, options) => {
    await using bench = await openBench();
    await bench.app.put("/api/tts/config", { base_url: bench.speech.url, api_key: "k1" });
    await bench.upload("Grandma");
    const { page } = await bench.open({ ...options, reducedMotion: "reduce" });
    const shots = Deno.env.get("SCREENSHOTS");
    const look = async (name: string) => {
      const take = async (colorScheme: string) => {
        if (shots) await page.screenshot({ path: `${shots}/voice-${name}-${width}-${colorScheme}.png` });
      };
      await expect.poll(() => findAxeProblemsInBothSchemes(page, take), { message: name }).toEqual([]);
    };
    await page.getByRole("button", { name: "Save and test" }).click();
    await page.getByText("The speech server works").waitFor();
    await look("server");
    await page.getByLabel("Voice for narration", { exact: true }).selectOption({ label: "Another name" });
    await page.getByLabel("Voice name").scrollIntoViewIfNeeded();
    await look("sound");
    await library(page).getByRole("button", { name: "More actions for Grandma" }).scrollIntoViewIfNeeded();
    await look("library");
    await page.getByRole("button", { name: "From a URL" }).click();
    await page.getByRole("dialog").waitFor();
    await look("fetch");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Record", exact: true }).click();
    await page.getByRole("button", { name: "Start recording" }).click();
    await page.getByRole("dialog").getByText(/^0:(0[1-9]|[1-5]\d)$/).waitFor();
    await page.getByRole("button", { name: "Stop recording" }).click();
    await page.getByRole("dialog").locator("audio").waitFor();
    await look("record");
  },
  180_000,
);
