import { expect, test } from "vitest";
import { findServers } from "../../../services/server_search/server_search.ts";
import { openFakeSpeech } from "../../helpers/fakes/fake_speech.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";

/** Searches one port, where each kind expects it. */
function search(port: number) {
  return findServers({
    hosts: ["127.0.0.1"],
    deadlineMs: 20_000,
    modelPorts: [{ port, as: 8000 }],
    speechPorts: [{ port, isOwn: false }],
    otherPorts: [{ port }],
  });
}

function portOf({ origin }: { origin: string }): number {
  return Number(new URL(origin).port);
}

test("a speech server whose models have names of its own isn't offered as a chat model", async () => {
  await using speech = openFakeSpeech({ models: { data: [{ id: "mine" }] }, voices: { voices: ["emma"] } });
  expect(await search(portOf(speech))).toMatchObject({ models: [], speech: [{ baseUrl: speech.url, voices: 1 }] });
});

test("a server that only speaks and transcribes is offered for both, and not as a chat model", async () => {
  await using speech = openFakeSpeech({ models: { data: [{ id: "tts-1" }, { id: "parakeet" }] }, voices: undefined });
  expect(await search(portOf(speech))).toMatchObject({
    models: [],
    speech: [{ models: ["tts-1"] }],
    transcription: [{ models: ["parakeet"] }],
  });
});

test("a server with a chat model, too, is offered for all that it does", async () => {
  await using speech = openFakeSpeech({ models: { data: [{ id: "qwen" }, { id: "tts-1" }] }, voices: undefined });
  expect(await search(portOf(speech))).toMatchObject({ models: [{ models: ["qwen", "tts-1"] }], speech: [{}] });
});

test("a model server is offered as one, and as nothing else", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", models: ["gemma"] });
  expect(await search(llm.port)).toMatchObject({
    models: [{ software: "llama.cpp", models: ["gemma"] }],
    speech: [],
    transcription: [],
    images: [],
  });
});
