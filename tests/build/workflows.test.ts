/** The GitHub workflows: the order of their steps, and their scripts with programs that only record their calls. */
import { expect, test } from "vitest";
import { parse } from "yaml";
import denoConfig from "../../deno.json" with { type: "json" };
import { DEBIAN_EXECUTABLES } from "../../build/deb.ts";
import { parseTargets } from "../../build/targets.ts";
import { openCommandReader } from "../helpers/files/doc_blocks.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";

interface Step {
  name?: string;
  uses?: string;
  run?: string;
  with?: Record<string, string>;
}

interface Job {
  needs?: string;
  uses?: string;
  with?: Record<string, unknown>;
  env?: Record<string, string>;
  permissions?: Record<string, string>;
  strategy?: { matrix: { include: { runner: string; file: string; arch?: string }[] } };
  steps?: Step[];
}

interface Workflow {
  on: Record<string, unknown>;
  env?: Record<string, string>;
  jobs: Record<string, Job>;
}

async function read(name: string): Promise<Workflow> {
  return parse(await Deno.readTextFile(`.github/workflows/${name}.yml`));
}

const release = await read("release");
const tests = await read("test");
const TARGET_FILES = parseTargets(["--target", "all"]).map(({ file }) => file);

/** Returns the position of a step of a job. @param start Of its script, or of the action. */
function findStep({ steps = [] }: Job, start: string): number {
  const index = steps.findIndex(({ run = "", uses = "" }) => run.includes(start) || uses.startsWith(start));
  expect(index, start).toBeGreaterThanOrEqual(0);
  return index;
}

function scriptOf(job: Job, part: string): string {
  return job.steps![findStep(job, part)]!.run!;
}

test("a release is tested, built, run and only then published", () => {
  const { test, executables, smoke, image, publish } = release.jobs;
  expect(test).toEqual({ uses: "./.github/workflows/test.yml" });
  expect(Object.keys(tests.on)).toContain("workflow_call");
  const order = [executables, smoke, image, publish].map((job) => job!.needs);
  expect(order).toEqual(["test", "executables", "smoke", "image"]);
  const writers = Object.entries(release.jobs).filter(([, { permissions }]) => permissions?.contents === "write");
  expect(writers.map(([name]) => name)).toEqual(["publish"]);
});

test("the runtime is the one of the image and of .ci/run", async () => {
  const [, version] = /^FROM denoland\/deno:debian-(\S+) AS built$/m.exec(await Deno.readTextFile("Dockerfile"))!;
  expect(String(release.env!.DENO_VERSION)).toBe(version);
  expect(await Deno.readTextFile(".ci/run")).toContain(`npx -y deno@${version} `);
  for (const { steps = [] } of [release.jobs.executables!, release.jobs.smoke!]) {
    const [setup] = steps.filter(({ uses }) => uses?.startsWith("denoland/setup-deno@"));
    expect(setup?.with).toEqual({ "deno-version": "${{ env.DENO_VERSION }}" });
  }
});

test("each executable is tested on a machine of its kind", () => {
  const { smoke, image } = release.jobs;
  const runners: Record<string, RegExp> = {
    "parlor-linux-x64": /^ubuntu-[\d.]+$/,
    "parlor-linux-arm64": /^ubuntu-[\d.]+-arm$/,
    "parlor-macos-x64": /^macos-\d+-intel$/,
    "parlor-macos-arm64": /^macos-\d+$/,
    "parlor-windows-x64.exe": /^windows-\d+$/,
  };
  expect(Object.keys(runners)).toEqual(TARGET_FILES);
  const tried = smoke!.strategy!.matrix.include;
  expect(tried.map(({ file }) => file)).toEqual(TARGET_FILES);
  for (const { file, runner } of tried) expect(runner).toMatch(runners[file]!);
  expect(scriptOf(smoke!, "build/smoke.ts")).toContain('build/smoke.ts "dist/$FILE"');

  const images = image!.strategy!.matrix.include;
  expect(images.map(({ arch, file }) => [arch, file])).toEqual(
    [["amd64", "parlor-linux-x64"], ["arm64", "parlor-linux-arm64"]],
  );
  for (const { file, runner } of images) expect(runner).toMatch(runners[file]!);
  expect(findStep(image!, "build/smoke_container.sh parlor:test")).toBeLessThan(
    findStep(image!, "buildx build --push"),
  );
  expect(scriptOf(image!, "--push")).toContain("--sbom=true --provenance=mode=max");
});

