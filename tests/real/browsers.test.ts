/**
 * The page in the engines that a household has: each flow runs in Chromium, in Firefox and in WebKit, at the sizes of a phone
 * and of a desktop.
 * @slow Three real browsers at two sizes.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtUi } from "../helpers/browser/built_ui.ts";
import { type Flow, openStage } from "./flows/flow.ts";
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
  ["reading upwards in a long chat holds still", reading.readsUpwards],
];

beforeAll(async () => void await builtUi());

for (const [name, open] of ENGINES) {
  for (const [sizeName, size] of Object.entries(SIZES)) {
    describe.skipIf(open === undefined)(`${name}, ${sizeName}`, () => {
      let engine: Engine;
      beforeAll(async () => {
        engine = await open!({ size });
      });
      afterAll(() => engine?.[Symbol.asyncDispose]());

      test.each(FLOWS)("%s", async (_, flow) => {
        await using stage = await openStage(engine);
        await flow(stage);
        expect(await stage.tab.errors()).toEqual([]);
      });
    });
  }
}
