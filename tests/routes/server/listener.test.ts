import http2 from "node:http2";
import { expect, test } from "vitest";
import type { ClientConnection } from "../../../middleware/env.ts";
import { type Listener, type ListenerOptions, openListener } from "../../../routes/server/listener.ts";
import { residentBytes } from "../../bench/process_facts.ts";
import { happened, standingClock } from "../../helpers/fakes/standing_clock.ts";
import { rawRequest, readToEnd, writeAll } from "../../helpers/network/raw_http.ts";
import { PATIENCE_MS } from "../../helpers/app/patience.ts";
import { rejectionOf } from "../../helpers/app/rejection.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { makeCertificate } from "../../helpers/files/tls_certificate.ts";

function open(options: Partial<ListenerOptions> = {}) {
  const lines: string[] = [];
  const listener = openListener({
    host: "127.0.0.1",
    port: 0,
    handler: () => new Response("ok"),
    log: (_, line) => lines.push(line),
    ...options,
  });
  return Object.assign(listener, { lines, [Symbol.asyncDispose]: () => listener.close() });
}

/** Both ways to serve: that of this runtime, and the fallback for others. */
const WAYS = [["single connections", true], ["Deno.serve", false]] as const;

const CONNECTIONS = 10_000;
const ASK = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/**
 * Starts a listener in a process of its own.
 *
 * @param options.descriptors How many it may have open.
 * @param options.servesConnections False takes the function for it out of the runtime.
 */
