/**
 * The page in the engines that a household has: each flow runs in Chromium, in Firefox and in WebKit. With `LONG_TESTS=1` each
 * runs at the sizes of a phone and of a desktop.
 * @slow Three real browsers.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtUi } from "../helpers/browser/built_ui.ts";
import { isLong } from "../helpers/files/sample.ts";
import { type Flow, openStage, type Stage } from "./flows/flow.ts";
import * as chat from "./flows/chat.ts";
import * as frame from "./flows/frame.ts";
import * as looks from "./flows/looks.ts";
import * as reading from "./flows/reading.ts";
import { openChromium } from "./helpers/engines/chromium.ts";
import { type Engine, type EngineOptions, SIZES } from "./helpers/engines/engine.ts";
import { openFirefox } from "./helpers/engines/firefox.ts";
import { openWebkit } from "./helpers/engines/webkit.ts";
import { realPart } from "./helpers/real_part.ts";

const FIREFOX = realPart("REAL_FIREFOX_DIR", "firefox.sh");
const WEBKIT = realPart("REAL_WEBKIT_DIR", "webkit.sh");

const ENGINES: [name: string, open: ((options: EngineOptions) => Promise<Engine>) | undefined][] = [
  ["chromium", openChromium],
  ["firefox", FIREFOX === undefined ? undefined : (options) => openFirefox(FIREFOX, options)],
  ["webkit", WEBKIT === undefined ? undefined : (options) => openWebkit(WEBKIT, options)],
];

const FLOWS: [title: string, flow: Flow][] = [
  ["a message, its reply as it comes, and the next one", chat.chats],
  ["Stop keeps what came, and Regenerate makes another version", chat.stopsAndRegenerates],
  ["a draft stands there after a reload", chat.keepsDrafts],
  ["a composer that grows pushes nothing out of sight", chat.growsTheComposer],
  ["Esc closes a dialog from its empty search field", frame.closesByEscape],
  ["the palette finds a chat", frame.opensThePalette],
  ["what another tab sends is seen in this one", frame.followsAnotherTab],
  ["an edited reply stands there after a reload", chat.editsAReply],
  ["pictures that are chosen and pasted go with the message", chat.sendsPictures],
  ["the list of chats leads to a chat", frame.opensTheList],
  ["what is written while the server is away is sent when it's back", frame.survivesARestart],
  ["portraits stand in their frames", looks.placesPortraits],
  ["names of actors stand in the middle of their boxes", looks.centersActors],
  ["lines over and through formulas are seen", looks.drawsLines],
  ["a press gives no ring to what it opens", looks.showsNoRingAfterAPress],
  ["reading upwards in a long chat holds still", reading.readsUpwards],
];

/** The sizes of a usual run: each engine at one. */
const USUAL: Record<string, keyof typeof SIZES> = { chromium: "desktop", firefox: "desktop", webkit: "phone" };

beforeAll(async () => void await builtUi());

for (const [name, open] of ENGINES) {
  for (const [sizeName, size] of Object.entries(SIZES)) {
    if (!isLong() && USUAL[name] !== sizeName) continue;
    describe.skipIf(open === undefined)(`${name}, ${sizeName}`, () => {
      let stage: Stage & AsyncDisposable;
      beforeAll(async () => {
        stage = await openStage(await open!({ size }));
      });
      afterAll(async () => {
        await stage?.engine[Symbol.asyncDispose]();
        await stage?.[Symbol.asyncDispose]();
      });

      test.each(FLOWS)("%s", async (_, flow) => {
        // What a flow before it left behind isn't this one's.
        await stage.tab.takeErrors();
        await flow(stage);
        expect((await stage.tab.takeErrors()).join("\n")).toBe("");
      });
    });
  }
}

test.skipIf(FIREFOX === undefined)(
  "Firefox that refuses all storage chats, and the settings say what it can't keep",
  async () => {
    await using engine = await openFirefox(FIREFOX!, { refusesStorage: true, isDark: true });
    await using stage = await openStage(engine);
    const { app, tab } = stage;
    await chat.chats(stage);
    expect(await tab.errors()).toEqual([]);
    await tab.goto(`${app.url}/settings`);
    await tab.see(".notice", /^This browser stores nothing/);
  },
);
