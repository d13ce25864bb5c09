import { expect, test } from "vitest";
import { openTestGuard, PRIVATE, PUBLIC, type TestGuard } from "../../../helpers/network/loopback_guard.ts";
import { openHttpServer, openSilentListener, send, sendText } from "../../../helpers/network/loopback_servers.ts";
import { happened, standingClock } from "../../../helpers/fakes/standing_clock.ts";
import { rawRequest, readToEnd, writeAll } from "../../../helpers/network/raw_http.ts";

/** Port of the proxy, and what would reveal its password. */
function passOf(guard: TestGuard): { port: number; header: string } {
  const url = new URL(guard.proxyUrl);
  return {
    port: Number(url.port),
    header: `Proxy-Authorization: Basic ${btoa(`${url.username}:${url.password}`)}\r\n`,
  };
}

test("the proxy listens on loopback, and its password is long and new each time", async () => {
  await using first = await openTestGuard({});
  await using second = await openTestGuard({});
  expect(first.proxyUrl).toMatch(/^http:\/\/guard:[\w-]{32}@127\.0\.0\.1:\d+$/);
  expect(new URL(first.proxyUrl).password).not.toBe(new URL(second.proxyUrl).password);
});

test("without the password nothing is looked up or connected to", async () => {
  await using server = openSilentListener(PUBLIC);
  await using guard = await openTestGuard({ "a.example": [PUBLIC] });
  const { port, header } = passOf(guard);
  const wrong = [
    "",
    `Proxy-Authorization: Basic ${btoa("guard:guess")}\r\n`,
    "Proxy-Authorization: Basic\r\n",
    "Proxy-Authorization: \r\n",
    header.replace("Proxy-", ""),
    header + header,
    header.replace("\r\n", "x\r\n"),
  ];
  for (const headers of wrong) {
    const target = `a.example:${server.port}`;
    const tunnel = await rawRequest(port, `CONNECT ${target} HTTP/1.1\r\n${headers}\r\n`);
    const plain = await rawRequest(port, `GET http://${target}/ HTTP/1.1\r\nHost: ${target}\r\n${headers}\r\n`);
    expect([tunnel.status, plain.status], headers).toEqual([407, 407]);
    expect(plain.headers.get("proxy-authenticate")).toBe('Basic realm="guard"');
  }
  expect(guard.lookups).toEqual([]);
  expect(server.connections).toBe(0);
});

