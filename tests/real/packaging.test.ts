/**
 * The files for the stores, as a release fills them in, with programs that judge them: dclint with Compose's schema, Nix
 * with a stand-in for nixpkgs, and with `LONG_TESTS=1` Docker Compose, which takes minutes to build.
 */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readPackaging } from "../../build/packaging.ts";
import { readTexts } from "../helpers/files/doc_blocks.ts";
import { isLong } from "../helpers/files/sample.ts";
import { type TempFolder, tempFolder } from "../helpers/files/storage_folder.ts";
import { realPart } from "./helpers/real_part.ts";

const PART = realPart("REAL_PACKAGING_DIR", "packaging.sh");
const SCRIPT = fileURLToPath(new URL("./tools/packaging.sh", import.meta.url));
const NIXPKGS = fileURLToPath(new URL("../fixtures/nixpkgs", import.meta.url));
const COMPOSE_FILES = ["casaos/docker-compose.yml", "umbrel/parlor-chat/docker-compose.yml"];
/** What the stores' files do on purpose, and questions of style. */
const DCLINT_RULES = {
  "no-unbound-port-interfaces": 0,
  "require-project-name-field": 0,
  "service-keys-order": 0,
  "top-level-properties-order": 0,
};
const release = { version: "1.2.3", home: "https://example.org/parlor", image: "registry.example.org/parlor" };
const BUILD_MS = 1_200_000;

