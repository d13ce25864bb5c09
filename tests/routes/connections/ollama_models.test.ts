/** Models of Ollama: downloads as jobs, and what the server reports about each. */
import { expect, test } from "vitest";
import { ask, gather, until, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { type FakeOllama, type FakeOllamaOptions, openFakeOllama } from "../../helpers/fakes/llm/fake_ollama.ts";

const KIND = { kind: "ollama" };

interface Job {
  id: string;
  state: string;
  title: string;
  progress: { done: number; total: number | null; unit: string } | null;
  error?: { code: string; message: string };
}

async function openOllama(app: TestApp, options: FakeOllamaOptions, fields = {}): Promise<FakeOllama> {
  const ollama = await openFakeOllama(options);
  await useModel(app, ollama, { ...KIND, ...fields });
  return ollama;
}

function pull(app: TestApp, model: string, id = "double"): Promise<Response> {
  return app.post(`/api/connections/${id}/pull`, { model });
}

async function readJob(app: TestApp, id: string): Promise<Job> {
  return await (await app.get(`/api/jobs/${id}`)).json();
}

async function waitForState(app: TestApp, id: string, state: string): Promise<Job> {
  await until(async () => (await readJob(app, id)).state === state, `the job is ${state}`);
  return await readJob(app, id);
}

async function connection(app: TestApp) {
  const list: Record<string, unknown>[] = await (await app.get("/api/connections")).json();
  return list.find((one) => one.id === "double") as { dialect: { models?: Record<string, unknown> } };
}

function pullsOf(ollama: FakeOllama): unknown[] {
  return ollama.requests.filter(({ path }) => path === "/api/pull").map(({ json }) => json);
}

test("a download is a job with its progress in bytes; then the model responds", async () => {
  const gate = Promise.withResolvers<void>();
  await using app = await openTestApp();
  await using ollama = await openOllama(app, { models: {}, library: { qwen3: [1000, 10] }, pulling: gate.promise });
  const response = await pull(app, "qwen3");
  expect(response.status).toBe(202);
  const job: Job = await response.json();
  expect(job).toMatchObject({
    kind: "model_pull",
    title: "qwen3",
    detail: { connection_id: "double", model: "qwen3" },
  });
  await until(async () => (await readJob(app, job.id)).progress?.done === 500, "half of the first file is there");
  const listed: Job[] = await (await app.get("/api/jobs")).json();
  expect(listed[0]).toMatchObject({
    id: job.id,
    state: "running",
    progress: { done: 500, total: 1000, unit: "bytes" },
  });
  gate.resolve();
  expect((await waitForState(app, job.id, "done")).progress).toEqual({ done: 1010, total: 1010, unit: "bytes" });
  expect(pullsOf(ollama)).toEqual([{ model: "qwen3", stream: true }]);
  expect((await gather(await ask(app, 1, { model: "qwen3" }))).text).toBe("Hello");
  // The capabilities of the new model are known at once.
  expect((await connection(app)).dialect.models).toMatchObject({ "qwen3:latest": { thinking: true } });
});

test("a second download of the same model joins the first, even with the tag latest or from another connection", async () => {
  const gate = Promise.withResolvers<void>();
  await using app = await openTestApp();
  await using ollama = await openOllama(app, { library: { qwen3: [1000] }, pulling: gate.promise });
  await app.put("/api/connections", { id: "same", name: "Same", ...KIND, base_url: `${ollama.url}/v1` });
  const ids = [];
  for (const [model, id] of [["qwen3", "double"], ["qwen3:latest", "double"], ["qwen3", "same"]] as const) {
    ids.push((await (await pull(app, model, id)).json() as Job).id);
  }
  expect(new Set(ids).size).toBe(1);
  gate.resolve();
  await waitForState(app, ids[0]!, "done");
  expect(pullsOf(ollama)).toHaveLength(1);
});

test("cancel ends the request to the server", async () => {
  const gate = Promise.withResolvers<void>();
  await using app = await openTestApp();
  await using ollama = await openOllama(app, { models: {}, library: { qwen3: [1000] }, pulling: gate.promise });
  const { id }: Job = await (await pull(app, "qwen3")).json();
  await until(async () => (await readJob(app, id)).progress?.done === 500, "half of the first file is there");
  expect((await app.post(`/api/jobs/${id}/cancel`, {})).status).toBe(200);
  expect((await readJob(app, id)).state).toBe("cancelled");
  gate.resolve();
  expect(Object.keys(ollama.options.models ?? {})).toEqual([]);
});

test("a download resumes after a restart", async () => {
  const gate = Promise.withResolvers<void>();
  await using app = await openTestApp();
  await using ollama = await openOllama(app, { library: { qwen3: [1000] }, pulling: gate.promise });
  const { id }: Job = await (await pull(app, "qwen3")).json();
  await until(async () => (await readJob(app, id)).progress?.done === 500, "half of the first file is there");
  await app.restart(() => Promise.resolve(gate.resolve()));
  await waitForState(app, id, "done");
  expect(pullsOf(ollama)).toHaveLength(2);
});

test.each(
  [
    ["nothing", undefined, "its library doesn't have this model"],
    ["qwen3", "error", "max retries exceeded"],
    ["qwen3", "cut", "model"],
  ] as const,
)("a download of %s that ends with %s fails with a reason", async (model, failPull, reason) => {
  await using app = await openTestApp();
  await using _ = await openOllama(app, { library: { qwen3: [1000] }, failPull });
  const { id }: Job = await (await pull(app, model)).json();
  const { error } = await waitForState(app, id, "failed");
  expect(error).toMatchObject({ code: "upstream_error", message: expect.stringContaining(reason) });
});

test("only connections of the kind ollama download models", async () => {
  await using app = await openTestApp();
  await using _ = await openOllama(app, {}, { kind: "openai" });
  const refused = await pull(app, "qwen3");
  expect([refused.status, (await refused.json()).error.code]).toEqual([400, "invalid_request"]);
  expect((await pull(app, "qwen3", "other")).status).toBe(404);
  expect((await pull(app, " ")).status).toBe(400);
});

test("whether models think is known as soon as the connection is saved", async () => {
  const models = {
    thinker: { capabilities: ["completion", "thinking"] },
    plain: { capabilities: ["completion"] },
    "gpt-oss:20b": { family: "gptoss" },
  };
  await using app = await openTestApp();
  await using _ = await openOllama(app, { models }, { model: "plain" });
  const read = async () => (await connection(app)).dialect.models;
  await until(async () => Object.keys(await read() ?? {}).length === 3, "all models are described");
  expect(await read()).toEqual({
    "thinker:latest": { thinking: true },
    "plain:latest": { thinking: false },
    "gpt-oss:20b": { thinking: true },
  });
});

test("a chat finds out whether its model thinks", async () => {
  await using app = await openTestApp();
  await using ollama = await openOllama(app, { models: { old: { capabilities: ["completion"] } } });
  // Saving the connection asks for all models, too.
  await until(async () => (await connection(app)).dialect.models !== undefined, "the first model is described");
  ollama.options.models = { fresh: { capabilities: ["completion", "thinking"] } };
  await gather(await ask(app, 1, { model: "fresh" }));
  expect((await connection(app)).dialect.models).toMatchObject({ fresh: { thinking: true } });
});

test("a name without a tag is listed if the tag latest is", async () => {
  await using app = await openTestApp();
  await using ollama = await openOllama(app, { models: { qwen3: {} } });
  const advice = async (kind: string, model: string) => {
    const body = { kind, base_url: ollama.url, model };
    return (await (await app.post("/api/connections/test", body)).json()).advice;
  };
  expect(await advice("ollama", "qwen3")).toBeUndefined();
  expect(await advice("ollama", "qwen3:latest")).toBeUndefined();
  expect(await advice("ollama", "qwen3:8b")).toContain("doesn't list");
});
