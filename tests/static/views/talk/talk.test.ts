/**
 * Dictation and conversations by voice in a browser whose microphone plays a file.
 * @slow Sound is spoken, heard and played in its own time.
 */
import { Buffer } from "node:buffer";
import { setTimeout as delay } from "node:timers/promises";
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AUDIO_FLAGS, findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { eventually, PHONE, recordSpeech } from "../../../helpers/browser/ui_page.ts";
import { FakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { openFakeSpeech, silentMp3 } from "../../../helpers/fakes/fake_speech.ts";
import {
  type FakeTranscription,
  type FakeTranscriptionSwitches,
  openFakeTranscription,
} from "../../../helpers/fakes/fake_transcription.ts";
import { makeSpokenWave } from "../../../helpers/files/spoken_wave.ts";

/** Room for a machine that is busy with something else. */
const SLOW_MS = 180_000;

let browser: Browser;
let sound: string;

beforeAll(async () => {
  await builtUi();
  sound = await Deno.makeTempFile({ suffix: ".wav" });
  // Repeated by the browser: what is said takes 1.2 s, then there are 2 s of silence.
  await Deno.writeFile(sound, makeSpokenWave([-0.6, 1.2, -1.4]));
  browser = await openBrowser([...AUDIO_FLAGS, `--use-file-for-fake-audio-capture=${sound}`]);
}, SLOW_MS);

afterAll(async () => {
  await browser?.close();
  if (sound) await Deno.remove(sound);
});

/** Opens a server with a model, a speech server and a transcription server, and the page of a new chat. */
async function openTalk(
  { switches = {}, speaksS = 1, options = {} }: {
    switches?: Partial<FakeTranscriptionSwitches>;
    speaksS?: number;
    options?: BrowserContextOptions;
  } = {},
) {
  const llm = await new FakeLlm({ pieces: ["The ferry comes in at nine."] }).open();
  const speech = openFakeSpeech({ audio: () => silentMp3(speaksS) });
  const transcription = openFakeTranscription({ text: "When does the ferry come in?", ...switches });
  const app = await openTestApp();
  await app.put("/api/connections", { id: "c1", name: "Model", kind: "openai", base_url: llm.url });
  await app.post("/api/connections/c1/activate", {});
  await app.put("/api/tts/config", { base_url: speech.url, model: "piper", voice: "joe" });
  await app.put("/api/stt/config", { base_url: transcription.origin, model: "whisper-1" });
  await app.post("/api/setup/complete", {});
  const watched = await openPage(browser, app.url, options);
  await watched.page.goto(`${app.url}/new`);
  return {
    ...watched,
    llm,
    app,
    transcription,
    speech,
    async [Symbol.asyncDispose]() {
      await watched.context.close();
      for (const each of [app, transcription, speech, llm]) await each[Symbol.asyncDispose]();
    },
  };
}

/** Remembers wake locks, handlers of media keys and microphones in `window.seen`. */
const WATCH_DEVICE = `
  window.seen = { locks: [], handlers: {}, streams: [] };
  const request = WakeLock.prototype.request;
  WakeLock.prototype.request = async function (type) {
    const lock = await request.call(this, type);
    window.seen.locks.push(lock);
    return lock;
  };
  const setActionHandler = MediaSession.prototype.setActionHandler;
  MediaSession.prototype.setActionHandler = function (action, handler) {
    setActionHandler.call(this, action, handler);
    window.seen.handlers[action] = handler;
  };
  const getUserMedia = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = async function (constraints) {
    const stream = await getUserMedia.call(this, constraints);
    window.seen.streams.push(stream);
    return stream;
  };
`;

/** Opens a new chat again, with `WATCH_DEVICE`. */
async function watchDevice({ page, context }: { page: Page; context: BrowserContext }): Promise<void> {
  await context.addInitScript({ content: WATCH_DEVICE });
  await page.reload();
}

/** Gives a new chat a microphone that hears only what `sayUntil` says. */
async function replaceMicrophone(
  { page, context }: { page: Page; context: BrowserContext },
  // The page learns for half a second how loud it is itself, and forgets within seconds what it took for its own sound.
  sound = [-1, 1.2, -7],
): Promise<void> {
  const said = Buffer.from(makeSpokenWave(sound)).toString("base64");
  await context.addInitScript({
    content: `
      MediaDevices.prototype.getUserMedia = async () => {
        const context = new AudioContext();
        const bytes = Uint8Array.from(atob("${said}"), (character) => character.charCodeAt(0));
        const sound = await context.decodeAudioData(bytes.buffer);
        const microphone = context.createMediaStreamDestination();
        window.say = () => new Promise((resolve) => {
          const source = new AudioBufferSourceNode(context, { buffer: sound });
          source.onended = () => resolve();
          source.connect(microphone);
          source.start();
        });
        return microphone.stream;
      };
    `,
  });
  await page.reload();
}

/** Says the same again and again until it was heard, as a person would. */
async function sayUntil(page: Page, isHeard: () => boolean): Promise<void> {
  while (!isHeard()) {
    const said = page.evaluate("window.say()").then(() => true);
    while (!isHeard() && !await Promise.race([said, delay(50, false)]));
  }
}

/** Unplugs the microphone that was opened last: browsers stop its track and say that it ended. */
function unplug(page: Page): Promise<void> {
  return page.evaluate(`{
    const [track] = window.seen.streams.at(-1).getTracks();
    track.stop();
    track.dispatchEvent(new Event("ended"));
  }`);
}

/** Counts in `window.played` what the page played to its end. */
const COUNT_PLAYED = `
  window.played = 0;
  const players = new Set();
  const { play } = HTMLMediaElement.prototype;
  HTMLMediaElement.prototype.play = function () {
    if (!players.has(this)) this.addEventListener("ended", () => window.played++);
    players.add(this);
    return play.call(this);
  };
`;

/** Transcribes the repeated sound as the question the first time, and as `later()` after that. */
function transcribeQuestionOnce({ calls, switches }: FakeTranscription, later: () => string = () => ""): void {
  const question = switches.text;
  Object.defineProperty(switches, "text", { enumerable: true, get: () => calls.length === 1 ? question : later() });
}

const message = (page: Page) => page.getByLabel("Message", { exact: true });

/** Waits until the meter shows speech. */
async function waitForSound(inside: Locator): Promise<void> {
  const readLevel = (span: Element) => Number(getComputedStyle(span).getPropertyValue("--level"));
  await eventually(() => inside.locator(".level-meter > span").evaluate(readLevel), (level) => level > 0.4);
}

test("dictates into the composer after what was typed, as the browser records", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk();
  const { page, transcription } = bench;
  await message(page).fill("Hello.");
  await page.getByRole("button", { name: "Dictate" }).click();
  const bar = page.getByRole("group", { name: "Dictation" });
  await bar.getByText("Listening").waitFor();
  await waitForSound(bar);
  await bar.getByRole("button", { name: "Finish dictation" }).click();
  await eventually(() => message(page).inputValue(), (text) => text === "Hello. When does the ferry come in?");
  await expect.poll(() => bar.count()).toBe(0);
  expect(transcription.calls.map(({ file }) => file.name)).toEqual(["recording.webm"]);
  expect(bench.errors).toEqual([]);
});

