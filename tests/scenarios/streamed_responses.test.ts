import { expect, test, vi } from "vitest";
import { ask, gather, useModel } from "../helpers/app/chat_client.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { unreadAnswers } from "../helpers/app/large_requests.ts";
import { PATIENCE_MS } from "../helpers/app/patience.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { openStoredDatabase } from "../helpers/files/stored_database.ts";

const MESSAGE_CHARS = 4_000;
/** More than the window of a streamed response, which is 1 MiB. */
const COUNT = 1_000;
const WAITING = { timeout: PATIENCE_MS };

interface Stored {
  revision: number;
  messages: { id: string; content: string; variants?: { content: string }[] }[];
}

function messages(count = COUNT): { id: string; role: string; content: string }[] {
  return Array.from({ length: count }, (_, n) => ({
    id: `m${n}`,
    role: n % 2 === 0 ? "user" : "assistant",
    content: `${n} ${"灯台 light ".repeat(MESSAGE_CHARS / 10)}`,
  }));
}

/** Requests a conversation whose response is streamed, and reads its first chunk. */
async function begun(app: TestApp): Promise<{ first: Uint8Array; rest: AsyncGenerator<Uint8Array> }> {
  const { streams } = await app.services.conversations();
  const { json } = await streams.open("large");
  if (json instanceof Uint8Array) throw new Error("The conversation is answered in one step");
  return { first: (await json.next()).value!, rest: json };
}

async function parsed({ first, rest }: Awaited<ReturnType<typeof begun>>): Promise<Stored> {
  const parts = [first];
  for await (const part of rest) parts.push(part.slice());
  return JSON.parse(await new Blob(parts as BlobPart[]).text());
}

test("streams a large conversation as it was saved", { tags: ["L04"] }, async () => {
  await using app = await openTestApp();
  const sent = messages();
  const saved: Stored = await (await app.put("/api/conversations/large", { messages: sent })).json();
  const read = await app.get("/api/conversations/large");
  expect(read.headers.get("etag")).toBe(`"${saved.revision}"`);
  const stored: Stored = await read.json();
  expect(stored).toEqual(saved);
  expect(stored.messages.map(({ id, content }) => ({ id, content })))
    .toEqual(sent.map(({ id, content }) => ({ id, content })));
  const [listed]: Stored[] = await (await app.get("/api/conversations")).json();
  expect(listed).toEqual(stored);
  expect(app.services.budget.usedBytes).toBe(0);
});

test("streams all versions of messages", { tags: ["L04"] }, async () => {
  await using app = await openTestApp();
  const sent = messages().map((message) =>
    message.role === "user"
      ? message
      : { ...message, variants: [{ content: "first" }, { content: message.content }], active_variant: 1 }
  );
  await (await app.put("/api/conversations/large", { messages: sent })).body?.cancel();
  const stored: Stored = await (await app.get("/api/conversations/large?variants=1")).json();
  expect(stored.messages.map(({ variants }) => variants?.map(({ content }) => content.slice(0, 5)))).toEqual(
    sent.map(({ role, content }) => role === "user" ? undefined : ["first", content.slice(0, 5)]),
  );
});

test("includes a message added during a stream", { tags: ["L04"] }, async () => {
  await using app = await openTestApp();
  await (await app.put("/api/conversations/large", { messages: messages() })).body?.cancel();
  const reading = await begun(app);
  const added = await app.post("/api/conversations/large/messages", {
    message: { id: "new", role: "user", content: "New" },
  });
  expect(added.status).toBe(201);
  expect((await parsed(reading)).messages.map(({ id }) => id)).toEqual([...messages().map(({ id }) => id), "new"]);
});

test(
  "aborts a stream when a sent message changes",
  { tags: ["L04"] },
  async () => {
    await using app = await openTestApp();
    await (await app.put("/api/conversations/large", { messages: messages() })).body?.cancel();
    const reading = await begun(app);
    expect((await app.patch("/api/conversations/large/messages/m0", { content: "Changed" })).status).toBe(200);
    await expect(parsed(reading)).rejects.toMatchObject({ code: "conflict" });
    expect(app.services.budget.usedBytes).toBe(0);
  },
);

test(
  "marks a changed conversation in a streamed list as unreadable and includes all others",
  { tags: ["L04"] },
  async () => {
    await using app = await openTestApp();
    await app.put("/api/conversations/small", { messages: messages(1) });
    await (await app.put("/api/conversations/large", { messages: messages() })).body?.cancel();
    const { streams } = await app.services.conversations();
    const list = streams.list();
    const first = (await list.next()).value!;
    expect((await app.patch("/api/conversations/large/messages/m0", { content: "Changed" })).status).toBe(200);
    const [large, small] = await parsed({ first, rest: list }) as unknown as (Stored & { error?: { code: string } })[];
    expect(large).toMatchObject({ id: "large", error: { code: "unreadable" } });
    expect([small!.messages.length, small!.error]).toEqual([1, undefined]);
  },
);

