import { expect, test } from "vitest";
import { enrol } from "../helpers/app/enrolled.ts";
import { codeOf, fetchAs, type PlainRequest } from "../helpers/network/fetch_as.ts";
import { rawRequest } from "../helpers/network/raw_http.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

const JSON_TYPE = { "Content-Type": "application/json" };
const completion: PlainRequest = { method: "POST", path: "/api/setup/complete", headers: JSON_TYPE, body: "{}" };

/** Requests a visible change and returns whether it happened. */
async function tryToComplete(app: TestApp, headers: Record<string, string>, body = "{}") {
  const answer = await fetchAs(app, { ...completion, headers, body });
  const { completed } = JSON.parse((await fetchAs(app, { path: "/api/setup/status" })).body);
  return { status: answer.status, code: codeOf(answer), completed };
}

test.each(["cross-site", "same-site", "something-new"])(
  "a write with Sec-Fetch-Site: %s has no effect",
  { tags: ["C01"] },
  async (site) => {
    await using app = await openTestApp();
    for (const origin of ["https://evil.test", `http://localhost:${app.port}`, undefined]) {
      const headers = { ...JSON_TYPE, "Sec-Fetch-Site": site, ...(origin && { Origin: origin }) };
      expect(await tryToComplete(app, headers)).toMatchObject({ status: 403, completed: false });
    }
    for (const method of ["PUT", "PATCH", "DELETE"]) {
      const headers = { ...JSON_TYPE, "Sec-Fetch-Site": site, Origin: "https://evil.test" };
      const answer = await fetchAs(app, { method, path: "/api/conversations/c1", headers, body: '{"messages":[]}' });
      expect([method, answer.status]).toEqual([method, 403]);
    }
  },
);

test.each(["https://evil.test", "null", "http://localhost:1", "https://localhost", "http://LOCALHOST", ""])(
  "a write from the origin %j without fetch metadata gets 403",
  { tags: ["C02"] },
  async (origin) => {
    await using app = await openTestApp();
    // A foreign Origin isn't local either; the host is listed so that the request reaches the CORS check.
    await using listed = await openTestApp({ config: { allowedHosts: ["localhost"] } });
    expect(await tryToComplete(listed, { ...JSON_TYPE, Origin: origin }))
      .toEqual({ status: 403, code: "cross_site", completed: false });
    expect((await tryToComplete(app, { ...JSON_TYPE, Origin: origin })).status).toBe(403);
  },
);

test.each(["application/json", "application/json; charset=utf-8", "application/octet-stream", "application/x-thing"])(
  "a command-line client writes with the type %s",
  { tags: ["C03"] },
  async (type) => {
    await using app = await openTestApp();
    expect(await tryToComplete(app, { "Content-Type": type })).toMatchObject({ status: 200, completed: true });
  },
);

test("a write without a body needs no type, and Parlor's own page may write", { tags: ["C03"] }, async () => {
  await using app = await openTestApp();
  expect((await fetchAs(app, { method: "DELETE", path: "/api/conversations/c1" })).status).toBe(404);
  const own = { ...JSON_TYPE, Origin: `http://localhost:${app.port}`, "Sec-Fetch-Site": "same-origin" };
  expect((await tryToComplete(app, own)).status).toBe(200);
});

