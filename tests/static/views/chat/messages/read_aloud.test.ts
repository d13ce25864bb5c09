/** Reading aloud on the real server, with a fake model and a fake speech server. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  AUDIO_FLAGS,
  findAxeProblemsInBothSchemes,
  holdToasts,
  openBrowser,
  openPage,
} from "../../../../helpers/browser/browser.ts";
import { builtUi } from "../../../../helpers/browser/built_ui.ts";
import { FakeLlm } from "../../../../helpers/fakes/llm/fake_llm.ts";
import { fakeAudio, openFakeSpeech, silentMp3 } from "../../../../helpers/fakes/fake_speech.ts";
import { openTestApp } from "../../../../helpers/app/test_app.ts";
import { eventually, recordSpeech, sendMessage, WIDTHS } from "../../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser(AUDIO_FLAGS);
});
afterAll(() => browser.close());

/** A chat with a model that the test controls, and a speech server that takes 0.2 s per sentence. */
async function openBench() {
  const llm = await new FakeLlm({ switches: { manual: "on" } }).open();
  const speech = openFakeSpeech({ audio: () => silentMp3(0.2) });
  const app = await openTestApp();
  await app.put("/api/connections", { id: "c1", name: "Model", kind: "openai", base_url: llm.url });
  await app.post("/api/connections/c1/activate", {});
  await app.put("/api/tts/config", { base_url: speech.url, voice: "joe" });
  const pages: { close(): Promise<void> }[] = [];
  return {
    llm,
    speech,
    app,
    /** Requested texts and voices so far. */
    spoken: () =>
      speech.requests.filter(({ path }) => path.endsWith("/audio/speech"))
        .map(({ json }) => [json!.voice, json!.input]),
    async open(path = "/new", options: BrowserContextOptions = {}, change = () => {}) {
      const watched = await openPage(browser, app.url, options);
      pages.push(watched.context);
      await watched.page.addInitScript(watchSound);
      await watched.page.addInitScript(change);
      await watched.page.goto(`${app.url}${path}`);
      return watched;
    },
    async [Symbol.asyncDispose]() {
      for (const page of pages) await page.close();
      await app[Symbol.asyncDispose]();
      await speech[Symbol.asyncDispose]();
      await llm[Symbol.asyncDispose]();
    },
  };
}

/** Runs in the page: records what its player did. */
function watchSound() {
  const noted: string[] = [];
  const facts = Object.assign(globalThis, { noted, bytes: 0 });
  const { appendBuffer } = SourceBuffer.prototype;
  SourceBuffer.prototype.appendBuffer = function (audio) {
    facts.bytes += audio.byteLength;
    appendBuffer.call(this, audio);
  };
  const { play } = HTMLMediaElement.prototype;
  const watched = new WeakSet<HTMLMediaElement>();
  HTMLMediaElement.prototype.play = function () {
    if (!watched.has(this)) {
      for (const name of ["playing", "ended"]) {
        this.addEventListener(name, () => noted.push(name));
      }
    }
    watched.add(this);
    return play.call(this);
  };
}

const heardToTheEnd = async (page: Page) =>
  (await page.evaluate(() => (globalThis as unknown as { noted: string[] }).noted)).filter((name) => name === "ended")
    .length;

const receivedBytes = (page: Page) => page.evaluate(() => (globalThis as unknown as { bytes: number }).bytes);

const bar = (page: Page) => page.getByRole("group", { name: "Reading aloud" });

test("requests the first sentence while the reply is being written, and plays all in order", async () => {
  await using bench = await openBench();
  const { page, errors, foreign } = await bench.open();
  const requested = recordSpeech(page);
  await sendMessage(page, "When does it come?");
  const call = await bench.llm.nextCall();
  await call.emit("The ferry comes at nine. Then");
  const reply = page.locator(".reply");
  await reply.getByRole("button", { name: "Read aloud" }).click();
  await eventually(bench.spoken, (all) => all.length === 1);
  await expect.poll(() => bench.spoken()).toEqual([["joe", "The ferry comes at nine."]]);
  await bar(page).waitFor();
  await reply.getByRole("button", { name: "Read aloud", pressed: true }).waitFor();
  await eventually(() => heardToTheEnd(page), (count) => count === 1);
  await bar(page).getByText("Waiting for audio").waitFor();

  await call.emit(" it goes on. And that");
  await eventually(bench.spoken, (all) => all.length === 2);
  await call.emit(" is all");
  await call.finish();
  await eventually(() => heardToTheEnd(page), (count) => count === 3);
  await bar(page).waitFor({ state: "detached" });
  expect(requested.map(([, text]) => text)).toEqual([
    "The ferry comes at nine.",
    "Then it goes on.",
    "And that is all",
  ]);
  await reply.getByRole("button", { name: "Read aloud", pressed: false }).waitFor();
  expect(errors).toEqual([]);
  expect(foreign).toEqual([]);
}, 180_000);

