import { expect, test } from "vitest";
import { IMPORT_HELP } from "../../../services/cli/data_commands.ts";
import { IMPORT_KINDS } from "../../../services/import_export/import_item.ts";
import { runParlor } from "../../helpers/processes/parlor_command.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { tavernFolder } from "../../helpers/files/tavern_folder.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

/** Each command starts the whole program. */
const SLOW_MS = 180_000;

test("parlor import imports a folder and prints what it skipped", { timeout: SLOW_MS }, async () => {
  await using home = await tempFolder();
  const tavern = home.file("tavern");
  for (const [path, bytes] of Object.entries(tavernFolder())) {
    const file = `${tavern}/${path}`;
    await Deno.mkdir(file.slice(0, file.lastIndexOf("/")), { recursive: true });
    await Deno.writeFile(file, bytes);
  }
  const dataDir = home.file("data");
  const run = (...more: string[]) => runParlor(["import", "sillytavern", tavern, "--data-dir", dataDir, ...more]);

  const trial = await run("--dry-run");
  expect(trial, trial.stderr).toMatchObject({ code: 0 });
  expect(trial.stdout).toContain("nothing was changed");
  const done = await run();
  expect(done, done.stderr).toMatchObject({ code: 0 });
  expect(done.stdout).toMatch(/conversation\s+2 new\n/);
  expect(done.stdout).toMatch(/character\s+2 new\n/);
  expect(done.stdout).toContain("left out  backgrounds (1)");

  await using app = await openTestApp({ dataDir });
  expect(await (await app.get("/api/conversations")).json()).toHaveLength(2);
  const besides = await run();
  expect(besides).toMatchObject({ code: 1 });
  expect(besides.stderr).toMatch(/^parlor: Can't lock/);
});

test("an unknown kind is rejected before anything is opened", { timeout: SLOW_MS }, async () => {
  const end = await runParlor(["import", "stilton", "/nowhere"]);
  expect(end.code).toBe(1);
  expect(end.stderr).toContain(`Can't import "stilton": the kinds are sillytavern`);
});

test("the help lists every kind with its files", () => {
  for (const kind of IMPORT_KINDS) expect(IMPORT_HELP).toMatch(new RegExp(`^ +${kind} +\\S`, "m"));
});
