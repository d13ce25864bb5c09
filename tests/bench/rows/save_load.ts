/** Saving and loading a whole conversation. */
import { eachRound, freshFolder, milliseconds, ratioFigure, type Row, startHere } from "../bench.ts";
import { Parlor } from "../parlor.ts";
import { numbers, sampleMessages, sampleText } from "../sample_chat.ts";
import { compare, median } from "../stats.ts";

const MESSAGES = 1_000;
/** Of each kind in one round; their median counts. */
const TIMES = 8;
const PATH = "/api/conversations/whole";

/** A conversation of 1,000 messages. */
export const saveLoadRow: Row = {
  name: "save-load",
  about: "save and load a conversation of 1,000 messages",
  async run(bench) {
    const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
    const load = () => parlor.control.bytes("GET", PATH);
    await parlor.control.bytes("PUT", PATH, JSON.stringify({ title: "Whole", messages: sampleMessages(MESSAGES, 1) }));
    const document = await load();

    // Like a client: the whole document, with all texts changed, so that everything is rewritten.
    const next = numbers(2);
    const bodies = [1, 2].map(() => {
      const conversation: { messages: { content: string }[] } = JSON.parse(new TextDecoder().decode(document));
      for (const message of conversation.messages) message.content = sampleText(next);
      return JSON.stringify(conversation);
    });
    let saves = 0;
    const save = () => parlor.control.bytes("PUT", PATH, bodies[saves++ % 2]);

    const folder = await freshFolder(bench);
    await Deno.writeFile(`${folder}/document.json`, document);
    const alone = await startHere(
      bench,
      "counterparts/sealed_store.ts",
      `${folder}/document.json`,
      `${folder}/alone.db`,
    );

    const rounds = await eachRound(bench, "save-load", async () => {
      const times = {
        save: [] as number[],
        load: [] as number[],
        saveAlone: [] as number[],
        loadAlone: [] as number[],
      };
      for (let n = 0; n < TIMES; n++) {
        times.save.push(await timed(save));
        times.saveAlone.push(Number(await alone.ask("save")));
        times.load.push(await timed(load));
        times.loadAlone.push(Number(await alone.ask("load")));
      }
      return {
        save: { own: median(times.save), limit: median(times.saveAlone) },
        load: { own: median(times.load), limit: median(times.loadAlone) },
      };
    });
    await Promise.all([parlor.stop(), alone.stop()]);
    const size = Math.round(document.length / 1024);
    const common = { counterpart: "node:sqlite and AES-GCM alone, no HTTP", unit: milliseconds };
    const conversation = `a conversation of 1,000 messages (${size} KiB)`;
    return [
      ratioFigure({ ...common, atMost: 4, what: `save ${conversation}` }, compare(rounds.map((round) => round.save))),
      ratioFigure({ ...common, atMost: 2, what: `load ${conversation}` }, compare(rounds.map((round) => round.load))),
    ];
  },
};

async function timed(work: () => Promise<unknown>): Promise<number> {
  const beganAt = performance.now();
  await work();
  return performance.now() - beganAt;
}
