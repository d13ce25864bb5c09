/** Chromium as an engine of the flows. */
import { PATIENCE_MS } from "../../../helpers/app/patience.ts";
import { openBrowser } from "../../../helpers/browser/browser.ts";
import { type Driver, type Engine, type EngineOptions, RECORDER, SIZES, Tab } from "./engine.ts";

/** Opens a browser of its own storage. */
export async function openChromium({ size = SIZES.desktop, isDark = false }: EngineOptions = {}): Promise<Engine> {
  const browser = await openBrowser();
  const context = await browser.newContext({ viewport: size, colorScheme: isDark ? "dark" : "light" });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript(RECORDER);
  return {
    name: "chromium",
    async newTab() {
      const page = await context.newPage();
      const driver: Driver = {
        goto: async (url) => void await page.goto(url),
        evaluate: (source, args) => page.evaluate(`(${source})(...${JSON.stringify(args)})`),
        click: (x, y) => page.mouse.click(x, y),
        move: (x, y) => page.mouse.move(x, y),
        async wheel(x, y, deltaY) {
          await page.mouse.move(x, y);
          await page.mouse.wheel(0, deltaY);
        },
        press: (...keys) => page.keyboard.press(keys.join("+")),
        type: (text) => page.keyboard.type(text),
        front: () => page.bringToFront(),
        screenshot: () => page.screenshot(),
        close: () => page.close(),
      };
      return new Tab(driver);
    },
    async [Symbol.asyncDispose]() {
      await context.close();
      await browser.close();
    },
  };
}
