import { expect, test } from "vitest";
import { chunksOf, sillyTavernReads } from "../helpers/files/cards.ts";
import { until, useModel } from "../helpers/app/chat_client.ts";
import { FakeA1111 } from "../helpers/fakes/fake_a1111.ts";
import { FakeComfy } from "../helpers/fakes/fake_comfy.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { noise } from "../helpers/files/pictures.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

const CARD = { name: "Fern", description: "{{char}} is a red fox with a green scarf." };

async function statusOf(app: TestApp) {
  return await (await app.get("/api/characters/fern/avatar/status")).json();
}

const reached = (app: TestApp, state: string) =>
  until(async () => (await statusOf(app)).state === state, `the state ${state}`);

async function withCharacter(app: TestApp, backend?: { url: string }, kind = "a1111"): Promise<void> {
  await app.put("/api/characters/fern", { card: CARD });
  if (backend !== undefined) await app.put("/api/image/connections", { id: "b", kind, base_url: backend.url });
}

const start = (app: TestApp) => app.post("/api/characters/fern/avatar/generate");

test("a model writes a prompt from the card, the backend draws it, and the image becomes the portrait with the card inside", async () => {
  await using llm = await openFakeLlm({ pieces: ["<think>A fox?</think>Prompt: red fox, ", "green scarf, forest"] });
  await using backend = new FakeA1111({ isManual: true, picture: noise(1200, 1500) });
  await using app = await openTestApp();
  await useModel(app, llm);
  await withCharacter(app, backend);
  expect(await statusOf(app)).toEqual({ state: "none" });
  expect((await start(app)).status).toBe(202);
  await backend.begun();
  backend.step(10);
  await until(async () => (await statusOf(app)).progress === 0.5, "progress");
  expect(await statusOf(app)).toMatchObject({ state: "running", started_at: expect.any(String) });
  backend.go();
  await reached(app, "done");
  expect(JSON.stringify(llm.chats[0]!.json!.messages)).toContain("Fern is a red fox with a green scarf.");
  expect(backend.orders[0]).toMatchObject({ width: 512, height: 768 });
  expect(backend.orders[0]!.prompt).toMatch(/^red fox, green scarf, forest, portrait/);
  const avatar = await (await app.get("/api/characters/fern/avatar")).bytes();
  const size = new DataView(avatar.buffer);
  expect([size.getUint32(16), size.getUint32(20)]).toEqual([819, 1024]);
  expect(sillyTavernReads(avatar).data.name).toBe("Fern");
  // Metadata that the backend wrote into the image is removed.
  expect(chunksOf(avatar).filter(({ type }) => type === "tEXt").map(({ text }) => text.split("\0")[0]).sort()).toEqual([
    "ccv3",
    "chara",
  ]);
});

test("with only the demo, the card itself is the prompt", async () => {
  await using backend = new FakeComfy();
  await using app = await openTestApp();
  await withCharacter(app, backend, "comfyui");
  await start(app);
  await reached(app, "done");
  expect(backend.jobs[0]!.workflow["6"]!.inputs.text).toMatch(/^Fern is a red fox with a green scarf\., portrait/);
});

test("a waiting portrait is pending, and one in progress when Parlor stopped is completed after the next start", async () => {
  await using backend = new FakeA1111({ isManual: true });
  await using app = await openTestApp();
  await withCharacter(app, backend);
  await app.put("/api/characters/wolf", { card: { name: "Wolf", description: "a grey wolf" } });
  await start(app);
  await backend.begun();
  await app.post("/api/characters/wolf/avatar/generate");
  expect(await (await app.get("/api/characters/wolf/avatar/status")).json()).toMatchObject({ state: "pending" });
  await app.restart(async () => {
    await until(() => backend.isIdle, "the backend's being free");
    backend.switches.isManual = false;
  });
  await reached(app, "done");
  await until(
    async () => (await (await app.get("/api/characters/wolf/avatar/status")).json()).state === "done",
    "the second portrait",
  );
  await app.restart();
  expect(await statusOf(app)).toMatchObject({ state: "done", finished_at: expect.any(String) });
});

test("a portrait that can't be drawn fails with a reason and changes nothing", async () => {
  await using app = await openTestApp();
  await withCharacter(app);
  await start(app);
  await reached(app, "failed");
  expect((await statusOf(app)).error).toMatchObject({
    code: "not_available",
    message: expect.stringContaining("Images"),
  });
  await using backend = new FakeA1111({ failure: "a1111" });
  await app.put("/api/image/connections", { kind: "a1111", base_url: backend.url });
  await start(app);
  await until(async () => (await statusOf(app)).error?.code === "upstream_error", "the other failure");
  expect((await statusOf(app)).error.message).toContain("out of memory");
  expect((await app.get("/api/characters/fern/avatar")).status).toBe(404);
});

test("a model that fails makes the portrait fail before anything is drawn", async () => {
  await using llm = await openFakeLlm();
  await using backend = new FakeA1111();
  await using app = await openTestApp();
  await useModel(app, llm);
  await llm.close();
  await withCharacter(app, backend);
  await start(app);
  await reached(app, "failed");
  expect((await statusOf(app)).error.code).toBe("upstream_error");
  expect(backend.orders).toEqual([]);
});
