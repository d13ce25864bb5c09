import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSealer } from "../../../../services/crypto/sealer.ts";
import { createEventHub } from "../../../../services/events/event_hub.ts";
import { type Connections, openConnections } from "../../../../services/llm/connections/connections.ts";
import { type Database, openDatabase } from "../../../../services/storage/database/database.ts";
import { TIMEOUTS } from "../model_calls.ts";

let folder: string;
let db: Database;
let connections: Connections;
let changes: string[];
let nowMs: number;
const storageKey = new Uint8Array(randomBytes(32));

async function open(): Promise<void> {
  db = await openDatabase({ path: `${folder}/app.db` });
  const events = createEventHub(() => {});
  events.subscribe(({ kind, id }) => changes.push(`${kind} ${id}`));
  const sealer = createSealer(storageKey).forPurpose("connections");
  connections = await openConnections({ db, sealer, events, now: () => nowMs++, timeouts: TIMEOUTS, log: () => {} });
}

async function reopen(): Promise<void> {
  await db.close();
  await open();
}

beforeEach(async () => {
  folder = await Deno.makeTempDir();
  changes = [];
  nowMs = 1_700_000_000_000;
  await open();
});
afterEach(async () => {
  await db.close();
  await Deno.remove(folder, { recursive: true });
});

const llama = { id: "llama", name: "Llama", kind: "openai" as const, baseUrl: "http://127.0.0.1:8080/v1/" };

test("a new data folder has an active demo, which stays deleted", async () => {
  expect(connections.list()).toMatchObject([{ id: "demo", kind: "demo", name: "Demo", isActive: true, hasKey: false }]);
  expect(connections.getTarget("demo")).toMatchObject({ kind: "demo" });
  await reopen();
  expect(connections.list()).toHaveLength(1);
  await connections.remove("demo");
  expect(connections.findActive()).toBeUndefined();
  await reopen();
  expect(connections.list()).toEqual([]);
});

test("a profile survives a restart as entered, without showing its key", async () => {
  const { connection, isNew } = await connections.put({
    ...llama,
    model: "m",
    contextSize: 4096,
    timeouts: { connectMs: undefined, idleMs: 5 },
    apiKey: " sk-1234567 ",
  });
  expect(isNew).toBe(true);
  expect(connection).toMatchObject({ baseUrl: "http://127.0.0.1:8080/v1", hasKey: true, isActive: false, version: 1 });
  expect(connections.getTarget("llama").timeouts).toEqual({ ...TIMEOUTS, idleMs: 5 });
  await reopen();
  expect(connections.find("llama")).toEqual(connection);
  expect(JSON.stringify(connections.list())).not.toContain("sk-1234567");
  expect(connections.getTarget("llama")).toMatchObject({
    ...{ kind: "openai", baseUrl: "http://127.0.0.1:8080/v1", apiKey: "sk-1234567", contextSize: 4096 },
    timeouts: { ...TIMEOUTS, idleMs: 5 },
  });
  expect(changes).toEqual(["connection demo", "connection llama"]);
});

test("no part of a profile is in plain text in the database", { tags: ["K01"] }, async () => {
  await connections.put({ ...llama, name: "Plainname", apiKey: "sk-plaintext-key" });
  await db.close();
  for await (const entry of Deno.readDir(folder)) {
    const bytes = new TextDecoder("latin1").decode(await Deno.readFile(`${folder}/${entry.name}`));
    for (const secret of ["sk-plaintext-key", "Plainname", "127.0.0.1"]) expect(bytes).not.toContain(secret);
  }
  await open();
});

test("a changed origin drops the stored key, a changed path or name keeps it", { tags: ["U01"] }, async () => {
  await connections.put({ ...llama, apiKey: "sk-1234567" });
  for (
    const change of [{ name: "Other" }, { baseUrl: "http://127.0.0.1:8080/proxy/v1" }, { kind: "anthropic" as const }]
  ) {
    expect((await connections.put({ ...llama, ...change })).connection.hasKey).toBe(true);
  }
  for (const baseUrl of ["http://127.0.0.1:8081/v1", "https://127.0.0.1:8080/v1", "http://localhost:8080/v1"]) {
    await connections.put({ ...llama, apiKey: "sk-1234567" });
    expect((await connections.put({ ...llama, baseUrl })).connection.hasKey).toBe(false);
    expect(connections.getTarget("llama").apiKey).toBeUndefined();
    // An earlier clock doesn't restore it either.
    expect((await connections.put(llama)).connection.hasKey).toBe(false);
  }
});

test("an unsaved profile uses the stored key only for the same origin", { tags: ["U01"] }, async () => {
  await connections.put({ ...llama, apiKey: "sk-1234567" });
  const unsaved = (more: Record<string, unknown>) => connections.getUnsavedTarget({ ...llama, ...more }).apiKey;
  expect(unsaved({})).toBe("sk-1234567");
  expect(unsaved({ baseUrl: "http://127.0.0.1:8080" })).toBe("sk-1234567");
  expect(unsaved({ baseUrl: "http://127.0.0.1:9999/v1" })).toBeUndefined();
  expect(unsaved({ baseUrl: "http://evil.example:8080/v1" })).toBeUndefined();
  expect(unsaved({ id: "unknown" })).toBeUndefined();
  expect(unsaved({ id: undefined })).toBeUndefined();
  expect(unsaved({ apiKey: "new-key" })).toBe("new-key");
  expect(unsaved({ apiKey: null })).toBeUndefined();
});