test("prefetches only the next sentence", async () => {
  await using bench = await openBench();
  bench.speech.switches.audio = () => silentMp3(600);
  const { page } = await bench.open();
  await sendMessage(page, "Hello");
  const call = await bench.llm.nextCall();
  await call.emit("One is here. Two is here. Three is here.");
  await call.finish();
  await page.locator(".reply").getByRole("button", { name: "Read aloud" }).click();
  await bar(page).getByText("Reading aloud").waitFor();
  await eventually(bench.spoken, (all) => all.length === 2);
  await bar(page).getByRole("button", { name: "Pause" }).click();
  await bar(page).getByText("Paused").waitFor();
  await bar(page).getByRole("button", { name: "Resume" }).click();
  await bar(page).getByText("Reading aloud").waitFor();
  await expect.poll(() => bench.spoken()).toHaveLength(2);

  // Only one thing plays at a time: another message replaces this one.
  await page.locator(".user-message").getByRole("button", { name: "Read aloud" }).click();
  await eventually(bench.spoken, (all) => all.at(-1)![1] === "Hello");
  await page.locator(".reply").getByRole("button", { name: "Read aloud", pressed: false }).waitFor();
  await page.keyboard.press("Escape");
  await bar(page).waitFor({ state: "detached" });
}, 180_000);

test("waits for a character's voice in the first moments of a chat", async () => {
  await using bench = await openBench();
  await bench.app.put("/api/characters/mara", {
    card: { name: "Mara", extensions: { "parlor/voice": "voice-of-mara" } },
  });
  await bench.app.put("/api/conversations/c1", {
    participants: [{ character_id: "mara" }],
    messages: [{ role: "user", content: "When?" }, {
      role: "assistant",
      content: "The ferry comes at nine.",
      character_id: "mara",
    }],
  });
  const { page } = await bench.open("/new");
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  await page.route("**/api/characters/mara", async (route) => {
    asked.resolve();
    await released.promise;
    await route.continue();
  });
  await page.goto(`${bench.app.url}/c/c1`);
  await page.locator(".reply").getByRole("button", { name: "Read aloud" }).click();
  await asked.promise;
  await bar(page).waitFor();
  await expect.poll(() => bench.spoken()).toEqual([]);
  released.resolve();
  await eventually(bench.spoken, (spoken) => spoken.length === 1);
  await expect.poll(() => bench.spoken()).toEqual([["voice-of-mara", "The ferry comes at nine."]]);
});

test("Stop, and leaving the chat, cancel the speech server's work", async () => {
  await using bench = await openBench();
  bench.speech.switches.isManual = true;
  const { page, errors } = await bench.open();
  await sendMessage(page, "Hello");
  const call = await bench.llm.nextCall();
  await call.emit("One is here. Two is here. Three");
  const speak = page.locator(".reply").getByRole("button", { name: "Read aloud" });
  await speak.click();
  await eventually(bench.spoken, (all) => all.length === 2);
  await bar(page).getByRole("button", { name: "Stop", exact: true }).click();
  await Promise.all(bench.speech.requests.map(({ left }) => left));
  await bar(page).waitFor({ state: "detached" });

  await speak.click();
  await eventually(bench.spoken, (all) => all.length === 4);
  await page.getByRole("link", { name: "New chat" }).first().click();
  await page.getByRole("heading", { name: "What’s on your mind?" }).waitFor();
  await Promise.all(bench.speech.requests.map(({ left }) => left));
  await call.finish();
  expect(errors).toEqual([]);
}, 180_000);

