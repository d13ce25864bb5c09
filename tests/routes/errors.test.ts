import { HTTPException } from "hono/http-exception";
import { expect, test } from "vitest";
import { withMiddleware } from "../../routes/app.ts";
import { createErrorBody, getStatus, toAppError } from "../../routes/errors.ts";
import { createRouter } from "../../routes/http/router.ts";
import { AppError, type ErrorCode, getErrorTrace } from "../../services/errors.ts";
import { codeOf, fetchAs } from "../helpers/network/fetch_as.ts";
import { openTestApp } from "../helpers/app/test_app.ts";

test.each<[ErrorCode, number]>([
  ["invalid_json", 400],
  ["invalid_request", 400],
  ["unauthenticated", 401],
  ["host_not_allowed", 403],
  ["cross_site", 403],
  ["session_required", 403],
  ["pairing_code_required", 403],
  ["address_not_allowed", 403],
  ["programs_not_allowed", 403],
  ["not_found", 404],
  ["method_not_allowed", 405],
  ["conflict", 409],
  ["in_trash", 409],
  ["gone", 410],
  ["revision_mismatch", 412],
  ["too_large", 413],
  ["unsupported_media_type", 415],
  ["unprocessable", 422],
  ["too_many_requests", 429],
  ["internal", 500],
  ["upstream_error", 502],
  ["not_available", 503],
  ["busy", 503],
  ["upstream_timeout", 504],
  ["storage_full", 507],
])("the code %s has the status %i", (code, status) => {
  expect(getStatus(code)).toBe(status);
});

test("a defect is completely in the log, and none of it is in the response", { tags: ["C11"] }, () => {
  const defect = new TypeError("cannot read /home/me/secret of undefined", { cause: new Error("deeper") });
  const body = createErrorBody(defect, "r1");
  expect(body.error).toMatchObject({ code: "internal", request_id: "r1" });
  expect(JSON.stringify(body)).not.toContain("secret");
  expect(getErrorTrace(toAppError(defect))).toContain("/home/me/secret");
  expect(getErrorTrace(toAppError(defect))).toContain("deeper");
});

test.each([
  [`Can't read "/home/me/.local/share/parlor/app.db": disk error`, `Can't read "app.db": disk error`],
  [`Can't read "C:\\Users\\me\\app.db"`, `Can't read "app.db"`],
  [
    `Can't reach the model at "http://127.0.0.1:8080/v1": no answer`,
    `Can't reach the model at "http://127.0.0.1:8080/v1": no answer`,
  ],
  [`Can't find "c1"`, `Can't find "c1"`],
])("%s is reported as %s", { tags: ["C11"] }, (message, told) => {
  expect(createErrorBody(new AppError("internal", message), "r1").error.message).toBe(told);
});

test.each([[400, "invalid_json"], [413, "too_large"], [415, "unsupported_media_type"], [418, "internal"]] as const)(
  "what the framework throws with status %i is %s",
  { tags: ["P03"] },
  (status, code) => {
    expect(toAppError(new HTTPException(status)).code).toBe(code);
  },
);

test("an error contains its issues, and its headers are sent with the response", async () => {
  await using app = await openTestApp();
  const failing = createRouter()
    .post("/api/x-slow", () => {
      throw new AppError("too_many_requests", "Slow down", { retryAfterSeconds: 1.5 });
    })
    .post("/api/x-string", () => {
      throw "no error at all";
    });
  const answering = withMiddleware(app.services, failing, []);
  const post = (path: string) =>
    answering(new Request(`http://localhost${path}`, { method: "POST", headers: { host: "localhost" } }), {
      peerAddress: "127.0.0.1",
      listener: "main",
      closing: new AbortController().signal,
    });
  const slow = await post("/api/x-slow");
  expect([slow.status, slow.headers.get("retry-after")]).toEqual([429, "2"]);
  const odd = await post("/api/x-string");
  expect([odd.status, (await odd.json()).error.code]).toEqual([500, "internal"]);
  const bad = await (await app.patch("/api/conversations/c1/draft", { draft: 5 })).json();
  expect(bad.error).toMatchObject({ code: "invalid_request", issues: [{ path: "draft" }] });
});

test.each(["{", "", "nonsense", '{"draft":"\\ud800', "\xff\xfe{}"])(
  "responds to a body that isn't JSON with 400: %j",
  async (body) => {
    await using app = await openTestApp();
    const bytes = Uint8Array.from(body, (character) => character.charCodeAt(0));
    const answer = await app.patch("/api/conversations/c1/draft", bytes, {
      headers: { "content-type": "application/json" },
    });
    expect([answer.status, (await answer.json()).error.code]).toEqual([400, "invalid_json"]);
  },
);

test("an unknown path below /api gets 404 in JSON, a known one with another method 405 with Allow", async () => {
  await using app = await openTestApp();
  for (const path of ["/api", "/api/", "/api/nothing", "/api/conversations/c1/nothing"]) {
    const answer = await app.get(path);
    expect([path, answer.status, (await answer.json()).error.code]).toEqual([path, 404, "not_found"]);
  }
  const answer = await app.request("DELETE", "/api/setup/status");
  expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  expect((await answer.json()).error.code).toBe("method_not_allowed");
  expect((await app.request("POST", "/api/conversations/c1")).headers.get("allow")).toBe(
    "DELETE, GET, HEAD, PATCH, PUT",
  );
});

test.each(["TRACE", "TRACK", "FOO", "get", "OPTIONS", "PROPFIND"])(
  "the method %s gets 404 or 405 and is echoed nowhere",
  { tags: ["H16"] },
  async (method) => {
    await using app = await openTestApp();
    for (const path of ["/api/setup/status", "/api/nothing", "/", "/healthz"]) {
      const answer = await fetchAs(app, { method, path, headers: { "X-Secret": "echo-me" } });
      expect([404, 405]).toContain(answer.status);
      expect(answer.body + JSON.stringify([...answer.headers])).not.toContain("echo-me");
    }
  },
);

test("CONNECT opens no tunnel", { tags: ["H16"] }, async () => {
  await using app = await openTestApp();
  for (const path of [`localhost:${app.port}`, "evil.test:443"]) {
    expect((await fetchAs(app, { method: "CONNECT", path })).status).toBeGreaterThanOrEqual(400);
  }
});

test(
  "an error that quotes the request is JSON, can't be sniffed, and doesn't contain markup",
  { tags: ["C11"] },
  async () => {
    await using app = await openTestApp();
    const answer = await fetchAs(app, { path: "/api/%3Cscript%3Ealert(1)%3C%2Fscript%3E" });
    expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(codeOf(answer)).toBe("not_found");
    expect(answer.body).not.toContain("<script>");
  },
);
