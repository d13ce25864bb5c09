/**
 * The code blocks of the pages: every one is tried, here or in a test named here, as far as this system can.
 * @slow Every command of the pages runs.
 */
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { parse as parseToml } from "smol-toml";
import { expect, test } from "vitest";
import { parseDocument } from "yaml";
import { writeChecksums } from "../build.ts";
import { DEBIAN_EXECUTABLES } from "../build/deb.ts";
import { parseTargets } from "../build/targets.ts";
import { loadConfig } from "../services/config/config.ts";
import { findOnPath } from "../services/process/supervised_process.ts";
import {
  type Command,
  type DocBlock,
  openCommandReader,
  parseBlocks,
  readDocBlocks,
  readTexts,
} from "./helpers/files/doc_blocks.ts";
import { tempFolder } from "./helpers/files/storage_folder.ts";
import { DOC_HOME, tryClient, tryParlor } from "./helpers/processes/doc_commands.ts";

const BLOCKS = await readDocBlocks();
const CURL = await findOnPath("curl");
const PYTHON = await findOnPath("python3");
const RELEASE_FILES = [
  ...["SHA256SUMS", "parlor.rb", ...Object.values(DEBIAN_EXECUTABLES).map((name) => `${name}.deb`)],
  ...parseTargets(["--target", "all"]).map(({ file }) => file),
];

