import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { picture } from "../../helpers/files/pictures.ts";
import { readConversation, say } from "../../helpers/app/stored_chat.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { MIGRATIONS } from "../../../services/storage/database/migrations.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

const exists = (path: string) => Deno.stat(path).then(() => true, () => false);

test.each(["missing", "empty"])(
  "refuses to start on a data folder whose database is %s, and says how to continue",
  async (state) => {
    await using folder = await tempFolder();
    const dataDir = folder.file("data");
    const path = `${dataDir}/app.db`;
    {
      await using app = await openTestApp({ dataDir });
      await app.put("/api/conversations/c1", { messages: [say("m1")] });
      await app.put("/api/attachments/cat.png", picture(), { headers: { "Content-Type": "image/png" } });
    }
    await Deno.rename(path, folder.file("app.db"));
    if (state === "empty") await Deno.writeFile(path, new Uint8Array());
    for (const _ of [1, 2]) {
      await expect(openTestApp({ dataDir })).rejects.toMatchObject({
        code: "internal",
        message: expect.stringMatching(
          new RegExp(`is ${state}, but .*\\(attachments, .* Restore app.db, or restore a backup`),
        ),
      });
      expect(await exists(path)).toBe(state === "empty");
    }
    await Deno.rename(folder.file("app.db"), path);
    await using app = await openTestApp({ dataDir });
    expect((await readConversation(app)).messages).toHaveLength(1);
  },
);

test("starts on a data folder with only cards and models, and after an interrupted first start", async () => {
  await using folder = await tempFolder();
  const dataDir = folder.file("data");
  await Deno.mkdir(`${dataDir}/models`, { recursive: true, mode: 0o700 });
  await Deno.writeTextFile(`${dataDir}/models/model.gguf`, "GGUF");
  await Deno.chmod(dataDir, 0o700);
  {
    await using _ = await openTestApp({ dataDir });
  }
  await Deno.writeFile(`${dataDir}/app.db`, new Uint8Array());
  await Deno.remove(`${dataDir}/app.db-wal`).catch(() => {});
  await Deno.remove(`${dataDir}/database-id`);
  await using app = await openTestApp({ dataDir });
  expect((await app.get("/api/conversations")).status).toBe(200);
});

const LOSSES: [string, (path: string) => void, RegExp][] = [
  ["missing", () => {}, /is missing, but .*\(database-id\).* Restore app\.db, or restore a backup/],
  ["a page of zeros", (path) => Deno.writeFileSync(path, new Uint8Array(4096)), /is empty, but .*\(database-id\)/],
  [
    "without tables",
    (path) => createDatabase(path, "CREATE TABLE x (y); DROP TABLE x"),
    /is empty, but .*\(database-id\)/,
  ],
  [
    "without tables, but of this schema version",
    (path) => createDatabase(path, `PRAGMA user_version = ${MIGRATIONS.at(-1)!.version}`),
    /has lost its tables.* Restore app\.db, or restore a backup/,
  ],
  [
    "with empty tables",
    (path) =>
      createDatabase(
        path,
        `${MIGRATIONS.map(({ sql }) => sql).join(";")}; PRAGMA user_version = ${MIGRATIONS.at(-1)!.version}`,
      ),
    /has lost its content.* Restore app\.db, or restore a backup/,
  ],
];

function createDatabase(path: string, sql: string): void {
  using database = new DatabaseSync(path);
  database.exec(sql);
}

test.each(LOSSES)("refuses to start if the database of a household with only chats is %s", { tags: ["J14"] }, async (
  _,
  lose,
  message,
) => {
  await using folder = await tempFolder();
  const dataDir = folder.file("data");
  const path = `${dataDir}/app.db`;
  {
    await using app = await openTestApp({ dataDir });
    await app.put("/api/conversations/c1", { messages: [say("m1")] });
  }
  await Deno.rename(path, folder.file("app.db"));
  lose(path);
  for (const __ of [1, 2]) {
    await expect(openTestApp({ dataDir })).rejects.toMatchObject({
      code: "internal",
      message: expect.stringMatching(message),
    });
  }
  for (const ending of ["", "-wal", "-shm"]) await Deno.remove(path + ending).catch(() => {});
  await Deno.rename(folder.file("app.db"), path);
  await using app = await openTestApp({ dataDir });
  expect((await readConversation(app)).messages).toHaveLength(1);
});

test("refuses the database of another installation with the same key, and takes it after its ID is deleted", {
  tags: ["J14"],
}, async () => {
  await using folder = await tempFolder();
  const [one, other] = [folder.file("one"), folder.file("other")];
  {
    await using app = await openTestApp({ dataDir: one });
    await app.put("/api/conversations/c1", { messages: [say("m1")] });
  }
  await Deno.mkdir(other, { mode: 0o700 });
  await Deno.copyFile(`${one}/storage-key`, `${other}/storage-key`);
  {
    await using __ = await openTestApp({ dataDir: other });
  }
  await Deno.copyFile(`${one}/app.db`, `${other}/app.db`);
  await expect(openTestApp({ dataDir: other })).rejects.toThrow(/belongs to another installation.*"\S+database-id"/);
  await Deno.remove(`${other}/database-id`);
  await using app = await openTestApp({ dataDir: other });
  expect((await readConversation(app)).messages).toHaveLength(1);
});
