/** An export of a house with one of everything, imported into an empty server and exported there again. */
import { hash } from "node:crypto";
import { unzipSync } from "fflate";
import { expect, test } from "vitest";
import { ask, until, useModel } from "../../helpers/app/chat_client.ts";
import { fillHouse } from "../../helpers/app/full_house.ts";
import { importReport } from "../../helpers/app/imported.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { FakeA1111 } from "../../helpers/fakes/fake_a1111.ts";
import { answerText, FakeTools } from "../../helpers/fakes/fake_tools.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { addDocument } from "../../helpers/files/document_files.ts";

type Json = Record<string, unknown>;

const EVERYTHING = { kind: "everything" } as const;
/** A tool server that nobody answers at. */
const MCP = "http://127.0.0.1:9/mcp";

async function ok(pending: Promise<Response>): Promise<Response> {
  const answer = await pending;
  if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}: ${await answer.text()}`);
  return answer;
}

/** Adds what `fillHouse` doesn't have: notes, proposals, a document, the gallery, tool servers, addresses. */
async function fillRest(app: TestApp): Promise<void> {
  await ok(app.put("/api/memories/fair", { text: "Goes to the fair in June", pinned: true, scope: EVERYTHING }));
  const { proposals } = await app.services.memory();
  const source = { conversationId: "c1", messageId: "n1" };
  for (const text of ["Likes tea", "Plays the oboe", "Was born in Bremen"]) {
    await proposals.add({ text, scope: EVERYTHING, source });
  }
  await proposals.add({ text: "Went to the fair in July", scope: EVERYTHING, source, replaces: "fair" });
  const decided = proposals.list().find(({ text }) => text === "Plays the oboe")!;
  await ok(app.post(`/api/memories/proposals/${decided.id}`, { decision: "dismiss" }));
  const { id } = await addDocument(app, "tides.md", "# Tides\n\nHigh water at nine.");
  const { card } = await (await ok(app.get("/api/characters/h1"))).json();
  await ok(app.put("/api/characters/h1", { card, documents: [{ id, use: "whole" }] }));
  for (const [name, enabled] of [["on", true], ["off", false]] as const) {
    await ok(app.put(`/api/tools/servers/${name}`, { name, url: MCP, enabled, headers: { "X-Key": "header-secret" } }));
  }
  await ok(app.put("/api/regex_scripts/quotes", { name: "Quotes", find: "/a/g", replace: "b", max_depth: 4 }));
  await ok(app.put("/api/regex_scripts/dots", { name: "Dots", find: "c", enabled: false, order: 0.5 }));
  await ok(app.put("/api/tools/web", { search_url: "http://127.0.0.1:9/search", read_page: false }));
  const notify = { kind: "ntfy", url: "http://127.0.0.1:9/topic", token: "push-secret" };
  await ok(app.put("/api/push/server", notify));
  await using painter = new FakeA1111();
  await ok(app.put("/api/image/connections", { id: "p", name: "P", kind: "a1111", base_url: painter.url }));
  await ok(app.post("/api/image/connections/p/activate"));
  const lone = { prompt: "a ferry", negative_prompt: "people", width: 64, height: 64, seed: 815, sampler: "Euler" };
  await ok(app.post("/api/image/generate", lone));
  const inChat = { prompt: "a river", seed: 4711, steps: 8, conversation_id: "c2", message_id: "a1" };
  await ok(app.post("/api/image/generate", inChat));
}

/** An export as files: JSON parsed, others as their hash. */
async function readExport(app: TestApp): Promise<{ zip: Uint8Array<ArrayBuffer>; files: Record<string, unknown> }> {
  const zip = await (await ok(app.get("/api/export"))).bytes();
  const files = Object.entries(unzipSync(zip)).map(([path, bytes]): [string, unknown] => {
    const text = () => new TextDecoder().decode(bytes);
    if (path.endsWith(".json")) return [path, JSON.parse(text())];
    return [
      path,
      path.endsWith(".jsonl") ? text().trimEnd().split("\n").map((line) => JSON.parse(line)) : hash("sha256", bytes),
    ];
  });
  return { zip: zip as Uint8Array<ArrayBuffer>, files: Object.fromEntries(files) };
}

/** Removes what docs/api.md says a second export doesn't have. */
function withoutListed(files: Record<string, unknown>): Record<string, unknown> {
  const kept = Object.entries(files).map(([path, value]): [string, unknown] => {
    const folder = path.split("/")[0]!;
    if (path === "parlor-export.json") return [path, { ...value as Json, created_at: undefined }];
    if (folder === "personas" && path.endsWith(".json")) return [path, { ...value as Json, updated_at: 0 }];
    if (folder === "conversations") {
      const { revision: _, draft_version: __, imported: ___, ...rest } = value as Json;
      return [path, rest];
    }
    if (["connections", "image_connections"].includes(folder)) {
      return [path, { ...value as Json, hasKey: 0, isActive: 0 }];
    }
    if (folder === "tool_servers") return [path, { ...value as Json, envNames: 0, headerNames: 0, hasClientSecret: 0 }];
    if (path === "settings.json") {
      const { speech: _, transcription: __, notifications, ...rest } = value as Json;
      return [path, { ...rest, notifications: { ...notifications as Json, hasToken: 0 } }];
    }
    return [path, value];
  });
  return Object.fromEntries(kept);
}

test("a house with one of everything is exported, imported and exported again without a difference but the listed ones", async () => {
  let nowMs = Date.parse("2026-03-01T12:00:00Z");
  await using first = await openTestApp({ now: () => nowMs += 1_000 });
  await fillHouse(first);
  await fillRest(first);
  const before = await readExport(first);
  const folders = new Set(Object.keys(before.files).map((path) => path.split("/")[0]));
  expect([...folders].sort()).toEqual([
    ...["attachments", "characters", "connections", "conversations", "document_files", "documents", "gallery"],
    ...["image_connections", "lorebooks", "memories", "parlor-export.json", "personas", "presets", "proposals"],
    ...["regex_scripts", "settings.json", "tool_servers", "usage.json", "variants", "voices", "workflows"],
  ]);
  expect(Object.keys(before.files).filter((path) => path.startsWith("proposals/"))).toHaveLength(4);

  nowMs = Date.parse("2026-06-01T12:00:00Z");
  await using second = await openTestApp({ now: () => nowMs += 1_000 });
  const report = await importReport(second, "kind=parlor", before.zip);
  expect(report.lines.filter(({ level }) => level === "refused")).toEqual([]);
  const after = await readExport(second);
  expect(withoutListed(after.files)).toEqual(withoutListed(before.files));

  // What the API shows follows the files.
  const list = async (app: TestApp, path: string) => await (await ok(app.get(path))).json();
  for (const path of ["/api/image/gallery", "/api/memories/proposals"]) {
    expect(await list(second, path), path).toEqual(await list(first, path));
  }
  expect((await list(second, "/api/image/gallery")).items).toMatchObject([
    { prompt: "a river", conversation_id: "c2", message_id: "a1", settings: { seed: 4711 } },
    { prompt: "a ferry", settings: { seed: 815, negative_prompt: "people" } },
  ]);
  const again = await importReport(second, "kind=parlor", before.zip);
  expect(Object.values(again.counts).map(({ added, updated, refused }) => added + updated + refused)).toEqual(
    Object.values(again.counts).map(() => 0),
  );
});

test("imported tool servers, web search and notifications are there but aren't used before the owner says so", {
  tags: ["J13"],
}, async () => {
  const first = await openTestApp();
  await using search = await listen();
  await using mcp = await listen();
  await using notify = await listen();
  await ok(first.put("/api/tools/servers/on", { name: "on", url: `${mcp.url}/mcp` }));
  await ok(first.put("/api/tools/web", { search_url: search.url, read_page: true }));
  await ok(first.put("/api/push/server", { kind: "ntfy", url: `${notify.url}/topic` }));
  const { zip } = await readExport(first);
  await first[Symbol.asyncDispose]();
  mcp.requests = 0;

  await using second = await openTestApp();
  const report = await importReport(second, "kind=parlor", zip);
  expect(report.lines.map(({ code, params }) => [code, params?.server])).toEqual([
    ["tool_server_left_off", `${mcp.url}/mcp`],
    ["web_tools_left_off", search.url],
    ["notifications_left_off", `${notify.url}/topic`],
  ]);
  const get = async (path: string) => await (await ok(second.get(path))).json();
  const { mcp: servers, webTools, push } = second.services;
  const offered = async () => {
    const lists = [
      await (await servers()).listTools(AbortSignal.timeout(30_000)),
      await (await webTools()).listTools(),
    ];
    return lists.flatMap(({ tools, unavailable }) => [...tools, ...unavailable]);
  };
  expect(await offered()).toEqual([]);
  (await push()).replyCompleted({ conversationId: "c1" });
  expect(await get("/api/tools/servers")).toMatchObject([{ id: "on", enabled: true, state: "held" }]);
  const web = { search_url: search.url, search: false, read_page: false, held: true };
  expect(await get("/api/tools/web")).toMatchObject(web);
  expect(await get("/api/push/server")).toMatchObject({ url: `${notify.url}/topic`, held: true });
  await second.restart();
  expect(await get("/api/tools/servers")).toMatchObject([{ state: "held" }]);
  expect([mcp.requests, search.requests, notify.requests]).toEqual([0, 0, 0]);

  // A new name confirms nothing. Turning one tool on leaves the other off.
  expect(await (await ok(second.put("/api/tools/servers/on", { name: "On" }))).json()).toMatchObject({ state: "held" });
  const searching = await (await ok(second.put("/api/tools/web", { search: true }))).json();
  expect(searching).toMatchObject({ search: true, read_page: false });
  expect(searching.held).toBeUndefined();
  await ok(second.put("/api/tools/servers/on", { enabled: true }));
  await ok(second.put("/api/push/server", { kind: "ntfy", url: `${notify.url}/topic` }));
  await (await second.services.push()).replyCompleted({ conversationId: "c1" });
  await until(() => Promise.resolve(mcp.requests > 0 && notify.requests > 0), "both are used");
});

test("a chat that waited for a decision says so after the import, and can be continued", async () => {
  await using llm = await openFakeLlm();
  llm.switches.manual = "on";
  const tools = new FakeTools().set("lookup", () => answerText("Found it"));
  await using first = await openTestApp({ toolSources: [() => Promise.resolve(tools)] });
  await useModel(first, llm);
  await ask(first, 1, { context: "server" });
  const call = await llm.nextCall();
  await call.emit("Let me see.");
  await call.callTools({ id: "call_1", name: "lookup", arguments: "{}" });
  const isWaiting = async () => (await (await first.get("/api/chat/replies")).json())[0]?.pending_calls.length > 0;
  await until(isWaiting, "a call waits");
  const { zip } = await readExport(first);

  await using second = await openTestApp();
  const report = await importReport(second, "kind=parlor", zip);
  expect(report.lines).toContainEqual(
    expect.objectContaining({ source: "conversations/c1.json", code: "reply_not_finished" }),
  );
  const chat = await (await second.get("/api/conversations/c1")).json();
  expect(chat.messages).toMatchObject([
    { id: "u1" },
    { content: "Let me see.", reply_id: "a1", tool_calls: [{ id: "call_1", state: "denied", decided_by: "system" }] },
    { role: "tool", tool_call_id: "call_1", reply_id: "a1", content: expect.stringContaining("wasn't made") },
    { id: "a1", status: "interrupted", error: { code: "exported", message: expect.stringContaining("your decision") } },
  ]);
});

/** Starts a server that counts its requests and knows nothing. */
async function listen() {
  const counted = { requests: 0, url: "", [Symbol.asyncDispose]: () => server.shutdown() };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
    counted.requests++;
    return new Response("{}", { status: 404 });
  });
  counted.url = `http://127.0.0.1:${server.addr.port}`;
  return await Promise.resolve(counted);
}
