/**
 * Replies of a provider with OpenAI's background mode, which go on after the server was killed or stopped.
 *
 * @slow Each test starts the server two or three times.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Frame, framesOf, gather, understand, until } from "../helpers/app/chat_client.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { type FakeResponses, openFakeResponses } from "../helpers/fakes/llm/fake_responses.ts";

interface Message {
  id: string;
  content: string;
  reasoning?: string;
  status: string;
}

const QUESTION = {
  conversation_id: "c1",
  user_message_id: "u1",
  assistant_message_id: "a1",
  context: "server",
  messages: [{ role: "user", content: "Tell me about the sea" }],
};

let provider: FakeResponses;
let dataDir: string;
let server: ChildServer;

beforeEach(async () => {
  provider = await openFakeResponses();
  dataDir = await Deno.makeTempDir({ prefix: "parlor-background-" });
  server = await startChildServer({ dataDir });
  // Every call is counted, and a lost reply isn't asked for again.
  const settings = { auto_title: false, auto_summary: false, continue_after_restart: "never" };
  await server.json("PATCH", "/api/settings", settings);
  await connect({ background: true });
  await server.json("POST", "/api/connections/o/activate");
});
afterEach(async () => {
  await server.kill();
  await provider[Symbol.asyncDispose]();
  await Deno.remove(dataDir, { recursive: true });
});

const connect = (change: Record<string, unknown>) =>
  server.json<Record<string, unknown>>("PUT", "/api/connections", {
    ...{ id: "o", name: "O", kind: "openai-responses", base_url: provider.url, model: "fake-model" },
    ...change,
  });

const readMessage = async () =>
  (await server.json<{ messages: Message[] }>("GET", "/api/conversations/c1")).messages.find(({ id }) => id === "a1")!;

const follow = (lastEventId?: string) =>
  server.request("GET", "/api/chat/replies/a1", undefined, {
    headers: lastEventId === undefined ? {} : { "Last-Event-ID": lastEventId },
  });

/** Asks, and reads until the client has the words. */
async function askFor(words: string) {
  const frames = framesOf(await server.request("POST", "/api/chat", QUESTION));
  const response = await provider.nextResponse();
  response.emit(words);
  const seen: Frame[] = [];
  while (!understand(seen).text.endsWith(words)) seen.push((await frames.next()).value!);
  return { response, seen };
}

const listAsked = (pattern: RegExp) => provider.asked.filter((line) => pattern.test(line));

test.for(["SIGKILL", "SIGTERM"] as const)("a reply is read on from where it was after %s", async (signal) => {
  const { response, seen } = await askFor("The sea ");
  expect(response.request).toMatchObject({ background: true, store: true, stream: true });
  const { last } = response;
  await server.kill(signal);
  response.emit("is ");
  server = await startChildServer({ dataDir });
  await until(async () => (await readMessage()).content === "The sea is ", "the text of the gap is there");
  // What was said before isn't read again.
  expect(listAsked(/^GET .*stream=true/)).toEqual([
    `GET /v1/responses/${response.id}?stream=true&starting_after=${last}`,
  ]);
  const [rest, whole] = [follow(seen.at(-1)!.id), follow()];
  response.emit("blue.");
  response.finish();
  expect(await gather(await rest)).toMatchObject({ text: "is blue.", isDone: true });
  expect(await gather(await whole)).toMatchObject({ text: "The sea is blue.", isDone: true });
  expect(await readMessage()).toMatchObject({ content: "The sea is blue.", status: "complete" });
  expect(listAsked(/^POST \/v1\/responses$/)).toHaveLength(1);
  // Parlor has it, so the provider forgets it.
  await until(() => provider.stored.size === 0, "the response is deleted");
});

