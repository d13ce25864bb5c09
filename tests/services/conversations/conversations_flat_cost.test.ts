import { afterAll, beforeAll, expect, test } from "vitest";
import { AttachmentRows } from "../../../services/attachments/attachment_rows.ts";
import { Attachments } from "../../../services/attachments/attachments.ts";
import { Sandbox } from "../../../services/platform/sandbox/sandbox.ts";
import { openImagePool } from "../../../services/attachments/images/image_pool.ts";
import { BlockStore } from "../../../services/conversations/blocks/block_store.ts";
import { ByteBudget } from "../../../services/async/byte_budget.ts";
import { ConversationReader } from "../../../services/conversations/conversation_reader.ts";
import { ConversationStreams } from "../../../services/conversations/conversation_streams.ts";
import { ChangeLog } from "../../../services/conversations/revisions/change_log.ts";
import { Conversations } from "../../../services/conversations/conversations.ts";
import { ConversationWriter } from "../../../services/conversations/conversation_writer.ts";
import { Drafts } from "../../../services/conversations/drafts.ts";
import { ConversationStore } from "../../../services/conversations/conversation_store.ts";
import { AttachmentReferences } from "../../../services/conversations/message_attachments.ts";
import { LiveReplies } from "../../../services/conversations/live_replies.ts";
import { Messages } from "../../../services/conversations/messages.ts";
import { RevisionStore } from "../../../services/conversations/revisions/revision_store.ts";
import { Versions } from "../../../services/storage/versions.ts";
import { KeyedMutex } from "../../../services/async/locks.ts";
import { MessageWriter } from "../../../services/chat/message_writer.ts";
import { VariantStore } from "../../../services/conversations/variants.ts";
import { randomBytes } from "../../../services/crypto/random.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { createEventHub } from "../../../services/events/event_hub.ts";
import { type Database, openDatabase, type SqlValue } from "../../../services/storage/database/database.ts";
import { RetentionClock } from "../../../services/storage/retention_clock.ts";
import { Trash } from "../../../services/storage/trash.ts";

/** Statements and rows of the database. */
interface Cost {
  statements: number;
  rowsChanged: number;
  bytesWritten: number;
  rowsRead: number;
  bytesRead: number;
}

const none = (): Cost => ({ statements: 0, rowsChanged: 0, bytesWritten: 0, rowsRead: 0, bytesRead: 0 });
const LENGTHS = { small: 40, large: 10_000 };

let folder: string;
let db: Database;
let cost = none();
let conversations: Conversations;
let reader: ConversationReader;
let messages: Messages;
let references: AttachmentReferences;
/** Adds a version to a message, with the reply `mid`. */
let addVersion: (id: string, mid: string, replyId: string) => Promise<unknown>;

/** The real database; statements and rows are counted. */
function counted(real: Database): Database {
  const sizeOf = (value: unknown) =>
    value instanceof Uint8Array || typeof value === "string" ? value.length : value === null ? 0 : 8;
  const read = <T>(rows: T[]): T[] => {
    cost.rowsRead += rows.length;
    for (const row of rows) for (const value of Object.values(row as object)) cost.bytesRead += sizeOf(value);
    return rows;
  };
  return {
    all: (sql, ...params) => read(real.all(sql, ...params)),
    get: <T>(sql: string, ...params: SqlValue[]) => {
      const row = real.get<T>(sql, ...params);
      return row === undefined ? undefined : read([row])[0];
    },
    // Not counted: its rows are in memory one at a time.
    iterate: (sql, ...params) => real.iterate(sql, ...params),
    async write(statements) {
      const results = await real.write(statements);
      cost.statements += statements.length;
      for (const { changes } of results) cost.rowsChanged += changes;
      for (const { params = [] } of statements) for (const value of params) cost.bytesWritten += sizeOf(value);
      return results;
    },
    prepare: () => {},
    close: () => real.close(),
  };
}

async function costOf(work: () => unknown): Promise<Cost> {
  cost = none();
  await work();
  return cost;
}

