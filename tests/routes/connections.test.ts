import { afterEach, beforeEach, expect, test } from "vitest";
import { type FakeLlm, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

const KEY = "sk-secret-0123456789";
let app: TestApp;
let llm: FakeLlm;

beforeEach(async () => {
  llm = await openFakeLlm({ personality: "llama.cpp", models: ["m"], apiKey: KEY });
  app = await openTestApp({ config: { discoverHosts: [] } });
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const profile = (more: Record<string, unknown> = {}) => ({ id: "llama", base_url: llm.origin, api_key: KEY, ...more });

async function json(response: Promise<Response>, status: number) {
  const answer = await response;
  expect(answer.status).toBe(status);
  return await answer.json();
}

test("a new server lists one active demo", async () => {
  expect(await json(app.get("/api/connections"), 200)).toMatchObject([
    { id: "demo", kind: "demo", name: "Demo", active: true, has_key: false },
  ]);
});

test("omitted fields of a saved profile keep their value; a name derived from the address follows it", async () => {
  await app.put("/api/connections", profile({ model: "m", context_size: 4096, timeouts: { idle_ms: 9 } }));
  const host = new URL(llm.origin).host;
  const kept = { base_url: llm.origin, model: "m", context_size: 4096, timeouts: { idle_ms: 9 }, has_key: true };
  expect(await json(app.put("/api/connections", { id: "llama" }), 200)).toMatchObject({ name: host, ...kept });
  const moved = await json(app.put("/api/connections", { id: "llama", base_url: "http://127.0.0.1:1" }), 200);
  expect(moved).toMatchObject({ name: "127.0.0.1:1", model: "m", has_key: false });
  const named = await json(app.put("/api/connections", { id: "llama", name: "Mine", kind: "anthropic" }), 200);
  expect(named).toMatchObject({ name: "Mine", kind: "anthropic", base_url: "http://127.0.0.1:1", model: "m" });
  const cleared = { id: "llama", name: null, model: null, context_size: null, timeouts: null };
  const bare = await json(app.put("/api/connections", cleared), 200);
  expect(bare).toMatchObject({ name: "127.0.0.1:1", kind: "anthropic" });
  for (const field of ["model", "context_size", "timeouts"]) expect(bare).not.toHaveProperty(field);
  expect(await json(app.put("/api/connections", { id: "demo", base_url: llm.origin }), 200)).toMatchObject({
    kind: "openai",
  });
  await json(app.put("/api/connections", { id: "new", name: "New" }), 400);
});

test("the context sizes of single models are kept, changed and removed one by one, or all at once", async () => {
  const put = (context_sizes: unknown) => app.put("/api/connections", profile({ context_sizes }));
  const sizes = async (response: Promise<Response>) => (await (await response).json()).context_sizes;
  expect(await sizes(put({ a: 4096, b: 8192 }))).toEqual({ a: 4096, b: 8192 });
  expect(await sizes(put({ b: null, c: 2048 }))).toEqual({ a: 4096, c: 2048 });
  expect(await sizes(app.put("/api/connections", { id: "llama", name: "Renamed" }))).toEqual({ a: 4096, c: 2048 });
  expect((await put({ a: 0 })).status).toBe(400);
  expect((await put(Object.fromEntries(Array.from({ length: 201 }, (_, n) => [`m${n}`, 4096])))).status).toBe(400);
  expect(await sizes(put(null))).toBeUndefined();
});

test("PUT creates and updates a profile, and the list never contains the key", async () => {
  const created = await app.put("/api/connections", profile({ name: "Llama", model: "m", timeouts: { idle_ms: 9 } }));
  expect(created.status).toBe(201);
  expect(created.headers.get("etag")).toBe('"1"');
  const body = await created.json();
  expect(body).toMatchObject({ id: "llama", name: "Llama", kind: "openai", base_url: llm.origin, model: "m" });
  expect(body).toMatchObject({ has_key: true, active: false, timeouts: { idle_ms: 9 } });
  expect(body.created_at).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
  expect(await json(app.put("/api/connections", profile({ name: "Other", model: null })), 200)).toMatchObject({
    name: "Other",
  });
  const list = await (await app.get("/api/connections")).text();
  expect(list).not.toContain(KEY);
  expect(JSON.parse(list)).toHaveLength(2);
  expect(app.logLines.join("\n")).not.toContain(KEY);
});

test("a profile without an ID gets one", async () => {
  const { id } = await json(app.put("/api/connections", { base_url: llm.url }), 201);
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
});

test("a profile survives a restart with its key and stays active", async () => {
  await json(app.put("/api/connections", profile()), 201);
  await json(app.post("/api/connections/llama/activate"), 200);
  await app.restart();
  const list = await json(app.get("/api/connections"), 200);
  expect(list.find((entry: { id: string }) => entry.id === "llama")).toMatchObject({ has_key: true, active: true });
  expect((await json(app.get("/api/models"), 200)).data).toMatchObject([{ id: "m" }]);
});

test.each([
  [{ id: "a/b" }, "id"],
  [{ base_url: 7 }, "base_url"],
  [{ kind: "other" }, "kind"],
  [{ base_url: "http://h", context_size: 0.5 }, "context_size"],
  [{ base_url: "http://h", timeouts: { idle_ms: -1 } }, "timeouts.idle_ms"],
  [{}, "base_url"],
])("PUT of %j gets 400 with a message that names %s", async (body, path) => {
  const { error } = await json(app.put("/api/connections", body), 400);
  expect(error).toMatchObject({ code: "invalid_request", issues: [{ path }] });
  expect(await json(app.get("/api/connections"), 200)).toHaveLength(1);
});

test("activate, clear key and delete work on existing connections and get 404 on others", async () => {
  await json(app.put("/api/connections", profile()), 201);
  expect(await json(app.post("/api/connections/llama/activate"), 200)).toMatchObject({ id: "llama", active: true });
  expect((await app.delete("/api/connections/llama/key")).status).toBe(204);
  expect((await json(app.get("/api/connections"), 200))[0]).toMatchObject({ id: "llama", has_key: false });
  expect((await app.delete("/api/connections/llama")).status).toBe(204);
  for (
    const gone of [
      app.post("/api/connections/llama/activate"),
      app.delete("/api/connections/llama/key"),
      app.delete("/api/connections/llama"),
    ]
  ) {
    expect((await json(gone, 404)).error.code).toBe("not_found");
  }
});

test("a write with another version than requested gets 412", async () => {
  await json(app.put("/api/connections", profile()), 201);
  const headers = { "If-Match": '"7"' };
  expect((await json(app.put("/api/connections", profile(), { headers }), 412)).error.code).toBe("revision_mismatch");
  expect((await app.delete("/api/connections/llama", { headers })).status).toBe(412);
  expect((await app.delete("/api/connections/llama", { headers: { "If-Match": '"1"' } })).status).toBe(204);
});

test("moving a profile to another origin drops the key", { tags: ["U01"] }, async () => {
  await using elsewhere = await openFakeLlm();
  await json(app.put("/api/connections", profile()), 201);
  await json(app.post("/api/connections/llama/activate"), 200);
  const moved = { id: "llama", base_url: elsewhere.url };
  expect(await json(app.post("/api/connections/test", moved), 200)).toMatchObject({ reachable: true });
  expect(await json(app.put("/api/connections", moved), 200)).toMatchObject({ has_key: false });
  await json(app.get("/api/models"), 200);
  expect(elsewhere.requests.length).toBeGreaterThan(1);
  for (const request of elsewhere.requests) {
    for (const name of ["authorization", "x-api-key", "api-key"]) expect(request.headers.get(name)).toBeNull();
  }
});

test("an unsaved profile is tested without being saved, and the key of a saved one is used only for the same origin", async () => {
  await json(app.put("/api/connections", profile()), 201);
  const verdict = await json(app.post("/api/connections/test", { id: "llama", base_url: `${llm.origin}/v1/` }), 200);
  expect(verdict).toMatchObject({ reachable: true, authorized: true, models: ["m"], context_size: 2048 });
  expect(verdict.latency_ms).toBeGreaterThanOrEqual(0);
  expect(await json(app.post("/api/connections/test", { base_url: llm.url }), 200)).toMatchObject({
    reachable: true,
    authorized: false,
    models: [],
    advice: expect.stringContaining("needs an API key"),
  });
  expect(await json(app.get("/api/connections"), 200)).toHaveLength(2);
});

test("a key that the server echoes is masked in the result", { tags: ["U03"] }, async () => {
  await using echo = await openFakeLlm({ personality: "jan", apiKey: "another" });
  const answer = await app.post("/api/connections/test", { base_url: `${echo.url}`, api_key: KEY });
  expect(await answer.text()).not.toContain(KEY);
});

test("test and PUT refuse metadata and link-local addresses, and nothing is sent", { tags: ["E14"] }, async () => {
  for (const base_url of ["http://169.254.169.254/v1", "http://[fe80::1]:80/", "http://metadata.google.internal/"]) {
    for (const call of [app.post("/api/connections/test", { base_url }), app.put("/api/connections", { base_url })]) {
      expect((await json(call, 403)).error.code).toBe("address_not_allowed");
    }
  }
  expect(await json(app.get("/api/connections"), 200)).toHaveLength(1);
});

test("discover probes the configured hosts and none that a client names", { tags: ["E14"] }, async () => {
  const body = { hosts: ["127.0.0.1"], ports: [{ port: llm.port, as: 8080 }] };
  expect(await json(app.post("/api/connections/discover", body), 200)).toEqual([]);
  expect(await json(app.post("/api/connections/discover"), 200)).toEqual([]);
  expect(llm.requests).toHaveLength(0);
});

test("the event for a changed profile contains only its name", async () => {
  const changes: unknown[] = [];
  app.services.events.subscribe((event) => changes.push(event));
  await json(app.put("/api/connections", profile()), 201);
  expect(changes).toEqual([{ kind: "connection", id: "llama" }]);
});
