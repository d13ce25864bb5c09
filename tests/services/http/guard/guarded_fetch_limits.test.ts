import { expect, test } from "vitest";
import zlib from "node:zlib";
import { failureOf, openTestGuard, PUBLIC } from "../../../helpers/network/loopback_guard.ts";
import { openHttpServer, send, sendText, type StreamServer } from "../../../helpers/network/loopback_servers.ts";
import { standingClock } from "../../../helpers/fakes/standing_clock.ts";

const MIB = 1024 * 1024;
// By address, because the limit applies after the lookup.
const urlOf = (server: StreamServer, path = "/") => `http://${PUBLIC}:${server.port}${path}`;

/** Returns how far the memory of the process rises during `run`. */
async function memoryRise(run: () => Promise<void>): Promise<number> {
  const start = Deno.memoryUsage().rss;
  let peak = start;
  const watch = setInterval(() => peak = Math.max(peak, Deno.memoryUsage().rss), 5);
  try {
    await run();
  } finally {
    clearInterval(watch);
  }
  return Math.max(peak, Deno.memoryUsage().rss) - start;
}

test(
  "an endless body is cut at its limit, and hardly more is read from the server",
  { tags: ["E11"] },
  async () => {
    let sent = 0;
    const { promise: serverEnded, resolve } = Promise.withResolvers<void>();
    await using server = openHttpServer(async (conn) => {
      const block = new Uint8Array(64 * 1024);
      try {
        await send(conn, "HTTP/1.1 200 OK\r\n\r\n");
        for (; sent < 10_000 * MIB; sent += block.length) await send(conn, block);
      } finally {
        resolve();
      }
    }, { hostname: PUBLIC });
    await using guard = await openTestGuard({});
    const rise = await memoryRise(async () => {
      const response = await guard.fetch(urlOf(server), { maxBytes: 8 * MIB });
      expect(await failureOf(response.arrayBuffer())).toEqual({
        code: "too_large",
        message: `Can't fetch from "${PUBLIC}:${server.port}": its response is larger than ${8 * MIB} bytes`,
      });
      await serverEnded;
    });
    expect(sent).toBeLessThan(48 * MIB); // the rest is socket buffers
    expect(rise).toBeLessThan(128 * MIB);
  },
);

test("the default limit is 32 MiB", { tags: ["E11"] }, async () => {
  await using server = openHttpServer(
    (conn) => send(conn, `HTTP/1.1 200 OK\r\nContent-Length: ${32 * MIB + 1}\r\n\r\n`),
    {
      hostname: PUBLIC,
    },
  );
  await using guard = await openTestGuard({});
  expect(await failureOf(guard.fetch(urlOf(server)))).toMatchObject({ code: "too_large" });
});