test(
  "keeps the recording if the server fails, and sends WAV to a server that can't read webm",
  { timeout: SLOW_MS },
  async () => {
    await using bench = await openTalk({
      switches: { refusal: { status: 400, body: { error: "failed to read audio data" } } },
    });
    const { page, transcription } = bench;
    await page.getByRole("button", { name: "Dictate" }).click();
    const bar = page.getByRole("group", { name: "Dictation" });
    await waitForSound(bar);
    await bar.getByRole("button", { name: "Finish dictation" }).click();
    await bar.getByText("failed to read audio data").waitFor();
    const names = transcription.calls.map(({ file }) => file.name);
    expect(new Set(names)).toEqual(new Set(["recording.webm", "recording.wav"]));
    transcription.switches.refusal = undefined;
    await bar.getByRole("button", { name: "Transcribe again" }).click();
    await eventually(() => message(page).inputValue(), (text) => text === "When does the ferry come in?");
  },
);

test("keeps the recording while the network is lost", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk();
  const { page, context } = bench;
  await page.getByRole("button", { name: "Dictate" }).click();
  const bar = page.getByRole("group", { name: "Dictation" });
  await waitForSound(bar);
  await context.setOffline(true);
  await bar.getByRole("button", { name: "Finish dictation" }).click();
  await bar.getByText("Couldn’t transcribe the recording").waitFor();
  await context.setOffline(false);
  await bar.getByRole("button", { name: "Transcribe again" }).click();
  await eventually(() => message(page).inputValue(), (text) => text === "When does the ferry come in?");
});

