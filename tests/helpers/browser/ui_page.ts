/** The built page before the fake API in a real browser: what the tests of views stand on. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { openBrowser, openPage, type WatchedPage } from "./browser.ts";
import { builtUi } from "./built_ui.ts";
import { FakeApi } from "../fakes/api/fake_api.ts";
import { PATIENCE_MS } from "../app/patience.ts";

/** A phone as Playwright describes one. */
export const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/** Every look that a screen has: colours, width and the window that goes with it. */
export const LOOKS = [
  ["light", "wide", {}],
  ["dark", "wide", {}],
  ["light", "narrow", PHONE],
  ["dark", "narrow", PHONE],
] as const;

/** One browser for a file of tests, with a server of its own for each test. */
export interface UiBench {
  /** Starts a fake API and opens a page on it; both end with the test. */
  open(path: string, options?: UiOptions): Promise<Opened>;
  close(): Promise<void>;
}

/** How a page is opened. */
export interface UiOptions extends BrowserContextOptions {
  /** Another page on a server that is open already, in a context of its own: another device. */
  api?: FakeApi;
  /** Prepares the server before the page asks it. */
  prepare?: (api: FakeApi) => void;
}

/** A page, its server, and what must stay empty. */
export interface Opened extends WatchedPage, AsyncDisposable {
  api: FakeApi;
}

/** Sees to the page as it is now and starts a browser. */
export async function openUiBench({ isDev = false } = {}): Promise<UiBench> {
  const uiFolder = await builtUi({ isDev });
  const browser: Browser = await openBrowser();
  return {
    async open(path, { api: shared, prepare, ...options } = {}) {
      const api = shared ?? new FakeApi(uiFolder);
      prepare?.(api);
      const watched = await openPage(browser, api.origin, options);
      await watched.page.goto(api.origin + path);
      return {
        ...watched,
        api,
        async [Symbol.asyncDispose]() {
          await watched.context.close();
          if (!shared) await api[Symbol.asyncDispose]();
        },
      };
    },
    close: () => browser.close(),
  };
}

/**
 * Writes a message and sends it with the Send button, by keyboard: notes under the composer may appear and move the
 * button while a mouse is between press and release, and such a click is lost.
 */
export async function sendMessage(page: Page, text: string): Promise<void> {
  await page.locator("dialog[open]").first().waitFor({ state: "hidden" }); // one that is closing would get the text
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Send", exact: true }).press("Enter");
}

/** Waits until what is read from the page or the server is as expected. */
export async function eventually<T>(
  read: () => T | Promise<T>,
  isRight: (value: T) => boolean | Promise<boolean>,
): Promise<T> {
  const until = Date.now() + PATIENCE_MS;
  while (true) {
    const value = await read();
    if (await isRight(value)) return value;
    if (Date.now() > until) throw new Error(`Waited in vain; last seen: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
