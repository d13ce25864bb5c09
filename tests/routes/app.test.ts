import { expect, test } from "vitest";
import { enrol } from "../helpers/app/enrolled.ts";
import { codeOf, fetchAs } from "../helpers/network/fetch_as.ts";
import { rawRequest } from "../helpers/network/raw_http.ts";
import { openTestApp } from "../helpers/app/test_app.ts";
import { makeCertificate } from "../helpers/files/tls_certificate.ts";

test("health checks get an empty 204, under any host and even if gated", async () => {
  await using app = await openTestApp({ config: { loopbackAuthBypass: false } });
  await enrol(app, "localhost");
  for (const host of ["localhost", "evil.test", "10.0.0.1"]) {
    const answer = await fetchAs(app, { path: "/healthz", host });
    expect([answer.status, answer.body]).toEqual([204, ""]);
  }
});

test.each([
  ["no Host", ""],
  ["an empty Host", "Host:\r\n"],
  ["two Hosts", "Host: localhost\r\nHost: localhost\r\n"],
  ["two different Hosts", "Host: localhost\r\nHost: evil.test\r\n"],
  ...["a@b", "a/b", "a?b", "a#b", "a\\b", "a b", "a\tb", "a\x01b", "a\xe9b", "localhost:99999", "localhost:", "[::1"]
    .map((host) => [`Host: ${host}`, `Host: ${host}\r\n`]),
])(
  "a request with %s gets 400 before any route, and the next one is served",
  { tags: ["H10"] },
  async (_name, header) => {
    await using app = await openTestApp();
    for (const path of ["/api/setup/status", "/api/auth/status", "/healthz", "/"]) {
      const answer = await rawRequest(app.port, `GET ${path} HTTP/1.1\r\n${header}Connection: close\r\n\r\n`);
      expect([path, answer.status]).toEqual([path, 400]);
    }
    expect((await fetchAs(app, {})).status).toBe(200);
  },
);

test("HTTP/1.0 without a Host gets 400", { tags: ["H10"] }, async () => {
  await using app = await openTestApp();
  expect((await rawRequest(app.port, "GET /api/setup/status HTTP/1.0\r\n\r\n")).status).toBe(400);
});

test("a host in another spelling is served in the same way", { tags: ["H11"] }, async () => {
  await using app = await openTestApp();
  for (const host of ["LOCALHOST.", "LocalHost", "localhost", "127.0.0.1", "127.0.0.1.", "[0:0:0:0:0:0:0:1]"]) {
    const answer = await fetchAs(app, { path: "/api/auth/status", host: `${host}:${app.port}` });
    expect([host, JSON.parse(answer.body).bypass]).toEqual([host, "loopback"]);
  }
});

