/** Kills of the process while a reply calls tools. */
import { expect, test } from "vitest";
import { framesOf, until } from "../helpers/app/chat_client.ts";
import { type ChildServer, connectModel, startChildServer } from "../helpers/app/child_server.ts";
import { type FakeLlm, type ManualAnswer, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";

type Json = Record<string, unknown> & { id: string };

const CALL = { id: "call_1", name: "web_search", arguments: '{"query":"sea"}' };

/** A search server that responds when the test lets it. */
function openSearch() {
  const requests: PromiseWithResolvers<void>[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async () => {
    const request = Promise.withResolvers<void>();
    requests.push(request);
    await request.promise;
    return Response.json({ results: [{ title: "The sea", url: "https://sea.example/", content: "It is blue" }] });
  });
  return {
    requests,
    url: `http://127.0.0.1:${server.addr.port}`,
    async [Symbol.asyncDispose]() {
      for (const { resolve } of requests) resolve();
      await server.shutdown();
    },
  };
}

async function prepare(server: ChildServer, llm: FakeLlm, searchUrl: string): Promise<void> {
  await connectModel(server, llm.url);
  await server.json("PUT", "/api/tools/web", { search_url: searchUrl, search: true, read_page: false });
}

/** Sends a message and makes the model call the tool. */
async function askForCall(server: ChildServer, llm: FakeLlm, n: number, call = CALL) {
  const question = {
    conversation_id: "c1",
    user_message_id: `u${n}`,
    assistant_message_id: `a${n}`,
    context: "server",
  };
  const response = await server.request("POST", "/api/chat", {
    ...question,
    messages: [{ role: "user", content: `question ${n}` }],
  });
  const first = await llm.nextCall();
  await first.emit("I look.");
  await first.callTools(call);
  await until(async () => (await running(server))[0]?.is_waiting === true, "the call waits");
  await response.body?.cancel();
}

const running = (server: ChildServer) => server.json<Json[]>("GET", "/api/chat/replies");
const messages = async (server: ChildServer) =>
  (await server.json<{ messages: Json[] }>("GET", "/api/conversations/c1")).messages;
const allow = (server: ChildServer, mid: string, call: string) =>
  server.json<Json>("POST", `/api/chat/replies/${mid}/tool_calls/${call}`, { decision: "allow" });
const sent = (call: ManualAnswer) => call.request.json!.messages as Json[];

test(
  "kill -9 in every phase of a tool call leaves an exact state, and no call is made twice",
  { tags: ["D02"], timeout: 240_000 },
  async () => {
    await using llm = await openFakeLlm({ switches: { manual: "on" } });
    await using search = openSearch();
    const dataDir = await Deno.makeTempDir();
    try {
      const first = await startChildServer({ dataDir });
      await prepare(first, llm, search.url);
      await askForCall(first, llm, 1);
      await first.kill("SIGKILL"); // while the call waits

      const second = await startChildServer({ dataDir });
      expect(await running(second)).toMatchObject([{ assistant_message_id: "a1", pending_calls: [{ id: "call_1" }] }]);
      expect(await messages(second)).toMatchObject([
        { id: "u1" },
        { content: "I look.", tool_calls: [{ id: "call_1", state: "pending" }] },
        { id: "a1", status: "streaming", content: "" },
      ]);
      expect(search.requests).toHaveLength(0);
      await allow(second, "a1", "call_1");
      await until(() => search.requests.length === 1, "the call runs");
      await second.kill("SIGKILL"); // while the call runs

      const third = await startChildServer({ dataDir });
      expect(await running(third)).toEqual([]);
      expect(await messages(third)).toMatchObject([
        { id: "u1" },
        { content: "I look.", tool_calls: [{ id: "call_1", state: "unknown" }] },
        { role: "tool", tool_call_id: "call_1", content: expect.stringContaining("isn't known") },
        { id: "a1", status: "interrupted", content: "" },
      ]);
      search.requests[0]!.resolve();
      await askForCall(third, llm, 2, { ...CALL, id: "call_2" });
      const asked = llm.chats.at(-1)!.json!.messages as Json[];
      expect(asked.slice(-3)).toMatchObject([
        { role: "assistant", tool_calls: [{ id: "call_1" }] },
        { role: "tool", content: expect.stringContaining("isn't known") },
        { role: "user", content: "question 2" },
      ]);
      await allow(third, "a2", "call_2");
      await until(() => search.requests.length === 2, "the second call runs");
      search.requests[1]!.resolve();
      const answer = await llm.nextCall();
      expect(sent(answer).at(-1)).toMatchObject({ role: "tool", content: expect.stringContaining("It is blue") });
      await answer.emit("The sea");
      const followed = framesOf(await third.request("GET", "/api/chat/replies/a2"));
      // The stream also has the result of the call, so only text of the reply counts.
      for await (const { data } of followed) if (data.includes('"content":"The sea"')) break;
      await third.kill("SIGKILL"); // while the model writes about the result

      await using fourth = await startChildServer({ dataDir });
      expect((await messages(fourth)).slice(4)).toMatchObject([
        { id: "u2" },
        { content: "I look.", tool_calls: [{ id: "call_2", state: "done" }] },
        { role: "tool", tool_call_id: "call_2", content: expect.stringContaining("It is blue") },
        { id: "a2", status: "interrupted", content: "The sea" },
      ]);
      expect(search.requests).toHaveLength(2);
      const { items } = await fourth.json<{ items: Json[] }>("GET", "/api/tools/calls");
      expect(items).toMatchObject([
        { call: { id: "call_2", state: "done" }, decided_by: "local" },
        { call: { id: "call_1", state: "unknown" }, decided_by: "local" },
      ]);
    } finally {
      await Deno.remove(dataDir, { recursive: true });
    }
  },
);
