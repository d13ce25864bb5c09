/** The probe asks the doubles of all servers. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { applyContract, type ContractItem, type ServerContract } from "../../../../services/llm/contract/contract.ts";
import type { ProbeOptions } from "../../../../services/llm/contract/server_probe.ts";
import type { DialectName } from "../../../../services/llm/dialects/dialect.ts";
import { getDialect } from "../../../../services/llm/dialects/dialects.ts";
import { createUpstreamClient, type UpstreamClient } from "../../../../services/llm/upstream_client.ts";
import { type FakeLlm, type FakeLlmOptions, openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { openFakeAnthropic } from "../../../helpers/fakes/llm/fake_llm_anthropic.ts";
import type { PersonalityName } from "../../../helpers/fakes/llm/fake_llm_servers.ts";
import { openFakeOllama } from "../../../helpers/fakes/llm/fake_ollama.ts";
import { ask, gather, never, target } from "../model_calls.ts";

/** No test machine is as slow. */
const LIMIT_MS = 600_000;
const PIECES = ["One ", "two ", "three ", "four"];

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient({ log: () => {} });
});
afterAll(() => client.close());

/** Asks a fake server. */
function probe(
  llm: FakeLlm,
  dialect: DialectName,
  { by = "owner", limitMs = LIMIT_MS }: Partial<ProbeOptions> = {},
): Promise<ServerContract> {
  const where = target(llm.url, { dialect: getDialect(dialect) });
  return client.probe(where, "m", { by, limitMs, now: () => 1 }, never());
}

function open(personality: PersonalityName, more: FakeLlmOptions = {}): Promise<FakeLlm> {
  return openFakeLlm({ personality, models: ["m"], pieces: PIECES, ...more });
}

/** What was found, or why not: `{tools: true, images: "would_load"}`. */
function list({ findings }: ServerContract): Partial<Record<ContractItem, unknown>> {
  return Object.fromEntries(Object.entries(findings).map(([item, { found, reason }]) => [item, found ?? reason]));
}

const ALL = { system_message: true, tools: true, images: true, stop: true, usage: true };
const OWN = { ...ALL, continues: true, repeats_prefill: false, progress: false };
const UNASKED = {
  ...{ continues: "would_load", repeats_prefill: "would_load", progress: "would_load", system_message: "would_load" },
  ...{ tools: "would_load", images: "would_load", stop: "would_load", usage: "would_load" },
};
const { continues: _, repeats_prefill: __, ...UNASKED_MLX } = UNASKED;

test.each<[PersonalityName, DialectName, Partial<Record<ContractItem, unknown>>]>([
  ["generic", "generic", { ...OWN, context_size: "unclear" }],
  ["llama.cpp", "llama.cpp", { ...OWN, context_size: 2048, slots: 4, progress: true, resumable: true }],
  ["ollama", "ollama", { ...OWN, context_size: 4096, tools: false, images: false }],
  ["lm-studio", "lmstudio", { ...OWN, context_size: 4096 }],
  ["lm-studio-v0", "lmstudio", { ...OWN, context_size: 8192, images: false }],
  ["vllm", "vllm", { ...OWN, context_size: 16384 }],
  ["mlx_lm", "mlx", { ...UNASKED_MLX, context_size: "would_load" }],
  ["koboldcpp", "koboldcpp", { ...OWN, context_size: 6144, slots: 1, images: false, usage: false }],
  ["text-generation-webui", "generic", { ...OWN, context_size: "unclear" }],
  ["tabbyapi", "tabbyapi", { ...OWN, context_size: 12288 }],
  ["jan", "generic", { ...OWN, context_size: "unclear" }],
  ["localai", "generic", { ...UNASKED, context_size: "would_load" }],
  ["llamafile", "generic", { ...OWN, context_size: "unclear" }],
  ["openrouter", "openrouter", { ...ALL, continues: true, repeats_prefill: false, context_size: 65536 }],
  ["openai", "openai", { ...ALL, context_size: "unclear" }],
  ["openai-thinking", "openai", { ...ALL, context_size: "unclear" }],
  ["mistral", "mistral", { ...ALL, context_size: "unclear", usage: false }],
  ["gemini", "gemini", { ...ALL, context_size: "unclear" }],
  ["groq", "groq", { ...ALL, context_size: "unclear" }],
  ["deepseek", "deepseek", { ...ALL, context_size: "unclear", images: false }],
])("%s is found to do what it does", async (personality, dialect, expected) => {
  await using llm = await open(personality);
  expect(list(await probe(llm, dialect))).toEqual(expected);
  const tokens = llm.chats.map(({ json }) => Number(json?.max_tokens ?? json?.max_completion_tokens));
  expect(tokens.every((count) => count <= 64)).toBe(true);
});

