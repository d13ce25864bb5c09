/** A database that was set back, lost its log, or was removed while the server runs. */
import { expect, test } from "vitest";
import { runDoctorChecks } from "../../../services/diagnostics/doctor.ts";
import { say } from "../../helpers/app/stored_chat.ts";
import { startChildServer } from "../../helpers/app/child_server.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

const CODES = ["database_lost", "database_older", "database_log_missing"];

async function diagnose(app: TestApp): Promise<string[]> {
  const config = { ...app.services.config, dataDir: app.dataDir, port: app.port };
  const found = await runDoctorChecks({ readConfig: () => config, backupPassphrase: undefined, maxBytes: Infinity });
  return found.map(({ code }) => code).filter((code) => CODES.includes(code));
}

const listFindings = async (app: TestApp) => {
  const found: { code: string }[] = await (await app.get("/api/findings")).json();
  return found.map(({ code }) => code).filter((code) => CODES.includes(code));
};

test("an older copy of app.db is noticed at the start, with the number of missing changes, in doctor and on the page", async () => {
  await using app = await openTestApp();
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0")] });
  const path = `${app.dataDir}/app.db`;
  await app.restart();
  await app.restart(() => Deno.copyFile(path, `${app.dataDir}/.older`));
  for (let n = 0; n < 5; n++) await app.patch("/api/conversations/c1/draft", { draft: `thought ${n}` });
  expect(await diagnose(app)).toEqual([]);
  await app.restart(() => Deno.rename(`${app.dataDir}/.older`, path));
  const line = app.logLines.find((each) => each.includes("older than at the last run"));
  expect(Number(JSON.parse(line!).writes)).toBeGreaterThanOrEqual(5);
  expect(await diagnose(app)).toEqual(["database_older"]);
  expect(await listFindings(app)).toEqual(["database_older"]);
  // It's said once, and still known later.
  await app.restart();
  expect(app.logLines.filter((each) => each.includes("older than at the last run")).length).toBe(1);
  expect(await diagnose(app)).toEqual(["database_older"]);
});

test("a stop and a start lose nothing", async () => {
  await using app = await openTestApp();
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0")] });
  await app.restart();
  await app.restart();
  expect(app.logLines.join()).not.toMatch(/older than at the last run|log of its database is missing/);
  expect(await diagnose(app)).toEqual([]);
});

test("a database whose log was removed after a kill is noticed, and one with its log isn't", async () => {
  await using folder = await tempFolder();
  const write = async (signal: Deno.Signal = "SIGKILL") => {
    await using server = await startChildServer({ dataDir: folder.path });
    await server.json("PUT", "/api/conversations/c1", { title: "The pond", messages: [say("m0")] });
    await server.kill(signal);
    return server.logs.join("\n");
  };
  expect(await write("SIGTERM")).not.toContain("log of its database");
  expect(await write()).not.toContain("log of its database");
  await Deno.remove(folder.file("app.db-wal"));
  expect(await write()).toMatch(/log of its database is missing|older than at the last run/);
});

test("a database that was removed or replaced under the running server is said", async () => {
  await using app = await openTestApp();
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0")] });
  const path = `${app.dataDir}/app.db`;
  expect(await listFindings(app)).toEqual([]);
  await Deno.rename(path, `${path}.away`);
  expect(await listFindings(app)).toEqual(["database_lost"]);
  expect(await diagnose(app)).toEqual(["database_lost"]);
  expect(app.logLines.filter((line) => line.includes("removed or replaced while the server runs")).length).toBe(1);
  await Deno.rename(`${path}.away`, path);
  expect(await listFindings(app)).toEqual([]);
});
