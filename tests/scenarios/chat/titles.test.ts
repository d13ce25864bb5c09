import { afterEach, beforeEach, expect, test } from "vitest";
import type { ChangeEvent } from "../../../services/events/event_hub.ts";
import { ask, gather, until, useModel } from "../../helpers/app/chat_client.ts";
import {
  type FakeLlm,
  type ManualAnswer,
  openFakeLlm,
  type RecordedRequest,
} from "../../helpers/fakes/llm/fake_llm.ts";
import { readConversation } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp({ titleIdleMs: 10, config: { logLevel: "debug" } });
  llm = await openFakeLlm();
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const isForTitle = ({ json }: RecordedRequest) => json!.stream !== true;
const titleCalls = () => llm.chats.filter(isForTitle);
const title = async (id = "c1") => (await readConversation(app, id)).title;
const messagesOf = ({ json }: RecordedRequest) => json!.messages as { role: string; content: string }[];

/** Completes the first reply, and returns the request for a title that follows. */
async function replyThenNaming(): Promise<ManualAnswer> {
  llm.switches.manual = "on";
  const asked = ask(app, 1);
  const call = await llm.nextCall();
  await call.emit("Hello");
  await call.finish();
  await gather(await asked);
  const naming = await llm.nextCall();
  expect(isForTitle(naming.request)).toBe(true);
  return naming;
}

test("titles a conversation when idle, with the same prompt and one instruction", async () => {
  const told: ChangeEvent[] = [];
  const naming = await replyThenNaming();
  const before = await readConversation(app);
  expect(before.title).toBe("question 1");
  app.services.events.subscribe((event) => void told.push(event));
  for (const piece of ["<think>Boats?</think>", '"Harbour ', 'at dusk"']) await naming.emit(piece);
  await naming.finish();
  llm.switches.manual = "off";
  await until(async () => await title() === "Harbour at dusk", "the title is made");
  const [reply, asked] = llm.chats;
  expect(messagesOf(asked!).slice(0, -1)).toEqual([...messagesOf(reply!), { role: "assistant", content: "Hello" }]);
  expect(messagesOf(asked!).at(-1)).toMatchObject({ role: "user" });
  expect(asked!.json).toMatchObject({ model: "fake-model", stream: false });
  const after = await readConversation(app);
  expect(after).toEqual({ ...before, title: "Harbour at dusk", revision: before.revision + 1 });
  expect(told).toContainEqual({ kind: "conversation", id: "c1", revision: after.revision });
  expect((await (await app.get("/api/conversations?view=summary")).json()).items).toMatchObject([{
    title: after.title,
  }]);

  await gather(await ask(app, 2));
  await gather(await ask(app, 3, { conversation_id: "c2" }));
  await until(() => titleCalls().length === 2, "the next conversation is named");
  expect(JSON.stringify(titleCalls()[1]!.json), "the first has its title").toContain("question 3");
});

test("cancels a title when a reply starts, and writes it afterwards", async () => {
  const naming = await replyThenNaming();
  const second = ask(app, 2);
  const busy = await llm.nextCall();
  await naming.over;
  expect(naming.request.closedEarly).toBe(true);
  await busy.emit("Two");
  const other = ask(app, 3, { conversation_id: "c2" });
  const otherReply = await llm.nextCall();
  await otherReply.emit("Three");
  await otherReply.finish();
  await gather(await other);
  expect(titleCalls(), "another reply still runs").toHaveLength(1);
  await busy.finish();
  await gather(await second);

  const names = [];
  for (let n = 0; n < 2; n++) {
    const call = await llm.nextCall();
    names.push(JSON.stringify(messagesOf(call.request)).includes("question 3") ? "Name of c2" : "Name of c1");
    await call.emit(names.at(-1)!);
    await call.finish();
  }
  await until(async () => await title("c2") === "Name of c2" && await title() === "Name of c1", "both are named");
  expect(names.sort()).toEqual(["Name of c1", "Name of c2"]);
});