test("finds, tests and saves a transcription server", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk({ options: PHONE });
  const { page, app, transcription } = bench;
  await app.put("/api/stt/config", { base_url: null });
  await page.goto(`${app.url}/settings/voice`);
  await page.getByLabel("Transcription URL").fill(transcription.origin);
  transcription.switches.refusal = { status: 401, body: { error: { message: "Incorrect API key" } } };
  await page.getByRole("button", { name: "Test", exact: true }).tap();
  await page.getByText("Incorrect API key").waitFor();
  transcription.switches.refusal = undefined;
  await page.getByRole("button", { name: "Test", exact: true }).tap();
  await page.getByText("The transcription server works").waitFor();
  await page.getByText("The transcription server works").scrollIntoViewIfNeeded();
  await page.getByRole("button", { name: "Save server" }).tap();
  await page.getByText("Transcription server saved").waitFor();
  await expect.poll(async () => (await app.get("/api/stt/config")).json()).toMatchObject({
    base_url: transcription.origin,
  });
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
});

test("says that the microphone was denied, and that no server is set up", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk();
  const { page, app } = bench;
  await app.put("/api/stt/config", { base_url: null });
  await page.getByRole("button", { name: "Dictate" }).click();
  const bar = page.getByRole("group", { name: "Dictation" });
  await waitForSound(bar);
  await bar.getByRole("button", { name: "Finish dictation" }).click();
  await bar.getByText("No transcription server").waitFor();
  await bar.getByRole("button", { name: "Close" }).click();
  await page.evaluate(() => {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotAllowedError"));
  });
  await page.getByRole("button", { name: "Dictate" }).click();
  await bar.getByText("The browser blocked the microphone").waitFor();
});

test("says that the sound of the page doesn't start, and leaves the microphone", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk();
  const { page } = bench;
  await watchDevice(bench);
  await page.evaluate(() => {
    AudioContext.prototype.resume = () => new Promise(() => {});
  });
  await page.getByRole("button", { name: "Dictate" }).click();
  const bar = page.getByRole("group", { name: "Dictation" });
  await bar.getByText("Waiting for the microphone").waitFor();
  await bar.getByText("The browser doesn’t start the sound of this page.").waitFor();
  const states = () =>
    page.evaluate(() =>
      (globalThis as unknown as { seen: { streams: MediaStream[] } }).seen.streams.map((stream) =>
        stream.getTracks().map(({ readyState }) => readyState)
      )
    );
  expect(await states()).toEqual([["ended"]]);
  await bar.getByRole("button", { name: "Close" }).click();
  await bar.waitFor({ state: "detached" });
});

