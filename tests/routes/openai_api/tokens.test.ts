/** Tokens that are limited to the OpenAI-compatible API. */
import { expect, test } from "vitest";
import type { ManualAnswer } from "../../helpers/fakes/llm/fake_llm.ts";
import { openOpenAiApp } from "../../helpers/app/openai_app.ts";
import { openGatedApp, Visitor } from "../../helpers/app/visitor.ts";

const desk = { host: "desk.example", address: "203.0.113.5" };
const messages = [{ role: "user", content: "Hi" }];

test("a session creates a limited token, which lists show with its last use; an unknown scope is refused", async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const minted = await owner.post("/api/auth/token", { label: "editor", scope: "openai" });
  expect([minted.status, minted.json.scope]).toEqual([201, "openai"]);
  expect((await owner.post("/api/auth/token", { label: "all" })).json.scope).toBe("all");
  for (const scope of ["admin", "", null, ["openai"]]) {
    expect((await owner.post("/api/auth/token", { label: "x", scope })).status).toBe(400);
  }
  const limited = new Visitor(app, { ...desk, headers: { Authorization: `Bearer ${minted.json.token}` } });
  expect((await limited.get("/api/v1/models")).status).toBe(200);
  await app.restart();
  const listed = (await owner.get("/api/auth/tokens")).json;
  expect(listed.map(({ label, scope }: Record<string, string>) => [label, scope])).toEqual([["all", "all"], [
    "editor",
    "openai",
  ]]);
  expect(Date.parse(listed[1].last_used_at)).toBeGreaterThan(0);
});

test("a limited token is forbidden everywhere else, even on this machine and on open paths", async () => {
  await using at = await openOpenAiApp();
  const paths = [
    "/api/settings",
    "/api/auth/status",
    "/api/auth/tokens",
    "/api/openapi.json",
    "/api/chat/replies",
    "/api/v2",
    "/api/v1x",
    "/api/v1/../settings",
    "/api/nothing",
  ];
  for (const path of paths) {
    const response = await at.send("GET", path);
    expect([path, response.status, (await response.json()).error.code]).toEqual([path, 403, "forbidden"]);
  }
  const write = await at.send("POST", "/api/chat", { messages });
  expect([write.status, (await write.json()).error.code]).toEqual([403, "forbidden"]);
  expect((await at.app.get(`/api/settings?api_token=${at.token}`)).status).toBe(403);
  expect((await at.send("GET", "/api/v1/models")).status).toBe(200);
  expect((await at.send("GET", "/api/v1/models", undefined, at.ownerToken)).status).toBe(200);
});

test("a limited token has eight calls at once; the ninth gets Retry-After", async () => {
  await using at = await openOpenAiApp();
  at.llm.switches.manual = "on";
  const start = (token: string, more: Record<string, unknown> = {}) =>
    at.send("POST", "/api/v1/chat/completions", { model: "default", messages, stream: true, ...more }, token);
  // They arrive at the model server in any order.
  const running = new Map<unknown, Promise<Response>>();
  for (let n = 0; n < 8; n++) running.set(n, start(at.token, { seed: n }));
  const calls = await Promise.all([...running].map(() => at.llm.nextCall()));
  const refused = await start(at.token);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await refused.json()).error).toMatchObject({
    code: "too_many_requests",
    type: "rate_limit_error",
    param: null,
  });

  const other = await at.app.services.auth.mintToken("other", "openai");
  for (const token of [other.token, at.ownerToken]) {
    const passing = start(token);
    await (await at.llm.nextCall()).finish();
    expect((await passing).status).toBe(200);
    await (await passing).text();
  }
  // A call ends with its stream.
  const end = async (call: ManualAnswer) => {
    await call.finish();
    await (await running.get(call.request.json!.seed)!).text();
  };
  await end(calls[0]!);
  at.llm.switches.manual = "off";
  expect((await start(at.token)).status).toBe(200);
  for (const call of calls.slice(1)) await end(call);
});

test("a stored reply counts until it ends, even after its client has disconnected", async () => {
  await using at = await openOpenAiApp();
  at.llm.switches.manual = "on";
  const leaving = new AbortController();
  const start = (n: number) =>
    at.app.post("/api/v1/chat/completions", {
      model: "default",
      messages,
      stream: true,
      store: true,
      metadata: { conversation_id: `c${n}` },
    }, { headers: { Authorization: `Bearer ${at.token}` }, signal: leaving.signal });
  const running = Array.from({ length: 8 }, (_, n) => start(n));
  const calls = await Promise.all(running.map(() => at.llm.nextCall()));
  for (const call of calls) await call.emit("one");
  await Promise.all(running);
  leaving.abort();
  expect((await at.send("GET", "/api/v1/models")).status).toBe(429);
  for (const call of calls) await call.finish();
  await expect.poll(async () => (await at.send("GET", "/api/v1/models")).status).toBe(200);
});
