/** Calls with `store: true`. */
import { expect, test } from "vitest";
import { type OpenAiApp, openOpenAiApp, saveMira } from "../../helpers/app/openai_app.ts";
import { framesOf, until } from "../../helpers/app/chat_client.ts";
import type { StoredConversation } from "../../helpers/app/stored_chat.ts";
import { dataUrl, picture, picturePart } from "../../helpers/files/pictures.ts";

const ask = (at: OpenAiApp, body: Record<string, unknown>) =>
  at.send("POST", "/api/v1/chat/completions", { model: "default", store: true, ...body });

async function read(at: OpenAiApp, id: string): Promise<StoredConversation> {
  const response = await at.send("GET", `/api/conversations/${id}`, undefined, at.ownerToken);
  expect(response.status).toBe(200);
  return await response.json();
}

const spoken = ({ messages }: StoredConversation) => messages.map(({ role, content }) => `${role}: ${content}`);

test("a new conversation gets all user and assistant messages, an existing one the last and the reply", async () => {
  await using at = await openOpenAiApp({ pieces: ["Reply"] });
  await saveMira(at);
  const first = await ask(at, {
    model: "character:mira",
    messages: [
      { role: "system", content: "Be brief" },
      { role: "user", content: "One" },
      { role: "assistant", content: "Two" },
      { role: "user", content: "Three" },
    ],
  });
  expect(await first.json()).toMatchObject({ model: "character:mira", choices: [{ message: { content: "Reply" } }] });
  const id = first.headers.get("x-parlor-conversation-id")!;
  const created = await read(at, id);
  expect(spoken(created)).toEqual(["user: One", "assistant: Two", "user: Three", "assistant: Reply"]);
  expect(created).toMatchObject({ title: "Three", character_id: "mira" });
  expect(created.messages.map(({ character_id }) => character_id)).toEqual([undefined, "mira", undefined, "mira"]);

  const second = await ask(at, {
    model: "character:mira",
    metadata: { conversation_id: id },
    messages: [{ role: "user", content: "Something else" }, { role: "assistant", content: "Reply" }, {
      role: "user",
      content: "Four",
    }],
  });
  expect(second.headers.get("x-parlor-conversation-id")).toBe(id);
  expect(spoken(await read(at, id)).slice(3)).toEqual(["assistant: Reply", "user: Four", "assistant: Reply"]);
  const sent = at.llm.chats.at(-1)!.json! as { messages: { content: string }[]; metadata?: unknown };
  expect(sent.messages.map(({ content }) => content)).toEqual([
    expect.stringContaining("keeps the lighthouse"),
    "Something else",
    "Reply",
    "Four",
  ]);
  expect([sent.metadata, "store" in sent]).toEqual([undefined, false]);
});

test("the client names a new conversation, whose images become attachments", async () => {
  await using at = await openOpenAiApp();
  const content = [{ type: "text", text: "Look" }, picturePart(dataUrl(picture()))];
  const messages = [{ role: "user", content }, { role: "assistant", content: "Nice" }, { role: "user", content }];
  const response = await ask(at, { metadata: { conversation_id: "mine" }, messages });
  expect([response.status, response.headers.get("x-parlor-conversation-id")]).toEqual([200, "mine"]);
  await response.body?.cancel();
  const stored = JSON.stringify((await read(at, "mine")).messages);
  expect(stored.match(/\/api\/attachments\//g)).toHaveLength(2);
  expect(stored).not.toContain("base64");
  expect(JSON.stringify(at.llm.chats.at(-1)!.json)).not.toContain("/api/attachments/");
});

test("the reply shows live and continues when its client leaves", async () => {
  await using at = await openOpenAiApp();
  at.llm.switches.manual = "on";
  const leaving = new AbortController();
  const opening = at.app.post("/api/v1/chat/completions", {
    model: "default",
    store: true,
    stream: true,
    metadata: { conversation_id: "c1" },
    messages: [{ role: "user", content: "Hi" }],
  }, { headers: { Authorization: `Bearer ${at.token}` }, signal: leaving.signal });
  const call = await at.llm.nextCall();
  await call.emit("one ");
  const response = await opening;
  const chunks = [];
  for await (const { data } of framesOf(response)) {
    chunks.push(JSON.parse(data));
    if (chunks.length === 2) break;
  }
  expect(chunks[1]).toMatchObject({ model: "default", choices: [{ delta: { content: "one " } }] });
  leaving.abort();
  expect((await read(at, "c1")).messages.at(-1)).toMatchObject({ content: "one ", status: "streaming" });
  await call.emit("two");
  await call.finish();
  await until(async () => (await read(at, "c1")).messages.at(-1)!.status === "complete", "the reply is saved");
  expect(spoken(await read(at, "c1"))).toEqual(["user: Hi", "assistant: one two"]);
});

test("a streamed reply ends with tool calls, finish reason and usage", async () => {
  await using at = await openOpenAiApp({
    pieces: ["Wait"],
    tools: [[{ index: 0, id: "t1", type: "function", function: { name: "f", arguments: "{}" } }]],
  });
  at.llm.switches.reason = "tool_calls";
  const response = await ask(at, {
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "user", content: "Hi" }],
    tools: [{ type: "function", function: { name: "f" } }],
  });
  const frames = (await Array.fromAsync(framesOf(response))).map(({ data }) => data);
  expect(frames.pop()).toBe("[DONE]");
  const [usage, finish, tools] = frames.map((data) => JSON.parse(data)).reverse();
  expect(tools.choices[0].delta.tool_calls[0]).toMatchObject({ id: "t1", function: { name: "f" } });
  expect(finish.choices[0].finish_reason).toBe("tool_calls");
  expect(usage.usage.total_tokens).toBeGreaterThan(0);
});

test("content that can't be stored is rejected before the model is asked", async () => {
  await using at = await openOpenAiApp();
  const messages = [{ role: "user", content: "Hi" }];
  const refusal = async (id: unknown) => {
    const response = await ask(at, { metadata: { conversation_id: id }, messages });
    const { error } = await response.json();
    return [response.status, error.code, error.param];
  };
  expect(await refusal("a/b")).toEqual([400, "invalid_request", "metadata.conversation_id"]);
  expect(await refusal(5)).toEqual([400, "invalid_request", "metadata.conversation_id"]);
  await ask(at, { metadata: { conversation_id: "gone" }, messages });
  await at.send("DELETE", "/api/conversations/gone", undefined, at.ownerToken);
  const asked = at.llm.chats.length;
  expect(await refusal("gone")).toEqual([409, "in_trash", null]);
  expect(at.llm.chats.length).toBe(asked);
});
