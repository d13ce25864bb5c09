import { afterAll, beforeAll, expect, test } from "vitest";
import { parseModelList } from "../../../services/llm/streaming/response_body.ts";
import { createUpstreamClient, type UpstreamClient } from "../../../services/llm/upstream_client.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { openFakeHttp } from "../../helpers/fakes/llm/fake_llm_http.ts";
import type { PersonalityName } from "../../helpers/fakes/llm/fake_llm_servers.ts";
import { failureOf, never, target } from "./model_calls.ts";

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient({ log: () => {} });
});
afterAll(() => client.close());

test.each([
  [{ object: "list", data: [{ id: "a" }, { id: "b" }] }, ["a", "b"]],
  [{ data: null }, []],
  [[{ id: "a" }], ["a"]],
  [{ data: [{ id: "b" }, { id: "a" }, { id: "b" }, { id: 7 }, null, "x", {}, { id: "" }] }, ["b", "a"]],
])("the models in %j are %j", (value, ids) => {
  expect(parseModelList(value)?.data.map((entry) => entry.id)).toEqual(ids);
});

test.each([[null], ["x"], [{}], [{ error: "Unexpected endpoint or method. (GET /models)" }], [{ data: "x" }], [{
  models: [],
}]])(
  "refuses %j as a model list",
  (value) => {
    expect(parseModelList(value)).toBeUndefined();
  },
);

test.each(
  [
    "llama.cpp",
    "ollama",
    "lm-studio",
    "vllm",
    "mlx_lm",
    "koboldcpp",
    "tabbyapi",
    "localai",
    "llamafile",
    "openrouter",
  ] satisfies PersonalityName[],
)("the models of %s are listed, from its origin as from its /v1", async (personality) => {
  await using llm = await openFakeLlm({ personality, models: ["/home/x/a.gguf", "b"] });
  for (const url of [llm.origin, llm.url]) {
    const { object, data } = await client.listModels(target(url), never());
    expect(object).toBe("list");
    expect(data.map((entry) => entry.id)).toEqual(["/home/x/a.gguf", "b"]);
  }
});

test("Ollama without a model lists none", async () => {
  await using llm = await openFakeLlm({ personality: "ollama", models: [] });
  expect((await client.listModels(target(llm.origin), never())).data).toEqual([]);
});

test("JSON of another structure and a web page aren't lists, whatever their status", async () => {
  for (
    const [type, body, kind] of [
      ["application/json", '{"hello":1}', "bad_answer"],
      ["text/html", "<!doctype html>", "web_page"],
      ["text/plain", "Ollama is running", "bad_answer"],
    ] as const
  ) {
    const http = await openFakeHttp((_, answer) => answer.send(200, type, body));
    expect((await failureOf(client.listModels(target(`http://127.0.0.1:${http.port}`), never()))).kind).toBe(kind);
    expect(http.requests.map((request) => request.path)).toEqual(["/v1/models", "/models"]);
    await http.close();
  }
});

test.each(
  [
    ["llama.cpp", 2048],
    ["ollama", 4096],
    ["lm-studio", 4096],
    ["lm-studio-v0", 8192],
    ["vllm", 16384],
    ["koboldcpp", 6144],
    ["tabbyapi", 12288],
    ["openrouter", 65536],
    ["mlx_lm", undefined],
    ["localai", undefined],
    ["generic", undefined],
  ] satisfies [PersonalityName, number | undefined][],
)("the context size at %s is %s", async (personality, size) => {
  await using llm = await openFakeLlm({ personality });
  expect(await client.readContextSize(target(llm.url), "fake-model", never())).toBe(size);
});

test("the context size of a model that Ollama hasn't loaded is unknown, whatever its maximum", async () => {
  await using llm = await openFakeLlm({ personality: "ollama", models: ["loaded", "other"] });
  expect(await client.readContextSize(target(llm.url), "loaded", never())).toBe(4096);
  expect(await client.readContextSize(target(llm.url), "other", never())).toBeUndefined();
});

test("the context size of a server that is off is unknown, not an error; an abort is one", async () => {
  const llm = await openFakeLlm();
  await llm.close();
  expect(await client.readContextSize(target(llm.url), "m", never())).toBeUndefined();
  const reason = new Error("left");
  await expect(client.readContextSize(target(llm.url), "m", AbortSignal.abort(reason))).rejects.toBe(reason);
});