beforeAll(async () => {
  folder = await Deno.makeTempDir({ prefix: "parlor-test-" });
  db = counted(await openDatabase({ path: `${folder}/app.db` }));
  const root = createSealer(randomBytes(32));
  const sealer = root.forPurpose("conversations");
  const now = Date.now;
  const [store, blocks, live] = [new ConversationStore(db, sealer), new BlockStore(db, sealer), new LiveReplies()];
  const variants = new VariantStore(db, sealer);
  const events = createEventHub(() => {});
  const retention = new RetentionClock({ db, sealer: root.forPurpose("settings"), log: () => {}, now });
  const trash = new Trash({ db, sealer: root.forPurpose("trash"), events, now, isExpired: retention.isExpired });
  const attachments = new Attachments({
    db,
    sealer,
    nameSealer: sealer,
    folder,
    trash,
    events,
    now,
    versions: new Versions({ folder: `${folder}/versions`, now, isExpired: retention.isExpired, log: () => {} }),
    retention,
    maxBytes: 1e6,
    log: () => {},
  });
  reader = new ConversationReader({ store, blocks, variants, live, attachments: new AttachmentRows(db) });
  const parts = {
    db,
    store,
    blocks,
    live,
    variants,
    now,
    trash,
    events,
    images: { attachments, images: openImagePool(new Sandbox()) },
    revisions: new RevisionStore(db, sealer, now, retention),
    changes: new ChangeLog(db),
    reader,
    locks: new KeyedMutex(),
  };
  const conversationWriter = new ConversationWriter(parts);
  const streams = new ConversationStreams({ reader, store, blocks, variants, live, budget: new ByteBudget() });
  conversations = new Conversations({ ...parts, writer: conversationWriter, drafts: new Drafts(parts), streams });
  messages = new Messages({ ...parts, writer: conversationWriter });
  references = new AttachmentReferences({ ...parts, sealer, attachments, log: () => {} });
  const writer = new MessageWriter({ ...parts, conversationWriter });
  addVersion = (id, mid, replyId) => {
    const said = [{ role: "user", content: "another version" }];
    const ids = { conversationId: id, userMessageId: mid, assistantMessageId: replyId };
    const run = { messageId: replyId, generation: `${id}-${replyId}`, model: "m", now: now() };
    const request = { ...ids, action: "edit" as const, messages: said, params: {} };
    return writer.write(request, run, store.get(id));
  };
  for (const [id, count] of Object.entries(LENGTHS)) {
    const all = Array.from({ length: count }, (_, i) => ({ id: `${id}${i}`, role: "user", content: "x".repeat(400) }));
    await conversations.put(id, { title: id, messages: all });
  }
});
afterAll(async () => {
  await db.close();
  await Deno.remove(folder, { recursive: true });
});

test.each<[string, (id: "small" | "large", middle: number) => unknown]>([
  ["an edit", (id, middle) => messages.patch(id, `${id}${middle}`, { content: "edited" })],
  ["another edit of a message", (id, middle) => messages.patch(id, `${id}${middle}`, { content: "edited again" })],
  ["a removal", (id, middle) => messages.remove(id, `${id}${middle + 1}`)],
  ["an insertion", (id, middle) => messages.add(id, { content: "between" }, { after: `${id}${middle + 2}` })],
  ["an appended message", (id) => messages.add(id, { content: "at the end" })],
  ["a removal of the last messages", (id) => messages.removeFrom(id, `${id}${LENGTHS[id] - 3}`)],
  ["a change of a field", (id) => conversations.patch(id, { title: "renamed" })],
  ["a page", (id, middle) => reader.readPage(id, 10, `${id}${middle - 1}`)],
])("%s costs the same among 10,000 messages as among 40", async (_, work) => {
  const small = await costOf(() => work("small", LENGTHS.small / 2));
  const large = await costOf(() => work("large", LENGTHS.large / 2));
  expect(small.rowsRead).toBeGreaterThan(0);
  expect(large.statements).toBeLessThanOrEqual(small.statements + 2);
  expect(large.rowsChanged).toBeLessThanOrEqual(small.rowsChanged + 2);
  // At most one more or a fuller block: positions within a block differ.
  const block = 26 * 1024;
  expect(large.bytesWritten).toBeLessThanOrEqual(small.bytesWritten + block);
  expect(large.rowsRead).toBeLessThanOrEqual(small.rowsRead + 2);
  expect(large.bytesRead).toBeLessThanOrEqual(small.bytesRead + 2 * block);
  expect(large.bytesWritten).toBeLessThan(100 * 1024);
});

/** How many messages of this test fit in a block. */
const IN_BLOCK = 40;

