/** Listing characters: a thousand for the first time and again, twenty thousand by pages. */
import { type Bench, eachRound, freshFolder, milliseconds, ratioFigure, type Row, startHere } from "../bench.ts";
import { HttpConnection } from "../http_connection.ts";
import { Parlor } from "../parlor.ts";
import { writeCards } from "../sample_cards.ts";
import { compare, median } from "../stats.ts";

const CARDS = 1_000;
const MANY_CARDS = 20_000;
const PAGE = 100;
/** Lists in one round; their median counts. */
const TIMES = 9;

/** A gallery. */
export const cardsRow: Row = {
  name: "cards",
  about: "1,000 cards listed for the first time and again; the first page of 20,000",
  async run(bench) {
    const folder = `${bench.folder}/cards`;
    const manyFolder = `${bench.folder}/many-cards`;
    bench.progress("cards: writing 21,000 card files");
    await writeCards(folder, CARDS);
    await writeCards(manyFolder, MANY_CARDS, 1);

    const many = await openGallery(bench, manyFolder);
    await timeOf(many.control, "/api/characters?limit=1");
    const rounds = await eachRound(bench, "cards", async () => {
      const own = await openGallery(bench, folder);
      const alone = await startHere(bench, "counterparts/card_walk.ts", folder, `${await freshFolder(bench)}/cards.db`);
      using limit = await HttpConnection.open(alone.port);
      // Both have already responded to a request, so that only the list is measured.
      await timeOf(own.control, "/api/setup/status");
      await timeOf(limit, "/");
      const first = {
        own: await timeOf(own.control, "/api/characters", CARDS + 1),
        limit: await timeOf(limit, "/walk", CARDS),
      };
      const warm = {
        own: await medianOf(() => timeOf(own.control, "/api/characters", CARDS + 1)),
        limit: await medianOf(() => timeOf(limit, "/indexed", CARDS)),
      };
      const page = `/api/characters?limit=${PAGE}`;
      const pages = {
        own: await medianOf(() => timeOf(many.control, page)),
        limit: await medianOf(() => timeOf(own.control, page)),
      };
      await Promise.all([own.stop(), alone.stop()]);
      return { first, warm, pages };
    });
    await many.stop();
    const common = { unit: milliseconds, atMost: 2 };
    return [
      ratioFigure(
        { ...common, what: "list 1,000 cards, first time", counterpart: "Deno.serve, chunk headers and cards read" },
        compare(rounds.map((round) => round.first)),
      ),
      ratioFigure(
        { ...common, what: "list 1,000 cards, again", counterpart: "Deno.serve, times compared and rows joined" },
        compare(rounds.map((round) => round.warm)),
      ),
      ratioFigure(
        { ...common, atMost: 1.5, what: "20,000 cards, first page of 100", counterpart: "the same of 1,000 cards" },
        compare(rounds.map((round) => round.pages)),
      ),
    ];
  },
};

async function openGallery(bench: Bench, cards: string): Promise<Parlor> {
  const dataDir = await freshFolder(bench);
  await Deno.writeTextFile(`${dataDir}/config.toml`, `card_dirs = [${JSON.stringify(cards)}]\n`);
  return await Parlor.open({ programs: bench.programs, dataDir });
}

async function timeOf(connection: HttpConnection, path: string, items?: number): Promise<number> {
  const beganAt = performance.now();
  const parts: Uint8Array[] = [];
  await connection.request("GET", path, undefined, (part) => parts.push(part.slice()));
  const ms = performance.now() - beganAt;
  if (items === undefined) return ms;
  const list = JSON.parse(await new Blob(parts as Uint8Array<ArrayBuffer>[]).text());
  if (list.length !== items) throw new Error(`GET ${path} gave ${list.length} items and not ${items}`);
  return ms;
}

async function medianOf(step: () => Promise<number>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < TIMES; n++) times.push(await step());
  return median(times);
}
