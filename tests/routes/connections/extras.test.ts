import { expect, test } from "vitest";
import { ask, gather, savedMessage, until, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";

async function connection(app: TestApp, id = "double") {
  const list: Record<string, unknown>[] = await (await app.get("/api/connections")).json();
  return list.find((one) => one.id === id)!;
}

const SECRET = "header-secret-0123456789";

test("additional headers are sent with every request; their values are never returned", { tags: ["K02"] }, async () => {
  await using llm = await openFakeLlm();
  await using app = await openTestApp();
  await useModel(app, llm, { headers: { "X-Title": "Parlor", "CF-Access-Client-Secret": SECRET } });
  await gather(await ask(app, 1));
  for (const { headers } of llm.requests) {
    expect([headers.get("x-title"), headers.get("cf-access-client-secret")]).toEqual(["Parlor", SECRET]);
  }
  const text = await (await app.get("/api/connections")).text();
  expect(text).not.toContain(SECRET);
  expect(await connection(app)).toMatchObject({ header_names: ["X-Title", "CF-Access-Client-Secret"] });
  await app.restart(async () => {
    const bytes = await Deno.readFile(`${app.dataDir}/app.db`);
    expect(new TextDecoder("latin1").decode(bytes).includes(SECRET)).toBe(false);
  });

  // Left out, they stay; null removes one; names are compared without case.
  await app.put("/api/connections", { id: "double", headers: { "x-title": "Other", "CF-Access-Client-Secret": null } });
  expect(await connection(app)).toMatchObject({ header_names: ["x-title"] });
  await app.put("/api/connections", { id: "double", name: "Renamed" });
  expect(await connection(app)).toMatchObject({ header_names: ["x-title"] });
  await app.put("/api/connections", { id: "double", headers: null });
  expect(await connection(app)).toMatchObject({ header_names: [] });
});

test("headers are dropped with another origin, like the key", { tags: ["K02"] }, async () => {
  await using llm = await openFakeLlm();
  await using other = await openFakeLlm();
  await using app = await openTestApp();
  await useModel(app, llm, { headers: { "X-Secret": SECRET } });
  await app.put("/api/connections", { id: "double", base_url: other.url });
  expect(await connection(app)).toMatchObject({ header_names: [] });
  await gather(await ask(app, 1));
  expect(other.chats).toHaveLength(1);
  expect(other.requests.some(({ headers }) => headers.has("x-secret"))).toBe(false);
});

test.each([
  ["Host", "evil.example"],
  ["content-length", "5"],
  ["Transfer-Encoding", "chunked"],
  ["Connection", "close"],
  ["Proxy-Authorization", "x"],
  ["Sec-Fetch-Site", "x"],
  ["X Y", "x"],
  ["X-Split", "a\r\nHost: evil.example"],
  ["X-Empty", " "],
])("rejects the header %s: %j", async (name, value) => {
  await using app = await openTestApp();
  const refused = await app.put("/api/connections", {
    id: "x",
    base_url: "http://127.0.0.1:9",
    headers: { [name]: value },
  });
  expect(refused.status).toBe(400);
  expect((await refused.json()).error.code).toBe("invalid_request");
});

test("a header that the server repeats in its error is masked", async () => {
  await using llm = await openFakeLlm({
    switches: { fail: "status_text", status: 500, message: `bad header ${SECRET}` },
  });
  await using app = await openTestApp();
  await useModel(app, llm, { headers: { "X-Secret": SECRET } });
  const error = (await (await ask(app, 1)).json()).error;
  expect(error.message).toContain("bad header [header]");
});

test("the request takes precedence over the extra body of the preset, and that over the connection's", async () => {
  await using llm = await openFakeLlm();
  await using app = await openTestApp();
  await useModel(app, llm, {
    extra_body: { a: "connection", b: "connection", c: "connection", options: { x: 1, y: 1 } },
  });
  const preset = {
    name: "P",
    sampler: { top_k: 5, d: 1 },
    extra_body: { a: "preset", b: "preset", d: 2, options: { y: 2 } },
  };
  const saved = await app.put("/api/presets/p1", preset);
  expect(await saved.json()).toMatchObject({ extra_body: preset.extra_body });
  await app.put("/api/conversations/c1", { title: "C", preset_id: "p1", messages: [] });
  await gather(await ask(app, 1, { context: "server", a: "request" }));
  const sent = llm.chats.at(-1)!.json;
  expect(sent).toMatchObject({ a: "request", b: "preset", c: "connection", d: 2, top_k: 5, options: { x: 1, y: 2 } });

  // A preset keeps it in SillyTavern's file, and null empties it.
  expect(await (await app.get("/api/presets/p1/export")).json()).toMatchObject({ extra_body: preset.extra_body });
  expect(await (await app.put("/api/presets/p1", { extra_body: null })).json()).not.toHaveProperty("extra_body");
  await app.put("/api/connections", { id: "double", extra_body: null });
  expect(await connection(app)).not.toHaveProperty("extra_body");
});

test.each(["model", "messages", "stream"])("an extra body can't set %s", async (field) => {
  await using app = await openTestApp();
  const extra_body = { [field]: "x" };
  expect((await app.put("/api/connections", { id: "x", base_url: "http://127.0.0.1:9", extra_body })).status).toBe(400);
  expect((await app.put("/api/presets/p1", { name: "P", extra_body })).status).toBe(400);
});

test("a failed call names its connection in the response, the message, the last call and an event", async () => {
  await using llm = await openFakeLlm({
    switches: { fail: "status_json", status: 429, retry_after: "7", message: "slow" },
  });
  await using app = await openTestApp();
  await useModel(app, llm, { name: "Home" });
  const events: string[] = [];
  app.services.events.subscribe(({ kind, id }) => events.push(`${kind} ${id}`));
  const failed = await ask(app, 1);
  expect(failed.headers.get("retry-after")).toBe("7");
  const { error } = await failed.json();
  const upstream = {
    kind: "rate",
    status: 429,
    connection_id: "double",
    connection_name: "Home",
    model: "fake-model",
    retry_after_s: 7,
  };
  expect(error).toMatchObject({ code: "upstream_error", message: expect.stringContaining('"Home"'), upstream });
  expect(await savedMessage(app, "a1")).toMatchObject({
    status: "failed",
    connection_id: "double",
    error: { upstream },
  });
  expect(events).toContain("connection double");
  expect(await connection(app)).toMatchObject({
    last_call: { ok: false, error: { code: "upstream_error", kind: "rate" } },
  });

  llm.switches.fail = "none";
  events.length = 0;
  await gather(await ask(app, 2));
  expect(events).toContain("connection double");
  expect(await connection(app)).toMatchObject({ last_call: { ok: true } });

  // A failed rewrite keeps the reply, too.
  llm.switches.fail = "status_json";
  await (await ask(app, 2, { action: "regenerate" })).body?.cancel();
  expect(await savedMessage(app, "a2")).toMatchObject({ status: "complete", last_attempt: { error: { upstream } } });
});

test("a reply that breaks off is a failed call", async () => {
  await using llm = await openFakeLlm({ pieces: ["a", "b", "c"], switches: { fail: "cut", after: 2 } });
  await using app = await openTestApp();
  await useModel(app, llm);
  const { frames } = await gather(await ask(app, 1));
  expect(JSON.stringify(frames.at(-1))).toContain("connection_name");
  expect(await connection(app)).toMatchObject({ last_call: { ok: false, error: { kind: "interrupted" } } });
});

test("an unreachable server is a failed call of its connection", async () => {
  await using app = await openTestApp();
  await useModel(app, { url: "http://127.0.0.1:9/v1" }, { name: "Away" });
  const { error } = await (await ask(app, 1)).json();
  expect(error.upstream).toEqual({
    kind: expect.stringMatching(/^(refused|blocked)$/),
    connection_id: "double",
    connection_name: "Away",
    model: "fake-model",
  });
  expect(await connection(app)).toMatchObject({ last_call: { ok: false } });
});

test("a request chooses its connection, and each version of a reply keeps its own", async () => {
  await using one = await openFakeLlm({ pieces: ["one"], models: ["first"] });
  await using two = await openFakeLlm({ pieces: ["two"], models: ["second"] });
  await using app = await openTestApp();
  await useModel(app, two, { id: "two", model: null });
  await useModel(app, one, { id: "one", model: null });
  await app.put("/api/conversations/c1", { title: "C", model: "first", messages: [] });
  expect(await gather(await ask(app, 1))).toMatchObject({ text: "one" });
  expect(await gather(await ask(app, 1, { action: "regenerate", connection_id: "two" }))).toMatchObject({
    text: "two",
  });
  // The conversation's model is the other connection's.
  expect(await savedMessage(app, "a1")).toMatchObject({ content: "two", connection_id: "two", model: "second" });
  expect(two.chats.at(-1)!.json).not.toHaveProperty("connection_id");
  const variants = await (await app.get("/api/conversations/c1/messages/a1/variants")).json();
  expect(variants).toMatchObject([
    { content: "one", connection_id: "one", model: "first" },
    { content: "two", connection_id: "two", model: "second" },
  ]);
  await (await app.patch("/api/conversations/c1/messages/a1", { active_variant: 0 })).body?.cancel();
  expect(await savedMessage(app, "a1")).toMatchObject({ content: "one", connection_id: "one", model: "first" });
  expect(await gather(await ask(app, 2))).toMatchObject({ text: "one" });
  const unknown = await app.post("/api/chat", { connection_id: "gone", messages: [{ role: "user", content: "Hi" }] });
  expect(unknown.status).toBe(404);
});

test("the model that responds if none is named is known after a test or a call", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", models: ["gemma", "other"] });
  await using app = await openTestApp();
  await useModel(app, llm, { model: null });
  expect(await connection(app)).not.toHaveProperty("resolved_model");
  await (await app.post("/api/connections/test", { id: "double" })).body?.cancel();
  await until(async () => (await connection(app)).resolved_model === "gemma", "the model is known");
  expect(await connection(app)).toMatchObject({ server: { detected: "llama.cpp" } });
  await app.put("/api/connections", { id: "double", model: "other" });
  expect(await connection(app)).toMatchObject({ resolved_model: "other" });
});
