/** Messages that wait for the end of a reply: the server sends them, whoever looks. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, beginReply, gather, until, useModel } from "../helpers/app/chat_client.ts";
import { type FakeLlm, type ManualAnswer, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { makeRgbaPng } from "../helpers/files/png_files.ts";
import { range, readConversation, say } from "../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  [app, llm] = await Promise.all([openTestApp(), openFakeLlm()]);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const C1 = "/api/conversations/c1";
const QUEUE = `${C1}/queue`;

interface Queued {
  n: number;
  message: { id: string; content: unknown };
  assistant_message_id: string;
}

async function add(content: unknown, fields: Record<string, unknown> = {}, ids = {}): Promise<Queued> {
  const answer = await app.post(QUEUE, { message: { content, ...ids }, ...fields });
  expect(answer.status).toBe(201);
  return await answer.json();
}

const list = async (): Promise<Queued[]> => (await (await app.get(QUEUE)).json()).items;
const texts = async () => (await list()).map(({ message }) => message.content);
const failure = async (answer: Response) => [answer.status, (await answer.json()).error.code];
const stored = async () => (await readConversation(app)).messages.map(({ content }) => content);

/** The last message of a call, as the model got it. */
const asked = ({ request }: ManualAnswer) =>
  (request.json!.messages as { role: string; content: unknown }[]).findLast(({ role }) => role === "user")!.content;

/** Ends a call, and returns the next one. */
async function next(call: ManualAnswer, text = "fine"): Promise<ManualAnswer> {
  await call.emit(text);
  await call.finish();
  return await llm.nextCall();
}

test("queued messages are sent in order without a client, each after a reply that ended well", async () => {
  const { call } = await beginReply(app, llm, "one");
  const first = await add("And two?");
  await add("And three?", { time_zone: "Europe/Berlin" });
  expect(await texts()).toEqual(["And two?", "And three?"]);
  const second = await next(call);
  expect(asked(second)).toBe("And two?");
  expect(await texts()).toEqual(["And three?"]);
  const third = await next(second);
  expect(asked(third)).toBe("And three?");
  expect(await list()).toEqual([]);
  await third.emit("done");
  await third.finish();
  await until(async () => (await readConversation(app)).messages.at(-1)?.status === "complete", "all is answered");
  const { messages } = await readConversation(app);
  expect(messages.map(({ content }) => content)).toEqual(
    ["question 1", "onefine", "And two?", "fine", "And three?", "done"],
  );
  expect(messages.slice(2, 4).map(({ id }) => id)).toEqual([first.message.id, first.assistant_message_id]);
  expect(llm.chats).toHaveLength(3);
});

test("after Stop, a cut or a failure they stay until a reply ends well, or one is sent by hand", async () => {
  const { call } = await beginReply(app, llm, "one");
  await add("Waits");
  const idle = async () => {
    await until(async () => (await (await app.get("/api/chat/replies")).json()).length === 0, "the reply has ended");
    expect(await texts()).toEqual(["Waits"]);
  };
  expect((await app.post("/api/chat/replies/a1/stop")).status).toBe(202);
  await call.over;
  await idle();
  for (const end of ["cut", "length", "empty"]) {
    const answer = ask(app, 1, { action: "regenerate", context: "server", messages: [] });
    const again = await llm.nextCall();
    if (end !== "empty") await again.emit("some");
    if (end === "cut") await again.fail();
    else await again.finish(end === "length" ? "length" : "stop");
    await gather(await answer);
    await idle();
  }
  const [item] = await list();
  const byHand = ask(app, 9, {
    user_message_id: item!.message.id,
    assistant_message_id: item!.assistant_message_id,
    context: "server",
    messages: [{ role: "user", content: "Waits" }],
  });
  const sent = await llm.nextCall();
  expect(asked(sent)).toBe("Waits");
  expect(await list()).toEqual([]);
  await sent.emit("well");
  await sent.finish();
  expect(await gather(await byHand)).toMatchObject({ text: "well" });
});