async function run(program: string, args: string[]): Promise<{ code: number; output: string }> {
  const { code, stdout, stderr } = await new Deno.Command(program, { args, stdin: "null" }).output();
  return { code, output: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

/** Skips the test of the block. */
type Skip = (reason: string) => void;
type Check = (block: DocBlock, skip: Skip) => void | Promise<void>;
type CommandCheck = (command: Command, block: DocBlock, skip: Skip) => void | Promise<void>;

/** A test with the real program tries it. That test reads the page, so it mentions it. */
const triedBy = (file: string) => async (_command: unknown, { page }: DocBlock) =>
  expect(await Deno.readTextFile(`tests/${file}`)).toContain(basename(page));
/** Another test of this file tries it. */
const triedBelow = () => {};
/** Only that the shell can read the line. */
const notHere = (_reason: string) => () => {};

/** What the pages call, and how the calls are tried. */
const PROGRAMS: Record<string, CommandCheck> = {
  aider: notHere("needs aider and a model"),
  brew: notHere("macOS"),
  chmod: triedBelow,
  cp: notHere("writes to folders of the system"),
  curl: async ([, ...args], _block, skip) => {
    if (CURL === undefined) skip("curl isn't installed");
    expect(await tryClient(CURL!, ["--silent", "--show-error", "--fail", ...args])).toContain('"content":');
  },
  deno: async ([, task, name, ...args]) => {
    if (task === "check") return;
    const { tasks } = JSON.parse(await Deno.readTextFile("deno.json"));
    expect([task, Object.keys(tasks)]).toEqual(["task", expect.arrayContaining([name])]);
    if (name === "start") await tryParlor(args);
  },
  docker: async ([, ...args]) => {
    // Commands that need a Docker Engine aren't tried. The arguments after the service go to the program in the container.
    const [compose, command] = args;
    const service = args.indexOf("parlor");
    if (compose === "compose" && command === "run") await tryParlor(args.slice(service + 1));
    if (compose === "compose" && command === "exec" && service > 0) await tryParlor(args.slice(service + 2));
  },
  grep: notHere("filters the output of another line"),
  id: notHere("an argument of another line"),
  install: notHere("needs root and the user parlor"),
  journalctl: notHere("reads the log of a service"),
  launchctl: notHere("macOS"),
  litestream: triedBy("real/replication.test.ts"),
  mkdir: notHere("writes to folders of the system"),
  "oauth2-proxy": notHere("needs an identity provider"),
  npx: async ([, yes, deno, ...args], block, skip) => {
    const [, version] = /^FROM denoland\/deno:debian-(\S+) /m.exec(await Deno.readTextFile("Dockerfile"))!;
    expect([yes, deno]).toEqual(["-y", `deno@${version}`]);
    await PROGRAMS.deno!(["deno", ...args], block, skip);
  },
  parlor: ([, ...args]) => tryParlor(args),
  "./parlor-linux-x64": ([, ...args]) => tryParlor(args),
  restic: triedBy("real/operations.test.ts"),
  rm: notHere("deletes files in folders of the system"),
  rsync: triedBy("real/replication.test.ts"),
  sha256sum: triedBelow,
  shasum: triedBelow,
  ssh: notHere("needs another machine"),
  sudo: triedBelow,
  systemctl: notHere("changes the system"),
  "systemd-run": ([, ...args]) => tryParlor(args.slice(args.lastIndexOf("parlor") + 1)),
  tailscale: notHere("needs a tailnet"),
  useradd: notHere("changes the system"),
  "whisper-server": notHere("needs a model of speech"),
  xattr: triedBelow,
};

/** The languages of blocks, and how their blocks are tried. */
const LANGUAGES: Record<string, Check> = {
  caddy: (block) => {
    const tried = BLOCKS.filter(({ page, language }) => page.endsWith("/reverse-proxy.md") && language === "caddy");
    expect(tried.map(({ text }) => text)).toContain(block.text);
    return triedBy("real/proxies.test.ts")(undefined, tried[0]!);
  },
  ini: async (block) => {
    if (block.page !== "docs/guide/install.md") return triedBy("real/operations.test.ts")(undefined, block);
    const values = (key: string) =>
      [...block.text.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value]) => value!);
    const environment = Object.fromEntries(values("Environment").map((entry) => entry.split("=", 2)));
    const config = readConfig({ environment });
    for (const folder of values("StateDirectory")) expect(config.dataDir).toBe(`/var/lib/${folder}`);
    // A missing disk must not keep the service from starting. @see systemd.exec(5)
    for (const folder of values("ReadWritePaths")) expect(folder).toBe(`-${config.backupDir}`);
    for (const entry of values("LoadCredential")) expect(config.storageKeyFile).toBe(`%d/${entry.split(":", 1)}`);
    for (const command of values("ExecStart")) await tryInstalled(command.split(" "));
  },
  js: async ({ text }) => {
    // Quiet: while another process installs packages, Deno says that it waits.
    expect(await tryClient(Deno.execPath(), ["eval", "--quiet", text])).toBe("Hello");
  },
  json: ({ text }) => expect(JSON.parse(text)).toBeTypeOf("object"),
  nginx: (block) => triedBy("real/proxies.test.ts")(undefined, block),
  nix: (block) => triedBy("real/packaging.test.ts")(undefined, block),
  // PowerShell doesn't run here, but what its task starts does.
  powershell: async ({ text }) => {
    for (const [, argument] of text.matchAll(/ -Argument "(.*)"$/gm)) {
      // Quoted, because names of users have spaces.
      const [, args] = /^--headless `"\$program`"(.*)$/.exec(argument!)!;
      expect(text).toMatch(/^\$program = ".*\\parlor\.exe"$/m);
      await tryParlor(args!.split(" ").filter((arg) => arg !== ""));
    }
  },
  // Only its syntax is checked here; a real-part test has its package.
  python: async (block, skip) => {
    await triedBy("real/openai_python.test.ts")(undefined, block);
    if (PYTHON === undefined) skip("Python isn't installed");
    expect((await run(PYTHON!, ["-c", "import ast, sys; ast.parse(sys.argv[1])", block.text])).output).toBe("");
  },
  sh: async (block, skip) => {
    await using reader = await openCommandReader(Object.keys(PROGRAMS), {
      HOME: DOC_HOME,
      PARLOR_BACKUP_FILE: "a.backup",
    });
    const commands = await reader.read(block.text);
    expect(commands).not.toEqual([]);
    for (const command of commands) await PROGRAMS[command[0]]!(command, block, skip);
  },
  // Output.
  text: () => {},
  toml: ({ text }) => {
    const config = readConfig({ text });
    const keys = Object.entries(config.sources).filter(([, source]) => source === "file").map(([key]) => key);
    expect(keys.sort()).toEqual(Object.keys(parseToml(text)).sort());
  },
  // The property list is tried below.
  xml: ({ page }) => expect(page).toBe("docs/guide/install.md"),
  yaml: async (block) => {
    expect(parseDocument(block.text).errors).toEqual([]);
    if (/^services:$/m.test(block.text)) await triedBy("compose_files.test.ts")(undefined, block);
    if (/^scrape_configs:$/m.test(block.text)) await triedBy("real/prometheus.test.ts")(undefined, block);
  },
};