test("waits for the sound of a page that starts late", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk();
  const { page } = bench;
  await page.evaluate(() => {
    const { resume } = AudioContext.prototype;
    AudioContext.prototype.resume = async function () {
      await new Promise((resolve) => setTimeout(resolve, 4000));
      await resume.call(this);
    };
  });
  await page.getByRole("button", { name: "Dictate" }).click();
  await page.getByRole("group", { name: "Dictation" }).getByText("Listening").waitFor();
});

test("holds a conversation: listens, sends, reads the reply, and listens again", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk({ options: PHONE, speaksS: 2 });
  const { page, llm, speech, transcription } = bench;
  await page.getByRole("button", { name: "Talk" }).tap();
  const talk = page.getByRole("dialog", { name: "Talk" });
  // A phase may be shorter than the time between two looks from outside.
  await talk.locator(".talk-phase").evaluate((phase) => {
    const phases: string[] = [];
    Object.assign(window, { phases });
    const note = () => phases.push(phase.textContent ?? "");
    note();
    new MutationObserver(note).observe(phase, { childList: true, characterData: true, subtree: true });
  });
  // The loop of the sound says the same thing again and again. What isn't understood interrupts no reply.
  await eventually(() => llm.chats.length, (count) => count >= 2);
  transcription.switches.text = "";
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await talk.getByText(/Answered after/).waitFor();
  await expect.poll(() => page.evaluate("window.phases")).toEqual(expect.arrayContaining(["Listening", "Speaking"]));
  const [, second] = llm.chats;
  const messages = second!.json!.messages as { role: string; content: string }[];
  expect(messages.filter(({ role }) => role === "user").at(-1)!.content).toBe("When does the ferry come in?");
  expect(speech.requests.filter(({ json }) => json?.input === "The ferry comes in at nine.").length).toBeGreaterThan(0);
  await talk.getByRole("button", { name: "End conversation" }).last().tap();
  await expect.poll(() => talk.count()).toBe(0);
  expect(bench.errors).toEqual([]);
});

test("a voice interrupts the reading, and what was said is shown", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk({ speaksS: 60 });
  await replaceMicrophone(bench);
  const { page, llm } = bench;
  await page.getByRole("button", { name: "Talk" }).click();
  const talk = page.getByRole("dialog", { name: "Talk" });
  await talk.locator(".talk-phase").getByText("Listening").waitFor();
  await sayUntil(page, () => llm.chats.length >= 1);
  await talk.locator(".talk-phase").getByText("Speaking").waitFor();
  await sayUntil(page, () => llm.chats.length >= 2);
  await talk.getByText("You interrupted the reply").waitFor();
  await talk.getByText("“When does the ferry come in?”").waitFor();
});

test("what the page itself says is never sent", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk({ speaksS: 60 });
  await replaceMicrophone(bench);
  const { page, llm, transcription } = bench;
  transcribeQuestionOnce(transcription, () => "the ferry comes in at nine");
  await page.getByRole("button", { name: "Talk" }).click();
  const talk = page.getByRole("dialog", { name: "Talk" });
  await talk.locator(".talk-phase").getByText("Listening").waitFor();
  await sayUntil(page, () => transcription.calls.length >= 1);
  await talk.locator(".talk-phase").getByText("Speaking").waitFor();
  await sayUntil(page, () => transcription.calls.length >= 2);
  await talk.getByText("No words recognized").waitFor();
  await expect.poll(() => llm.chats.length).toBe(1);
});

test("push to talk sends what was said while the button was held", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk({ speaksS: 1 });
  const { page, llm, transcription } = bench;
  await page.getByRole("button", { name: "Talk" }).click();
  const talk = page.getByRole("dialog", { name: "Talk" });
  await talk.getByText("Listening").waitFor();
  await talk.getByRole("switch", { name: "Push to talk" }).click();
  // It may have heard something before; then the button comes after that turn.
  const button = talk.getByRole("button", { name: "Hold to talk" });
  await button.waitFor();
  const [calls, chats] = [transcription.calls.length, llm.chats.length];
  await button.dispatchEvent("pointerdown", { pointerId: 1, button: 0 });
  await waitForSound(talk);
  await talk.getByRole("button", { name: "Release to send" }).dispatchEvent("pointerup", { pointerId: 1, button: 0 });
  await eventually(() => transcription.calls.length, (count) => count > calls);
  await eventually(() => llm.chats.length, (count) => count > chats);
});

