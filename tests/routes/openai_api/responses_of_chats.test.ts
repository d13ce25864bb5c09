/** Replies of stored conversations as responses. */
import OpenAI from "openai";
import { expect, test } from "vitest";
import { ask, gather } from "../../helpers/app/chat_client.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { answerText, FakeTools } from "../../helpers/fakes/fake_tools.ts";
import { openStrictServers } from "../../helpers/fakes/llm/strict_servers.ts";

const ID = "resp_my_chat_a_1";

/** A conversation `my_chat` with a reply `a_1` that called tools. */
async function openChat() {
  const servers = openStrictServers(["look"]);
  const tools = new FakeTools().set("look", () => answerText("a fox"), { permission: "allow" });
  const app = await openTestApp({ toolSources: [() => Promise.resolve(tools)] });
  await app.put("/api/connections", { id: "openai", name: "OpenAI", ...servers.connect("openai") });
  await (await app.post("/api/connections/openai/activate")).body?.cancel();
  const ids = { conversation_id: "my_chat", assistant_message_id: "a_1", context: "server" };
  expect((await gather(await ask(app, 1, ids))).text).toBe("I look.Done.");
  return {
    app,
    servers,
    client: (apiKey = "none") => new OpenAI({ baseURL: `${app.url}/api/v1`, apiKey, maxRetries: 0 }),
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await servers[Symbol.asyncDispose]();
    },
  };
}

test("a reply of a stored conversation is a response, with its calls", async () => {
  await using at = await openChat();
  const response = await at.client().responses.retrieve(ID);
  expect(response).toMatchObject({
    id: ID,
    object: "response",
    status: "completed",
    model: "openai-model",
    error: null,
  });
  expect(response.output.map(({ type }) => type)).toEqual([
    ...["message", "function_call", "function_call", "function_call", "message"],
  ]);
  expect(response.output_text).toBe("I look.Done.");
});

test("a request goes on after a reply of a stored conversation, and after its own response", async () => {
  await using at = await openChat();
  const input = { model: "default", tools: [] };
  const first = await at.client().responses.create({ ...input, previous_response_id: ID, input: "And now?" });
  expect(first.previous_response_id).toBe(ID);
  const sent = at.servers.requests.at(-1)!.body.messages as { role: string; content: unknown }[];
  expect(sent.map(({ role }) => role)).toEqual([
    ...["user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user"],
  ]);
  expect(sent.at(-1)!.content).toBe("And now?");
  await at.client().responses.create({ ...input, previous_response_id: first.id, input: "Go on." }).catch(() => {});
  const next = at.servers.requests.at(-1)!.body.messages as unknown[];
  expect(next.slice(0, sent.length)).toEqual(sent);
  expect((await (await at.app.get("/api/conversations/my_chat")).json()).messages.at(-1).id).toBe("a_1");
});

test("unknown replies, user messages and the chats that a token may not read are 404", async () => {
  await using at = await openChat();
  for (const id of ["resp_my_chat_a_2", "resp_my_chat_u1", "resp_other_a_1", "resp_my_chat", "resp_"]) {
    await expect(at.client().responses.retrieve(id), id).rejects.toMatchObject({ status: 404 });
  }
  const issue = async (write: boolean) => (await at.app.services.auth.mintToken("t", "openai", { write })).token;
  await expect(at.client(await issue(false)).responses.retrieve(ID)).rejects.toMatchObject({ status: 404 });
  expect((await at.client(await issue(true)).responses.retrieve(ID)).id).toBe(ID);
  await (await at.app.delete("/api/conversations/my_chat")).body?.cancel();
  await expect(at.client().responses.retrieve(ID)).rejects.toMatchObject({ status: 404 });
});
