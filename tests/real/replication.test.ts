/** Litestream and rsync with the commands of docs/guide/backup.md: what a second machine has after the first one is lost. */
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { readTexts } from "../helpers/files/doc_blocks.ts";
import { noise } from "../helpers/files/pictures.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";
import { runParlor } from "../helpers/processes/parlor_command.ts";
import { realPart } from "./helpers/real_part.ts";

const OPERATIONS = realPart("REAL_OPERATIONS_DIR", "operations.sh");
const GUIDE = "docs/guide/backup.md";
const DATA = "/var/lib/parlor";
/** How many chats are restored while more are written, before the machine is lost. */
const RESTORED_UNDER_LOAD = 5;

/** Runs a program. @returns What it printed. */
async function run(program: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program, { args, env }).output();
  expect([success, success ? "" : new TextDecoder().decode(stderr)]).toEqual([true, ""]);
  return new TextDecoder().decode(stdout);
}

/** The arguments of a command of the guide, with folders of the test in place of the guide's. */
async function printed(program: string, verb: string, folders: Record<string, string>): Promise<string[]> {
  const lines = (await readTexts(GUIDE, "sh")).flatMap((block) => block.replaceAll(/\\\n\s*/g, "").split("\n"));
  const line = lines.find((line) => line.startsWith(`${program} `) && line.includes(verb))!;
  const words = line.split(/\s+/).slice(1).map((word) => word.replaceAll("'", ""));
  return words.map((word) => replace(word, folders));
}

function replace(text: string, folders: Record<string, string>): string {
  for (const [from, to] of Object.entries(folders)) text = text.replaceAll(from, to);
  return text;
}

/** Starts Litestream. Disposing of it kills it. */
function replicate(args: string[]) {
  const child = new Deno.Command(`${OPERATIONS}/venv/bin/litestream`, { args, stdout: "null", stderr: "null" }).spawn();
  let hasEnded = false;
  child.status.then(() => hasEnded = true);
  const end = async (signal: Deno.Signal) => {
    if (!hasEnded) child.kill(signal);
    await child.status;
  };
  return { end, [Symbol.asyncDispose]: () => end("SIGKILL") };
}

const chatId = (number: number) => `chat-${String(number).padStart(6, "0")}`;

/** Opens a restored database and gives the IDs of its chats, or what SQLite finds wrong with it. */
function readChats(path: string): string[] {
  using database = new DatabaseSync(path, { readOnly: true });
  const { integrity_check: found } = database.prepare("PRAGMA integrity_check").get()!;
  if (found !== "ok") return [String(found)];
  return database.prepare("SELECT id FROM conversation ORDER BY id").all().map(({ id }) => String(id));
}

/** Whether chats are the first that were written, without a gap. */
function isWhole(chats: readonly string[]): boolean {
  return chats.every((id, number) => id === chatId(number));
}

/** Writes one chat after the other, until the server is gone. */
function writeChats(server: ChildServer) {
  const confirmedAt: number[] = [];
  const ended = (async () => {
    while (true) {
      const messages = [{ id: "m", role: "user", content: `Number ${confirmedAt.length}` }];
      try {
        await server.json("PUT", `/api/conversations/${chatId(confirmedAt.length)}`, { title: "Written", messages });
      } catch {
        return;
      }
      confirmedAt.push(performance.now());
    }
  })();
  return { confirmedAt, ended };
}

