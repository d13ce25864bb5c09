/** The portraits of a gallery as thumbnails, requested at once: the first gallery after the start, and later ones. */
import { eachRound, type Figure, freshFolder, milliseconds, type Row } from "../bench.ts";
import { Parlor } from "../parlor.ts";
import { samplePortrait } from "../sample_cards.ts";
import { median } from "../stats.ts";

/** Portraits that a gallery shows at once on a large screen. */
const SHOWN = 12;
const GALLERIES = 3;
const WIDTH_PX = 96;

/** Thumbnails. */
export const thumbnailsRow: Row = {
  name: "thumbnails",
  about: "12 portraits of 1024×1536 as thumbnails at once, first and later",
  async run(bench) {
    const cards = await freshFolder(bench);
    bench.progress("thumbnails: drawing portraits");
    const portrait = samplePortrait();
    for (let n = 0; n < SHOWN * GALLERIES + 1; n++) await Deno.writeFile(`${cards}/portrait-${n}.png`, portrait);
    const rounds = await eachRound(bench, "thumbnails", async () => {
      const dataDir = await freshFolder(bench);
      await Deno.writeTextFile(`${dataDir}/config.toml`, `card_dirs = [${JSON.stringify(cards)}]\n`);
      const parlor = await Parlor.open({ programs: bench.programs, dataDir });
      try {
        const list = await parlor.control.json<{ id: string; external: boolean }[]>("GET", "/api/characters");
        const ids = list.filter(({ external }) => external).map(({ id }) => id);
        const first = await timeOf(parlor, ids.splice(0, 1));
        const galleries: number[] = [];
        for (let n = 0; n < GALLERIES; n++) galleries.push(await timeOf(parlor, ids.splice(0, SHOWN)));
        return { first, gallery: median(galleries) };
      } finally {
        await parlor.stop();
      }
    });
    return [
      ownFigure(`first thumbnail after the start, ${WIDTH_PX} px`, median(rounds.map(({ first }) => first))),
      ownFigure(`${SHOWN} thumbnails at once, ${WIDTH_PX} px`, median(rounds.map(({ gallery }) => gallery))),
    ];
  },
};

async function timeOf(parlor: Parlor, ids: string[]): Promise<number> {
  const beganAt = performance.now();
  await Promise.all(ids.map(async (id) => {
    const answer = await fetch(`http://127.0.0.1:${parlor.port}/api/characters/${id}/avatar?w=${WIDTH_PX}`);
    const { length } = await answer.bytes();
    if (answer.status !== 200 || length === 0) throw new Error(`A thumbnail was answered with ${answer.status}`);
  }));
  return performance.now() - beganAt;
}

function ownFigure(what: string, ms: number): Figure {
  return { what, own: milliseconds(ms), limit: "–", counterpart: "–", target: "–" };
}
