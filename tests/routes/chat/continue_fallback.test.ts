import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, gather, savedMessage, useModel } from "../../helpers/app/chat_client.ts";
import { openFakeAnthropic } from "../../helpers/fakes/llm/fake_llm_anthropic.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

type Fake = Awaited<ReturnType<typeof openFakeAnthropic>>;
let app: TestApp;
let llm: Fake;
beforeEach(async () => {
  app = await openTestApp();
  llm = await openFakeAnthropic({ fail: "prefill" });
  await useModel(app, llm, { kind: "anthropic", model: "claude-fake" });
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
});

const continued = { action: "continue", context: "server", messages: [], user_message_id: undefined };
const calls = () => llm.requests.filter(({ path }) => path === "/v1/messages");
const rolesSent = () =>
  calls().map(({ json }) => (json!.messages as { role: string }[]).map(({ role }) => role).join(" "));
const lastText = () => JSON.stringify((calls().at(-1)!.json!.messages as unknown[]).at(-1));

test("a model that rejects a partial reply is asked in words, later without a first attempt", async () => {
  await gather(await ask(app, 1));
  expect(await gather(await ask(app, 1, continued))).toMatchObject({ isDone: true });
  const message = await savedMessage(app, "a1");
  expect(message).toMatchObject({ status: "complete" });
  expect(message!.content).toMatch(/^Hello\s*Hello$/);
  await gather(await ask(app, 1, continued));
  expect(rolesSent()).toEqual(["user", "user assistant", "user assistant user", "user assistant user"]);
  expect(lastText()).toMatch(/Go on with the last message/);
  const connection = (await (await app.get("/api/connections")).json()).find((one: { id: string }) =>
    one.id === "double"
  );
  expect(connection.refused).toMatchObject([{ model: "claude-fake", field: "prefill", status: 400 }]);
});

test("messages that the client assembled are sent unchanged", async () => {
  const messages = [{ role: "user", content: "hi" }, { role: "assistant", content: "Hel" }];
  const response = await app.post("/api/chat", { messages, stream: false });
  expect(response.status).toBe(502);
  expect((await response.json()).error.message).toContain("prefill");
  expect(calls()).toHaveLength(1);
});