test.each([
  ...["text/plain", "TEXT/PLAIN", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded"],
  ...["multipart/form-data; boundary=x", "application/json, text/plain", ""],
])("a JSON body with the type %j gets 415 and has no effect", { tags: ["C04"] }, async (type) => {
  await using app = await openTestApp();
  expect(await tryToComplete(app, { "Content-Type": type }))
    .toEqual({ status: 415, code: "unsupported_media_type", completed: false });
});

test("a body without a type gets 415, in one piece or in chunks", { tags: ["C04"] }, async () => {
  await using app = await openTestApp();
  expect(await tryToComplete(app, {})).toMatchObject({ status: 415, completed: false });
  const head = `POST /api/setup/complete HTTP/1.1\r\nHost: localhost:${app.port}\r\nConnection: close\r\n`;
  const chunked = await rawRequest(app.port, `${head}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`);
  expect([chunked.status, codeOf(chunked)]).toEqual([415, "unsupported_media_type"]);
});

test("a read from another site's page with fetch metadata gets 403 on every route", { tags: ["C06"] }, async () => {
  await using app = await openTestApp();
  for (const definition of (await app.app.loadApi()).openAPIRegistry.definitions) {
    if (definition.type !== "route" || definition.route.method !== "get") continue;
    if (!definition.route.path.startsWith("/api/")) continue;
    const path = definition.route.path.replace(/\{[^}]+\}/g, "x1");
    for (const dest of ["image", "script", "document"]) {
      const headers = { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": dest };
      const answer = await fetchAs(app, { path, headers });
      // An authorization server sends the browser here, with the secret of a sign-in that the owner has started.
      const isCallback = path === "/api/tools/callback" && dest === "document";
      const expected = isCallback ? [400, "invalid_request"] : [403, "cross_site"];
      expect([path, dest, answer.status, codeOf(answer)]).toEqual([path, dest, ...expected]);
    }
  }
});

test("an API response says that pages of other sites may not embed it", { tags: ["C06"] }, async () => {
  await using app = await openTestApp();
  expect((await fetchAs(app, { path: "/api/conversations" })).headers.get("cross-origin-resource-policy"))
    .toBe("same-origin");
});

test.each(["https://evil.test", "https://listed.test.evil.test", "http://listed.test", "null"])(
  "preflight and request from %s get no CORS headers but Vary",
  { tags: ["C07"] },
  async (origin) => {
    await using app = await openTestApp({ config: { corsOrigins: ["https://listed.test"] } });
    const preflight = await fetchAs(app, {
      method: "OPTIONS",
      headers: { Origin: origin, "Access-Control-Request-Method": "PUT" },
    });
    const request = await fetchAs(app, { headers: { Origin: origin } });
    for (const answer of [preflight, request]) {
      expect(answer.status).toBe(403);
      expect(answer.headers.has("access-control-allow-origin")).toBe(false);
      expect(answer.headers.has("access-control-allow-credentials")).toBe(false);
      expect(answer.headers.get("vary")).toContain("Origin");
    }
  },
);

test("a listed origin is echoed exactly, in preflight and response", { tags: ["C08"] }, async () => {
  const origin = "https://listed.test";
  await using app = await openTestApp({ config: { corsOrigins: ["https://other.test", origin] } });
  const preflight = await fetchAs(app, {
    method: "OPTIONS",
    path: "/api/conversations/c1",
    headers: { Origin: origin, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "if-match" },
  });
  expect([preflight.status, preflight.headers.get("access-control-allow-methods")])
    .toEqual([204, expect.stringContaining("PUT")]);
  const answer = await fetchAs(app, { headers: { Origin: origin, "Sec-Fetch-Site": "cross-site" } });
  expect(answer.status).toBe(200);
  for (const { headers } of [preflight, answer]) {
    expect(headers.get("access-control-allow-origin")).toBe(origin);
    expect(headers.get("access-control-allow-credentials")).toBe("true");
    expect(headers.get("vary")).toContain("Origin");
  }
});

test("a 401, a 403 and a 404 to a listed origin contain its CORS headers", { tags: ["C06"] }, async () => {
  const headers = { Origin: "https://listed.test" };
  await using app = await openTestApp({ config: { corsOrigins: [headers.Origin] } });
  await enrol(app, "localhost");
  const answers = [
    await fetchAs(app, { path: "/api/conversations", headers }),
    await fetchAs(app, { path: "/api/conversations", headers, host: "evil.test" }),
    await fetchAs(app, { path: "/nothing.js", headers }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([401, 403, 404]);
  for (const answer of answers) expect(answer.headers.get("access-control-allow-origin")).toBe(headers.Origin);
});

test("a preflight needs no credentials and reaches no route", async () => {
  const origin = "https://listed.test";
  await using app = await openTestApp({ config: { corsOrigins: [origin] } });
  await enrol(app, "localhost");
  const headers = { Origin: origin, "Access-Control-Request-Method": "POST" };
  const answer = await fetchAs(app, { method: "OPTIONS", path: "/api/setup/complete", headers });
  expect([answer.status, answer.body]).toEqual([204, ""]);
  const unlisted = await fetchAs(app, { method: "OPTIONS", path: "/api/setup/complete", headers, host: "evil.test" });
  expect([unlisted.status, codeOf(unlisted)]).toEqual([403, "host_not_allowed"]);
});

test("a preflight of the OpenAI-compatible API allows the headers of OpenAI's client to listed origins only", async () => {
  await using app = await openTestApp({ config: { corsOrigins: ["https://notes.example"] } });
  const ask = (path: string, origin: string, asked: string) =>
    fetchAs(app, {
      method: "OPTIONS",
      path,
      headers: {
        Origin: origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": asked,
      },
    });
  const allowed = async (path: string, asked: string) =>
    (await ask(path, "https://notes.example", asked)).headers.get("access-control-allow-headers");
  expect(await allowed("/api/v1/chat/completions", "authorization, x-stainless-os")).toContain(", x-stainless-os");
  expect(await allowed("/api/v1/chat/completions", "x-a;b")).not.toContain("x-a");
  expect(await allowed("/api/chat", "x-stainless-os")).not.toContain("x-stainless-os");
  expect((await ask("/api/v1/models", "https://evil.test", "x-stainless-os")).status).toBe(403);
});