test(
  "reads replies automatically if enabled, each part in its voice, on the device that asked",
  async () => {
    await using bench = await openBench();
    const { app } = bench;
    const extensions = { "parlor/voice": "af_heart", "other/app": { kept: true } };
    await app.put("/api/characters/fox", { card: { name: "Fox", first_mes: "Good evening.", extensions } });
    await app.patch("/api/settings", { auto_speak: true, narration_voice: "bm_george", speech_voice: "unused" });
    const created = await (await app.post("/api/conversations", { character_ids: ["fox"] })).json();
    const { page } = await bench.open(`/c/${created.id}`);
    const other = (await bench.open(`/c/${created.id}`)).page;
    const requested = recordSpeech(page);
    for (const device of [page, other]) await device.getByRole("heading", { name: "Fox", level: 2 }).waitFor();
    await sendMessage(page, "May I?");
    const call = await bench.llm.nextCall();
    await call.emit('She smiles. "Come in. Sit');
    await eventually(bench.spoken, (all) => all.length === 2);
    await call.emit(' down." The door closes.');
    await call.finish();
    await eventually(() => heardToTheEnd(page), (count) => count === 4);
    expect(requested).toEqual([
      ["bm_george", "She smiles."],
      ["af_heart", "Come in."],
      ["af_heart", "Sit down."],
      ["bm_george", "The door closes."],
    ]);
    expect(await heardToTheEnd(other)).toBe(0);
  },
  180_000,
);

test("stops reading a regenerated reply, and reads a continued one from there", async () => {
  await using bench = await openBench();
  bench.speech.switches.audio = () => silentMp3(600);
  const { page } = await bench.open();
  await sendMessage(page, "Hello");
  const first = await bench.llm.nextCall();
  await first.emit("One is here. Two is here.");
  await first.finish();
  const reply = page.locator(".reply");
  await reply.getByRole("button", { name: "Read aloud" }).click();
  await bar(page).getByText("Reading aloud").waitFor();
  await reply.getByRole("button", { name: "Regenerate" }).click();
  await bar(page).waitFor({ state: "detached" });
  const second = await bench.llm.nextCall();
  await second.emit("Other words.");
  await second.finish();
  await reply.getByRole("button", { name: "Regenerate" }).waitFor();

  await bench.app.patch("/api/settings", { auto_speak: true });
  await page.reload();
  await reply.getByText("Other words.").waitFor();
  const before = bench.spoken().length;
  await page.keyboard.press("Alt+C");
  const third = await bench.llm.nextCall();
  await third.emit(" And more of them. The");
  await eventually(bench.spoken, (all) => all.length > before);
  await expect.poll(() => bench.spoken().slice(before)).toEqual([["joe", "And more of them."]]);
  await third.finish();
}, 180_000);

test("reads a reply from its beginning that starts before the page knows the settings", async () => {
  await using bench = await openBench();
  await bench.app.patch("/api/settings", { auto_speak: true });
  const { page } = await bench.open();
  const asked = Promise.withResolvers<void>();
  const known = Promise.withResolvers<void>();
  await page.route("**/api/settings", async (route) => {
    asked.resolve();
    await known.promise;
    await route.continue();
  });
  await page.reload();
  await asked.promise;
  await sendMessage(page, "Hello");
  const call = await bench.llm.nextCall();
  await call.emit("One is here. Two");
  await page.locator(".reply").getByText("One is here.").waitFor();
  known.resolve();
  await eventually(bench.spoken, (all) => all.length > 0);
  await call.emit(" is here.");
  await call.finish();
  await expect.poll(bench.spoken).toEqual([["joe", "One is here."], ["joe", "Two is here."]]);
});

test("asks for a click where the browser requires one before sound", async () => {
  await using bench = await openBench();
  const { page } = await bench.open();
  await page.evaluate(() => {
    const { play } = HTMLMediaElement.prototype;
    HTMLMediaElement.prototype.play = function () {
      HTMLMediaElement.prototype.play = play;
      return Promise.reject(new DOMException("a press is needed", "NotAllowedError"));
    };
  });
  await sendMessage(page, "Hello");
  const call = await bench.llm.nextCall();
  await call.emit("One is here.");
  await call.finish();
  await page.locator(".reply").getByRole("button", { name: "Read aloud" }).click();
  await bar(page).getByRole("status").filter({ hasText: "Paused" }).waitFor();
  await bar(page).getByRole("button", { name: "Resume" }).click();
  await eventually(() => heardToTheEnd(page), (count) => count === 1);
  await bar(page).waitFor({ state: "detached" });
}, 180_000);

