import { expect, test } from "vitest";
import { openDataDir } from "../../../../services/storage/data_dir.ts";
import { readFileIfExists, writeFileAtomic } from "../../../../services/storage/atomic_file.ts";
import { runChild } from "../../../helpers/processes/storage_child.ts";
import { filesBelow, tempFolder, testDatabase } from "../../../helpers/files/storage_folder.ts";
import { fill, smallFileSystem } from "../../../helpers/processes/storage_small_disk.ts";

const insert = (id: string, byteLength: number) => ({
  sql: "INSERT INTO draft(conversation_id, version, sealed) VALUES(?, 1, ?)",
  params: [id, new Uint8Array(byteLength)],
});

test(
  "fails every write with storage_full on a full file system, keeps old data, and writes again once there is space",
  {
    tags: ["D03"],
  },
  async (context) => {
    await using folder = await tempFolder();
    await using small = await smallFileSystem(folder.file("data"));
    if (small === undefined) {
      console.warn("SKIPPED D03 on a real full file system: only root on Linux can mount one");
      return context.skip();
    }
    const dataDir = await openDataDir(folder.file("data"));
    const database = await testDatabase(dataDir.file("app.db"));
    try {
      await database.write([insert("old", 1000)]);
      await writeFileAtomic(dataDir.file("tokens.json"), "old");
      await fill(dataDir.file("filler"));

      const outcomes = await Promise.allSettled([
        database.write([insert("a", 300_000)]),
        database.write([insert("b", 300_000), insert("c", 10)]),
        writeFileAtomic(dataDir.file("tokens.json"), "new".repeat(10_000)),
      ]);
      expect(outcomes.map((outcome) => outcome.status === "rejected" ? outcome.reason.code : "written"))
        .toEqual(["storage_full", "storage_full", "storage_full"]);
      expect(database.all("SELECT conversation_id AS id FROM draft")).toEqual([{ id: "old" }]);
      expect(await Deno.readTextFile(dataDir.file("tokens.json"))).toBe("old");
      expect((await filesBelow(dataDir.path)).filter((path) => path.endsWith(".tmp"))).toEqual([]);

      await Deno.remove(dataDir.file("filler"));
      await database.write([insert("new", 300_000)]);
      await writeFileAtomic(dataDir.file("tokens.json"), "new");
      expect(database.all("SELECT conversation_id AS id FROM draft ORDER BY id")).toEqual([{ id: "new" }, {
        id: "old",
      }]);
      expect(await Deno.readTextFile(dataDir.file("tokens.json"))).toBe("new");
      expect(database.get("PRAGMA integrity_check")).toEqual({ integrity_check: "ok" });
    } finally {
      await database.close();
      dataDir.close();
    }
  },
);

test(
  "a database at its page limit refuses a large unit and accepts small ones of the same group",
  { tags: ["D03"] },
  async () => {
    await using folder = await tempFolder();
    await using database = await testDatabase(folder.file("app.db"));
    await database.write([insert("old", 1000)]);
    const { pages } = database.get<{ pages: number }>("SELECT page_count AS pages FROM pragma_page_count")!;
    await database.write([{ sql: `PRAGMA max_page_count = ${pages + 5}` }]);

    const outcomes = await Promise.allSettled([
      database.write([insert("large", 1_000_000)]),
      database.write([insert("small", 10)]),
      database.write([insert("first half", 10), insert("second half", 1_000_000)]),
    ]);
    expect(outcomes.map((outcome) => outcome.status === "rejected" ? outcome.reason.code : "written"))
      .toEqual(["storage_full", "written", "storage_full"]);
    expect(database.all("SELECT conversation_id AS id FROM draft ORDER BY id")).toEqual([{ id: "old" }, {
      id: "small",
    }]);

    await database.write([{ sql: "PRAGMA max_page_count = 1000000" }]);
    await database.write([insert("large", 1_000_000)]);
    expect(database.get("SELECT length(sealed) AS size FROM draft WHERE conversation_id = 'large'"))
      .toEqual({ size: 1_000_000 });
  },
);

test.skipIf(Deno.build.os === "windows")(
  "a file that exceeds the size limit keeps its old content and leaves no temporary file",
  { tags: ["D03"] },
  async () => {
    await using folder = await tempFolder();
    const path = folder.file("tokens.json");
    // ulimit counts blocks of 512 or 1024 bytes; the signal that comes with the limit is ignored as on a full disk.
    const prefix = ["sh", "-c", 'trap "" XFSZ; ulimit -f 512; exec "$0" "$@"'];
    const lines = await runChild("storage_limit_child.ts", [path, "1000", "5000000", "2000"], { prefix });
    expect(lines).toEqual(["written", "storage_full", "written"]);
    expect((await Deno.stat(path)).size).toBe(2000);
    expect(await filesBelow(folder.path)).toEqual([path]);
  },
);

test.each(["write", "sync", "rename"] as const)(
  "reports an I/O error on %s to the caller, and the next write works",
  { tags: ["D03"] },
  async (step) => {
    await using folder = await tempFolder();
    const path = folder.file("credentials.json");
    await writeFileAtomic(path, "old");
    const failure = () => Promise.reject(Object.assign(new Error("Input/output error (os error 5)"), { code: "EIO" }));
    const { rename } = Deno;
    const { sync, write } = Deno.FsFile.prototype;
    try {
      if (step === "write") Deno.FsFile.prototype.write = failure;
      if (step === "sync") Deno.FsFile.prototype.sync = failure;
      if (step === "rename") Object.defineProperty(Deno, "rename", { value: failure, configurable: true });
      await expect(writeFileAtomic(path, "new")).rejects.toMatchObject({
        code: "internal",
        message: `Can't write "${path}": Input/output error (os error 5)`,
      });
    } finally {
      Object.assign(Deno.FsFile.prototype, { sync, write });
      Object.defineProperty(Deno, "rename", { value: rename, configurable: true });
    }
    expect(new TextDecoder().decode(await readFileIfExists(path))).toBe("old");
    expect(await filesBelow(folder.path)).toEqual([path]);
    await writeFileAtomic(path, "new");
    expect(new TextDecoder().decode(await readFileIfExists(path))).toBe("new");
  },
);
