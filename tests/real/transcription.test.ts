/** Transcription by a real recognizer: Whisper with OpenAI's API transcribes the speech of a real engine. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { countWrongWords } from "./helpers/wrong_words.ts";
import { type LoopbackTool, startTool } from "./helpers/loopback_tool.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_TRANSCRIPTION_DIR", "transcription.sh");
const SPEECH = realPart("REAL_SPEECH_DIR", "speech.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;
const SENTENCE = "The quick brown fox jumps over the lazy dog. Tomorrow we will visit the harbor at nine o'clock.";

describe.skipIf(INSTALLED === undefined || SPEECH === undefined)("with a real recognizer", { timeout: SLOW_MS }, () => {
  let recognizer: LoopbackTool;
  let engine: LoopbackTool;
  let parlor: ChildServer;
  let dataDir: string;

  beforeAll(async () => {
    recognizer = await startTool("transcription.sh", INSTALLED!);
    engine = await startTool("speech.sh", SPEECH!);
    dataDir = await Deno.makeTempDir({ prefix: "parlor-transcription-" });
    parlor = await startChildServer({ dataDir });
    await parlor.json("PUT", "/api/tts/config", { base_url: engine.url, model: "piper", voice: "joe" });
    await parlor.json("PUT", "/api/stt/config", { base_url: recognizer.url, language: "en" });
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
    await recognizer?.[Symbol.asyncDispose]();
    if (dataDir) await Deno.remove(dataDir, { recursive: true });
  });

  async function record(format: string): Promise<FormData> {
    const spoken = await parlor.request("POST", "/api/tts/speak", { text: SENTENCE, format });
    const form = new FormData();
    form.append("file", new Blob([await spoken.arrayBuffer()]), "speech");
    return form;
  }

  test.each([
    // As Firefox, Chromium and Safari record.
    ["Ogg with Opus", ["-c:a", "libopus", "-f", "ogg"]],
    ["WebM with Opus", ["-c:a", "libopus", "-f", "webm", "-live", "1"]],
    ["MP4 with AAC", ["-c:a", "aac", "-f", "mp4", "-movflags", "frag_keyframe+empty_moov+default_base_moof"]],
  ])("hears a sentence recorded by a browser as %s", async (_format, options) => {
    const form = new FormData();
    form.append("file", await convert((await record("wav")).get("file") as File, options), "recording");
    const transcript = await (await parlor.request("POST", "/api/stt/transcribe", form)).json();
    expect(countWrongWords(transcript.text, SENTENCE)).toBeLessThanOrEqual(3);
  });

  test.each(["wav", "mp3", "opus", "flac"])(
    "hears a sentence recorded as %s with at most 3 wrong words",
    async (format) => {
      const response = await parlor.request("POST", "/api/stt/transcribe", await record(format));
      const transcript = await response.json();
      expect(countWrongWords(transcript.text, SENTENCE)).toBeLessThanOrEqual(3);
      expect(transcript.language).toBe("en");
      expect(transcript.duration_s).toBeGreaterThan(3);
    },
  );

  test("streams the same sentence", async () => {
    const form = await record("wav");
    const response = await parlor.request("POST", "/api/stt/transcribe", form, {
      headers: { accept: "text/event-stream" },
    });
    const text = await response.text();
    const done = JSON.parse(/event: done\ndata: (.*)/.exec(text)![1]!);
    const deltas = [...text.matchAll(/event: delta\ndata: (.*)/g)].map(([, data]) => JSON.parse(data!).text).join("");
    expect(deltas.trim()).toBe(done.text);
    expect(countWrongWords(done.text, SENTENCE)).toBeLessThanOrEqual(3);
  });

  test("the test of the settings hears silence and names the model", async () => {
    const result = await parlor.json("POST", "/api/stt/test", {});
    expect(result).toMatchObject({ reachable: true, models: ["tiny.en"] });
    expect(result).not.toHaveProperty("error");
  });

  test("a damaged recording is refused in the recognizer's words", async () => {
    const form = new FormData();
    form.append("file", new Blob([new TextEncoder().encode("OggS and then no audio at all")]), "speech.ogg");
    const response = await parlor.request("POST", "/api/stt/transcribe", form);
    expect(response.status).toBe(502);
    expect((await response.json()).error.message).toContain("Invalid file format");
  });
});

/** Converts a recording, written from start to end as a browser does. ffmpeg comes with the speech engine. */
async function convert(recording: Blob, options: string[]): Promise<Blob> {
  const args = ["-loglevel", "error", "-i", "pipe:0", "-ar", "48000", ...options, "pipe:1"];
  const ffmpeg = new Deno.Command("ffmpeg", { args, stdin: "piped", stdout: "piped" }).spawn();
  const [{ success, stdout }] = await Promise.all([ffmpeg.output(), recording.stream().pipeTo(ffmpeg.stdin)]);
  expect(success).toBe(true);
  return new Blob([stdout]);
}
