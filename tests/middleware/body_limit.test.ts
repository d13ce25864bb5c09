import { expect, test, vi } from "vitest";
import { bodyLimit } from "../../middleware/body_limit.ts";
import { createRouteTable } from "../../middleware/route_table.ts";
import { createErrorResponse } from "../../routes/errors.ts";
import { createRouter } from "../../routes/http/router.ts";
import { codeOf, fetchAs } from "../helpers/network/fetch_as.ts";
import { PATIENCE_MS } from "../helpers/app/patience.ts";
import { rawRequest, readToEnd, writeAll } from "../helpers/network/raw_http.ts";
import { ByteBudget } from "../../services/async/byte_budget.ts";
import { openTestApp } from "../helpers/app/test_app.ts";

const JSON_TYPE = { "Content-Type": "application/json" };
const small = { config: { maxBodyBytes: 2_000 } };

test.each([
  ["a route that takes JSON", "PATCH", "/api/conversations/c1/draft"],
  ["a route that ignores its body", "POST", "/api/jobs/j1/cancel"],
  ["a DELETE", "DELETE", "/api/conversations/c1"],
  ["a GET", "GET", "/api/conversations"],
  ["an unknown path below /api", "POST", "/api/nothing"],
  ["a path outside /api", "POST", "/nothing"],
])(
  "a body with too large a declared length gets 413 on %s, before a byte of it is read",
  { tags: ["P03"] },
  async (_name, method, path) => {
    await using app = await openTestApp(small);
    const head = `${method} ${path} HTTP/1.1\r\nHost: localhost:${app.port}\r\nConnection: close\r\n` +
      "Content-Type: application/json\r\nContent-Length: 2001\r\n\r\n";
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: app.port });
    await writeAll(connection, head);
    const buffer = new Uint8Array(4096);
    const decoder = new TextDecoder();
    let answer = "";
    // One read may give only its head. The body never comes, so the connection may stay open.
    while (!answer.includes('"too_large"')) {
      const count = await connection.read(buffer);
      if (count === null) break;
      answer += decoder.decode(buffer.subarray(0, count), { stream: true });
    }
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain('"too_large"');
  },
);

test.each([
  ["PATCH", "/api/conversations/c1/draft"],
  ["POST", "/api/jobs/j1/cancel"],
  ["DELETE", "/api/conversations/c1"],
])("a chunked body without a length is cut off at the limit: %s %s", { tags: ["P03"] }, async (method, path) => {
  await using app = await openTestApp(small);
  const head = `${method} ${path} HTTP/1.1\r\nHost: localhost:${app.port}\r\nConnection: close\r\n` +
    "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  const chunk = `3e8\r\n${"x".repeat(1000)}\r\n`;
  const answer = await rawRequest(app.port, `${head}${chunk.repeat(3)}0\r\n\r\n`);
  expect([answer.status, codeOf(answer)]).toEqual([413, "too_large"]);
});

test("a GET with a body of unknown length gets 413", { tags: ["P03"] }, async () => {
  await using app = await openTestApp();
  const text = `GET /api/conversations HTTP/1.1\r\nHost: localhost:${app.port}\r\nConnection: close\r\n` +
    "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
  expect((await rawRequest(app.port, text)).status).toBe(413);
});

test("routes of other classes have their own limits", { tags: ["P03"] }, async () => {
  await using app = await openTestApp({ config: { maxBodyBytes: 1_000, maxConversationBodyBytes: 20_000 } });
  const conversation = (length: number) => JSON.stringify({ title: "t", messages: [], note: "x".repeat(length) });
  const put = (body: string) =>
    fetchAs(app, { method: "PUT", path: "/api/conversations/c1", headers: JSON_TYPE, body });
  expect((await put(conversation(10_000))).status).not.toBe(413);
  expect((await put(conversation(20_000))).status).toBe(413);
  expect(
    (await fetchAs(app, {
      method: "PATCH",
      path: "/api/conversations/c1/draft",
      headers: JSON_TYPE,
      body: conversation(1_000),
    })).status,
  )
    .toBe(413);
});

test("a body that the client cuts off has no effect", async () => {
  await using app = await openTestApp();
  await app.put("/api/conversations/c1", { messages: [] });
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: app.port });
  await writeAll(
    connection,
    `PATCH /api/conversations/c1/draft HTTP/1.1\r\nHost: localhost:${app.port}\r\nContent-Type: application/json\r\n` +
      'Content-Length: 100\r\n\r\n{"draft":"half"',
  );
  await connection.closeWrite();
  await readToEnd(connection);
  expect((await (await app.get("/api/conversations/c1")).json()).draft).toBe("");
});

