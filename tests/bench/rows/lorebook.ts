/** A lorebook of 500 patterns tested on a long text: the first scan after the start, and later ones. */
import { eachRound, type Figure, freshFolder, milliseconds, type Row } from "../bench.ts";
import { Parlor } from "../parlor.ts";
import { median } from "../stats.ts";

const PATTERNS = 500;
/** About 30 messages of a page each. */
const TEXT = "The lantern swung over the gate, and someone called out of the fog. ".repeat(900);
const TIMES = 9;

/** A scan for patterns. */
export const lorebookRow: Row = {
  name: "lorebook",
  about: "500 patterns of a lorebook on 60,000 characters, first and later",
  async run(bench) {
    const keys = Array.from({ length: PATTERNS }, (_, n) => `/\\b(?:heron|lantern${n}|gate-${n})\\b/i`);
    const entries = keys.map((key, n) => ({
      keys: [key],
      content: `Entry ${n}`,
      enabled: true,
      insertion_order: n,
      use_regex: true,
      extensions: {},
    }));
    const body = { book: { name: "Patterns", extensions: {}, entries }, text: TEXT };
    const rounds = await eachRound(bench, "lorebook", async () => {
      const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
      try {
        // The lorebook services open with the first request.
        await parlor.control.json("GET", "/api/lorebooks");
        await parlor.control.json("POST", "/api/lorebooks/test", { ...body, text: "" });
        const first = await timeOf(parlor, body);
        const later: number[] = [];
        for (let n = 0; n < TIMES; n++) later.push(await timeOf(parlor, body));
        return { first, later: median(later) };
      } finally {
        await parlor.stop();
      }
    });
    const what = `scan of 500 lorebook patterns over ${TEXT.length.toLocaleString("en")} characters`;
    return [
      ownFigure(`${what}, first`, median(rounds.map(({ first }) => first))),
      ownFigure(what, median(rounds.map(({ later }) => later))),
    ];
  },
};

async function timeOf(parlor: Parlor, body: unknown): Promise<number> {
  const beganAt = performance.now();
  const { dropped } = await parlor.control.json<{ dropped: unknown[] }>("POST", "/api/lorebooks/test", body);
  const ms = performance.now() - beganAt;
  if (dropped.length > 0) throw new Error(`${dropped.length} patterns weren't matched`);
  return ms;
}

function ownFigure(what: string, ms: number): Figure {
  return { what, own: milliseconds(ms), limit: "–", counterpart: "–", target: "–" };
}
