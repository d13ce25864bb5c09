import process from "node:process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type HttpClientOptions, openHttpClient } from "../../../services/http/http_client.ts";
import { OwnListeners } from "../../../services/http/own_listeners.ts";
import { OwnerConnections } from "../../../services/http/owner_connections.ts";
import { readText } from "../../../services/http/read_body.ts";
import { happened, standingClock } from "../../helpers/fakes/standing_clock.ts";
import { type Authority, openAuthority } from "../../helpers/files/net_certificates.ts";
import { openHttpServer, openSilentListener, send, sendText } from "../../helpers/network/loopback_servers.ts";
import { freePort } from "../../real/helpers/free_port.ts";

const SECOND = "127.0.0.2";
const TIMEOUTS = { connectMs: 30_000, firstByteMs: 30_000, idleMs: 30_000 };
let authority: Authority;
beforeAll(async () => void (authority = await openAuthority()));
afterAll(() => authority[Symbol.asyncDispose]());

/** A client with a DNS that gives one answer per lookup; the last one stays. */
function openClient(answers: string[][], options: HttpClientOptions = {}) {
  const lookups: string[] = [];
  const client = openHttpClient({
    resolve: (host) => Promise.resolve(answers[Math.min(lookups.push(host), answers.length) - 1]!),
    ...options,
  });
  return {
    client,
    lookups,
    async get(url: string) {
      const headers = { authorization: "Bearer secret" };
      const response = await client.fetch("the model", { baseUrl: url, timeouts: TIMEOUTS }, { url, headers });
      return await readText(response, 1000);
    },
    [Symbol.dispose]: () => client.close(),
  };
}

test("a name is looked up once per request, and its address gets the name as Host", { tags: ["J07"] }, async () => {
  await using server = openHttpServer((conn) => sendText(conn, "hello"), { hostname: SECOND });
  using opened = openClient([[SECOND]]);
  expect(await opened.get(`http://model.example:${server.port}/v1`)).toBe("hello");
  expect(opened.lookups).toEqual(["model.example"]);
  expect(server.requests[0]).toMatch(
    new RegExp(`^GET /v1 HTTP/1\\.1\r\n[^]*host: model\\.example:${server.port}\r\n`, "i"),
  );
});

test.each(["http", "https"])(
  "a name over %s that turns link-local after the first request isn't asked again",
  { tags: ["J07"] },
  async (scheme) => {
    const tls = scheme === "https" ? await authority.issue({ name: "model.example" }) : undefined;
    await using server = openHttpServer((conn) => sendText(conn, "hello"), { hostname: SECOND, tls });
    using opened = openClient([[SECOND], ["169.254.170.2"]], { caCerts: [authority.cert] });
    expect(await opened.get(`${scheme}://model.example:${server.port}`)).toBe("hello");
    await expect(opened.get(`${scheme}://model.example:${server.port}`)).rejects.toMatchObject({
      code: "address_not_allowed",
    });
    expect(server.requests).toHaveLength(1);
  },
);

test(
  "HTTPS is encrypted for the name, goes to the judged address and keeps its connection",
  { tags: ["J07"] },
  async () => {
    const tls = await authority.issue({ name: "model.example" });
    let connections = 0;
    await using server = openHttpServer(async (conn) => {
      connections++;
      await sendText(conn, "one");
      await conn.read(new Uint8Array(4096));
      await sendText(conn, "two");
    }, { hostname: SECOND, tls });
    using opened = openClient([[SECOND]], { caCerts: [authority.cert] });
    const url = `https://model.example:${server.port}/`;
    expect([await opened.get(url), await opened.get(url), connections]).toEqual(["one", "two", 1]);
    expect(server.requests[0]).toMatch(new RegExp(`host: model\\.example:${server.port}\r\n`, "i"));

    const other = await authority.issue({ name: "other.example" });
    await using wrong = openHttpServer((conn) => sendText(conn, "?"), { hostname: SECOND, tls: other });
    await expect(opened.get(`https://model.example:${wrong.port}`)).rejects.toThrow(
      "its TLS certificate isn't trusted",
    );
  },
);

test("HTTPS says why an address can't be reached", async () => {
  using opened = openClient([[SECOND]]);
  await expect(opened.get(`https://model.example:${freePort()}`)).rejects.toMatchObject({
    kind: "refused",
    message: expect.stringContaining("connection refused"),
  });
});

test("a name is judged again at each redirect", { tags: ["J07"] }, async () => {
  await using server = openHttpServer((conn) =>
    send(conn, "HTTP/1.1 307 Temporary Redirect\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")
  );
  using opened = openClient([["127.0.0.1"], ["::ffff:169.254.169.254"]]);
  await expect(opened.get(`http://model.example:${server.port}`)).rejects.toMatchObject({
    code: "address_not_allowed",
  });
  expect(server.requests).toHaveLength(1);
});

test("of several addresses, one that accepts is used, and another once it's gone", async () => {
  const port = freePort();
  using opened = openClient([["127.0.0.1", SECOND]]);
  {
    await using _server = openHttpServer((conn) => sendText(conn, "second"), { hostname: SECOND, port });
    expect(await opened.get(`http://model.example:${port}`)).toBe("second");
  }
  await using _server = openHttpServer((conn) => sendText(conn, "first"), { port });
  expect(await opened.get(`http://model.example:${port}`)).toBe("first");
});