describe.skipIf(PART === undefined)("the files for the stores", { timeout: 120_000 }, () => {
  let folder: TempFolder;

  async function run(program: string, args: string[], env: Record<string, string> = {}): Promise<string> {
    const { success, stdout, stderr } = await new Deno.Command(program, { args, env }).output();
    const decoder = new TextDecoder();
    expect([success, decoder.decode(success ? undefined : stderr) + decoder.decode(success ? undefined : stdout)])
      .toEqual([
        true,
        "",
      ]);
    return decoder.decode(stdout);
  }
  const nix = (...args: string[]) => run("bash", [SCRIPT, "nix", PART!, ...args]);
  const flake = () => `path:${folder.file("nix")}`;
  const asNixpkgs = ["--override-input", "nixpkgs", `path:${NIXPKGS}`, "--no-write-lock-file"];

  beforeAll(async () => {
    folder = await tempFolder();
    const sums = ["x64", "arm64"].map((machine) => `${"a".repeat(64)}  parlor-linux-${machine}\n`).join("");
    const files = await readPackaging(new URL("../../", import.meta.url), release, sums);
    for (const [path, text] of files) {
      await Deno.mkdir(dirname(folder.file(path)), { recursive: true });
      await Deno.writeTextFile(folder.file(path), text);
    }
  });
  afterAll(() => folder?.[Symbol.asyncDispose]());

  test("the Compose files have nothing that Compose doesn't know", async () => {
    await Deno.writeTextFile(folder.file("dclint.json"), JSON.stringify({ rules: DCLINT_RULES }));
    const dclint = `${PART}/node_modules/.bin/dclint`;
    for (const path of COMPOSE_FILES) {
      await run(dclint, ["--max-warnings", "0", "--config", folder.file("dclint.json"), folder.file(path)]);
    }
  });

  test("Nix accepts the flake, and a system that uses its module gets the service with its settings", async () => {
    await nix("flake", "check", ...asNixpkgs, flake());
    const settings = '{ allowed_hosts = [ "a.example" "b.example" ]; metrics = true; pairing = "code"; }';
    const services = `{ enable = true; port = 8123; package = "/package"; settings = ${settings}; }`;
    const apply = `module: (module {
      config.services.parlor = ${services};
      pkgs = { };
      lib = import ${NIXPKGS}/lib.nix;
    }).config.systemd.services.parlor`;
    const args = ["eval", "--impure", "--json", ...asNixpkgs, `${flake()}#nixosModules.default`, "--apply", apply];
    const service = JSON.parse(await nix(...args));
    expect(service.environment).toEqual({
      PARLOR_ALLOWED_HOSTS: "a.example,b.example",
      PARLOR_DATA_DIR: "/var/lib/parlor",
      PARLOR_METRICS: "true",
      PARLOR_PAIRING: "code",
      PARLOR_PORT: "8123",
    });
    expect(service.serviceConfig).toMatchObject({ ExecStart: "/package/bin/parlor", StateDirectory: "parlor" });
    const url = await nix("eval", "--raw", ...asNixpkgs, `${flake()}#packages.aarch64-linux.default.src.url`);
    expect(url).toBe("https://example.org/parlor/releases/download/v1.2.3/parlor-linux-arm64");
  });

  test("Nix finds the flake in the archive of a release, and reads what docs/guide/stores.md shows", async () => {
    const archive = folder.file("packaging.tar.gz");
    await run("tar", ["-czf", archive, "--transform=s,^,packaging/,", "-C", folder.path, "nix", "umbrel"]);
    const args = ["eval", "--raw", ...asNixpkgs, `file://${archive}?dir=nix#packages.x86_64-linux.default.name`];
    expect(await nix(...args)).toBe("parlor-1.2.3");
    const [system] = await readTexts("docs/guide/stores.md", "nix");
    await Deno.writeTextFile(folder.file("system.nix"), system!);
    const outputs = `(import ${folder.file("system.nix")}).outputs {
      nixpkgs.lib.nixosSystem = { modules, ... }: builtins.elemAt modules 1;
      parlor.nixosModules.default = null;
    }`;
    const shown = await nix("eval", "--impure", "--json", "--expr", `(${outputs}).nixosConfigurations.server.services`);
    expect(JSON.parse(shown)).toMatchObject({ parlor: { enable: true, settings: { pairing: "code" } } });
  });

  test("an executable gets another loader, and keeps what follows its ELF file at its end", async () => {
    // Where no distribution has its loader, as in Nix's store.
    const loader = folder.file(`${"long-".repeat(10)}ld.so`);
    const program = folder.file("cat");
    const headers = await run("readelf", ["--program-headers", "/bin/cat"]);
    await Deno.copyFile(/program interpreter: (.*)\]/.exec(headers)![1]!, loader);
    await Deno.copyFile("/bin/cat", program);
    await Deno.writeTextFile(program, "the program", { append: true });
    const script = fileURLToPath(new URL("../../packaging/nix/set_interpreter.sh", import.meta.url));
    const path = `${PART}/unpacked/usr/bin:${Deno.env.get("PATH")}`;
    await run("bash", [script, program, loader, folder.path], { PATH: path });
    expect(await run("readelf", ["--program-headers", program])).toContain(loader);
    expect((await Deno.readTextFile(program)).endsWith("the program")).toBe(true);
    expect(await run(program, [folder.file("nix/release.nix")])).toContain(release.home);
  });

  // Not skipped, because a run with real parts must skip nothing.
  if (!isLong()) return;
  test("Docker Compose reads the files without a warning", { timeout: BUILD_MS }, async () => {
    await run("bash", [SCRIPT, "compose", PART!]);
    const variables = ["AppID", "DEVICE_DOMAIN_NAME", "NETWORK_IP", "PGID", "PUID"];
    // umbrelOS itself adds the image of its proxy.
    await Deno.writeTextFile(folder.file("umbrel.yaml"), "services: { app_proxy: { image: proxy } }\n");
    for (const path of COMPOSE_FILES) {
      const system = path.startsWith("umbrel") ? ["--file", folder.file("umbrel.yaml")] : [];
      const { success, stdout, stderr } = await new Deno.Command(`${PART}/docker-compose`, {
        args: ["--file", folder.file(path), ...system, "config"],
        env: { APP_DATA_DIR: "/app-data", ...Object.fromEntries(variables.map((name) => [name, "1"])) },
      }).output();
      expect([path, success, new TextDecoder().decode(stderr)]).toEqual([path, true, ""]);
      expect(new TextDecoder().decode(stdout)).toContain("registry.example.org/parlor:1.2.3");
    }
  });
});
