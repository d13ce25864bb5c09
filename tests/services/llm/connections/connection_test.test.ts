import { afterAll, beforeAll, expect, test } from "vitest";
import type { UpstreamTarget } from "../../../../services/llm/provider.ts";
import { createUpstreamClient, type UpstreamClient } from "../../../../services/llm/upstream_client.ts";
import { UpstreamError } from "../../../../services/http/upstream_error.ts";
import {
  adviceForError,
  checkReachable,
  testConnection,
} from "../../../../services/llm/connections/connection_test.ts";
import { openFakeLlm } from "../../../helpers/fakes/fake_llm.ts";
import { openFakeHttp } from "../../../helpers/fakes/fake_llm_http.ts";
import { makeCertificate } from "../../../helpers/files/tls_certificate.ts";
import { never, target } from "../model_calls.ts";

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient();
});
afterAll(() => client.close());

const verdictOf = (where: UpstreamTarget, model?: string) => testConnection(client, where, never(), model);

test("a server that works is reachable and authorized, with its models and context size, and needs no advice", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", models: ["m"], apiKey: "right-key" });
  const verdict = await verdictOf(target(llm.origin, { apiKey: "right-key" }), "m");
  expect(verdict).toMatchObject({ isReachable: true, isAuthorized: true, models: ["m"], contextSize: 2048 });
  expect(verdict.advice).toBeUndefined();
  expect(verdict.error).toBeUndefined();
  expect(verdict.latencyMs).toBeGreaterThanOrEqual(0);
});

test("a missing and a wrong key are told apart", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", apiKey: "right-key" });
  expect(await verdictOf(target(llm.url))).toMatchObject({
    ...{ isReachable: true, isAuthorized: false },
    advice: expect.stringContaining("needs an API key"),
  });
  expect(await verdictOf(target(llm.url, { apiKey: "wrong-key" }))).toMatchObject({
    ...{ isReachable: true, isAuthorized: false },
    advice: expect.stringContaining("refuses this key"),
  });
});

test("a server that is off is asked after, and containers are mentioned", async () => {
  const llm = await openFakeLlm();
  await llm.close();
  const verdict = await verdictOf(target(llm.url));
  expect(verdict).toMatchObject({ isReachable: false, isAuthorized: false, models: [] });
  expect(verdict.advice).toContain(`Nothing listens on port ${llm.port}`);
  expect(verdict.advice).toContain("host.docker.internal");
});

test("a server that still loads is reachable", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  llm.isLoading = true;
  expect(await verdictOf(target(llm.url))).toMatchObject({
    isReachable: true,
    advice: expect.stringContaining("still loads its model"),
  });
});

test.each([6000, 25])(
  "port %i, to which no web program speaks, is not reached, whatever listens there",
  async (port) => {
    const here = target(`http://127.0.0.1:${port}/v1`);
    expect(await verdictOf(here)).toMatchObject({
      ...{ isReachable: false, isAuthorized: false },
      error: expect.stringContaining("closed to HTTP"),
      advice: expect.stringContaining(`Port ${port} belongs to another protocol`),
    });
    expect(await checkReachable(client, here, 2_000, never())).toMatchObject({ isReachable: false });
  },
);

test("no models, and a model that is not listed, get advice without being errors", async () => {
  await using llm = await openFakeLlm({ personality: "ollama", models: [] });
  expect((await verdictOf(target(llm.url))).advice).toContain("ollama pull");
  llm.models = ["one"];
  const verdict = await verdictOf(target(llm.url), "two");
  expect(verdict).not.toHaveProperty("error");
  expect(verdict.isAuthorized).toBe(true);
  expect(verdict.advice).toContain('does not list "two"');
});

test.each([
  ["text/html", "<html>", 200, "web page"],
  ["application/json", "{}", 200, "not at this path"],
  ["application/json", '{"error":"nope"}', 404, "not at this path"],
  ["text/plain", "Client sent an HTTP request to an HTTPS server.", 400, "https://"],
  ["text/plain", "", 403, "OLLAMA_HOST"],
  ["application/json", '{"error":"x"}', 402, "credit"],
  ["application/json", '{"error":"x"}', 500, "its log"],
])("an answer of %s %j with status %i is reachable and gets advice", async (type, body, status, advice) => {
  const http = await openFakeHttp((_, answer) => answer.send(status, type, body));
  const verdict = await verdictOf(target(`http://127.0.0.1:${http.port}`));
  expect(verdict).toMatchObject({ isReachable: true, isAuthorized: false });
  expect(verdict.advice).toContain(advice);
  await http.close();
});

test("https where http is spoken, http where https is, and a certificate nobody knows are told apart", async () => {
  const plain = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => new Response("hi"));
  const secured = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {}, ...(await makeCertificate()) },
    () => new Response("hi"),
  );
  const overTls = await verdictOf(target(`https://127.0.0.1:${plain.addr.port}`));
  expect(overTls).toMatchObject({ isReachable: false, advice: expect.stringContaining("with http://") });
  const overPlain = await verdictOf(target(`http://127.0.0.1:${secured.addr.port}`));
  expect(overPlain).toMatchObject({ isAuthorized: false, advice: expect.stringContaining("https://") });
  const untrusted = await verdictOf(target(`https://127.0.0.1:${secured.addr.port}`));
  expect(untrusted).toMatchObject({ isReachable: false, advice: expect.stringContaining("not trusted") });
  await Promise.all([plain.shutdown(), secured.shutdown()]);
});

test("the other findings have advice of their own", () => {
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
  const advice = kinds.map((kind) => adviceForError(new UpstreamError(kind, "x"), away));
  expect(new Set(advice).size).toBe(kinds.length - 1); // unreachable and timeout mean the same for another machine
  expect(advice[0]).toContain("--host 0.0.0.0");
  const claude = target("https://api.anthropic.com/v1", { apiKey: "k" });
  expect(adviceForError(new UpstreamError("auth", "x", { status: 401 }), claude)).toContain("kind anthropic");
});

test("a verdict never holds the key", { tags: ["U03"] }, async () => {
  const http = await openFakeHttp((request, answer) =>
    answer.json(401, { error: request.headers.get("authorization") })
  );
  const verdict = await verdictOf(target(`http://127.0.0.1:${http.port}`, { apiKey: "sk-secret-123" }));
  expect(verdict.error).toContain("[key]");
  expect(JSON.stringify(verdict)).not.toContain("sk-secret-123");
  await http.close();
});

test("a test of a metadata address is refused, not reported", { tags: ["E14"] }, async () => {
  await expect(verdictOf(target("http://169.254.169.254/v1"))).rejects.toMatchObject({ code: "address_not_allowed" });
});

test("reachability is told in the limit given, and a refusal counts as an answer", async () => {
  await using llm = await openFakeLlm({ apiKey: "k" });
  const refused = await checkReachable(client, target(llm.url), 2_000, never());
  expect(refused).toMatchObject({ isReachable: true, error: expect.stringContaining("status 401") });
  llm.apiKey = undefined;
  expect(await checkReachable(client, target(llm.url), 2_000, never())).toMatchObject({ isReachable: true });
  const silent = await openFakeHttp(() => {});
  const here = target(`http://127.0.0.1:${silent.port}`);
  expect(await checkReachable(client, here, 50, never())).toMatchObject({ isReachable: false });
  await silent.close();
});
