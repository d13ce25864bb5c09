/** Searching a hundred thousand sealed messages. */
import { eachRound, type Figure, freshFolder, milliseconds, ratioFigure, type Row, startHere } from "../bench.ts";
import { Parlor } from "../parlor.ts";
import { fillLibrary } from "../sample_library.ts";
import { compare, median } from "../stats.ts";

const CONVERSATIONS = 1_000;
const MESSAGES = 100;
/** Occurs only in the oldest, a middle and the newest conversation, so that the last hit is found at the end. */
const RARE = "kittiwake";
/** Occurs nearly everywhere. */
const COMMON = "harbour";
const WITHIN_MS = 100;
/** Of each kind in one round; their median counts. */
const TIMES = 3;

interface Page {
  items: unknown[];
  next_cursor: string | null;
}

/** Search. */
export const searchRow: Row = {
  name: "search",
  about: "search over 100,000 messages, whole response and first hits",
  async run(bench) {
    const dataDir = await freshFolder(bench);
    let parlor = await Parlor.open({ programs: bench.programs, dataDir });
    bench.progress("search: making 1,000 conversations of 100 messages");
    const words = [0, CONVERSATIONS / 2, CONVERSATIONS - 1].map((n): [number, string] => [n, RARE]);
    await fillLibrary(parlor, { conversations: CONVERSATIONS, messages: MESSAGES, words });
    const folder = await freshFolder(bench);
    const document = await parlor.control.bytes("GET", "/api/conversations");
    await Deno.writeFile(`${folder}/all.json`, document);
    const files = ["all.json", "alone.db"].map((name) => `${folder}/${name}`);
    const alone = await startHere(bench, "counterparts/sealed_scan.ts", ...files);

    const rounds = await eachRound(bench, "search", async () => {
      // The first search of a process starts its Worker and decrypts everything.
      await parlor.stop();
      parlor = await Parlor.open({ programs: bench.programs, dataDir });
      await searchPage(parlor, COMMON);
      const first = await searchAll(parlor, RARE);
      const firstAlone = Number(await alone.ask(RARE));
      const times = { whole: [] as number[], alone: [] as number[], rareFirst: [] as number[], first: [] as number[] };
      for (let n = 0; n < TIMES; n++) {
        const whole = await searchAll(parlor, RARE);
        if (whole.hits !== words.length) throw new Error(`Found ${whole.hits} of ${words.length} hits`);
        times.whole.push(whole.ms);
        times.rareFirst.push(whole.firstMs);
        times.alone.push(Number(await alone.ask(RARE)));
        times.first.push((await searchPage(parlor, COMMON)).ms);
      }
      return {
        cold: { own: first.ms, limit: firstAlone },
        whole: { own: median(times.whole), limit: median(times.alone) },
        coldFirst: first.firstMs,
        rareFirst: median(times.rareFirst),
        first: median(times.first),
      };
    });
    await Promise.all([parlor.stop(), alone.stop()]);
    const what = `search over 100,000 messages (${Math.round(document.length / 1e6)} MB)`;
    const counterpart = "decrypt all, scan once, no HTTP";
    const again = compare(rounds.map((round) => round.whole));
    const common = { counterpart, unit: milliseconds, atMost: 1.5 };
    return [
      ratioFigure(
        { ...common, what: `${what}, whole response, first search of a process` },
        compare(rounds.map((round) => round.cold)),
      ),
      {
        ...ratioFigure({ ...common, what: `${what}, whole response, again` }, again),
        target: `≤ ${WITHIN_MS} ms`,
        isReached: again.own <= WITHIN_MS,
      },
      firstFigure(
        `${what}, first hit of a rare word, first search of a process`,
        median(rounds.map((round) => round.coldFirst)),
      ),
      firstFigure(`${what}, first hits of a common word`, median(rounds.map((round) => round.first))),
      firstFigure(`${what}, first hit of a rare word, again`, median(rounds.map((round) => round.rareFirst))),
    ];
  },
};

/** Follows the pages to the end. */
async function searchAll(parlor: Parlor, word: string): Promise<{ ms: number; firstMs: number; hits: number }> {
  let [ms, firstMs, hits] = [0, 0, 0];
  for (let cursor: string | null = ""; cursor !== null;) {
    const { page, ms: pageMs } = await searchPage(parlor, word, cursor);
    ms += pageMs;
    if (hits === 0 && page.items.length > 0) firstMs = ms;
    hits += page.items.length;
    cursor = page.next_cursor;
  }
  return { ms, firstMs, hits };
}

async function searchPage(parlor: Parlor, word: string, cursor = ""): Promise<{ page: Page; ms: number }> {
  const beganAt = performance.now();
  const path = `/api/search?q=${word}${cursor === "" ? "" : `&cursor=${cursor}`}`;
  const body = await parlor.control.bytes("GET", path);
  const ms = performance.now() - beganAt;
  return { page: JSON.parse(new TextDecoder().decode(body)), ms };
}

function firstFigure(what: string, ms: number): Figure {
  return {
    what,
    own: milliseconds(ms),
    limit: "–",
    counterpart: "–",
    target: `≤ ${WITHIN_MS} ms`,
    isReached: ms <= WITHIN_MS,
  };
}
