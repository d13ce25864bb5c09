/**
 * Replies that go on after the server was killed or stopped.
 *
 * @slow Each test starts the server two to five times.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Frame, framesOf, gather, understand, until } from "../helpers/app/chat_client.ts";
import { type ChildServer, connectModel, startChildServer } from "../helpers/app/child_server.ts";
import { type FakeLlm, type ManualAnswer, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { freePort } from "../real/helpers/free_port.ts";

interface Message {
  id: string;
  content: string;
  reasoning?: string;
  status: string;
  continued_after_restart?: true;
  output_limit?: number;
  usage?: unknown;
}

const QUESTION = {
  conversation_id: "c1",
  user_message_id: "u1",
  assistant_message_id: "a1",
  context: "server",
  messages: [{ role: "user", content: "Tell me about the sea" }],
};

let llm: FakeLlm;
let dataDir: string;
let server: ChildServer;

beforeEach(async () => {
  // It may be away for a while.
  llm = await openFakeLlm({ personality: "llama.cpp", switches: { manual: "on" }, port: freePort() });
  dataDir = await Deno.makeTempDir({ prefix: "parlor-restarts-" });
  server = await startChildServer({ dataDir });
  await connectModel(server, llm.url);
});
afterEach(async () => {
  await server.kill();
  await llm[Symbol.asyncDispose]();
  await Deno.remove(dataDir, { recursive: true });
});

async function restart(signal: Deno.Signal = "SIGKILL"): Promise<void> {
  await server.kill(signal);
  server = await startChildServer({ dataDir });
}

const readMessage = async (id = "a1") =>
  (await server.json<{ messages: Message[] }>("GET", "/api/conversations/c1")).messages.find((one) => one.id === id)!;

const follow = (lastEventId?: string) =>
  server.request("GET", "/api/chat/replies/a1", undefined, {
    headers: lastEventId === undefined ? {} : { "Last-Event-ID": lastEventId },
  });

/** Asks, and reads until the client has so many words. */
async function askFor(words: string[], change: Record<string, unknown> = {}) {
  const frames = framesOf(await server.request("POST", "/api/chat", { ...QUESTION, ...change }));
  const call = await llm.nextCall();
  const seen: Frame[] = [];
  for (const word of words) {
    await call.emit(word);
    while (!understand(seen).text.endsWith(word)) seen.push((await frames.next()).value!);
  }
  return { call, seen, frames };
}

const finish = async (call: ManualAnswer, ...words: string[]) => {
  for (const word of words) await call.emit(word);
  await call.finish();
};

test("a reply that llama.cpp keeps goes on after kill -9, for clients before and after", async () => {
  const { call, seen } = await askFor(["The ", "sea ", "is "]);
  await server.kill();
  // The model goes on while Parlor is away.
  await call.emit("blue ");
  server = await startChildServer({ dataDir });
  await until(async () => (await readMessage()).content === "The sea is blue ", "the text of the gap is there");
  expect((await readMessage()).status).toBe("streaming");
  const [rest, whole] = [follow(seen.at(-1)!.id), follow()];
  await finish(call, "and ", "wide.");
  expect(await gather(await rest)).toMatchObject({ text: "blue and wide.", isDone: true });
  expect(await gather(await whole)).toMatchObject({ text: "The sea is blue and wide.", isDone: true });
  expect(await readMessage()).toMatchObject({ content: "The sea is blue and wide.", status: "complete" });
  expect(llm.chats).toHaveLength(1);
  await expect.poll(() => llm.streams.byId.size).toBe(0);
});

test("a queued message outlives kill -9, and is sent when the reply that went on ends well", async () => {
  const { call } = await askFor(["The "]);
  await server.json("POST", "/api/conversations/c1/queue", { message: { content: "And the sky?" } });
  await restart();
  await finish(call, "sea.");
  const next = await llm.nextCall();
  const messages = next.request.json!.messages as { content: string }[];
  expect(messages.map(({ content }) => content).slice(-2)).toEqual(["The sea.", "And the sky?"]);
  expect(await server.json("GET", "/api/conversations/c1/queue")).toMatchObject({ items: [] });
  await server.json("POST", "/api/conversations/c1/queue", { message: { content: "Stays" } });
  // The model server loses this reply.
  llm.streams.byId.clear();
  await server.json("PATCH", "/api/settings", { continue_after_restart: "never" });
  await restart();
  await until(
    async () =>
      (await server.json<{ messages: Message[] }>("GET", "/api/conversations/c1")).messages.at(-1)!.status ===
        "interrupted",
    "the reply was interrupted",
  );
  expect(await server.json("GET", "/api/conversations/c1/queue")).toMatchObject({
    items: [{ message: { content: "Stays" } }],
  });
});

