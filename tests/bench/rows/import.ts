/** A folder of a thousand chats. */
import { dirname } from "node:path";
import { zipSync } from "fflate";
import { eachRound, type Figure, freshFolder, milliseconds, ratioFigure, type Row, startHere } from "../bench.ts";
import { Parlor } from "../parlor.ts";
import { tavernFiles } from "../sample_tavern.ts";
import { compare } from "../stats.ts";

const SIZE = { characters: 10, chats: 1_000, messages: 100 };
const WITHIN_MS = 3_000;
const POLL_MS = 20;
const ENDS = ["done", "failed", "cancelled"];

interface Job {
  id: string;
  state: string;
  error?: { message: string };
  detail?: { counts: { conversation: { added: number } }; messages: number };
}

/** An import from SillyTavern. */
export const importRow: Row = {
  name: "import",
  about: "a SillyTavern folder of 1,000 chats of 100 messages",
  async run(bench) {
    bench.progress("import: making 1,000 chats of 100 messages");
    const files = tavernFiles(SIZE);
    const folder = await freshFolder(bench);
    for (const [path, bytes] of Object.entries(files)) {
      await Deno.mkdir(`${folder}/${dirname(path)}`, { recursive: true });
      await Deno.writeFile(`${folder}/${path}`, bytes);
    }
    const zip = zipSync(files) as Uint8Array<ArrayBuffer>;
    const alone = await startHere(bench, "counterparts/bare_import.ts", folder, await freshFolder(bench));

    const rounds = await eachRound(bench, "import", async () => {
      const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
      try {
        return { own: await imported(parlor, zip), limit: Number(await alone.ask("import")) };
      } finally {
        await parlor.stop();
      }
    });
    await alone.stop();
    const compared = compare(rounds);
    const megabytes = Math.round(Object.values(files).reduce((sum, { length }) => sum + length, 0) / 1e6);
    const what = `import of a SillyTavern folder of 1,000 chats, 100,000 messages (${megabytes} MB)`;
    const counterpart = "read, parse, seal and insert alone, one thread, no HTTP, no zip";
    return [
      wholeFigure(what, compared.own),
      ratioFigure({ what, counterpart, unit: milliseconds, atMost: 2 }, compared),
    ];
  },
};

/** Uploads the ZIP archive and waits until everything is stored. Returns the ms of both together. */
async function imported(parlor: Parlor, zip: Uint8Array<ArrayBuffer>): Promise<number> {
  const beganAt = performance.now();
  const answer = await fetch(`http://127.0.0.1:${parlor.port}/api/import?kind=sillytavern`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: zip,
  });
  let job: Job = await answer.json();
  while (!ENDS.includes(job.state)) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    job = await parlor.control.json("GET", `/api/jobs/${job.id}`);
  }
  const ms = performance.now() - beganAt;
  const { counts, messages } = job.detail ?? {};
  if (job.state !== "done" || counts?.conversation.added !== SIZE.chats || messages !== SIZE.chats * SIZE.messages) {
    throw new Error(`The import ended as ${job.state} with ${messages} messages: ${job.error?.message ?? "no error"}`);
  }
  return ms;
}

function wholeFigure(what: string, ms: number): Figure {
  return {
    what: `${what}, total time`,
    own: milliseconds(ms),
    limit: "–",
    counterpart: "–",
    target: `≤ ${WITHIN_MS / 1000} s`,
    isReached: ms <= WITHIN_MS,
  };
}