test.each([
  ["no length", "\r\n"],
  ["no body", "Content-Length: 0\r\n\r\n"],
  ["a type and no body", "Content-Type: application/json\r\nContent-Length: 0\r\n\r\n"],
  ["the type of a form and no body", "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 0\r\n\r\n"],
  ["a type and no chunk", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
])("a route without a body accepts a request with %s", async (_name, rest) => {
  await using app = await openTestApp();
  const send = (path: string) =>
    rawRequest(app.port, `POST ${path} HTTP/1.1\r\nHost: localhost:${app.port}\r\nConnection: close\r\n${rest}`);
  for (const path of ["/api/auth/register/begin", "/api/auth/login/begin", "/api/setup/complete"]) {
    expect([path, (await send(path)).status]).toEqual([path, 200]);
  }
  expect((await send("/api/auth/token")).body).toContain("session_required");
  expect([400, 415], "one that needs a body").toContain((await send("/api/chat")).status);
});

/** The link alone, with two routes behind it. */
function openRoute(
  options: { limitBytes?: number; idleMs?: number; isBodyStreamed?: boolean; budget?: ByteBudget } = {},
) {
  const router = createRouter();
  const seen: string[] = [];
  const table = createRouteTable([{
    method: "POST",
    pattern: "/up",
    bodyTypes: ["application/octet-stream"],
    isBodyRequired: true,
    bodyLimitBytes: options.limitBytes ?? 10,
    isBodyStreamed: options.isBodyStreamed ?? false,
  }]);
  router.onError(createErrorResponse);
  router.use(
    bodyLimit({
      routes: () => table,
      defaultLimitBytes: 10,
      budget: options.budget ?? new ByteBudget(),
      idleMs: options.idleMs,
    }),
  );
  router.post("/up", async (c) => {
    seen.push("begun");
    seen.push(await c.req.text());
    return c.text("ok");
  });
  const send = (body: BodyInit, headers?: HeadersInit) =>
    router.request(new Request("http://a/up", { method: "POST", body, headers }));
  return { seen, send };
}

/** A body that arrives in chunks and then ends or hangs. */
function pieces(texts: string[], hangs = false) {
  const waiting = [...texts];
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const text = waiting.shift();
      if (text !== undefined) controller.enqueue(new TextEncoder().encode(text));
      else if (hangs) return new Promise(() => {});
      else controller.close();
    },
  });
}

test.each([true, false])(
  "a body of exactly the limit is accepted, one byte more isn't (streamed: %s)",
  async (isBodyStreamed) => {
    const route = openRoute({ isBodyStreamed });
    expect((await route.send(pieces(["12345", "67890"]))).status).toBe(200);
    expect(route.seen).toEqual(["begun", "1234567890"]);
    expect((await route.send(pieces(["12345", "67890", "1"]))).status).toBe(413);
  },
);

test("a buffered body is checked before its route runs, a streamed one while it runs", async () => {
  const whole = openRoute();
  await whole.send(pieces(["12345678901"]));
  expect(whole.seen).toEqual([]);
  const streamed = openRoute({ isBodyStreamed: true });
  await streamed.send(pieces(["12345678901"]));
  expect(streamed.seen).toEqual(["begun"]);
});

test.each([true, false])(
  "a stalled body times out (streamed: %s)",
  { tags: ["L02"] },
  async (isBodyStreamed) => {
    const route = openRoute({ idleMs: 20, isBodyStreamed });
    const answer = await route.send(pieces(["123"], true));
    expect([answer.status, (await answer.json()).error.code]).toEqual([400, "invalid_request"]);
  },
);

/** Sends a body with Content-Length, as clients do. */
function postTo(app: { url: string }, body: string): Promise<Response> {
  return fetch(`${app.url}/api/conversations/c1`, { method: "PUT", headers: JSON_TYPE, body });
}

const withText = (length: number) =>
  JSON.stringify({ messages: [{ id: "m", role: "user", content: "x".repeat(length) }] });

