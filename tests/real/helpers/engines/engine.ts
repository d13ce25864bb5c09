/** The three engines behind one interface, so that one description of a flow runs in all of them. */
import { PATIENCE_MS } from "../../../helpers/app/patience.ts";

/** Width and height of a page, in CSS px. */
export interface Size {
  width: number;
  height: number;
}

/** Sizes of the flows. */
export const SIZES = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 800 } } as const;

/** How a browser is started. */
export interface EngineOptions {
  size?: Size;
  isDark?: boolean;
  /** The browser refuses cookies and every other storage. Only Firefox can. */
  refusesStorage?: boolean;
}

/** A browser. Disposing of it ends it. */
export interface Engine extends AsyncDisposable {
  readonly name: string;
  /** Opens a tab and makes it the one in front. */
  newTab(): Promise<Tab>;
}

/** What differs between the engines: a tab as its driver sees it. */
export interface Driver {
  goto(url: string): Promise<void>;
  /** Evaluates the source of a function with arguments that JSON can hold, and waits for what it returns. */
  evaluate(source: string, args: unknown[]): Promise<unknown>;
  /** Presses and releases the mouse. */
  click(x: number, y: number): Promise<void>;
  move(x: number, y: number): Promise<void>;
  wheel(x: number, y: number, deltaY: number): Promise<void>;
  /** Presses keys: names of `KeyboardEvent.key`, or single characters. The first ones are held. */
  press(...keys: string[]): Promise<void>;
  type(text: string): Promise<void>;
  front(): Promise<void>;
  /** @returns A PNG file. */
  screenshot(): Promise<Uint8Array>;
  close(): Promise<void>;
}

/**
 * Records what goes wrong on a page in `__errors`, before its own scripts: script errors, rejections, violations of the
 * content security policy, `console.error` and `console.warn`.
 */
export const RECORDER = `(() => {
  if (globalThis.__errors) return;
  const found = globalThis.__errors = [];
  const add = (text) => found.push(location.pathname + " " + String(text).slice(0, 600));
  addEventListener("error", (e) => {
    if (e.message !== undefined) add("error: " + e.message + " " + e.filename + ":" + e.lineno);
  }, true);
  addEventListener("unhandledrejection", (e) => add("rejection: " + e.reason + " " + (e.reason?.stack ?? "")));
  addEventListener("securitypolicyviolation", (e) => add("policy: " + e.violatedDirective + " " + e.blockedURI));
  for (const kind of ["error", "warn"]) {
    const own = console[kind];
    console[kind] = (...args) => { add(kind + ": " + args.map((x) => x?.stack ? x + " " + x.stack : String(x)).join(" ")); own.apply(console, args); };
  }
})();`;

/** What to look for: a CSS selector, and the accessible name or else the text, whole (string) or in part (pattern). */
export interface Target {
  css: string;
  name?: string | RegExp;
}

interface FoundBox {
  x: number;
  y: number;
  text: string;
  value: string;
}

/** Finds the first visible element that a pointer reaches at its middle. Runs in the page. */
const FIND = `(css, source, flags, scrolls) => {
  const isRight = (text) => source === null || (flags === null ? text === source : new RegExp(source, flags).test(text));
  for (const element of document.querySelectorAll(css)) {
    const labels = element.labels ? [...element.labels].map((label) => label.textContent) : [];
    const names = [element.getAttribute("aria-label"), ...labels, element.textContent]
      .filter((name) => name !== null && name !== undefined).map((name) => name.replace(/\\s+/g, " ").trim());
    if (source !== null && !names.some(isRight)) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest("[inert]")) continue;
    if (scrolls) element.scrollIntoView({ block: "nearest", behavior: "instant" });
    const box = element.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) continue;
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    if (scrolls) {
      const top = document.elementFromPoint(x, y);
      const isReached = top && (element.contains(top) || top.contains(element) || top.closest("label")?.contains(element));
      if (!isReached || element.matches(":disabled")) continue;
    }
    return { x, y, text: names.at(-1) ?? "", value: element.value ?? "" };
  }
  return null;
}`;