test.each<[string, (id: "small" | "large", middle: number) => unknown]>([
  ["a first version", (id, middle) => addVersion(id, `${id}${middle - 3}`, "r1")],
  ["a further version", (id, middle) => addVersion(id, `${id}${middle - 3}`, "r2")],
  ["a version of an earlier message", (id, middle) => addVersion(id, `${id}${middle / 2}`, "r3")],
  ["a switch back", (id, middle) => messages.patch(id, `${id}${middle / 2}`, { active_variant: 0 })],
  ["a switch to what all followed", (id, middle) => messages.patch(id, `${id}${middle - 3}`, { active_variant: 0 })],
])("%s among 10,000 messages costs as much as one message", async (_, work) => {
  const small = await costOf(() => work("small", LENGTHS.small / 2));
  const large = await costOf(() => work("large", LENGTHS.large / 2));
  expect(large.statements).toBeLessThanOrEqual(small.statements + 2);
  // At most one block is split: the index rows of its messages are written again.
  expect(large.rowsChanged).toBeLessThanOrEqual(small.rowsChanged + IN_BLOCK);
  expect(large.bytesWritten).toBeLessThan(60 * 1024);
  expect(large.rowsRead).toBeLessThanOrEqual(small.rowsRead + IN_BLOCK);
  expect(large.bytesRead).toBeLessThan(250 * 1024);
  expect(large.rowsChanged).toBeGreaterThan(0);
});

test("the search for references to attachments never holds a whole conversation", async () => {
  const reference = "INSERT INTO attachment_ref (name, owner_kind, owner_id) VALUES (?, 'conversation', 'large')";
  await db.write([{ sql: reference, params: ["stale.png"] }]);
  const { bytesRead } = await costOf(() => references.sweep());
  expect(bytesRead).toBeLessThan(100 * 1024);
  expect(db.all("SELECT name FROM attachment_ref WHERE owner_id = 'large'")).toEqual([]);
});

test("a whole save changes the row of each replaced block once, and writes no block if nothing changed", async () => {
  const at = "2026-01-01T00:00:00.000Z";
  const text = (n: number, letter: string) => {
    return { id: `whole${n}`, role: "user", content: letter.repeat(400), created_at: at, updated_at: at };
  };
  const save = (letter: string, changed = (_: number) => true) =>
    conversations.put("whole", {
      title: "whole",
      messages: Array.from({ length: 400 }, (_, n) => text(n, changed(n) ? letter : "a")),
    });
  const countBlocks = () => db.all("SELECT id FROM block WHERE conversation_id = 'whole' AND live = 1").length;
  await save("a");
  const blocks = countBlocks();
  expect(blocks).toBeGreaterThan(10);

  const unchanged = await costOf(() => save("a"));
  expect(unchanged.bytesWritten).toBeLessThan(4 * 1024);
  expect(unchanged.rowsChanged).toBeLessThan(5);

  const one = await costOf(() => save("b", (n) => n === 200));
  expect(one.bytesWritten).toBeLessThan(30 * 1024);
  // The first revision of the messages keeps all blocks.
  expect(one.rowsChanged).toBeLessThan(blocks + 6);
  expect(
    JSON.parse(
      db.get<{ entry: string }>(
        "SELECT entry FROM change WHERE conversation_id = 'whole' ORDER BY revision DESC LIMIT 1",
      )!.entry,
    ),
  ).toEqual({
    added: [],
    changed: ["whole200"],
    removed: [],
    isReordered: false,
  });

  const all = await costOf(() => save("c"));
  expect(all.rowsChanged).toBeLessThan(2 * blocks + 6);
  expect(countBlocks()).toBe(blocks);
  const { json } = await save("c");
  const { messages: saved } = JSON.parse(new TextDecoder().decode(json as Uint8Array));
  expect(saved).toMatchObject(Array.from({ length: 400 }, (_, n) => text(n, "c")));
});

test("present blocks are found without those that only revisions have", () => {
  const plan = db.all<{ detail: string }>(
    "EXPLAIN QUERY PLAN UPDATE block SET kept = 1 WHERE conversation_id = ? AND live = 1 AND kept = 0",
    "whole",
  );
  expect(plan.map(({ detail }) => detail).join()).toMatch(/conversation_id=\? AND live=\?/);
});
