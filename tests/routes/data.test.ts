import { expect, test } from "vitest";
import { openTestApp } from "../helpers/app/test_app.ts";

test("disk usage is listed by kind of data, and the backups in their folder, newest first", async () => {
  const backupDir = await Deno.makeTempDir({ prefix: "parlor-backups-" });
  await Deno.writeTextFile(`${backupDir}/parlor-2026-01-01T000000Z.backup`, "older");
  await Deno.writeTextFile(`${backupDir}/notes.txt`, "not ours");
  await Deno.utime(`${backupDir}/parlor-2026-01-01T000000Z.backup`, 1, Date.parse("2026-01-01T00:00:00Z") / 1000);
  await using app = await openTestApp();
  await Deno.mkdir(`${app.dataDir}/models`, { recursive: true });
  await Deno.writeFile(`${app.dataDir}/models/big.gguf`, new Uint8Array(5_000_000));
  const bare = await (await app.get("/api/data")).json();
  expect(bare).toMatchObject({ backup_dir: null, backups: [] });
  const sizes = Object.fromEntries(
    bare.used.map(({ what, size_bytes }: { what: string; size_bytes: number }) => [what, size_bytes]),
  );
  expect(sizes.models).toBe(5_000_000);
  expect(sizes.chats).toBeGreaterThan(4096);

  const backed = await openTestApp({ config: { backupDir } });
  const report = await (await backed.get("/api/data")).json();
  expect(report.backup_dir).toBe(backupDir);
  expect(report.backups).toContainEqual({
    name: "parlor-2026-01-01T000000Z.backup",
    size_bytes: 5,
    made_at: "2026-01-01T00:00:00.000Z",
  });
  expect(JSON.stringify(report.backups)).not.toContain("notes.txt");
  await backed[Symbol.asyncDispose]();
  await Deno.remove(backupDir, { recursive: true });
});

test("returns the findings of doctor: an open address is a problem with a remedy", async () => {
  await using app = await openTestApp();
  if (Deno.build.os !== "windows") await Deno.chmod(`${app.dataDir}/storage-key`, 0o644);
  const findings = await (await app.get("/api/findings")).json();
  expect(findings).toContainEqual(expect.objectContaining({ level: "ok", about: "The configuration is valid" }));
  const open = findings.find(({ about }: { about: string }) => about.includes("storage-key"));
  if (Deno.build.os !== "windows") {
    expect(open).toMatchObject({ level: "problem", remedy: expect.stringContaining("chmod 0600") });
    // A readable key file isn't a reason to replace the data.
    expect(JSON.stringify(findings)).not.toContain("Restore a backup");
  }
  expect((await app.get("/healthz")).status).toBe(204);
});