test(
  "disconnects a client that reads nothing, and frees its memory",
  { tags: ["L04"] },
  async () => {
    await using app = await openTestApp({ limits: { stalledMs: 200 } });
    for (const id of ["one", "two", "three"]) {
      await (await app.put(`/api/conversations/${id}`, { messages: messages(3_000) })).body?.cancel();
    }
    using _unread = await unreadAnswers(app.port, "/api/conversations", 5);
    await vi.waitFor(() => expect(app.services.budget.usedBytes).toBeGreaterThan(0), WAITING);
    await vi.waitFor(
      () =>
        expect([app.services.budget.usedBytes, app.listener.connectionCount]).toEqual([
          0,
          expect.toSatisfy((count: number) => count <= 1),
        ]),
      WAITING,
    );
  },
);

test.each(["/api/conversations", "/api/conversations/large"])(
  "frees the memory of HEAD %s",
  { tags: ["L04"] },
  async (path) => {
    await using app = await openTestApp();
    await (await app.put("/api/conversations/large", { messages: messages() })).body?.cancel();
    await vi.waitFor(() => expect(app.services.budget.usedBytes).toBe(0), WAITING);
    expect((await app.request("HEAD", path)).status).toBe(200);
    expect(app.services.budget.usedBytes).toBe(0);
  },
);

test(
  "stops waiting for memory when a client disconnects, and needs none for small responses",
  { tags: ["L04"] },
  async () => {
    await using app = await openTestApp();
    await app.put("/api/conversations/small", { messages: messages(1) });
    using _ = app.services.budget.take(1e12);
    const { streams } = await app.services.conversations();
    const client = new AbortController();
    const waiting = streams.list({}, client.signal).next();
    client.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");
    // A small conversation and summaries need none.
    expect((await app.get("/api/conversations/small")).status).toBe(200);
    expect((await app.get("/api/conversations?view=summary")).status).toBe(200);
  },
);

test("counts a message larger than a window with its size", { tags: ["L04"] }, async () => {
  await using app = await openTestApp();
  const content = "x".repeat(4_000_000);
  await (await app.put("/api/conversations/large", { messages: [{ id: "m", role: "user", content }] })).body?.cancel();
  const { streams } = await app.services.conversations();
  const list = streams.list();
  const [begin, first] = [(await list.next()).value!, (await list.next()).value!];
  expect(streams.largeBudget.usedBytes).toBeGreaterThan(2 * content.length);
  const both = new Uint8Array(await new Blob([begin, first] as BlobPart[]).arrayBuffer());
  expect((await parsed({ first: both, rest: list }) as unknown as Stored[])[0]!.messages[0]!.content).toBe(content);
  expect([app.services.budget.usedBytes, streams.largeBudget.usedBytes]).toEqual([0, 0]);
});

test(
  "reports damage at the end of a streamed conversation, and as an error in a list",
  { tags: ["L04"] },
  async () => {
    await using app = await openTestApp();
    await (await app.put("/api/conversations/large", { messages: messages() })).body?.cancel();
    await app.restart(() => {
      using file = openStoredDatabase(app.dataDir);
      file.exec("UPDATE block SET sealed = zeroblob(64) WHERE id = (SELECT block_id FROM message WHERE mid = 'm500')");
      return Promise.resolve();
    });
    const stored = await (await app.get("/api/conversations/large")).json();
    const [damage] = stored.damaged;
    expect(damage).toMatchObject({ part: "messages", message_ids: expect.arrayContaining(["m500"]) });
    const lost = new Set(damage.message_ids);
    const readable = messages().map(({ id }) => id).filter((id) => !lost.has(id));
    expect(stored.messages.map(({ id }: { id: string }) => id)).toEqual(readable);
    const [listed] = await (await app.get("/api/conversations")).json();
    expect(listed).toMatchObject({ id: "large", error: { code: "unreadable" } });
  },
);

test("streams a large conversation along its active path", { tags: ["L04"] }, async () => {
  await using app = await openTestApp();
  const llm = await openFakeLlm();
  try {
    await useModel(app, llm);
    const sent = messages().map((message, n) => n === 500 ? { ...message, id: "u500" } : message);
    const ids = sent.map(({ id }) => id);
    await (await app.put("/api/conversations/c1", { messages: sent })).body?.cancel();
    const edit = { action: "edit", messages: [{ role: "user", content: "Other" }], assistant_message_id: "b" };
    expect(await gather(await ask(app, 500, edit))).toMatchObject({ isDone: true });
    const edited: Stored = await (await app.get("/api/conversations/c1")).json();
    expect(edited.messages.map(({ id }) => id)).toEqual([...ids.slice(0, 501), "b"]);
    expect((await app.patch("/api/conversations/c1/messages/u500", { active_variant: 0 })).status).toBe(200);
    const [listed]: Stored[] = await (await app.get("/api/conversations")).json();
    expect(listed!.messages.map(({ id }) => id)).toEqual(ids);
  } finally {
    await llm.close();
  }
});
