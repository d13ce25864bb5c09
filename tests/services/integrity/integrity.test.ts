import { unzipSync } from "fflate";
import { expect, test } from "vitest";
import { runDoctorChecks } from "../../../services/diagnostics/doctor.ts";
import type { Finding } from "../../../services/diagnostics/finding.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { say } from "../../helpers/app/stored_chat.ts";

import { cutFile, flipSealed, type SealedPlace } from "../../helpers/files/damage.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

/** Each damages something with the given path, as unreadable.json names it. */
const ROWS: [string, SealedPlace][] = [
  ["conversations/title", { table: "conversation", column: "head", where: "id = 'title'" }],
  ["conversations/listed", { table: "conversation", column: "summary", where: "id = 'listed'" }],
  ["conversations/text", { table: "block", column: "sealed", where: "conversation_id = 'text'" }],
  ["conversations/draft", { table: "draft", column: "sealed", where: "conversation_id = 'draft'" }],
  ["conversations/old", { table: "revision", column: "sealed", where: "conversation_id = 'old'" }],
  ["lorebooks/book", { table: "document", column: "sealed", where: "id = 'book'" }],
  ["presets/calm", { table: "document", column: "sealed", where: "id = 'calm'" }],
  ["connections/c1", { table: "document", column: "sealed", where: "id = 'c1'" }],
  ["settings/owner_settings", { table: "setting", column: "sealed", where: "key = 'owner_settings'" }],
  ["conversations/queue", { table: "message_queue", column: "sealed", where: "conversation_id = 'queue'" }],
];

async function fill(app: TestApp): Promise<void> {
  for (const id of ["whole", "title", "listed", "text", "draft", "queue", "old"]) {
    await app.put(`/api/conversations/${id}`, { title: id, messages: [say(`${id}0`)] });
    await app.patch(`/api/conversations/${id}/draft`, { draft: "half a thought" });
  }
  await app.post("/api/conversations/queue/queue", { message: { content: "waits" } });
  await app.put("/api/conversations/old", { title: "new", messages: [say("old1")] });
  for (const id of ["book", "wholebook"]) await app.put(`/api/lorebooks/${id}`, { name: id, book: { entries: [] } });
  await app.put("/api/presets/calm", { name: "Calm", prompts: [], prompt_order: [] });
  await app.put("/api/connections", { id: "c1", name: "c1", kind: "openai", base_url: "http://127.0.0.1:9/v1" });
  expect((await app.patch("/api/settings", { display_name: "Ann" })).status).toBe(200);
}

async function diagnose(app: TestApp, isDeep: boolean): Promise<Finding[]> {
  const config = { ...app.services.config, dataDir: app.dataDir, port: app.port };
  return await runDoctorChecks({ readConfig: () => config, backupPassphrase: undefined, maxBytes: Infinity, isDeep });
}

const namedIn = (findings: Finding[]) => {
  const { paths = "" } = findings.find(({ code }) => code === "stored_unreadable")?.params ?? {};
  return String(paths).split(", ").filter((path) => path !== "");
};

test("doctor --deep names everything with a flipped bit and nothing else, and so does the pass of a server", async () => {
  await using app = await openTestApp();
  await fill(app);
  expect(namedIn(await diagnose(app, true))).toEqual([]);
  expect((await diagnose(app, true)).map(({ code }) => code)).toContain("stored_ok");
  for (const [, place] of ROWS) flipSealed(app.dataDir, place);
  const expected = ROWS.map(([path]) => path).sort();
  expect(namedIn(await diagnose(app, true)).sort()).toEqual(expected);
  const integrity = await app.services.integrity();
  const { damages, endedMs } = await integrity.checkNow();
  expect(damages.map(({ path }) => path).sort()).toEqual(expected);
  expect(endedMs).not.toBeNull();
  expect(namedIn(await diagnose(app, false)).sort()).toEqual(expected);
});

