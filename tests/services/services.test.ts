import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog } from "../../services/log.ts";
import { openServices } from "../../services/services.ts";
import { testConfig } from "../helpers/app/test_app.ts";

const log = createLog({ level: "error", asJson: true, write: () => {}, now: Date.now });
let dataDir: string;

beforeEach(async () => {
  dataDir = await Deno.makeTempDir({ prefix: "parlor-test-" });
});
afterEach(() => Deno.remove(dataDir, { recursive: true }));

async function openAndClose(): Promise<void> {
  await (await openServices(testConfig(dataDir), { log })).close();
}

test("a wrong or missing storage key stops startup, and restoring the right key makes everything readable again", {
  tags: ["K05"],
}, async () => {
  await openAndClose();
  const path = `${dataDir}/storage-key`;
  const key = await Deno.readFile(path);
  await Deno.writeFile(path, key.map((byte) => byte ^ 1));
  await expect(openAndClose()).rejects.toThrow("encrypted with another key");
  await Deno.remove(path);
  await expect(openAndClose()).rejects.toThrow(/storage.key/i);
  await expect(Deno.stat(path)).rejects.toThrow(Deno.errors.NotFound);
  await Deno.writeFile(path, key, { mode: 0o600 });
  await openAndClose();
});

test("a failed startup releases everything, so that the next one can succeed", async () => {
  await openAndClose();
  await Deno.writeFile(`${dataDir}/storage-key`, new Uint8Array(3));
  await expect(openAndClose()).rejects.toThrow();
  for (const name of ["app.db", "database-id", "storage-key"]) await Deno.remove(`${dataDir}/${name}`);
  await openAndClose();
});

test("only the owner can access files in the data folder", { tags: ["K08"] }, async () => {
  const old = Deno.umask(0);
  try {
    const services = await openServices(testConfig(`${dataDir}/new`), { log });
    await (await services.characters()).characters.list({}); // the built-in one is added during that
    const modes: Record<string, { mode: number; wanted: number }> = {};
    const walk = async (path: string) => {
      for await (const entry of Deno.readDir(path)) {
        const info = await Deno.stat(`${path}/${entry.name}`).catch(() => undefined);
        if (info === undefined) continue; // A file that was only being written.
        modes[entry.name] = { mode: info.mode! & 0o777, wanted: entry.isDirectory ? 0o700 : 0o600 };
        if (entry.isDirectory) await walk(`${path}/${entry.name}`);
      }
    };
    await walk(dataDir);
    await services.close();
    expect(Object.keys(modes)).toEqual(expect.arrayContaining(["new", "replies", "app.db", "storage-key", "pim.png"]));
    for (const [name, { mode, wanted }] of Object.entries(modes)) expect(mode, name).toBe(wanted);
  } finally {
    Deno.umask(old);
  }
});