test("reasoning goes on, and a text whose end came while Parlor was away isn't doubled", async () => {
  const frames = framesOf(await server.request("POST", "/api/chat", QUESTION));
  const response = await provider.nextResponse();
  response.think("Salt ");
  while (understand([(await frames.next()).value!]).reasoning === "");
  await server.kill();
  response.think("and water.");
  response.emit("Salty");
  server = await startChildServer({ dataDir });
  await until(async () => (await readMessage()).content === "Salty", "the first text is there");
  await server.kill();
  response.finish();
  server = await startChildServer({ dataDir });
  await until(async () => (await readMessage()).status === "complete", "the reply is complete");
  expect(await readMessage()).toMatchObject({
    content: "Salty",
    reasoning: "Salt and water.",
    usage: { completion_tokens: 7 },
  });
});

test("Stop cancels at the provider, also after a restart", async () => {
  const { response } = await askFor("The sea");
  await server.kill();
  server = await startChildServer({ dataDir });
  await until(() => listAsked(/starting_after=/).length === 1, "the reply is read again");
  await server.json("POST", "/api/chat/replies/a1/stop");
  expect(await readMessage()).toMatchObject({ content: "The sea", status: "stopped" });
  await until(() => provider.stored.size === 0, "the response is deleted");
  expect(response.status).toBe("cancelled");
});

test("a reply that the provider has lost keeps its text", async () => {
  await askFor("The sea");
  await server.kill();
  provider.stored.clear();
  server = await startChildServer({ dataDir });
  await until(async () => (await readMessage()).status === "interrupted", "the reply is interrupted");
  expect((await readMessage()).content).toBe("The sea");
});

test("nothing is stored at the provider unless the owner allows it, for connections of this kind alone", async () => {
  expect(await connect({ background: null })).not.toHaveProperty("background");
  const { response } = await askFor("The sea");
  expect(response.request).toMatchObject({ store: false });
  expect(response.request).not.toHaveProperty("background");
  await server.kill();
  server = await startChildServer({ dataDir });
  await until(async () => (await readMessage()).status === "interrupted", "the reply is interrupted");
  expect(await connect({ background: true })).toHaveProperty("background", true);
  expect(await connect({})).toHaveProperty("background", true);
  expect(await connect({ kind: "openai" })).not.toHaveProperty("background");
});

test("a call of a tool that the model makes while Parlor is away comes with its reasoning, and is made once", async () => {
  let searches = 0;
  await using search = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => {
    searches++;
    return Response.json({ results: [{ title: "The sea", url: "https://sea.example/", content: "It is blue" }] });
  });
  const url = `http://127.0.0.1:${search.addr.port}`;
  await server.json("PUT", "/api/tools/web", { search_url: url, search: true, read_page: false });
  const frames = framesOf(await server.request("POST", "/api/chat", QUESTION));
  const response = await provider.nextResponse();
  response.think("I don't know.");
  response.emit("I look");
  const seen: Frame[] = [];
  while (!understand(seen).text.endsWith("I look")) seen.push((await frames.next()).value!);
  await server.kill();
  response.emit(" it up.");
  response.callFunction("web_search", '{"query":"sea"}');
  response.finish();
  server = await startChildServer({ dataDir });
  const listWaiting = () =>
    server.json<{ pending_calls?: { id: string }[] }[]>("GET", "/api/chat/replies").then((replies) =>
      replies.flatMap(({ pending_calls = [] }) => pending_calls)
    );
  await until(async () => (await listWaiting()).length === 1, "the call waits for the owner");
  const [call] = await listWaiting();
  await server.json("POST", `/api/chat/replies/a1/tool_calls/${call!.id}`, { decision: "allow" });
  const next = await provider.nextResponse();
  expect((next.request.input as unknown[]).slice(-4)).toMatchObject([
    { type: "reasoning", encrypted_content: "opaque" },
    { type: "message", content: [{ text: "I look it up." }] },
    { type: "function_call", name: "web_search" },
    { type: "function_call_output" },
  ]);
  next.emit("It's blue.");
  next.finish();
  await until(async () => (await readMessage()).status === "complete", "the reply is complete");
  expect([(await readMessage()).content, searches]).toEqual(["It's blue.", 1]);
  await until(() => provider.stored.size === 0, "both responses are deleted");
});