test(
  "an absolute target with another host than Host gets 400, and one that matches is served",
  { tags: ["H12"] },
  async () => {
    await using app = await openTestApp();
    const ask = (target: string, host: string) =>
      rawRequest(app.port, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    const path = "/api/setup/status";
    expect((await ask(`http://evil.test${path}`, "localhost")).status).toBe(400);
    expect((await ask(`http://localhost${path}`, "evil.test")).status).toBe(400);
    expect((await ask(`http://localhost:1${path}`, "localhost:2")).status).toBe(400);
    expect((await ask(`http://localhost${path}`, "localhost")).status).toBe(200);
    expect((await ask(`http://evil.test${path}`, "evil.test")).status).toBe(403);
  },
);

test("rejects HTTP/2 without TLS, which has its host elsewhere", { tags: ["H12"] }, async () => {
  await using app = await openTestApp();
  const { connect } = await import("node:http2");
  const session = connect(`http://127.0.0.1:${app.port}`);
  try {
    for (const host of [undefined, "evil.test", "localhost"]) {
      const status = await new Promise((resolve, reject) => {
        const stream = session.request({
          ":path": "/api/setup/status",
          ":authority": "localhost",
          ...(host && { host }),
        });
        stream.on("response", (headers) => resolve(headers[":status"]));
        stream.on("error", reject);
        stream.end();
      });
      // Where Host and :authority agree there is nothing to refuse.
      expect([host, status]).toEqual([host, host === "localhost" ? 200 : 400]);
    }
  } finally {
    session.destroy();
  }
});

test.each([
  ...["//api/conversations", "/x/../api/conversations", "/%61pi/conversations", "/api%2fconversations"],
  ...[
    "/api\\conversations",
    "/API/conversations",
    "/api/./conversations",
    "/api//conversations",
    "/api/conversations/",
  ],
  ...[
    "/.//api/conversations",
    "/;/api/conversations",
    "/api;x/conversations",
    "/api/conversations%00",
    "/%2e/api/conversations",
  ],
])("the path %s reaches no route without its guard", { tags: ["H13"] }, async (path) => {
  const uiFolder = await Deno.makeTempDir({ prefix: "parlor-test-" });
  await Deno.writeTextFile(`${uiFolder}/index.html`, "<!doctype html>");
  await using app = await openTestApp({ config: { loopbackAuthBypass: false }, uiFolder });
  await enrol(app, "localhost");
  await (await app.services.conversations()).conversations.put("c1", { title: "kept secret", messages: [] });
  const answer = await fetchAs(app, { path });
  expect([200, 400, 401, 404]).toContain(answer.status);
  expect(answer.body).not.toContain("kept secret");
  // Outside /api, any path may return the page, but never an API response.
  if (answer.status === 200) expect(answer.headers.get("content-type")).toMatch(/^text\/html/);
  await Deno.remove(uiFolder, { recursive: true });
});

test("every response has the security headers, and API responses have no-store", { tags: ["C09"] }, async () => {
  await using app = await openTestApp();
  const requests = [
    { path: "/api/conversations" },
    { path: "/api/nothing" },
    { path: "/api/conversations", host: "evil.test" },
    { path: "/api/openapi.json" },
    { method: "PUT", path: "/api/conversations/c1", body: "x" },
    { method: "HEAD", path: "/api/conversations" },
    { path: "/healthz" },
    { path: "/" },
    { path: "/nothing.js" },
    { path: "/api/conversations", host: "a@b" },
  ];
  for (const request of requests) {
    const { headers, status } = await fetchAs(app, request);
    const name = `${request.path} ${status}`;
    expect([name, headers.get("x-content-type-options")]).toEqual([name, "nosniff"]);
    expect([name, headers.get("referrer-policy")]).toEqual([name, "no-referrer"]);
    expect([name, headers.get("content-security-policy")]).toEqual([
      name,
      expect.stringContaining("frame-ancestors 'none'"),
    ]);
    const features = headers.get("permissions-policy")?.split(", ") ?? [];
    const off = ["camera", "geolocation", "display-capture", "usb", "serial", "hid", "bluetooth", "payment", "midi"];
    expect([name, features]).toEqual([name, expect.arrayContaining(off.map((feature) => `${feature}=()`))]);
    // Dictation and passkeys work on the page itself, in no frame of another site.
    expect([name, features]).toEqual([
      name,
      expect.arrayContaining(["microphone=(self)", "publickey-credentials-get=(self)"]),
    ]);
    expect([name, headers.has("x-request-id"), headers.has("strict-transport-security")]).toEqual([name, true, false]);
    if (request.path.startsWith("/api") && request.host !== "a@b") {
      expect([name, headers.get("cache-control")]).toEqual([name, expect.stringContaining("no-store")]);
    }
  }
});

test("HSTS is sent over HTTPS, whether it is Parlor's own or a trusted proxy's", { tags: ["C09"] }, async () => {
  const hsts = "max-age=31536000; includeSubDomains";
  const tls = await makeCertificate();
  await using own = await openTestApp({ tls });
  using client = Deno.createHttpClient({ caCerts: [tls.cert] });
  const answer = await own.get("/api/auth/status", { client } as RequestInit);
  expect([answer.status, answer.headers.get("strict-transport-security")]).toEqual([200, hsts]);
  expect(await answer.json()).toMatchObject({ origin: own.url, bypass: "loopback" });
  await using proxied = await openTestApp({ config: { trustedProxies: ["127.0.0.1"] } });
  const headers = { "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "a.test" };
  expect((await fetchAs(proxied, { headers })).headers.get("strict-transport-security")).toBe(hsts);
});

test("HEAD responds as GET does, without a body", async () => {
  await using app = await openTestApp();
  for (const path of ["/api/setup/status", "/api/conversations", "/api/events"]) {
    const answer = await fetchAs(app, { method: "HEAD", path });
    expect([path, answer.status, answer.body]).toEqual([path, 200, ""]);
  }
});

test("each request is logged as one line: route pattern, status and request ID, but no IDs, query or token", async () => {
  await using app = await openTestApp();
  const answer = await app.get("/api/conversations/secret-id?api_token=secret-token&q=secret-query");
  await app.get("/secret-file?x=secret-query");
  await fetchAs(app, { method: "SECRET-METHOD", path: "/api/secret-path" });
  await answer.body?.cancel();
  const lines = app.logLines.filter((line) => line.includes('"status"')).map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { message: "GET /api/conversations/{id}", status: 404, request_id: answer.headers.get("x-request-id") },
    { message: "GET /*" },
    { message: "other /api/*", status: 404 },
  ]);
  expect(app.logLines.join("\n").toLowerCase()).not.toContain("secret");
});

