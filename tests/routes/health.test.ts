import { afterEach, beforeEach, expect, test } from "vitest";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { openFakeHttp } from "../helpers/fakes/llm/fake_llm_http.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

async function json(path: string, status = 200) {
  const answer = await app.get(path);
  expect(answer.status).toBe(status);
  return await answer.json();
}

async function connect(base_url: string, more: Record<string, unknown> = {}): Promise<void> {
  await app.put("/api/connections", { id: "c", name: "C", base_url, ...more });
  expect((await app.post("/api/connections/c/activate")).status).toBe(200);
}

test("reports ok for a new installation, whose demo responds", async () => {
  expect(await json("/api/health")).toMatchObject({
    status: "ok",
    version: "0.0.0-test",
    connection: { id: "demo", kind: "demo", reachable: true },
  });
  expect(await json("/api/models")).toMatchObject({ object: "list", data: [{ id: "demo" }] });
});

test("is unconfigured without a connection, and models aren't available", async () => {
  await app.delete("/api/connections/demo");
  expect(await json("/api/health")).toMatchObject({ status: "unconfigured", connection: null });
  expect((await json("/api/models", 503)).error.code).toBe("not_available");
});

test("reports ok if the model server responds and degraded if it rejects the key or is off, always with status 200", async () => {
  const llm = await openFakeLlm({ models: ["a", "b"] });
  await connect(llm.url, { model: "b" });
  const health = await json("/api/health");
  expect(health).toMatchObject({
    status: "ok",
    connection: { id: "c", name: "C", base_url: llm.url, model: "b", reachable: true },
  });
  expect(health.connection.latency_ms).toBeGreaterThanOrEqual(0);
  llm.apiKey = "needed";
  expect(await json("/api/health")).toMatchObject({ status: "degraded", connection: { reachable: true } });
  await llm.close();
  const off = await json("/api/health");
  expect(off).toMatchObject({ status: "degraded", connection: { reachable: false } });
  expect(off.connection.error).toContain("connection refused");
});

test("a port that HTTP clients block is unreachable", async () => {
  await connect("http://127.0.0.1:6000/v1");
  expect(await json("/api/health")).toMatchObject({
    status: "degraded",
    connection: { reachable: false, error: expect.stringContaining("block this port") },
  });
});

test("lists the model server's models with all their fields", async () => {
  await using llm = await openFakeLlm({ personality: "vllm", models: ["a", "b"] });
  await connect(llm.origin);
  expect(await json("/api/models")).toMatchObject({
    object: "list",
    data: [{ id: "a", max_model_len: 16384 }, { id: "b" }],
  });
});

test("returns 502 with the reason if the model server rejects the request or is off", async () => {
  const llm = await openFakeLlm({ apiKey: "needed" });
  await connect(llm.url, { api_key: "wrong-key-1234" });
  const refused = (await json("/api/models", 502)).error;
  expect(refused).toMatchObject({ code: "upstream_error" });
  expect(refused.message).toContain(llm.url);
  expect(JSON.stringify(refused)).not.toContain("wrong-key-1234");
  await llm.close();
  expect((await json("/api/models", 502)).error.message).toContain("connection refused");
});

test("passes on a model server's Retry-After", async () => {
  const http = await openFakeHttp((_, answer) => answer.json(429, { error: "slow down" }, { "retry-after": "12" }));
  await connect(`http://127.0.0.1:${http.port}/v1`);
  const answer = await app.get("/api/models");
  expect(answer.status).toBe(502);
  expect(answer.headers.get("retry-after")).toBe("12");
  await answer.body?.cancel();
  await http.close();
});
