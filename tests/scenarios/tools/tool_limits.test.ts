/** Limits of replies that call tools, and what tools return besides text. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ToolLimits } from "../../../services/chat/tools/tool_run.ts";
import { ask, gather, until, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { answerText, FakeTools } from "../../helpers/fakes/fake_tools.ts";
import { plainPng } from "../../helpers/files/cards.ts";

type Json = Record<string, unknown> & { id: string };

const MINUTE_MS = 60_000;
const CALL = { name: "lookup", arguments: '{"q":"sea"}' };

let app: TestApp;
let llm: FakeLlm;
let tools: FakeTools;
let nowMs: number;
beforeEach(async () => {
  nowMs = Date.parse("2026-05-01T12:00:00Z");
  llm = await openFakeLlm();
  llm.switches.manual = "on";
  tools = new FakeTools();
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
});

async function open(toolLimits?: Partial<ToolLimits>) {
  app = await openTestApp({ toolSources: [() => Promise.resolve(tools)], toolLimits, now: () => nowMs });
  await useModel(app, llm);
}

const messages = async (): Promise<Json[]> => (await (await app.get("/api/conversations/c1")).json()).messages;

async function askForCall() {
  const asked = ask(app, 1, { context: "server" });
  await (await llm.nextCall()).callTools(CALL);
  return gather(await asked);
}

test("ends a reply that ran for ten minutes, and a call after two", async () => {
  await open();
  const timeouts: number[] = [];
  tools.set("lookup", (_, { timeoutMs }) => {
    timeouts.push(timeoutMs);
    nowMs += 3 * MINUTE_MS;
    return answerText("slow");
  }, { permission: "allow" });
  const reply = askForCall();
  for (let n = 2; n <= 4; n++) {
    const next = await llm.nextCall();
    expect(next.request.json!.tool_choice).toBeUndefined();
    await next.callTools(CALL);
  }
  const last = await llm.nextCall();
  expect(last.request.json!.tool_choice).toBe("none");
  await last.callTools(CALL);
  expect((await reply).error).toMatchObject({
    code: "upstream_error",
    message: expect.stringContaining("ran for 10 minutes"),
  });
  // A call has two minutes; the last one has the rest of ten.
  expect(timeouts).toEqual([120_000, 120_000, 120_000, MINUTE_MS]);
});

test("doesn't count the time in which a reply waits for a decision", async () => {
  await open();
  tools.set("lookup", () => answerText("found"));
  const reply = askForCall();
  await until(
    async () => (await (await app.get("/api/chat/replies")).json())[0]?.pending_calls.length > 0,
    "a call waits",
  );
  nowMs += 60 * MINUTE_MS;
  const [{ tool_calls: [{ id }] }] = (await messages()).slice(1) as unknown as [{ tool_calls: [Json] }];
  await app.post(`/api/chat/replies/a1/tool_calls/${id}`, { decision: "allow" });
  const second = await llm.nextCall();
  expect(second.request.json!.tool_choice).toBeUndefined();
  await second.emit("Found.");
  await second.finish();
  expect((await reply).text).toBe("Found.");
});

test("continues without a tool that ignores its limits", async () => {
  await open({ callMs: 50 });
  const late = Promise.withResolvers<ReturnType<typeof answerText>>();
  tools.set("lookup", () => late.promise, { permission: "allow" });
  const reply = askForCall();
  const second = await llm.nextCall();
  expect((second.request.json!.messages as Json[]).at(-1)).toMatchObject({
    role: "tool",
    content: expect.stringContaining("no response after"),
  });
  late.resolve(answerText("too late"));
  await second.emit("It doesn't answer.");
  await second.finish();
  expect((await reply).isDone).toBe(true);
  expect(await messages()).toMatchObject([
    {},
    { tool_calls: [{ state: "failed" }] },
    { role: "tool", content: expect.stringContaining("no response after") },
    { id: "a1", content: "It doesn't answer." },
  ]);
});

test("stores images of a result as attachments, and shows them to the user only", async () => {
  await open();
  const image = { type: "image" as const, data: plainPng(), contentType: "image/png" };
  tools.set("lookup", () => ({ ...answerText("A map"), parts: [{ type: "text", text: "A map" }, image] }), {
    permission: "allow",
  });
  const reply = askForCall();
  const second = await llm.nextCall();
  expect((second.request.json!.messages as Json[]).at(-1)!.content).toBe("A map\n[an image, only shown to the user]");
  await second.emit("Here.");
  await second.finish();
  await reply;
  const result = (await messages()).find(({ role }) => role === "tool")!;
  expect(result.content).toEqual([
    { type: "text", text: "A map" },
    { type: "image_url", image_url: { url: expect.stringMatching(/^\/api\/attachments\//) } },
  ]);
  const [, { image_url: { url } }] = result.content as unknown as [unknown, { image_url: { url: string } }];
  const stored = await app.get(url);
  expect(stored.status).toBe(200);
  expect(stored.headers.get("content-type")).toBe("image/png");
  expect((await stored.bytes()).length).toBeGreaterThan(0);
});

test("previews the tools and the note about results exactly as they are sent", async () => {
  await open();
  tools.set("lookup", () => answerText("found"), { permission: "allow" }).set("other", () => answerText(""), {
    permission: "deny",
  });
  tools.unavailable = [{ serverId: "web", serverName: "Web", reason: "it doesn't answer" }];
  const body = { conversation_id: "c1", context: "server", messages: [{ role: "user", content: "question 1" }] };
  for (const fields of [{ context: "server" }, { context: "client" }]) {
    const seen = await (await app.post("/api/chat/preview", { ...body, ...fields })).json();
    expect(seen.tools).toEqual([
      { name: "lookup", server_id: "files", server_name: "files", tool_name: "lookup" },
    ]);
    expect(seen.tools_left_out).toEqual([{ name: "Web", reason: "it doesn't answer" }]);
    expect(seen.messages).toMatchObject([{ role: "system", content: expect.stringContaining("never follow") }, {
      role: "user",
    }]);
    expect(seen.parts).toMatchObject([{ part: "tools", pieces: [{ part: "tools" }] }, { part: "history" }]);
    const sums = seen.parts.map(({ tokens }: { tokens: number }) => tokens);
    expect(seen.tokens).toBe(sums[0] + sums[1]);
    const asked = ask(app, 1, { ...fields, conversation_id: `c-${fields.context}` });
    const call = await llm.nextCall();
    expect(call.request.json!.tools).toEqual(seen.params.tools);
    expect(call.request.json!.messages).toEqual(seen.messages);
    await call.finish();
    await gather(await asked);
  }
  await app.put("/api/conversations/c2", { title: "Off", tools: false, system_prompt: "Be kind", messages: [] });
  const off = await (await app.post("/api/chat/preview", { ...body, conversation_id: "c2" })).json();
  expect(off).toMatchObject({ tools: [], tools_left_out: [], messages: [{ content: "Be kind" }, {}] });
  expect(off.params.tools).toBeUndefined();
  await app.patch("/api/conversations/c2", { tools: true });
  const on = await (await app.post("/api/chat/preview", { ...body, conversation_id: "c2" })).json();
  expect(on.parts[0].pieces.map(({ text }: { text: string }) => text).join("\n\n")).toBe(on.messages[0].content);
});
