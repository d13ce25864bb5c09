import { expect, test } from "vitest";
import { detectTranscriptionServers } from "../../../services/transcription/transcription_server.ts";
import { type FakeTranscriptionSwitches, openFakeTranscription } from "../../helpers/fakes/fake_transcription.ts";

async function detect(changes: Partial<FakeTranscriptionSwitches>) {
  await using server = openFakeTranscription(changes);
  const port = Number(new URL(server.origin).port);
  const found = await detectTranscriptionServers({ hosts: ["127.0.0.1"], ports: [{ port }], deadlineMs: 10_000 });
  return found.map(({ baseUrl, ...rest }) => ({ path: baseUrl.replace(server.origin, ""), ...rest }));
}

test.each<[string, Partial<FakeTranscriptionSwitches>, unknown[]]>([
  [
    "Speaches by the tasks of its models",
    { models: [{ id: "a/whisper", task: "automatic-speech-recognition" }, { id: "b/kokoro", task: "text-to-speech" }] },
    [{ path: "/v1", software: "Speaches", models: ["a/whisper"] }],
  ],
  [
    "LocalAI by its well-known document",
    { pages: { "/.well-known/localai.json": { version: "v3" } } },
    [{ path: "/v1", software: "LocalAI", models: ["whisper-1"] }],
  ],
  ["other servers by their models", {}, [{ path: "/v1", software: "OpenAI-compatible", models: ["whisper-1"] }]],
  [
    "KoboldCpp with a Whisper model",
    { pages: { "/api/extra/version": { result: "KoboldCpp", transcribe: true } } },
    [{ path: "/v1", software: "KoboldCpp", models: [] }],
  ],
  ["whisper.cpp by its header", { models: undefined, serverHeader: "whisper.cpp" }, [
    { path: "", software: "whisper.cpp", models: [] },
  ]],
  ["whisper.cpp by its page", { models: undefined, pages: { "/": "<html><title>Whisper.cpp Server</title></html>" } }, [
    { path: "", software: "whisper.cpp", models: [] },
  ]],
])("detects %s", async (_name, changes, expected) => {
  expect(await detect(changes)).toEqual(expected);
});

test.each<[string, Partial<FakeTranscriptionSwitches>]>([
  ["a model server without a model that transcribes", { models: [{ id: "gemma" }] }],
  ["KoboldCpp without a Whisper model", {
    pages: { "/api/extra/version": { result: "KoboldCpp", transcribe: false } },
  }],
  ["a web page", { models: undefined, pages: { "/": "<title>Router</title>" } }],
])("ignores %s", async (_name, changes) => {
  expect(await detect(changes)).toEqual([]);
});
