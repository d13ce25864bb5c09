/** Speech and transcription through the OpenAI-compatible API. */
import { expect, test } from "vitest";
import { formatTranscript } from "../../../routes/schemas/openai_api.ts";
import { openFakeSpeech, wavFile } from "../../helpers/fakes/fake_speech.ts";
import { openFakeTranscription } from "../../helpers/fakes/fake_transcription.ts";
import { openOpenAiApp } from "../../helpers/app/openai_app.ts";

test("speaks with the configured server; a model that it doesn't list is replaced by the configured one", async () => {
  await using at = await openOpenAiApp();
  const audio = at.client().audio.speech;
  await expect(audio.create({ model: "tts-1", input: "Hi", voice: "alloy" })).rejects.toMatchObject({ status: 503 });
  await using speech = await openFakeSpeech();
  const config = { base_url: speech.url, model: "kokoro", voice: "joe", format: "wav" };
  await at.send("PUT", "/api/tts/config", config, at.ownerToken);
  const spoken = async (model: string) => {
    const response = await audio.create({ model, input: "Hello", voice: "joe", response_format: "mp3", speed: 1.5 });
    expect(response.headers.get("content-type")).toBe("audio/mpeg");
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(400);
    return speech.requests.findLast(({ path }) => path.endsWith("/audio/speech"))!.json;
  };
  expect(await spoken("tts-1")).toEqual({
    model: "tts-1",
    input: "Hello",
    voice: "joe",
    response_format: "mp3",
    speed: 1.5,
  });
  expect((await spoken("gpt-4o-mini-tts"))!.model).toBe("kokoro");
  speech.switches.refusal = { status: 429, body: { error: { message: "busy" } }, retryAfter: "3" };
  await expect(audio.create({ model: "tts-1", input: "Hi", voice: "joe" })).rejects.toMatchObject({
    status: 429,
    message: expect.stringContaining("busy"),
  });
  const silence = await at.send("POST", "/api/v1/audio/speech", { model: "tts-1", input: " ", voice: "joe" });
  expect([silence.status, (await silence.json()).error.param]).toEqual([400, "input"]);
});

test("transcribes with the configured server in every form, whole and streamed", async () => {
  await using at = await openOpenAiApp();
  const transcriptions = at.client().audio.transcriptions;
  const file = new File([wavFile(0.5)], "speech.wav");
  await expect(transcriptions.create({ file, model: "whisper-1" })).rejects.toMatchObject({ status: 503 });
  await using server = openFakeTranscription({ models: [{ id: "parakeet" }, { id: "whisper-1" }] });
  const config = { base_url: `${server.origin}/v1`, model: "parakeet" };
  await at.send("PUT", "/api/stt/config", config, at.ownerToken);
  const { text } = await transcriptions.create({ file, model: "whisper-1", language: "en", prompt: "Mira" });
  expect(text).toBe(server.switches.text);
  expect(server.calls.at(-1)!.fields).toMatchObject({ model: "whisper-1", language: "en", prompt: "Mira" });
  await transcriptions.create({ file, model: "gpt-4o-transcribe" });
  expect(server.calls.at(-1)!.fields.model).toBe("parakeet");

  const create = (format: "text" | "verbose_json") =>
    transcriptions.create({ file, model: "whisper-1", response_format: format as "verbose_json" });
  expect(await create("text")).toBe(`${server.switches.text}\n`);
  expect(await create("verbose_json")).toMatchObject({
    text: server.switches.text,
    language: "english",
    duration: 1.5,
  });

  const stream = await transcriptions.create({ file, model: "whisper-1", stream: true });
  const events = await Array.fromAsync(stream);
  expect(events.at(-1)).toMatchObject({ type: "transcript.text.done", text: server.switches.text });
  const deltas = events.flatMap((event) => event.type === "transcript.text.delta" ? [event.delta] : []);
  expect(deltas.join("").trim()).toBe(server.switches.text);

  server.switches.streamError = { type: "error", error: { message: "no more" } };
  const broken = await transcriptions.create({ file, model: "whisper-1", stream: true });
  await expect(Array.fromAsync(broken)).rejects.toThrow(/no more/);

  await expect(transcriptions.create({ file: new File(["words"], "a.txt"), model: "whisper-1" }))
    .rejects.toMatchObject({ status: 415 });
  server.switches.refusal = { status: 422, body: { detail: "cannot decode" } };
  await expect(transcriptions.create({ file, model: "whisper-1" })).rejects.toMatchObject({
    status: 422,
    message: expect.stringContaining("cannot decode"),
  });
});

test("formats subtitles with the times of the server, and refuses them without", () => {
  const segments = [{ start: 0, end: 1.5, text: " Good evening," }, { start: 3661.25, end: 3662, text: "keeper." }];
  const transcript = { text: "Good evening, keeper.", segments };
  expect(formatTranscript(transcript, "srt")).toBe(
    "1\n00:00:00,000 --> 00:00:01,500\nGood evening,\n\n2\n01:01:01,250 --> 01:01:02,000\nkeeper.\n\n",
  );
  expect(formatTranscript(transcript, "vtt")).toMatch(/^WEBVTT\n\n00:00:00\.000 --> 00:00:01\.500\nGood evening,\n\n/);
  for (const without of [undefined, [], [{ text: "no times" }]]) {
    expect(() => formatTranscript({ text: "x", segments: without }, "srt"))
      .toThrow(expect.objectContaining({ code: "unprocessable" }));
  }
});
