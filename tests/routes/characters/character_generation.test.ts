import { expect, test } from "vitest";
import { framesOf, until, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, type FakeLlmOptions, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { noise } from "../../helpers/files/pictures.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

const CARD = {
  name: "Fern",
  description: "{{char}} keeps a lighthouse.",
  personality: "calm",
  scenario: "A storm.",
  first_mes: '*waves* "Come in, {{user}}."',
  mes_example: "{{user}}: Hm?\n{{char}}: Hm.",
  creator_notes: "For stormy nights.",
  tags: ["sea", "calm"],
};
/** The card as a model streams it, a few letters at a time. */
const PIECES = JSON.stringify(CARD).match(/[\s\S]{1,9}/g)!;
const IDEA = { idea: "a lighthouse keeper" };

async function withModel(options: FakeLlmOptions = {}): Promise<{ llm: FakeLlm; app: TestApp } & AsyncDisposable> {
  const llm = await openFakeLlm({ pieces: PIECES, ...options });
  const app = await openTestApp();
  await useModel(app, llm);
  return {
    llm,
    app,
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await llm.close();
    },
  };
}

const create = (app: TestApp, body: Record<string, unknown> = IDEA) => app.post("/api/characters/create", body);

/** Assembles the events of a stream, as the page does. */
async function readAll(response: Response) {
  const fields: Record<string, unknown> = {};
  const events: { event: string; data: Record<string, unknown> }[] = [];
  for await (const { event, data: text } of framesOf(response)) {
    const data = JSON.parse(text);
    events.push({ event: event!, data });
    if (event !== "field") continue;
    fields[data.field] = data.append === undefined ? data.value : `${fields[data.field]}${data.append}`;
  }
  return { fields, first: events[0], last: events.at(-1)!, count: events.length };
}

async function jobOf(app: TestApp, id: string) {
  return await (await app.get(`/api/jobs/${id}`)).json();
}

async function ended(app: TestApp, id: string) {
  await until(async () => ["done", "failed", "cancelled"].includes((await jobOf(app, id)).state), "the job's end");
  return await jobOf(app, id);
}

async function inBackground(app: TestApp, body: Record<string, unknown> = IDEA): Promise<string> {
  const response = await create(app, { ...body, background: true });
  expect(response.status).toBe(202);
  const job = await response.json();
  expect(response.headers.get("x-parlor-job-id")).toBe(job.id);
  return job.id;
}

const written = async (app: TestApp) => {
  const all: { id: string; name: string }[] = await (await app.get("/api/characters")).json();
  return all.filter(({ name }) => name !== "Pim");
};

test("a character is streamed field by field as the model writes it, and nothing is stored", async () => {
  await using bench = await withModel();
  const response = await create(bench.app);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const { fields, first, last, count } = await readAll(response);
  expect(first).toEqual({ event: "start", data: { model: "fake-model" } });
  expect(last).toEqual({ event: "done", data: { is_cut: false } });
  expect(fields).toEqual(CARD);
  expect(count).toBeGreaterThan(8);
  expect(await written(bench.app)).toEqual([]);
  const sent = bench.llm.chats[0]!.json!;
  expect(JSON.stringify(sent.messages)).toContain("a lighthouse keeper");
  expect(sent.response_format).toMatchObject({ type: "json_schema" });
});

test("a server that doesn't support response_format is asked again without it", async () => {
  await using bench = await withModel();
  const refusing = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const body = await request.text();
    if (body.includes("response_format")) {
      return Response.json({ error: { message: "response_format is not supported" } }, { status: 400 });
    }
    return await fetch(bench.llm.origin + new URL(request.url).pathname, {
      method: request.method,
      headers: { "content-type": "application/json" },
      ...(request.method === "POST" && { body }),
    });
  });
  try {
    await useModel(bench.app, { url: `http://127.0.0.1:${refusing.addr.port}/v1` });
    expect((await readAll(await create(bench.app))).fields).toEqual(CARD);
  } finally {
    await refusing.shutdown();
  }
});

test("text before a lost connection is kept, and the error has the usual format", async () => {
  await using bench = await withModel({ switches: { fail: "cut", after: 12 } });
  const { fields, last } = await readAll(await create(bench.app));
  expect(fields).toMatchObject({ name: "Fern", description: expect.stringMatching(/^\{\{char\}\} keeps/) });
  expect(last).toMatchObject({
    event: "error",
    data: { error: { code: "upstream_error", message: expect.any(String), request_id: expect.any(String) } },
  });
});