test("an absent key keeps the stored one, null and an empty one delete it, and clearKey keeps the profile", async () => {
  await connections.put({ ...llama, apiKey: "sk-1234567" });
  expect((await connections.put(llama)).connection.hasKey).toBe(true);
  expect((await connections.put({ ...llama, apiKey: null })).connection.hasKey).toBe(false);
  await connections.put({ ...llama, apiKey: "sk-1234567" });
  expect((await connections.put({ ...llama, apiKey: "" })).connection.hasKey).toBe(false);
  await connections.put({ ...llama, apiKey: "sk-1234567" });
  await connections.clearKey("llama");
  await connections.clearKey("llama"); // again without effect
  await reopen();
  expect(connections.find("llama")).toMatchObject({ name: "Llama", hasKey: false });
});

test("one profile is active at a time, even after a restart", async () => {
  await connections.put(llama);
  await connections.activate("llama");
  await reopen();
  expect(connections.list().filter((connection) => connection.isActive).map((connection) => connection.id)).toEqual([
    "llama",
  ]);
  expect(connections.findActive()?.id).toBe("llama");
});

test("removing the active profile leaves none active, and the next new one becomes active", async () => {
  await connections.put(llama);
  await connections.remove("demo");
  expect(connections.findActive()).toBeUndefined();
  await connections.put({ ...llama, id: "second" });
  expect(connections.findActive()?.id).toBe("second");
});

test("null and missing fields take their defaults", async () => {
  const { connection } = await connections.put({
    baseUrl: "desk.lan:1234",
    model: null,
    timeouts: null,
    contextSize: null,
  });
  expect(connection).toMatchObject({ name: "desk.lan:1234", kind: "openai", baseUrl: "http://desk.lan:1234" });
  expect(connection.id).toMatch(/^[0-9a-f-]{36}$/);
  const claude = await connections.put({ kind: "anthropic", apiKey: "k" });
  expect(claude.connection.baseUrl).toBe("https://api.anthropic.com");
});

test("a profile without a usable address is refused", async () => {
  await expect(connections.put({ id: "x" })).rejects.toMatchObject({ code: "invalid_request" });
  await expect(connections.put({ baseUrl: "ftp://h" })).rejects.toMatchObject({ code: "invalid_request" });
  await expect(connections.put({ baseUrl: "http://169.254.169.254" })).rejects.toMatchObject({
    code: "address_not_allowed",
  });
  expect(connections.list()).toHaveLength(1);
});

test("a write checks the version it is given, and an ID that differs only in case is a conflict", async () => {
  await connections.put(llama);
  await expect(connections.put(llama, { expectedVersion: 7 })).rejects.toMatchObject({ code: "revision_mismatch" });
  await expect(connections.remove("llama", 7)).rejects.toMatchObject({ code: "revision_mismatch" });
  await expect(connections.put({ ...llama, id: "new" }, { expectedVersion: 1 })).rejects.toMatchObject({
    code: "revision_mismatch",
  });
  expect((await connections.put(llama, { expectedVersion: 1 })).connection.version).toBe(2);
  await expect(connections.put({ ...llama, id: "LLAMA" })).rejects.toMatchObject({ code: "conflict" });
});

test("an unknown profile is not found by any method", async () => {
  expect(connections.find("nope")).toBeUndefined();
  expect(() => connections.getTarget("nope")).toThrow(expect.objectContaining({ code: "not_found" }));
  await expect(connections.remove("nope")).rejects.toMatchObject({ code: "not_found" });
  await expect(connections.clearKey("nope")).rejects.toMatchObject({ code: "not_found" });
  await expect(connections.activate("nope")).rejects.toMatchObject({ code: "not_found" });
});

test("concurrent writes are serialized", async () => {
  await Promise.all(Array.from({ length: 20 }, (_, n) => connections.put({ ...llama, name: `n${n}` })));
  expect(connections.find("llama")).toMatchObject({ name: "n19", version: 20 });
});

test(
  "an unreadable profile is marked, doesn't affect others, and can be replaced or deleted",
  { tags: ["K03"] },
  async () => {
    await connections.put(llama);
    await connections.put({ ...llama, id: "other" });
    await connections.activate("llama");
    await db.write([{ sql: "UPDATE document SET sealed = zeroblob(40) WHERE kind = 'connection' AND id = 'llama'" }]);
    await reopen();
    expect(connections.list().filter((connection) => connection.isUnreadable).map(({ id }) => id)).toEqual(["llama"]);
    expect(connections.find("llama")).toBeUndefined();
    expect(connections.findActive()).toBeUndefined();
    expect(() => connections.getTarget("llama")).toThrow(expect.objectContaining({ code: "conflict" }));
    await expect(connections.activate("llama")).rejects.toMatchObject({ code: "conflict" });
    const { connection } = await connections.put(llama);
    expect(connection.name).toBe("Llama");
    expect(connection.isUnreadable).toBeUndefined();
    await connections.remove("other");
  },
);

test("a record moved to another id can't be decrypted", { tags: ["K02"] }, async () => {
  await connections.put({ ...llama, apiKey: "sk-1234567" });
  await connections.put({ ...llama, id: "other", baseUrl: "http://evil.example/v1" });
  await db.write([{
    sql: "UPDATE document SET sealed = (SELECT sealed FROM document WHERE id = 'llama') WHERE id = 'other'",
  }]);
  await reopen();
  expect(connections.find("other")).toBeUndefined();
  expect(connections.find("llama")?.hasKey).toBe(true);
});
