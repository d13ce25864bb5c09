import { expect, test } from "vitest";
import { picture } from "../../helpers/files/pictures.ts";
import { readConversation, say } from "../../helpers/app/stored_chat.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
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
          new RegExp(`is ${state}, but .*\\(attachments\\).* Restore app.db, or restore a backup`),
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
  await using app = await openTestApp({ dataDir });
  expect((await app.get("/api/conversations")).status).toBe(200);
});
