/**
 * Writes the files of a release besides the executables: release notes, compose files that pull its image, a Homebrew
 * formula, the files of the stores, the install script with its systemd unit, Debian packages, and their checksums. The
 * addresses are those in project.json.
 *
 * deno run --allow-read --allow-write --allow-run=tar,dpkg-deb build/release.ts --tag v1.2.3
 */
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { DEBIAN_EXECUTABLES, writeDebianPackage } from "./deb.ts";
import { findChecksum, readPackaging, type Release } from "./packaging.ts";
import { PROJECT } from "../services/platform/project.ts";

const ROOT = new URL("../", import.meta.url);
const FORMULA_TARGETS = { arm: "parlor-macos-arm64", intel: "parlor-macos-x64" };

/** Returns the version in a tag. @throws {Error} if it differs from the program's version */
export function versionOfTag(tag: string, programVersion: string): string {
  if (tag !== `v${programVersion}`) {
    throw new Error(`The tag is "${tag}", but the program is version ${programVersion}`);
  }
  return programVersion;
}

/**
 * Returns the section of a version in the changelog, without its heading: `## 1.2.3 (2026-01-31)`.
 *
 * @throws {Error} if there is none, it has no date, or it is empty.
 */
export function notesOf(changelog: string, version: string): string {
  const heading = `## ${version}`;
  const lines = changelog.split("\n");
  const start = lines.findIndex((line) => line === heading || line.startsWith(`${heading} `));
  if (start < 0) throw new Error(`CHANGELOG.md has no section "${heading}"`);
  if (!/ \(\d{4}-\d\d-\d\d\)$/.test(lines[start]!)) throw new Error(`"${lines[start]}" in CHANGELOG.md has no date`);
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith("## "));
  const notes = lines.slice(start + 1, length < 0 ? undefined : start + 1 + length).join("\n").trim();
  if (notes === "") throw new Error(`"${heading}" in CHANGELOG.md is empty`);
  return `${notes}\n`;
}

/** Returns the day of a version in the changelog, which `notesOf` has checked. */
function dayOf(changelog: string, version: string): string {
  return changelog.split(`\n## ${version} (`)[1]!.slice(0, "2026-01-31".length);
}

/** Returns the compose file of the source with the image of the release instead of a build. */
export function composeFile(source: string, { version, image: name }: Pick<Release, "version" | "image">): string {
  const image = `${name}:${version}`;
  const text = source.replace(/^ {4}# In the source.*\n {4}build: .*\n/m, "").replace(
    /^( {4}image: ).*$/m,
    `$1\${PARLOR_IMAGE:-${image}}`,
  );
  if (!text.includes(image) || text.includes("build:")) {
    throw new Error("Can't write the compose file: compose.yaml doesn't have the expected form");
  }
  return text;
}

/** Returns a formula for `brew install`. @param checksums Text of SHA256SUMS. */
export function formula({ version, home }: Pick<Release, "version" | "home">, checksums: string): string {
  const block = (when: string, file: string) => {
    return `  on_${when} do
    url "${home}/releases/download/v${version}/${file}"
    sha256 "${findChecksum(checksums, file)}"
  end
`;
  };
  return `class Parlor < Formula
  desc "Self-hosted chat for language models"
  homepage "${home}"
  version "${version}"
  license "MIT"
  depends_on :macos

${block("arm", FORMULA_TARGETS.arm)}
${block("intel", FORMULA_TARGETS.intel)}
  def install
    bin.install Dir["parlor-macos-*"].first => "parlor"
  end

  service do
    run [opt_bin/"parlor"]
    environment_variables PATH: std_service_path_env
    keep_alive true
    log_path var/"log/parlor.log"
    error_log_path var/"log/parlor.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/parlor --version")
  end
end
`;
}

/** Returns the install script with the address of the release's files. @param source Text of packaging/install.sh. */
export function installScript(source: string, { version, home }: Pick<Release, "version" | "home">): string {
  const address = `${home}/releases/download/v${version}`;
  if (!/^https:\/\/[\w./:@+-]+$/.test(address)) throw new Error(`"${address}" can't be in a shell script`);
  const text = source.replace(/^DOWNLOAD=''$/m, `DOWNLOAD='${address}'`);
  if (text === source) {
    throw new Error("Can't write the install script: packaging/install.sh doesn't have the expected form");
  }
  return text;
}

/** Returns the text of SHA256SUMS with the checksums of further files. */
export function addChecksums(checksums: string, files: Record<string, string | Uint8Array>): string {
  const others = checksums.split("\n").filter((line) => line !== "" && !Object.hasOwn(files, line.split("  ")[1]!));
  const lines = Object.entries(files).map(([name, text]) =>
    `${createHash("sha256").update(text).digest("hex")}  ${name}`
  );
  return [...others, ...lines, ""].join("\n");
}

async function main(): Promise<void> {
  const { tag = "" } = parseArgs({ args: Deno.args, options: { tag: { type: "string" } } }).values;
  if (PROJECT.home === "") throw new Error("project.json names no home: see build/project.ts");
  const read = (path: string) => Deno.readTextFile(new URL(path, ROOT));
  const version = versionOfTag(tag, JSON.parse(await read("deno.json")).version);
  const release = { version, ...PROJECT };
  const checksums = await read("dist/SHA256SUMS");
  const published = {
    "compose.yaml": composeFile(await read("compose.yaml"), release),
    "compose.secret.yaml": await read("compose.secret.yaml"),
    "parlor.rb": formula(release, checksums),
    "packaging.tar.gz": await packStores(release, checksums),
    "install.sh": installScript(await read("packaging/install.sh"), release),
    "parlor.service": await read("packaging/systemd/parlor.service"),
  };
  const changelog = await read("CHANGELOG.md");
  const notes = notesOf(changelog, version);
  const packages: Record<string, Uint8Array> = {};
  for (const [architecture, name] of Object.entries(DEBIAN_EXECUTABLES)) {
    const executable = fileURLToPath(new URL(`dist/${name}`, ROOT));
    const path = `${executable}.deb`;
    await writeDebianPackage({
      ...{ executable, path, architecture, version },
      home: PROJECT.home,
      day: dayOf(changelog, version),
      notices: await read("dist/licences.txt"),
    });
    packages[`${name}.deb`] = await Deno.readFile(path);
  }
  const files = {
    ...published,
    "notes.md": notes,
    "SHA256SUMS": addChecksums(checksums, { ...published, ...packages }),
  };
  for (const [name, content] of Object.entries(files)) {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    await Deno.writeFile(new URL(`dist/${name}`, ROOT), bytes);
  }
}

/** Packs the files of the stores as the folder packaging/. */
async function packStores(release: Release, checksums: string): Promise<Uint8Array<ArrayBuffer>> {
  const folder = await Deno.makeTempDir({ prefix: "parlor-packaging-" });
  try {
    for (const [path, text] of await readPackaging(ROOT, release, checksums)) {
      const target = `${folder}/packaging/${path}`;
      await Deno.mkdir(dirname(target), { recursive: true });
      await Deno.writeTextFile(target, text, { mode: path.endsWith(".sh") ? 0o755 : 0o644 });
    }
    const args = ["-czf", "-", "-C", folder, "packaging"];
    const { success, stdout, stderr } = await new Deno.Command("tar", { args }).output();
    if (!success) throw new Error(`Can't pack the files of the stores: ${new TextDecoder().decode(stderr)}`);
    return stdout;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) await main();
