import { afterEach, beforeEach, expect, test } from "vitest";
import { say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

const { signal } = new AbortController();
const inbox = async () => await (await app.get("/api/memories/proposals")).json();

async function call(args: Record<string, unknown>, conversationId: string) {
  const tools = await app.services.tools();
  const tool = (await tools.findTool({ serverId: "memory", name: "propose_memory" }, signal))!;
  const options = { signal, timeoutMs: 60_000, maxBytes: 1_000, conversationId, messageId: "a1" };
  const { parts, isError } = await tools.callTool(tool, args, options);
  return [isError, (parts[0] as { text: string }).text];
}

test("offers the tool while proposals are on, and a call only creates a proposal", async () => {
  const tools = await app.services.tools();
  const offered = async () => (await tools.listOffer(signal)).tools.map(({ name }) => name);
  expect(await offered()).not.toContain("propose_memory");
  await app.patch("/api/settings", { memory_proposals: true });
  expect(await offered()).toContain("propose_memory");
  await app.put("/api/characters/fox", { name: "Fox" });
  await app.put("/api/conversations/c1", { participants: [{ character_id: "fox" }], messages: [say("m0")] });
  await app.put("/api/conversations/quiet", { messages: [say("q0")], learn: false });

  expect(await call({ text: "Fox owes Sam a coin.", scope: "character" }, "c1")).toEqual([
    false,
    "Proposed. The user will decide.",
  ]);
  expect(await inbox()).toMatchObject([{
    text: "Fox owes Sam a coin.",
    scope: { kind: "character", id: "fox" },
    source: { conversation_id: "c1", message_id: "a1" },
  }]);
  expect(await (await app.get("/api/memories")).json()).toEqual([]);
  expect((await call({ text: "Fox owes Sam a coin" }, "c1"))[1]).toContain("already");
  expect(await call({ text: 7 }, "c1")).toMatchObject([true, expect.any(String)]);
  expect(await call({ text: "A secret." }, "quiet")).toMatchObject([true, expect.stringContaining("Nothing")]);
  expect(await inbox()).toHaveLength(1);
});

test("keeps a permission that the owner sets", async () => {
  await app.patch("/api/settings", { memory_proposals: true });
  const find = async () =>
    (await (await app.services.tools()).findTool({ serverId: "memory", name: "propose_memory" }, signal))!;
  const tool = await find();
  expect(tool.permission).toBe("allow");
  await (await app.services.tools()).setPermission(tool, "deny", signal);
  await app.restart();
  expect((await find()).permission).toBe("deny");
});