test("stopping the server tells clients to connect again, and the reply goes on with the next start", async () => {
  const { call, seen, frames } = await askFor(["The ", "sea "]);
  const changes = framesOf(await server.request("GET", "/api/events"));
  const [stopped, reply, change] = await Promise.all([
    server.kill("SIGTERM"),
    Array.fromAsync(frames),
    Array.fromAsync(changes),
  ]);
  expect(stopped.success).toBe(true);
  expect(reply.at(-1)).toMatchObject({ event: "restarting", data: '{"retry_ms":1000}' });
  expect(change.at(-1)).toMatchObject({ event: "restarting", data: '{"retry_ms":1000}' });
  server = await startChildServer({ dataDir });
  const rest = follow(seen.at(-1)!.id);
  await finish(call, "is blue.");
  expect(await gather(await rest)).toMatchObject({ text: "is blue.", isDone: true });
  expect(await readMessage()).toMatchObject({ content: "The sea is blue.", status: "complete", usage: {} });
  expect(llm.chats).toHaveLength(1);
});

test("reasoning, usage and the limit of a reply are as without a restart, however often it comes", async () => {
  const frames = framesOf(await server.request("POST", "/api/chat", { ...QUESTION, max_tokens: 50 }));
  const call = await llm.nextCall();
  await call.think("Salt ");
  while (understand([(await frames.next()).value!]).reasoning === "");
  for (const thought of ["and ", "water."]) {
    await server.kill();
    await call.think(thought);
    server = await startChildServer({ dataDir });
  }
  await until(async () => (await readMessage()).reasoning === "Salt and water.", "all of the reasoning is there");
  await call.emit("It's ");
  await until(async () => (await readMessage()).content === "It's ", "the first text is there");
  await restart();
  const rest = follow();
  await call.emit("salty");
  await call.finish("length");
  expect(await gather(await rest)).toMatchObject({ text: "It's salty", reasoning: "Salt and water.", isDone: true });
  expect(await readMessage()).toMatchObject({
    content: "It's salty",
    reasoning: "Salt and water.",
    status: "complete",
    output_limit: 50,
    finish_reason: "length",
    usage: { completion_tokens: 7 },
  });
});

test("a continued reply goes on without its start twice, also where the server repeats it", async () => {
  const { call } = await askFor(["One, "]);
  await call.finish();
  await until(async () => (await readMessage()).status === "complete", "the reply is complete");
  const frames = framesOf(await server.request("POST", "/api/chat", { ...QUESTION, action: "continue", messages: [] }));
  const more = await llm.nextCall();
  await more.emit("two, ");
  while (!understand([(await frames.next()).value!]).text.includes("two"));
  await restart();
  await finish(more, "three");
  await until(async () => (await readMessage()).status === "complete", "the reply is complete");
  expect(await readMessage()).toMatchObject({ content: "One, two, three", variant_count: 1 });
});

test("a reply that its server has lost is continued after its text, once", async () => {
  const { call } = await askFor(["The sea ", "is "]);
  await server.kill();
  llm.streams.byId.clear();
  await call.fail("cut");
  server = await startChildServer({ dataDir });
  const again = await llm.nextCall();
  expect(again.request.json?.messages).toEqual([
    { role: "user", content: "Tell me about the sea" },
    { role: "assistant", content: "The sea is " },
  ]);
  const whole = await follow();
  await again.emit("blue");
  await until(async () => (await readMessage()).content === "The sea is blue", "the new text is there");
  // This call is kept, so it goes on; it's not repeated a second time.
  await restart();
  await again.emit(" and");
  await until(async () => (await readMessage()).content === "The sea is blue and", "the text goes on");
  await whole.body?.cancel();
  await server.kill();
  llm.streams.byId.clear();
  server = await startChildServer({ dataDir });
  await until(async () => (await readMessage()).status === "interrupted", "the reply is interrupted");
  expect(await readMessage()).toMatchObject({ content: "The sea is blue and", continued_after_restart: true });
  expect(llm.chats).toHaveLength(2);
});

test("a reply without text is asked anew, and its reasoning begins again", async () => {
  const frames = framesOf(await server.request("POST", "/api/chat", QUESTION));
  const call = await llm.nextCall();
  await call.think("Hm");
  const seen: Frame[] = [];
  while (understand(seen).reasoning === "") seen.push((await frames.next()).value!);
  await server.kill();
  llm.streams.byId.clear();
  server = await startChildServer({ dataDir });
  const again = await llm.nextCall();
  expect(again.request.json?.messages).toEqual([{ role: "user", content: "Tell me about the sea" }]);
  const whole = follow(seen.at(-1)!.id);
  await again.think("Well");
  await finish(again, "It's blue.");
  expect(await gather(await whole)).toMatchObject({ text: "It's blue.", reasoning: "Well", isDone: true });
  const message = await readMessage();
  expect(message).toMatchObject({ content: "It's blue.", reasoning: "Well", status: "complete" });
  expect(message.continued_after_restart).toBeUndefined();
});