test.each(["wav", "pcm"] as const)(
  "plays audio that can't be streamed once it is complete: %s",
  async (format) => {
    await using bench = await openBench();
    Object.assign(bench.speech.switches, {
      audio: (text: string) => fakeAudio(format, text.repeat(10)),
      contentType: format === "wav" ? "audio/wav" : "audio/pcm;rate=22050",
    });
    await bench.app.put("/api/tts/config", { format });
    const { page, errors } = await bench.open();
    await sendMessage(page, "Hello");
    const call = await bench.llm.nextCall();
    await call.emit("One is here. Two is here.");
    await call.finish();
    await page.locator(".reply").getByRole("button", { name: "Read aloud" }).click();
    await eventually(() => heardToTheEnd(page), (count) => count === 2);
    expect(errors).toEqual([]);
  },
  180_000,
);

test(
  "shows a failure with a link to the settings, and plays audio that breaks off as far as it arrived",
  async () => {
    await using bench = await openBench();
    const { page } = await bench.open();
    await sendMessage(page, "Hello");
    const call = await bench.llm.nextCall();
    await call.emit("One is here.");
    await call.finish();
    const speak = page.locator(".reply").getByRole("button", { name: "Read aloud" });
    bench.speech.switches.cutAfterBytes = 2000;
    bench.speech.switches.beforeCut = () => eventually(() => receivedBytes(page), (bytes) => bytes === 2000);
    await speak.click();
    await page.locator(".toast").filter({ hasText: "Playback was interrupted" }).waitFor();
    await eventually(() => heardToTheEnd(page), (count) => count === 1);
    await bar(page).waitFor({ state: "detached" });
    await bench.app.put("/api/tts/config", { base_url: null });
    await holdToasts(page);
    await speak.click();
    const toast = page.locator(".toast").filter({ hasText: "No speech server is configured" });
    await toast.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("heading", { name: "Speech server" }).waitFor();
  },
  180_000,
);

test("plays audio while it arrives where only a managed source does that, as on an iPhone", async () => {
  await using bench = await openBench();
  const { page } = await bench.open("/new", {}, () => {
    const { MediaSource: ManagedMediaSource } = globalThis;
    Object.assign(globalThis, { ManagedMediaSource, MediaSource: undefined });
    // It opens only for an element that can't play elsewhere.
    const { play } = HTMLMediaElement.prototype;
    HTMLMediaElement.prototype.play = function () {
      return this.disableRemotePlayback ? play.call(this) : new Promise(() => {});
    };
  });
  await sendMessage(page, "Hello");
  const call = await bench.llm.nextCall();
  await call.emit("One is here.");
  await call.finish();
  bench.speech.switches.cutAfterBytes = 2000;
  bench.speech.switches.beforeCut = () => eventually(() => receivedBytes(page), (bytes) => bytes === 2000);
  await page.locator(".reply").getByRole("button", { name: "Read aloud" }).click();
  await eventually(() => heardToTheEnd(page), (count) => count === 1);
}, 180_000);

test.each(WIDTHS)(
  "axe finds nothing while a reply is read aloud, light and dark, %s",
  async (width, options) => {
    await using bench = await openBench();
    bench.speech.switches.audio = () => silentMp3(600);
    const { page } = await bench.open("/new", { ...options, reducedMotion: "reduce" });
    await sendMessage(page, "When does it come?");
    const call = await bench.llm.nextCall();
    await call.emit("The ferry comes at nine. Then it");
    await page.locator(".reply").getByRole("button", { name: "Read aloud" }).click();
    await bar(page).getByText("Reading aloud").waitFor();
    const shots = Deno.env.get("SCREENSHOTS");
    const look = async (colorScheme: string) => {
      if (shots) await page.screenshot({ path: `${shots}/read-aloud-${width}-${colorScheme}.png` });
    };
    await expect.poll(() => findAxeProblemsInBothSchemes(page, look)).toEqual([]);
    await call.finish();
  },
  180_000,
);
