import { expect, test } from "vitest";
import { detectSpeechServerAt, detectSpeechServers } from "../../../services/speech/speech_detection.ts";
import { openFakeSpeech } from "../../helpers/fakes/fake_speech.ts";
import { openFakeHttp } from "../../helpers/fakes/llm/fake_llm_http.ts";

/** Long enough for a busy test machine; a server that answers never needs it. */
const deadlineMs = 20_000;

function find(port: number, isOwn = false) {
  return detectSpeechServers({ hosts: ["127.0.0.1"], ports: [{ port, isOwn }], deadlineMs });
}

test.each([
  {
    finds: { software: "Kokoro-FastAPI", models: ["kokoro"], voices: 2 },
    models: { data: [{ id: "kokoro", owned_by: "kokoro" }] },
    voices: { voices: ["af_sky", "af_heart"] },
  },
  {
    finds: { software: "Speaches", models: ["a/kokoro"], voices: 0 },
    models: {
      data: [{ id: "a/kokoro", task: "text-to-speech" }, { id: "whisper", task: "automatic-speech-recognition" }],
    },
  },
  {
    finds: { software: "Orpheus-FastAPI", models: ["orpheus"], voices: 2 },
    models: { data: [{ id: "orpheus" }] },
    voices: { voices: ["tara", "leah"] },
  },
  {
    finds: { software: "LocalAI", models: ["tts-1"], voices: 0 },
    models: { data: [{ id: "qwen" }, { id: "tts-1" }] },
    pages: { "/.well-known/localai.json": { version: "v3" } },
  },
  {
    finds: { software: "Chatterbox-TTS-Server", models: [], voices: 1 },
    voices: { voices: ["emma.wav"] },
    pages: { "/api/model-info": { loaded: true } },
  },
  { finds: { software: "mlx-audio", models: [], voices: 1 }, voices: ["a"], pages: { "/": { message: "MLX-Audio" } } },
  { finds: { software: "OpenAI-compatible", models: ["m-tts"], voices: 0 }, models: { data: [{ id: "m-tts" }] } },
  {
    finds: { software: "KoboldCpp", models: [], voices: 0 },
    models: { data: [{ id: "koboldcpp/gemma" }] },
    pages: { "/api/extra/version": { result: "KoboldCpp", tts: true } },
  },
  {
    finds: undefined,
    models: { data: [{ id: "koboldcpp/gemma" }] },
    pages: { "/api/extra/version": { result: "KoboldCpp", tts: false } },
  },
  { finds: undefined, models: { data: [{ id: "qwen" }] } },
])("a speech server is recognized by what it lists: $finds", async ({ finds, models, voices, pages = {} }) => {
  await using server = openFakeSpeech({ models, voices, pages });
  const port = Number(new URL(server.origin).port);
  expect(await find(port)).toEqual(finds === undefined ? [] : [{ baseUrl: server.url, ...finds }]);
  expect(server.requests.every(({ headers }) => !headers.has("authorization"))).toBe(true);
  const { isReachable, server: found } = await detectSpeechServerAt(`127.0.0.1:${port}`);
  expect([isReachable, found?.software]).toEqual([true, finds?.software]);
});

test("a server that asks for a key is offered only where speech servers have their port", async () => {
  const http = await openFakeHttp((_, answer) => answer.json(401, { error: { message: "Invalid API key" } }));
  expect(await find(http.port)).toEqual([]);
  expect(await find(http.port, true)).toMatchObject([{ software: "OpenAI-compatible", needsKey: true }]);
  await http.close();
});

test("known software is first", async () => {
  await using unknown = openFakeSpeech({ models: { data: [{ id: "m-tts" }] }, voices: undefined });
  await using kokoro = openFakeSpeech({ models: { data: [{ id: "kokoro", owned_by: "kokoro" }] } });
  const ports = [unknown, kokoro].map(({ origin }) => ({ port: Number(new URL(origin).port), isOwn: false }));
  const found = await detectSpeechServers({ hosts: ["127.0.0.1"], ports, deadlineMs });
  expect(found.map(({ software }) => software)).toEqual(["Kokoro-FastAPI", "OpenAI-compatible"]);
});
