/** Time from a complete sentence to its first audio, compared with the speech server alone. */
import { eachRound, freshFolder, milliseconds, ratioFigure, type Row, startHere } from "../bench.ts";
import { HttpConnection } from "../http_connection.ts";
import { Parlor } from "../parlor.ts";
import { compare, median } from "../stats.ts";

/** Sentences of one round, alternating between the two sides. */
const SENTENCES = 10;
const SENTENCE = "The ferry comes in at nine, and the light on the pier is lit.";

/** Time to first audio. */
export const firstAudioRow: Row = {
  name: "first-audio",
  about: "first audio after a sentence is known",
  async run(bench) {
    const source = await startHere(bench, "speech_source.ts");
    const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
    try {
      const config = { base_url: `http://127.0.0.1:${source.port}/v1`, model: "piper", voice: "joe", format: "mp3" };
      await parlor.control.json("PUT", "/api/tts/config", config);
      const rounds = await eachRound(bench, "first audio", () => oneRound(parlor.port, source.port));
      return [ratioFigure({
        what: "first audio after the first sentence is known",
        counterpart: "the speech server alone, 100 ms to its first audio",
        unit: milliseconds,
        atMost: 1.2,
      }, compare(rounds))];
    } finally {
      await parlor.stop();
      await source.stop();
    }
  },
};

async function oneRound(parlorPort: number, sourcePort: number): Promise<{ own: number; limit: number }> {
  using through = await HttpConnection.open(parlorPort);
  using direct = await HttpConnection.open(sourcePort);
  const [own, limit]: [number[], number[]] = [[], []];
  const spoken = JSON.stringify({ text: SENTENCE });
  const asked = JSON.stringify({ model: "piper", input: SENTENCE, voice: "joe", response_format: "mp3" });
  for (let n = 0; n < SENTENCES; n++) {
    own.push(await firstByteMs(through, "/api/tts/speak", spoken));
    limit.push(await firstByteMs(direct, "/v1/audio/speech", asked));
  }
  return { own: median(own), limit: median(limit) };
}

async function firstByteMs(connection: HttpConnection, path: string, body: string): Promise<number> {
  const begin = performance.now();
  let firstMs: number | undefined;
  const { status } = await connection.request("POST", path, body, () => firstMs ??= performance.now() - begin);
  if (status !== 200 || firstMs === undefined) throw new Error(`${path} was answered with ${status} and no audio`);
  return firstMs;
}
