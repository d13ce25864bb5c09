/** Listing a thousand conversations, in full and as summaries. */
import {
  type Bench,
  eachRound,
  type Figure,
  freshFolder,
  mebibytes,
  milliseconds,
  ratioFigure,
  type Row,
  startHere,
} from "../bench.ts";
import { HttpConnection } from "../http_connection.ts";
import { Parlor } from "../parlor.ts";
import { forgetPeak, peakBytes } from "../process_facts.ts";
import { fillLibrary } from "../sample_library.ts";
import { compare, median } from "../stats.ts";

const CONVERSATIONS = 1_000;
/** Messages of one conversation: about 45 kB. */
const MESSAGES = 110;
const PAGE = 500;
/** Lists of summaries in one round; their median counts. */
const TIMES = 5;
const FIRST_BYTE_MS = 20;
const PEAK_BYTES = 200 * 1024 * 1024;

/** A thousand conversations. */
export const listsRow: Row = {
  name: "lists",
  about: "1,000 conversations in full and as summaries",
  async run(bench) {
    const options = { programs: bench.programs, dataDir: await freshFolder(bench) };
    let parlor = await Parlor.open(options);
    bench.progress("lists: making 1,000 conversations");
    await fillLibrary(parlor, { conversations: CONVERSATIONS, messages: MESSAGES });
    const alone = await startAlone(bench, parlor);
    // Restarted, so that its memory only includes listing.
    await parlor.stop();
    parlor = await Parlor.open(options);
    using limit = await HttpConnection.open(alone.port);

    const rounds = await eachRound(bench, "lists", async () => {
      await forgetPeak(parlor.pid);
      const own = await readWhole(parlor.control, "/api/conversations");
      const peak = await peakBytes(parlor.pid);
      const bare = await readWhole(limit, "/full");
      const [ownSummaries, bareSummaries]: [number[], number[]] = [[], []];
      for (let n = 0; n < TIMES; n++) {
        ownSummaries.push(await readSummaries(parlor.control));
        bareSummaries.push((await readWhole(limit, "/summaries")).ms);
      }
      return {
        full: { own: own.ms, limit: bare.ms },
        firstByte: { own: own.firstByteMs, limit: bare.firstByteMs },
        summaries: { own: median(ownSummaries), limit: median(bareSummaries) },
        peak,
        bytes: own.bytes,
      };
    });
    await Promise.all([parlor.stop(), alone.stop()]);
    const counterpart = "Deno.serve, decrypt and join";
    const common = { counterpart, unit: milliseconds, atMost: 2 };
    const size = `${Math.round(rounds[0]!.bytes / 1e6)} MB`;
    const full = `1,000 conversations in full (${size})`;
    return [
      ratioFigure({ ...common, what: full }, compare(rounds.map((round) => round.full))),
      firstByteFigure(full, compare(rounds.map((round) => round.firstByte))),
      peakFigure(full, median(rounds.map((round) => round.peak))),
      ratioFigure(
        { ...common, what: "1,000 conversations, summaries (2 pages)" },
        compare(rounds.map((round) => round.summaries)),
      ),
    ];
  },
};

/** Starts the counterpart with the bytes of Parlor's responses. */
async function startAlone(bench: Bench, parlor: Parlor) {
  const folder = await freshFolder(bench);
  await Deno.writeFile(`${folder}/full.json`, await parlor.control.bytes("GET", "/api/conversations"));
  const items: unknown[] = [];
  await readSummaries(parlor.control, (page) => items.push(...page));
  await Deno.writeTextFile(`${folder}/summaries.json`, JSON.stringify(items));
  const files = ["full.json", "summaries.json", "alone.db"].map((name) => `${folder}/${name}`);
  return await startHere(bench, "counterparts/sealed_lists.ts", ...files);
}

async function readWhole(connection: HttpConnection, path: string) {
  let bytes = 0;
  let firstByteMs = 0;
  const beganAt = performance.now();
  const { status } = await connection.request("GET", path, undefined, (part) => {
    if (bytes === 0) firstByteMs = performance.now() - beganAt;
    bytes += part.length;
  });
  if (status !== 200) throw new Error(`GET ${path} was answered with ${status}`);
  return { ms: performance.now() - beganAt, firstByteMs, bytes };
}

/** Reads all pages of summaries and returns the duration in ms. */
async function readSummaries(connection: HttpConnection, onPage?: (items: unknown[]) => void): Promise<number> {
  let ms = 0;
  for (let cursor: string | null = ""; cursor !== null;) {
    const beganAt = performance.now();
    const path = `/api/conversations?view=summary&limit=${PAGE}${cursor === "" ? "" : `&cursor=${cursor}`}`;
    const body = await connection.bytes("GET", path);
    ms += performance.now() - beganAt;
    const page: { items: unknown[]; next_cursor: string | null } = JSON.parse(new TextDecoder().decode(body));
    onPage?.(page.items);
    cursor = page.next_cursor;
  }
  return ms;
}

function firstByteFigure(full: string, { own, limit, ratio }: ReturnType<typeof compare>): Figure {
  return {
    what: `${full}, first byte`,
    own: milliseconds(own),
    limit: milliseconds(limit),
    counterpart: "Deno.serve, decrypt and join",
    ratio,
    target: `≤ ${FIRST_BYTE_MS} ms`,
    isReached: own <= FIRST_BYTE_MS,
  };
}

function peakFigure(full: string, peak: number): Figure {
  return {
    what: `${full}, peak memory (RSS)`,
    own: mebibytes(peak),
    limit: "–",
    counterpart: "–",
    target: "≤ 200 MiB",
    isReached: peak <= PEAK_BYTES,
  };
}
