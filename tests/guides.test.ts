/** The commands and files that the guides print, as far as this system can try them. */
import { expect, test } from "vitest";
import { findOnPath } from "../services/process/find_program.ts";
import { tempFolder } from "./helpers/files/storage_folder.ts";

const GUIDE = new URL("../docs/guide/", import.meta.url);

/** Code blocks of a language, in all guides or in one. */
async function blocksOf(language: string, page?: string): Promise<string[]> {
  const names = page === undefined ? await Array.fromAsync(Deno.readDir(GUIDE), ({ name }) => name) : [page];
  const texts = await Promise.all(
    names.filter((name) => name.endsWith(".md")).map((name) => Deno.readTextFile(new URL(name, GUIDE))),
  );
  const fence = "`".repeat(3);
  const pattern = new RegExp(`^${fence}${language}\\n(.*?)^${fence}$`, "gms");
  return texts.flatMap((text) => [...text.matchAll(pattern)].map(([, block]) => block!));
}

async function run(program: string, args: string[]): Promise<{ code: number; output: string }> {
  const { code, stdout, stderr } = await new Deno.Command(program, { args, stdin: "null" }).output();
  return { code, output: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

test("the shell commands of all guides are complete", async () => {
  await using folder = await tempFolder();
  const blocks = await blocksOf("sh");
  expect(blocks.length).toBeGreaterThan(20);
  for (const block of blocks) {
    await Deno.writeTextFile(folder.file("commands.sh"), block);
    expect([block, (await run("bash", ["-n", folder.file("commands.sh")])).output]).toEqual([block, ""]);
  }
});

const SYSTEMD = await findOnPath("systemd-analyze");

test.skipIf(SYSTEMD === undefined)(
  "systemd accepts the service with the backup folder and the credential",
  async () => {
    await using folder = await tempFolder();
    const [unit = "", ...additions] = await blocksOf("ini", "install.md");
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

const PYTHON = await findOnPath("python3");

test.skipIf(PYTHON === undefined)("the property list for launchd starts the program at login", async () => {
  await using folder = await tempFolder();
  const [plist = ""] = await blocksOf("xml", "install.md");
  await Deno.writeTextFile(folder.file("parlor.plist"), plist);
  const script = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
  const { output } = await run(PYTHON!, ["-c", script, folder.file("parlor.plist")]);
  expect(JSON.parse(output)).toMatchObject({
    Label: "parlor",
    ProgramArguments: ["/usr/local/bin/parlor"],
    RunAtLoad: true,
    KeepAlive: { SuccessfulExit: false },
  });
});