test("two clients that send the same queued message by hand get one reply", async () => {
  const { call } = await beginReply(app, llm, "one");
  const { message, assistant_message_id } = await add("Once");
  await app.post("/api/chat/replies/a1/stop");
  await call.over;
  const send = () =>
    ask(app, 9, {
      user_message_id: message.id,
      assistant_message_id,
      context: "server",
      messages: [{ role: "user", content: "Once" }],
    });
  const both = [send(), send()];
  const sent = await llm.nextCall();
  await sent.emit("here");
  await sent.finish();
  for (const answer of await Promise.all(both)) expect(await gather(answer)).toMatchObject({ text: "here" });
  expect((await stored()).filter((content) => content === "Once")).toHaveLength(1);
  expect(llm.chats).toHaveLength(2);
});

test("one that is queued after the reply has ended well is sent at once, and none twice", async () => {
  await useModel(app, llm);
  await gather(await ask(app, 1));
  llm.switches.manual = "on";
  const item = await add("Late", { assistant_message_id: "a2" }, { id: "u2" });
  const call = await llm.nextCall();
  expect(asked(call)).toBe("Late");
  expect(item).toMatchObject({ n: 1, message: { id: "u2", role: "user" }, assistant_message_id: "a2" });
  expect(await list()).toEqual([]);
  // Repeated after an answer that didn't arrive.
  const again = () => app.post(QUEUE, { message: { id: "u2", content: "Late" }, assistant_message_id: "a2" });
  expect(await failure(await again())).toEqual([409, "conflict"]);
  await add("Next", {}, { id: "u3" });
  expect((await add("Next", {}, { id: "u3" })).n).toBe(2);
  expect(await texts()).toEqual(["Next"]);
  await call.finish();
});

test("at most ten wait; they're edited, moved and removed, and what isn't there is said", async () => {
  const { call } = await beginReply(app, llm, "one");
  for (const i of range(10)) await add(`m${i}`);
  expect(await failure(await app.post(QUEUE, { message: { content: "m10" } }))).toEqual([422, "unprocessable"]);
  const edited = await app.patch(`${QUEUE}/2`, { message: { content: "edited" }, names: { a: "b" } });
  expect(await edited.json()).toMatchObject({ n: 2, message: { content: "edited" }, names: { a: "b" } });
  expect((await app.patch(`${QUEUE}/10`, { position: 0 })).status).toBe(200);
  for (const n of [3, 4, 5, 6, 7, 8, 9]) expect((await app.delete(`${QUEUE}/${n}`)).status).toBe(204);
  expect(await texts()).toEqual(["m9", "m0", "edited"]);
  expect(await failure(await app.delete(`${QUEUE}/3`))).toEqual([404, "not_found"]);
  expect(await failure(await app.patch(`${QUEUE}/3`, { position: 1 }))).toEqual([404, "not_found"]);
  // Its number isn't given again.
  await app.delete(`${QUEUE}/10`);
  expect((await add("new")).n).toBe(11);
  expect(await failure(await app.get("/api/conversations/none/queue"))).toEqual([404, "not_found"]);
  const nowhere = await app.post("/api/conversations/none/queue", { message: { content: "x" } });
  expect(await failure(nowhere)).toEqual([404, "not_found"]);
  for (const message of [{ content: "" }, {}, { role: "assistant", content: "x" }]) {
    expect(await failure(await app.post(QUEUE, { message }))).toEqual([400, "invalid_request"]);
  }
  const long = "x".repeat(2_100_000);
  await add(long);
  expect(await failure(await app.post(QUEUE, { message: { content: long } }))).toEqual([413, "too_large"]);
  await call.finish();
});