test("a server that has accepted is waited for after a pause of Parlor's own process", async () => {
  const answer = Promise.withResolvers<void>();
  await using server = openHttpServer(async (conn) => {
    await answer.promise;
    await sendText(conn, "at last");
  });
  using opened = openClient([]);
  using clock = standingClock();
  const url = `http://127.0.0.1:${server.port}/`;
  const target = { baseUrl: url, timeouts: { ...TIMEOUTS, connectMs: 1_000 } };
  const answering = opened.client.fetch("the model", target, { url }).then((response) => readText(response, 1000));
  answering.catch(() => {}); // Read below.
  await happened(() => server.requests.length === 1);
  clock.advance(500);
  await new Promise<void>((resolve) => process.nextTick(resolve)); // The connection that looks for the server begins.
  // The rest of the limit passes before the runtime looks at its socket.
  clock.advance(1_000);
  answer.resolve();
  expect(await answering).toBe("at last");
});

test("a name without an address is reported", async () => {
  using opened = openClient([[]]);
  await expect(opened.get("http://model.example/")).rejects.toMatchObject({
    kind: "unresolved",
    message: `Can't reach the model at "http://model.example/": unknown host name`,
  });
});

test.each([
  [["23.45.67.89", "10.77.0.5"], ["23.45.67.89"]],
  [["10.77.0.5", "23.45.67.89"], ["23.45.67.89"]],
  [["fd00::5", "2a00:1450::1", "10.77.0.5"], ["2a00:1450::1", "10.77.0.5"]],
  [["10.77.0.5", "10.77.0.6"], ["10.77.0.5", "10.77.0.6"]],
])("of a name with the addresses %j, %j are used", { tags: ["J07"] }, async (found, used) => {
  const connections = new OwnerConnections({ resolve: () => Promise.resolve(found) });
  const route = await connections.route(new URL("https://model.example"), 1000, new AbortController().signal);
  expect(route!.addresses).toEqual(used);
  connections.close();
});

test("only requests to addresses that aren't public name Parlor", { tags: ["J09"] }, async () => {
  await using server = openHttpServer((conn) => sendText(conn, ""));
  using opened = openClient([["127.0.0.1"]]);
  for (const host of ["127.0.0.1", "localhost", "model.example"]) await opened.get(`http://${host}:${server.port}`);
  for (const head of server.requests) expect(head).toMatch(/^via: 1\.1 parlor\r$/im);
  expect(server.requests).toHaveLength(3);

  const connections = new OwnerConnections({ resolve: () => Promise.resolve(["23.45.67.89"]) });
  const { signal } = new AbortController();
  for (const url of ["http://model.example/", "https://model.example/", "http://23.45.67.89/"]) {
    expect((await connections.route(new URL(url), 1000, signal))!.headers).not.toHaveProperty("via");
  }
  connections.close();
});

test.each([
  ["127.0.0.1", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "x.example"]],
  ["0.0.0.0", ["127.0.0.1", "127.9.9.9", "localhost", "[::1]", "x.example"]],
  ["parlor.lan", ["127.0.0.1", "[::1]"]],
])("nothing is requested from Parlor's own listener on %s", { tags: ["J09"] }, async (hostname, hosts) => {
  await using listener = openSilentListener(hostname === "parlor.lan" ? "127.0.0.1" : hostname);
  const ownListeners = new OwnListeners();
  const remove = ownListeners.add({ hostname, port: listener.port });
  using opened = openClient([["127.0.0.1"]], { ownListeners });
  for (const host of hosts) {
    for (const scheme of ["http", "https"]) {
      await expect(opened.get(`${scheme}://${host}:${listener.port}`)).rejects.toMatchObject({
        code: "address_not_allowed",
        message: expect.stringContaining("it's the address of Parlor itself"),
      });
    }
  }
  await expect(opened.client.createWebSocket(`http://localhost:${listener.port}`, {}, 1000)).rejects.toMatchObject({
    code: "address_not_allowed",
  });
  expect(listener.connections).toBe(0);
  remove();
  expect(ownListeners.includes("127.0.0.1", listener.port)).toBe(false);
});

test("another port and another address of a listener aren't Parlor's own", { tags: ["J09"] }, () => {
  const own = new OwnListeners({ listeners: [{ hostname: "127.0.0.1", port: 8787 }, { hostname: "::", port: 443 }] });
  expect(own.includes("127.0.0.1", 8080)).toBe(false);
  expect(own.includes("127.0.0.2", 8787)).toBe(false);
  expect(own.includes("23.45.67.89", 443)).toBe(false);
});

test("all ports of the tailnet node are Parlor's own, also for Workers", { tags: ["J09"] }, () => {
  const own = new OwnListeners();
  own.setNodeAddresses(["100.64.0.1", "fd7a:115c:a1e0::1"]);
  const copy = new OwnListeners(JSON.parse(JSON.stringify(own)));
  for (const each of [own, copy]) {
    expect(each.includes("100.64.0.1", 11434)).toBe(true);
    expect(each.includes("fd7a:115c:a1e0:0::1", 443)).toBe(true);
    expect(each.includes("100.64.0.2", 443)).toBe(false);
  }
});

test("a web socket goes to the judged address of its name", { tags: ["J07"] }, async () => {
  let host = "";
  await using server = Deno.serve({ hostname: SECOND, port: 0, onListen() {} }, (request) => {
    host = `${request.headers.get("host")} ${request.headers.get("via")} ${request.headers.get("x-key")}`;
    return Deno.upgradeWebSocket(request).response;
  });
  using opened = openClient([[SECOND]]);
  const url = `http://comfy.example:${server.addr.port}/ws`;
  const socket = await opened.client.createWebSocket(url, { "x-key": "k" }, 10_000);
  await new Promise((resolve) => socket!.onopen = resolve);
  expect(host).toBe(`comfy.example:${server.addr.port} 1.1 parlor k`);
  await new Promise((resolve) => {
    socket!.onclose = resolve;
    socket!.close();
  });
});
