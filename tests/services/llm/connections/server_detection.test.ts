import { expect, test } from "vitest";
import { detectServers } from "../../../../services/llm/connections/server_detection.ts";
import { type FakeLlmOptions, openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { openFakeHttp } from "../../../helpers/fakes/llm/fake_llm_http.ts";

const LOOPBACK = ["127.0.0.1"];
/** Long enough for a busy test machine; a server that answers never needs it. */
const deadlineMs = 20_000;

interface Case extends FakeLlmOptions {
  as: number;
  isLoading?: boolean;
  finds: Record<string, unknown> | undefined;
}
const MODELS = ["m1", "m2"];

test.each<Case>([
  { personality: "ollama", as: 11434, finds: { software: "Ollama", models: MODELS } },
  { personality: "ollama", as: 11434, models: [], finds: { software: "Ollama", models: [] } },
  { personality: "lm-studio", as: 1234, finds: { software: "LM Studio", models: MODELS } },
  { personality: "lm-studio-v0", as: 1234, finds: { software: "LM Studio", models: MODELS } },
  { personality: "generic", as: 1234, finds: { software: "OpenAI-compatible", models: MODELS } },
  { personality: "llama.cpp", as: 8080, finds: { software: "llama.cpp", models: MODELS } },
  { personality: "llama.cpp", as: 8080, apiKey: "k", finds: { software: "llama.cpp", models: [], needsKey: true } },
  {
    personality: "llama.cpp",
    as: 8080,
    isLoading: true,
    finds: { software: "llama.cpp", models: [], isStarting: true },
  },
  { personality: "llamafile", as: 8080, finds: { software: "llamafile", models: MODELS } },
  { personality: "mlx_lm", as: 8080, finds: { software: "mlx_lm", models: MODELS } },
  { personality: "localai", as: 8080, finds: { software: "LocalAI", models: MODELS } },
  { personality: "generic", as: 8080, finds: { software: "OpenAI-compatible", models: MODELS } },
  {
    personality: "generic",
    as: 8080,
    apiKey: "k",
    finds: { software: "OpenAI-compatible", models: [], needsKey: true },
  },
  { personality: "vllm", as: 8000, finds: { software: "vLLM", models: MODELS } },
  { personality: "vllm", as: 8000, models: [], finds: { software: "vLLM", models: [] } },
  { personality: "generic", as: 8000, models: ["tts-1", "tts-1-hd"], finds: undefined },
  {
    personality: "generic",
    as: 8000,
    models: ["speaches-ai/Kokoro-82M-v1.0-ONNX", "Systran/faster-whisper-small", "hexgrad/XTTS-v2"],
    finds: undefined,
  },
  { personality: "generic", as: 8000, models: [], finds: undefined },
  {
    personality: "generic",
    as: 8000,
    models: ["tts-1", "qwen"],
    finds: { software: "OpenAI-compatible", models: ["tts-1", "qwen"] },
  },
  { personality: "llama.cpp", as: 9931, finds: { software: "llama.cpp", models: MODELS } },
  { personality: "koboldcpp", as: 5001, finds: { software: "KoboldCpp", models: MODELS } },
  { personality: "tabbyapi", as: 5000, finds: { software: "TabbyAPI", models: MODELS } },
  { personality: "tabbyapi", as: 5000, apiKey: "k", finds: { software: "TabbyAPI", models: [], needsKey: true } },
  { personality: "text-generation-webui", as: 5000, finds: { software: "text-generation-webui", models: ["m1"] } },
  {
    personality: "text-generation-webui",
    as: 5000,
    apiKey: "k",
    finds: { software: "OpenAI-compatible", models: [], needsKey: true },
  },
  { personality: "jan", as: 1337, finds: { software: "Jan", models: MODELS } },
  { personality: "jan", as: 1337, apiKey: "k", finds: { software: "Jan", models: [], needsKey: true } },
] as Case[])("$personality on port $as is found as $finds", async ({ as, finds, isLoading = false, ...options }) => {
  await using llm = await openFakeLlm({ models: MODELS, ...options });
  llm.isLoading = isLoading;
  const found = await detectServers({ hosts: LOOPBACK, ports: [{ port: llm.port, as }], deadlineMs });
  expect(found).toEqual(finds === undefined ? [] : [{ baseUrl: `${llm.origin}/v1`, kind: "openai", ...finds }]);
  // A server of unknown software that asks for a key is also asked for what only one product has.
  const isLocked = finds?.needsKey === true && finds.software === "OpenAI-compatible";
  if (!isLocked) expect(llm.requests.length).toBeLessThanOrEqual(2);
  for (const request of llm.requests) {
    expect(request.method).toBe("GET");
    for (const name of ["authorization", "x-api-key", "origin", "cookie"]) expect(request.headers.get(name)).toBeNull();
  }
});

test.each([
  ["vLLM", "/version", { version: "0.24.0" }, { error: "Unauthorized" }],
  ["TabbyAPI", "/.well-known/serviceinfo", { software: { name: "TabbyAPI" } }, { detail: "Please provide an API key" }],
  ["KoboldCpp", "/api/extra/version", { result: "KoboldCpp" }, { detail: { msg: "Authentication required" } }],
])("%s on another port that asks for a key is recognized by its first answers", async (software, path, page, body) => {
  const http = await openFakeHttp((request, answer) =>
    request.path === path ? answer.json(200, page) : answer.json(401, body)
  );
  const found = await detectServers({ hosts: [`127.0.0.1:${http.port}`], deadlineMs });
  expect(found).toMatchObject([{ software, models: [], needsKey: true }]);
  await http.close();
});

test("an LM Studio that responds to everything with 200 is recognized by its response bodies", async () => {
  const http = await openFakeHttp((request, answer) =>
    answer.json(200, { error: `Unexpected endpoint or method. (GET ${request.path})` })
  );
  const at = (as: number) => detectServers({ hosts: LOOPBACK, ports: [{ port: http.port, as }], deadlineMs });
  expect(await at(1234)).toMatchObject([{ software: "LM Studio", models: [] }]);
  for (const as of [8080, 8000, 5000, 5001, 11434, 1337]) expect(await at(as)).toEqual([]);
  await http.close();
});

test("web pages, AirPlay, redirects and speech servers aren't detected as model servers on any port", async () => {
  const others: [number, string, string][] = [
    [200, "text/html", "<html>"],
    [403, "text/plain", "Forbidden"],
    [401, "text/html", "<html>sign in"],
    [307, "text/plain", ""],
    [200, "application/json", '{"data":[{"id":"kokoro","owned_by":"kokoro"}]}'],
    [404, "application/json", '{"error":"nothing"}'],
    [500, "application/json", "{"],
  ];
  const doors = await Promise.all(
    others.map(([status, type, body]) =>
      openFakeHttp((_, answer) => answer.send(status, type, body, { location: "http://127.0.0.1:1/" }))
    ),
  );
  const ports = doors.flatMap(({ port }) => [11434, 1234, 8080, 8000, 5001, 5000, 1337].map((as) => ({ port, as })));
  expect(await detectServers({ hosts: LOOPBACK, ports, deadlineMs })).toEqual([]);
  await Promise.all(doors.map((door) => door.close()));
});

test("a server that names the task of its models is no model server if it's speech", async () => {
  const list = (...tasks: string[]) => JSON.stringify({ data: tasks.map((task, n) => ({ id: `m${n}`, task })) });
  const bodies = [list("automatic-speech-recognition", "text-to-speech"), list("text-to-speech", "text-generation")];
  const doors = await Promise.all(
    bodies.map((body) => openFakeHttp((_, answer) => answer.send(200, "application/json", body))),
  );
  const ports = doors.map(({ port }) => ({ port, as: 8080 }));
  const found = await detectServers({ hosts: LOOPBACK, ports, deadlineMs });
  expect(found.map(({ models }) => models)).toEqual([["m0", "m1"]]);
  await Promise.all(doors.map((door) => door.close()));
});

test("known software is listed before what may be something else", async () => {
  await using unknown = await openFakeLlm({ models: MODELS });
  await using known = await openFakeLlm({ personality: "koboldcpp", models: MODELS });
  const ports = [{ port: unknown.port, as: 1234 }, { port: known.port, as: 5001 }];
  const found = await detectServers({ hosts: LOOPBACK, ports, deadlineMs });
  expect(found.map(({ software }) => software)).toEqual(["KoboldCpp", "OpenAI-compatible"]);
});

test("an Ollama that rejects the host name is still detected", async () => {
  const http = await openFakeHttp((_, answer) => answer.send(403, "text/plain", ""));
  const found = await detectServers({ hosts: LOOPBACK, ports: [{ port: http.port, as: 11434 }], deadlineMs });
  expect(found).toMatchObject([{ software: "Ollama", models: [] }]);
  await http.close();
});

test("a port that accepts connections and stays silent ends at the deadline, and delays no other", async () => {
  const silent = await openFakeHttp(() => {});
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  const ports = [{ port: silent.port, as: 8080 }, { port: silent.port, as: 5000 }, { port: llm.port, as: 8080 }];
  const found = await detectServers({ hosts: LOOPBACK, ports, deadlineMs: 6_000 });
  expect(found.map((server) => server.software)).toEqual(["llama.cpp"]);
  await Promise.all(silent.requests.map((request) => request.over));
  await silent.close();
});

test("an endless body isn't read beyond its limit", async () => {
  const http = await openFakeHttp(async (_, answer) => {
    await answer.head(200, { "content-type": "application/json" }, "chunked");
    while (!answer.isGone) await answer.write(" ".repeat(64 * 1024));
  });
  expect(await detectServers({ hosts: LOOPBACK, ports: [{ port: http.port, as: 8080 }], deadlineMs })).toEqual([]);
  await http.close();
});

test("discover skips metadata and link-local hosts, as literals and as names", { tags: ["E14"] }, async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  const asked: string[] = [];
  const resolve = (host: string) => {
    asked.push(host);
    return Promise.resolve(["169.254.169.254"]);
  };
  const hosts = ["169.254.169.254", "fe80::1", "metadata.google.internal", "evil.example", "not a host", ...LOOPBACK];
  const found = await detectServers({ hosts, ports: [{ port: llm.port, as: 8080 }], deadlineMs, resolve });
  expect(found.map((server) => server.baseUrl)).toEqual([`${llm.origin}/v1`]);
  expect(asked).toEqual(["evil.example"]);
});