test("a successful health check is logged only at level debug, other requests to its path at info", async () => {
  for (
    const [logLevel, lines] of [["info", ["POST /healthz"]], ["debug", ["GET /healthz", "POST /healthz"]]] as const
  ) {
    await using app = await openTestApp({ config: { logLevel } });
    expect((await app.get("/healthz")).status).toBe(204);
    await (await app.post("/healthz", {})).body?.cancel();
    expect(app.logLines.map((line) => JSON.parse(line).message)).toEqual(lines);
  }
});

test("startup warns that other machines are refused if it listens for them and allowed_hosts is empty", async () => {
  await using app = await openTestApp({ config: { host: "0.0.0.0" } });
  expect(app.logLines).toEqual([expect.stringMatching(/0\.0\.0\.0.*allowed_hosts is empty/)]);
  await using allowing = await openTestApp({ config: { host: "0.0.0.0", allowedHosts: ["desk.example"] } });
  expect(allowing.logLines.join("\n")).not.toContain("allowed_hosts is empty");
});

test("startup logs the addresses that guard_allow opens", async () => {
  await using app = await openTestApp({ config: { guardAllow: ["10.0.0.0/8"] } });
  expect(app.logLines).toEqual([expect.stringMatching(/10\.0\.0\.0\/8.*guard_allow/)]);
  await using usual = await openTestApp();
  expect(usual.logLines).toEqual([]);
});

test("log_requests = false logs no requests, and log_level hides less severe lines", async () => {
  for (const config of [{ logRequests: false }, { logLevel: "warn" }]) {
    await using app = await openTestApp({ config });
    await app.get("/api/setup/status");
    expect(app.logLines).toEqual([]);
  }
});

test("api_token is in no response's body or headers", { tags: ["S15"] }, async () => {
  await using app = await openTestApp({ config: { loopbackAuthBypass: false } });
  await enrol(app, "localhost");
  for (const path of ["/api/conversations", "/api/nothing", "/", "/healthz"]) {
    const answer = await fetchAs(app, { path: `${path}?api_token=secret-token` });
    expect(answer.body + JSON.stringify([...answer.headers])).not.toContain("secret-token");
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
  }
  expect(app.logLines.join("\n")).not.toContain("secret-token");
});

test("the served document describes every mounted route and its bodies", async () => {
  await using app = await openTestApp();
  const document = await (await app.get("/api/openapi.json")).json();
  expect(document.openapi).toMatch(/^3\.1/);
  expect(Object.keys(document.paths)).toEqual(expect.arrayContaining(["/api/auth/status", "/api/events", "/api/jobs"]));
  // Routes that are often called without a body; other content types are tested with them.
  const optional = ["invites", "register/begin", "token"].map((path) => `/api/auth/${path}`)
    .concat("/api/tailnet/enable", "/api/tailnet/disable", "/api/setup/complete", "/api/import")
    .concat("/api/documents/{id}/read");
  // A body that is not required would not be checked when its type is missing: see newRouter.
  type Operations = Record<string, { requestBody?: { required?: boolean } }>;
  for (const [path, operations] of Object.entries<Operations>(document.paths)) {
    if (optional.includes(path)) continue;
    for (const { requestBody } of Object.values(operations)) if (requestBody) expect(requestBody.required).toBe(true);
  }
});

test(
  "refuses to start, with advice, when localhost is listed while anyone may enroll",
  { tags: ["H19"] },
  async () => {
    const { loadConfig } = await import("../../services/config/config.ts");
    const load = (...args: string[]) =>
      loadConfig({
        args: ["--data-dir", "/nonexistent", ...args],
        environment: {},
        os: "linux",
        readTextFile: () => undefined,
      });
    for (const host of ["localhost", "127.0.0.1", "LOCALHOST.", "::1"]) {
      expect(() => load("--allowed-hosts", host)).toThrow(/pairing = "code"/);
    }
    expect(load("--allowed-hosts", "localhost", "--pairing", "code").pairing).toBe("code");
    expect(load("--allowed-hosts", "localhost", "--require-auth", "false").requireAuth).toBe(false);
  },
);

test("each rejection by the middleware has a code that names the reason", async () => {
  await using app = await openTestApp({ config: { loopbackAuthBypass: false } });
  expect(codeOf(await fetchAs(app, { host: "a@b" }))).toBe("invalid_request");
  expect(codeOf(await fetchAs(app, { host: "evil.test" }))).toBe("host_not_allowed");
  expect(codeOf(await fetchAs(app, { headers: { "Sec-Fetch-Site": "cross-site" } }))).toBe("cross_site");
});
