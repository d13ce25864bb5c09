/** Firefox as an engine of the flows, driven by WebDriver BiDi. */
import { type KeyInput, launch } from "puppeteer-core";
import { PATIENCE_MS, TEST_MS } from "../../../helpers/app/patience.ts";
import { type Driver, type Engine, type EngineOptions, RECORDER, SIZES, Tab } from "./engine.ts";

/** Value of `network.cookie.cookieBehavior` that refuses all storage of sites. */
const REFUSE_ALL = 2;

/**
 * Starts a browser.
 *
 * @param installed The folder that was given to `firefox.sh install`.
 */
export async function openFirefox(installed: string, options: EngineOptions = {}): Promise<Engine> {
  const { size = SIZES.desktop, isDark = false, refusesStorage = false } = options;
  const browser = await launch({
    browser: "firefox",
    executablePath: `${installed}/firefox`,
    headless: true,
    timeout: TEST_MS,
    defaultViewport: null,
    extraPrefsFirefox: {
      "layout.css.prefers-color-scheme.content-override": isDark ? 0 : 1,
      ...(refusesStorage && { "network.cookie.cookieBehavior": REFUSE_ALL }),
      // A cursor that blinks, or text that fades, makes pictures differ.
      "ui.caretBlinkTime": 0,
    },
  });
  const context = await browser.createBrowserContext();
  return {
    name: "firefox",
    async newTab() {
      const page = await context.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      await page.setViewport(size);
      await page.evaluateOnNewDocument(RECORDER);
      const driver: Driver = {
        goto: async (url) => void await page.goto(url),
        evaluate: (source, args) => page.evaluate(`(${source})(...${JSON.stringify(args)})`),
        click: (x, y) => page.mouse.click(x, y),
        move: (x, y) => page.mouse.move(x, y),
        async wheel(x, y, deltaY) {
          await page.mouse.move(x, y);
          await page.mouse.wheel({ deltaY });
        },
        async press(...keys) {
          const [last, ...held] = keys.toReversed() as KeyInput[];
          for (const key of held.reverse()) await page.keyboard.down(key);
          await page.keyboard.press(last!);
          for (const key of held.reverse()) await page.keyboard.up(key);
        },
        type: (text) => page.keyboard.type(text),
        front: () => page.bringToFront(),
        screenshot: () => page.screenshot(),
        close: () => page.close(),
      };
      return new Tab(driver);
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
    },
  };
}
