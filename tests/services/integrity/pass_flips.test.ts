/** Single flipped bits, anywhere in sealed values and files: each is found by one pass, and a backup heals it. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { expect, test } from "vitest";
import { makeBackup } from "../../../services/backup/backup.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { planHealing } from "../../../services/integrity/heal_plan.ts";
import { planManifest } from "../../../services/integrity/manifest.ts";
import { checkAll } from "../../../services/integrity/pass.ts";
import { getPathSql, readColumns, TABLES } from "../../../services/integrity/tables.ts";
import { openDatabase } from "../../../services/storage/database/database.ts";
import { fillHouse } from "../../helpers/app/full_house.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { openStoredDatabase } from "../../helpers/files/stored_database.ts";

const IS_LONG = Deno.env.has("LONG_TESTS");
const [ROW_FLIPS, FILE_FLIPS] = IS_LONG ? [140, 60] : [28, 12];

interface Place {
  path: string;
  table: string;
  column: string;
  where: string;
  key: SQLInputValue[];
  bytes: number;
}

function listPlaces(database: DatabaseSync): Place[] {
  return Object.keys(TABLES).flatMap((table) => {
    const { key, sealed } = readColumns(database, table);
    return sealed.flatMap((column) =>
      database.prepare(`SELECT ${key}, length(${column}) AS bytes, ${getPathSql(table)} AS "item path" FROM ${table}`)
        .all().map((row) => ({
          path: String(row["item path"]),
          table,
          column,
          where: key.map((name) => `${name} = ?`).join(" AND "),
          key: key.map((name) => row[name] as SQLInputValue),
          bytes: Number(row.bytes),
        }))
    );
  });
}

test("a pass finds every flipped bit in sealed rows and files, and a backup has what heals it", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp();
  await fillHouse(app);
  const { dataDir } = app;
  let storageKey!: Uint8Array;
  await app.restart(async () => {
    storageKey = await Deno.readFile(`${dataDir}/storage-key`);
    const sealer = createSealer(storageKey);
    const backup = home.file("house.backup");
    const made = await makeBackup({ dataDir, storageKey, path: backup, version: "0.0.0", nowMs: Date.now() });
    expect(made.unreadable).toEqual([]);
    const findDamage = async () => {
      const found: string[] = [];
      for await (const { damages } of checkAll({ dataDir, sealer })) found.push(...damages.map(({ path }) => path));
      return [...new Set(found)];
    };
    const heal = async (path: string) =>
      await planHealing({ dataDir, sealer, storageKey, paths: [path], backups: [backup], acceptsOlder: false });

    const writer = await openDatabase({
      path: `${dataDir}/app.db`,
      planManifest: (connection) => planManifest(connection, sealer),
    });
    using database = openStoredDatabase(dataDir);
    const places = listPlaces(database);
    expect(new Set(places.map(({ table }) => table)).size).toBeGreaterThan(7);
    for (let n = 0; n < ROW_FLIPS; n++) {
      const place = places[Math.floor(Math.random() * places.length)]!;
      const { table, column, where, key, bytes } = place;
      const read = () =>
        database.prepare(`SELECT ${column} AS sealed FROM ${table} WHERE ${where}`).get(...key)!.sealed;
      const before = read() as Uint8Array;
      const after = before.slice();
      const at = Math.floor(Math.random() * bytes);
      after[at]! ^= 1 << (n % 8);
      database.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${where}`).run(after, ...key);
      const said = `${table}.${column} of ${key.join("/")}, byte ${at} of ${bytes}`;
      expect(await findDamage(), said).toEqual([place.path]);
      const [plan] = await heal(place.path);
      expect(plan?.state, said).toBe("done");
      await writer.write(plan!.statements);
      expect(read(), said).toEqual(before);
    }
    expect(await findDamage()).toEqual([]);
    await writer.close();

    const files: string[] = [];
    for (const folder of ["attachments", "trash"]) {
      for await (const { name } of Deno.readDir(`${dataDir}/${folder}`)) files.push(`${dataDir}/${folder}/${name}`);
    }
    for (let n = 0; n < FILE_FLIPS; n++) {
      const file = files[Math.floor(Math.random() * files.length)]!;
      const before = await Deno.readFile(file);
      const after = before.slice();
      after[Math.floor(Math.random() * before.length)]! ^= 1 << (n % 8);
      await Deno.writeFile(file, after);
      const [path, ...others] = await findDamage();
      expect([path === undefined, others], file).toEqual([false, []]);
      expect((await heal(path!)).map(({ state }) => state), file).toEqual(["done"]);
      expect(await Deno.readFile(file), file).toEqual(before);
    }
    expect(await findDamage()).toEqual([]);
  });
  expect((await app.get("/api/conversations/c1")).status).toBe(200);
}, 600_000);