test.each([
  [
    "a refusal",
    ["I'm sorry, ", "I can't help with that."],
    /didn't write a character. Its reply: I'm sorry, I can't help with that$/,
  ],
  ["nonsense", ["7 7 7 {] 7"], /didn't write a character. Its reply: 7 7 7/],
  ["thoughts alone", ["<think>What could I", " write?</think>"], /only reasoned and wrote no character/],
])("%s is reported with the model server's message", async (_, pieces, message) => {
  await using bench = await withModel({ pieces });
  const { fields, last } = await readAll(await create(bench.app));
  expect(fields).toEqual({});
  expect(last).toMatchObject({ event: "error", data: { error: { code: "unprocessable" } } });
  expect((last.data.error as { message: string }).message).toMatch(message);
});

test("an answer that reached the token limit says so", async () => {
  await using bench = await withModel({ pieces: PIECES.slice(0, 15), switches: { reason: "length" } });
  const { fields, last } = await readAll(await create(bench.app));
  expect(fields.name).toBe("Fern");
  expect(last).toEqual({ event: "done", data: { is_cut: true } });
});

test("a client that disconnects frees the model", async () => {
  await using bench = await withModel({ switches: { manual: "on" } });
  const asked = bench.llm.nextCall();
  const leaving = new AbortController();
  const response = await bench.app.post("/api/characters/create", IDEA, { signal: leaving.signal });
  const call = await asked;
  await call.emit('{"name": "Fern", "descr');
  for await (const { event } of framesOf(response)) if (event === "field") break;
  leaving.abort();
  await call.over;
  expect(bench.llm.abandoned).toHaveLength(1);
});

test("a character that can't be written fails before the first byte", async () => {
  await using app = await openTestApp();
  expect((await create(app)).status).toBe(503);
  for (const body of [{}, { idea: "  " }, { idea: "x".repeat(20_001) }, { picture: "../x" }]) {
    const response = await create(app, body);
    expect(response.status).toBe(400);
    expect((await response.json()).error.code).toBe("invalid_request");
  }
  expect((await create(app, { picture: "gone.png" })).status).toBe(404);
  expect((await create(app, { picture: "gone.png", background: true })).status).toBe(404);
});

test("a server that rejects the call gives an ordinary error", async () => {
  await using bench = await withModel({ apiKey: "secret" });
  const response = await create(bench.app);
  expect([response.status, (await response.json()).error.code]).toEqual([502, "upstream_error"]);
});

test("in the background, a job stores a card with the image as its portrait", async () => {
  await using bench = await withModel();
  await bench.app.put("/api/attachments/keeper.png", noise(64, 96), { headers: { "content-type": "image/png" } });
  const id = await inBackground(bench.app, { picture: "keeper.png" });
  const job = await ended(bench.app, id);
  expect(job).toMatchObject({ kind: "character", state: "done", detail: { name: "Fern" } });
  const character = await (await bench.app.get(`/api/characters/${job.detail.character_id}`)).json();
  expect(character).toMatchObject({
    name: "Fern",
    has_avatar: true,
    card: { data: { ...CARD, mes_example: `<START>\n${CARD.mes_example}` } },
  });
  const [, asked] = bench.llm.chats[0]!.json!.messages as {
    content: { type: string; image_url?: { url: string } }[];
  }[];
  expect(asked!.content[1]!.image_url!.url).toMatch(/^data:image\/jpeg;base64,/);
});

test("a job that is cut off keeps its text as a character and says why it failed", async () => {
  await using bench = await withModel({ switches: { fail: "cut", after: 12 } });
  const job = await ended(bench.app, await inBackground(bench.app));
  expect(job).toMatchObject({ state: "failed", error: { code: "upstream_error" }, detail: { is_cut: true } });
  const character = await (await bench.app.get(`/api/characters/${job.detail.character_id}`)).json();
  expect(character.card.data.description).toMatch(/^\{\{char\}\} keeps/);
});

test("a job that a model refuses fails, and no character is left", async () => {
  await using bench = await withModel({ pieces: ["I can't do that."] });
  const job = await ended(bench.app, await inBackground(bench.app));
  expect(job).toMatchObject({ state: "failed", error: { code: "unprocessable" } });
  expect(await written(bench.app)).toEqual([]);
});

test("a canceled job frees the model and leaves no character", async () => {
  await using bench = await withModel({ switches: { manual: "on" } });
  const asked = bench.llm.nextCall();
  const id = await inBackground(bench.app);
  const call = await asked;
  await call.emit(PIECES.slice(0, 12).join(""));
  await until(async () => (await jobOf(bench.app, id)).detail?.name === "Fern", "the name");
  expect((await jobOf(bench.app, id)).progress).toMatchObject({ total: null, unit: "letters" });
  expect((await bench.app.post(`/api/jobs/${id}/cancel`)).status).toBe(200);
  await call.over;
  expect(bench.llm.abandoned).toHaveLength(1);
  expect(await jobOf(bench.app, id)).toMatchObject({ state: "cancelled" });
  expect(await written(bench.app)).toEqual([]);
});

test("a job that was running when Parlor stopped is completed after the next start, once", async () => {
  await using bench = await withModel({ switches: { manual: "on" } });
  const asked = bench.llm.nextCall();
  const id = await inBackground(bench.app);
  await (await asked).emit(PIECES.slice(0, 12).join(""));
  await until(async () => (await jobOf(bench.app, id)).detail?.name === "Fern", "the name");
  await bench.app.restart(() => {
    bench.llm.switches.manual = "off";
    return Promise.resolve();
  });
  expect(await ended(bench.app, id)).toMatchObject({ state: "done" });
  expect(await written(bench.app)).toHaveLength(1);
});