/** Reads configuration as a start does. @throws {AppError} for what a start refuses */
function readConfig({ text, environment }: { text?: string; environment?: Record<string, string> }) {
  return loadConfig({
    args: [],
    environment: { HOME: DOC_HOME, ...environment },
    os: "linux",
    readTextFile: () => text,
  });
}

/** Tries what a service manager starts. */
async function tryInstalled([program, ...args]: readonly string[]): Promise<void> {
  expect(program).toBe("/usr/local/bin/parlor");
  await tryParlor(args);
}

test("finds blocks in lists, and none inside a block", () => {
  const text = "1. A step:\n\n   ~~~sh\n   run\n     more\n   ~~~\n\n````md\n```sh\ninside\n```\n````\n";
  expect(parseBlocks("a.md", text)).toEqual([
    { page: "a.md", line: 3, language: "sh", text: "run\n  more\n" },
    { page: "a.md", line: 8, language: "md", text: "```sh\ninside\n```\n" },
  ]);
  expect(() => parseBlocks("a.md", "```sh\nrun\n")).toThrow("line 1 of a.md has no end");
});

test("refuses a line that the shell can't read, and a program that isn't listed", async () => {
  await using reader = await openCommandReader(["parlor"]);
  expect(await reader.read('parlor --port \\\n  1 "two words" # a comment')).toEqual([
    ["parlor", "--port", "1", "two words"],
  ]);
  await expect(reader.read("parlor 'a")).rejects.toThrow("unexpected EOF");
  await expect(reader.read("parlour")).rejects.toThrow("parlour: command not found");
});

test.for(BLOCKS)("$page, line $line", async (block, { skip }) => {
  const check = LANGUAGES[block.language];
  if (check === undefined) throw new Error(`No check for blocks in the language "${block.language}"`);
  await check(block, skip);
  for (const [file] of block.text.matchAll(/\bparlor-(?:linux|macos|windows)-[\w.]+|\bparlor\.rb|\bSHA\d+SUMS\b/g)) {
    expect(RELEASE_FILES).toContain(file);
  }
});

const DOWNLOADS = BLOCKS.filter(({ language, text }) => language === "sh" && text.includes("SHA256SUMS")).map(
  (block) => {
    const [program] = block.text.split(" ");
    return { ...block, program: program!, file: block.text.match(/parlor-[\w-]+/)![0] };
  },
);

test.for(DOWNLOADS)("$program lets $file run if it is the file of the release", async (block, { skip }) => {
  if (await findOnPath(block.program) === undefined) skip(`${block.program} isn't installed`);
  await using folder = await tempFolder();
  const release = RELEASE_FILES.filter((name) => name.startsWith("parlor-"));
  for (const name of release) await Deno.writeTextFile(folder.file(name), "#!/bin/sh\necho runs\n");
  await writeChecksums(pathToFileURL(`${folder.path}/`), release);
  // Only one of them is downloaded; commands that change the system are printed instead.
  for (const name of release) if (name !== block.file) await Deno.remove(folder.file(name));
  await Deno.mkdir(folder.file("bin"));
  for (const name of ["sudo", "xattr"]) {
    await Deno.writeTextFile(folder.file(`bin/${name}`), `#!/bin/sh\necho ${name} "$@"\n`, { mode: 0o755 });
  }
  const tryLines = async () => {
    const { stdout } = await new Deno.Command("bash", {
      args: ["-c", block.text],
      cwd: folder.path,
      env: { PATH: `${folder.file("bin")}:${Deno.env.get("PATH")}`, LC_ALL: "C" },
      stderr: "null",
    }).output();
    return new TextDecoder().decode(stdout).trim().split("\n");
  };
  const installs = ["sudo mkdir -p /usr/local/bin", `sudo mv ${block.file} /usr/local/bin/parlor`];
  expect(await tryLines()).toEqual([
    `${block.file}: OK`,
    ...block.file.includes("macos") ? [`xattr -c ${block.file}`, ...installs] : ["runs"],
  ]);
  await Deno.writeTextFile(folder.file(block.file), "# changed\n", { append: true });
  expect(await tryLines()).toEqual([`${block.file}: FAILED`]);
  await Deno.remove(folder.file(block.file));
  expect(await tryLines()).toEqual([""]);
});