test("Ollama's own API and Anthropic's are asked in their protocols", async () => {
  const options = { by: "owner", limitMs: LIMIT_MS, now: () => 1 } as const;
  await using ollama = await openFakeOllama({ pieces: PIECES });
  const where = target(ollama.url, { kind: "ollama", contextSize: 4096 });
  // Not loaded: no call.
  expect(list(await client.probe(where, "fake-model", options, never()))).toMatchObject({
    ...{ context_size: 4096, stop: "would_load", tools: false, images: false },
  });
  expect(ollama.chats).toEqual([]);
  // It's loaded with another context than calls of this connection would ask for, and isn't loaded again.
  ollama.load("fake-model", 8192);
  expect(list(await client.probe(where, "fake-model", options, never()))).toMatchObject({
    ...{ continues: true, system_message: true, stop: true, usage: true },
  });
  expect(ollama.askedSizes.every((size) => size === 8192)).toBe(true);
  expect(ollama.loads).toEqual([]);

  await using anthropic = await openFakeAnthropic({ pieces: PIECES });
  const claude = target(anthropic.url, { kind: "anthropic" });
  expect(list(await client.probe(claude, "claude-fake", options, never()))).toEqual({
    ...{ ...ALL, context_size: 200_000, continues: true, repeats_prefill: false },
  });
  anthropic.options.fail = "prefill";
  expect(list(await client.probe(claude, "claude-fake", options, never()))).toEqual({
    ...{ ...ALL, context_size: 200_000, continues: false },
  });
});

test("what a server refuses or ignores is found, and where that differs from its kind", async () => {
  await using llm = await open("generic", { switches: { no_tools: "on", no_stop: "on", usage: "none" } });
  const { refuse } = llm.personality;
  llm.personality = {
    ...llm.personality,
    async refuse(request, answer, server) {
      const has = (text: string) => request.body.includes(text);
      const message = has("image_url")
        ? "this model has no vision encoder"
        : has('"role":"system"')
        ? "System role not supported"
        : undefined;
      if (message === undefined) return await refuse!(request, answer, server);
      await answer.json(400, { error: { message, type: "invalid_request_error" } });
      return true;
    },
  };
  const { findings } = await probe(llm, "generic");
  expect(findings).toMatchObject({
    system_message: { found: false, expected: true },
    tools: { found: false, expected: true },
    images: { found: false, expected: true },
    stop: { found: false, expected: true },
    usage: { found: false, expected: true },
    continues: { found: true, expected: true },
  });
});

test("a server that repeats a prefill is asked whether it continues exactly with llama.cpp's fields", async () => {
  // llama.cpp behind a gateway that hides it.
  await using llm = await open("llama.cpp");
  llm.personality = { ...llm.personality, headers: {}, models: (ids) => ({ data: ids.map((id) => ({ id })) }) };
  const contract = await probe(llm, "generic");
  expect(list(contract)).toMatchObject({ repeats_prefill: true, progress: true });
  expect(contract.isExactWithFields).toBe(true);
});

test("a server that goes on after its client has left is found", async () => {
  await using llm = await open("llama.cpp", { switches: { delay_between: 50 } });
  llm.load = {};
  expect(list(await probe(llm, "llama.cpp"))).toMatchObject({ cancels: true });
  llm.load = { ignoresCancel: true };
  expect(list(await probe(llm, "llama.cpp", { limitMs: 20_000 }))).toMatchObject({ cancels: false });
});