const BOMB_BYTES = 256 * MIB;
const bombs: Record<string, () => Uint8Array> = {
  gzip: () => zlib.gzipSync(new Uint8Array(BOMB_BYTES), { level: 1 }),
  br: () =>
    zlib.brotliCompressSync(new Uint8Array(BOMB_BYTES), { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: () => zlib.zstdCompressSync(new Uint8Array(BOMB_BYTES)),
};

test.each(Object.keys(bombs))("a %s bomb is counted while it is decompressed", { tags: ["E11"] }, async (encoding) => {
  const bomb = bombs[encoding]!();
  expect(bomb.length).toBeLessThan(4 * MIB);
  await using server = openHttpServer(async (conn) => {
    await send(conn, `HTTP/1.1 200 OK\r\nContent-Encoding: ${encoding}\r\nContent-Length: ${bomb.length}\r\n\r\n`);
    await send(conn, bomb);
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({});
  let passed = 0;
  let isStillEncoded = false;
  const rise = await memoryRise(async () => {
    const response = await guard.fetch(urlOf(server), { maxBytes: 8 * MIB });
    isStillEncoded = response.headers.has("content-encoding");
    const read = async () => {
      for await (const chunk of response.body!) passed += chunk.length;
    };
    // An encoding that the runtime doesn't know stays folded and is reported.
    if (isStillEncoded) await read();
    else expect(await failureOf(read())).toMatchObject({ code: "too_large" });
  });
  expect(isStillEncoded).toBe(encoding === "zstd");
  expect(passed).toBeLessThanOrEqual(isStillEncoded ? bomb.length : 8 * MIB);
  expect(rise).toBeLessThan(128 * MIB);
});

test.each(["gzip", "br"])("a %s response is decompressed and no longer declares its compression", async (encoding) => {
  const body = encoding === "gzip"
    ? zlib.gzipSync("hello ".repeat(100))
    : zlib.brotliCompressSync("hello ".repeat(100));
  await using server = openHttpServer(async (conn) => {
    await send(conn, `HTTP/1.1 200 OK\r\nContent-Encoding: ${encoding}\r\nContent-Length: ${body.length}\r\n\r\n`);
    await send(conn, body);
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({});
  const response = await guard.fetch(urlOf(server));
  expect([response.headers.get("content-encoding"), response.headers.get("content-length")]).toEqual([null, null]);
  expect(await response.text()).toBe("hello ".repeat(100));
});

test("a false Content-Length is detected", { tags: ["E11"] }, async () => {
  await using server = openHttpServer((conn, head) => {
    const length = head.startsWith("GET /short") ? 3 : head.startsWith("GET /long") ? 1000 : 10_000_000_000;
    return send(conn, `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n12345`);
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({});
  expect(await failureOf(guard.fetch(urlOf(server, "/huge")))).toMatchObject({ code: "too_large" });
  const cut = await guard.fetch(urlOf(server, "/long"));
  expect(await failureOf(cut.text())).toEqual({
    code: "upstream_error",
    message: `Can't fetch from "${PUBLIC}:${server.port}": its response was cut off`,
  });
  expect(await (await guard.fetch(urlOf(server, "/short"))).text()).toBe("123");
});

/** Writes forever, a chunk at a time. */
async function drip(conn: Deno.Conn, start: string, piece: string): Promise<void> {
  await send(conn, start);
  for (;;) {
    await send(conn, piece);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test(
  "a trickling body ends at the time limit, a silent one at the idle limit",
  { tags: ["E11"] },
  async () => {
    await using server = openHttpServer(async (conn, head) => {
      const start = "HTTP/1.1 200 OK\r\n\r\n";
      if (head.startsWith("GET /trickle")) return await drip(conn, start, "x");
      await send(conn, `${start}x`);
      await conn.read(new Uint8Array(1));
    }, { hostname: PUBLIC });
    using clock = standingClock();
    await using trickling = await openTestGuard({});
    const trickle = await trickling.fetch(urlOf(server, "/trickle"), { timeoutMs: 300 });
    expect(await clock.until(failureOf(trickle.text()), 10)).toEqual({
      code: "upstream_timeout",
      message: `Can't fetch from "${PUBLIC}:${server.port}": not finished after 300 ms`,
    });
    const unread = await trickling.fetch(urlOf(server, "/trickle"), { timeoutMs: 100 });
    clock.advance(100);
    expect(await failureOf(unread.text())).toMatchObject({ code: "upstream_timeout" });
    await using idling = await openTestGuard({}, { limits: { idleMs: 100 } });
    const silent = await idling.fetch(urlOf(server, "/silent"));
    const { code } = await clock.until(failureOf(silent.text()), 100);
    expect(["upstream_timeout", "upstream_error"]).toContain(code); // whichever of proxy and reader sees it first
  },
);

test("endless headers are limited by size and by time", { tags: ["E11"] }, async () => {
  await using server = openHttpServer((conn, head) => {
    if (head.startsWith("GET /fast")) return drip(conn, "HTTP/1.1 200 OK\r\n", "x-a: 1\r\n".repeat(1000));
    return drip(conn, "HTTP/1.1 200 OK\r\n", "x-a: 1\r\n");
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({});
  const message =
    `Can't fetch from "${PUBLIC}:${server.port}": the address is not allowed or does not answer. Addresses that aren't public are refused, unless guard_allow includes them`;
  expect(await failureOf(guard.fetch(urlOf(server, "/fast")))).toEqual({ code: "upstream_error", message });
  expect(await failureOf(guard.fetch(urlOf(server, "/slow"), { timeoutMs: 300 }))).toEqual({
    code: "upstream_error",
    message,
  });
});

test("a header of 100 KB is rejected, one of 20 KB is accepted", { tags: ["E11"] }, async () => {
  await using server = openHttpServer((conn, head) => {
    const bytes = Number(/^GET \/(\d+)/.exec(head)?.[1]);
    return send(conn, `HTTP/1.1 200 OK\r\nX-A: ${"a".repeat(bytes)}\r\nContent-Length: 2\r\n\r\nok`);
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({});
  expect(await failureOf(guard.fetch(urlOf(server, "/100000")))).toMatchObject({ code: "upstream_error" });
  expect(await (await guard.fetch(urlOf(server, "/20000"))).text()).toBe("ok");
});

test.each(["cancelled", "out of time", "out of time and half read", "aborted", "closed with the guard"])(
  "a body that is %s frees the connection to its server",
  async (how) => {
    const { promise: serverEnded, resolve } = Promise.withResolvers<void>();
    await using server = openHttpServer(async (conn) => {
      const block = new Uint8Array(64 * 1024);
      try {
        await send(conn, "HTTP/1.1 200 OK\r\n\r\n");
        for (;;) await send(conn, block);
      } finally {
        resolve();
      }
    }, { hostname: PUBLIC });
    await using guard = await openTestGuard({});
    const controller = new AbortController();
    const timeoutMs = 30_000;
    using clock = standingClock();
    const response = await guard.fetch(urlOf(server), { signal: controller.signal, timeoutMs, maxBytes: 1024 * MIB });
    if (how === "cancelled") await response.body?.cancel();
    else if (how === "aborted") controller.abort();
    else if (how === "closed with the guard") await guard.close();
    else if (how === "out of time and half read") {
      const reader = response.body!.getReader();
      for (let passed = 0; passed < MIB;) passed += (await reader.read()).value!.length;
    }
    if (how.startsWith("out of time")) clock.advance(timeoutMs);
    await serverEnded;
  },
);

test("many concurrent and consecutive calls leak nothing", async () => {
  await using server = openHttpServer((conn) => sendText(conn, "ok"), { hostname: PUBLIC });
  await using guard = await openTestGuard({});
  for (let round = 0; round < 5; round++) {
    const texts = await Promise.all(
      Array.from({ length: 40 }, async () => await (await guard.fetch(urlOf(server))).text()),
    );
    expect(new Set(texts)).toEqual(new Set(["ok"]));
  }
});
