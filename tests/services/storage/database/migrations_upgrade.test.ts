/**
 * Databases of earlier versions, opened by this one.
 *
 * @slow A folder of every released version is upgraded.
 */
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createSealer } from "../../../../services/crypto/sealer.ts";
import type { Damage } from "../../../../services/integrity/damage.ts";
import { checkAll } from "../../../../services/integrity/pass.ts";
import { MIGRATIONS } from "../../../../services/storage/database/migrations.ts";
import { until } from "../../../helpers/app/chat_client.ts";
import { type ChildServer, startChildServer } from "../../../helpers/app/child_server.ts";
import { FIXTURE_FOLDER, FIXTURE_KEY, schemaOf } from "../../../helpers/app/schema_fixtures.ts";
import { tempFolder } from "../../../helpers/files/storage_folder.ts";

const NEWEST = MIGRATIONS.at(-1)!.version;
const KEPT = new Set(Array.from(Deno.readDirSync(FIXTURE_FOLDER), ({ name }) => Number.parseInt(name)));
const VERSIONS = MIGRATIONS.map(({ version }) => version).filter((version) => version < NEWEST || KEPT.has(version));

async function fixture(version: number): Promise<string> {
  return await Deno.readTextFile(new URL(`${version}.sql`, FIXTURE_FOLDER)).catch(() => {
    throw new Error(`There is no fixture for schema ${version}; deno task fixture writes it`);
  });
}

async function untilEnded(server: ChildServer): Promise<void> {
  await until(
    async () => (await server.json<unknown[]>("GET", "/api/chat/replies")).length === 0,
    "the reply has ended",
  );
}

describe.each(VERSIONS)("schema %i", (version) => {
  test("the migrations still produce the released schema", async () => {
    using released = new DatabaseSync(":memory:");
    released.exec(await fixture(version));
    using made = new DatabaseSync(":memory:");
    for (const migration of MIGRATIONS.filter((step) => step.version <= version)) made.exec(migration.sql);
    expect(schemaOf(made)).toEqual(schemaOf(released));
  });

  test(
    "the server upgrades a released database, reads its data, and keeps a copy for the old version",
    { tags: ["D05"], timeout: 180_000 },
    async () => {
      await using folder = await tempFolder();
      const path = folder.file("app.db");
      await Deno.writeFile(folder.file("storage-key"), FIXTURE_KEY, { mode: 0o600 });
      const file = new DatabaseSync(path);
      file.exec(await fixture(version));
      file.close();
      {
        await using server = await startChildServer({ dataDir: folder.path });
        expect(await server.json("GET", "/api/conversations/c1")).toMatchObject({
          title: "Kept since then",
          draft: "half a thought",
          messages: [{ id: "m1", content: "Is anybody there?" }, { id: "m2", content: "Since the first schema." }],
        });
        // Summaries of earlier versions don't have the time of the last message.
        const { items } = await server.json<{ items: unknown[] }>("GET", "/api/conversations?view=summary");
        expect(items).toMatchObject([{ id: "c1", last_message_at: "2026-01-01T00:00:00.000Z" }]);
        const connections = await server.json("GET", "/api/connections");
        expect(connections).toContainEqual(expect.objectContaining({ id: "kept", has_key: true }));
        await server.json("PATCH", "/api/conversations/c1/messages/m2", { content: "And still." });
        // Nothing responds at that address, but the version is stored, and the old messages stay with the other one.
        const edit = { conversation_id: "c1", user_message_id: "m1", assistant_message_id: "b1", action: "edit" };
        const body = { ...edit, messages: [{ role: "user", content: "Another question" }] };
        await (await server.request("POST", "/api/chat", body)).body?.cancel();
        const versions = await server.json("GET", "/api/conversations/c1/messages/m1/variants");
        expect(versions).toMatchObject([{ content: "Is anybody there?", message_count: 1 }, { message_count: 1 }]);
        await untilEnded(server);
        await server.json("PATCH", "/api/conversations/c1/messages/m1", { active_variant: 0 });
        expect(await server.json("GET", "/api/conversations/c1")).toMatchObject({
          messages: [{ id: "m1", content: "Is anybody there?" }, { id: "m2", content: "And still." }],
        });
        await server.kill("SIGTERM");
      }
      const damages: Damage[] = [];
      const data = { dataDir: folder.path, sealer: createSealer(FIXTURE_KEY) };
      for await (const step of checkAll(data)) damages.push(...step.damages);
      expect(damages).toEqual([]);
      using upgraded = new DatabaseSync(path, { readOnly: true });
      expect(upgraded.prepare("SELECT row_count FROM manifest WHERE path = 'conversations/c1'").get()?.row_count)
        .toBeGreaterThan(3);
      expect(upgraded.prepare("PRAGMA user_version").get()).toEqual({ user_version: NEWEST });
      using fresh = new DatabaseSync(":memory:");
      for (const { sql } of MIGRATIONS) fresh.exec(sql);
      expect(schemaOf(upgraded)).toEqual(schemaOf(fresh));
      if (version === NEWEST) return;
      using copy = new DatabaseSync(`${path}.schema-${version}`, { readOnly: true });
      expect(copy.prepare("PRAGMA user_version").get()).toEqual({ user_version: version });
      expect(copy.prepare("SELECT count(*) AS n FROM block").get()).toEqual({ n: 1 });
    },
  );
});