test("there are lines for a download on Linux and on macOS", () => {
  expect(DOWNLOADS.map(({ file }) => file)).toEqual(["parlor-linux-x64", "parlor-macos-arm64"]);
});

test("the service may call what the JavaScript engine calls, and its programs find their settings", async () => {
  const unit = (await readTexts("docs/guide/install.md", "ini")).join("");
  // V8 calls pkey_alloc(2), which isn't in @system-service. Without an error number, such a call ends the process.
  expect(unit).toMatch(/^SystemCallFilter=@system-service @pkey$/m);
  expect(unit).toMatch(/^SystemCallErrorNumber=EPERM$/m);
  // systemd sets no HOME for a dynamic user.
  const [, folder] = /^StateDirectory=(.*)$/m.exec(unit)!;
  expect(unit).toContain(`Environment=HOME=/var/lib/${folder}\n`);
});

const SYSTEMD = await findOnPath("systemd-analyze");

test.skipIf(SYSTEMD === undefined)(
  "systemd accepts the service with the backup folder and the credential",
  async () => {
    await using folder = await tempFolder();
    const [unit = "", ...additions] = await readTexts("docs/guide/install.md", "ini");
    const service = folder.file("parlor.service");
    await Deno.writeTextFile(service, unit.replace("/usr/local/bin/parlor", "/bin/true"));
    await Deno.mkdir(`${service}.d`);
    expect(additions).toHaveLength(2);
    for (const [n, text] of additions.entries()) {
      await Deno.writeTextFile(`${service}.d/${n}.conf`, text.includes("[Service]") ? text : `[Service]\n${text}`);
    }
    const { code, output } = await run(SYSTEMD!, ["verify", "--man=no", service]);
    expect([code, output.split("\n").filter((line) => line.includes("parlor.service"))]).toEqual([0, []]);
  },
);

test.skipIf(PYTHON === undefined)("the property list for launchd starts the program at login", async () => {
  await using folder = await tempFolder();
  const [plist = ""] = await readTexts("docs/guide/install.md", "xml");
  await Deno.writeTextFile(folder.file("parlor.plist"), plist);
  const script = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
  const { output } = await run(PYTHON!, ["-c", script, folder.file("parlor.plist")]);
  const { ProgramArguments: command, ...list } = JSON.parse(output);
  expect(list).toMatchObject({ Label: "parlor", RunAtLoad: true, KeepAlive: { SuccessfulExit: false } });
  // launchd's own lacks the folders of Homebrew.
  expect(list.EnvironmentVariables.PATH.split(":")).toEqual(
    expect.arrayContaining(["/opt/homebrew/bin", "/usr/local/bin", "/usr/bin", "/bin"]),
  );
  await tryInstalled(command);
});

test("the task of Windows starts and goes on without mains power", async () => {
  const [settings] = (await readTexts("docs/guide/install.md", "powershell")).join("").match(/^\$settings = .*$/m)!;
  for (const flag of ["-AllowStartIfOnBatteries", "-DontStopIfGoingOnBatteries", "-ExecutionTimeLimit 0"]) {
    expect(settings).toContain(` ${flag} `);
  }
});
