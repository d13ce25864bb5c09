import { expect, test } from "vitest";
import { endBodyOnRevocation, readCredentials } from "../../middleware/authentication.ts";
import { enrol } from "../helpers/app/enrolled.ts";
import { codeOf, fetchAs } from "../helpers/network/fetch_as.ts";
import { openTestApp } from "../helpers/app/test_app.ts";

const stateOf = async (app: { port: number }, headers: Record<string, string> = {}) =>
  JSON.parse((await fetchAs(app, { path: "/api/auth/status", headers })).body);

test.each([
  ...["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-IP", "Via"],
  ...["CF-Connecting-IP", "Tailscale-User-Login"],
])("a gated loopback request with %s gets 401, one without it is allowed", { tags: ["H05"] }, async (name) => {
  await using app = await openTestApp();
  await enrol(app, "localhost");
  expect((await fetchAs(app, { path: "/api/conversations" })).status).toBe(200);
  const answer = await fetchAs(app, { path: "/api/conversations", headers: { [name]: "127.0.0.1" } });
  expect([answer.status, codeOf(answer)]).toEqual([401, "unauthenticated"]);
});

test("the status mentions forwarding headers of an unlisted proxy", { tags: ["H05"] }, async () => {
  await using app = await openTestApp({ config: { allowedHosts: ["localhost"] } });
  expect(await stateOf(app)).not.toHaveProperty("hint");
  expect(await stateOf(app, { "X-Forwarded-For": "127.0.0.1" })).toMatchObject({ hint: "untrusted_proxy" });
});

test("behind a trusted proxy on this machine a remote client gets 401", { tags: ["H06"] }, async () => {
  await using app = await openTestApp({ config: { trustedProxies: ["127.0.0.1"], allowedHosts: ["desk.example"] } });
  await enrol(app, "desk.example");
  const headers = { "X-Forwarded-For": "127.0.0.1, 203.0.113.9", "X-Forwarded-Host": "desk.example" };
  expect((await fetchAs(app, { path: "/api/conversations", headers })).status).toBe(401);
  expect(await stateOf(app, headers)).not.toHaveProperty("hint");
});

