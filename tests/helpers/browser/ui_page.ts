/** The built page with the fake API in a real browser, for tests of views. */
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { openBrowser, openPage, type WatchedPage } from "./browser.ts";
import { builtUi } from "./built_ui.ts";
import { FakeApi } from "../fakes/api/fake_api.ts";
import { PATIENCE_MS } from "../app/patience.ts";

/** Playwright options of a phone. */
export const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/** The widths of the page. */
export const WIDTHS = [["wide", {}], ["narrow", PHONE]] as const;

/** All combinations of color scheme and width. */
export const LOOKS = [
  ["light", "wide", {}],
  ["dark", "wide", {}],
  ["light", "narrow", PHONE],
  ["dark", "narrow", PHONE],
] as const;

/** One browser per test file, and one fake server per test. */
export interface UiBench {
  /** Starts a fake API and opens a page on it. Both are closed with the test. */
  open(path: string, options?: UiOptions): Promise<Opened>;
  close(): Promise<void>;
}

/** Options of a page. */
export interface UiOptions extends BrowserContextOptions {
  /** An already running fake API, for a page of another device. */
  api?: FakeApi;
  /** Prepares the server before the page loads. */
  prepare?: (api: FakeApi) => void;
}

/** A page with its fake API. */
export interface Opened extends WatchedPage, AsyncDisposable {
  api: FakeApi;
}

/** Builds the page if necessary and starts a browser. */
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

/** Opens the options of a stored chat: by their button, on phones from the menu of the title. */
export async function openChatOptions(page: Page): Promise<void> {
  const isPhone = page.viewportSize()!.width < 720;
  if (isPhone) await page.getByRole("button", { name: "Chat actions" }).click();
  await page.getByRole(isPhone ? "menuitem" : "button", { name: "Chat options" }).click();
}

/** Opens the menu of a message. On touch screens the actions of one's own are folded until they have the focus. */
export async function openMessageActions(message: Locator): Promise<void> {
  const button = message.getByRole("button", { name: "Message actions" });
  await button.focus();
  await button.click();
}

/**
 * Does what an action of a message is called: by its button, or else from the menu. On touch screens a reply has only
 * the button that asks for another one.
 */
export async function chooseMessageAction(message: Locator, label: string): Promise<void> {
  const isBare = await message.evaluate((message) =>
    message.classList.contains("reply") && matchMedia("(hover: none)").matches
  );
  if (label === "Regenerate" || (!isBare && ["Copy", "Edit", "Read aloud"].includes(label))) {
    const button = message.getByRole("button", { name: label, exact: true });
    await button.focus();
    return await button.click();
  }
  await openMessageActions(message);
  await message.page().getByRole("menuitem", { name: label, exact: true }).click();
}

/**
 * Writes a message and sends it with the Send button, by keyboard: notes under the composer may appear and move the
 * button while a mouse is between press and release, and such a click is lost.
 */
export async function sendMessage(page: Page, text: string): Promise<void> {
  await page.locator("dialog[open]").first().waitFor({ state: "hidden" }); // A closing dialog would receive the text.
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Send", exact: true, disabled: false }).press("Enter"); // Disabled during an upload.
}

/**
 * Records the voices and texts that the page requests from now on. The order is that of the page: requests at the same
 * time can arrive at the server in another one.
 */
export function recordSpeech(page: Page): [voice: string | undefined, text: string][] {
  const requested: [string | undefined, string][] = [];
  page.on("request", (request) => {
    if (!request.url().endsWith("/api/tts/speak")) return;
    const { voice, text } = request.postDataJSON();
    requested.push([voice, text]);
  });
  return requested;
}

/**
 * Delays requests and their responses by half a second each, as a slow connection does: what they are about may have
 * ended when they arrive.
 */
export async function slowDown(page: Page, url: string | RegExp): Promise<void> {
  const pause = () => new Promise((resolve) => setTimeout(resolve, 500));
  await page.route(url, async (route) => {
    try {
      await pause();
      const response = await route.fetch();
      await pause();
      await route.fulfill({ response });
    } catch {
      // Server or page have ended: the request fails, as it does without a delay.
      await route.abort().catch(() => {});
    }
  });
}

/** Polls until the value is as expected, and returns it. */
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
