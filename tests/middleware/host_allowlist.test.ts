import { expect, test } from "vitest";
import { enrol } from "../helpers/app/enrolled.ts";
import { codeOf, fetchAs } from "../helpers/network/fetch_as.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

/** Every route below /api as a request with parameters filled in. */
async function allRoutes(app: TestApp): Promise<{ method: string; path: string }[]> {
  return (await app.app.loadApi()).openAPIRegistry.definitions.flatMap((definition) =>
    definition.type === "route" && definition.route.path.startsWith("/api/")
      ? [{ method: definition.route.method.toUpperCase(), path: definition.route.path.replace(/\{[^}]+\}/g, "x1") }]
      : []
  );
}

const isOpenToEnrolment = (path: string) => /^\/api\/auth\/(status|register\/|login\/)/.test(path);

test.each(["evil.test", "0.0.0.0", "192.168.77.1", "2130706433", "0x7f.1", "127.1", "localhost.evil.test"])(
  "from a loopback peer under the host %s every route gets 403 without an effect",
  { tags: ["H01", "H02", "H11"] },
  async (name) => {
    await using app = await openTestApp();
    const before = await (await app.get("/api/conversations")).text();
    for (const { method, path } of await allRoutes(app)) {
      if (isOpenToEnrolment(path)) continue;
      const body = method === "GET" || method === "DELETE" ? undefined : "{}";
      const headers: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
      const answer = await fetchAs(app, { method, path, host: `${name}:${app.port}`, headers, body });
      expect([method, path, answer.status, codeOf(answer)]).toEqual([method, path, 403, "host_not_allowed"]);
      expect(answer.headers.has("access-control-allow-origin")).toBe(false);
    }
    expect(await (await app.get("/api/conversations")).text()).toBe(before);
    expect(await (await app.get("/api/setup/status")).json()).toMatchObject({ completed: false });
  },
);

test("the enrollment status is available on an unlisted host", async () => {
  await using app = await openTestApp();
  const answer = await fetchAs(app, { path: "/api/auth/status", host: "new.example" });
  expect([answer.status, JSON.parse(answer.body)]).toMatchObject([200, { rp_id: "new.example", bypass: "grace" }]);
});

test.each(["localhost", "127.0.0.1", "[::1]", "x.localhost"])(
  "a remote peer that requests the host %s gets 403, although the RP ID is in grace",
  { tags: ["H03"] },
  async (host) => {
    await using app = await openTestApp({ connection: { peerAddress: "192.168.1.5" } });
    for (const path of ["/api/setup/status", "/api/auth/status", "/api/conversations"]) {
      const answer = await fetchAs(app, { path, host: `${host}:${app.port}` });
      expect([path, answer.status, codeOf(answer)]).toEqual([path, 403, "host_not_allowed"]);
    }
  },
);

test('with localhost listed and pairing = "code" a remote peer gets no bypass and only the ceremonies', {
  tags: ["H03"],
}, async () => {
  await using app = await openTestApp({
    connection: { peerAddress: "172.17.0.1" },
    config: { allowedHosts: ["localhost", "127.0.0.1"], pairing: "code" },
  });
  const status = await fetchAs(app, { path: "/api/auth/status" });
  expect(JSON.parse(status.body)).toMatchObject({ bypass: "grace", authenticated: false, pairing: "code" });
  expect((await fetchAs(app, { path: "/api/setup/status" })).status).toBe(200);
  for (const { method, path } of await allRoutes(app)) {
    // Requests with their own one-time code need that code.
    if (isOpenToEnrolment(path) || path === "/api/setup/status" || path === "/api/auth/cli/redeem") continue;
    const answer = await fetchAs(app, { method, path });
    expect([method, path, answer.status, codeOf(answer)]).toEqual([method, path, 401, "unauthenticated"]);
  }
});

test("a listed host without credentials gets 401 once gated, not 403", { tags: ["H14"] }, async () => {
  await using app = await openTestApp({
    connection: { peerAddress: "192.168.1.5" },
    config: { allowedHosts: ["desk.example"] },
  });
  const ask = () => fetchAs(app, { path: "/api/conversations", host: "desk.example" });
  expect((await ask()).status).toBe(200);
  await enrol(app, "desk.example");
  const answer = await ask();
  expect([answer.status, codeOf(answer), answer.headers.get("www-authenticate")])
    .toEqual([401, "unauthenticated", "Bearer"]);
});

test("a client with valid credentials still needs a listed host", { tags: ["H15"] }, async () => {
  await using app = await openTestApp({ config: { requireAuth: false } });
  const answer = await fetchAs(app, { path: "/api/conversations", host: "evil.test" });
  expect([answer.status, codeOf(answer)]).toEqual([403, "host_not_allowed"]);
});

test("an IPv4-mapped peer is treated as its IPv4 form", { tags: ["H09"] }, async () => {
  await using here = await openTestApp({ connection: { peerAddress: "::ffff:127.0.0.1" } });
  expect((await fetchAs(here, { path: "/api/conversations" })).status).toBe(200);
  await using there = await openTestApp({ connection: { peerAddress: "::ffff:192.168.1.5" } });
  expect((await fetchAs(there, { path: "/api/conversations" })).status).toBe(403);
});

test("loopback names and the loopback bypass don't exist on the tailnet listener", { tags: ["T01"] }, async () => {
  await using app = await openTestApp({ connection: { listener: "tailnet" } });
  await enrol(app, "localhost");
  expect((await fetchAs(app, { path: "/api/conversations" })).status).toBe(401);
  expect((await fetchAs(app, { path: "/api/auth/status" })).status).toBe(403);
});
