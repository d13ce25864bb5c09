import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, gather, until, useModel } from "../helpers/app/chat_client.ts";
import { got, importReport } from "../helpers/app/imported.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { answerText, FakeTools } from "../helpers/fakes/fake_tools.ts";
import { type FakeLlm, type ManualAnswer, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

let app: TestApp;
let llm: FakeLlm;
let nowMs: number;
let tools: FakeTools;
beforeEach(async () => {
  nowMs = Date.parse("2026-05-01T22:30:00Z");
  llm = await openFakeLlm();
  tools = new FakeTools();
  app = await openTestApp({ now: () => nowMs, toolSources: [() => Promise.resolve(tools)] });
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const chat = "/api/conversations/c1/usage";
const model = { connection_id: "double", connection_name: "Double", model: "fake-model" };

/** Ends a streamed answer with a usage of its own. */
async function endWith(answer: ManualAnswer, usage: Record<string, unknown>): Promise<void> {
  const last = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage };
  await answer.raw(`data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
  await answer.finish();
}

async function answerWith(usage: Record<string, unknown>, send: () => Promise<Response>): Promise<void> {
  llm.switches.manual = "on";
  const sent = send();
  const answer = await llm.nextCall();
  await answer.emit("Hello");
  await endWith(answer, usage);
  await (await sent).text();
  llm.switches.manual = "off";
}

test("counts every reply of a chat, regenerated ones too, per day, model and purpose", async () => {
  await gather(await ask(app, 1));
  await gather(await ask(app, 1, { action: "regenerate" }));
  const { days, models, total } = await got(app, "/api/usage?days=2");
  const sums = {
    replies: 2,
    uncounted_calls: 0,
    prompt_tokens: 22,
    cached_tokens: 0,
    completion_tokens: 14,
    first_word_ms: expect.any(Number),
    tokens_per_second: expect.toSatisfy((value: unknown) => value === null || Number(value) > 0),
    cost: null,
  };
  expect(models).toEqual([{ ...model, kind: "reply", ...sums }]);
  expect(total).toEqual({ ...sums, background_calls: 0 });
  expect(days.map(({ date, models }: { date: string; models: unknown[] }) => [date, models.length])).toEqual([
    ["2026-04-30", 0],
    ["2026-05-01", 1],
  ]);
  expect(await got(app, chat)).toEqual({ models, total });
  // In Tokyo it's the next day.
  const tokyo = await got(app, "/api/usage?days=1&time_zone=Asia/Tokyo");
  expect(tokyo.days).toMatchObject([{ date: "2026-05-02", total: { replies: 2 } }]);
});

test("marks background calls and requests of programs", async () => {
  await gather(await ask(app, 1));
  const body = { model: "default", messages: [{ role: "user", content: "hi" }] };
  await (await app.post("/api/v1/chat/completions", body)).text();
  await (await app.post("/api/v1/chat/completions", { ...body, stream: true })).text();
  await (await app.post("/api/v1/responses", { model: "default", input: "hi", store: false })).text();
  const stored = { ...body, store: true, metadata: { conversation_id: "c1" } };
  await (await app.post("/api/v1/chat/completions", stored)).text();
  const { modelRouter } = await app.services.llm();
  await modelRouter.ask([{ role: "user", content: "an image prompt" }], AbortSignal.timeout(60_000));
  const counts = async (path: string) =>
    Object.fromEntries(
      (await got(app, path)).models.map(({ kind, replies }: { kind: string; replies: number }) => [kind, replies]),
    );
  expect(await counts("/api/usage")).toEqual({ reply: 1, api: 4, background: 1 });
  expect(await counts(chat)).toEqual({ reply: 1, api: 1 });
  expect((await got(app, "/api/usage")).total).toMatchObject({ replies: 5, background_calls: 1 });
});

test("counts the title of a chat as a background call of that chat", async () => {
  await using own = await openTestApp({ titleIdleMs: 10 });
  await useModel(own, llm);
  await gather(await ask(own, 1));
  const kinds = async () => (await got(own, chat)).models.map(({ kind }: { kind: string }) => kind).sort();
  await until(async () => (await kinds()).length === 2, "the title is counted");
  expect(await kinds()).toEqual(["background", "reply"]);
});

test("counts a reply that called tools once, with the tokens of all its calls", async () => {
  tools.set("lookup", () => answerText("found"), { permission: "allow" });
  llm.switches.manual = "on";
  const asked = ask(app, 1, { context: "server" });
  await (await llm.nextCall()).callTools({ id: "k1", name: "lookup", arguments: "{}" });
  const second = await llm.nextCall();
  await second.emit("Found it.");
  await second.finish();
  await gather(await asked);
  expect((await got(app, chat)).total).toMatchObject({ replies: 1, prompt_tokens: 22, completion_tokens: 14 });
});

test("counts a stopped reply without usage, and no call that failed before its first word", async () => {
  llm.switches.manual = "on";
  const asked = ask(app, 1);
  await (await llm.nextCall()).emit("Half");
  const reply = gather(await asked);
  await app.post("/api/chat/replies/a1/stop");
  await reply;
  const failed = ask(app, 2);
  await (await llm.nextCall()).fail("cut");
  await (await failed).text();
  const { total } = await got(app, "/api/usage");
  expect(total).toMatchObject({ replies: 1, uncounted_calls: 1, prompt_tokens: 0, completion_tokens: 0 });
});

test("reads cached tokens and llama.cpp's own timings", async () => {
  llm.switches.timings = "on";
  llm.switches.usage = "none";
  await gather(await ask(app, 1));
  const { total } = await got(app, "/api/usage");
  expect(total).toMatchObject({ prompt_tokens: 11, cached_tokens: 4, completion_tokens: 7, tokens_per_second: 100 });
});

test("takes the cost that the server says, and the owner's price for other calls, earlier ones too", async () => {
  const usage = { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500 };
  await answerWith({ ...usage, cost: 0.25 }, () => ask(app, 1));
  expect((await got(app, chat)).total.cost).toBe(0.25);
  const cached = { ...usage, prompt_tokens_details: { cached_tokens: 400 } };
  await answerWith(cached, () => ask(app, 2));
  expect((await got(app, chat)).total.cost).toBe(0.25);
  const price = { prompt: 10, completion: 20, cached: 1 };
  const key = { connection_id: "double", model: "fake-model" };
  const saved = await app.put("/api/usage/prices", { ...key, price });
  expect(await saved.json()).toEqual([{ ...key, ...price }]);
  // 600 tokens at 10, 400 at 1 and 500 at 20 dollars per million
  expect((await got(app, chat)).total.cost).toBeCloseTo(0.25 + 0.0164, 10);
  expect((await got(app, "/api/usage")).days.at(-1).models[0].cost).toBeCloseTo(0.2664, 10);
  await app.put("/api/usage/prices", { ...key, price: null });
  expect(await got(app, "/api/usage/prices")).toEqual([]);
  expect((await got(app, chat)).total.cost).toBe(0.25);
});

test("rejects unknown time zones, days out of range and negative prices", async () => {
  for (const query of ["time_zone=Nowhere", "days=0", "days=367", "days=x"]) {
    const answer = await app.get(`/api/usage?${query}`);
    expect([answer.status, (await answer.json()).error.code]).toEqual([400, "invalid_request"]);
  }
  const bad = { connection_id: "double", model: "m", price: { prompt: -1, completion: 1 } };
  expect((await app.put("/api/usage/prices", bad)).status).toBe(400);
  expect((await app.get("/api/conversations/none/usage")).status).toBe(404);
});

test("deletes all counts, and those of a chat with the chat", async () => {
  await gather(await ask(app, 1));
  await gather(await ask(app, 1, { conversation_id: "c2" }));
  expect((await got(app, chat)).total.replies).toBe(1);
  await app.delete("/api/conversations/c2");
  expect((await app.delete("/api/trash")).status).toBe(204);
  expect((await app.put("/api/conversations/c2", { title: "New", messages: [] })).status).toBe(201);
  expect((await got(app, "/api/conversations/c2/usage")).models).toEqual([]);
  expect((await got(app, "/api/usage")).total.replies).toBe(2);
  expect((await app.delete("/api/usage")).status).toBe(204);
  expect((await got(app, "/api/usage")).models).toEqual([]);
  expect((await got(app, chat)).models).toEqual([]);
  await gather(await ask(app, 2));
  expect((await got(app, chat)).total.replies).toBe(1);
});

test("keeps counts over a restart, and for a year", async () => {
  await gather(await ask(app, 1));
  await app.restart();
  expect((await got(app, "/api/usage")).total.replies).toBe(1);
  const usage = await app.services.usage();
  // In steps: what is old is told by the time that the server has seen.
  for (let day = 0; day < 364; day += 2) {
    nowMs += 2 * DAY_MS;
    await app.services.runMaintenance();
  }
  expect((await usage.report({ days: 366, timeZone: "UTC" })).models).toHaveLength(1);
  nowMs += 2 * DAY_MS + 60 * 60 * 1000;
  await app.services.runMaintenance();
  nowMs += 2 * DAY_MS;
  await app.services.runMaintenance();
  expect((await usage.export()).hours).toEqual({});
});

test("exports and imports counts and prices, without counting an hour twice", async () => {
  await gather(await ask(app, 1));
  const price = { prompt: 1, completion: 2 };
  await app.put("/api/usage/prices", { connection_id: "double", model: "fake-model", price });
  const before = await got(app, "/api/usage");
  const zip = new Uint8Array(await (await app.get("/api/export")).arrayBuffer());
  await using other = await openTestApp({ now: () => nowMs });
  expect((await importReport(other, "kind=parlor", zip)).counts.settings).toMatchObject({ added: 1 });
  expect(await got(other, "/api/usage")).toEqual(before);
  expect((await importReport(other, "kind=parlor", zip)).counts.settings).toMatchObject({ added: 0 });
  expect(await got(other, "/api/usage")).toEqual(before);
});