test("a configured host with a port is searched only there", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", models: MODELS });
  await using other = await openFakeLlm({ personality: "llama.cpp" });
  const ports = [{ port: other.port, as: 8080 }];
  const find = (host: string) => detectServers({ hosts: [host], ports, deadlineMs });
  expect(await find(`127.0.0.1:${llm.port}`)).toMatchObject([{ baseUrl: `${llm.origin}/v1`, models: MODELS }]);
  expect(await find(`127.0.0.1:${other.port}`)).toMatchObject([{ baseUrl: `${other.origin}/v1` }]);
  expect(await find("127.0.0.1")).toMatchObject([{ baseUrl: `${other.origin}/v1` }]);
  expect(await find("169.254.169.254:80")).toEqual([]);
});

/** Containers often have no IPv6, not even for themselves. */
function hasIpv6(): boolean {
  try {
    Deno.listen({ hostname: "::1", port: 0 }).close();
    return true;
  } catch {
    console.warn("SKIPPED a model server at ::1: this machine has no IPv6");
    return false;
  }
}

test.each([["127.0.0.2", "127.0.0.2"], ...hasIpv6() ? [["::1", "[::1]"]] : []])(
  "every configured host is probed: 127.0.0.1 and %s",
  async (host, written) => {
    await using first = await openFakeLlm({ personality: "llama.cpp", models: ["first"] });
    await using second = await openFakeLlm({ personality: "llama.cpp", models: ["second"], host });
    const ports = [{ port: first.port, as: 8080 }, { port: second.port, as: 8080 }];
    const found = await detectServers({ hosts: ["127.0.0.1", host!], ports, deadlineMs });
    expect(found.map((server) => [server.baseUrl, server.models])).toEqual([
      [`http://127.0.0.1:${first.port}/v1`, ["first"]],
      [`http://${written}:${second.port}/v1`, ["second"]],
    ]);
  },
);