test("they outlive a restart, are sealed, and go with their conversation", async () => {
  await app.put(C1, { messages: [say("m0")] });
  await add("needleQueued", { names: { x: "needleName" } });
  const before = await list();
  await app.restart();
  expect(await list()).toEqual(before);
  const recent = await (await app.get(`${C1}?view=recent`)).json();
  expect(recent.queue).toEqual({ version: 1, items: before });
  for (const name of ["app.db", "app.db-wal"]) {
    const bytes = await Deno.readFile(`${app.dataDir}/${name}`).catch(() => new Uint8Array());
    expect(new TextDecoder("latin1").decode(bytes)).not.toContain("needle");
  }
  await app.delete(C1);
  expect(await failure(await app.post(QUEUE, { message: { content: "x" } }))).toEqual([409, "in_trash"]);
  await app.post("/api/trash/conversation-c1/restore");
  expect(await list()).toEqual(before);
  await app.delete(C1);
  await app.delete("/api/trash");
  await app.put(C1, { messages: [say("m0")] });
  expect(await list()).toEqual([]);
});

test("images of a queued message are stored and kept, and sent with it", async () => {
  const { call } = await beginReply(app, llm, "one");
  const png = makeRgbaPng(2, 2, () => [1, 2, 3, 255]);
  const url = `data:image/png;base64,${btoa(String.fromCharCode(...png))}`;
  const parts = [{ type: "text", text: "And this?" }, { type: "image_url", image_url: { url } }];
  const { message } = await add(parts);
  expect(message.content).toMatchObject([{}, { image_url: { url: expect.stringMatching(/^\/api\/attachments\//) } }]);
  const { references } = await app.services.conversations();
  await references.sweep();
  expect((await app.services.attachments()).listReferringConversations()).toContain("c1");
  const sent = await next(call);
  expect(asked(sent)).toMatchObject([{ text: "And this?" }, {
    image_url: { url: expect.stringMatching(/^data:image/) },
  }]);
  await sent.finish();
});

test("in a group, the server lets all speakers answer a queued message before it sends the next one", async () => {
  await useModel(app, llm);
  llm.switches.manual = "on";
  for (const name of ["Ada", "Ben"]) await app.put(`/api/characters/${name.toLowerCase()}`, { card: { name } });
  const participants = [{ character_id: "ada" }, { character_id: "ben" }];
  await app.put(C1, { participants, reply_order: "list", messages: [] });
  const speaking = async () => (await readConversation(app)).messages.at(-1)!.character_id;
  // A client lets Ben speak after Ada.
  const group = { context: "server", next_speakers: ["ben"] };
  void ask(app, 1, { ...group, character_id: "ada" }).then(gather);
  const ada = await llm.nextCall();
  await add("Thanks");
  await add("Bye");
  await ada.emit("Ada");
  await ada.finish();
  await until(async () => (await (await app.get("/api/chat/replies")).json()).length === 0, "Ada has spoken");
  await add("Later");
  expect(await texts()).toEqual(["Thanks", "Bye", "Later"]);
  void app.post("/api/chat", { conversation_id: "c1", context: "server", messages: [], character_id: "ben" })
    .then(gather);
  const thanks = await next(await llm.nextCall(), "Ben");
  expect(asked(thanks)).toContain("Thanks");
  expect(await speaking()).toBe("ada");
  const second = await next(thanks, "Welcome");
  expect(await speaking()).toBe("ben");
  expect(await texts()).toEqual(["Bye", "Later"]);
  const bye = await next(second, "You too");
  expect(asked(bye)).toContain("Bye");
  await bye.emit("See you");
  // Stop ends the turn.
  const { id } = (await readConversation(app)).messages.at(-1)!;
  await app.post(`/api/chat/replies/${id}/stop`);
  await bye.over;
  expect(await texts()).toEqual(["Later"]);
});

test("publishes the queue's version with each change", async () => {
  const told: unknown[] = [];
  await app.put(C1, { messages: [say("m0")] });
  app.services.events.subscribe((event) => void (event.kind === "queue" && told.push(event)));
  await add("x");
  await app.patch(`${QUEUE}/1`, { position: 0 });
  await app.delete(`${QUEUE}/1`);
  expect(told).toEqual([1, 2, 3].map((revision) => ({ kind: "queue", id: "c1", revision })));
});
