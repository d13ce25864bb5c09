import { expect, test } from "vitest";
import {
  type GuardedGetLimits,
  type GuardedResponse,
  sendGuardedGet,
} from "../../../../services/http/guard/guarded_get.ts";
import { createTargetPolicy } from "../../../../services/http/guard/target_policy.ts";
import { openAuthority } from "../../../helpers/files/net_certificates.ts";
import { failureOf, type Names, PRIVATE, PUBLIC } from "../../../helpers/network/loopback_guard.ts";
import { openHttpServer, openSilentListener, send } from "../../../helpers/network/loopback_servers.ts";
import { standingClock } from "../../../helpers/fakes/standing_clock.ts";

const REFUSED =
  /the address is not allowed or does not answer\. Addresses that aren't public are refused, unless guard_allow includes them$/;

interface Options {
  names?: Names;
  limits?: Partial<GuardedGetLimits>;
  caCerts?: string[];
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

function get(url: string, { names = {}, limits, caCerts, signal, headers = {} }: Options = {}) {
  const policy = createTargetPolicy({
    allow: [`${PUBLIC}/32`],
    exactOrigins: [],
    resolve: async (host) => {
      const found = names[host] ?? [];
      return typeof found === "function" ? await found() : found;
    },
  });
  return sendGuardedGet(new URL(url), {
    policy,
    headers,
    limits,
    caCerts,
    signal: signal ?? new AbortController().signal,
  });
}

async function textOf(answer: GuardedResponse): Promise<string> {
  using open = answer;
  const buffer = new Uint8Array(7); // smaller than anything it has to assemble
  let text = "";
  for (let count = await open.read(buffer); count > 0; count = await open.read(buffer)) {
    text += new TextDecoder().decode(buffer.subarray(0, count));
  }
  return text;
}

/** A server that responds with these bytes, each part in a separate write. */
function serving(...parts: string[]) {
  return openHttpServer(async (conn) => {
    for (const part of parts) {
      await send(conn, part);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }, { hostname: PUBLIC });
}

test.each<[string, string[]]>([
  ["by its length", ["HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n", "Hello, ", "harbour"]],
  ["in chunks", [
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7;x=y\r\nHello",
    ", \r\n7\r",
    "\nharbour\r\n0\r\nT: 1\r\n\r\n",
  ]],
  ["until the connection ends", ["HTTP/1.1 200 OK\r\n\r\nHello, harbour"]],
  ["after an interim head", [
    "HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nHello, harbour",
  ]],
])("reads a body %s", async (_, parts) => {
  await using server = serving(...parts);
  const answer = await get(`http://${PUBLIC}:${server.port}/a/b?c=d#e`, { headers: { range: "bytes=5-" } });
  expect(answer.status).toBe(200);
  expect(await textOf(answer)).toBe("Hello, harbour");
  const lines = server.requests[0]!.split("\r\n");
  expect(lines[0]).toBe("GET /a/b?c=d HTTP/1.1");
  expect(lines).toEqual(expect.arrayContaining([`Host: ${PUBLIC}:${server.port}`, "range: bytes=5-"]));
});

test("returns status, headers and length, and doesn't follow redirects", async () => {
  await using server = serving('HTTP/1.1 302 Found\r\nLocation: /x\r\nETag: "a"\r\nContent-Length: 0\r\n\r\n');
  using answer = await get(`http://${PUBLIC}:${server.port}/`);
  expect(answer).toMatchObject({ status: 302, bodyBytes: 0 });
  expect([answer.getHeader("Location"), answer.getHeader("etag"), answer.getHeader("x")]).toEqual([
    "/x",
    '"a"',
    undefined,
  ]);
  expect(server.requests).toHaveLength(1);
});

test.each<[string, string[]]>([
  ["its length says more", ["HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nHello"]],
  ["the last chunk is missing", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n"]],
  ["a chunk is shorter than it says", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nHello"]],
  ["a chunk has no size", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nHello\r\n"]],
  ["a chunk's line does not end", [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;${"x".repeat(5000)}`]],
])("reports an incomplete body when %s", { tags: ["E11"] }, async (_, parts) => {
  await using server = serving(...parts);
  const answer = await get(`http://${PUBLIC}:${server.port}/`);
  expect(await failureOf(textOf(answer))).toMatchObject({
    code: "upstream_error",
    message: expect.stringMatching(/was cut off$/),
  });
});

test.each([
  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nHello!",
  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nHello",
  "SSH-2.0-OpenSSH_9.2\r\n\r\n",
  `HTTP/1.1 200 OK\r\nX: ${"x".repeat(100_000)}\r\n\r\n`,
])("a response that starts with %j is rejected", { tags: ["E11"] }, async (text) => {
  await using server = serving(text);
  expect(await failureOf(get(`http://${PUBLIC}:${server.port}/`)))
    .toMatchObject({ code: "upstream_error", message: expect.stringMatching(REFUSED) });
});

test("silence ends a call, before the headers and within the body", { tags: ["E11"] }, async () => {
  await using mute = openSilentListener(PUBLIC);
  using clock = standingClock();
  const unanswered = failureOf(get(`http://${PUBLIC}:${mute.port}/`, { limits: { idleMs: 100 } }));
  await mute.firstBytes;
  expect(await clock.until(unanswered, 100))
    .toMatchObject({ code: "upstream_error", message: expect.stringMatching(REFUSED) });
  const never = Promise.withResolvers<void>();
  await using server = openHttpServer(async (conn) => {
    await send(conn, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nHello");
    await never.promise;
  }, { hostname: PUBLIC });
  const answer = await get(`http://${PUBLIC}:${server.port}/`, { limits: { idleMs: 100 } });
  expect(await clock.until(failureOf(textOf(answer)), 100)).toMatchObject({ code: "upstream_timeout" });
  never.resolve();
});

test("private addresses are never connected to, by address or by name", { tags: ["E01", "E05"] }, async () => {
  await using secret = openSilentListener(PRIVATE);
  for (const host of [PRIVATE, "home.example.org"]) {
    const failure = await failureOf(
      get(`http://${host}:${secret.port}/`, { names: { "home.example.org": [PRIVATE] } }),
    );
    expect(failure.message).toMatch(REFUSED);
  }
  expect(secret.connections).toBe(0);
});

test("rejects a name with one public and one private address", { tags: ["E02"] }, async () => {
  await using server = serving("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  const names = { "two.example.org": [PUBLIC, PRIVATE] };
  expect((await failureOf(get(`http://two.example.org:${server.port}/`, { names }))).message).toMatch(REFUSED);
  expect(server.requests).toEqual([]);
});

test.each(["ftp://example.org/", "file:///etc/passwd", "http://a:b@example.org/", "http://127.0.0.1/"])(
  "%s is rejected by its text",
  { tags: ["E07"] },
  async (url) => {
    expect(await failureOf(get(url))).toMatchObject({ code: "address_not_allowed" });
  },
);

test("the TLS certificate must match the name, which is sent as Host", { tags: ["E10"] }, async () => {
  await using authority = await openAuthority();
  const good = await authority.issue({ name: "good.example.org" });
  await using server = openHttpServer(
    (conn) => send(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    { hostname: PUBLIC, tls: good },
  );
  const names = { "good.example.org": [PUBLIC], "bad.example.org": [PUBLIC] };
  const caCerts = [authority.cert];
  expect(await textOf(await get(`https://good.example.org:${server.port}/`, { names, caCerts }))).toBe("ok");
  expect(server.requests[0]).toContain(`Host: good.example.org:${server.port}`);
  for (const [url, trusted] of [["https://bad.example.org", caCerts], ["https://good.example.org", []]] as const) {
    const failure = await failureOf(get(`${url}:${server.port}/`, { names, caCerts: [...trusted] }));
    expect(failure).toMatchObject({ code: "upstream_error", message: expect.stringMatching(REFUSED) });
  }
  expect(server.requests).toHaveLength(1);
});

test("a call ends with its signal, while it connects and while it reads", async () => {
  await using mute = openSilentListener(PUBLIC);
  const controller = new AbortController();
  const asking = failureOf(get(`http://${PUBLIC}:${mute.port}/`, { signal: controller.signal }));
  await mute.firstBytes;
  controller.abort(new Error("enough"));
  expect(await asking).toMatchObject({ message: "enough" });
  expect(await failureOf(get(`http://${PUBLIC}:${mute.port}/`, { signal: controller.signal })))
    .toMatchObject({ message: "enough" });
});
