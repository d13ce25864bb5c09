/** restic, rclone and fail2ban with the commands of the guides. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "smol-toml";
import { enrol } from "../helpers/app/enrolled.ts";
import { openTestApp } from "../helpers/app/test_app.ts";
import { openGatedApp, Visitor } from "../helpers/app/visitor.ts";
import { readTexts } from "../helpers/files/doc_blocks.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";
import { realPart } from "./helpers/real_part.ts";

const OPERATIONS = realPart("REAL_OPERATIONS_DIR", "operations.sh");
const BIN = `${OPERATIONS}/unpacked/usr/bin`;

/** The arguments after the program in the guide's `backup_after`, with folders of the test in place of the guide's. */
async function afterBackup(program: string, folders: Record<string, string>): Promise<string[]> {
  const commands = (await readTexts("docs/guide/backup.md", "toml")).map((block) =>
    parse(block).backup_after as string[]
  );
  const [, ...args] = commands.find(([first]) => first === program)!;
  return [`${BIN}/${program}`, ...args.map((arg) => folders[arg] ?? arg)];
}

async function run(program: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program, { args, env }).output();
  expect([success, new TextDecoder().decode(success ? undefined : stderr)]).toEqual([true, ""]);
  return new TextDecoder().decode(stdout);
}

/** Starts a server, which creates its first backup at once and then runs a command. Returns the path of the backup. */
async function backUp(folder: string, command: string[]): Promise<string> {
  await using app = await openTestApp({ config: { backupDir: folder, backupAfter: command } });
  const jobs = () => app.services.jobs.list().filter(({ kind }) => kind === "backup");
  await expect.poll(() => jobs().map(({ state }) => state)).not.toEqual([]);
  const { state, error } = await app.services.jobs.ended(jobs()[0]!.id);
  expect([state, error]).toEqual(["done", undefined]);
  const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  expect(names).toEqual([expect.stringMatching(/\.backup$/)]);
  return `${folder}/${names[0]}`;
}

describe.skipIf(OPERATIONS === undefined)("as the guides print it", () => {
  let home: Awaited<ReturnType<typeof tempFolder>>;
  beforeAll(async () => {
    home = await tempFolder();
    // Where both have their settings and caches.
    Deno.env.set("RCLONE_CONFIG", home.file("rclone.conf"));
    Deno.env.set("RESTIC_CACHE_DIR", home.file("cache"));
  });
  afterAll(async () => {
    Deno.env.delete("RCLONE_CONFIG");
    Deno.env.delete("RESTIC_CACHE_DIR");
    await home?.[Symbol.asyncDispose]();
  });

  test("restic stores the backup in a repository that the guide's command made, and gives it back", async () => {
    const [folder, repo, password] = [home.file("backups"), home.file("repo"), home.file("password")];
    const folders = { "sftp:me@nas:/srv/parlor": repo, "/etc/parlor/restic": password, "/var/backups/parlor": folder };
    await Deno.writeTextFile(password, "swordfish\n");
    const init = (await readTexts("docs/guide/backup.md", "sh")).map((block) => block.trim().split(/\s+/))
      .find(([program, ...args]) => program === "restic" && args.includes("init"))!;
    await run(`${BIN}/restic`, init.slice(1).map((arg) => folders[arg as keyof typeof folders] ?? arg));
    const file = await backUp(folder, await afterBackup("restic", folders));
    const options = ["--repo", repo, "--password-file", password];
    await run(`${BIN}/restic`, [...options, "restore", "latest", "--target", home.file("restored")]);
    expect(await Deno.readFile(home.file("restored") + file)).toEqual(await Deno.readFile(file));
  });

  test("rclone copies the backup to the remote", async () => {
    const [folder, remote] = [home.file("daily"), home.file("remote")];
    await Deno.mkdir(remote);
    await Deno.writeTextFile(home.file("rclone.conf"), `[offsite]\ntype = alias\nremote = ${remote}\n`);
    const file = await backUp(folder, await afterBackup("rclone", { "/var/backups/parlor": folder }));
    const copy = `${remote}/parlor/${file.slice(folder.length + 1)}`;
    expect(await Deno.readFile(copy)).toEqual(await Deno.readFile(file));
  });

  test("fail2ban's filter finds the address of a refused sign-in, and no other", async () => {
    await using app = await openGatedApp();
    await enrol(app, "desk.example");
    const intruder = { host: "desk.example", address: "203.0.113.7", headers: { Authorization: "Bearer wrong" } };
    expect((await new Visitor(app, intruder).get("/api/settings")).status).toBe(401);
    const stranger = { host: "evil.example", address: "203.0.113.9" };
    expect((await new Visitor(app, stranger).get("/api/settings")).status).toBe(403);
    await Deno.writeTextFile(home.file("log"), app.logLines.join("\n") + "\n");
    const filter = (await readTexts("docs/guide/monitoring.md", "ini")).find((block) =>
      block.includes("[Definition]")
    )!;
    await Deno.writeTextFile(home.file("parlor.conf"), filter);
    const env = { PYTHONPATH: `${OPERATIONS}/unpacked/usr/lib/python3/dist-packages` };
    const args = ["--config", `${OPERATIONS}/unpacked/etc/fail2ban`, "--out", "ip"];
    const program = `${BIN}/fail2ban-regex`;
    const found = await run("python3", [program, ...args, home.file("log"), home.file("parlor.conf")], env);
    expect(found).toBe("203.0.113.7\n");
  });

  test("fail2ban reads the jail with its filter", async () => {
    const config = home.file("fail2ban");
    await run("cp", ["-r", `${OPERATIONS}/unpacked/etc/fail2ban`, config]);
    for (const text of await readTexts("docs/guide/monitoring.md", "ini")) {
      const [, path] = /^# \/etc\/fail2ban\/(\S+)\n/.exec(text)!;
      await Deno.writeTextFile(`${config}/${path}`, text);
    }
    const env = { PYTHONPATH: `${OPERATIONS}/unpacked/usr/lib/python3/dist-packages` };
    const commands = await run("python3", [`${BIN}/fail2ban-client`, "--conf", config, "-d"], env);
    expect(commands).toContain("['add', 'parlor', 'systemd']");
    expect(commands).toContain("['set', 'parlor', 'maxretry', 10]");
    expect(commands).toMatch(/^\['set', 'parlor', 'addfailregex', .*Refused a sign-in/m);
    expect(commands).toContain("['set', 'parlor', 'addjournalmatch', '_SYSTEMD_UNIT=parlor.service']");
  });
});
