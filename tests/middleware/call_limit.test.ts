import { Hono } from "hono";
import { expect, test } from "vitest";
import { callLimit, type CallLimits } from "../../middleware/call_limit.ts";
import type { Env, Identity } from "../../middleware/env.ts";
import { AppError } from "../../services/errors.ts";

/** An app whose requests state their token and its scope. */
function openApp(limits: CallLimits) {
  const app = new Hono<Env>();
  app.use(async (c, next) => {
    const [scope, tokenId] = [c.req.header("x-scope"), c.req.header("x-token")];
    c.set("identity", { method: "token", scope, tokenId } as unknown as Identity);
    await next();
  });
  app.use(callLimit(limits));
  app.get("/", (c) => c.text("ok"));
  app.onError((error, c) => {
    if (!(error instanceof AppError)) throw error;
    return c.json({ code: error.code, retryAfter: error.retryAfterSeconds }, 429);
  });
  return async (tokenId: string, scope = "openai") => {
    const response = await app.request("/", { headers: { "x-scope": scope, "x-token": tokenId } });
    return response.status === 200 ? 200 : await response.json();
  };
}

test("a limited token gets its calls per minute, then 429 with the time until the next one", async () => {
  let nowMs = 0;
  const call = openApp({ perMinute: 6, now: () => nowMs });
  for (let n = 0; n < 6; n++) expect(await call("a")).toBe(200);
  expect(await call("a")).toEqual({ code: "too_many_requests", retryAfter: 10 });
  nowMs = 9_000;
  expect(await call("a")).toEqual({ code: "too_many_requests", retryAfter: 1 });
  nowMs = 10_000;
  expect(await call("a")).toBe(200);
  expect(await call("a")).toMatchObject({ code: "too_many_requests" });
  nowMs = 1_000_000;
  for (let n = 0; n < 6; n++) expect(await call("a")).toBe(200);
  expect(await call("a")).toMatchObject({ code: "too_many_requests" });
});

test("tokens don't share their calls, and other scopes have no limit", async () => {
  const call = openApp({ perMinute: 1, now: () => 0 });
  expect(await call("a")).toBe(200);
  expect(await call("a")).toMatchObject({ code: "too_many_requests" });
  expect(await call("b")).toBe(200);
  for (let n = 0; n < 3; n++) expect(await call("c", "all")).toBe(200);
});
