import { afterAll, beforeAll, expect, test } from "vitest";
import type { UpstreamTarget } from "../../../../services/llm/provider.ts";
import { createUpstreamClient, type UpstreamClient } from "../../../../services/llm/upstream_client.ts";
import { UpstreamError } from "../../../../services/http/upstream_error.ts";
import {
  checkReachable,
  getErrorAdvice,
  testConnection,
} from "../../../../services/llm/connections/connection_test.ts";
import { openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { openFakeHttp } from "../../../helpers/fakes/llm/fake_llm_http.ts";
import { makeCertificate } from "../../../helpers/files/tls_certificate.ts";
import { never, target } from "../model_calls.ts";

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient({ log: () => {} });
});
afterAll(() => client.close());

const runTest = (where: UpstreamTarget, model?: string) => testConnection(client, where, never(), model);

test("a working server is reachable and authorized, with its models and context size, and needs no advice", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", models: ["m"], apiKey: "right-key" });
  const result = await runTest(target(llm.origin, { apiKey: "right-key" }), "m");
  expect(result).toMatchObject({ isReachable: true, isAuthorized: true, models: ["m"], contextSize: 2048 });
  expect(result.advice).toBeUndefined();
  expect(result.error).toBeUndefined();
  expect(result.latencyMs).toBeGreaterThanOrEqual(0);
});

test("a missing and a wrong key have different errors", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", apiKey: "right-key" });
  expect(await runTest(target(llm.url))).toMatchObject({
    isReachable: true,
    isAuthorized: false,
    advice: expect.stringContaining("needs an API key"),
  });
  expect(await runTest(target(llm.url, { apiKey: "wrong-key" }))).toMatchObject({
    isReachable: true,
    isAuthorized: false,
    advice: expect.stringContaining("rejects this key"),
  });
});

test("explains a refused connection, also for containers", async () => {
  const llm = await openFakeLlm();
  await llm.close();
  const result = await runTest(target(llm.url));
  expect(result).toMatchObject({ isReachable: false, isAuthorized: false, models: [] });
  expect(result.advice).toContain(`uses port ${llm.port}`);
  expect(result.advice).toContain("host.docker.internal");
});

test("a server that is loading its model is reachable", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  llm.isLoading = true;
  expect(await runTest(target(llm.url))).toMatchObject({
    isReachable: true,
    advice: expect.stringContaining("still loading its model"),
  });
});

test.each([6000, 25])(
  "reports port %i, which HTTP clients block, as unreachable",
  async (port) => {
    const here = target(`http://127.0.0.1:${port}/v1`);
    expect(await runTest(here)).toMatchObject({
      isReachable: false,
      isAuthorized: false,
      error: expect.stringContaining("block this port"),
      advice: expect.stringContaining(`block port ${port}`),
    });
    expect(await checkReachable(client, here, 20_000, never())).toMatchObject({ isReachable: false });
  },
);

test("an empty model list and an unlisted model give advice, not errors", async () => {
  await using llm = await openFakeLlm({ personality: "ollama", models: [] });
  expect((await runTest(target(llm.url))).advice).toContain("ollama pull");
  llm.models = ["one"];
  const result = await runTest(target(llm.url), "two");
  expect(result).not.toHaveProperty("error");
  expect(result.isAuthorized).toBe(true);
  expect(result.advice).toContain('doesn\'t list "two"');
});

test.each([
  ["text/html", "<html>", 200, "web page"],
  ["application/json", "{}", 200, "doesn't have this path"],
  ["application/json", '{"error":"nope"}', 404, "doesn't have this path"],
  ["text/plain", "Client sent an HTTP request to an HTTPS server.", 400, "https://"],
  ["text/plain", "", 403, "OLLAMA_HOST"],
  ["application/json", '{"error":"x"}', 402, "credit"],
  ["application/json", '{"error":"x"}', 500, "Its log"],
])("has advice for a response of %s %j with status %i", async (type, body, status, advice) => {
  const http = await openFakeHttp((_, answer) => answer.send(status, type, body));
  const result = await runTest(target(`http://127.0.0.1:${http.port}`));
  expect(result).toMatchObject({ isReachable: true, isAuthorized: false });
  expect(result.advice).toContain(advice);
  await http.close();
});

test("distinguishes TLS on a plain port, plain HTTP on a TLS port, and an untrusted certificate", async () => {
  const plain = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => new Response("hi"));
  const secured = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {}, ...(await makeCertificate()) },
    () => new Response("hi"),
  );
  const overTls = await runTest(target(`https://127.0.0.1:${plain.addr.port}`));
  expect(overTls).toMatchObject({ isReachable: false, advice: expect.stringContaining("Try http://") });
  const overPlain = await runTest(target(`http://127.0.0.1:${secured.addr.port}`));
  expect(overPlain).toMatchObject({ isAuthorized: false, advice: expect.stringContaining("https://") });
  const untrusted = await runTest(target(`https://127.0.0.1:${secured.addr.port}`));
  expect(untrusted).toMatchObject({ isReachable: false, advice: expect.stringContaining("doesn't trust") });
  await Promise.all([plain.shutdown(), secured.shutdown()]);
});

test("every other error has its own advice", () => {
  const away = target("http://desk.lan:8080/v1");
  const kinds = [
    "refused",
    "unresolved",
    "unreachable",
    "timeout",
    "certificate",
    "blocked",
    "redirect",
    "rate",
    "overloaded",
  ] as const;
  const advice = kinds.map((kind) => getErrorAdvice(new UpstreamError(kind, "x"), away));
  expect(new Set(advice).size).toBe(kinds.length - 1); // unreachable and timeout have the same advice for another machine
  expect(advice[0]).toContain("--host 0.0.0.0");
  const claude = target("https://api.anthropic.com/v1", { apiKey: "k" });
  expect(getErrorAdvice(new UpstreamError("auth", "x", { status: 401 }), claude)).toContain("kind anthropic");
});

test("a test result never contains the key", { tags: ["U03"] }, async () => {
  const http = await openFakeHttp((request, answer) =>
    answer.json(401, { error: request.headers.get("authorization") })
  );
  const result = await runTest(target(`http://127.0.0.1:${http.port}`, { apiKey: "sk-secret-123" }));
  expect(result.error).toContain("[key]");
  expect(JSON.stringify(result)).not.toContain("sk-secret-123");
  await http.close();
});

test("refuses to test a metadata address", { tags: ["E14"] }, async () => {
  await expect(runTest(target("http://169.254.169.254/v1"))).rejects.toMatchObject({ code: "address_not_allowed" });
});

test("checks reachability within its limit and counts a refusal as reachable", async () => {
  await using llm = await openFakeLlm({ apiKey: "k" });
  const refused = await checkReachable(client, target(llm.url), 20_000, never());
  expect(refused).toMatchObject({ isReachable: true, error: expect.stringContaining("status 401") });
  llm.apiKey = undefined;
  expect(await checkReachable(client, target(llm.url), 20_000, never())).toMatchObject({ isReachable: true });
  const silent = await openFakeHttp(() => {});
  const here = target(`http://127.0.0.1:${silent.port}`);
  expect(await checkReachable(client, here, 50, never())).toMatchObject({ isReachable: false });
  await silent.close();
});