test("never replaces a title that the user set, before, during or after generation", async () => {
  llm.switches.manual = "on";
  await app.put("/api/conversations/mine", { title: "Mine", messages: [] });
  const answer = async (n: number, id: string) => {
    const asked = ask(app, n, { conversation_id: id });
    const call = await llm.nextCall();
    await call.emit("Yes");
    await call.finish();
    await gather(await asked);
  };
  await answer(1, "mine");
  await answer(2, "c1");
  const naming = await llm.nextCall();
  expect(JSON.stringify(naming.request.json)).toContain("question 2");
  await app.patch("/api/conversations/c1", { title: "Chosen meanwhile" });
  await naming.emit("Too late");
  await naming.finish();
  await answer(3, "c1");
  await answer(4, "c2");
  const last = await llm.nextCall();
  expect(JSON.stringify(last.request.json)).toContain("question 4");
  await last.emit("Named");
  await last.finish();
  await until(async () => await title("c2") === "Named", "only that one is named");
  expect([await title("mine"), await title("c1")]).toEqual(["Mine", "Chosen meanwhile"]);
});

test.each<[string, (call: ManualAnswer) => Promise<void>]>([
  ["that refuses", (call) => call.fail("frame_object")],
  ["that closes the connection", (call) => call.fail("rst")],
  ["that only thinks", async (call) => {
    await call.emit("<think>and so on");
    await call.finish();
  }],
])("keeps the first words if a model %s, and stops asking", async (_, fail) => {
  llm.switches.manual = "on";
  const answer = async (n: number, id = "c1") => {
    const asked = ask(app, n, { conversation_id: id });
    const call = await llm.nextCall();
    expect(isForTitle(call.request)).toBe(false);
    await call.emit("Hello");
    await call.finish();
    expect(await gather(await asked)).toMatchObject({ text: "Hello", isDone: true });
  };
  for (const n of [1, 2]) {
    await answer(n);
    await fail(await llm.nextCall());
    // A reply that starts earlier would end the request, which is then sent again.
    const failures = () => app.logLines.filter((line) => line.includes("Couldn't write a title")).length;
    await until(() => failures() === n, "the server knows that it got no title");
  }
  await answer(3);
  await answer(4, "c2");
  const naming = await llm.nextCall();
  await naming.emit("Named");
  await naming.finish();
  await until(async () => await title("c2") === "Named", "another conversation is named");
  expect(titleCalls()).toHaveLength(3);
  expect(await title()).toBe("question 1");
  const problems = app.logLines.filter((line) => /"level":"(warn|error)"/.test(line));
  expect(problems.filter((line) => !line.includes("A call to a model failed"))).toEqual([]);
});

test("writes no title if they are off, for the demo, or for failed and stopped replies", async () => {
  await app.patch("/api/settings", { auto_title: false });
  await gather(await ask(app, 1));
  const { replies } = await app.services.chat();
  await until(() => replies.listRunning().length === 0, "the reply is settled, without a title");
  await app.patch("/api/settings", { auto_title: true });
  llm.switches.fail = "cut";
  await gather(await ask(app, 2, { conversation_id: "c2" }));
  llm.switches.fail = "none";
  await app.post("/api/connections/demo/activate");
  await gather(await ask(app, 3, { conversation_id: "c3" }));
  await app.post("/api/connections/double/activate");
  await gather(await ask(app, 4, { conversation_id: "c4" }));
  await until(async () => await title("c4") === "Hello", "the last one is named");
  expect(titleCalls()).toHaveLength(1);
});

test("cancels a running title when the server closes", { tags: ["L06"] }, async () => {
  const naming = await replyThenNaming();
  await app.restart();
  await naming.over;
  expect(naming.request.closedEarly).toBe(true);
  expect(await title()).toBe("question 1");
});
