/** Fast scrolling of long lists: counts the frames with blank parts. */
import type { Browser, CDPSession, Page } from "playwright-core";
import { openBrowser } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { sillyTavernCard, sillyTavernPng } from "../../helpers/files/cards.ts";
import { eachRound, type Figure, freshFolder, milliseconds, type Row } from "../bench.ts";
import { COUNTED_FLAGS } from "../machine.ts";
import { countBlankBands } from "../page_probes.ts";
import { tasksOf } from "../page_trace.ts";
import { Parlor } from "../parlor.ts";
import { fillLibrary } from "../sample_library.ts";
import { median } from "../stats.ts";

const CHATS = 10_000;
const CARDS = 20_000;
/** A wheel event and the delay to the next: 6,000 px per second, about seven screens. */
const [STEP_PX, STEP_MS] = [120, 20];
const STEPS = 200;
const VIEW = { viewport: { width: 1280, height: 800 } };

/** A list, its selector, and its scroll container. */
interface LongList {
  what: string;
  path: string;
  selector: string;
}

const LISTS: LongList[] = [
  { what: `list of ${CHATS.toLocaleString("en")} chats`, path: "/new", selector: ".chat-list" },
  { what: `gallery of ${CARDS.toLocaleString("en")} cards`, path: "/characters", selector: ".gallery" },
];

interface Scrolled {
  frames: number;
  blank: number;
  /** Maximum time from a frame's deadline until it was on the screen. */
  frameMs: number;
}

/** Scrolling. */
export const scrollRow: Row = {
  name: "scroll",
  about: "10,000 chats and 20,000 cards scrolled by the wheel: frames with a part that is blank",
  async run(bench) {
    await builtUi();
    const cards = `${bench.folder}/scroll-cards`;
    bench.progress(`scroll: writing ${CARDS} card files`);
    await Deno.mkdir(cards);
    for (let n = 0; n < CARDS; n++) {
      await Deno.writeFile(`${cards}/card-${n}.png`, sillyTavernPng(sillyTavernCard(`Character ${n}`), 64, 96));
    }
    const dataDir = await freshFolder(bench);
    await Deno.writeTextFile(`${dataDir}/config.toml`, `card_dirs = [${JSON.stringify(cards)}]\n`);
    const parlor = await Parlor.open({ programs: bench.programs, dataDir });
    bench.progress(`scroll: making ${CHATS} conversations`);
    await fillLibrary(parlor, { conversations: CHATS, messages: 2 });
    await parlor.control.bytes("GET", "/api/characters?limit=1");
    const browser = await openBrowser(COUNTED_FLAGS);
    try {
      const rounds = await eachRound(bench, "scroll", async () => {
        const scrolled: Scrolled[] = [];
        for (const list of LISTS) scrolled.push(await scroll(browser, `http://127.0.0.1:${parlor.port}`, list));
        return scrolled;
      });
      return LISTS.flatMap(({ what }, n) => figuresOf(what, rounds.map((round) => round[n]!)));
    } finally {
      await browser.close();
      await parlor.stop();
    }
  },
};

async function scroll(browser: Browser, address: string, { path, selector }: LongList): Promise<Scrolled> {
  const context = await browser.newContext(VIEW);
  try {
    const page = await context.newPage();
    await page.goto(address + path);
    const list = page.locator(selector);
    await list.locator(".virtual-row").first().waitFor();
    const box = (await list.boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    const turn = () => turnWheel(page);
    const { framesMs } = await tasksOf(page, turn);
    const images = await record(page, turn);
    const reached = await list.evaluate((element) => element.scrollTop);
    if (reached < STEP_PX * STEPS) throw new Error(`${path} was scrolled by ${reached} px only`);
    const judge = await context.newPage();
    const blank = await judge.evaluate(countBlankBands, { images, box, view: VIEW.viewport });
    return { frames: images.length, blank, frameMs: Math.max(...framesMs) };
  } finally {
    await context.close();
  }
}

async function turnWheel(page: Page): Promise<void> {
  for (let n = 0; n < STEPS; n++) {
    const pause = new Promise((resolve) => setTimeout(resolve, STEP_MS));
    await page.mouse.wheel(0, STEP_PX);
    await pause;
  }
}

/** Returns the frames drawn during the work, as JPEG files in base64. */
async function record(page: Page, work: () => Promise<void>): Promise<string[]> {
  const session: CDPSession = await page.context().newCDPSession(page);
  const images: string[] = [];
  session.on("Page.screencastFrame", ({ data, sessionId }) => {
    images.push(data);
    session.send("Page.screencastFrameAck", { sessionId }).catch(() => {}); // The recording may have ended.
  });
  await session.send("Page.startScreencast", { format: "jpeg", quality: 90, everyNthFrame: 1 });
  await work();
  await session.send("Page.stopScreencast");
  await session.detach();
  if (images.length === 0) throw new Error("The browser recorded no frame");
  return images;
}

function figuresOf(what: string, rounds: readonly Scrolled[]): Figure[] {
  const [frames, blank] = [sum(rounds, ({ frames }) => frames), sum(rounds, ({ blank }) => blank)];
  return [
    {
      what: `${what}, scrolled by ${STEP_PX * 1000 / STEP_MS} px/s: frames with a blank part`,
      own: `${blank} of ${frames}`,
      limit: "–",
      counterpart: "–",
      target: "0",
      isReached: blank === 0,
    },
    {
      what: `${what}, longest frame during that`,
      own: milliseconds(median(rounds.map(({ frameMs }) => frameMs))),
      limit: "–",
      counterpart: "–",
      target: "–",
    },
  ];
}

function sum(rounds: readonly Scrolled[], of: (round: Scrolled) => number): number {
  return rounds.reduce((total, round) => total + of(round), 0);
}
