import { afterEach, beforeEach, expect, test } from "vitest";
import type { ChangeEvent } from "../../../services/events/event_hub.ts";
import { ask, gather, until, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp();
  llm = await openFakeLlm();
  await useModel(app, llm);
  await app.put("/api/conversations/c1", { title: "Old", messages: [say("m0"), say("m1")] });
  await app.put("/api/conversations/c1", { title: "Tea", messages: [say("m0"), say("m1")] });
  await app.post("/api/conversations/c1/queue", { message: say("m8") });
  await app.put("/api/conversations/gone", { messages: [] });
  await app.delete("/api/conversations/gone");
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const C1 = "/api/conversations/c1";
const connection = { id: "double", kind: "openai", base_url: "http://127.0.0.1:9", api_key: "k" };
const trash = { kind: "trash", id: "trash" };
const conversation = (id: string, revision?: number) =>
  revision === undefined ? { kind: "conversation", id } : { kind: "conversation", id, revision };
const anyConversation = { kind: "conversation", id: expect.any(String), revision: 1 };
const c1 = conversation("c1", 3);

/** Each write, and all events about it. */
const CHANGES: [write: string, body: Record<string, unknown> | undefined, told: unknown[]][] = [
  ["POST /api/conversations", {}, [anyConversation]],
  [`PUT ${C1}`, { messages: [] }, [c1]],
  [`PUT ${C1}`, { messages: [], draft: "Dear", draft_version: 0 }, [c1, { kind: "draft", id: "c1", revision: 1 }]],
  [`PATCH ${C1}`, { title: "New" }, [c1]],
  [`PATCH ${C1}`, { title: "Tea" }, []],
  [`PATCH ${C1}`, { draft: "Dear" }, [{ kind: "draft", id: "c1", revision: 1 }]],
  [`DELETE ${C1}`, undefined, [conversation("c1"), trash]],
  [`PATCH ${C1}/draft`, { draft: "Dear" }, [{ kind: "draft", id: "c1", revision: 1 }]],
  [`POST ${C1}/messages`, { message: say("m9") }, [c1]],
  [`PATCH ${C1}/messages/m1`, { content: "New" }, [c1]],
  [`DELETE ${C1}/messages/m1`, undefined, [c1, trash]],
  [`POST ${C1}/queue`, { message: say("m9") }, [{ kind: "queue", id: "c1", revision: 2 }]],
  [`PATCH ${C1}/queue/1`, { message: say("m9") }, [{ kind: "queue", id: "c1", revision: 2 }]],
  [`DELETE ${C1}/queue/1`, undefined, [{ kind: "queue", id: "c1", revision: 2 }]],
  [`POST ${C1}/greeting`, { character_id: "fox" }, [conversation("c1", 4)]],
  [`POST ${C1}/fork`, { message_id: "m0" }, [anyConversation]],
  // It has been read: tests/routes/chat.test.ts has one that hasn't.
  [`POST ${C1}/read`, undefined, []],
  [`POST ${C1}/revisions/1/restore`, undefined, [c1]],
  ["POST /api/trash/conversation-gone/restore", undefined, [conversation("gone", 1), trash]],
  ["DELETE /api/trash", undefined, [trash]],
  ["PUT /api/connections", connection, [{ kind: "connection", id: "double" }]],
  ["DELETE /api/connections/double", undefined, [{ kind: "connection", id: "double" }]],
  ["DELETE /api/connections/double/key", undefined, [{ kind: "connection", id: "double" }]],
  ["POST /api/connections/demo/activate", undefined, [
    { kind: "connection", id: "double" },
    { kind: "connection", id: "demo" },
  ]],
  ["PATCH /api/settings", { display_name: "Ada" }, [{ kind: "settings", id: "owner_settings", revision: 1 }]],
  ["POST /api/setup/complete", {}, [{ kind: "setup", id: expect.any(String) }]],
];

function listen(): ChangeEvent[] {
  const told: ChangeEvent[] = [];
  app.services.events.subscribe((event) => void told.push(event));
  return told;
}

test.each(CHANGES)("%s %j publishes its events", async (write, body, expected) => {
  if (write.endsWith("/key")) await app.put("/api/connections", connection);
  if (write.endsWith("/greeting")) {
    await app.put("/api/characters/fox", { name: "Fox", first_mes: "Hello." });
    await app.patch(C1, { participants: [{ character_id: "fox" }] });
  }
  const told = listen();
  const [method, path] = write.split(" ") as [string, string];
  expect((await app.request(method, path, body)).status).toBeLessThan(300);
  expect(told).toEqual(expected);
});

test("the table contains every write of these resources", async () => {
  const { paths } = await (await app.get("/api/openapi.json")).json();
  const known = Object.entries<Record<string, unknown>>(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`)
  ).filter((operation) =>
    /^(PUT|POST|PATCH|DELETE) \/api\/(conversations|connections|trash|settings|setup)/.test(operation)
  );
  const changingNothing = [
    "POST /api/connections/test",
    "POST /api/connections/discover",
    "POST /api/conversations/{id}/regex_scripts/run",
    // A job: tests/routes/connections/ollama_models.test.ts.
    "POST /api/connections/{id}/pull",
  ];
  const shapes = CHANGES.map(([write]) =>
    write.replace(/\/(c1|double|demo|conversation-gone)\b/, "/{id}").replace("/m1", "/{mid}").replace(
      /\/1(?=\/|$)/,
      "/{n}",
    )
  );
  expect([...new Set(shapes), ...changingNothing].sort()).toEqual(known.sort());
});

test("publishes the start, the end and each revision of a reply", async () => {
  const told = listen();
  await gather(await ask(app, 1, { conversation_id: "new" }));
  await until(() => told.at(-1)?.kind === "reply_ended", "the end is told");
  expect(told).toEqual([
    conversation("new", 1),
    { kind: "reply_started", id: "new" },
    conversation("new", 2),
    { kind: "reply_ended", id: "new" },
  ]);
});

test("publishes nothing for a rejected request", async () => {
  const told = listen();
  const stale = { headers: { "If-Match": '"1"' } };
  await app.put(C1, { messages: [] }, stale);
  await app.patch(`${C1}/messages/none`, { content: "x" });
  await app.delete("/api/conversations/none");
  await app.put(C1, { messages: [say("x"), say("x")] });
  await app.patch("/api/settings", { theme: "pink" });
  expect(told).toEqual([]);
});