test("push to talk begins at once, also while the open microphone hears something", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk();
  await replaceMicrophone(bench, [-1, 40]);
  const { page, transcription } = bench;
  await page.getByRole("button", { name: "Talk" }).click();
  const talk = page.getByRole("dialog", { name: "Talk" });
  await talk.locator(".talk-phase").getByText("Listening").waitFor();
  await page.evaluate("void window.say()");
  await talk.locator(".talk-orb.is-hearing").waitFor();
  const isPushToTalk = talk.getByRole("switch", { name: "Push to talk" });
  await isPushToTalk.click();
  const hold = talk.getByRole("button", { name: "Hold to talk" });
  await hold.waitFor();
  await talk.locator(".talk-phase").getByText("Hold the button to talk").waitFor();
  expect(transcription.calls).toEqual([]);
  // Without the button, what was said with it is taken.
  await hold.dispatchEvent("pointerdown", { pointerId: 1, button: 0 });
  await waitForSound(talk);
  await isPushToTalk.click();
  await eventually(() => transcription.calls.length, (count) => count > 0);
});

test("push to talk is remembered in this browser, says what to do, and leaves the microphone alone until then", {
  timeout: SLOW_MS,
}, async () => {
  await using bench = await openTalk({ options: PHONE });
  const { page, app, transcription } = bench;
  transcription.switches.text = ""; // what the open microphone hears is no message
  await app.put("/api/characters/mara", { card: { name: "Mara" } });
  const participants = [{ character_id: "mara" }];
  await app.put("/api/conversations/c9", { title: "Mara", participants, messages: [] });
  await page.goto(`${app.url}/c/c9`);
  await watchDevice(bench);
  const talk = page.getByRole("dialog", { name: "Talk" });
  const phase = talk.locator(".talk-phase");
  const orb = talk.locator(".talk-orb");
  await page.getByRole("button", { name: "Talk" }).click();
  await talk.getByRole("switch", { name: "Interrupt replies by speaking" }).click();
  await talk.getByRole("switch", { name: "Push to talk" }).click();
  await talk.getByRole("button", { name: "End conversation" }).last().click();
  await page.reload();

  await page.getByRole("button", { name: "Talk" }).click();
  await phase.getByText("Hold the button to talk").waitFor();
  await orb.locator('.portrait-letter[data-letter="M"]').waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await expect.poll(() => talk.getByRole("switch", { name: "Push to talk" }).isChecked()).toBe(true);
  await expect.poll(() => orb.isDisabled()).toBe(true);
  const asked = transcription.calls.length;
  // The sound of the microphone is loud half of the time.
  const levels = await orb.locator(".level-meter > span").evaluate(async (meter) => {
    const levels = new Set<string>();
    for (let frame = 0; frame < 90; frame++) {
      await new Promise(requestAnimationFrame);
      levels.add(getComputedStyle(meter).getPropertyValue("--level"));
    }
    return [...levels].map(Number);
  });
  expect(levels).toEqual([0]);
  expect(transcription.calls).toHaveLength(asked);

  // A button that loses the focus is released, and the key of a headset holds it, too.
  const hold = talk.getByRole("button", { name: /Hold to talk|Release to send/ });
  await hold.dispatchEvent("pointerdown", { pointerId: 1, button: 0 });
  await phase.getByText("Listening").waitFor();
  await waitForSound(talk);
  await hold.dispatchEvent("blur");
  await phase.getByText("Hold the button to talk").waitFor();
  await expect.poll(() => transcription.calls.length).toBe(asked + 1);
  await page.evaluate("window.seen.handlers.pause()");
  await phase.getByText("Listening").waitFor();
  await waitForSound(talk);
  await page.evaluate("window.seen.handlers.play()");
  await phase.getByText("Hold the button to talk").waitFor();
  await expect.poll(() => transcription.calls.length).toBe(asked + 2);

  await talk.getByRole("switch", { name: "Push to talk" }).click();
  await phase.getByText("Listening").waitFor();
  await expect.poll(() => talk.getByRole("switch", { name: "Interrupt replies by speaking" }).isChecked()).toBe(false);
});

