/** Time from the end of speech to the audio of the reply, compared with the three servers alone, one after another. */
import { eachRound, freshFolder, milliseconds, ratioFigure, type Row, startHere } from "../bench.ts";
import { chatBody, Parlor, plainBody } from "../parlor.ts";
import { compare, median } from "../stats.ts";
import type { Answer } from "../upstream_chunks.ts";
import { makeSpokenWave } from "../../helpers/files/spoken_wave.ts";

/** Turns of one round, alternating between the two sides. */
const TURNS = 8;
/** The first sentence of a reply: ten words at 100 words per second. */
const REPLY: Answer = { mode: "paced", perSecond: 100, count: 10, tag: "talk" };
const SENTENCE = "The ferry comes in at nine, and the light on the pier is lit.";

/** The route of a turn. */
interface Side {
  /** Addresses of the three steps. */
  transcribe: string;
  chat: string;
  speak: string;
  chatBody(): string;
  speakBody: string;
}

/** Time from the end of speech to the first audio of the reply. */
export const talkRow: Row = {
  name: "talk",
  about: "first audio after the end of speech: transcription, first sentence, speech",
  async run(bench) {
    const sources = await Promise.all(
      ["transcription_source.ts", "upstream_source.ts", "speech_source.ts"].map((file) => startHere(bench, file)),
    );
    const [hearing, model, voice] = sources.map(({ port }) => `http://127.0.0.1:${port}/v1`) as [
      string,
      string,
      string,
    ];
    const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
    try {
      await parlor.useUpstream(sources[1]!.port);
      await parlor.control.json("PUT", "/api/tts/config", { base_url: voice, model: "piper", voice: "joe" });
      await parlor.control.json("PUT", "/api/stt/config", { base_url: hearing, model: "whisper-1" });
      const own = `http://127.0.0.1:${parlor.port}/api`;
      const conversation = crypto.randomUUID();
      const through: Side = {
        transcribe: `${own}/stt/transcribe`,
        chat: `${own}/chat`,
        speak: `${own}/tts/speak`,
        chatBody: () => chatBody(conversation, crypto.randomUUID(), REPLY),
        speakBody: JSON.stringify({ text: SENTENCE }),
      };
      const alone: Side = {
        transcribe: `${hearing}/audio/transcriptions`,
        chat: `${model}/chat/completions`,
        speak: `${voice}/audio/speech`,
        chatBody: () => plainBody(REPLY),
        speakBody: JSON.stringify({ model: "piper", input: SENTENCE, voice: "joe", response_format: "mp3" }),
      };
      const audio = new Blob([makeSpokenWave([1.5, -0.7])], { type: "audio/wav" });
      const rounds = await eachRound(bench, "talk", async () => {
        const [own, limit]: [number[], number[]] = [[], []];
        for (let n = 0; n < TURNS; n++) {
          own.push(await takeTurn(through, audio));
          await parlor.allSettled();
          limit.push(await takeTurn(alone, audio));
        }
        return { own: median(own), limit: median(limit) };
      });
      return [ratioFigure({
        what: "first audio after the end of speech",
        counterpart: "transcription, model and speech server alone, 100 ms each",
        unit: milliseconds,
        atMost: 1.2,
      }, compare(rounds))];
    } finally {
      await parlor.stop();
      await Promise.all(sources.map((source) => source.stop()));
    }
  },
};

/** Returns the time until the first byte of audio, in milliseconds. */
async function takeTurn(side: Side, audio: Blob): Promise<number> {
  const begin = performance.now();
  const form = new FormData();
  form.append("model", "whisper-1");
  form.append("stream", "true");
  form.append("file", audio, "speech.wav");
  await readAll(await fetch(side.transcribe, { method: "POST", body: form, headers: { accept: "text/event-stream" } }));
  await readAll(await postJson(side.chat, side.chatBody()));
  const reader = (await postJson(side.speak, side.speakBody)).body!.getReader();
  const { done } = await reader.read();
  if (done) throw new Error(`${side.speak} sent no audio`);
  const firstAudioMs = performance.now() - begin;
  while (!(await reader.read()).done);
  return firstAudioMs;
}

async function postJson(url: string, body: string): Promise<Response> {
  return await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
}

async function readAll(response: Response): Promise<void> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.url} was answered with ${response.status}: ${text.slice(0, 500)}`);
}
