/** A conversation by voice in a real browser: a real engine speaks both sides, a real recognizer hears, a model answers by script. */
import { Buffer } from "node:buffer";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AUDIO_FLAGS, openBrowser, openPage } from "../helpers/browser/browser.ts";
import { builtUi } from "../helpers/browser/built_ui.ts";
import { openTestApp } from "../helpers/app/test_app.ts";
import { PHONE } from "../helpers/browser/ui_page.ts";
import { FakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { withSilence } from "../helpers/files/spoken_wave.ts";
import { type LoopbackTool, startTool } from "./helpers/loopback_tool.ts";
import { realPart } from "./helpers/real_part.ts";
import { countWrongWords } from "./helpers/wrong_words.ts";

const INSTALLED = realPart("REAL_TRANSCRIPTION_DIR", "transcription.sh");
const SPEECH = realPart("REAL_SPEECH_DIR", "speech.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;
const TURNS = [
  "When does the ferry come in tomorrow morning?",
  "How long does it take to cross the river?",
  "Thank you very much, that is all I wanted to know.",
];
const REPLY = "It comes in at nine.";

describe.skipIf(INSTALLED === undefined || SPEECH === undefined)("by voice", { timeout: SLOW_MS }, () => {
  let recognizer: LoopbackTool;
  let engine: LoopbackTool;
  let browser: Browser;
  let said: Uint8Array<ArrayBuffer>[];

  beforeAll(async () => {
    recognizer = await startTool("transcription.sh", INSTALLED!);
    engine = await startTool("speech.sh", SPEECH!);
    await builtUi();
    // The user's speech, in one voice of the engine. First the page learns how loud the room is.
    said = (await Promise.all(TURNS.map(speak))).map((file) => withSilence(file, 2));
    browser = await openBrowser(AUDIO_FLAGS);
  }, SLOW_MS);

  afterAll(async () => {
    await browser?.close();
    await engine?.[Symbol.asyncDispose]();
    await recognizer?.[Symbol.asyncDispose]();
  });

  async function speak(text: string): Promise<Uint8Array<ArrayBuffer>> {
    const body = JSON.stringify({ model: "piper", voice: "joe", input: text, response_format: "wav", stream: false });
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${engine.url}/v1/audio/speech`, { method: "POST", headers, body });
    expect(response.status).toBe(200);
    return new Uint8Array(await response.arrayBuffer());
  }

  test("three turns are heard, answered and read aloud", async () => {
    await using llm = await new FakeLlm({ pieces: [REPLY] }).open();
    await using app = await openTestApp();
    await app.put("/api/connections", { id: "c1", name: "Model", kind: "openai", base_url: llm.url });
    await app.post("/api/connections/c1/activate", {});
    await app.put("/api/tts/config", { base_url: engine.url, model: "piper", voice: "joe" });
    await app.put("/api/stt/config", { base_url: recognizer.url, language: "en" });
    await app.post("/api/setup/complete", {});
    const { page, context, errors } = await openPage(browser, app.url, PHONE);
    await page.addInitScript(replaceMicrophone, said.map((file) => Buffer.from(file).toString("base64")));
    await page.goto(`${app.url}/new`);
    await page.getByRole("button", { name: "Talk" }).tap();
    const talk = page.getByRole("dialog", { name: "Talk" });
    for (const [i, said] of TURNS.entries()) {
      await talk.getByText("Listening", { exact: true }).waitFor({ timeout: SLOW_MS });
      // A reply may be over before this process looks again, so it looks from here on.
      await Promise.all([
        talk.getByText("Speaking", { exact: true }).waitFor({ timeout: SLOW_MS }),
        page.evaluate((i) => (globalThis as unknown as { say(i: number): void }).say(i), i),
      ]);
      expect(llm.chats).toHaveLength(i + 1);
      const messages = llm.chats[i]!.json!.messages as { role: string; content: string }[];
      const heard = messages.filter(({ role }) => role === "user").map(({ content }) => content);
      expect(heard).toHaveLength(i + 1);
      expect(countWrongWords(heard[i]!, said), heard[i]).toBeLessThanOrEqual(3);
      await talk.getByText(/Answered after/).waitFor();
      console.info(`Turn ${i + 1}: heard "${heard[i]}". ${await talk.locator(".talk-times").innerText()}`);
    }
    await talk.getByText("Listening", { exact: true }).waitFor({ timeout: SLOW_MS });
    expect(errors).toEqual([]);
    await context.close();
  });
});

/** Runs in the page: its microphone hears only what `say` says, however long a reply takes. @param files In base64. */
function replaceMicrophone(files: string[]) {
  MediaDevices.prototype.getUserMedia = () => {
    const context = new AudioContext();
    const microphone = context.createMediaStreamDestination();
    const say = async (i: number) => {
      const bytes = Uint8Array.from(atob(files[i]!), (character) => character.charCodeAt(0));
      const source = new AudioBufferSourceNode(context, { buffer: await context.decodeAudioData(bytes.buffer) });
      source.connect(microphone);
      source.start();
    };
    Object.assign(globalThis, { say });
    return Promise.resolve(microphone.stream);
  };
}