test("a failed reply is asked for again with the microphone that is open", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk({ speaksS: 60 });
  const { page, llm, transcription } = bench;
  await watchDevice(bench);
  transcribeQuestionOnce(transcription);
  Object.assign(llm.switches, { fail: "status_json", status: 400 });
  await page.getByRole("button", { name: "Talk" }).click();
  const talk = page.getByRole("dialog", { name: "Talk" });
  await talk.getByText("The reply failed").waitFor();
  const asked = llm.chats.length;
  llm.switches.fail = "none";
  await talk.getByRole("button", { name: "Try again" }).click();
  await talk.locator(".talk-phase").getByText("Speaking").waitFor();
  await talk.locator(".talk-reply").getByText("The ferry comes in at nine.").waitFor();
  expect(llm.chats.length).toBe(asked + 1);
  await expect.poll(() => page.evaluate("window.seen.streams.length")).toBe(1);
});

test("a reply that fails while something is heard is shown as failed after that", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk();
  await replaceMicrophone(bench, [-1, 3, -7]);
  const { page, llm, transcription } = bench;
  llm.switches.manual = "on";
  transcribeQuestionOnce(transcription);
  await page.getByRole("button", { name: "Talk" }).click();
  const talk = page.getByRole("dialog", { name: "Talk" });
  await talk.locator(".talk-phase").getByText("Listening").waitFor();
  await sayUntil(page, () => llm.chats.length >= 1);
  const call = await llm.nextCall();
  let isHeard = false;
  const hearing = talk.locator(".talk-orb.is-hearing").waitFor().then(() => isHeard = true);
  await Promise.all([hearing, sayUntil(page, () => isHeard)]);
  await call.fail("frame_object");
  await talk.getByText("The reply failed").waitFor();
  expect(llm.chats).toHaveLength(1);
});

test("a microphone that is lost while its words are written down is opened again after the reply", {
  timeout: SLOW_MS,
}, async () => {
  const written = Promise.withResolvers<void>();
  await using bench = await openTalk({ switches: { held: written.promise } });
  using _ = { [Symbol.dispose]: written.resolve };
  const { page, llm } = bench;
  await watchDevice(bench);
  await page.getByRole("button", { name: "Talk" }).click();
  const talk = page.getByRole("dialog", { name: "Talk" });
  await talk.locator(".talk-orb.is-transcribing").waitFor();
  await unplug(page);
  await talk.getByText("The microphone was disconnected").waitFor();
  written.resolve();
  await eventually(() => llm.chats.length, (count) => count === 1);
  await page.getByText("The ferry comes in at nine.").first().waitFor({ state: "attached" });
  await talk.locator(".talk-phase").getByText("Paused").waitFor();
  await page.evaluate(`MediaDevices.prototype.getUserMedia = () =>
    Promise.resolve(new AudioContext().createMediaStreamDestination().stream)`);
  await talk.getByRole("button", { name: "Resume conversation" }).click();
  await talk.locator(".talk-phase").getByText("Listening").waitFor();
  expect(llm.chats).toHaveLength(1);
});

