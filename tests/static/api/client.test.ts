import { expect, test } from "vitest";
import { ApiError, createClient } from "../../../static/src/api/client.ts";

function clientThatGets(answer: () => Response | Promise<Response>) {
  const calls: { path: string; init: RequestInit }[] = [];
  const client = createClient((path, init) => {
    calls.push({ path: String(path), init: init! });
    return Promise.resolve().then(answer);
  }, "http://localhost:8787");
  return { client, calls };
}

test("sends the page's origin with every request, and bodies as JSON", async () => {
  const { client, calls } = clientThatGets(() => new Response("{}"));
  await client.send("PUT", "/api/connections", { body: { name: "x" } });
  expect(calls[0]!.init).toMatchObject({
    method: "PUT",
    body: '{"name":"x"}',
    headers: { "x-parlor-page": "http://localhost:8787", "content-type": "application/json" },
  });
  await client.send("GET", "/api/health");
  expect(calls[1]!.init.headers).toEqual({ "x-parlor-page": "http://localhost:8787" });
});

test("reports code, message, issues and request id of the error body", async () => {
  const issues = [{ path: "base_url", message: "Not an address" }];
  const error = { code: "invalid_request", message: "No", request_id: "r7", issues };
  const { client } = clientThatGets(() => Response.json({ error }, { status: 400 }));
  const thrown = await client.send("PUT", "/x").catch((e) => e);
  expect(thrown).toBeInstanceOf(ApiError);
  expect(thrown).toMatchObject({ status: 400, code: "invalid_request", requestId: "r7", issues, isOffline: false });
});

test("explains what to do about something in the trash instead of naming a path of the API", async () => {
  const error = { code: "in_trash", message: "Restore it with POST /api/trash/7/restore", trash_id: "7" };
  const { client } = clientThatGets(() => Response.json({ error }, { status: 409 }));
  const thrown = await client.send("PUT", "/x").catch((e) => e);
  expect(thrown).toMatchObject({ status: 409, code: "in_trash", message: expect.stringMatching(/^It’s in the trash/) });
});

test("reports only the status of a response that isn't ours", async () => {
  const html = new Response("<h1>Bad Gateway</h1>", { status: 502 });
  const { client } = clientThatGets(() => html);
  await expect(client.send("GET", "/x")).rejects.toMatchObject({ status: 502, code: "unexpected_answer" });
});

test("reports a missing response as offline, and rethrows an abort", async () => {
  const { client } = clientThatGets(() => Promise.reject(new TypeError("Failed to fetch")));
  await expect(client.send("GET", "/x")).rejects.toMatchObject({ isOffline: true, code: "no_answer" });
  const signal = AbortSignal.abort(new DOMException("left", "AbortError"));
  await expect(client.send("GET", "/x", { signal })).rejects.toBeInstanceOf(TypeError);
});

test("says which failures may pass, and after what time", async () => {
  const failure = async (status: number, code: string, retryAfter?: string) => {
    const headers = retryAfter === undefined ? undefined : { "retry-after": retryAfter };
    const { client } = clientThatGets(() => Response.json({ error: { code, message: "No" } }, { status, headers }));
    return await client.send("GET", "/x").catch((e) => e) as ApiError;
  };
  expect(await failure(429, "too_many_requests", "7")).toMatchObject({ isTransient: true, retryAfterMs: 7000 });
  expect(await failure(503, "unexpected_answer", new Date(0).toUTCString())).toMatchObject({ retryAfterMs: 0 });
  expect(await failure(502, "unexpected_answer", "soon")).toMatchObject({ isTransient: true, retryAfterMs: undefined });
  expect(await failure(502, "upstream_error")).toMatchObject({ isTransient: false });
  expect(await failure(404, "not_found")).toMatchObject({ isTransient: false });
});

test("reports failed reads, also those that break off, but neither failed changes nor aborts", async () => {
  const broken = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          controller.error(new TypeError("network error"));
        },
      }),
    );
  for (const [method, respond, count] of [["GET", broken, 1], ["POST", broken, 0]] as const) {
    const failures: ApiError[] = [];
    const client = createClient(() => Promise.resolve(respond()), "http://localhost:8787", undefined, (error) => {
      failures.push(error);
    });
    await expect((await client.send(method, "/x")).json()).rejects.toMatchObject({ code: "no_answer" });
    expect(failures.map(({ code }) => code)).toEqual(Array(count).fill("no_answer"));
    const signal = AbortSignal.abort();
    await expect((await client.send(method, "/x", { signal })).json()).rejects.toBeInstanceOf(TypeError);
    expect(failures.length).toBe(count);
  }
});
