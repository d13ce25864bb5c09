/** The page: time to first paint, time to open a long chat, and smoothness during a reply. */
import type { Browser, Page } from "playwright-core";
import { buildUi, findFirstLoad } from "../../../build/ui.ts";
import { openBrowser } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import {
  eachRound,
  type Figure,
  freshFolder,
  kibibytes,
  milliseconds,
  ratioFigure,
  type Row,
  startHere,
} from "../bench.ts";
import { COUNTED_FLAGS } from "../machine.ts";
import { beginTyping, endTyping, firstPaint, timeToOpen, type TypingFigures } from "../page_probes.ts";
import { tasksOf } from "../page_trace.ts";
import { Parlor } from "../parlor.ts";
import { sampleMessages } from "../sample_chat.ts";
import { compare, median, quantile } from "../stats.ts";
import { modelOf } from "../upstream_chunks.ts";

const ROOT = new URL("../../../", import.meta.url);
const MESSAGES = 5_000;
const MAX_LOAD_BYTES = 100_000;
const MAX_OPEN_MS = 100;
const MAX_FRAME_MS = 50;
const MAX_TYPING_MS = 16;
/** Tokens per second, like a fast local model, and the duration. */
const PER_SECOND = 60;
const STREAM_S = 4;
/** Margin before and after on a busy machine. The reply is stopped anyway. */
const SPARE_S = 20;
const KEYS = 40;
/** Slowdown of the processor in the slow rows. */
const SLOWDOWN = 4;
/** Time from the page being usable until it has fetched everything that it fetches by itself. */
const SETTLED_MS = 2_000;
const VIEW = { viewport: { width: 1280, height: 800 } };

interface Round {
  paint: { own: number; limit: number };
  openMs: number;
  openCpuMs: number;
  own: Typed;
  limit: Typed;
  /** With a quarter of the processor. */
  slowOwn: Typed;
  slowLimit: Typed;
}

interface Typed extends TypingFigures {
  /** Processor time of the page's longest task, in milliseconds. */
  taskMs: number;
  /** Maximum time from a frame's deadline until it was on the screen. */
  frameMs: number;
}

/** The page. */
export const pageRow: Row = {
  name: "page",
  about: "first load, first paint, opening 5,000 messages, frames and typing while a reply streams",
  async run(bench) {
    await builtUi();
    const folder = new URL(`file://${await freshFolder(bench)}/`);
    const loaded = await findFirstLoad(await buildUi({ root: ROOT, dist: folder, isDev: false }), folder);
    const bytes = (ending: string) =>
      loaded.filter(({ path }) => path.endsWith(ending)).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

    const upstream = await startHere(bench, "upstream_source.ts");
    const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
    await parlor.useUpstream(upstream.port);
    bench.progress("page: saving a conversation of 5,000 messages");
    const messages = sampleMessages(MESSAGES, 7);
    await parlor.control.json("PUT", "/api/conversations/long", { title: "Long", messages });
    const empty = await startHere(bench, "counterparts/empty_page.ts", String(bytes(".js")), String(bytes(".css")));
    const addresses = { own: `http://127.0.0.1:${parlor.port}`, limit: `http://127.0.0.1:${empty.port}` };
    const lastText = messages.at(-1)!.content;

    const browser = await openBrowser(COUNTED_FLAGS);
    let rounds: Round[];
    let fetched: number;
    try {
      fetched = await fetchedBytes(browser, `${addresses.own}/new`);
      rounds = await eachRound(bench, "page", () => oneRound(browser, addresses, lastText));
    } finally {
      await browser.close();
    }
    await Promise.all([parlor.stop(), upstream.stop(), empty.stop()]);
    return figuresOf(rounds, fetched);
  },
};

async function oneRound(browser: Browser, addresses: { own: string; limit: string }, lastText: string): Promise<Round> {
  const paint = { own: await paintOf(browser, `${addresses.own}/new`), limit: await paintOf(browser, addresses.limit) };
  const context = await browser.newContext(VIEW);
  try {
    const own = await context.newPage();
    await own.goto(`${addresses.own}/new`);
    await own.locator('.chat-list a[href="/c/long"]').waitFor();
    let openMs = 0;
    const { totalMs: openCpuMs } = await tasksOf(own, async () => {
      openMs = await own.evaluate(timeToOpen, ["/c/long", lastText] as const);
    });
    const limit = await context.newPage();
    await limit.goto(addresses.limit);

    await own.bringToFront();
    const field = own.getByLabel("Message", { exact: true });
    const model = modelOf({ mode: "paced", perSecond: PER_SECOND, count: PER_SECOND * (STREAM_S + SPARE_S), tag: "t" });
    await field.fill(`/model ${model}`);
    await field.press("Enter");
    await own.getByRole("button", { name: `Model: ${model}` }).waitFor();
    await field.fill("Go");
    await field.press("Enter");
    await own.locator(".reply .prose", { hasText: "t.5" }).last().waitFor();
    const ownFigures = await typeFor(own, STREAM_S);
    const slowOwn = await slowedDown(own, () => typeFor(own, STREAM_S));
    await own.getByRole("button", { name: "Stop" }).click();
    await own.getByRole("button", { name: "Send" }).waitFor();
    // Restores the chat for the next round.
    for (const role of ["reply", "user-message"]) {
      const message = own.locator(`.message.${role}`).last();
      const id = await message.getAttribute("data-message-id");
      await own.evaluate((id) => fetch(`/api/conversations/long/messages/${id}`, { method: "DELETE" }), id);
      await own.locator(`[data-message-id="${id}"]`).waitFor({ state: "detached" });
    }

    await limit.bringToFront();
    await limit.locator("textarea").focus();
    const limitFigures = await typeFor(limit, STREAM_S);
    const slowLimit = await slowedDown(limit, () => typeFor(limit, STREAM_S));
    return { paint, openMs, openCpuMs, own: ownFigures, limit: limitFigures, slowOwn, slowLimit };
  } finally {
    await context.close();
  }
}