test("published files are attested first, with their bill of materials", () => {
  const publish = release.jobs.publish!;
  expect(publish.permissions).toMatchObject({ "id-token": "write", attestations: "write" });
  const provenance = findStep(publish, "actions/attest-build-provenance@");
  const sbom = findStep(publish, "actions/attest-sbom@");
  expect(publish.steps![sbom]!.with).toEqual({ "subject-path": "dist/parlor-*", "sbom-path": "dist/parlor.cdx.json" });
  for (const part of ["imagetools create", "gh release create"]) {
    expect(findStep(publish, part)).toBeGreaterThan(Math.max(provenance, sbom));
  }
});

const TAGS = [
  ["v1.2.3", [["1.2.3", "latest"], ["--latest"]]],
  ["v1.3.0-rc.1", [["1.3.0-rc.1"], ["--prerelease", "--latest=false"]]],
] as const;

test.each(TAGS)("the scripts publish %s under the right names", async (tag, [names, kind]) => {
  const { image, publish } = release.jobs;
  await using folder = await tempFolder();
  const dist = folder.file("dist");
  await Deno.mkdir(dist);
  const files = ["SHA256SUMS", ...TARGET_FILES];
  for (const name of [...files, "notes.md"]) await Deno.writeTextFile(`${dist}/${name}`, name);
  const env = {
    ...{ GITHUB_REF_NAME: tag, GITHUB_REPOSITORY: "Some-One/parlor", ARCH: "arm64", FILE: "parlor-linux-arm64" },
    BASE: "debian@sha256:12",
  };
  await using reader = await openCommandReader(["docker", "gh", "mv"], env);
  const version = tag.slice(1);
  const path = `ghcr.io/some-one/parlor:`;
  const valuesOf = (command: readonly string[], option: string) => command.filter((_, n) => command[n - 1] === option);

  const [push] = await reader.read(scriptOf(image!, "--push"));
  expect(valuesOf(push!, "--tag")).toEqual([`${path}${version}-arm64`]);
  expect(valuesOf(push!, "--build-arg")).toEqual([
    "BASE=debian@sha256:12",
    "EXECUTABLE=given",
    "GIVEN=dist/parlor-linux-arm64",
  ]);

  const [create] = await reader.read(scriptOf(publish!, "imagetools create"));
  expect(valuesOf(create!, "--tag")).toEqual(names.map((name) => path + name));
  expect(create!.slice(-2)).toEqual([`${path}${version}-amd64`, `${path}${version}-arm64`]);

  const [move, published] = await reader.read(`cd ${folder.path}\n${scriptOf(publish!, "gh release create")}`);
  // It isn't one of the files then.
  expect(move).toEqual(["mv", "dist/notes.md", "notes.md"]);
  expect(published!.slice(0, 4 + kind.length)).toEqual(["gh", "release", "create", tag, ...kind]);
  expect(valuesOf(published!, "--notes-file")).toEqual(["notes.md"]);
  expect(published).toEqual(expect.arrayContaining(files.map((name) => `dist/${name}`)));
});

test("the image that is tried and pushed starts from the base image that its tag named first, by digest", async () => {
  const image = release.jobs.image!;
  const pinned = findStep(image, "imagetools inspect");
  expect(pinned).toBeLessThan(findStep(image, "buildx build --load"));
  for (const part of ["buildx build --load", "buildx build --push"]) {
    expect(scriptOf(image, part)).toContain('--build-arg "BASE=$BASE"');
  }
  await using folder = await tempFolder();
  await Deno.copyFile("Dockerfile", folder.file("Dockerfile"));
  await Deno.mkdir(folder.file("bin"));
  await Deno.writeTextFile(folder.file("bin/docker"), '#!/bin/sh\necho "sha256:$4" | tr : _\n', { mode: 0o755 });
  const { success } = await new Deno.Command("bash", {
    args: ["-e", "-c", image.steps![pinned]!.run!],
    cwd: folder.path,
    env: { PATH: `${folder.file("bin")}:${Deno.env.get("PATH")}`, GITHUB_ENV: folder.file("env") },
  }).output();
  expect([success, await Deno.readTextFile(folder.file("env"))]).toEqual([
    true,
    "BASE=debian:bookworm-slim@sha256_debian_bookworm-slim\n",
  ]);
});

