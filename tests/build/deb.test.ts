import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { parseTargets } from "../../build/targets.ts";
import { DEBIAN_EXECUTABLES, writeDebianPackage } from "../../build/deb.ts";
import { readTexts } from "../helpers/files/doc_blocks.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";

const hasDpkg = await new Deno.Command("dpkg-deb", { args: ["--version"], stdout: "null" }).output()
  .then(({ success }) => success, () => false);

async function dpkgDeb(...args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("dpkg-deb", { args }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

test("packs executables that a build for all machines creates", () => {
  expect(parseTargets(["--target", "all"]).map(({ file }) => file)).toEqual(
    expect.arrayContaining(Object.values(DEBIAN_EXECUTABLES)),
  );
});

test.skipIf(!hasDpkg)("a package has the executable, the unit, its texts and its scripts", async () => {
  await using folder = await tempFolder();
  await Deno.writeTextFile(folder.file("parlor"), "#!/bin/sh\n", { mode: 0o600 });
  const path = folder.file("parlor.deb");
  await writeDebianPackage({
    ...{ executable: folder.file("parlor"), path, architecture: "arm64", version: "1.3.0-rc.1" },
    ...{ home: "https://example.org/parlor", day: "2026-11-20", notices: "Licenses\n" },
    compression: { method: "gzip", level: 1 },
  });
  const fields = ["Package", "Version", "Architecture", "Installed-Size", "Homepage"];
  expect((await dpkgDeb("--field", path, ...fields)).trim().split("\n")).toEqual([
    "Package: parlor",
    "Version: 1.3.0~rc.1",
    "Architecture: arm64",
    expect.stringMatching(/^Installed-Size: \d$/),
    "Homepage: https://example.org/parlor",
  ]);
  const listed = (await dpkgDeb("--contents", path)).trim().split("\n").map((line) => line.split(/\s+/));
  const modes = listed.map(([mode, owner, , , , name]) => `${mode} ${owner} ${name}`);
  expect(modes).toEqual(expect.arrayContaining([
    "drwxr-xr-x root/root ./",
    "drwxr-xr-x root/root ./usr/bin/",
    "-rwxr-xr-x root/root ./usr/bin/parlor",
    "-rw-r--r-- root/root ./usr/lib/systemd/system/parlor.service",
    "-rw-r--r-- root/root ./usr/share/doc/parlor/copyright",
  ]));
  // Nothing in /var: the data isn't part of the package.
  expect(modes.filter((line) => !/ \.\/(usr\/.*)?$/.test(line))).toEqual([]);

  await dpkgDeb("--raw-extract", path, folder.file("out"));
  const read = (name: string) => Deno.readTextFile(folder.file(`out/${name}`));
  for (const name of ["postinst", "prerm", "postrm"]) {
    expect((await Deno.stat(folder.file(`out/DEBIAN/${name}`))).mode! & 0o777, name).toBe(0o755);
  }
  // The unit of the guide, with a user that exists.
  const [unit] = await readTexts("docs/guide/install.md", "ini");
  expect(
    (await read("usr/lib/systemd/system/parlor.service")).split("\n").filter((line) => !unit!.includes(`${line}\n`)),
  )
    .toEqual(["ExecStart=/usr/bin/parlor", "User=parlor", "Group=parlor"]);
  expect(await read("usr/share/doc/parlor/copyright")).toMatch(
    /^Copyright: \d{4} The Parlor authors\nLicense: MIT\n Permission is hereby granted[^]*\n \.\n The above/m,
  );
  const sums = (await read("DEBIAN/md5sums")).trim().split("\n").map((line) => line.split("  "));
  expect(sums.map(([, name]) => name)).toContain("usr/share/doc/parlor/changelog.gz");
  for (const [sum, name] of sums) {
    const content = await Deno.readFile(folder.file(`out/${name}`));
    expect(createHash("md5").update(content).digest("hex"), name).toBe(sum);
  }
});