test("in a group, each character has its own voice, says its name first and is heard to the end", {
  timeout: SLOW_MS,
}, async () => {
  await using bench = await openTalk({ speaksS: 1 });
  const { page, context, app, transcription } = bench;
  const requested = recordSpeech(page);
  // Asked again before the second reply is read, the row would start over.
  transcribeQuestionOnce(transcription);
  await context.addInitScript({ content: COUNT_PLAYED });
  for (const [id, name] of [["mara", "Mara"], ["june", "Juniper"]]) {
    await app.put(`/api/characters/${id}`, { card: { name, extensions: { "parlor/voice": `voice-of-${id}` } } });
  }
  const participants = [{ character_id: "mara" }, { character_id: "june" }];
  await app.put("/api/conversations/g1", { title: "Two", participants, reply_order: "list", messages: [] });
  await page.goto(`${app.url}/c/g1`);
  await page.getByText("Juniper").first().waitFor();
  await page.getByRole("button", { name: "Talk" }).click();
  await eventually(() => page.evaluate<number>("window.played"), (count) => count >= 4);
  expect(requested).toEqual([
    ["voice-of-mara", "Mara."],
    ["voice-of-mara", "The ferry comes in at nine."],
    ["voice-of-june", "Juniper."],
    ["voice-of-june", "The ferry comes in at nine."],
  ]);
});

test("keeps the recording with the message, which plays it and can seek in it", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk({ options: PHONE });
  const { page, app, llm } = bench;
  await page.goto(`${app.url}/settings/voice`);
  await page.getByRole("switch", { name: "Keep recordings with my messages" }).tap();
  await eventually(
    async () => (await (await app.get("/api/settings")).json()).keep_recordings,
    (isKept: boolean) => isKept,
  );
  await page.goto(`${app.url}/new`);
  const dictate = async () => {
    await page.getByRole("button", { name: "Dictate" }).click();
    const bar = page.getByRole("group", { name: "Dictation" });
    await waitForSound(bar);
    await bar.getByRole("button", { name: "Finish dictation" }).click();
    await bar.waitFor({ state: "detached" });
  };
  await dictate();
  await dictate();
  const row = page.getByRole("list", { name: "Recordings to send" });
  await row.getByRole("button", { name: "Remove recording 2" }).tap();
  await expect.poll(() => row.getByRole("listitem").count()).toBe(1);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Send" }).tap();
  await page.getByRole("article").getByText("The ferry comes in at nine.").waitFor();
  await expect.poll(() => row.count()).toBe(0);
  await page.reload();
  const player = page.getByLabel("Recording 1", { exact: true });
  await player.waitFor();
  await eventually(() => player.evaluate((audio: HTMLAudioElement) => audio.duration), (seconds) => seconds > 0.2);
  await expect.poll(() =>
    player.evaluate((audio: HTMLAudioElement) =>
      new Promise((resolve) => {
        audio.addEventListener("seeked", () => resolve(audio.currentTime > 0));
        audio.currentTime = audio.duration / 2;
      })
    )
  ).toBe(true);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  expect(JSON.stringify(llm.chats.map(({ json }) => json))).not.toContain(".wav");
  expect(bench.errors).toEqual([]);
});

test("keeps what was said in a conversation", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk({ speaksS: 60 });
  const { page, app, llm } = bench;
  await app.patch("/api/settings", { keep_recordings: true });
  await page.reload();
  await page.getByRole("button", { name: "Talk" }).click();
  await eventually(() => llm.chats.length, (count) => count >= 1);
  await page.getByRole("button", { name: "End conversation" }).last().click();
  await page.waitForURL("**/c/*");
  const id = new URL(page.url()).pathname.split("/").at(-1);
  const said = (await (await app.get(`/api/conversations/${id}`)).json()).messages[0];
  expect(said).toMatchObject({ role: "user", attachments: [expect.stringMatching(/\.wav$/)] });
  const recording = await app.get(`/api/attachments/${said.attachments[0]}`);
  // More than a second of 16-bit sound at 16 kHz.
  expect([recording.headers.get("content-type"), (await recording.bytes()).length > 32_000]).toEqual([
    "audio/wav",
    true,
  ]);
});

