import { expect, test } from "vitest";
import { startChildServer } from "../helpers/app/child_server.ts";
import { runParlor } from "../helpers/processes/parlor_command.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";

/** Servers and commands that start, one after another, and what each may take on a busy machine. */
const [STARTS, START_MS] = [15, 40_000];
const PASSPHRASE = { PARLOR_BACKUP_PASSPHRASE: "a horse and a battery" };

test(
  "parlor key: exported, lost, imported, rotated; the data stays readable, and a foreign key is rejected",
  async () => {
    await using folder = await tempFolder();
    const [data, file, plain] = [folder.file("data"), folder.file("key.json"), folder.file("key.txt")];
    const key = (args: string[], env: Record<string, string> = PASSPHRASE) =>
      runParlor(["key", ...args, "--data-dir", data], { env });
    const expectDraft = async () => {
      await using server = await startChildServer({ dataDir: data });
      expect(await server.json("GET", "/api/conversations/c1")).toMatchObject({ title: "Kept" });
    };
    {
      await using server = await startChildServer({ dataDir: data });
      await server.json("PUT", "/api/conversations/c1", { title: "Kept", messages: [] });
      expect(await key(["export", file])).toMatchObject({ code: 0, stderr: "" });
      expect(await key(["rotate"])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("another Parlor process"),
      });
      await server.kill("SIGTERM");
    }
    expect(await key(["export", plain, "--plain"])).toMatchObject({ code: 0 });
    expect(await Deno.readTextFile(plain)).toMatch(/^[0-9a-f]{64}\n$/);
    expect((await Deno.stat(plain)).mode! & 0o777).toBe(0o600);
    expect(await key(["export", plain, "--plain"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("already exists"),
    });
    expect(await Deno.readTextFile(file)).not.toContain((await Deno.readTextFile(plain)).trim());

    await Deno.remove(`${data}/storage-key`);
    await Deno.writeTextFile(folder.file("other"), "ab".repeat(32));
    expect(await key(["import", folder.file("other")])).toMatchObject({
      code: 1,
      stderr: "parlor: Can't import the key: the data was sealed with another key\n",
    });
    expect(await key(["import", file], { PARLOR_BACKUP_PASSPHRASE: "another one" })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("Wrong passphrase"),
    });
    expect(await key(["import", file])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Imported the storage key into"),
    });
    expect(await key(["import", plain])).toMatchObject({ code: 0, stdout: expect.stringContaining("already") });
    expect((await Deno.stat(`${data}/storage-key`)).mode! & 0o777).toBe(0o600);
    await expectDraft();

    expect(await key(["rotate"])).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringContaining("create new ones"),
    });
    await expectDraft();
    expect(await key(["import", plain])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("already has a different one"),
    });
    expect(await key(["turn"])).toMatchObject({ code: 1, stderr: expect.stringContaining("parlor key --help") });
  },
  STARTS * START_MS,
);