test("a large body counts against the byte budget until its route has responded", { tags: ["F07"] }, async () => {
  const budget = new ByteBudget({ limitBytes: 1_000_000, reserveBytes: 0, waitMs: 1 });
  const route = openRoute({ limitBytes: 500_000, budget });
  const held = await budget.reserve(999_999);
  const refused = await route.send(pieces(["x".repeat(100_000)]));
  expect([refused.status, (await refused.json()).error.code, refused.headers.get("retry-after")])
    .toEqual([503, "busy", expect.stringMatching(/^[1-9]\d*$/)]);
  expect(route.seen).toEqual([]);
  expect((await route.send(pieces(["x".repeat(60_000)]))).status, "a small one doesn't wait").toBe(200);
  held.release();
  expect((await route.send(pieces(["x".repeat(100_000)]))).status).toBe(200);
  expect(budget.usedBytes).toBe(0);
});

test(
  "a body that waits for memory is read when there is space, and small ones overtake it",
  { tags: ["F07"] },
  async () => {
    await using app = await openTestApp();
    const { budget } = app.services;
    // However long the small ones take.
    const reserve = budget.reserve.bind(budget);
    const reserving = vi.spyOn(budget, "reserve");
    reserving.mockImplementation((bytes, options) => reserve(bytes, { ...options, waitMs: Infinity }));
    const held = await reserve(1e12);
    const large = postTo(app, withText(4_000_000));
    expect((await app.patch("/api/settings", { auto_title: false })).status).toBe(200);
    expect((await app.put("/api/conversations/c2", { messages: [] })).status).toBe(201);
    held.release();
    const saved = await large;
    expect([saved.status, (await saved.json()).messages.length]).toEqual([201, 1]);
    expect((await (await app.get("/api/conversations/c1")).json()).messages[0].content).toHaveLength(4_000_000);
    await vi.waitFor(() => expect(budget.usedBytes).toBe(0), { timeout: PATIENCE_MS });
  },
);

test("a connection serves the next request after a large body", async () => {
  await using app = await openTestApp();
  const body = withText(300_000);
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: app.port });
  await writeAll(
    connection,
    `PUT /api/conversations/c1 HTTP/1.1\r\nHost: localhost:${app.port}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
  );
  const buffer = new Uint8Array(1024 * 1024);
  for (let text = ""; !text.endsWith("]}");) {
    const count = await connection.read(buffer);
    if (count === null) throw new Error("The connection ended within the answer");
    text += new TextDecoder().decode(buffer.subarray(0, count));
  }
  await writeAll(connection, `GET /healthz HTTP/1.1\r\nHost: localhost:${app.port}\r\nConnection: close\r\n\r\n`);
  expect(await readToEnd(connection)).toMatch(/^HTTP\/1\.1 204 /);
});

test("a long JSON body reaches the route like a short one, parsed in steps", async () => {
  await using app = await openTestApp();
  const messages = Array.from({ length: 3_000 }, (_, n) => ({ id: `m${n}`, role: "user", content: "字".repeat(100) }));
  const parsed = vi.spyOn(JSON, "parse");
  const put = (body: Uint8Array<ArrayBuffer> | string) =>
    fetch(`http://localhost:${app.port}/api/conversations/long`, { method: "PUT", headers: JSON_TYPE, body });
  try {
    const body = JSON.stringify({ title: "Long", messages });
    const saved = await put(body);
    expect(saved.status).toBe(201);
    expect(Math.max(...parsed.mock.calls.map(([piece]) => piece.length))).toBeLessThan(100_000);
    expect((await saved.json()).messages.map(({ content }: { content: string }) => content)).toEqual(
      messages.map(({ content }) => content),
    );
    const broken = await put(body.slice(0, -2));
    expect([broken.status, (await broken.json()).error.code]).toEqual([400, "invalid_json"]);
    const bytes = new TextEncoder().encode(body);
    bytes[bytes.length - 10] = 0xff;
    const noUtf8 = await put(bytes);
    expect(noUtf8.status).toBe(400);
    expect((await noUtf8.json()).error).toMatchObject({
      code: "invalid_json",
      message: expect.stringContaining("valid UTF-8"),
    });
  } finally {
    parsed.mockRestore();
  }
});

test("reads a large body of a declared length even if its stream isn't a byte stream", async () => {
  const text = "x".repeat(100_000);
  const declared = { "Content-Length": `${text.length}` };
  const { seen, send } = openRoute({ limitBytes: 200_000 });
  expect((await send(pieces([text.slice(0, 70_000), text.slice(70_000)]), declared)).status).toBe(200);
  expect(seen).toEqual(["begun", text]);
  for (const body of [text.slice(1), `${text}x`]) {
    expect((await send(pieces([body]), declared)).status, `${body.length} bytes`).toBe(400);
  }
  expect(seen).toHaveLength(2);
});