describe.skipIf(OPERATIONS === undefined)("replication as the guide prints it", { timeout: 600_000 }, () => {
  test("a second machine takes over what was replicated, in order and whole", async () => {
    await using home = await tempFolder();
    const open = async (name: string) => {
      const folders = {
        [DATA]: home.file(name),
        "/mnt/elsewhere/parlor": home.file(`replica-of-${name}`),
        "/etc/litestream.yml": home.file(`${name}.yml`),
        "standby:": "",
      };
      const [config] = await readTexts(GUIDE, "yaml");
      await Deno.writeTextFile(folders["/etc/litestream.yml"]!, replace(config!, folders));
      return { dataDir: home.file(name), folders };
    };
    /** @returns Undefined while there is no replica. */
    const restore = async (folders: Record<string, string>, path: string) => {
      await Deno.remove(path).catch(() => {});
      const args = await printed("litestream", "restore", folders);
      const all = [...args.slice(0, -1), "-o", path, args.at(-1)!];
      const { success } = await new Deno.Command(`${OPERATIONS}/venv/bin/litestream`, { args: all }).output();
      return success ? readChats(path) : undefined;
    };

    const desk = await open("desk");
    await Deno.mkdir(desk.dataDir, { mode: 0o700 });
    const server = await startChildServer({ dataDir: desk.dataDir, args: ["--setup-completed", "true"] });
    const image = noise(8, 8);
    const stored = await fetch(`${server.url}/api/attachments/picture.png`, {
      method: "PUT",
      headers: { "Content-Type": "image/png" },
      body: image,
    });
    expect(stored.status).toBe(201);
    await stored.body?.cancel();
    const litestream = replicate(await printed("litestream", "replicate", desk.folders));
    const load = writeChats(server);
    // What is restored while the server writes is whole, and has no gap.
    let seen: string[] = [];
    const broken: string[][] = [];
    await expect.poll(async () => {
      seen = await restore(desk.folders, home.file("seen.db")) ?? [];
      if (!isWhole(seen)) broken.push(seen);
      return seen.length;
    }, { interval: 200, timeout: 180_000 }).toBeGreaterThan(RESTORED_UNDER_LOAD);
    expect(broken).toEqual([]);
    const lostAt = performance.now();
    await Promise.all([litestream.end("SIGKILL"), server.kill(), load.ended]);

    const standby = await open("standby");
    const rsync = await printed("rsync", "--delete", { ...desk.folders });
    const env = { LD_LIBRARY_PATH: `${OPERATIONS}/unpacked/usr/lib/x86_64-linux-gnu` };
    await Deno.mkdir(standby.dataDir, { mode: 0o700 });
    await run(`${OPERATIONS}/unpacked/usr/bin/rsync`, [...rsync.slice(0, -1), `${standby.dataDir}/`], env);
    const chats = (await restore(desk.folders, `${standby.dataDir}/app.db`))!;
    await Deno.chmod(`${standby.dataDir}/app.db`, 0o600);
    expect(isWhole(chats), chats.join()).toBe(true);
    expect(chats.length).toBeGreaterThanOrEqual(seen.length);
    const firstLostAt = load.confirmedAt[chats.length] ?? lostAt;
    console.info(
      `replication: of ${load.confirmedAt.length} confirmed chats ${
        load.confirmedAt.length - chats.length
      } are lost, ` +
        `the first ${Math.max(0, lostAt - firstLostAt).toFixed(0)} ms before the end`,
    );
    const { code, stdout } = await runParlor(["doctor", "--deep", "--data-dir", standby.dataDir]);
    expect([code, stdout.trimEnd().split("\n").at(-1)], stdout).toEqual([0, "No problems found."]);

    // The second machine goes on, and after an orderly end nothing is lost.
    await using second = await startChildServer({ dataDir: standby.dataDir });
    const picture = await second.request("GET", "/api/attachments/picture.png");
    expect(new Uint8Array(await picture.arrayBuffer())).toEqual(image);
    expect(await second.json("GET", `/api/conversations/${chatId(0)}`)).toMatchObject({
      messages: [{ content: "Number 0" }],
    });
    await using again = replicate(await printed("litestream", "replicate", standby.folders));
    await expect.poll(() => restore(standby.folders, home.file("again.db")), { timeout: 180_000 }).toEqual(chats);
    await second.json("PUT", "/api/conversations/last", { title: "Last", messages: [] });
    await second.kill("SIGTERM");
    await again.end("SIGTERM");
    expect(await restore(standby.folders, home.file("again.db"))).toEqual([...chats, "last"]);
  });
});
