/** A portrait resized for a gallery: the first time, and from the cache. */
import { eachRound, freshFolder, milliseconds, ratioFigure, type Row, startHere } from "../bench.ts";
import { HttpConnection } from "../http_connection.ts";
import { Parlor } from "../parlor.ts";
import { samplePortrait } from "../sample_cards.ts";
import { compare, median } from "../stats.ts";

const REDUCED_PX = 256;
/** Images resized in one round; their median counts. */
const TIMES = 9;
/** Requests for the cached image: more, because the first of them include cleanup after resizing. */
const KEPT_TIMES = 101;

/** One portrait. */
export const avatarRow: Row = {
  name: "avatar",
  about: "a portrait of 1024×1536 in 256 pixels, first and kept",
  async run(bench) {
    const [cards, dataDir] = [await freshFolder(bench), await freshFolder(bench)];
    bench.progress("avatar: drawing portraits");
    const pictures = TIMES * (bench.rounds + 1) + 1;
    for (let n = 0; n < pictures; n++) await Deno.writeFile(`${cards}/portrait-${n}.png`, samplePortrait());
    await Deno.writeTextFile(`${dataDir}/config.toml`, `card_dirs = [${JSON.stringify(cards)}]\n`);
    const parlor = await Parlor.open({ programs: bench.programs, dataDir });
    const list = await parlor.control.json<{ id: string; external: boolean }[]>("GET", "/api/characters");
    const paths = list.filter(({ external }) => external).map(({ id }) =>
      `/api/characters/${id}/avatar?w=${REDUCED_PX}`
    );
    const path = paths.pop()!;
    const reduced = `${await freshFolder(bench)}/reduced.png`;
    await Deno.writeFile(reduced, await parlor.control.bytes("GET", path));
    const alone = await startHere(bench, "counterparts/avatar.ts", `${cards}/portrait-0.png`, reduced);
    using limit = await HttpConnection.open(alone.port);

    const rounds = await eachRound(bench, "avatar", async () => {
      const first = {
        own: await medianOf(() => timeOf(parlor.control, paths.pop()!)),
        limit: await medianOf(() => timeOf(limit, "/decode")),
      };
      const kept = {
        own: await medianOf(() => timeOf(parlor.control, path), KEPT_TIMES),
        limit: await medianOf(() => timeOf(limit, "/static"), KEPT_TIMES),
      };
      return { first, kept };
    });
    await Promise.all([parlor.stop(), alone.stop()]);
    const common = { unit: milliseconds, atMost: 2 };
    return [
      ratioFigure(
        { ...common, what: "resize an avatar from 1024×1536 to 256 px", counterpart: "Deno.serve, decode alone" },
        compare(rounds.map((round) => round.first)),
      ),
      ratioFigure(
        {
          ...common,
          what: "resize an avatar from 1024×1536 to 256 px, cached",
          counterpart: "Deno.serve, a static file",
        },
        compare(rounds.map((round) => round.kept)),
      ),
    ];
  },
};

async function timeOf(connection: HttpConnection, path: string): Promise<number> {
  const beganAt = performance.now();
  const { status } = await connection.request("GET", path);
  if (status !== 200) throw new Error(`GET ${path} was answered with ${status}`);
  return performance.now() - beganAt;
}

async function medianOf(step: () => Promise<number>, count = TIMES): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < count; n++) times.push(await step());
  return median(times);
}