test("with the password another program gets tunnels and plain exchanges", async () => {
  await using server = openHttpServer((conn) => sendText(conn, "hello"), { hostname: PUBLIC });
  await using guard = await openTestGuard({ "a.example": [PUBLIC] });
  const { port, header } = passOf(guard);
  const inner = `GET /in HTTP/1.1\r\nHost: a.example\r\n\r\n`;
  const tunnel = await rawRequest(port, `CONNECT a.example:${server.port} HTTP/1.1\r\n${header}\r\n${inner}`);
  expect(tunnel).toMatchObject({ status: 200, body: expect.stringMatching(/^HTTP\/1\.1 200 OK\r\n[^]*hello$/) });
  const plain = await rawRequest(port, `GET http://a.example:${server.port}/out?a=%2f' HTTP/1.1\r\n${header}\r\n`);
  expect(plain).toMatchObject({ status: 200, body: "hello" });
  expect(plain.headers.get("connection")).toBe("close");
  expect(server.requests[0]).toBe(inner);
  expect(server.requests[1]).toMatch(/^GET \/out\?a=%2f' HTTP\/1\.1\r\n/);
});

test("the server of a plain request sees no password or hop headers, and the checked host", async () => {
  await using server = openHttpServer((conn) => sendText(conn, "ok"), { hostname: PUBLIC });
  await using guard = await openTestGuard({ "a.example": [PUBLIC] });
  const { port, header } = passOf(guard);
  const headers =
    `${header}Host: other.example\r\nHost: third.example\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n` +
    "Keep-Alive: 5\r\nProxy-Connection: keep-alive\r\nUpgrade: websocket\r\nTE: trailers\r\nX-Kept: \xfc\r\n";
  await rawRequest(port, `GET http://a.example:${server.port} HTTP/1.1\r\n${headers}\r\n`);
  expect(server.requests).toEqual([
    `GET / HTTP/1.1\r\nHost: a.example:${server.port}\r\nX-Kept: \xfc\r\nConnection: close\r\nVia: 1.1 parlor\r\n\r\n`,
  ]);
});

test("a body is forwarded by its length, and a second request on the connection never reaches the first server", async () => {
  await using server = openHttpServer(async (conn, head) => {
    const body = head.slice(head.indexOf("\r\n\r\n") + 4);
    const rest = new Uint8Array(5 - body.length);
    if (rest.length > 0) await conn.read(rest);
    await sendText(conn, body + String.fromCharCode(...rest));
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({ "a.example": [PUBLIC] });
  const { port, header } = passOf(guard);
  const post = `POST http://a.example:${server.port}/ HTTP/1.1\r\n${header}Content-Length: 5\r\n\r\n12345`;
  expect(await rawRequest(port, post)).toMatchObject({ status: 200, body: "12345" });
  const second = await rawRequest(port, `${post}GET http://a.example:${server.port}/second HTTP/1.1\r\n${header}\r\n`);
  expect(second.status).toBe(0);
  expect(server.requests.join()).not.toContain("second");
  expect(server.requests.join()).not.toContain("Proxy-Authorization");
});

test("interim responses are forwarded before the final one", async () => {
  await using server = openHttpServer(async (conn) => {
    await send(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    await sendText(conn, "final");
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({ "a.example": [PUBLIC] });
  const { port, header } = passOf(guard);
  const answer = await rawRequest(port, `GET http://a.example:${server.port}/ HTTP/1.1\r\n${header}\r\n`);
  expect(answer).toMatchObject({ status: 103, body: expect.stringMatching(/^HTTP\/1\.1 200 OK\r\n[^]*final$/) });
});

test.each([
  "CONNECT 0x7f.1:80",
  "CONNECT 2130706433:80",
  "CONNECT 127.1:443",
  "CONNECT 127.0.0.1.:443",
  "CONNECT 134744072:80",
  "CONNECT [::ffff:127.0.0.1]:443",
  "CONNECT [::1]:443",
  "CONNECT localhost:80",
  "CONNECT localhost.:80",
  "CONNECT router:80",
  "CONNECT inner.example:80",
  "CONNECT 10.0.0.1:80",
  "CONNECT a.example",
  "CONNECT a.example:",
  "CONNECT a.example:0",
  "CONNECT a.example:99999",
  "CONNECT u:p@a.example:80",
  "CONNECT a.example%00.inner.example:80",
  "CONNECT good.example\\@inner.example:80",
  "CONNECT http://a.example:80",
  "GET http://u:p@a.example/",
  "GET http://good.example\\@127.0.0.1/",
  "GET http://good.example#@127.0.0.1/",
  "GET http://a%2eexample/",
  "GET http:///",
  "GET http:a.example/",
  "GET https://a.example/",
  "GET ftp://a.example/",
  "GET file:///etc/passwd",
  "GET gopher://a.example/",
  "GET /",
  "OPTIONS *",
])("the proxy itself rejects %j", { tags: ["E04", "E07", "E08"] }, async (request) => {
  await using closed = openSilentListener(PRIVATE);
  await using guard = await openTestGuard({ "inner.example": [PRIVATE] });
  const { port, header } = passOf(guard);
  const answer = await rawRequest(port, `${request} HTTP/1.1\r\n${header}\r\n`);
  expect(answer).toMatchObject({
    status: 502,
    body:
      "the address is not allowed or does not answer. Addresses that aren't public are refused, unless guard_allow includes them\n",
  });
  expect(closed.connections).toBe(0);
});

test.each([
  ["a body of unknown length", "Transfer-Encoding: chunked\r\n"],
  ["two lengths", "Content-Length: 1\r\nContent-Length: 2\r\n"],
  ["a length that is no number", "Content-Length: -1\r\n"],
])("rejects a plain request with %s before any connection", async (_title, headers) => {
  await using server = openSilentListener(PUBLIC);
  await using guard = await openTestGuard({ "a.example": [PUBLIC] });
  const { port, header } = passOf(guard);
  const answer = await rawRequest(port, `POST http://a.example:${server.port}/ HTTP/1.1\r\n${header}${headers}\r\n`);
  expect(answer.status).toBe(502);
  expect(server.connections).toBe(0);
});

test.each([
  ["garbage", "\x00\x01\xff\xfe\r\n\r\n"],
  ["a TLS greeting", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"],
  ["a folded header", "GET http://a.example/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n"],
  ["a bare line feed", "GET http://a.example/ HTTP/1.1\r\nA: b\nProxy-Authorization: x\r\n\r\n"],
  ["a header without name", "GET http://a.example/ HTTP/1.1\r\n: b\r\n\r\n"],
  ["a header of 100 KB", `GET http://a.example/ HTTP/1.1\r\nA: ${"b".repeat(100_000)}\r\n\r\n`],
  ["10,000 headers", `GET http://a.example/ HTTP/1.1\r\n${"a: b\r\n".repeat(10_000)}\r\n`],
])("responds to %s with 400, and the proxy keeps running", { tags: ["E11"] }, async (_title, text) => {
  await using server = openHttpServer((conn) => sendText(conn, "alive"), { hostname: PUBLIC });
  await using guard = await openTestGuard({ "a.example": [PUBLIC] });
  expect((await rawRequest(passOf(guard).port, text)).status).toBe(400);
  expect(guard.lookups).toEqual([]);
  const answer = await guard.fetch(`http://a.example:${server.port}/`);
  expect(await answer.text()).toBe("alive");
});

test("a client that ends, half-closes or stays silent loses only its own connection", async () => {
  await using server = openHttpServer((conn) => sendText(conn, "alive"), { hostname: PUBLIC });
  using clock = standingClock();
  await using guard = await openTestGuard({ "a.example": [PUBLIC] }, { limits: { headMs: 100 } });
  const { port, header } = passOf(guard);
  (await Deno.connect({ hostname: "127.0.0.1", port })).close();
  const halfClosed = await Deno.connect({ hostname: "127.0.0.1", port });
  await halfClosed.closeWrite();
  expect(await readToEnd(halfClosed)).toMatch(/^HTTP\/1\.1 400 /);
  halfClosed.close();
  using silent = await Deno.connect({ hostname: "127.0.0.1", port });
  using stopping = await Deno.connect({ hostname: "127.0.0.1", port });
  await writeAll(stopping, `GET http://a.example/ HTTP/1.1\r\n${header}`);
  expect(await clock.until(Promise.all([readToEnd(silent), readToEnd(stopping)]), 100)).toEqual(["", ""]);
  expect(await (await guard.fetch(`http://a.example:${server.port}/`)).text()).toBe("alive");
});

test("a tunnel without traffic ends", async () => {
  await using server = openSilentListener(PUBLIC);
  using clock = standingClock();
  await using guard = await openTestGuard({ "a.example": [PUBLIC] }, { limits: { idleMs: 100 } });
  const { port, header } = passOf(guard);
  const answer = rawRequest(port, `CONNECT a.example:${server.port} HTTP/1.1\r\n${header}\r\nhello`);
  await happened(() => server.received === "hello");
  expect(await clock.until(answer, 100)).toMatchObject({ status: 200, body: "" });
  expect(server.received).toBe("hello");
});

test("strangers can't use up the connections: the oldest of theirs is closed", async () => {
  await using server = openHttpServer((conn) => sendText(conn, "alive"), { hostname: PUBLIC });
  await using guard = await openTestGuard({ "a.example": [PUBLIC] }, { limits: { connections: 4 } });
  const { port } = passOf(guard);
  const strangers = [];
  for (let count = 0; count < 12; count++) strangers.push(await Deno.connect({ hostname: "127.0.0.1", port }));
  expect(await (await guard.fetch(`http://a.example:${server.port}/`)).text()).toBe("alive");
  expect(await Promise.all(strangers.slice(0, 8).map(readToEnd))).toEqual(Array(8).fill(""));
  strangers.forEach((conn) => conn.close());
});

test("rejects connections above the limit while all are in use", async () => {
  await using server = openSilentListener(PUBLIC);
  await using guard = await openTestGuard({ "a.example": [PUBLIC] }, { limits: { connections: 2 } });
  const { port, header } = passOf(guard);
  const connect = `CONNECT a.example:${server.port} HTTP/1.1\r\n${header}\r\n`;
  const tunnels = [];
  for (let count = 0; count < 2; count++) {
    const tunnel = await Deno.connect({ hostname: "127.0.0.1", port });
    tunnels.push(tunnel);
    await writeAll(tunnel, connect);
    await tunnel.read(new Uint8Array(100));
  }
  expect((await rawRequest(port, connect)).status).toBe(0);
  tunnels.forEach((conn) => conn.close());
});

test("a client that disconnects also closes its connection to the server", async () => {
  const { promise: serverSawEnd, resolve } = Promise.withResolvers<string>();
  await using server = openHttpServer(async (conn) => {
    await send(conn, "HTTP/1.1 200 OK\r\n\r\npart");
    resolve(await readToEnd(conn));
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({ "a.example": [PUBLIC] });
  const { port, header } = passOf(guard);
  const client = await Deno.connect({ hostname: "127.0.0.1", port });
  await writeAll(client, `GET http://a.example:${server.port}/ HTTP/1.1\r\n${header}\r\n`);
  await client.read(new Uint8Array(10));
  client.close();
  expect(await serverSawEnd).toBe("");
});

test.each([
  ["HTTP/1.1", "HTTP/1.0 200 OK\r\n\r\npart", "4\r\npart\r\n0\r\n\r\n"],
  ["HTTP/1.1", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npart", "part"],
  ["HTTP/1.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n0\r\n\r\n", "4\r\npart\r\n0\r\n\r\n"],
  ["HTTP/1.1", "HTTP/1.1 204 None\r\n\r\n", ""],
  ["HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\npart", "part"],
])("an %s client gets the response %j with the body %j", async (version, text, body) => {
  await using server = openHttpServer((conn) => send(conn, text), { hostname: PUBLIC });
  await using guard = await openTestGuard({ "a.example": [PUBLIC] });
  const { port, header } = passOf(guard);
  const answer = await rawRequest(port, `GET http://a.example:${server.port}/ ${version}\r\n${header}\r\n`);
  expect(answer.body).toBe(body);
});

test("a body that was cut by a limit doesn't look complete", async () => {
  await using server = openHttpServer(async (conn) => {
    await send(conn, "HTTP/1.1 200 OK\r\n\r\npart");
    await readToEnd(conn);
  }, { hostname: PUBLIC });
  using clock = standingClock();
  await using guard = await openTestGuard({ "a.example": [PUBLIC] }, { limits: { idleMs: 100 } });
  const { port, header } = passOf(guard);
  using client = await Deno.connect({ hostname: "127.0.0.1", port });
  await writeAll(client, `GET http://a.example:${server.port}/ HTTP/1.1\r\n${header}\r\n`);
  const buffer = new Uint8Array(1024);
  let text = "";
  while (!text.endsWith("part\r\n")) text += new TextDecoder().decode(buffer.subarray(0, (await client.read(buffer))!));
  text += await clock.until(readToEnd(client), 100);
  expect(text.slice(text.indexOf("\r\n\r\n") + 4)).toBe("4\r\npart\r\n");
});

test("a response that isn't HTTP isn't passed on", async () => {
  await using server = openHttpServer((conn) => send(conn, "+OK POP3 ready\r\n\r\n"), { hostname: PUBLIC });
  await using guard = await openTestGuard({ "a.example": [PUBLIC] });
  const { port, header } = passOf(guard);
  expect((await rawRequest(port, `GET http://a.example:${server.port}/ HTTP/1.1\r\n${header}\r\n`)).status).toBe(0);
});

test("closing ends the tunnels and the listener", async () => {
  await using server = openSilentListener(PUBLIC);
  const guard = await openTestGuard({ "a.example": [PUBLIC], "slow.example": () => new Promise(() => {}) });
  const { port, header } = passOf(guard);
  const tunnel = rawRequest(port, `CONNECT a.example:${server.port} HTTP/1.1\r\n${header}\r\nhello`);
  const lookup = rawRequest(port, `CONNECT slow.example:80 HTTP/1.1\r\n${header}\r\n`);
  await server.firstBytes;
  await guard.close();
  expect((await tunnel).status).toBe(200);
  expect((await lookup).status).toBe(0);
  await expect(Deno.connect({ hostname: "127.0.0.1", port })).rejects.toThrow();
});
