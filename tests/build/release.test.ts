import { expect, test } from "vitest";
import denoConfig from "../../deno.json" with { type: "json" };
import { parseTargets } from "../../build/targets.ts";
import { addChecksums, composeFile, formula, installScript, notesOf, versionOfTag } from "../../build/release.ts";

const release = { version: "1.2.3", home: "https://github.com/Some-One/parlor", image: "ghcr.io/some-one/parlor" };
const CHANGELOG = `# Changelog

## Unreleased

- Later.

## 1.2.3 (2026-11-20)

### Added

- This.

## 1.2.30 (2026-11-01)

- Other.

## 1.0.0

- Undated.
`;

test("the notes are only the section of that version", () => {
  expect(notesOf(CHANGELOG, "1.2.3")).toBe("### Added\n\n- This.\n");
  expect(() => notesOf(CHANGELOG, "1.2")).toThrow('no section "## 1.2"');
  expect(() => notesOf(CHANGELOG, "1.0.0")).toThrow("no date");
  expect(() => notesOf("## 1.2.3 (2026-11-20)\n\n## 1.2.2\n", "1.2.3")).toThrow("empty");
});

test("rejects a tag that isn't the program's version", () => {
  expect(versionOfTag(`v${denoConfig.version}`, denoConfig.version)).toBe(denoConfig.version);
  expect(() => versionOfTag("v9.9.9", "1.2.3")).toThrow('The tag is "v9.9.9", but the program is version 1.2.3');
});

test("the compose file of a release pulls its image and builds nothing", async () => {
  const text = composeFile(await Deno.readTextFile("compose.yaml"), release);
  expect(text).toContain("    image: ${PARLOR_IMAGE:-ghcr.io/some-one/parlor:1.2.3}\n");
  expect(text).not.toMatch(/build/);
  expect(text).toContain("no-new-privileges:true");
});

test("the formula contains the URL and the checksum of each Mac's executable", () => {
  const [arm, intel] = ["a".repeat(64), "b".repeat(64)];
  const sums = `${arm}  parlor-macos-arm64\n${intel}  parlor-macos-x64\n`;
  const text = formula(release, sums);
  expect(text).toMatch(
    new RegExp(
      `on_arm do\\n +url "https://github.com/Some-One/parlor/releases/download/v1.2.3/parlor-macos-arm64"\\n +sha256 "${arm}"`,
    ),
  );
  expect(text).toMatch(new RegExp(`on_intel do\\n +url ".*/parlor-macos-x64"\\n +sha256 "${intel}"`));
  expect(() => formula(release, "")).toThrow("no parlor-macos-arm64");
});

test("the formula downloads files that a build for all machines creates", () => {
  const files = parseTargets(["--target", "all"]).map(({ file }) => file);
  const text = formula(release, files.map((file, n) => `${`${n}`.repeat(64)}  ${file}\n`).join(""));
  const downloads = [...text.matchAll(/\/([^/\n]+)"\n +sha256 "(\d)\d{63}"/g)].map((
    [, file, n],
  ) => [file, files[Number(n)]]);
  expect(downloads).toEqual([["parlor-macos-arm64", "parlor-macos-arm64"], ["parlor-macos-x64", "parlor-macos-x64"]]);
  const [, start] = /Dir\["([\w-]+)\*"\]/.exec(text)!;
  for (const [file] of downloads) expect(file!.startsWith(start!)).toBe(true);
});

test("the service of the formula finds programs that Homebrew has installed", () => {
  expect(formula(release, `${"a".repeat(64)}  parlor-macos-arm64\n${"b".repeat(64)}  parlor-macos-x64\n`)).toContain(
    "environment_variables PATH: std_service_path_env\n",
  );
});

test("the checksums of further files are added once", () => {
  const sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
  const before = `${"a".repeat(64)}  parlor-linux-x64\n`;
  const after = addChecksums(before, { "compose.yaml": "hello" });
  expect(after).toBe(`${before}${sum}  compose.yaml\n`);
  expect(addChecksums(after, { "compose.yaml": "hello" })).toBe(after);
});

test("the install script downloads from its release, whose address can't be a command", async () => {
  const source = await Deno.readTextFile("packaging/install.sh");
  expect(installScript(source, release)).toContain(
    "\nDOWNLOAD='https://github.com/Some-One/parlor/releases/download/v1.2.3'\n",
  );
  expect(() => installScript(source, { ...release, home: "https://a/';b" })).toThrow("can't be in a shell script");
  expect(() => installScript("", release)).toThrow("doesn't have the expected form");
});
