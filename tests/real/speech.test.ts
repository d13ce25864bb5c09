/** Speech by a real engine: Piper with OpenAI's API. Parlor runs as a process. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sniffAudio } from "../../services/speech/audio_format.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { realPart } from "./helpers/real_part.ts";
import { type LoopbackTool, startTool } from "./helpers/loopback_tool.ts";

const INSTALLED = realPart("REAL_SPEECH_DIR", "speech.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;
const SENTENCE = "The ferry comes in at nine, and the light on the pier is lit.";

describe.skipIf(INSTALLED === undefined)("with a real speech engine", { timeout: SLOW_MS }, () => {
  let engine: LoopbackTool;
  let parlor: ChildServer;
  let dataDir: string;

  beforeAll(async () => {
    engine = await startTool("speech.sh", INSTALLED!);
    dataDir = await Deno.makeTempDir({ prefix: "parlor-speech-" });
    parlor = await startChildServer({ dataDir });
    await parlor.json("PUT", "/api/tts/config", { base_url: engine.url, model: "piper", voice: "joe", format: "mp3" });
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
    if (dataDir) await Deno.remove(dataDir, { recursive: true });
  });

  test.each(["mp3", "wav", "flac", "opus"] as const)("a sentence is spoken as %s", async (format) => {
    const answer = await parlor.request("POST", "/api/tts/speak", { text: SENTENCE, format });
    expect(answer.status).toBe(200);
    const audio = new Uint8Array(await answer.arrayBuffer());
    expect(sniffAudio(audio.subarray(0, 64))).toBe(format);
    // Some four seconds of speech; the smallest of the formats takes thousands of bytes for them.
    expect(audio.length).toBeGreaterThan(4_000);
  });

  test("headerless PCM has the length that its sentence takes to say", async () => {
    const answer = await parlor.request("POST", "/api/tts/speak", { text: SENTENCE, format: "pcm" });
    expect(answer.headers.get("content-type")).toMatch(/^audio\/pcm;rate=\d+;channels=1;encoding=s16le$/);
    const seconds = (await answer.arrayBuffer()).byteLength / 2 / 24_000;
    expect(seconds).toBeGreaterThan(1.5);
    expect(seconds).toBeLessThan(15);
  });

  test("the first audio of a long text comes before the last of it is made", async () => {
    const text = Array.from({ length: 6 }, (_, i) => `This is sentence number ${i + 1} of a long story.`).join(" ");
    const answer = await parlor.request("POST", "/api/tts/speak", { text, format: "pcm" });
    const sizes: number[] = [];
    for await (const chunk of answer.body!) sizes.push(chunk.length);
    expect(sizes.length).toBeGreaterThan(1);
    expect(sizes[0]).toBeLessThan(sizes.reduce((sum, size) => sum + size, 0) / 2);
  });

  test("the engine's voices and models are listed", async () => {
    const { source, voices } = await parlor.json<{ source: string; voices: { id: string }[] }>(
      "GET",
      "/api/tts/voices",
    );
    expect(source).toBe("upstream");
    expect(voices.map(({ id }) => id)).toContain("joe");
    const { data } = await parlor.json<{ data: { id: string }[] }>("GET", "/api/tts/models");
    expect(data.map(({ id }) => id)).toContain("piper");
  });

  test("an unknown voice is reported with the engine's message", async () => {
    const answer = await parlor.request("POST", "/api/tts/speak", { text: "Hi", voice: "nobody" });
    expect(answer.status).toBe(502);
    expect((await answer.json()).error.message).toMatch(/voice/i);
  });

  test("what was spoken can be kept as a voice sample, with its length", async () => {
    const spoken = await parlor.request("POST", "/api/tts/speak", { text: SENTENCE, format: "flac" });
    const form = new FormData();
    form.append("audio", new Blob([await spoken.arrayBuffer()]), "joe.flac");
    form.append("name", "Joe");
    const response = await fetch(`${parlor.url}/api/voices`, { method: "POST", body: form });
    expect(response.status).toBe(201);
    const sample = await response.json();
    expect(sample).toMatchObject({ format: "flac", name: "Joe" });
    expect(sample.sample_rate_hz).toBeGreaterThan(8_000);
  });
});