test("build/release.ts writes the files of a release, with the command in the workflow", async () => {
  await using folder = await tempFolder();
  await Deno.mkdir(folder.file("build"));
  await Deno.mkdir(folder.file("dist"));
  await Deno.mkdir(folder.file("services/platform"), { recursive: true });
  for (
    const name of [
      ...["deno.json", "deno.lock", "project.json", "compose.yaml", "compose.secret.yaml", "CHANGELOG.md", "LICENSE"],
      ...[
        "build/deb.ts",
        "build/files.ts",
        "build/packaging.ts",
        "build/project.ts",
        "build/release.ts",
        "services/platform/project.ts",
      ],
    ]
  ) {
    await Deno.copyFile(name, folder.file(name));
  }
  await new Deno.Command("cp", { args: ["-R", "packaging", folder.path] }).output();
  const sums = TARGET_FILES.map((file, n) => `${`${n}`.repeat(64)}  ${file}\n`).join("");
  await Deno.writeTextFile(folder.file("dist/SHA256SUMS"), sums);
  const packed = Object.values(DEBIAN_EXECUTABLES);
  for (const name of [...packed, "licences.txt"]) await Deno.writeTextFile(folder.file(`dist/${name}`), "");
  const run = (tag: string, script = "build/release.ts") =>
    new Deno.Command("bash", {
      args: ["-euc", `deno() { "${Deno.execPath()}" "$@"; }\n${scriptOf(release.jobs.executables!, script)}`],
      cwd: folder.path,
      env: { GITHUB_REF_NAME: tag, GITHUB_REPOSITORY: "some-one/parlor" },
    }).output();
  const tag = `v${denoConfig.version}`;
  // The build has the addresses, too.
  expect(findStep(release.jobs.executables!, "build/project.ts")).toBeLessThan(
    findStep(release.jobs.executables!, "deno task build"),
  );
  const homeless = await run(tag);
  expect([homeless.success, new TextDecoder().decode(homeless.stderr)]).toEqual([
    false,
    expect.stringContaining("project.json names no home"),
  ]);
  expect((await run(tag, "build/project.ts")).success).toBe(true);
  const { success, stderr } = await run(tag);
  expect([success, new TextDecoder().decode(success ? undefined : stderr)]).toEqual([true, ""]);
  const text = (name: string) => Deno.readTextFile(folder.file(`dist/${name}`));
  expect(await text("compose.yaml")).toContain(`ghcr.io/some-one/parlor:${denoConfig.version}}`);
  expect(await text("compose.secret.yaml")).toBe(await Deno.readTextFile("compose.secret.yaml"));
  expect(await text("parlor.rb")).toContain(`releases/download/${tag}/parlor-macos-arm64`);
  expect(await text("install.sh")).toContain(
    `\nDOWNLOAD='https://github.com/some-one/parlor/releases/download/${tag}'\n`,
  );
  const notes = await text("notes.md");
  expect(notes).not.toMatch(/^## /m);
  const groups = [...notes.matchAll(/^### (.*)$/gm)].map(([, title]) => title);
  expect(groups).not.toEqual([]);
  expect(["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]).toEqual(expect.arrayContaining(groups));
  expect(await text("SHA256SUMS")).toContain(sums);
  // They aren't those of the checksums.
  for (const name of packed) await Deno.remove(folder.file(`dist/${name}`));
  const check = { args: ["-a", "256", "--check", "--ignore-missing", "SHA256SUMS"], cwd: folder.file("dist") };
  const { stdout } = await new Deno.Command("shasum", check).output();
  expect(new TextDecoder().decode(stdout).trim().split("\n")).toEqual(
    [
      ...["compose.yaml", "compose.secret.yaml", "parlor.rb", "packaging.tar.gz", "install.sh", "parlor.service"],
      ...packed.map((name) => `${name}.deb`),
    ].map((name) => `${name}: OK`),
  );
  const tar = { args: ["-xzOf", folder.file("dist/packaging.tar.gz"), "packaging/nix/release.nix"] };
  const nix = new TextDecoder().decode((await new Deno.Command("tar", tar).output()).stdout);
  expect(nix).toContain(`version = "${denoConfig.version}"`);
  expect((await run("v9.9.9")).success).toBe(false);
});

test("once a week the tests run every case", async () => {
  const weekly = await read("weekly");
  expect(weekly.on.schedule).toEqual([{ cron: expect.stringMatching(/^\d+ \d+ \* \* [0-6]$/) }]);
  expect(weekly.jobs.test).toEqual({ uses: "./.github/workflows/test.yml", with: { long_tests: true } });
  expect(tests.on.workflow_call).toMatchObject({ inputs: { long_tests: { type: "boolean", default: false } } });
  expect(tests.jobs.test!.env).toEqual({ LONG_TESTS: "${{ inputs.long_tests && '1' || '' }}" });
});

test("the tests may use user namespaces on GitHub's machines, and the image is built and tested", () => {
  const { test, container } = tests.jobs;
  const allowed = findStep(test!, "sysctl --write kernel.apparmor_restrict_unprivileged_userns=0");
  expect(allowed).toBeLessThan(findStep(test!, ".ci/run"));
  expect(findStep(container!, "docker build --tag parlor:test .")).toBeLessThan(
    findStep(container!, "build/smoke_container.sh parlor:test"),
  );
});