/** A fresh context has no cache. */
async function paintOf(browser: Browser, address: string): Promise<number> {
  const context = await browser.newContext(VIEW);
  try {
    const page = await context.newPage();
    await page.goto(address);
    return await page.evaluate(firstPaint);
  } finally {
    await context.close();
  }
}

/** Returns the gzip size of all scripts and styles that a page fetches by itself. */
async function fetchedBytes(browser: Browser, address: string): Promise<number> {
  const context = await browser.newContext(VIEW);
  try {
    const page = await context.newPage();
    const sizes: Promise<number>[] = [];
    page.on("response", (response) => {
      const isCode = ["script", "stylesheet"].includes(response.request().resourceType()) ||
        /\.(?:js|css)$/.test(new URL(response.url()).pathname);
      if (isCode) sizes.push(response.body().then(gzipBytesOf));
    });
    await page.goto(address);
    await page.getByLabel("Message", { exact: true }).waitFor();
    await page.waitForTimeout(SETTLED_MS);
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  } finally {
    await context.close();
  }
}

async function gzipBytesOf(bytes: Uint8Array): Promise<number> {
  const packed = new Blob([new Uint8Array(bytes)]).stream().pipeThrough(new CompressionStream("gzip"));
  return (await new Response(packed).bytes()).length;
}

/** Runs work while the page's processor is throttled. */
async function slowedDown<T>(page: Page, work: () => Promise<T>): Promise<T> {
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWDOWN });
  try {
    return await work();
  } finally {
    await session.send("Emulation.setCPUThrottlingRate", { rate: 1 });
    await session.detach();
  }
}

/** Types into the focused element at an even pace. */
async function typeFor(page: Page, seconds: number): Promise<Typed> {
  await page.evaluate(beginTyping);
  const { longestMs, framesMs } = await tasksOf(page, async () => {
    for (let n = 0; n < KEYS; n++) {
      const pause = new Promise((resolve) => setTimeout(resolve, seconds * 1000 / KEYS));
      await page.keyboard.press("a");
      await pause;
    }
  });
  if (framesMs.length === 0) throw new Error("The trace has no frame of the page");
  return { ...await page.evaluate(endTyping), taskMs: longestMs, frameMs: Math.max(...framesMs) };
}

/** Lines about frames and typing. @param how Added to what each line says. */
function typingFigures(how: string, rounds: { own: Typed; limit: Typed }[]): Figure[] {
  const counterpart = "an empty page of the same size";
  const both = (of: (typed: Typed) => number) => {
    const [own, limit] = [median(rounds.map((round) => of(round.own))), median(rounds.map((round) => of(round.limit)))];
    return {
      counterpart,
      own: milliseconds(own),
      limit: milliseconds(limit),
      ratio: own / limit,
      values: { own, limit },
    };
  };
  const line = (
    what: string,
    target: string,
    of: (typed: Typed) => number,
    isReached: (own: number, limit: number) => boolean,
  ) => {
    const { values, ...figure } = both(of);
    return { what: `${what}${how}`, ...figure, target, isReached: isReached(values.own, values.limit) };
  };
  return [
    line(
      `longest frame, from when it is due to the screen, while ${PER_SECOND} tokens/s stream and the user types`,
      `≤ ${MAX_FRAME_MS} ms`,
      ({ frameMs }) => frameMs,
      (own) => own <= MAX_FRAME_MS,
    ),
    line(
      "longest task during that, processor time only",
      `≤ ${MAX_FRAME_MS} ms`,
      ({ taskMs }) => taskMs,
      (own) => own <= MAX_FRAME_MS,
    ),
    line(
      "time from a key press to its frame while streaming, p50",
      `+ ≤ ${MAX_TYPING_MS} ms`,
      ({ keys }) => quantile(keys, 0.5),
      (own, limit) => own - limit <= MAX_TYPING_MS,
    ),
  ];
}

function figuresOf(rounds: Round[], gzipBytes: number): Figure[] {
  const counterpart = "an empty page of the same size";
  const openMs = median(rounds.map((round) => round.openMs));
  const openCpuMs = median(rounds.map((round) => round.openCpuMs));
  return [
    {
      what: "first load of the page, all script and style that /new fetches, gzip",
      own: kibibytes(gzipBytes),
      limit: "–",
      counterpart: "–",
      target: "≤ 100 kB",
      isReached: gzipBytes <= MAX_LOAD_BYTES,
    },
    ratioFigure(
      { what: "first paint", counterpart, unit: milliseconds, atMost: 2 },
      compare(rounds.map((round) => round.paint)),
    ),
    {
      what: "open a chat of 5,000 messages, from click to paint",
      own: milliseconds(openMs),
      limit: "–",
      counterpart: "–",
      target: `≤ ${MAX_OPEN_MS} ms`,
      isReached: openMs <= MAX_OPEN_MS,
    },
    {
      what: "open a chat of 5,000 messages, processor time of the page only",
      own: milliseconds(openCpuMs),
      limit: "–",
      counterpart: "–",
      target: `≤ ${MAX_OPEN_MS} ms`,
      isReached: openCpuMs <= MAX_OPEN_MS,
    },
    ...typingFigures("", rounds),
    ...typingFigures(
      ", at a quarter of the processor",
      rounds.map(({ slowOwn, slowLimit }) => ({ own: slowOwn, limit: slowLimit })),
    ),
  ];
}
