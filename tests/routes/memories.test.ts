import { afterEach, beforeEach, expect, test } from "vitest";
import { added, importReport } from "../helpers/app/imported.ts";
import { say } from "../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
let nowMs = Date.parse("2026-01-01T00:00:00Z");
beforeEach(async () => {
  app = await openTestApp({ now: () => nowMs += 1_000 });
});
afterEach(() => app[Symbol.asyncDispose]());

const json = async (response: Response | Promise<Response>) => await (await response).json();
const everything = { kind: "everything" };

test("creates, lists, changes and removes a note; the trash restores it with its versions", async () => {
  const created = await app.put("/api/memories/n1", {
    text: " Ada likes tea. ",
    source: { conversation_id: "c1", message_id: "m1" },
  });
  expect([created.status, created.headers.get("etag")]).toEqual([201, '"1"']);
  const note = await created.json();
  expect(note).toEqual({
    id: "n1",
    text: "Ada likes tea.",
    scope: everything,
    pinned: false,
    source: { conversation_id: "c1", message_id: "m1" },
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  await app.put("/api/memories/n2", {
    text: "Fox met Ada.",
    scope: { kind: "character", id: "fox", persona_id: "ada" },
  });
  expect((await json(app.get("/api/memories"))).map(({ id }: { id: string }) => id)).toEqual(["n2", "n1"]);
  expect(await json(app.get("/api/memories?scope=character&id=fox"))).toMatchObject([{ id: "n2" }]);
  expect(await json(app.get("/api/memories?scope=character&id=owl"))).toEqual([]);
  const changed = await app.put("/api/memories/n1", { text: "Ada likes coffee.", pinned: true, source: null });
  expect([changed.status, changed.headers.get("etag")]).toEqual([200, '"2"']);
  expect(await changed.json()).not.toHaveProperty("source");
  const versions = await json(app.get("/api/memories/n1/versions"));
  expect(versions).toMatchObject([{ n: 1, cause: "put", text: "Ada likes tea.", pinned: false }]);

  const told: unknown[] = [];
  app.services.events.subscribe((event) => void told.push(event));
  expect((await app.delete("/api/memories/n1")).status).toBe(204);
  expect((await app.get("/api/memories/n1")).status).toBe(404);
  expect(told).toEqual([{ kind: "memory", id: "n1" }, { kind: "trash", id: "trash" }]);
  const [item] = await json(app.get("/api/trash"));
  expect(item).toMatchObject({ kind: "memory", title: "Ada likes coffee." });
  expect((await app.post(`/api/trash/${item.id}/restore`)).status).toBe(204);
  expect(await json(app.get("/api/memories/n1/versions"))).toEqual(versions);
  const restored = await app.post("/api/memories/n1/versions/1/restore");
  expect(await restored.json()).toMatchObject({ text: "Ada likes tea.", pinned: false });
  expect(await json(app.get("/api/memories/n1/versions"))).toMatchObject([{ n: 2, text: "Ada likes coffee." }, {
    n: 1,
  }]);
  expect((await app.post("/api/memories/n1/versions/9/restore")).status).toBe(404);
});

test("rejects a save from a device that read an older note, and names both ETags", async () => {
  await app.put("/api/memories/n1", { text: "One" });
  const [desk, phone] = await Promise.all([app.get("/api/memories/n1"), app.get("/api/memories/n1")]);
  const put = (text: string, etag: string) => app.put("/api/memories/n1", { text }, { headers: { "If-Match": etag } });
  expect((await put("Desk", desk.headers.get("etag")!)).status).toBe(200);
  const late = await put("Phone", phone.headers.get("etag")!);
  expect(late.status).toBe(412);
  expect((await late.json()).error.code).toBe("revision_mismatch");
  expect(await json(app.get("/api/memories/n1"))).toMatchObject({ text: "Desk" });
  expect((await app.delete("/api/memories/n1", { headers: { "If-Match": phone.headers.get("etag")! } })).status).toBe(
    412,
  );
  await desk.body?.cancel();
  await phone.body?.cancel();
});

test.each([
  [{}],
  [{ text: "  " }],
  [{ text: "x".repeat(2_001) }],
  [{ text: "x", scope: { kind: "character" } }],
  [{ text: "x", scope: { kind: "everything", id: "a" } }],
  [{ text: "x", scope: { kind: "persona", id: "a b" } }],
  [{ text: "x", scope: { kind: "folder", id: "Work", persona_id: "p" } }],
])("refuses %j", async (body) => {
  const refused = await app.put("/api/memories/n1", body);
  expect([refused.status, (await refused.json()).error.code]).toEqual([400, "invalid_request"]);
  expect(await json(app.get("/api/memories"))).toEqual([]);
});

test("accepts, edits and dismisses proposals; a note with the same meaning isn't proposed again", async () => {
  const { proposals } = await app.services.memory();
  const scope = { kind: "everything" } as const;
  const source = { conversationId: "c1", messageId: "m1" };
  const add = (text: string, more = {}) => proposals.add({ text, scope, source, ...more });
  const inbox = () => json(app.get("/api/memories/proposals"));
  const decide = (id: string, body: Record<string, unknown>) => app.post(`/api/memories/proposals/${id}`, body);
  expect(await add("Ada likes green tea.")).toBe("proposed");
  expect(await add("ada likes green tea")).toBe("known");
  expect(await add("Ada has a dog called Rex.")).toBe("proposed");
  expect(await add("")).toBe("invalid");
  const [dog, tea] = await inbox();
  expect(tea).toEqual({
    id: expect.any(String),
    text: "Ada likes green tea.",
    scope,
    source: { conversation_id: "c1", message_id: "m1" },
    created_at: expect.any(String),
  });
  const accepted = await decide(tea.id, { decision: "accept", text: "Ada likes green tea most." });
  expect(await accepted.json()).toMatchObject({ text: "Ada likes green tea most.", source: tea.source });
  expect((await decide(tea.id, { decision: "accept" })).status).toBe(200);
  expect((await decide(tea.id, { decision: "dismiss" })).status).toBe(409);
  expect((await decide(dog.id, { decision: "dismiss" })).status).toBe(204);
  expect((await decide(dog.id, { decision: "dismiss" })).status).toBe(204);
  expect((await decide("none", { decision: "dismiss" })).status).toBe(404);
  expect(await json(app.get("/api/memories"))).toHaveLength(1);
  expect(await inbox()).toEqual([]);

  await app.restart();
  const again = (await app.services.memory()).proposals;
  for (const text of ["Ada has a dog called Rex.", "Ada has a dog that is called Rex", "Ada likes green tea"]) {
    expect(await again.add({ text, scope }), text).not.toBe("proposed");
  }
  expect(await again.add({ text: "Ada has a dog called Bella.", scope })).toBe("proposed");
});

test("offers a contradiction as a change of the note", async () => {
  await app.put("/api/memories/n1", { text: "Ada lives in Bern.", pinned: true });
  const { proposals } = await app.services.memory();
  const scope = { kind: "everything" } as const;
  await proposals.add({ text: "Ada lives in Oslo.", scope, replaces: "n1" });
  await proposals.add({ text: "Ada has a boat.", scope, replaces: "gone" });
  const [boat, oslo] = await json(app.get("/api/memories/proposals"));
  expect(boat).not.toHaveProperty("replaces");
  expect(oslo).toMatchObject({ replaces: "n1" });
  const changed = await app.post(`/api/memories/proposals/${oslo.id}`, { decision: "accept" });
  expect(await changed.json()).toMatchObject({ id: "n1", text: "Ada lives in Oslo.", pinned: true });
  expect(await json(app.get("/api/memories/n1/versions"))).toMatchObject([{ text: "Ada lives in Bern." }]);
});

test("finds passages of other chats by a question in everyday words", async () => {
  const chat = (id: string, ...texts: string[]) =>
    app.put(`/api/conversations/${id}`, { title: id, messages: texts.map((text, n) => say(`${id}${n}`, text)) });
  await chat("boats", "We paint the boat green on Friday.", "Nothing else");
  await chat("tea", "The boat is far away", "Green tea is best");
  await chat("here", "What color was the boat? Green.");
  const found = await json(
    app.get(`/api/recall?conversation_id=here&q=${encodeURIComponent("What did we say about the green boat?")}`),
  );
  expect(found.next_cursor).toBeNull();
  expect(found.items.map(({ message_id }: { message_id: string }) => message_id)).toEqual(
    ["boats0", expect.stringMatching(/^tea/), expect.stringMatching(/^tea/)],
  );
  expect(found.items[0]).toMatchObject({
    conversation_id: "boats",
    title: "boats",
    snippet: expect.stringContaining("boat"),
  });
  expect((await app.get("/api/recall?q=")).status).toBe(400);
  await chat("ja", "来週は京都で紅葉を見る。");
  const ja = await json(app.get(`/api/recall?q=${encodeURIComponent("京都について何を言った?")}`));
  expect(ja.items).toMatchObject([{ conversation_id: "ja" }]);
});

test("exports notes, and an import adds them once", async () => {
  await app.put("/api/memories/n1", { text: "One", scope: { kind: "folder", id: "Work" } });
  await app.put("/api/memories/n2", { text: "Two", pinned: true });
  const zip = new Uint8Array(await (await app.get("/api/export")).arrayBuffer());
  await using other = await openTestApp();
  expect(added(await importReport(other, "kind=parlor", zip))).toMatchObject({ memory: 2 });
  expect(added(await importReport(other, "kind=parlor", zip))).toMatchObject({ memory: 0 });
  expect(await json(other.get("/api/memories"))).toMatchObject([
    { id: "n2", text: "Two", pinned: true },
    { id: "n1", text: "One", scope: { kind: "folder", id: "Work" } },
  ]);
});
