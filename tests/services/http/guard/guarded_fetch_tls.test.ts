import { afterAll, beforeAll, expect, test } from "vitest";
import { type Authority, openAuthority } from "../../../helpers/files/net_certificates.ts";
import { failureOf, openTestGuard, PRIVATE, PUBLIC } from "../../../helpers/network/loopback_guard.ts";
import { openHttpServer, openSilentListener, send, sendText } from "../../../helpers/network/loopback_servers.ts";
import { standingClock } from "../../../helpers/fakes/standing_clock.ts";

const GENERIC =
  "the address is not allowed or does not answer. Addresses that aren't public are refused, unless guard_allow includes them";
const names = { "good.example": [PUBLIC], "other.example": [PUBLIC], "inner.example": [PRIVATE] };
let authority: Authority;
beforeAll(async () => void (authority = await openAuthority()));
afterAll(() => authority[Symbol.asyncDispose]());

test("a certificate for the name is accepted, and Host is the name", { tags: ["E10"] }, async () => {
  const tls = await authority.issue({ name: "good.example" });
  await using server = openHttpServer((conn) => sendText(conn, "private"), { hostname: PUBLIC, tls });
  await using guard = await openTestGuard(names, { caCerts: [authority.cert] });
  const response = await guard.fetch(`https://good.example:${server.port}/x`);
  expect(await response.text()).toBe("private");
  expect(server.requests[0]).toMatch(
    new RegExp(`^GET /x HTTP/1\\.1\r\n[^]*host: good\\.example:${server.port}\r\n`, "i"),
  );
});

test.each([
  ["for another name", { name: "other.example" }],
  ["signed by itself", { name: "good.example", signedBy: "self" as const }],
  ["that ran out", { name: "good.example", isExpired: true }],
])("rejects a certificate %s", { tags: ["E10"] }, async (_title, options) => {
  const tls = await authority.issue(options);
  await using server = openHttpServer((conn) => sendText(conn, "private"), { hostname: PUBLIC, tls });
  await using guard = await openTestGuard(names, { caCerts: [authority.cert] });
  expect(await failureOf(guard.fetch(`https://good.example:${server.port}/x`))).toEqual({
    code: "upstream_error",
    message: `Can't fetch from "good.example:${server.port}": ${GENERIC}`,
  });
  expect(server.requests).toEqual([]);
});

test("refuses a certificate of an untrusted authority", { tags: ["E10"] }, async () => {
  const tls = await authority.issue({ name: "good.example" });
  await using server = openHttpServer((conn) => sendText(conn, "private"), { hostname: PUBLIC, tls });
  await using guard = await openTestGuard(names);
  await expect(guard.fetch(`https://good.example:${server.port}/x`)).rejects.toThrow(GENERIC);
  expect(server.requests).toEqual([]);
});

test("sends the host name (SNI) and nothing unencrypted", { tags: ["E10"] }, async () => {
  await using listener = openSilentListener(PUBLIC);
  using clock = standingClock();
  await using guard = await openTestGuard(names);
  const call = failureOf(guard.fetch(`https://good.example:${listener.port}/s3cret-path`, { timeoutMs: 500 }));
  await listener.firstBytes;
  expect(listener.received.charCodeAt(0)).toBe(22); // a TLS handshake record
  expect(listener.received).toContain("good.example");
  expect(listener.received).not.toContain(PUBLIC);
  expect(listener.received).not.toMatch(/s3cret|CONNECT|Proxy/);
  await clock.until(call, 500);
});

test("a redirect from https to http is refused, one to https is followed", { tags: ["E03"] }, async () => {
  const tls = await authority.issue({ name: "good.example" });
  await using plain = openHttpServer((conn) => sendText(conn, "plain"), { hostname: PUBLIC });
  await using secret = openSilentListener(PRIVATE);
  await using server = openHttpServer((conn, head) => {
    const location = head.startsWith("GET /down")
      ? `http://good.example:${plain.port}/`
      : head.startsWith("GET /inner")
      ? `https://inner.example:${secret.port}/`
      : "/end";
    return head.startsWith("GET /end")
      ? sendText(conn, "end")
      : send(conn, `HTTP/1.1 302 Found\r\nLocation: ${location}\r\n\r\n`);
  }, { hostname: PUBLIC, tls });
  await using guard = await openTestGuard(names, { caCerts: [authority.cert] });
  const base = `https://good.example:${server.port}`;
  expect(await (await guard.fetch(`${base}/fine`)).text()).toBe("end");
  expect(await failureOf(guard.fetch(`${base}/down`))).toMatchObject({ message: expect.stringContaining(GENERIC) });
  expect(await failureOf(guard.fetch(`${base}/inner`))).toMatchObject({ message: expect.stringContaining(GENERIC) });
  expect(plain.requests).toEqual([]);
  expect(secret.connections).toBe(0);
});

test("a header of 100 KB inside TLS is refused", { tags: ["E11"] }, async () => {
  const tls = await authority.issue({ name: "good.example" });
  await using server = openHttpServer(
    (conn) => send(conn, `HTTP/1.1 200 OK\r\nX-A: ${"a".repeat(100_000)}\r\nContent-Length: 2\r\n\r\nok`),
    { hostname: PUBLIC, tls },
  );
  await using guard = await openTestGuard(names, { caCerts: [authority.cert] });
  expect(await failureOf(guard.fetch(`https://good.example:${server.port}/`))).toMatchObject({
    code: "upstream_error",
  });
});

test("two calls over TLS are two connections", { tags: ["E12"] }, async () => {
  const tls = await authority.issue({ name: "good.example" });
  await using server = openHttpServer((conn) => sendText(conn, "ok"), { hostname: PUBLIC, tls });
  await using guard = await openTestGuard(names, { caCerts: [authority.cert] });
  for (let call = 0; call < 2; call++) {
    expect(await (await guard.fetch(`https://good.example:${server.port}/`)).text()).toBe("ok");
  }
  expect(guard.lookups).toEqual(["good.example", "good.example"]);
  expect(server.requests).toHaveLength(2);
});
