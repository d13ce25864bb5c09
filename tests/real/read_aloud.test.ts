/** A reply read aloud in a real browser by a real speech engine, during its generation. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AUDIO_FLAGS, openBrowser, openPage } from "../helpers/browser/browser.ts";
import { builtUi } from "../helpers/browser/built_ui.ts";
import { FakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { openTestApp } from "../helpers/app/test_app.ts";
import { sendMessage } from "../helpers/browser/ui_page.ts";
import { realPart } from "./helpers/real_part.ts";
import { type LoopbackTool, startTool } from "./helpers/loopback_tool.ts";

const INSTALLED = realPart("REAL_SPEECH_DIR", "speech.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;
const FIRST = "The ferry comes in at nine, and the light on the pier is lit.";
const SECOND = "Nobody waits for it tonight.";

describe.skipIf(INSTALLED === undefined)("with a real speech engine", { timeout: SLOW_MS }, () => {
  let engine: LoopbackTool;
  let browser: Browser;

  beforeAll(async () => {
    engine = await startTool("speech.sh", INSTALLED!);
    await builtUi();
    browser = await openBrowser(AUDIO_FLAGS);
  }, SLOW_MS);

  afterAll(async () => {
    await browser?.close();
    await engine?.[Symbol.asyncDispose]();
  });

  test.each(["mp3", "wav"] as const)(
    "a reply is heard from its first sentence on while it is written, as %s",
    async (format) => {
      await using llm = await new FakeLlm({ switches: { manual: "on" } }).open();
      await using app = await openTestApp();
      await app.put("/api/connections", { id: "c1", name: "Model", kind: "openai", base_url: llm.url });
      await app.post("/api/connections/c1/activate", {});
      await app.put("/api/tts/config", { base_url: engine.url, model: "piper", voice: "joe", format });
      await app.patch("/api/settings", { auto_speak: true });
      const { page, context, errors } = await openPage(browser, app.url);
      const heard: { name: string; atMs: number; atS: number }[] = [];
      const begun = Promise.withResolvers<void>();
      await page.exposeFunction("note", (name: string, atS: number) => {
        heard.push({ name, atMs: performance.now(), atS });
        begun.resolve();
      });
      await page.addInitScript(noteSound);
      await page.goto(`${app.url}/new`);
      await sendMessage(page, "When does it come?");
      const call = await llm.nextCall();
      await page.getByRole("group", { name: "Reading aloud" }).waitFor();
      const saidAtMs = performance.now();
      await call.emit(`${FIRST} Nobody`);
      await begun.promise;
      console.info(`First sound ${Math.round(heard[0]!.atMs - saidAtMs)} ms after the first sentence, as ${format}`);
      // The model is not done yet; what is heard began before.
      await page.locator('.reply[data-status="streaming"]').waitFor();
      await call.emit(SECOND.slice("Nobody".length));
      await call.finish();
      await page.getByRole("group", { name: "Reading aloud" }).waitFor({ state: "detached", timeout: SLOW_MS });
      // Where the engine is slower than its speech, a sentence halts and plays on.
      const turns = heard.filter(({ name }, n) => name !== heard[n - 1]?.name);
      expect(turns.map(({ name }) => name)).toEqual(["playing", "ended", "playing", "ended"]);
      // Some four seconds of speech for the first sentence, whole; two for the second.
      expect(turns[1]!.atS).toBeGreaterThan(2.5);
      expect(turns[3]!.atS).toBeGreaterThan(0.8);
      expect(errors).toEqual([]);
      await context.close();
    },
  );
});

/** Runs in the page: records when its player starts and ends, and the position in the audio. */
function noteSound() {
  const { note } = globalThis as unknown as { note(name: string, atS: number): void };
  const { play } = HTMLMediaElement.prototype;
  const watched = new WeakSet<HTMLMediaElement>();
  HTMLMediaElement.prototype.play = function () {
    if (!watched.has(this)) {
      // Before the page hears of it, which then goes on with the next audio.
      for (const name of ["playing", "ended"]) this.addEventListener(name, () => note(name, this.currentTime), true);
    }
    watched.add(this);
    return play.call(this);
  };
}