test("a press that outlasts the loading of the code is a hold, a shorter one a tap", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk();
  const { page, transcription } = bench;
  const bar = page.getByRole("group", { name: "Dictation" });
  const press = async (isTap: boolean) => {
    const gate = Promise.withResolvers<void>();
    await page.route("**/*.js", async (route) => {
      await gate.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "Dictate" }).hover();
    // Both at once: a tap is short, however busy the page is with its beginning.
    await Promise.all([page.mouse.down(), ...(isTap ? [page.mouse.up()] : [])]);
    await expect.poll(() => bar.count()).toBe(0);
    gate.resolve();
    await bar.getByText("Listening").waitFor();
    await waitForSound(bar);
  };
  await press(true);
  await bar.getByText(/^0:(0[1-9]|[1-5]\d)$/).waitFor();
  await message(page).click();
  await expect.poll(() => bar.getByText("Listening").count()).toBe(1);
  expect(transcription.calls).toEqual([]);
  await page.reload();
  await press(false);
  await page.mouse.up();
  await eventually(() => message(page).inputValue(), (text) => text.includes("When does the ferry come in?"));
});

test("during a conversation the screen stays on and the keys of a headset mute it", { timeout: SLOW_MS }, async () => {
  await using bench = await openTalk();
  const { page, transcription } = bench;
  await watchDevice(bench);
  transcription.switches.text = ""; // nobody says anything
  await page.getByRole("button", { name: "Talk" }).click();
  const phase = page.locator(".talk-phase");
  await phase.getByText("Listening").waitFor();
  await eventually(() => page.evaluate("window.seen.locks.length"), (count) => count === 1);
  await page.evaluate("window.seen.handlers.pause()");
  await phase.getByText("Muted").waitFor();
  await page.evaluate("window.seen.handlers.play()");
  await phase.getByText("Listening").waitFor();
  await page.getByRole("button", { name: "End conversation" }).last().click();
  await eventually(() => page.evaluate("window.seen.locks[0].released"), (isReleased) => isReleased === true);
  const handlers = () => page.evaluate<Record<string, unknown>>("({ ...window.seen.handlers })");
  await expect.poll(handlers).toMatchObject({ play: null, pause: null, stop: null });
});

test("an unplugged microphone ends a dictation, and what was recorded is transcribed", {
  timeout: SLOW_MS,
}, async () => {
  await using bench = await openTalk();
  const { page } = bench;
  await watchDevice(bench);
  await page.getByRole("button", { name: "Dictate" }).click();
  const bar = page.getByRole("group", { name: "Dictation" });
  await waitForSound(bar);
  await unplug(page);
  await bar.getByText("The microphone was disconnected").waitFor();
  await bar.getByRole("button", { name: "Transcribe again" }).click();
  await eventually(() => message(page).inputValue(), (text) => text === "When does the ferry come in?");
});

test("an unplugged microphone pauses a conversation, and what was said until then is sent with the next one", {
  timeout: SLOW_MS,
}, async () => {
  await using bench = await openTalk();
  const { page, llm } = bench;
  await watchDevice(bench);
  await page.getByRole("button", { name: "Talk" }).click();
  const talk = page.getByRole("dialog", { name: "Talk" });
  await talk.locator(".talk-orb.is-hearing").waitFor();
  await unplug(page);
  await talk.getByText("The microphone was disconnected").waitFor();
  // The next microphone hears nothing.
  await page.evaluate(`MediaDevices.prototype.getUserMedia = () =>
    Promise.resolve(new AudioContext().createMediaStreamDestination().stream)`);
  await talk.getByRole("button", { name: "Try again" }).click();
  await eventually(() => llm.chats.length, (count) => count >= 1);
  await talk.getByText("“When does the ferry come in?”").waitFor();
});
