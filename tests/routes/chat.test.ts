import { afterEach, beforeEach, expect, test } from "vitest";
import { chatRoutes } from "../../routes/chat.ts";
import { createRouter } from "../../routes/http/router.ts";
import { ask, framesOf, gather, savedMessage, understand, until, useModel } from "../helpers/app/chat_client.ts";
import { FakeLlm, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { countListeners, measured } from "../helpers/processes/leaks.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { openStoredDatabase } from "../helpers/files/stored_database.ts";

const ROUNDS = 1_000;
/** Clients that connect and disconnect at once. */
const PARALLEL = 10;

let app: TestApp;
let llm: FakeLlm;

beforeEach(async () => {
  [app, llm] = await Promise.all([openTestApp(), openFakeLlm()]);
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const follow = (mid: string, lastEventId?: string) =>
  app.get(`/api/chat/replies/${mid}`, lastEventId === undefined ? {} : { headers: { "Last-Event-ID": lastEventId } });
const conversation = async (id = "c1") => await (await app.get(`/api/conversations/${id}`)).json();

test("streams a reply as OpenAI chunks and stores it after the user message", async () => {
  llm.pieces = ["Hel", "lo 😀"];
  llm.reasoning = ["Hm, ", "well."];
  const response = await ask(app, 1);
  expect(response.status).toBe(200);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": "text/event-stream",
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
    "x-parlor-conversation-id": "c1",
    "x-parlor-user-message-id": "u1",
    "x-parlor-assistant-message-id": "a1",
  });
  const all = await gather(response);
  expect(all).toMatchObject({ text: "Hello 😀", reasoning: "Hm, well.", finish: "stop", isDone: true });
  expect(JSON.parse(all.frames[0]!.data)).toMatchObject({
    object: "chat.completion.chunk",
    model: "fake-model",
    choices: [{ delta: { role: "assistant" } }],
  });
  expect(all.frames.at(-1)!.data).toBe("[DONE]");
  const { messages, title } = await conversation();
  expect(title).toBe("question 1");
  expect(messages).toMatchObject([
    { id: "u1", role: "user", content: "question 1", status: "complete" },
    {
      id: "a1",
      role: "assistant",
      content: "Hello 😀",
      reasoning: "Hm, well.",
      status: "complete",
      model: "fake-model",
      usage: all.usage,
    },
  ]);
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/replies`))).toEqual([]);
});

test("creates missing ids, and sends the client's messages unchanged", async () => {
  const messages = [{ role: "system", content: "Be brief" }, {
    role: "user",
    content: [{ type: "text", text: "Hi" }],
    name: "Ada",
  }];
  const response = await app.post("/api/chat", {
    conversation_id: "c1",
    messages,
    temperature: 0.5,
    top_k: 3,
    seed: null,
  });
  await gather(response);
  const { messages: stored } = await conversation();
  expect(stored.map(({ id }: { id: string }) => id)).toEqual([
    response.headers.get("x-parlor-user-message-id"),
    response.headers.get("x-parlor-assistant-message-id"),
  ]);
  const sent = llm.chats[0]!.json!;
  expect(sent).toMatchObject({
    messages,
    temperature: 0.5,
    top_k: 3,
    model: "fake-model",
    stream: true,
  });
  expect(sent).not.toHaveProperty("max_tokens");
  for (const field of ["seed", "top_p", "conversation_id", "action", "context"]) expect(sent).not.toHaveProperty(field);
});

test("resumes a reply at every event: running, ended, and after a restart", {
  tags: ["U06"],
}, async () => {
  llm.pieces = Array.from({ length: 40 }, (_, i) => (i % 5 === 0 ? `w${i} 😀` : ` word${i}`));
  llm.switches.manual = "on";
  const response = await ask(app, 1);
  const call = await llm.nextCall();
  const live: Promise<unknown>[] = [];
  const whole = llm.pieces.join("");
  const frames = [];
  let sent = 0;
  for await (const frame of framesOf(response)) {
    frames.push(frame);
    const place = frame.id;
    const seen = understand(frames).text;
    if (place !== undefined) {
      live.push(gather(await follow("a1", place)).then((rest) => expect(seen + rest.text).toBe(whole)));
    }
    if (sent < llm.pieces.length) await call.emit(llm.pieces[sent++]!);
    else if (sent++ === llm.pieces.length) await call.finish();
  }
  expect(understand(frames)).toMatchObject({ text: whole, finish: "stop", isDone: true });
  expect(frames.filter(({ id }) => id !== undefined).length).toBe(41);
  expect(live.length).toBe(41);
  await Promise.all(live);
  for (const stage of ["ended", "restarted"]) {
    if (stage === "restarted") await app.restart();
    for (let count = 0; count < frames.length; count++) {
      const seen = understand(frames.slice(0, count));
      const rest = await gather(
        await follow("a1", frames[count - 1]?.id ?? frames.slice(0, count).findLast(({ id }) => id)?.id),
      );
      expect(seen.text + rest.text, `${stage}, cut after ${count}`).toBe(whole);
      expect(rest).toMatchObject({ finish: "stop", isDone: true });
    }
  }
});

test(
  "keeps the reply when the client disconnects, and a second client reads all of it",
  { tags: ["U06"] },
  async () => {
    llm.switches.manual = "on";
    const first = await ask(app, 1);
    const call = await llm.nextCall();
    await call.emit("Hel");
    await gather(first, 2);
    const second = await follow("a1");
    expect(await (await app.get("/api/chat/replies")).json()).toMatchObject([{
      assistant_message_id: "a1",
      conversation_id: "c1",
    }]);
    await call.emit("lo");
    await call.finish();
    expect(await gather(second)).toMatchObject({ text: "Hello", isDone: true });
    await until(async () => (await savedMessage(app, "a1"))?.status === "complete", "the reply was saved");
    expect(await savedMessage(app, "a1")).toMatchObject({ content: "Hello" });
    expect(llm.abandoned).toEqual([]);
    expect(await (await app.get("/api/chat/replies")).json()).toEqual([]);
  },
);

test("shows the text so far of a running reply in the conversation", async () => {
  llm.switches.manual = "on";
  const response = await ask(app, 1);
  const call = await llm.nextCall();
  await call.think("So");
  await call.emit("Hel");
  await gather(response, 3);
  expect(await savedMessage(app, "a1")).toMatchObject({ content: "Hel", reasoning: "So", status: "streaming" });
  const [listed] = await (await app.get("/api/conversations")).json();
  expect(listed.messages[1]).toMatchObject({ content: "Hel", status: "streaming" });
  await call.finish();
});

test("stops a reply from any client, keeps its text and ends the upstream call", async () => {
  llm.switches.manual = "on";
  const response = await ask(app, 1);
  const call = await llm.nextCall();
  await call.emit("Hel");
  await gather(response, 2);
  const following = follow("a1").then((other) => gather(other));
  const stopped = await app.post("/api/chat/replies/a1/stop");
  expect(stopped.status).toBe(202);
  expect(await stopped.json()).toMatchObject({ id: "a1", content: "Hel", status: "stopped" });
  expect(await following).toMatchObject({ text: "Hel", isDone: true });
  await call.over;
  expect(llm.abandoned.length).toBe(1);
  expect((await app.post("/api/chat/replies/a1/stop")).status).toBe(202);
  expect((await app.post("/api/chat/replies/none/stop")).status).toBe(404);
});

test("returns the existing reply, running or finished, when a request is sent twice", async () => {
  llm.switches.manual = "on";
  const first = ask(app, 1);
  const again = ask(app, 1);
  const call = await llm.nextCall();
  await call.emit("Hello");
  await call.finish();
  const both = await Promise.all([first, again]);
  for (const response of both) expect(await gather(response)).toMatchObject({ text: "Hello", isDone: true });
  expect(await gather(await ask(app, 1))).toMatchObject({ text: "Hello", isDone: true });
  expect(llm.chats.length).toBe(1);
  expect((await conversation()).messages.length).toBe(2);
});

test("starts one reply for many simultaneous requests with the same ids", async () => {
  for (let n = 1; n <= 10; n++) {
    const responses = await Promise.all(Array.from({ length: 5 }, () => ask(app, n)));
    for (const response of responses) expect(await gather(response)).toMatchObject({ text: "Hello", isDone: true });
  }
  expect(llm.chats.length).toBe(10);
});

test("rejects a second reply in a busy conversation, and ids that are taken", async () => {
  llm.switches.manual = "on";
  const running = await ask(app, 1);
  const call = await llm.nextCall();
  expect((await ask(app, 2)).status).toBe(409);
  await call.emit("x");
  await call.finish();
  await gather(running);
  llm.switches.manual = "off";
  expect((await ask(app, 3, { assistant_message_id: "u1" })).status).toBe(409);
  expect((await ask(app, 3, { assistant_message_id: "u3" })).status).toBe(400);
  expect((await conversation()).messages.length).toBe(2);
});

test("keeps replies with the same ids in two conversations apart", async () => {
  llm.switches.manual = "on";
  const first = await ask(app, 1);
  const one = await llm.nextCall();
  await one.emit("one");
  const second = await ask(app, 1, { conversation_id: "c2" });
  const two = await llm.nextCall();
  await two.emit("two");
  const running = await (await app.get("/api/chat/replies")).json();
  expect(running.map((reply: Record<string, string>) => [reply.conversation_id, reply.assistant_message_id]).sort())
    .toEqual([["c1", "a1"], ["c2", "a1"]]);
  expect((await app.delete("/api/conversations/c1/messages/a1")).status, "it is being written").toBe(409);
  const stopped = await app.post("/api/chat/replies/a1/stop?conversation_id=c1");
  expect([stopped.status, (await stopped.json()).content]).toEqual([202, "one"]);
  expect((await gather(first)).text).toBe("one");
  await two.emit(", and on");
  const followed = gather(await app.get("/api/chat/replies/a1"));
  await two.finish();
  expect((await gather(second)).text).toBe("two, and on");
  expect((await followed).text, "without a conversation it is the one that runs").toBe("two, and on");
  expect((await gather(await app.get("/api/chat/replies/a1?conversation_id=c1"))).text).toBe("one");
  expect((await gather(await app.get("/api/chat/replies/a1"))).text, "else the last one").toBe("two, and on");
  expect((await app.get("/api/chat/replies/a1?conversation_id=c3")).status).toBe(404);
  expect(await (await app.get("/api/conversations/c1/messages/a1")).json()).toMatchObject({ content: "one" });
  expect(await (await app.get("/api/conversations/c2/messages/a1")).json()).toMatchObject({ content: "two, and on" });
});

test("returns an error if the model refuses, keeps the message, and retries when it is sent again", async () => {
  llm.switches.fail = "status_json";
  llm.switches.status = 503;
  const refused = await ask(app, 1);
  expect(refused.status).toBe(502);
  expect((await refused.json()).error).toMatchObject({ code: "upstream_error" });
  expect((await conversation()).messages).toMatchObject([{ id: "u1" }, {
    id: "a1",
    content: "",
    status: "failed",
    error: { code: "upstream_error" },
  }]);
  llm.switches.fail = "none";
  expect(await gather(await ask(app, 1))).toMatchObject({ text: "Hello", isDone: true });
  const { messages } = await conversation();
  expect(messages).toMatchObject([{ id: "u1" }, { id: "a1", content: "Hello", status: "complete", variant_count: 1 }]);
  expect(messages[1]).not.toHaveProperty("error");
});

test("starts the stream after a long silence, and ends it with an error if the model then refuses", async () => {
  llm.switches.fail = "status_json";
  llm.switches.delay_headers = 2_000;
  const router = createRouter().route("/", chatRoutes(app.services, { firstOutputTimeoutMs: 10 }));
  const body = { conversation_id: "c1", assistant_message_id: "a1", messages: [{ role: "user", content: "Hi" }] };
  const response = await router.request("/api/chat", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  expect(await gather(response)).toMatchObject({ text: "", isDone: false, error: { code: "upstream_error" } });
  expect(await savedMessage(app, "a1")).toMatchObject({ status: "failed" });
});

test.each(
  [
    ["upstreamFirstByteTimeoutMs", "delay_first"],
    ["upstreamIdleTimeoutMs", "delay_between"],
  ] as const,
)("a model slower than %s allows is 504", async (key, delay) => {
  await using slow = await openTestApp({ config: { [key]: 50 } });
  await useModel(slow, llm);
  llm.switches[delay] = 5_000;
  const messages = [{ role: "user", content: "Hi" }];
  const response = await slow.post("/api/chat", { messages, conversation_id: "c1", stream: false });
  expect(response.status).toBe(504);
  expect((await response.json()).error.code).toBe("upstream_timeout");
});

test("stores the message with a failed reply when there is no connection, and the same ids retry it", async () => {
  for (const { id } of await (await app.get("/api/connections")).json()) await app.delete(`/api/connections/${id}`);
  const response = await ask(app, 1);
  expect(response.status).toBe(503);
  expect((await response.json()).error.code).toBe("not_available");
  expect(response.headers.get("x-parlor-user-message-id")).toBe("u1");
  expect((await conversation()).messages).toMatchObject([
    { id: "u1", content: "question 1" },
    { id: "a1", content: "", status: "failed", error: { code: "not_available" } },
  ]);
  await useModel(app, llm);
  expect(await gather(await ask(app, 1))).toMatchObject({ text: "Hello", isDone: true });
  expect((await conversation()).messages).toMatchObject([{ id: "u1" }, {
    id: "a1",
    content: "Hello",
    model: "fake-model",
  }]);
});

test.each([["stream", true], ["whole answer", false]])(
  "stores the whole message before the model is looked up on a server that is down (%s)",
  async (_, stream) => {
    await useModel(app, { url: "http://127.0.0.1:9" }, { model: null });
    const turn = {
      role: "user",
      name: "Ann",
      content: [{ type: "text", text: "Look" }],
      attachments: ["cat.png"],
      extra: { mood: "glad" },
      created_at: "2026-01-01T00:00:00.000Z",
    };
    const fields = { messages: [{ role: "system", content: "Be brief" }, turn], stream };
    const response = await ask(app, 1, fields);
    expect(response.status).toBe(502);
    expect((await response.json()).error.code).toBe("upstream_error");
    const { messages } = await conversation();
    expect(messages).toMatchObject([
      { id: "u1", ...turn, status: "complete" },
      {
        id: "a1",
        status: "failed",
        error: { code: "upstream_error", message: expect.stringContaining("127.0.0.1:9") },
      },
    ]);
    await useModel(app, llm, { model: null });
    const again = await ask(app, 1, { ...fields, stream: true });
    expect(await gather(again)).toMatchObject({ text: "Hello", isDone: true });
    expect((await conversation()).messages).toMatchObject([messages[0], { content: "Hello", model: "fake-model" }]);
  },
);

test("stores the message while the model is still being looked up, and stop ends the lookup", async () => {
  const [listing, leaving] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async ({ signal }) => {
    signal.addEventListener("abort", () => leaving.resolve());
    listing.resolve();
    await leaving.promise;
    return new Response();
  });
  await useModel(app, { url: `http://127.0.0.1:${server.addr.port}` }, { model: null });
  const asked = ask(app, 1);
  await listing.promise;
  expect((await conversation()).messages).toMatchObject([{ id: "u1", content: "question 1" }, { status: "streaming" }]);
  expect((await app.post("/api/chat/replies/a1/stop")).status).toBe(202);
  await leaving.promise;
  await (await asked).body?.cancel();
  expect(await savedMessage(app, "a1")).toMatchObject({ content: "", status: "stopped" });
});

test("rejects another message under a taken id, and accepts the same message for a new reply", async () => {
  await gather(await ask(app, 1));
  const other = { messages: [{ role: "user", content: "something else" }] };
  for (const assistant of ["a1", "a2"]) {
    const refused = await ask(app, 1, { ...other, assistant_message_id: assistant });
    expect([refused.status, (await refused.json()).error.code]).toEqual([409, "conflict"]);
  }
  const taken = await ask(app, 2, { user_message_id: "a1", messages: [{ role: "user", content: "Hello" }] });
  expect(taken.status).toBe(409);
  expect((await conversation()).messages.map(({ id }: { id: string }) => id)).toEqual(["u1", "a1"]);
  const parts = [{ role: "user", content: [{ type: "text", text: "question 1" }] }];
  expect(await gather(await ask(app, 1, { assistant_message_id: "a2", messages: parts }))).toMatchObject({
    isDone: true,
  });
  expect((await conversation()).messages.map(({ id }: { id: string }) => id)).toEqual(["u1", "a1", "a2"]);
});

test.each(["cut", "frame_object", "event_error"] as const)(
  "keeps the text of an answer broken by %s and ends with one error event",
  { tags: ["U05"] },
  async (fail) => {
    llm.pieces = ["par", "tial", "never"];
    llm.switches.fail = fail;
    llm.switches.after = 2;
    const all = await gather(await ask(app, 1));
    expect(all).toMatchObject({
      text: "partial",
      isDone: false,
      error: { code: "upstream_error", request_id: expect.any(String) },
    });
    expect(all.frames.at(-1)!.event).toBe("error");
    await until(async () => (await savedMessage(app, "a1"))?.status === "failed", "the failure was saved");
    expect(await savedMessage(app, "a1")).toMatchObject({ content: "partial", error: { code: "upstream_error" } });
    expect(await gather(await follow("a1"))).toMatchObject({ text: "partial", error: { code: "upstream_error" } });
  },
);

test("keeps the earlier text as a version on regenerate, and switches between versions", async () => {
  await gather(await ask(app, 1));
  llm.pieces = ["Other"];
  await gather(await ask(app, 1, { action: "regenerate" }));
  expect(await savedMessage(app, "a1")).toMatchObject({ content: "Other", variant_count: 2, active_variant: 1 });
  const variants = await (await app.get("/api/conversations/c1/messages/a1/variants")).json();
  expect(variants).toMatchObject([{ n: 0, content: "Hello" }, { n: 1, content: "Other" }]);
  const switched = await (await app.patch("/api/conversations/c1/messages/a1", { active_variant: 0 })).json();
  expect(switched).toMatchObject({ content: "Hello", variant_count: 2, active_variant: 0 });
  expect(await (await app.get("/api/conversations/c1/messages/a1/variants")).json()).toMatchObject(variants);
  expect((await app.patch("/api/conversations/c1/messages/a1", { active_variant: 5 })).status).toBe(400);
  const { messages } = await conversation();
  const kept = await app.put("/api/conversations/c1", { messages });
  expect((await kept.json()).messages[1]).toMatchObject({ variant_count: 2, active_variant: 0 });
});

test("continues a reply, and sends only the new text unless the client asks for all", async () => {
  await gather(await ask(app, 1));
  llm.pieces = [", wor", "ld"];
  const all = await gather(await ask(app, 1, { action: "continue" }));
  expect(all.text).toBe(", world");
  expect(await savedMessage(app, "a1")).toMatchObject({
    content: "Hello, world",
    status: "complete",
    variant_count: 1,
  });
  expect((await gather(await follow("a1"))).text).toBe("Hello, world");
  expect((await gather(await follow("a1", all.frames[1]!.id))).text).toBe("ld");
});

test("ignores cursors of an earlier run or from before an edit", async () => {
  const first = await gather(await ask(app, 1));
  llm.pieces = ["Another text"];
  await gather(await ask(app, 1, { action: "regenerate" }));
  expect((await gather(await follow("a1", first.frames.at(-3)!.id))).text).toBe("Another text");
  await app.patch("/api/conversations/c1/messages/a1", { content: "Edited" });
  expect((await gather(await follow("a1", "x.1.3.0"))).text).toBe("Edited");
  for (const junk of ["", "1", "a.b.c.d", "x".repeat(100)]) {
    expect((await gather(await follow("a1", junk))).text).toBe("Edited");
  }
});

test.each([
  ["regenerate", "u1", 400],
  ["continue", "none", 404],
  ["regenerate", "none", 404],
])("rejects %s of %s", async (action, mid, status) => {
  await gather(await ask(app, 1));
  expect((await ask(app, 1, { action, assistant_message_id: mid })).status).toBe(status);
});

test(
  "keeps the running reply when another page saves, and stops it if its message is missing",
  { tags: ["U07"] },
  async () => {
    llm.switches.manual = "on";
    const response = await ask(app, 1);
    const call = await llm.nextCall();
    await call.emit("Hel");
    await gather(response, 2);
    const { messages } = await conversation();
    const edited = [{ ...messages[0], content: "edited" }, { ...messages[1], content: "overwritten" }];
    expect((await app.put("/api/conversations/c1", { messages: edited, title: "T" })).status).toBe(200);
    expect((await app.patch("/api/conversations/c1/messages/a1", { content: "x" })).status).toBe(409);
    expect((await app.delete("/api/conversations/c1/messages/a1")).status).toBe(409);
    expect((await app.patch("/api/conversations/c1/messages/u1", { content: "edited twice" })).status).toBe(200);
    await call.emit("lo");
    await call.finish();
    await until(async () => (await savedMessage(app, "a1"))?.status === "complete", "the reply was saved");
    expect(await conversation()).toMatchObject({
      title: "T",
      messages: [{ content: "edited twice" }, { content: "Hello" }],
    });

    const next = await ask(app, 2);
    const second = await llm.nextCall();
    await second.emit("gone");
    await gather(next, 2);
    expect((await app.put("/api/conversations/c1", { messages: [] })).status).toBe(200);
    await second.over;
    expect((await conversation()).messages).toEqual([]);
  },
);

test("aborts the call when its conversation is deleted, and saves nothing later", { tags: ["U07"] }, async () => {
  llm.switches.manual = "on";
  const response = await ask(app, 1);
  const call = await llm.nextCall();
  await call.emit("Hel");
  await gather(response, 2);
  expect((await app.delete("/api/conversations/c1")).status).toBe(204);
  await call.over;
  expect((await app.get("/api/conversations/c1")).status).toBe(404);
  expect((await app.get("/api/chat/replies/a1")).status).toBe(404);
  await app.restart();
  expect(await (await app.get("/api/conversations")).json()).toEqual([]);
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/replies`))).toEqual([]);
});

test("doesn't stop the running reply for a stale save or delete, but for a current one", {
  tags: ["U07"],
}, async () => {
  llm.switches.manual = "on";
  const checked = (revision: number) => ({ headers: { "If-Match": `"${revision}"` } });
  const response = await ask(app, 1);
  const call = await llm.nextCall();
  await call.emit("Hel");
  await gather(response, 2);
  const { revision, messages } = await conversation();
  const withoutReply = { messages: [messages[0]] };
  expect((await app.put("/api/conversations/c1", withoutReply, checked(revision - 1))).status).toBe(412);
  expect((await app.delete("/api/conversations/c1", checked(revision - 1))).status).toBe(412);
  await call.emit("lo");
  await until(async () => (await savedMessage(app, "a1"))?.content === "Hello", "the reply runs on");
  expect((await app.put("/api/conversations/c1", withoutReply, checked(revision))).status).toBe(200);
  await call.over;
  expect((await conversation()).messages).toHaveLength(1);

  const next = await ask(app, 2);
  const second = await llm.nextCall();
  await second.emit("gone");
  await gather(next, 2);
  expect((await app.delete("/api/conversations/c1", checked((await conversation()).revision))).status).toBe(204);
  await second.over;
  expect((await app.get("/api/conversations/c1")).status).toBe(404);
});

test("saves the partial reply once as interrupted when the server stops", { tags: ["U06"] }, async () => {
  llm.switches.manual = "on";
  const response = await ask(app, 1);
  const call = await llm.nextCall();
  await call.emit("Hel");
  const following = gather(response);
  await until(async () => (await savedMessage(app, "a1"))?.content === "Hel", "the text came");
  await app.restart();
  expect(await following).toMatchObject({ text: "Hel", error: { code: "interrupted" } });
  expect(await savedMessage(app, "a1")).toMatchObject({
    content: "Hel",
    status: "interrupted",
    error: { code: "interrupted" },
  });
  expect(await gather(await follow("a1"))).toMatchObject({ text: "Hel", error: { code: "interrupted" } });
});

test("stores nothing without a conversation, and answers with an object or a stream", async () => {
  const messages = [{ role: "user", content: "Hi" }];
  const single = await (await app.post("/api/chat", { messages })).json();
  expect(single).toMatchObject({
    object: "chat.completion",
    choices: [{ message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  });
  const all = await gather(await app.post("/api/chat", { messages, stream: true }));
  expect(all).toMatchObject({ text: "Hello", finish: "stop", isDone: true });
  expect(all.frames.every(({ id }) => id === undefined)).toBe(true);
  expect(await (await app.get("/api/conversations")).json()).toEqual([]);
});

test("returns the whole stored reply as one object with stream: false", async () => {
  const single = await (await ask(app, 1, { stream: false })).json();
  expect(single).toMatchObject({
    id: "a1",
    object: "chat.completion",
    choices: [{ message: { content: "Hello" }, finish_reason: "stop" }],
  });
  expect(await savedMessage(app, "a1")).toMatchObject({ content: "Hello", status: "complete" });
});

test("ends the upstream call when a stateless client disconnects, before and after the first token", {
  tags: ["U06"],
}, async () => {
  llm.switches.manual = "on";
  const messages = [{ role: "user", content: "Hi" }];
  const response = await app.post("/api/chat", { messages, stream: true });
  const call = await llm.nextCall();
  await call.emit("a");
  await gather(response, 2);
  await call.over;
  expect(llm.abandoned.length).toBe(1);

  llm.switches.manual = "off";
  llm.switches.delay_headers = 20_000;
  const leaving = new AbortController();
  const asked = app.post("/api/chat", { messages }, { signal: leaving.signal });
  asked.catch(() => {});
  await until(() => llm.chats.length === 2, "the model was asked");
  leaving.abort();
  await until(() => llm.abandoned.length === 2, "the model was let go");
  await until(() => app.logLines.some((line) => line.includes("client_closed")), "a line of the log");
  expect(app.logLines.filter((line) => line.includes("defect"))).toEqual([]);
});

test(`${ROUNDS} clients that leave a stored reply, and as many that leave an unstored one, leave nothing behind`, {
  tags: ["U06"],
  timeout: 300_000,
}, async () => {
  llm.switches.manual = "on";
  const response = await ask(app, 1);
  const call = await llm.nextCall();
  await call.emit("a");
  await gather(response, 2);
  const messages = [{ role: "user", content: "Hi" }];
  const round = async () => {
    await Promise.all(Array.from({ length: PARALLEL }, async () => await gather(await follow("a1"), 2)));
    const own = await Promise.all(
      Array.from({ length: PARALLEL }, () => app.post("/api/chat", { messages, stream: true })),
    );
    const calls = await Promise.all(own.map(() => llm.nextCall()));
    for (const each of calls) await each.emit("x");
    await Promise.all(own.map((each) => gather(each, 2)));
    // Each call of the model ends with its client.
    await Promise.all(calls.map(({ over }) => over));
    llm.requests.length = 0;
    // A disconnected client is removed with the next text of the reply.
    await call.emit(".");
    app.logLines.length = 0;
  };
  using listeners = countListeners();
  for (let warmUp = 0; warmUp < 10; warmUp++) await round();
  const before = await measured(listeners);
  for (let rounds = 0; rounds < ROUNDS; rounds += PARALLEL) await round();
  const after = await measured(listeners);
  expect(after.descriptors - before.descriptors).toBeLessThan(PARALLEL * 2);
  expect(after.listeners - before.listeners).toBeLessThan(PARALLEL);
  expect(after.heapBytes - before.heapBytes).toBeLessThan(ROUNDS * 4 * 1024);
  await call.emit("b");
  await call.finish();
  await until(async () => (await savedMessage(app, "a1"))?.status === "complete", "the reply was saved");
  const words = ".".repeat(ROUNDS / PARALLEL + 10);
  expect(await gather(await follow("a1"))).toMatchObject({ text: `a${words}b`, isDone: true });
  expect((await (await app.get("/api/chat/replies")).json()).length).toBe(0);
});

test("delivers ten thousand tokens at full speed, with linear wire size", async () => {
  const measure = async (n: number, words: number) => {
    llm.pieces = Array.from({ length: words }, (_, i) => ` token${i % 10}`);
    const response = await ask(app, n);
    const bytes = new Uint8Array(await response.arrayBuffer());
    const all = await gather(new Response(bytes));
    expect(all.text).toBe(llm.pieces.join(""));
    expect(await savedMessage(app, `a${n}`)).toMatchObject({ content: all.text, status: "complete" });
    return bytes.length;
  };
  const [small, large] = [await measure(1, 1_000), await measure(2, 10_000)];
  expect(large / small).toBeGreaterThan(5);
  expect(large / small).toBeLessThan(11.5);
});

test("stores and sends any text of the model unchanged", { tags: ["U08"] }, async () => {
  llm.pieces = [
    "<|im_end|>\nUser: ",
    "a\u0000b",
    "\ud83d",
    "\ude00",
    "\ud800",
    "data: [DONE]\n\nevent: error\n\n",
    "id: 9.9.9\r\n",
    // A line of 10 MB.
    ...Array.from({ length: 10 }, () => "z".repeat(1_000_000)),
  ];
  const all = await gather(await ask(app, 1));
  const text = llm.pieces.join("");
  expect(all.isDone).toBe(true);
  // Compared as a whole: a difference of 10 MB is not worth printing.
  expect([all.text === text, (await savedMessage(app, "a1"))?.content === text]).toEqual([true, true]);
});

test("returns an error without calling the model if the message can't be stored, and leaves no journal", async () => {
  const db = openStoredDatabase(app.dataDir);
  db.exec("CREATE TRIGGER refusing BEFORE INSERT ON reply BEGIN SELECT RAISE(FAIL, 'refused by a test'); END");
  const refused = await ask(app, 1);
  expect(refused.status).toBe(500);
  await until(async () => (await Array.fromAsync(Deno.readDir(`${app.dataDir}/replies`))).length === 0, "no journal");
  expect((await app.get("/api/conversations/c1")).status).toBe(404);
  expect((await (await app.get("/api/chat/replies")).json()).length).toBe(0);
  db.exec("DROP TRIGGER refusing");
  db.close();
  expect((await gather(await ask(app, 1))).isDone).toBe(true);
});

test("a chat is unread after a reply that no client followed to its end, until somebody reads it", async () => {
  const isUnread = async () => {
    const { items } = await (await app.get("/api/conversations?view=summary")).json();
    return items[0].unread;
  };
  llm.switches.manual = "on";
  const asked = await ask(app, 1);
  const first = await llm.nextCall();
  await first.emit("Seen");
  await first.finish();
  await gather(asked);
  expect(await isUnread()).toBe(false);

  const left = await ask(app, 2);
  const second = await llm.nextCall();
  await left.body!.cancel();
  const { replies } = await app.services.chat();
  await until(
    () => replies.listRunning().every(({ isFollowed }) => !isFollowed),
    "the server knows that nobody follows",
  );
  await second.emit("Unseen");
  await second.finish();
  await until(async () => (await savedMessage(app, "a2"))?.status === "complete", "the reply is saved");
  expect(await isUnread()).toBe(true);
  const seen: unknown[] = [];
  const { revision } = await (await app.get("/api/conversations/c1")).json();
  app.services.events.subscribe((event) => seen.push(event));
  for (let n = 0; n < 2; n++) expect((await app.post("/api/conversations/c1/read")).status).toBe(204);
  expect(await isUnread()).toBe(false);
  // Told once, and without a new revision.
  expect(seen).toEqual([{ kind: "conversation", id: "c1", revision }]);
  expect((await app.post("/api/conversations/nowhere/read")).status).toBe(404);

  // A failure that the client is told of is no news.
  const refused = ask(app, 3);
  const third = await llm.nextCall();
  await third.fail("event_error");
  await gather(await refused);
  await until(async () => (await savedMessage(app, "a3"))?.status === "failed", "the failure is saved");
  expect(await isUnread()).toBe(false);
});

test("publishes changes and replies as events without content", async () => {
  const seen: unknown[] = [];
  app.services.events.subscribe((event) => seen.push(event));
  await gather(await ask(app, 1));
  await until(() => seen.some((event) => (event as { kind: string }).kind === "reply_ended"), "the end was told");
  expect(seen).toEqual([
    { kind: "conversation", id: "c1", revision: 1 },
    { kind: "reply_started", id: "c1" },
    { kind: "conversation", id: "c1", revision: 2 },
    { kind: "reply_ended", id: "c1" },
  ]);
});

test.each([
  ["no messages", { messages: [] }],
  ["a message without a role", { messages: [{ content: "x" }] }],
  ["a temperature that is no number", { messages: [{ role: "user", content: "x" }], temperature: "hot" }],
  ["a bad id", { conversation_id: "../x", messages: [{ role: "user", content: "x" }] }],
  ["regenerate without naming the message", {
    conversation_id: "c1",
    action: "regenerate",
    messages: [{ role: "user", content: "x" }],
  }],
  ["an unknown action", { action: "dance", messages: [{ role: "user", content: "x" }] }],
])("rejects %s without calling the model", async (_, body) => {
  const response = await app.post("/api/chat", body);
  expect(response.status).toBe(400);
  expect((await response.json()).error).toMatchObject({ code: "invalid_request", issues: [expect.anything()] });
  expect(llm.chats).toEqual([]);
});