async function startListenerChild(options: { descriptors?: number; servesConnections?: boolean } = {}) {
  const { descriptors, servesConnections = true } = options;
  const script = new URL("../../helpers/processes/listener_child.ts", import.meta.url).pathname;
  const limit = descriptors === undefined ? "" : `ulimit -n ${descriptors}; `;
  const child = new Deno.Command("sh", {
    args: [
      "-c",
      `${limit}exec "$0" run --quiet --no-prompt -A "$@"`,
      Deno.execPath(),
      script,
      ...servesConnections ? [] : ["without"],
    ],
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const errors = new Response(child.stderr).text();
  const output = child.stdout.getReader();
  const port = Number(new TextDecoder().decode((await output.read()).value));
  return {
    pid: child.pid,
    port,
    /** Everything it wrote to stderr, at its end. */
    errors,
    async [Symbol.asyncDispose]() {
      try {
        child.kill("SIGKILL");
      } catch {
        throw new Error(`The listener ended by itself: ${await errors}`);
      }
      await child.status;
      await output.cancel();
    },
  };
}

const connect = (listener: Listener) => Deno.connect({ hostname: "127.0.0.1", port: listener.port });

test.each(WAYS)(
  "a listener on port 0 returns its address and the addresses of its clients (%s)",
  async (_name, servesConnections) => {
    const seen: ClientConnection[] = [];
    await using listener = open({
      servesConnections,
      handler: (_, connection) => {
        seen.push(connection);
        return new Response("ok");
      },
    });
    expect(listener.url).toBe(`http://localhost:${listener.port}`);
    expect(await (await fetch(`http://127.0.0.1:${listener.port}/`)).text()).toBe("ok");
    expect(seen).toMatchObject([{ peerAddress: "127.0.0.1", listener: "main" }]);
  },
);

test.each(WAYS)("a port in use is rejected with the attempted address (%s)", async (_name, servesConnections) => {
  await using listener = open();
  expect(rejectionOf(() => open({ port: listener.port, servesConnections }))).toMatchObject({
    code: "not_available",
    message: expect.stringContaining(`port ${listener.port}`),
  });
});

test.each(WAYS)("an invalid certificate is rejected (%s)", (_name, servesConnections) => {
  expect(rejectionOf(() => open({ servesConnections, tls: { cert: "nonsense", key: "nonsense" } }))).toMatchObject({
    code: "invalid_request",
  });
});

test("HTTPS is served, but HTTP/2 isn't offered, because its requests have no Host", { tags: ["H12"] }, async () => {
  const tls = await makeCertificate();
  await using listener = open({
    tls,
    handler: (request) => new Response(`${new URL(request.url).protocol} ${request.headers.get("host")}`),
  });
  expect(listener.url).toBe(`https://localhost:${listener.port}`);
  using client = Deno.createHttpClient({ caCerts: [tls.cert] });
  const answer = await fetch(listener.url, { client });
  expect(await answer.text()).toBe(`https: localhost:${listener.port}`);
  const socket = await Deno.connectTls({ port: listener.port, caCerts: [tls.cert], alpnProtocols: ["h2", "http/1.1"] });
  expect((await socket.handshake()).alpnProtocol).toBe("http/1.1");
  socket.close();
});

test("every path rejects HTTP/2 with prior knowledge", { tags: ["H12"] }, async () => {
  await using app = await openTestApp();
  // The client sends the preface of RFC 9113, section 3.4, at once.
  const client = http2.connect(`http://localhost:${app.port}`);
  const ask = (method: string, path: string) =>
    new Promise<{ status: number; body: string }>((resolve, reject) => {
      const request = client.request({ ":method": method, ":path": path });
      let [status, body] = [0, ""];
      request.on("response", (headers) => status = Number(headers[":status"]));
      request.on("data", (part) => body += part);
      request.on("end", () => resolve({ status, body }));
      request.on("error", reject);
      request.end();
    });
  try {
    for (const path of ["/", "/healthz", "/api/auth/status", "/api/settings", "/api/auth/login/begin", "/api/none"]) {
      for (const method of ["GET", "POST"]) {
        const { status, body } = await ask(method, path);
        expect([method, path, status]).toEqual([method, path, 400]);
        expect(JSON.parse(body).error.message).toContain("HTTP/1.1, not HTTP/2");
      }
    }
  } finally {
    client.destroy();
  }
  expect((await app.get("/healthz")).status).toBe(204);
});

test.each([
  ["nothing", ""],
  ["half a header", "GET / HTTP/1.1\r\nHost: loc"],
])("a connection that sends %s is closed after its time limit", { tags: ["L02"] }, async (_name, text) => {
  await using listener = open({ limits: { firstRequestMs: 100 } });
  using connection = await connect(listener);
  await writeAll(connection, text);
  expect(await readToEnd(connection)).toBe("");
});

test(
  "an idle keep-alive connection is closed after its limit, even with half of a next header",
  { tags: ["L02"] },
  async () => {
    await using listener = open({ limits: { idleMs: 100 } });
    using connection = await connect(listener);
    await writeAll(connection, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT");
    expect(await readToEnd(connection)).toMatch(/^HTTP\/1\.1 200 OK/);
  },
);

test("a slow response isn't idle", { tags: ["L02"] }, async () => {
  let finish: ((answer: Response) => void) | undefined;
  using clock = standingClock();
  await using listener = open({
    limits: { firstRequestMs: 60, idleMs: 60 },
    handler: () => new Promise<Response>((resolve) => finish = resolve),
  });
  const slow = fetch(listener.url);
  await happened(() => finish !== undefined);
  using other = await connect(listener);
  // The end of the other connection shows that the limits have passed.
  expect(await clock.until(readToEnd(other), 15)).toBe("");
  finish!(new Response("late"));
  expect(await (await slow).text()).toBe("late");
});

test(
  "above the limit of connections, the longest idle one is closed, never a running response",
  { tags: ["L02"] },
  async () => {
    const arrived = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<Response>();
    await using listener = open({
      limits: { maxConnections: 3 },
      handler: (request) => {
        if (!request.url.endsWith("/slow")) return new Response("ok");
        arrived.resolve();
        return answer.promise;
      },
    });
    const slow = fetch(`${listener.url}/slow`);
    await arrived.promise;
    const idle = [await connect(listener), await connect(listener)];
    const ask = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for (let round = 0; round < 5; round++) expect((await rawRequest(listener.port, ask)).status).toBe(200);
    expect(await readToEnd(idle[0]!)).toBe("");
    answer.resolve(new Response("still here"));
    expect(await (await slow).text()).toBe("still here");
    idle.forEach((connection) => connection.close());
  },
);

test.skipIf(Deno.build.os !== "linux")(
  `${CONNECTIONS} connections kept alive take bounded memory, and the next request is served`,
  { tags: ["L02"] },
  async () => {
    await using child = await startListenerChild();
    const before = await residentBytes(child.pid);
    const kept: Deno.Conn[] = [];
    const keepAlive = async () => {
      const connection = await Deno.connect({ hostname: "127.0.0.1", port: child.port });
      kept.push(connection);
      await writeAll(connection, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      expect(await connection.read(new Uint8Array(64))).toBeGreaterThan(0);
    };
    try {
      while (kept.length < CONNECTIONS) await Promise.all(Array.from({ length: 100 }, keepAlive));
      expect((await rawRequest(child.port, ASK)).body).toBe("ok");
      expect(await residentBytes(child.pid) - before).toBeLessThan(256 * 1024 * 1024);
      const descriptors = await Array.fromAsync(Deno.readDir(`/proc/${child.pid}/fd`));
      expect(descriptors.length).toBeLessThan(CONNECTIONS / 2);
    } finally {
      kept.forEach((connection) => connection.close());
    }
  },
);

test.each(WAYS)(
  "closing lets a running response finish, ends streams by their signal, and rejects new connections (%s)",
  { tags: ["L06"] },
  async (_name, servesConnections) => {
    let hasAborted = false;
    const arrived = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<Response>();
    const listener = open({
      servesConnections,
      limits: { closeMs: PATIENCE_MS },
      handler: (request, { closing }) => {
        if (request.url.endsWith("/slow")) {
          arrived.resolve();
          return answer.promise;
        }
        return new Response(
          new ReadableStream({
            start(controller) {
              controller.enqueue(new TextEncoder().encode("first"));
              closing.addEventListener("abort", () => {
                hasAborted = true;
                controller.close();
              });
            },
          }),
        );
      },
    });
    const slow = fetch(`${listener.url}/slow`);
    const stream = await fetch(`${listener.url}/stream`);
    await arrived.promise;
    const closed = listener.close();
    expect(await stream.text()).toBe("first");
    expect(hasAborted).toBe(true);
    if (servesConnections) await expect(connect(listener)).rejects.toThrow();
    // `Deno.serve` can't refuse a connection and still be aborted later, so a newcomer gets an error.
    else expect((await rawRequest(listener.port, ASK)).status).toBe(503);
    answer.resolve(new Response("done"));
    expect(await (await slow).text()).toBe("done");
    await closed;
    expect(listener.connectionCount).toBe(0);
    await expect(connect(listener)).rejects.toThrow();
  },
);

test.each(WAYS)(
  "closing doesn't cut off a response that a slow reader is still reading (%s)",
  { tags: ["L06"] },
  async (_name, servesConnections) => {
    const listener = open({
      servesConnections,
      limits: { closeMs: PATIENCE_MS },
      handler: () => new Response(new Uint8Array(5_000_000)),
    });
    using connection = await connect(listener);
    await writeAll(connection, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await connection.read(new Uint8Array(1));
    const closed = listener.close();
    expect((await readToEnd(connection)).length).toBeGreaterThan(5_000_000);
    await closed;
  },
);

test.each(WAYS)(
  "closing ends within its limit, even with requests that hang (%s)",
  { tags: ["L06"] },
  async (_name, servesConnections) => {
    const listener = open({
      servesConnections,
      limits: { closeMs: 100 },
      handler: () => new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) })),
    });
    const stuck = await fetch(listener.url);
    using half = await connect(listener);
    await writeAll(half, "GET / HTTP/1.1\r\n");
    await listener.close();
    expect(listener.connectionCount).toBe(0);
    await expect(stuck.text()).rejects.toThrow();
  },
);

test.each(WAYS)(
  "a handler that fails affects only its own request, not the listener (%s)",
  { tags: ["L05"] },
  async (_name, servesConnections) => {
    await using listener = open({
      servesConnections,
      handler: (request) => {
        if (request.url.endsWith("/throw")) throw new Error("defect");
        if (request.url.endsWith("/reject")) return Promise.reject(new Error("defect"));
        if (request.url.endsWith("/body")) {
          return new Response(new ReadableStream({ pull: () => Promise.reject(new Error("defect")) }));
        }
        return new Response("ok");
      },
    });
    expect((await fetch(`${listener.url}/throw`)).status).toBe(500);
    expect((await fetch(`${listener.url}/reject`)).status).toBe(500);
    await expect(fetch(`${listener.url}/body`).then((answer) => answer.text())).rejects.toThrow();
    expect(await (await fetch(listener.url)).text()).toBe("ok");
  },
);

test(
  "a process without free descriptors keeps serving, also afterwards",
  { tags: ["L01"] },
  async () => {
    const child = await startListenerChild({ descriptors: 60 });
    try {
      expect((await rawRequest(child.port, ASK)).body).toBe("ok");
      // More connections than descriptors, idle and half-sent: the rest wait in the kernel's queue or replace others.
      const flood: Deno.Conn[] = [];
      for (let i = 0; i < 100; i++) {
        const connection = await Deno.connect({ hostname: "127.0.0.1", port: child.port });
        if (i % 2 === 0) await writeAll(connection, "GET / HTTP/1.1\r\nHo");
        flood.push(connection);
      }
      expect((await rawRequest(child.port, ASK)).body).toBe("ok");
      flood.forEach((connection) => connection.close());
      expect((await rawRequest(child.port, ASK)).body).toBe("ok");
    } finally {
      await child[Symbol.asyncDispose]();
    }
    expect(await child.errors).toContain("Can't accept a connection");
  },
);

test("a runtime without a server for single connections serves, with a warning", async () => {
  const child = await startListenerChild({ servesConnections: false });
  try {
    expect((await rawRequest(child.port, ASK)).body).toBe("ok");
  } finally {
    await child[Symbol.asyncDispose]();
  }
  expect(await child.errors).toContain("this version of Deno lacks serveHttpOnConnection, so Parlor uses Deno.serve");
});

test("Deno.serve is started again when it ends for lack of descriptors", { tags: ["L01"] }, async () => {
  const child = await startListenerChild({ descriptors: 60, servesConnections: false });
  try {
    const flood: Deno.Conn[] = [];
    for (let i = 0; i < 100; i++) {
      // Once the server has ended, connections are refused until it's back.
      const connection = await Deno.connect({ hostname: "127.0.0.1", port: child.port }).catch(() => undefined);
      if (connection !== undefined) flood.push(connection);
    }
    // The end of a server resets the connections that it hasn't accepted.
    if (flood.length === 100) await Promise.race(flood.map((each) => each.read(new Uint8Array(1)).catch(() => {})));
    flood.forEach((connection) => connection.close());
    while ((await rawRequest(child.port, ASK).catch(() => undefined))?.body !== "ok") {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  } finally {
    await child[Symbol.asyncDispose]();
  }
  expect(await child.errors).toContain("Restarting it");
});

test(
  "HTTPS by Deno.serve uses the host of HTTP/2, but none that a request doesn't name",
  { tags: ["H12"] },
  async () => {
    const tls = await makeCertificate();
    await using listener = open({
      tls,
      servesConnections: false,
      handler: (request) => new Response(`host: ${request.headers.get("host")}, ${request.method} ${request.url}`),
    });
    const { port } = listener;
    const seen: string[] = [];
    for (const authority of ["chat.example.org", `localhost:${port}`]) {
      const client = http2.connect(`https://localhost:${port}`, { ca: tls.cert });
      try {
        seen.push(
          await new Promise<string>((resolve, reject) => {
            const request = client.request({ ":path": "/x", ":authority": authority });
            let body = "";
            request.on("data", (part) => body += part);
            request.on("end", () => resolve(body));
            request.on("error", reject);
            request.end();
          }),
        );
      } finally {
        client.destroy();
      }
    }
    using socket = await Deno.connectTls({ port, caCerts: [tls.cert] });
    await writeAll(socket, "GET /y HTTP/1.1\r\nConnection: close\r\n\r\n");
    seen.push((await readToEnd(socket)).split("\r\n").at(-1)!);
    expect(seen).toEqual([
      "host: chat.example.org, GET https://chat.example.org/x",
      `host: null, GET https://localhost:${port}/x`,
      `host: null, GET https://localhost:${port}/y`,
    ]);
  },
);
