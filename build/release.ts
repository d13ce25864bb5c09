/**
 * Writes the files of a release besides the executables: release notes, compose files that pull its image, a Homebrew
 * formula, and their checksums. The addresses are those in project.json.
 *
 * deno run --allow-read --allow-write build/release.ts --tag v1.2.3
 */
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import { PROJECT } from "../services/platform/project.ts";

/** Version and addresses of a release. */
export interface Release {
  /** `"1.2.3"`, or `"1.3.0-rc.1"` for a prerelease. */
  version: string;
  /** Page of the source. */
  home: string;
  /** Name of the image, without tag. */
  image: string;
}

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
    const [, sum] = new RegExp(`^([0-9a-f]{64})  ${file}$`, "m").exec(checksums) ?? [];
    if (sum === undefined) throw new Error(`SHA256SUMS has no ${file}`);
    return `  on_${when} do
    url "${home}/releases/download/v${version}/${file}"
    sha256 "${sum}"
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

/** Returns the text of SHA256SUMS with the checksums of further files. */
export function addChecksums(checksums: string, files: Record<string, string>): string {
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
  };
  const files = {
    ...published,
    "notes.md": notesOf(await read("CHANGELOG.md"), version),
    "SHA256SUMS": addChecksums(checksums, published),
  };
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(new URL(`dist/${name}`, ROOT), text);
}

if (import.meta.main) await main();