test("what is met damaged is in the log and the findings at once, and is gone from them once it's replaced", async () => {
  await using app = await openTestApp();
  await fill(app);
  await app.restart(() => {
    for (const [, place] of ROWS) flipSealed(app.dataDir, place);
    return Promise.resolve();
  });
  await app.get("/api/conversations/title");
  await app.get("/api/conversations/text");
  await app.get("/api/lorebooks/book");
  const met = ["conversations/text", "conversations/title", "lorebooks/book"];
  await expect.poll(async () => namedIn(await (await app.get("/api/findings")).json())).toEqual(
    expect.arrayContaining(met),
  );
  const lines = app.logLines.filter((line) => line.includes("Stored data can't be read"));
  for (const path of met) expect(lines.filter((line) => line.includes(`"${path}"`)).length).toBe(1);
  // Nobody asked for these.
  expect(lines.join()).not.toMatch(/conversations\/(draft|queue|old|whole)|wholebook/);
  await app.put("/api/lorebooks/book", { name: "again", book: { entries: [] } });
  expect(namedIn(await (await app.get("/api/findings")).json())).not.toContain("lorebooks/book");
});

test("a pass continues after a restart and forgets what is readable again", async () => {
  await using app = await openTestApp();
  await fill(app);
  flipSealed(app.dataDir, ROWS[5]![1]);
  const before = await (await app.services.integrity()).checkNow();
  expect(before.damages).toMatchObject([{ path: "lorebooks/book", parts: ["document.sealed"] }]);
  await app.restart();
  const integrity = await app.services.integrity();
  expect(integrity.getState().damages).toEqual(before.damages);
  await app.delete("/api/lorebooks/book");
  await app.delete("/api/trash");
  expect((await integrity.checkNow()).damages).toEqual([]);
});

test("cards and personas that can't be read stay in their lists, in doctor and exports, and a version restores them", async () => {
  await using app = await openTestApp();
  for (const description of ["At the mill", "At the lake"]) {
    await app.put("/api/characters/heron", { card: { name: "Heron", description } });
    await app.put("/api/personas/baker", { name: "Baker", description });
  }
  await app.get("/api/characters");
  for (const file of ["characters/heron.json", "personas/baker.json"]) await cutFile(`${app.dataDir}/${file}`);
  await Deno.writeTextFile(`${app.dataDir}/workflows/sketch.json`, '{"1": {');
  const find = async (path: string, id: string) =>
    (await (await app.get(path)).json()).find((each: { id: string }) => each.id === id);
  await expect.poll(() => find("/api/characters", "heron")).toMatchObject({ name: "Heron", unreadable: true });
  expect(await find("/api/characters?include=card", "heron")).toMatchObject({ unreadable: true });
  expect(await find("/api/personas", "baker")).toMatchObject({ name: "Baker", unreadable: true });
  expect(namedIn(await diagnose(app, true)).sort()).toEqual(["characters/heron", "personas/baker", "workflows/sketch"]);
  const files = unzipSync(await (await app.get("/api/export")).bytes());
  expect(JSON.parse(new TextDecoder().decode(files["unreadable.json"]))).toEqual(
    expect.arrayContaining(["characters/heron", "personas/baker", "workflows/sketch"]),
  );
  for (const [path, id] of [["/api/characters", "heron"], ["/api/personas", "baker"]] as const) {
    const [{ n }] = await (await app.get(`${path}/${id}/versions`)).json();
    expect((await app.post(`${path}/${id}/versions/${n}/restore`)).status).toBe(200);
    expect(await find(path, id)).not.toHaveProperty("unreadable");
  }
  await app.delete("/api/image/workflows/sketch");
  expect(namedIn(await diagnose(app, true))).toEqual([]);
});

test("a damaged persona can be deleted and comes back from the trash", async () => {
  await using app = await openTestApp();
  await app.put("/api/personas/baker", { name: "Baker" });
  await Deno.writeTextFile(`${app.dataDir}/personas/baker.json`, "");
  expect((await app.delete("/api/personas/baker")).status).toBe(204);
  const [{ id }] = await (await app.get("/api/trash")).json();
  expect((await app.post(`/api/trash/${id}/restore`)).status).toBe(204);
  expect(await (await app.get("/api/personas")).json()).toMatchObject([{ id: "baker", unreadable: true }]);
});

test("a backup of something damaged says so instead of only being verified", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp({ config: { backupDir: home.file("backups") } });
  await expect.poll(() => app.services.jobs.list().map(({ state }) => state)).toEqual(["done"]);
  await fill(app);
  flipSealed(app.dataDir, ROWS[2]![1]);
  const { id } = await (await app.post("/api/data/backups")).json();
  const job = await app.services.jobs.ended(id);
  expect(job).toMatchObject({ state: "done", detail: { unreadable: 1, unreadable_paths: "conversations/text" } });
  await expect.poll(async () => namedIn(await (await app.get("/api/findings")).json())).toEqual(["conversations/text"]);
});
