import { afterAll, beforeAll, expect, test } from "vitest";
import { createUpstreamClient, type UpstreamClient } from "../../../../services/llm/upstream_client.ts";
import { FAKE_USAGE, openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { openFakeHttp } from "../../../helpers/fakes/llm/fake_llm_http.ts";
import { ask, failureOf, gather, never, target } from "../model_calls.ts";

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient({ log: () => {} });
});
afterAll(() => client.close());

test("only fields that are set are sent, with the length of the body", async () => {
  await using llm = await openFakeLlm();
  const params = { temperature: 0.7, top_p: undefined, top_k: null, min_p: 0.05, stop: ["\n"], seed: 0 };
  const call = ask("hällo", params);
  await gather(await client.openChatStream(target(llm.url), call, never()));
  const request = llm.chats[0]!;
  expect(request.json).toEqual({
    model: "fake-model",
    messages: [{ role: "user", content: "hällo" }],
    temperature: 0.7,
    min_p: 0.05,
    stop: ["\n"],
    seed: 0,
    stream: true,
    stream_options: { include_usage: true },
  });
  expect(request.headers.get("content-length")).toBe(String(new TextEncoder().encode(request.body).length));
  expect(request.headers.get("transfer-encoding")).toBeNull();
  expect(request.headers.get("authorization")).toBeNull();
  expect(request.headers.get("origin")).toBeNull();
});

test("a server that rejects stream_options is asked once more without it, and next time without it from the start", async () => {
  await using llm = await openFakeLlm({ switches: { no_stream_options: "on" } });
  for (let n = 0; n < 2; n++) {
    expect((await gather(await client.openChatStream(target(llm.url), ask(), never()))).text).toBe("Hello");
  }
  expect(llm.chats.map((request) => "stream_options" in request.json!)).toEqual([true, false, false]);
});

test.each([["", "/v1"], ["/v1", "/v1"], ["", ""], ["/prefix", "/prefix/v1"], ["/api/v1", "/api/v1"]])(
  "with the base path %j the endpoints under %j are found and remembered",
  async (base, prefix) => {
    await using llm = await openFakeLlm({ prefix });
    for (let n = 0; n < 2; n++) {
      expect((await client.listModels(target(llm.origin + base), never())).data[0]?.id).toBe("fake-model");
      expect((await gather(await client.openChatStream(target(llm.origin + base), ask(), never()))).text).toBe("Hello");
    }
    const misses = llm.requests.filter((request) =>
      !request.path.startsWith(`${prefix}/models`) && !request.path.startsWith(`${prefix}/chat`)
    );
    expect(misses.length).toBeLessThanOrEqual(1);
  },
);

test("a base URL without /v1 works with LM Studio, which answers 200 to unknown paths", async () => {
  await using llm = await openFakeLlm({ personality: "lm-studio", prefix: "/other" });
  const error = await failureOf(client.openChatStream(target(llm.origin), ask(), never()));
  expect(error.kind).toBe("not_found");
  expect(error.message).toContain("Unexpected endpoint or method");
});

test("an answer without streaming is one object, with its reasoning under one name", async () => {
  await using llm = await openFakeLlm({ reasoning: ["hm"], switches: { reasoning: "reasoning" } });
  const completion = await client.completeChat(target(llm.url), ask(), never());
  expect(completion).toMatchObject({ object: "chat.completion", model: "fake-model", usage: FAKE_USAGE });
  expect(completion.choices[0]).toMatchObject({
    message: { role: "assistant", content: "Hello", reasoning_content: "hm" },
    finish_reason: "stop",
  });
  expect(llm.chats[0]!.json).toMatchObject({ stream: false });
  expect(llm.chats[0]!.json).not.toHaveProperty("max_tokens");
  expect(llm.chats[0]!.json).not.toHaveProperty("stream_options");
});

test("a response that a server streams unasked is combined into one object", async () => {
  const frames = [
    '{"choices":[{"delta":{"content":"Hel"}}]}',
    '{"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}',
    "[DONE]",
  ];
  const http = await openFakeHttp((_, answer) =>
    answer.send(200, "text/event-stream", frames.map((frame) => `data: ${frame}\n\n`).join(""))
  );
  const completion = await client.completeChat(target(`http://127.0.0.1:${http.port}/v1`), ask(), never());
  expect(completion.choices[0]).toMatchObject({ message: { content: "Hello" }, finish_reason: "stop" });
  await http.close();
});

test("a response padded with blank lines during the wait is read", async () => {
  const http = await openFakeHttp((_, answer) =>
    answer.send(200, "application/json", '\n\n\n{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}')
  );
  const completion = await client.completeChat(target(`http://127.0.0.1:${http.port}/v1`), ask(), never());
  expect(completion).toMatchObject({
    object: "chat.completion",
    model: "fake-model",
    choices: [{ index: 0, message: { content: "ok" } }],
  });
  await http.close();
});

test(
  "metadata and link-local addresses are refused before anything is sent, even if a name resolves to them",
  { tags: ["E14"] },
  async () => {
    for (const url of ["http://169.254.169.254/v1", "http://[fe80::1]/v1", "http://168.63.129.16/v1"]) {
      await expect(client.openChatStream(target(url), ask(), never())).rejects.toMatchObject({
        code: "address_not_allowed",
      });
      await expect(client.listModels(target(url), never())).rejects.toMatchObject({ code: "address_not_allowed" });
    }
    const resolving = createUpstreamClient({
      resolve: () => Promise.resolve(["10.0.0.1", "169.254.169.254"]),
      log: () => {},
    });
    const call = resolving.openChatStream(target("http://model.example/v1"), ask(), never());
    await expect(call).rejects.toMatchObject({ code: "address_not_allowed" });
    resolving.close();
  },
);

test("a redirect to another origin isn't followed and gets no key", { tags: ["U02"] }, async () => {
  await using elsewhere = await openFakeLlm();
  for (const status of [301, 302, 303, 307, 308]) {
    const http = await openFakeHttp((request, answer) =>
      answer.send(status, "text/plain", "", { location: `${elsewhere.origin}${request.path}` })
    );
    const here = target(`http://127.0.0.1:${http.port}/v1`, { apiKey: "sk-secret-123456" });
    // Either may fail first.
    const failing = [client.openChatStream(here, ask(), never()), client.listModels(here, never())].map(failureOf);
    for (const error of await Promise.all(failing)) {
      expect(error.kind).toBe("redirect");
      expect(error.message).toContain(elsewhere.origin);
    }
    await http.close();
  }
  expect(elsewhere.requests).toHaveLength(0);
});

test("a 307 within the origin is followed with method, body and key; a loop ends", { tags: ["U02"] }, async () => {
  const http = await openFakeHttp(async (request, answer) => {
    if (request.path === "/v1/models") return await answer.send(307, "text/plain", "", { location: "/v1/models" });
    if (!request.path.endsWith("/")) {
      return await answer.send(307, "text/plain", "", { location: `${request.path}/` });
    }
    const said = request.json?.messages as { content: string }[];
    const content = `${request.method} ${said[0]?.content} ${request.headers.get("authorization")}`;
    await answer.json(200, { choices: [{ message: { content }, finish_reason: "stop" }] });
  });
  const here = target(`http://127.0.0.1:${http.port}/v1`, { apiKey: "sk-secret-123456" });
  const completion = await client.completeChat(here, ask("hi"), never());
  expect(completion.choices[0]!.message.content).toBe("POST hi Bearer sk-secret-123456");
  expect((await failureOf(client.listModels(here, never()))).kind).toBe("redirect");
  await http.close();
});
