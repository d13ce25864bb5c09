import { afterEach, beforeEach, expect, test } from "vitest";
import chatPreset from "../fixtures/sillytavern/preset_chat_completion.json" with { type: "json" };
import textPreset from "../fixtures/sillytavern/preset_text_completion.json" with { type: "json" };
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
// Never the same time twice: what was saved within one millisecond has no order.
let nowMs = Date.now();
beforeEach(async () => {
  app = await openTestApp({ now: () => nowMs++ });
});
afterEach(() => app[Symbol.asyncDispose]());

const json = async (response: Response | Promise<Response>) => await (await response).json();

function upload(file: BlobPart, fileName = "preset.json") {
  const form = new FormData();
  form.set("file", new File([file], fileName));
  return app.post("/api/presets/import", form);
}

test("a new installation has the built-in preset, which can be read and exported but not changed", async () => {
  expect(await json(app.get("/api/presets"))).toMatchObject([{ id: "default", builtin: true, prompt_count: 11 }]);
  const builtin = await json(app.get("/api/presets/default"));
  expect(builtin).toMatchObject({ builtin: true, sampler: {}, dialect: "chat_completion" });
  expect(builtin.prompt_order[0].order[0]).toEqual({ identifier: "main", enabled: true });
  expect(await json(app.get("/api/presets/default/export"))).toMatchObject({ prompts: builtin.prompts });
  for (const id of ["default", "Default"]) {
    expect((await app.put(`/api/presets/${id}`, { name: "Mine" })).status).toBe(409);
    expect((await app.delete(`/api/presets/${id}`)).status).toBe(409);
  }
});

test("a preset is created, partly changed, listed, deleted and restored", async () => {
  const created = await app.put("/api/presets/p1", { name: "Warm", models: ["mist*"], sampler: { temperature: 1.2 } });
  expect(created.status).toBe(201);
  expect(created.headers.get("etag")).toBe('"1"');
  expect(await created.json()).toMatchObject({
    id: "p1",
    name: "Warm",
    models: ["mist*"],
    builtin: false,
    prompt_count: 0,
    rest: {},
    sampler: { temperature: 1.2 },
    prompts: [],
    prompt_order: [],
    dialect: "chat_completion",
  });
  const prompts = [{ identifier: "main", role: "system", content: "Be brief.", mine: { a: 1 } }];
  const changed = await app.put("/api/presets/p1", { prompts, rest: { new_chat_prompt: "" } });
  expect(changed.status).toBe(200);
  const stored = await changed.json();
  expect(stored).toMatchObject({ name: "Warm", sampler: { temperature: 1.2 }, prompts, prompt_count: 1 });
  expect(await json(app.put("/api/presets/p2", { sampler: null, prompts: null, models: null })))
    .toMatchObject({ name: "Preset", sampler: {}, prompts: [] });
  await app.restart();
  expect(await json(app.get("/api/presets/p1"))).toEqual(stored);
  expect((await json(app.get("/api/presets"))).map(({ id }: { id: string }) => id)).toEqual(["p2", "p1", "default"]);

  expect((await app.delete("/api/presets/p1", { headers: { "If-Match": '"1"' } })).status).toBe(412);
  expect((await app.put("/api/presets/p1", {}, { headers: { "If-Match": '"1"' } })).status).toBe(412);
  expect((await app.delete("/api/presets/p1", { headers: { "If-Match": '"2"' } })).status).toBe(204);
  expect((await app.get("/api/presets/p1")).status).toBe(404);
  const [entry] = await json(app.get("/api/trash"));
  expect(entry).toMatchObject({ kind: "preset", title: "Warm" });
  expect((await app.post(`/api/trash/${entry.id}/restore`)).status).toBe(204);
  expect(await json(app.get("/api/presets/p1"))).toEqual(stored);
});

test.each([
  ["chat completion", chatPreset, { temperature: 0.85, max_tokens: 700 }, 13],
  ["text completion", textPreset, { temperature: 1.15, max_tokens: 420 }, 0],
])("SillyTavern's preset for %s is imported and exported unchanged", async (_, file, sampler, prompt_count) => {
  const imported = await upload(JSON.stringify(file), "By the sea.json");
  expect(imported.status).toBe(201);
  const preset = await imported.json();
  expect(preset).toMatchObject({ name: "By the sea", sampler, prompt_count });
  const exported = await app.get(`/api/presets/${preset.id}/export`);
  expect(exported.headers.get("content-disposition")).toContain('filename="By the sea.json"');
  expect(await exported.json()).toEqual(file);
  // An editor that sends everything back changes nothing.
  expect((await app.put(`/api/presets/${preset.id}`, preset)).status).toBe(200);
  expect(await json(app.get(`/api/presets/${preset.id}/export`))).toEqual(file);
});

test("rejects a file that isn't a preset and leaves nothing behind", { tags: ["P07", "P12"] }, async () => {
  expect((await upload("PNG")).status).toBe(422);
  expect((await upload("{}")).status).toBe(422);
  const put = async (body: Record<string, unknown> | string) =>
    (await app.put("/api/presets/p1", body, { headers: { "Content-Type": "application/json" } })).status;
  expect(await put({ sampler: { temperature: "hot" } })).toBe(400);
  expect(await put({ sampler: { "Top P": 1 } })).toBe(400);
  expect(await put({ prompts: [{ name: "nameless" }] })).toBe(400);
  expect(await put({ prompts: [{ identifier: "x", content: 5 }] })).toBe(400);
  expect(await put({ prompt_order: [{ order: [{ identifier: "x" }] }] })).toBe(400);
  expect(await put({ models: [""] })).toBe(400);
  expect(await put({ rest: [] })).toBe(400);
  expect(await put(`{"rest":{"x":${"[".repeat(50_000)}${"]".repeat(50_000)}}}`)).toBe(400);
  expect(await put({ rest: { x: "x".repeat(6 * 1024 * 1024) } })).toBe(413);
  expect(await json(app.get("/api/presets"))).toHaveLength(1);
});

test("the pinned preset applies, otherwise the best match for the model, the one in the settings, or the built-in one", async () => {
  const presets = await app.services.presets();
  const named = async (conversationPresetId?: string | null, model?: string) =>
    (await presets.resolve({ conversationPresetId, model })).id;
  expect(await named()).toBe("default");
  await app.put("/api/presets/pinned", { sampler: { temperature: 0.1 } });
  await app.put("/api/presets/wide", { models: ["*"] });
  await app.put("/api/presets/near", { models: ["other", "MISTRAL-*"] });
  await app.put("/api/presets/chosen", {});
  expect(await named("pinned", "mistral-7b")).toBe("pinned");
  expect(await named("default", "mistral-7b")).toBe("default");
  expect(await named(null, "mistral-7b")).toBe("near");
  expect(await named("gone", "llama")).toBe("wide");
  expect(await named()).toBe("default");
  await app.patch("/api/settings", { preset_id: "chosen" });
  expect(await named(undefined, "mistral-7b")).toBe("near");
  expect(await named()).toBe("chosen");
  await app.delete("/api/presets/chosen");
  expect(await named()).toBe("default");
  expect((await presets.resolve({ conversationPresetId: "pinned" })).sampler).toEqual({ temperature: 0.1 });
});

test("writes publish events", async () => {
  const told: unknown[] = [];
  app.services.events.subscribe((event) => void told.push(event));
  await app.put("/api/presets/p1", {});
  await app.delete("/api/presets/p1");
  expect(told).toEqual([
    { kind: "preset", id: "p1", revision: 1 },
    { kind: "preset", id: "p1" },
    { kind: "trash", id: "trash" },
  ]);
});
