/** The install script, run by dash with a release on this machine, and programs that record their calls. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseTargets } from "../../build/targets.ts";
import { readTexts } from "../helpers/files/doc_blocks.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";

const UNIT = await Deno.readTextFile("packaging/systemd/parlor.service");
const SCRIPT = await Deno.readTextFile("packaging/install.sh");
/** All that the script needs besides a shell, and a program to download with and one for checksums. */
const NEEDED = ["awk", "cat", "chmod", "cmp", "cp", "mkdir", "mktemp", "mv", "rm"];
const PROGRAM = (version: string) =>
  `#!/bin/sh
if [ "$1" = stop ]; then echo "parlor stop" >>"$CALLS"; exit 3; fi
echo "Parlor ${version}"
`;

/** Files by name. `checksums` are right unless they're set. */
interface Release {
  files: Record<string, string>;
  checksums?: string;
}

function sumUp(files: Record<string, string>): string {
  return Object.entries(files).map(([name, text]) => `${createHash("sha256").update(text).digest("hex")}  ${name}\n`)
    .join("");
}

// They need the programs of a usual Linux; other systems are simulated with their uname.
describe.skipIf(Deno.build.os !== "linux")("install.sh", () => {
  let release: Release;
  let server: Deno.HttpServer<Deno.NetAddr>;

  beforeAll(() => {
    server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
      const name = new URL(request.url).pathname.slice(1);
      const text = name === "SHA256SUMS" ? release.checksums ?? sumUp(release.files) : release.files[name];
      return new Response(text ?? "Not found", { status: text === undefined ? 404 : 200 });
    });
  });

  afterAll(() => server.shutdown());

  /** Prepares a machine. @param programs What it downloads and verifies with. */
  async function openMachine(
    { uid = 1000, hasSystemd = false, programs = ["curl", "sha256sum"], uname = ["Linux", "x86_64"] } = {},
  ) {
    release = { files: { "parlor-linux-x64": PROGRAM("1.2.3"), "parlor.service": UNIT } };
    const folder = await tempFolder();
    const bin = folder.file("bin");
    await Deno.mkdir(bin);
    const write = (name: string, text: string) =>
      Deno.writeTextFile(`${bin}/${name}`, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    await write("id", `[ "$*" = -u ] && echo ${uid}`);
    await write("uname", `case $1 in -s) echo "${uname[0]}" ;; -m) echo "${uname[1]}" ;; esac`);
    if (hasSystemd) {
      await Deno.mkdir(folder.file("run/systemd/system"), { recursive: true });
      await write("systemctl", 'echo "systemctl $*" >>"$CALLS"');
    }
    for (const name of [...NEEDED, ...programs]) await Deno.symlink(await findProgram(name), `${bin}/${name}`);
    await Deno.mkdir(folder.file("home"));
    await Deno.writeTextFile(folder.file("calls"), "");
    const run = async (args: string[], { script = "packaging/install.sh" } = {}) => {
      const { code, stdout, stderr } = await new Deno.Command(await findProgram("dash"), {
        args: [script, "--yes", ...args],
        clearEnv: true,
        env: {
          PATH: bin,
          HOME: folder.file("home"),
          DESTDIR: folder.path,
          TMPDIR: folder.path,
          CALLS: folder.file("calls"),
        },
        stdin: "null",
      }).output();
      const decoder = new TextDecoder();
      return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
    };
    return {
      folder,
      program: uid === 0 ? folder.file("usr/local/bin/parlor") : folder.file("home/.local/bin/parlor"),
      unit: folder.file("etc/systemd/system/parlor.service"),
      install: (...args: string[]) => run(["--from", `http://127.0.0.1:${server.addr.port}`, ...args]),
      run,
      /** The calls of programs since the last look. */
      async takeCalls() {
        const calls = (await Deno.readTextFile(folder.file("calls"))).split("\n").slice(0, -1);
        await Deno.writeTextFile(folder.file("calls"), "");
        return calls;
      },
      /** Names in the temporary folder that the script would have left. */
      listLeft: async () =>
        (await Array.fromAsync(Deno.readDir(folder.path), ({ name }) => name)).filter((name) =>
          name.startsWith("tmp.")
        ),
      [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
    };
  }

  const read = (path: string) => Deno.readTextFile(path).catch(() => undefined);

  test("installs for a user, upgrades, and removes the program but not the data", async () => {
    await using machine = await openMachine();
    const data = machine.folder.file("home/.local/share/parlor");
    await Deno.mkdir(data, { recursive: true });
    await Deno.writeTextFile(`${data}/app.db`, "data");
    const first = await machine.install();
    expect(first).toMatchObject({ code: 0, stderr: "" });
    // It says what it will do, then that it's done.
    const address = `http://127.0.0.1:${server.addr.port}/parlor-linux-x64`;
    expect(first.stdout.split("\n")).toEqual([
      "Installs Parlor:",
      `  download  ${address}, verified with SHA256SUMS`,
      `  program   ${machine.program}`,
      "Its data is in your home folder. This script never changes it.",
      `Installed Parlor 1.2.3 in ${machine.program}`,
      expect.stringMatching(/^Run .*\/parlor, and open http:\/\/localhost:8787. To call it parlor, add .* to PATH$/),
      "",
    ]);
    expect((await Deno.stat(machine.program)).mode! & 0o777).toBe(0o755);

    release.files["parlor-linux-x64"] = PROGRAM("1.3.0");
    const second = await machine.install();
    expect(second.stdout).toMatch(
      /^Installs Parlor, in place of Parlor 1\.2\.3:\n[^]*Installed Parlor 1\.3\.0[^]*restart it/,
    );
    expect(await machine.takeCalls()).toEqual([]);

    const removed = await machine.run(["--uninstall"]);
    expect(removed.stdout).toBe(
      `Removes Parlor:\n  program   ${machine.program}\nThe data stays where it is.\n` +
        "Removed. To delete the data, too, remove its folder yourself\n",
    );
    expect(await machine.takeCalls()).toEqual(["parlor stop"]);
    expect(await read(machine.program)).toBeUndefined();
    expect(await read(`${data}/app.db`)).toBe("data");
    expect(await machine.listLeft()).toEqual([]);
    expect((await machine.run(["--uninstall"])).stdout).toMatch(/^Parlor isn't installed in /);
  });

  test("as root, it also installs the service, restarts it after an upgrade, and removes both", async () => {
    await using machine = await openMachine({ uid: 0, hasSystemd: true });
    const data = machine.folder.file("var/lib/parlor");
    await Deno.mkdir(data, { recursive: true });
    const first = await machine.install();
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toContain(
      `  service   ${machine.unit}, started now and with the machine\nIts data is in /var/lib/parlor.`,
    );
    expect(await read(machine.unit)).toBe(UNIT);
    const started = ["systemctl daemon-reload", "systemctl enable --quiet parlor", "systemctl restart parlor"];
    expect(await machine.takeCalls()).toEqual(started);

    // A unit that was edited stays.
    const edited = UNIT.replace("PrivateDevices=yes\n", "");
    await Deno.writeTextFile(machine.unit, edited);
    const second = await machine.install();
    expect(second.stdout).toContain("parlor.service differs from the one of this release, so it stays as it is");
    expect(await read(machine.unit)).toBe(edited);
    expect(await machine.takeCalls()).toEqual(started);

    const removed = await machine.run(["--uninstall"]);
    expect(removed.stdout).toContain(`  service   ${machine.unit}, stopped first\n`);
    expect(removed.stdout).toMatch(/remove its folder yourself: \/var\/lib\/parlor\n$/);
    expect(await machine.takeCalls()).toEqual(["systemctl disable --quiet --now parlor", "systemctl daemon-reload"]);
    expect([await read(machine.program), await read(machine.unit)]).toEqual([undefined, undefined]);
    expect((await Deno.stat(data)).isDirectory).toBe(true);
  });

  test.each([
    ["without systemd", { uid: 0 }, []],
    ["with --no-service", { uid: 0, hasSystemd: true }, ["--no-service"]],
  ])("as root %s, it installs only the program", async (_, options, args) => {
    await using machine = await openMachine(options);
    expect(await machine.install(...args)).toMatchObject({ code: 0, stdout: expect.stringContaining("Run ") });
    expect(await read(machine.program)).toContain("Parlor 1.2.3");
    expect([await read(machine.unit), await machine.takeCalls()]).toEqual([undefined, []]);
  });

  test.each<[string, (release: Release) => void, string]>([
    [
      "a file that isn't the one of the checksums",
      (to) => to.checksums = sumUp({ "parlor-linux-x64": "other" }),
      "The checksum of parlor-linux-x64 doesn't match. Nothing was changed",
    ],
    [
      "a file without a checksum",
      (to) => to.checksums = sumUp({ other: "" }),
      "SHA256SUMS has no checksum of parlor-linux-x64",
    ],
    ["a release without the file", (to) => void delete to.files["parlor-linux-x64"], "Can't download http://"],
    [
      "a program that doesn't run here",
      (to) => to.files["parlor-linux-x64"] = "#!/no/such/loader\n",
      "The program doesn't run on this system. It needs glibc",
    ],
  ])("refuses %s and leaves what is installed", async (_, change, message) => {
    await using machine = await openMachine();
    await machine.install();
    change(release);
    const refused = await machine.install();
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(`install.sh: ${message}`);
    expect(await read(machine.program)).toBe(PROGRAM("1.2.3"));
    expect(await Array.fromAsync(Deno.readDir(machine.folder.file("home/.local/bin")), ({ name }) => name)).toEqual([
      "parlor",
    ]);
    expect(await machine.listLeft()).toEqual([]);
  });

  test("takes wget instead of curl, and openssl instead of sha256sum", async () => {
    const hasWget = await findProgram("wget").then(() => true, () => false);
    await using machine = await openMachine({ programs: [hasWget ? "wget" : "curl", "openssl"] });
    expect(await machine.install()).toMatchObject({ code: 0, stderr: "" });
    await using bare = await openMachine({ programs: ["curl"] });
    expect(await bare.install()).toMatchObject({ code: 1, stderr: "install.sh: Needs sha256sum, shasum or openssl\n" });
  });

  test.each([
    [["Linux", "x86_64"], "parlor-linux-x64"],
    [["Linux", "aarch64"], "parlor-linux-arm64"],
    [["Darwin", "x86_64"], "parlor-macos-x64"],
    [["Darwin", "arm64"], "parlor-macos-arm64"],
  ])("on %j it takes the file that a release has", async (uname, file) => {
    await using machine = await openMachine({ uname });
    release.files = { [file]: PROGRAM("1.2.3") };
    expect(parseTargets(["--target", "all"]).map((target) => target.file)).toContain(file);
    expect(await machine.install()).toMatchObject({ code: 0 });
  });

  test("says what it can't do: other systems, addresses without encryption, a copy without a release", async () => {
    await using machine = await openMachine({ uname: ["Linux", "riscv64"] });
    expect((await machine.install()).stderr).toBe("install.sh: There is no executable for the processor riscv64\n");
    expect((await machine.run(["--from", "http://example.org"])).stderr).toBe(
      "install.sh: --from must start with https://\n",
    );
    expect((await machine.run([])).stderr).toContain("This copy names no release");
    expect((await machine.run(["--nonsense"])).stderr).toContain('Unknown option "--nonsense"');
    expect((await machine.run(["--help"])).stdout).toContain("--uninstall");
  });

  test("the service is the one in docs/guide/install.md", async () => {
    expect((await readTexts("docs/guide/install.md", "ini"))[0]).toBe(UNIT);
  });

  test("a download that breaks off runs nothing", async () => {
    await using machine = await openMachine();
    for (const share of [0.3, 0.6, 0.9]) {
      const script = machine.folder.file("part.sh");
      await Deno.writeTextFile(script, SCRIPT.slice(0, SCRIPT.length * share));
      await machine.run(["--from", `http://127.0.0.1:${server.addr.port}`], { script });
    }
    expect(await read(machine.program)).toBeUndefined();
  });
});

async function findProgram(name: string): Promise<string> {
  for (const folder of ["/usr/bin", "/bin", "/usr/local/bin"]) {
    if (await Deno.stat(`${folder}/${name}`).then(({ isFile }) => isFile, () => false)) return `${folder}/${name}`;
  }
  // Dash isn't on every machine; the shell of the system is the next best.
  if (name === "dash") return "/bin/sh";
  throw new Error(`This machine has no ${name}`);
}
