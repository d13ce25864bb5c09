import { expect, test } from "vitest";
import { loadStorageKey, verifyStorageKey } from "../../../services/crypto/storage_key.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { writeFileAtomic } from "../../../services/storage/atomic_file.ts";
import { openDataDir } from "../../../services/storage/data_dir.ts";
import { filesWithText, tempFolder, testDatabase } from "../../helpers/files/storage_folder.ts";
import { slowMigrations } from "../../helpers/processes/storage_migrations.ts";

const SECRETS = ["message: the heron at dusk", "draft: unsent words", "sk-provider-key-12345", "token-abcdef-98765"];

test(
  "leaves no plaintext in the data directory: database, log, copy, files, errors",
  { tags: ["K01"] },
  async () => {
    await using folder = await tempFolder();
    const dataDir = await openDataDir(folder.file("data"));
    const sealer = createSealer(await loadStorageKey({ dataDir: dataDir.path, sealedDataExists: false }));
    const path = dataDir.file("app.db");
    const errors: string[] = [];
    {
      await using database = await testDatabase(path);
      await verifyStorageKey(sealer, database);
      for (const [n, secret] of SECRETS.entries()) {
        for (const version of [1, 2, 3]) { // rewritten, so that freed pages are checked, too
          const place = { table: "setting", id: `s${n}`, field: "sealed", version };
          const sealed = version === 2
            ? await sealer.forPurpose("settings").seal(place, secret.repeat(500))
            : sealer.forPurpose("settings").sealNow(place, secret);
          await database.write([{
            sql: `INSERT INTO setting(key, version, sealed) VALUES(?, ?, ?)
            ON CONFLICT(key) DO UPDATE SET version = excluded.version, sealed = excluded.sealed`,
            params: [place.id, version, sealed],
          }]);
          await writeFileAtomic(dataDir.file(`tokens${n}.json`), sealed);
          sealed[40]! ^= 1;
          await sealer.forPurpose("settings").open(place, sealed).catch((error) => errors.push(Deno.inspect(error)));
        }
        await database.write([{ sql: "DELETE FROM setting WHERE key = ?", params: [`s${n}`] }]);
        await expect(database.write([{ sql: "INSERT INTO setting VALUES(?, 1, ?)", params: [secret, null] }])).rejects
          .toSatisfy((error) => {
            errors.push(Deno.inspect(error));
            return true;
          });
      }
      for (const secret of SECRETS) expect(await filesWithText(dataDir.path, secret)).toEqual([]);
    }
    await (await testDatabase(path, slowMigrations(10))).close();
    for (const secret of SECRETS) {
      expect(await filesWithText(dataDir.path, secret)).toEqual([]);
      expect(errors.join("\n")).not.toContain(secret);
    }
    expect(errors).toHaveLength(SECRETS.length * 4);
    await Deno.writeTextFile(dataDir.file("plain"), SECRETS[0]!);
    expect(await filesWithText(dataDir.path, SECRETS[0]!), "the search finds what is there").toHaveLength(1);
    dataDir.close();
  },
);