test("forwarding headers of a stranger make a request neither local nor HTTPS", { tags: ["H08"] }, async () => {
  await using app = await openTestApp({
    connection: { peerAddress: "192.168.1.5" },
    config: { allowedHosts: ["desk.example"] },
  });
  await enrol(app, "desk.example");
  const headers = { "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "https" };
  const answer = await fetchAs(app, { path: "/api/conversations", host: "desk.example", headers });
  expect([answer.status, answer.headers.has("strict-transport-security")]).toEqual([401, false]);
});

test("a page behind a bare proxy ends the bypass until restart, as log and status say", { tags: ["H17"] }, async () => {
  await using app = await openTestApp();
  await enrol(app, "localhost");
  const own = { "X-Parlor-Page": `http://localhost:${app.port}` };
  expect((await fetchAs(app, { path: "/api/conversations", headers: own })).status).toBe(200);
  const page = { "X-Parlor-Page": "https://chat.example" };
  expect((await fetchAs(app, { path: "/api/conversations", headers: page })).status).toBe(401);
  expect((await fetchAs(app, { path: "/api/conversations" })).status).toBe(401);
  expect(await stateOf(app)).toMatchObject({ bypass: null, paired: true, hint: "bare_proxy" });
  expect(app.logLines.filter((line) => line.includes("loopback_auth_bypass = false"))).toHaveLength(1);
  await app.restart();
  expect((await fetchAs(app, { path: "/api/conversations" })).status).toBe(200);
});

test("a damaged credentials file gates everything without a bypass", { tags: ["G06"] }, async () => {
  await using app = await openTestApp({ config: { loopbackAuthBypass: false } });
  expect((await fetchAs(app, { path: "/api/conversations" })).status).toBe(200);
  await Deno.writeTextFile(`${app.dataDir}/credentials.json`, "{");
  expect((await fetchAs(app, { path: "/api/conversations" })).status).toBe(401);
  await Deno.remove(`${app.dataDir}/credentials.json`);
  expect((await fetchAs(app, { path: "/api/conversations" })).status).toBe(200);
});

test("the status shows a stranger only the flags of their own origin", { tags: ["G19"] }, async () => {
  await using app = await openTestApp({ connection: { peerAddress: "192.168.1.5" } });
  await enrol(app, "desk.example", "localhost");
  const answer = await fetchAs(app, { path: "/api/auth/status", host: "evil.test" });
  expect(JSON.parse(answer.body)).toEqual({
    rp_id: "evil.test",
    origin: "http://evil.test",
    paired: false,
    authenticated: false,
    method: null,
    bypass: "grace",
    passkeys_supported: false,
    pairing: "open",
  });
});

test.each([
  ["localhost", true],
  ["parlor.localhost", true],
  ["127.0.0.1", false],
  ["[::1]", false],
])("status under http://%s says that passkeys are supported: %s", { tags: ["G21"] }, async (host, expected) => {
  await using app = await openTestApp();
  const answer = await fetchAs(app, { path: "/api/auth/status", host: `${host}:${app.port}` });
  expect(JSON.parse(answer.body)).toMatchObject({ passkeys_supported: expected, bypass: "loopback" });
});

test(
  "no invalid credential opens a gated host, whether in header, query or cookie",
  { tags: ["S13", "S14"] },
  async () => {
    await using app = await openTestApp({ config: { loopbackAuthBypass: false } });
    await enrol(app, "localhost");
    const attempts: Record<string, string | string[]>[] = [
      { Authorization: "Bearer wrong" },
      { Authorization: "Bearer" },
      { Authorization: ["Bearer a", "Bearer b"] },
      { Authorization: "Basic d3Jvbmc6d3Jvbmc=" },
      { Cookie: "app_sess=wrong" },
      { Cookie: "__Host-app_sess=wrong; app_sess=%%%" },
    ];
    for (const headers of attempts) {
      for (const path of ["/api/conversations", "/api/conversations?api_token=wrong&api_token=more"]) {
        expect((await fetchAs(app, { path, headers })).status).toBe(401);
      }
    }
  },
);

test.each([
  [{ Authorization: "Bearer t1" }, "?api_token=t2", "t1"],
  [{ Authorization: "bearer t1" }, "", "t1"],
  [{ Authorization: "Basic t1" }, "?api_token=t2", null],
  [{ Authorization: "Token t1" }, "?api_token=t2", null],
  [{ Authorization: "Bearer t1, Bearer t2" }, "", null],
  [{ Authorization: "Bearer " }, "?api_token=t2", null],
  [{}, "?api_token=t2", "t2"],
  [{}, "?api_token=t2&api_token=t3", null],
  [{}, "", undefined],
])("the header determines which token is used: %j with %s", { tags: ["S13"] }, (headers, query, token) => {
  const request = new Request(`http://localhost/api/models${query}`, { headers: headers as Record<string, string> });
  expect(readCredentials(request, { scheme: "http" }).bearerToken).toBe(token);
});

test.each<["http" | "https", string, string | undefined]>([
  ["http", "app_sess=v", "v"],
  ["https", "app_sess=v", undefined],
  ["https", "a=b; __Host-app_sess=v", "v"],
  ["http", "__Host-app_sess=v", undefined],
  ["http", "app_sess=v; app_sess=w", undefined],
  ["http", "\u00a0app_sess=v", undefined],
  ["http", "=app_sess=v", undefined],
  ["http", "xapp_sess=v; app_sessx=v; app_sess", undefined],
])("over %s the cookies %j provide %s", { tags: ["S03", "S04"] }, (scheme, cookie, value) => {
  const request = { url: `${scheme}://localhost/`, headers: new Headers({ cookie }) } as Request;
  expect(readCredentials(request, { scheme }).sessionCookie).toBe(value);
});

const encoder = new TextEncoder();

/** A body that the test writes to, and its result. */
function openBody() {
  const ending = new AbortController();
  const seen = { released: 0, cancelled: 0 };
  let source!: ReadableStreamDefaultController<Uint8Array>;
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => void (source = controller),
    cancel() {
      seen.cancelled++;
      return new Promise(() => {}); // A source whose cancellation never ends.
    },
  });
  const reader = endBodyOnRevocation(stream, { signal: ending.signal, release: () => seen.released++ }).getReader();
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  return { ending, seen, reader, read, add: (text: string) => source.enqueue(encoder.encode(text)), source };
}

test("a body is passed on unchanged and ends when its source ends", async () => {
  const { reader, read, add, source, seen } = openBody();
  add("one");
  expect(await read()).toBe("one");
  const waiting = read();
  add("two");
  expect(await waiting).toBe("two");
  source.close();
  expect((await reader.read()).done).toBe(true);
  expect(seen).toEqual({ released: 1, cancelled: 0 });
});

test("revoking access ends a waiting body and drops buffered data", async () => {
  const waits = openBody();
  waits.add("one");
  expect(await waits.read()).toBe("one");
  const waiting = waits.reader.read();
  waits.ending.abort();
  expect((await waiting).done).toBe(true);
  expect(waits.seen).toEqual({ released: 1, cancelled: 1 });

  const ready = openBody();
  ready.add("one");
  ready.ending.abort();
  expect((await ready.reader.read()).done).toBe(true);
  expect(ready.seen).toEqual({ released: 1, cancelled: 1 });
});

test("a client that disconnects, and a source that fails, release it once", async () => {
  const left = openBody();
  left.reader.cancel();
  left.ending.abort();
  expect(left.seen).toEqual({ released: 1, cancelled: 1 });

  const failed = openBody();
  const waiting = failed.reader.read();
  failed.source.error(new Error("cut"));
  await expect(waiting).rejects.toThrow("cut");
  failed.ending.abort();
  expect(failed.seen).toEqual({ released: 1, cancelled: 0 });
});
