import { afterEach, beforeEach, expect, test } from "vitest";
import { createUpstreamClient, type UpstreamClient } from "../../../services/llm/upstream_client.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { openFakeHttp } from "../../helpers/fakes/llm/fake_llm_http.ts";
import type { PersonalityName } from "../../helpers/fakes/llm/fake_llm_servers.ts";
import { never, target } from "./model_calls.ts";

let client: UpstreamClient;
beforeEach(() => {
  client = createUpstreamClient({ log: () => {} });
});
afterEach(() => client.close());

const TEXTS = ["one two three", "", "Grüße, 世界!", "x ".repeat(500)];
const COUNTS = [3, 0, 4, 500];

test.each(["llama.cpp", "koboldcpp"] satisfies PersonalityName[])(
  "tokens are counted by %s itself, each text separately, from its origin as from its /v1",
  async (personality) => {
    await using llm = await openFakeLlm({ personality });
    for (const url of [llm.origin, llm.url]) {
      expect(await client.countTokens(target(url), "m", TEXTS, never())).toEqual(COUNTS);
    }
  },
);

test.each(["generic", "ollama", "lm-studio", "vllm", "mlx_lm"] satisfies PersonalityName[])(
  "%s counts nothing, sees no text, and isn't asked again soon",
  async (personality) => {
    await using llm = await openFakeLlm({ personality });
    expect(await client.countTokens(target(llm.url), "m", ["a secret"], never())).toBeUndefined();
    const asked = llm.requests.length;
    expect(await client.countTokens(target(llm.url), "m", ["a secret"], never())).toBeUndefined();
    expect(llm.requests.length).toBe(asked);
    expect(JSON.stringify(llm.requests.map((request) => request.json))).not.toContain("secret");
  },
);

test("a server that still loads or is away is asked again the next time", async () => {
  const llm = await openFakeLlm({ personality: "llama.cpp" });
  llm.isLoading = true;
  expect(await client.countTokens(target(llm.url), "m", TEXTS, never())).toBeUndefined();
  llm.isLoading = false;
  expect(await client.countTokens(target(llm.url), "m", TEXTS, never())).toEqual(COUNTS);
  const { url } = llm;
  await llm.close();
  expect(await client.countTokens(target(url), "m", TEXTS, never())).toBeUndefined();
});

test("a server that responds with anything but a count has no tokenizer", async () => {
  const answers = ["<html>", "[]", "null", '{"tokens":3}', '{"value":-1}', '{"value":"3"}'];
  for (const body of answers) {
    const http = await openFakeHttp((_, answer) => answer.send(200, "application/json", body));
    expect(await client.countTokens(target(`http://127.0.0.1:${http.port}`), "m", ["a"], never())).toBeUndefined();
    await http.close();
  }
});

test("the count ends when the caller disconnects", async () => {
  const http = await openFakeHttp(() => new Promise(() => {}));
  const leaving = new AbortController();
  const counting = client.countTokens(target(`http://127.0.0.1:${http.port}`), "m", ["a"], leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(counting).rejects.toThrow("gone");
  await http.close();
});