test("Parlor itself makes no call while a slot is busy, or if a slot would have to drop a chat", async () => {
  for (const [personality, dialect] of [["llama.cpp", "llama.cpp"], ["koboldcpp", "koboldcpp"]] as const) {
    await using llm = await open(personality);
    const unknown = await probe(llm, dialect, { by: "parlor" });
    expect(list(unknown)).toMatchObject({ stop: "holds_chat" });
    llm.slots = 1;
    llm.load = { isBusy: true };
    const by = dialect === "koboldcpp" ? "owner" : "parlor";
    expect(list(await probe(llm, dialect, { by, limitMs: 10_000 }))).toMatchObject({ stop: "busy" });
    llm.load = { kept: 1 };
    expect(list(await probe(llm, dialect, { by: "parlor" }))).toMatchObject({ stop: "holds_chat" });
    expect(llm.chats).toEqual([]);
    // The owner may.
    expect(list(await probe(llm, dialect, { by: "owner" }))).toMatchObject({ stop: true });
    llm.load = {};
    expect(list(await probe(llm, dialect, { by: "parlor" }))).toMatchObject({ stop: true });
  }
});

test("of several slots, one that keeps nothing is used", async () => {
  await using llm = await open("llama.cpp");
  llm.slots = 3;
  llm.load = { kept: 2 };
  expect(list(await probe(llm, "llama.cpp", { by: "parlor" }))).toMatchObject({ stop: true });
  expect(llm.chats.length).toBeGreaterThan(0);
  expect(llm.chats.every(({ json }) => json?.id_slot === 2)).toBe(true);
});

test("a model that isn't loaded stays so", async () => {
  await using llm = await open("lm-studio", { models: ["loaded", "m"] });
  expect(list(await probe(llm, "lmstudio"))).toMatchObject({ stop: "would_load" });
  await using router = await open("llama.cpp");
  router.personality = {
    ...router.personality,
    models: (ids) => ({ data: ids.map((id) => ({ id, owned_by: "llamacpp", status: { value: "unloaded" } })) }),
  };
  expect(list(await probe(router, "llama.cpp"))).toMatchObject({ stop: "would_load" });
  expect([...llm.chats, ...router.chats]).toEqual([]);
});

test("a chat with the server ends a probe, which keeps what it found", async () => {
  await using llm = await open("generic", { switches: { manual: "on" } });
  const found = probe(llm, "generic");
  const asked = await llm.nextCall();
  const reply = client.openChatStream(target(llm.url), ask("hi", {}, "m"), never());
  await asked.over;
  expect(asked.request.closedEarly).toBe(true);
  expect(list(await found)).toMatchObject({ stop: "busy" });
  const answer = await llm.nextCall();
  await answer.emit("Hello");
  await answer.finish();
  expect((await gather(await reply)).text).toBe("Hello");
});

test("what takes longer than a probe may stays unknown", async () => {
  await using llm = await open("generic", { switches: { manual: "on" } });
  expect(list(await probe(llm, "generic", { limitMs: 300 }))).toMatchObject({ stop: "time", tools: "time" });
});

test("a build of llama.cpp without kept streams gets no ID for them", async () => {
  await using llm = await open("llama.cpp");
  llm.personality = { ...llm.personality, keepsStreams: false };
  const contract = await probe(llm, "llama.cpp");
  expect(contract.findings.resumable).toMatchObject({ found: false, expected: true });
  const dialect = applyContract(getDialect("llama.cpp"), contract);
  const call = { model: "m", messages: [{ role: "user", content: "hi" }], params: {}, streamId: "secret" };
  await Array.fromAsync((await client.openChatStream(target(llm.url, { dialect }), call, never())).batches());
  expect(llm.chats.at(-1)!.headers.get("x-conversation-id")).toBeNull();
});
