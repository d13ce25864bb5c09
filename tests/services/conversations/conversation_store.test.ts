import { afterAll, beforeAll, expect, test } from "vitest";
import { ConversationStore } from "../../../services/conversations/conversation_store.ts";
import { completeMessage } from "../../../services/conversations/message.ts";
import type { ConversationState } from "../../../services/conversations/conversation.ts";
import { randomBytes } from "../../../services/crypto/random.ts";
import { createSealer, type PurposeSealer } from "../../../services/crypto/sealer.ts";
import { type Database, openDatabase } from "../../../services/storage/database/database.ts";

const FIRST: ConversationState = {
  id: "c1",
  revision: 1,
  createdAtMs: 1,
  updatedAtMs: 1,
  messageCount: 0,
  head: { title: "Harbour", participants: [] },
};
const NOW = "2026-07-01T12:00:00.000Z";
let folder: string;
let db: Database;
let sealer: PurposeSealer;
/** Values opened since the last check. */
let opened = 0;

beforeAll(async () => {
  folder = await Deno.makeTempDir({ prefix: "parlor-test-" });
  db = await openDatabase({ path: `${folder}/app.db` });
  const real = createSealer(randomBytes(32)).forPurpose("conversations");
  sealer = { ...real, openNow: (place, sealed) => (opened++, real.openNow(place, sealed)) };
});
afterAll(async () => {
  await db.close();
  await Deno.remove(folder, { recursive: true });
});

test("caches the head that was written or read last, safe from changes by callers", async () => {
  const store = new ConversationStore(db, sealer);
  await db.write([store.insert(FIRST, { snippet: "" }, undefined)]);
  expect(store.find("c1")).toEqual(FIRST);
  const second = { ...FIRST, revision: 2, head: { ...FIRST.head, title: "Evening" } };
  await db.write([store.update(second, { snippet: "" })]);
  opened = 0;
  store.get("c1").head.title = "scribbled over";
  expect(store.get("c1")).toEqual(second);
  expect(opened).toBe(0);

  const later = new ConversationStore(db, sealer);
  expect([later.find("c1"), later.find("c1"), later.get("c1")]).toEqual([second, second, second]);
  expect(opened).toBe(1);
});

test("doesn't use the cache for a failed write or a row changed on disk", async () => {
  const store = new ConversationStore(db, sealer);
  const standing = store.get("c1");
  const never = { ...standing, revision: 9, head: { ...standing.head, title: "never written" } };
  await expect(db.write([store.update(never, { snippet: "" })])).rejects.toMatchObject({ code: "conflict" });
  expect(store.get("c1")).toEqual(standing);
  await db.write([{ sql: "UPDATE conversation SET revision = 7 WHERE id = 'c1'" }]);
  expect(() => store.get("c1")).toThrow(/Can't read the settings of conversation/);
});

test("keeps the mark of a greeting as title across writes without decrypting the summary", async () => {
  const greeting = completeMessage({ role: "assistant", content: "The door creaks open." }, "g", NOW);
  const head = { title: "The door creaks…", participants: [{ character_id: "mira" }] };
  const first: ConversationState = { ...FIRST, id: "c2", head };
  const store = new ConversationStore(db, sealer);
  await db.write([store.insert(first, { snippet: "" }, greeting)]);
  opened = 0;
  await db.write([store.update({ ...first, revision: 2 }, { snippet: "Hello" })]);
  expect(store.findSummary("c2")).toMatchObject({ revision: 2, snippet: "Hello", has_greeting_title: true });
  expect(opened).toBe(0);

  const later = new ConversationStore(db, sealer);
  await db.write([later.update({ ...first, revision: 3 }, { snippet: "Bye" })]);
  expect(later.findSummary("c2")).toMatchObject({ revision: 3, snippet: "Bye", has_greeting_title: true });
  expect(opened).toBe(1);
  // A summary that was changed on disk isn't taken from the cache.
  await db.write([{ sql: "UPDATE conversation SET summary = zeroblob(length(summary)) WHERE id = 'c2'" }]);
  expect(later.findSummary("c2")).toBeUndefined();
});
