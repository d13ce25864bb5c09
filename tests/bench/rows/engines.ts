/** Firefox and WebKit compared with Chromium: opening a long chat, and Enter to the first text. */
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { openChromium } from "../../real/helpers/engines/chromium.ts";
import { type Engine, poll, type Tab } from "../../real/helpers/engines/engine.ts";
import { openFirefox } from "../../real/helpers/engines/firefox.ts";
import { openWebkit } from "../../real/helpers/engines/webkit.ts";
import { realPart } from "../../real/helpers/real_part.ts";
import { eachRound, type Figure, freshFolder, milliseconds, ratioFigure, type Row, startHere } from "../bench.ts";
import { Parlor } from "../parlor.ts";
import { sampleMessages } from "../sample_chat.ts";
import { compare } from "../stats.ts";
import { modelOf } from "../upstream_chunks.ts";

const MESSAGES = 5_000;
const MOST = 1.5;
const FIELD = ".composer textarea";
const MODEL = modelOf({ mode: "paced", perSecond: 60, count: 20, tag: "t" });

interface Round {
  /** Time from the start of the navigation until the last message is shown, in milliseconds. */
  openMs: number;
  /** Time from the Enter key to the first text of the reply, in milliseconds. */
  firstTextMs: number;
}

/** The engines. */
export const enginesRow: Row = {
  name: "engines",
  about: "opening 5,000 messages and Enter to first text in Firefox and WebKit, compared with Chromium",
  async run(bench) {
    await builtUi();
    const firefox = realPart("REAL_FIREFOX_DIR", "firefox.sh");
    const webkit = realPart("REAL_WEBKIT_DIR", "webkit.sh");
    const upstream = await startHere(bench, "upstream_source.ts");
    const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
    await parlor.useUpstream(upstream.port);
    const messages = sampleMessages(MESSAGES, 7);
    await parlor.control.json("PUT", "/api/conversations/long", { title: "Long", messages });
    const site = { url: `http://127.0.0.1:${parlor.port}`, parlor, lastText: messages.at(-1)!.content };

    const engines: Engine[] = [await openChromium()];
    let rounds: Round[][];
    try {
      if (firefox !== undefined) engines.push(await openFirefox(firefox));
      if (webkit !== undefined) engines.push(await openWebkit(webkit));
      const tabs = await Promise.all(engines.map((engine) => engine.newTab()));
      rounds = await eachRound(bench, "engines", async () => {
        const round: Round[] = [];
        for (const tab of tabs) {
          await tab.driver.front();
          round.push(await measure(tab, site));
        }
        return round;
      });
    } finally {
      for (const engine of engines) await engine[Symbol.asyncDispose]();
    }
    await Promise.all([parlor.stop(), upstream.stop()]);
    return engines.slice(1).flatMap(({ name }, index) => figuresOf(name, rounds, index + 1));
  },
};

async function measure(
  tab: Tab,
  { url, parlor, lastText }: { url: string; parlor: Parlor; lastText: string },
): Promise<Round> {
  const short = [{ role: "user", content: "Hello" }, { role: "assistant", content: "Hi" }];
  await parlor.control.json("PUT", "/api/conversations/short", { title: "Short", messages: short });
  await tab.goto(`${url}/c/short`);
  await tab.fill(FIELD, `/model ${MODEL}`);
  await tab.press("Enter");
  await tab.see("button", new RegExp(`^Model: ${MODEL}|^${MODEL}`));
  await tab.fill(FIELD, "Go");
  await tab.evaluate(() => {
    addEventListener("keydown", ({ timeStamp }) => {
      const look = () => {
        const text = document.querySelectorAll(".reply .prose").item(1)?.textContent ?? "";
        if (text === "") requestAnimationFrame(look);
        else Object.assign(globalThis, { firstTextMs: performance.now() - timeStamp });
      };
      look();
    }, { capture: true, once: true });
  });
  await tab.press("Enter");
  const firstTextMs = await tab.until(
    (ms) => ms !== null,
    () => (globalThis as { firstTextMs?: number }).firstTextMs ?? null,
  );
  await tab.gone("button", "Stop");

  // Not by `goto`, which waits for the load event: in Firefox it comes after the messages.
  await tab.evaluate(() => void setTimeout(() => location.assign("/c/long")));
  const openMs = await poll(() => timeToText(tab, lastText).catch(() => null), (ms) => ms !== null);
  return { openMs: openMs!, firstTextMs: firstTextMs! };
}

/**
 * Returns when the text appeared, in milliseconds since the navigation; `null` on the page before it. Throws if that page
 * is left in the meantime.
 */
function timeToText(tab: Tab, text: string): Promise<number | null> {
  return tab.evaluate(async (text) => {
    if (location.pathname !== "/c/long") return null;
    while (!document.querySelector(".messages")?.textContent?.includes(text)) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    return performance.now();
  }, text);
}

function figuresOf(name: string, rounds: readonly Round[][], at: number): Figure[] {
  const line = (what: string, of: (round: Round) => number) =>
    ratioFigure(
      { what: `${what}, ${name}`, counterpart: "Chromium in the same run", unit: milliseconds, atMost: MOST },
      compare(rounds.map((round) => ({ own: of(round[at]!), limit: of(round[0]!) }))),
    );
  return [
    line("load the page with a chat of 5,000 messages", ({ openMs }) => openMs),
    line("Enter to the first text of a reply", ({ firstTextMs }) => firstTextMs),
  ];
}
