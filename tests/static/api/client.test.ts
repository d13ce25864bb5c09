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
