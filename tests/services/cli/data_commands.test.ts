import { parse as parseToml } from "smol-toml";
import { expect, test } from "vitest";
import { makeBackup } from "../../../services/backup/backup.ts";
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

/** Makes a backup whose config.toml has three keys that need consent. */
async function makeForeignBackup(dataDir: string, path: string): Promise<void> {
  await (await openTestApp({ dataDir }))[Symbol.asyncDispose]();
  await Deno.writeTextFile(
    `${dataDir}/config.toml`,
    'yt_dlp_path = "/srv/one"\nhost = "0.0.0.0"\npairing = "open"\nlog_level = "warn"\n',
  );
  const storageKey = await Deno.readFile(`${dataDir}/storage-key`);
  await makeBackup({ dataDir, storageKey, path, passphrase: PASSPHRASE, version: "1.0.0", nowMs: Date.now() });
}

const PASSPHRASE = "correct horse battery staple";

test.skipIf(Deno.build.os !== "linux")(
  "the terminal asks for each setting of a backup; no and the end of the input leave it out",
  { timeout: SLOW_MS, tags: ["J13"] },
  async () => {
    await using home = await tempFolder();
    await makeForeignBackup(home.file("foreign"), home.file("a.backup"));
    const { code, stdout } = await runParlor(["restore", home.file("a.backup"), "--data-dir", home.file("data")], {
      env: { PARLOR_BACKUP_PASSPHRASE: PASSPHRASE, NO_COLOR: "1" },
      typed: "y\nn\n\x04",
    });
    expect(code, stdout).toBe(0);
    const asked = [...stdout.matchAll(/The backup's config\.toml sets (.*?)\. Keep this setting\? \[y\/N\]/g)];
    expect(new Set(asked.map(([, line]) => line))).toEqual(
      new Set(['yt_dlp_path = "/srv/one"', 'host = "0.0.0.0"', 'pairing = "open"']),
    );
    expect(stdout).toContain('Kept in config.toml: yt_dlp_path = "/srv/one"');
    expect(stdout).toContain('Left out of config.toml: host = "0.0.0.0"');
    expect(stdout).toContain('Left out of config.toml: pairing = "open"');
    const config = await Deno.readTextFile(home.file("data/config.toml"));
    expect(parseToml(config)).toEqual({ yt_dlp_path: "/srv/one", log_level: "warn" });
  },
);

test("without a terminal, nothing is asked, and only the keys of --accept are kept", {
  timeout: SLOW_MS,
  tags: ["J13"],
}, async () => {
  await using home = await tempFolder();
  await makeForeignBackup(home.file("foreign"), home.file("a.backup"));
  const args = ["restore", home.file("a.backup"), "--data-dir", home.file("data"), "--accept", "host"];
  const { code, stdout, stderr } = await runParlor(args, { env: { PARLOR_BACKUP_PASSPHRASE: PASSPHRASE } });
  expect(code, stderr).toBe(0);
  expect(stdout).not.toContain("Keep this setting?");
  const config = await Deno.readTextFile(home.file("data/config.toml"));
  expect(parseToml(config)).toEqual({ host: "0.0.0.0", log_level: "warn" });
});
