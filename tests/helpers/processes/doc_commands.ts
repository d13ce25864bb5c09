/** Runs the commands of the documentation: `parlor` commands on the data of a test server, and API clients. */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { type ChildServer, startChildServer } from "../app/child_server.ts";
import { openOpenAiApp, saveMira } from "../app/openai_app.ts";
import { openTestApp } from "../app/test_app.ts";
import { tempFolder } from "../files/storage_folder.ts";
import { tavernFolder } from "../files/tavern_folder.ts";
import { makeCertificate } from "../files/tls_certificate.ts";
import { type CommandEnd, runParlor } from "./parlor_command.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** Replacement of `~` in commands. */
export const DOC_HOME = "/home/me";
const PASSPHRASE = "correct horse battery staple";

/** The empty folder in which a command runs, which is also its home folder. */
interface Scene {
  folder: string;
  dataDir: string;
  /** The server, if it runs. */
  server?: ChildServer;
}

/** Preparation and expected output of a command. */
interface Expected {
  before?(scene: Scene, args: readonly string[]): Promise<unknown>;
  prints: RegExp;
}

/** Makes the data of a server that has run. */
async function makeData({ dataDir }: Scene): Promise<void> {
  await Deno.mkdir(dataDir, { mode: 0o700 });
  await using app = await openTestApp({ dataDir });
  await app.put("/api/personas/me", { name: "Robin" });
}

const startServer = async (scene: Scene) => scene.server = await startChildServer(scene);

/** By command. Anything else starts a server. */
const COMMANDS: Record<string, Expected> = {
  // How it goes on: tests/e2e/cli_auth.test.ts.
  "auth login": { prints: /^parlor: Can't reach Parlor at/ },
  "auth logout": { prints: /^Not signed in$/m },
  "auth whoami": { prints: /^parlor: Not signed in/ },
  "auth invite": { before: startServer, prints: /^Invite: \w+/ },
  backup: { before: startServer, prints: /^Backed up .* and verified the backup/ },
  doctor: { before: makeData, prints: /^No problems found/m },
  health: {
    async before(scene) {
      // A server loads what answers its first request.
      await (await (await startServer(scene)).request("GET", "/healthz")).body?.cancel();
    },
    prints: /^The server responds at/,
  },
  import: {
    async before({ folder }) {
      for (const [path, bytes] of Object.entries(tavernFolder())) {
        const to = `${folder}/SillyTavern/data/default-user/${path}`;
        await Deno.mkdir(dirname(to), { recursive: true });
        await Deno.writeFile(to, bytes);
      }
    },
    prints: /^(Imported|Dry run.*):\n(.*\n)* {2}character +2 new/,
  },
  "key export": { before: makeData, prints: /^Exported the storage key/ },
  "key import": {
    async before(scene) {
      await makeData(scene);
      await runCommand(scene, ["key", "export", "parlor.key"]);
      await Deno.remove(`${scene.dataDir}/storage-key`);
    },
    prints: /^Imported the storage key/,
  },
  "key rotate": { before: makeData, prints: /^Encrypted \d+ values with a new key/ },
  restore: {
    async before(scene, args) {
      await makeData(scene);
      await runCommand(scene, ["backup", "parlor.backup"]);
      if (!args.includes("--replace")) await Deno.remove(scene.dataDir, { recursive: true });
    },
    prints: /^Restored .* files\) from/,
  },
};

/** What was tried, by the arguments: pages repeat commands, and each runs in a folder of its own. */
const tried = new Map<string, Promise<void>>();

/** Runs `parlor …` as a page shows it. @throws when it doesn't do what the page is about. */
export function tryParlor(shown: readonly string[]): Promise<void> {
  const key = JSON.stringify(shown);
  const trying = tried.get(key) ?? runAsShown(shown);
  tried.set(key, trying);
  return trying;
}

async function runAsShown(shown: readonly string[]): Promise<void> {
  await using temp = await tempFolder();
  const scene: Scene = { folder: temp.path, dataDir: temp.file("data") };
  const args = shown.map((arg) =>
    arg.replace(`${DOC_HOME}/`, `${temp.path}/`).replace(/^\/restore\//, `${temp.path}/`)
      // Nothing listens there, and the request doesn't leave the machine.
      .replace("https://chat.example.org", "http://127.0.0.1:9999")
  );
  const command = [args.slice(0, 2).join(" "), args[0]!].find((name) => Object.hasOwn(COMMANDS, name));
  if (command === undefined) return await tryServer(scene, args);
  const { before, prints } = COMMANDS[command]!;
  try {
    await before?.(scene, args);
    const { stdout, stderr } = await runCommand(scene, args);
    expect(stdout + stderr).toMatch(prints);
  } finally {
    await scene.server?.kill();
  }
}

/** Starts a server with the arguments, and stops it. */
async function tryServer({ folder, dataDir }: Scene, args: string[]): Promise<void> {
  if (args.some((arg) => arg.endsWith(".pem"))) {
    const { cert, key } = await makeCertificate();
    await Deno.writeTextFile(`${folder}/chain.pem`, cert);
    await Deno.writeTextFile(`${folder}/key.pem`, key);
  }
  await using server = await startChildServer({ dataDir, args, cwd: folder, entry: `${ROOT}main.ts` });
  expect((await server.kill("SIGTERM")).code).toBe(0);
}

async function runCommand({ folder, dataDir, server }: Scene, args: string[]): Promise<CommandEnd> {
  const env = {
    HOME: folder,
    PARLOR_DATA_DIR: dataDir,
    PARLOR_BACKUP_PASSPHRASE: PASSPHRASE,
    PARLOR_PORT: server === undefined ? "9999" : new URL(server.url).port,
  };
  return await runParlor(args, { cwd: folder, env });
}

/**
 * Runs a client that a page shows, against a server whose address and token it gets in place of those of the page. The
 * server at localhost:8787 has no passkey, the other one has the character "mira".
 *
 * @returns What it prints.
 */
export async function tryClient(program: string, args: readonly string[]): Promise<string> {
  await using local = await openTestApp();
  await using remote = await openOpenAiApp();
  await saveMira(remote);
  const { code, stdout, stderr } = await new Deno.Command(program, {
    args: args.map((arg) =>
      arg.replace("http://localhost:8787", local.url).replace("https://chat.example.org", remote.app.url)
        .replace("TOKEN", remote.token)
    ),
    cwd: ROOT,
    stdin: "null",
  }).output();
  expect([code, new TextDecoder().decode(stderr)]).toEqual([0, ""]);
  return new TextDecoder().decode(stdout);
}