test.for(
  [
    { why: "the owner doesn't want it", setting: "never", personality: "llama.cpp" },
    { why: "nobody knows whether the server continues a text", setting: "always", personality: "generic" },
  ] as const,
)("a lost reply isn't repeated if $why", async ({ setting, personality }) => {
  await using other = await openFakeLlm({ personality, switches: { manual: "on" } });
  await connectModel(server, other.url);
  await server.json("PATCH", "/api/settings", { continue_after_restart: setting });
  const frames = framesOf(await server.request("POST", "/api/chat", QUESTION));
  const call = await other.nextCall();
  await call.emit("The sea");
  while (!understand([(await frames.next()).value!]).text.includes("sea"));
  await server.kill();
  other.streams.byId.clear();
  server = await startChildServer({ dataDir });
  await until(async () => (await readMessage()).status === "interrupted", "the reply is interrupted");
  expect(await readMessage()).toMatchObject({ content: "The sea", error: { code: "interrupted" } });
  expect(other.chats).toHaveLength(1);
});

test("Stop ends a reply that goes on, and the model", async () => {
  const { call } = await askFor(["The sea"]);
  await restart();
  await until(() => llm.requests.some(({ path }) => path.startsWith("/v1/stream?")), "the reply is read again");
  await server.json("POST", "/api/chat/replies/a1/stop");
  expect(await readMessage()).toMatchObject({ content: "The sea", status: "stopped" });
  await expect.poll(() => llm.streams.byId.size).toBe(0);
  await call.emit(" is lost");
  await restart();
  expect(await readMessage()).toMatchObject({ content: "The sea", status: "stopped" });
});

test("a reply whose model server starts later than Parlor waits for it", async () => {
  const { call, seen } = await askFor(["The sea "]);
  const kept = new Map(llm.streams.byId);
  const { port } = llm;
  await server.kill();
  await llm.close();
  server = await startChildServer({ dataDir });
  const rest = follow(seen.at(-1)!.id);
  await until(async () => (await readMessage()).status === "streaming", "the reply waits");
  llm = await openFakeLlm({ personality: "llama.cpp", port });
  for (const [id, stream] of kept) llm.streams.byId.set(id, stream);
  await finish(call, "is blue.");
  const { text, notices } = await gather(await rest);
  expect(text).toBe("is blue.");
  expect(notices).toContainEqual(expect.objectContaining({ code: "reattaching" }));
});

describe("with tools", () => {
  const CALL = { id: "call_1", name: "web_search", arguments: '{"query":"sea"}' };
  let searches: number;
  let search: Deno.HttpServer<Deno.NetAddr>;

  beforeEach(async () => {
    searches = 0;
    search = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => {
      searches++;
      return Response.json({ results: [{ title: "The sea", url: "https://sea.example/", content: "It is blue" }] });
    });
    const url = `http://127.0.0.1:${search.addr.port}`;
    await server.json("PUT", "/api/tools/web", { search_url: url, search: true, read_page: false });
  });
  afterEach(async () => {
    await search.shutdown();
  });

  const allow = async () => {
    await until(async () => (await running())[0]?.is_waiting === true, "the call waits for the owner");
    await server.json("POST", "/api/chat/replies/a1/tool_calls/call_1", { decision: "allow" });
  };
  const running = () => server.json<{ is_waiting: boolean }[]>("GET", "/api/chat/replies");

  test("calls that the model makes while Parlor is away are asked about after the start", async () => {
    const { call } = await askFor(["I look"]);
    await server.kill();
    await call.emit(" it up.");
    await call.callTools(CALL);
    server = await startChildServer({ dataDir });
    await allow();
    const next = await llm.nextCall();
    expect(next.request.json?.messages).toMatchObject([
      { role: "system" },
      { role: "user" },
      { role: "assistant", content: "I look it up.", tool_calls: [{ id: "call_1" }] },
      { role: "tool", tool_call_id: "call_1" },
    ]);
    await finish(next, "It's blue.");
    await until(async () => (await readMessage()).status === "complete", "the reply is complete");
    expect(await readMessage()).toMatchObject({ content: "It's blue.", status: "complete" });
    expect(searches).toBe(1);
    // Each round's stream is forgotten.
    await expect.poll(() => llm.streams.byId.size).toBe(0);
  });

  test.for(["kept", "lost"])("a %s reply after a finished call goes on without calling again", async (state) => {
    const { call } = await askFor(["I look."]);
    await call.callTools(CALL);
    await allow();
    const next = await llm.nextCall();
    if (state === "kept") {
      await next.emit("It's ");
      await until(async () => (await readMessage()).content === "It's ", "the answer has begun");
    }
    await server.kill();
    if (state === "lost") llm.streams.byId.clear();
    server = await startChildServer({ dataDir });
    const last = state === "lost" ? await llm.nextCall() : next;
    expect(last.request.json?.messages).toContainEqual(expect.objectContaining({ role: "tool" }));
    await finish(last, "blue.");
    await until(async () => (await readMessage()).status === "complete", "the reply is complete");
    expect((await readMessage()).content).toBe(state === "kept" ? "It's blue." : "blue.");
    expect(searches).toBe(1);
    expect(llm.chats).toHaveLength(state === "kept" ? 2 : 3);
  });
});