/** A tab with the actions of a person, each of which waits for what it needs. */
export class Tab {
  readonly driver: Driver;
  /** Of pages that the tab has left. */
  #errors: string[] = [];

  constructor(driver: Driver) {
    this.driver = driver;
  }

  async goto(url: string): Promise<void> {
    this.#errors = await this.errors();
    await this.driver.goto(url);
  }

  /** Evaluates a function in the page. It refers to nothing outside of it. */
  async evaluate<T, A extends unknown[]>(work: (...args: A) => T | Promise<T>, ...args: A): Promise<T> {
    return await this.driver.evaluate(work.toString(), args) as T;
  }

  /** Polls a value of the page until it is as expected, and returns it. */
  async until<T, A extends unknown[]>(
    isRight: (value: T) => boolean,
    read: (...args: A) => T | Promise<T>,
    ...args: A
  ): Promise<T> {
    return await poll(() => this.evaluate(read, ...args), isRight);
  }

  /** Waits until a target is seen, and returns its text or value. */
  async see(css: string, name?: string | RegExp): Promise<{ text: string; value: string }> {
    return (await poll(
      () => this.#find({ css, name }, false),
      (found) => found !== null,
      () => this.#where(css, name),
    ))!;
  }

  /** Waits until no such target is seen. */
  async gone(css: string, name?: string | RegExp): Promise<void> {
    await poll(() => this.#find({ css, name }, false), (found) => found === null, () => this.#where(css, name));
  }

  /** Clicks a target once it stands still. */
  async click(css: string, name?: string | RegExp): Promise<void> {
    let last: FoundBox | null = null;
    const found = await poll(
      async () => {
        const box = await this.#find({ css, name }, true);
        const isStill = box !== null && last !== null && box.x === last.x && box.y === last.y;
        last = box;
        return isStill ? box : null;
      },
      (box) => box !== null,
      () => this.#where(css, name),
    );
    await this.driver.click(found!.x, found!.y);
  }

  /** Clicks into a field, empties it and types. */
  async fill(css: string, text: string, name?: string | RegExp): Promise<void> {
    await this.click(css, name);
    await this.driver.press("Control", "a");
    await this.driver.press("Backspace");
    await this.driver.type(text);
  }

  press(...keys: string[]): Promise<void> {
    return this.driver.press(...keys);
  }

  /** What went wrong on all pages of the tab since it was last taken, so that each flow answers for its own. */
  async takeErrors(): Promise<string[]> {
    const found = await this.errors();
    this.#errors = [];
    await this.evaluate(() => void (globalThis as unknown as { __errors?: string[] }).__errors?.splice(0));
    return found;
  }

  /** What went wrong on all pages of the tab. */
  async errors(): Promise<string[]> {
    const found = await this.evaluate(() => (globalThis as unknown as { __errors?: string[] }).__errors ?? []);
    return [...this.#errors, ...found];
  }

  async save(path: string): Promise<void> {
    await Deno.writeFile(path, await this.driver.screenshot());
  }

  async #find({ css, name }: Target, scrolls: boolean): Promise<FoundBox | null> {
    const [source, flags] = name instanceof RegExp ? [name.source, name.flags] : [name ?? null, null];
    return await this.driver.evaluate(FIND, [css, source, flags, scrolls]) as FoundBox | null;
  }

  async #where(css: string, name?: string | RegExp): Promise<string> {
    const text = await this.evaluate(() => `${location.pathname}: ${document.body.innerText.slice(0, 800)}`);
    return `${css} ${name ?? ""} on ${text}`;
  }
}

/** Polls until the value is as expected, and returns it. */
export async function poll<T>(
  read: () => Promise<T> | T,
  isRight: (value: T) => boolean,
  describe?: () => Promise<string>,
): Promise<T> {
  const until = Date.now() + PATIENCE_MS;
  while (true) {
    const value = await read();
    if (isRight(value)) return value;
    if (Date.now() > until) throw new Error(`Waited in vain for ${await describe?.() ?? JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}
