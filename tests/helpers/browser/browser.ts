/** A real Chromium for tests of the page. */
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
// @ts-types="axe-core"
import axe from "axe-core/axe.min.js";
import { PATIENCE_MS } from "../app/patience.ts";
import { LANE_VARIABLE } from "../../runner/running_processes.ts";
import { stepDelayMs } from "../network/slow_answers.ts";

/** Debian's path. The variable `CHROMIUM` overrides it. */
const CHROMIUM_PATH = "/usr/bin/chromium";

/**
 * What an engine is started as: the shell has no sound, no notifications and no window around its page, and needs a quarter less
 * processor time for each page. The whole browser stands in for it where it isn't installed.
 */
export type BrowserProgram = "headless shell" | "whole browser";

/**
 * Keeps the browser from talking to anybody by itself, and from loading two pages for the suggestions of its address bar in
 * every window, which takes as long as many a test. Chromium joins the features with those that Playwright switches off.
 */
const QUIET_FLAGS = [
  "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
  "--no-sandbox",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

/** For pages with sound: a fake microphone with permission, and autoplay. */
export const AUDIO_FLAGS = [
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
  "--autoplay-policy=no-user-gesture-required",
];

/** A finding of axe, shortened for test output. */
export interface AxeFinding {
  rule: string;
  targets: string[];
  help: string;
}

/** The browsers of this process by their flags: starting one costs as much as opening several pages. */
const running = new Map<string, Promise<Browser>>();

/**
 * Opens a browser: with flags the whole one, unless it is said which. Close it. In tests, all that ask for the same flags share one browser process, which ends with the lane;
 * closing then closes the contexts that were opened here.
 */
export async function openBrowser(
  flags: string[] = [],
  program: BrowserProgram = flags.length === 0 ? "headless shell" : "whole browser",
): Promise<Browser> {
  if (!Deno.env.has("VITEST_POOL_ID")) return await startBrowser(program, flags);
  const key = [program, ...flags].join(" ");
  let shared = running.get(key);
  if (shared === undefined) {
    shared = startBrowser(program, flags, { ...Deno.env.toObject(), [LANE_VARIABLE]: "browser" });
    running.set(key, shared);
    // The next file starts another one.
    shared.then((browser) => browser.once("disconnected", () => running.delete(key)), () => running.delete(key));
  }
  return ownContexts(await shared);
}

function startBrowser(program: BrowserProgram, flags: string[], env?: Record<string, string>): Promise<Browser> {
  const shell = program === "headless shell" ? Deno.env.get("CHROMIUM_HEADLESS_SHELL") : undefined;
  const executablePath = shell ?? Deno.env.get("CHROMIUM") ?? CHROMIUM_PATH;
  return chromium.launch({ executablePath, args: [...QUIET_FLAGS, ...flags], env, slowMo: stepDelayMs });
}

/** Returns a view of a shared browser whose `close` closes only the contexts that were opened by it. */
function ownContexts(browser: Browser): Browser {
  const contexts = new Set<BrowserContext>();
  const own: Partial<Browser> = {
    async newContext(options) {
      const context = await browser.newContext(options);
      contexts.add(context);
      context.once("close", () => contexts.delete(context));
      return context;
    },
    async newPage(options) {
      const page = await browser.newPage(options);
      contexts.add(page.context());
      page.context().once("close", () => contexts.delete(page.context()));
      return page;
    },
    contexts: () => [...contexts],
    async close() {
      await Promise.all([...contexts].map((context) => context.close()));
    },
  };
  return new Proxy(browser, {
    get(target, name) {
      const value = own[name as keyof Browser] ?? Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Minimum size of a touch target, in CSS px. */
const TARGET_PX = 44;

/**
 * Finds controls smaller than a finger needs: what is shown and pressed, except links inside of text.
 * A label or a row around a control counts as part of it.
 */
export function findSmallTargets(page: Page): Promise<string[]> {
  return page.evaluate((least) => {
    const controls = document.querySelectorAll<HTMLElement>(
      "button, a[href], input:not([type=hidden]), select, textarea, summary, [role=option], [role=switch], [role=tab]",
    );
    return [...controls].flatMap((control) => {
      if (!control.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return [];
      if (control.closest("[inert], .visually-hidden, .skip-link, :disabled")) return [];
      const isInText = control.closest("sup") !== null ||
        (control.matches("a, .citation") && getComputedStyle(control).display.startsWith("inline"));
      if (isInText) return [];
      const boxes = [control, control.closest("label")].filter((box) => box !== null)
        .map((box) => box.getBoundingClientRect());
      if (boxes.every(({ width }) => width === 0)) return [];
      // A pseudo-element can be the larger part of a small control.
      const after = getComputedStyle(control, "::after");
      if (after.content !== "none" && after.position === "absolute") {
        boxes.push(new DOMRect(0, 0, parseFloat(after.width), parseFloat(after.height)));
      }
      if (boxes.some(({ width, height }) => width >= least - 0.5 && height >= least - 0.5)) return [];
      const { width, height } = boxes[0]!;
      const name = control.getAttribute("aria-label") ?? control.textContent?.trim() ?? "";
      return [
        `${control.localName}.${control.className} "${name.slice(0, 40)}" ${Math.round(width)}x${Math.round(height)}`,
      ];
    });
  }, TARGET_PX);
}

/** A page with its recorded errors and foreign requests. */
export interface WatchedPage {
  page: Page;
  context: BrowserContext;
  /** URLs of requests to other origins. */
  foreign: string[];
  /** Uncaught errors and console errors, except failed requests. */
  errors: string[];
}

/** Opens a page in its own context and records requests and errors. */
export async function openPage(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  // The service worker loads all files, so only tests of the installed app allow it.
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    serviceWorkers: "block",
    ...options,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  return await openWatchedPage(context, origin);
}

/** Opens a further page in a context and records requests of the context and errors of the page. */
export async function openWatchedPage(context: BrowserContext, origin: string): Promise<WatchedPage> {
  const page = await context.newPage();
  const foreign: string[] = [];
  const errors: string[] = [];
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && !["data:", "blob:", "about:"].includes(url.protocol)) foreign.push(request.url());
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    // No page may have one, also where a test doesn't look at its errors. Unhandled, it fails the run.
    if (/Trusted(?: Types?|HTML|Script)/.test(message.text())) throw new Error(message.text());
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
      errors.push(message.text());
    }
  });
  return { page, context, foreign, errors };
}

/**
 * Keeps the toasts of a page that is open, as a pointer that rests on them does: their time is meant for people, and a
 * busy machine may take longer to press their buttons.
 */
export async function holdToasts(page: Page): Promise<void> {
  await page.locator(".toasts").evaluate((toasts) => {
    const hold = () => {
      for (const toast of toasts.children) toast.dispatchEvent(new PointerEvent("pointerenter"));
    };
    new MutationObserver(hold).observe(toasts, { childList: true });
  });
}

/** Rules of axe whose result can differ between the color schemes. */
const COLOR_RULES = ["color-contrast", "link-in-text-block"];

/**
 * Runs axe in both color schemes of the page: every rule in the one that it has, those about colors in the other one.
 *
 * @param look Called in each of them.
 */
export async function findAxeProblemsInBothSchemes(
  page: Page,
  look: (colorScheme: "light" | "dark") => Promise<unknown> = () => Promise.resolve(),
): Promise<AxeFinding[]> {
  const isDark = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
  const [own, other] = isDark ? ["dark", "light"] as const : ["light", "dark"] as const;
  const found = await findAxeProblems(page);
  await look(own);
  await page.emulateMedia({ colorScheme: other });
  found.push(...await findAxeProblems(page, COLOR_RULES));
  await look(other);
  await page.emulateMedia({ colorScheme: own });
  return found;
}

/** Runs axe once all animations have ended. @param rules All that axe has by default. */
export async function findAxeProblems(page: Page, rules?: readonly string[]): Promise<AxeFinding[]> {
  await page.evaluate(async () => {
    const passing = document.getAnimations().filter(({ effect }) => effect?.getComputedTiming().endTime !== Infinity);
    await Promise.allSettled(passing.map(({ finished }) => finished));
  });
  // Through the debugger, which ignores the page's content security policy.
  if (!await page.evaluate(() => "axe" in globalThis)) await page.evaluate(axe.source);
  return await page.evaluate(async (rules) => {
    const runner = (globalThis as unknown as { axe: typeof axe }).axe;
    const { violations } = await runner.run(document, {
      resultTypes: ["violations"],
      ...(rules && { runOnly: { type: "rule", values: [...rules] } }),
    });
    return violations.map(({ id, help, nodes }) => ({
      rule: id,
      help,
      targets: nodes.map((node) => node.target.join(" ")),
    }));
  }, rules);
}
