import { X509Certificate } from "node:crypto";
import { expect, test } from "vitest";
import { checkTools, type DoctorConfig, runDoctorChecks } from "../../../services/diagnostics/doctor.ts";
import { LeftServerFile } from "../../../services/models/runner/left_server.ts";
import { readStartTime } from "../../../services/process/supervised_process.ts";
import type { Finding } from "../../../services/diagnostics/finding.ts";
import { backUp } from "../../helpers/app/back_up.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { addDocument } from "../../helpers/files/document_files.ts";
import { putPicture } from "../../helpers/files/pictures.ts";
import { openAuthority } from "../../helpers/files/net_certificates.ts";
import { type TempFolder, tempFolder } from "../../helpers/files/storage_folder.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

interface Options {
  backupPassphrase?: string;
  maxBytes?: number;
}

async function find(app: TestApp, options: Options & { config?: Partial<DoctorConfig> } = {}): Promise<Finding[]> {
  const { config, backupPassphrase, maxBytes = Infinity } = options;
  const all = { ...app.services.config, dataDir: app.dataDir, port: app.port, ...config };
  return await runDoctorChecks({ readConfig: () => all, backupPassphrase, maxBytes });
}

const codesOf = (findings: Finding[], level?: Finding["level"]) =>
  findings.filter((finding) => level === undefined || finding.level === level).map(({ code }) => code);

async function makeBackup(app: TestApp): Promise<void> {
  const { id } = await (await app.post("/api/data/backups")).json();
  expect(await app.services.jobs.ended(id)).toMatchObject({ state: "done" });
}

test("without a backup folder, there is a note but no problem", async () => {
  await using app = await openTestApp();
  const findings = await find(app);
  expect(codesOf(findings, "note")).toContain("backups_off");
  expect(codesOf(findings, "problem")).toEqual([]);
});

test.each([["ahead", 40], ["back", -40]])(
  "says that the clock jumped %s and things are kept longer, for 30 days",
  async (_, days) => {
    let nowMs = Date.now();
    await using app = await openTestApp({ now: () => nowMs });
    const jumpOf = async () => (await find(app)).find(({ code }) => code === "clock_jumped");
    expect(await jumpOf()).toBeUndefined();
    const beforeMs = nowMs;
    await app.restart(() => Promise.resolve(void (nowMs += days * DAY_MS)));
    await app.restart(); // Both are saved at the stop.
    const [before, now] = [beforeMs, beforeMs + days * DAY_MS].map((ms) => new Date(ms).toISOString());
    expect(await jumpOf()).toMatchObject({ level: "note", params: { before, now } });
    for (let day = 0; day < 30; day += 2) await app.restart(() => Promise.resolve(void (nowMs += 2 * DAY_MS)));
    await app.restart();
    expect(await jumpOf()).toBeUndefined();
  },
);

test("names a model that runs without Parlor, unless its process ID belongs to another process", async () => {
  await using app = await openTestApp();
  const child = new Deno.Command("sleep", { args: ["300"] }).spawn();
  try {
    const save = async (startedAtMs: number) => {
      const settings = { path: "x.gguf", contextSize: 512, idleMinutes: 30 };
      const server = {
        pid: child.pid,
        startedAtMs,
        port: 1,
        apiKey: "k",
        pipe: null,
        program: "llama-server",
        settings,
      };
      await new LeftServerFile(app.dataDir).save(server);
    };
    await new LeftServerFile(app.dataDir).createPipePath();
    await save(Date.now() - DAY_MS);
    expect(codesOf(await find(app))).not.toContain("model_left");
    await save((await readStartTime(child.pid))!);
    expect((await find(app)).find(({ code }) => code === "model_left")).toMatchObject({
      level: "note",
      params: { model: "x.gguf", pid: child.pid },
    });
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
});

test("opens the last backup: intact, with a later time, damaged, missing", async () => {
  await using home = await tempFolder();
  const backupDir = home.file("backups");
  await using app = await openTestApp({ config: { backupDir } });
  await backUp(app);
  expect(codesOf(await find(app))).toContain("backup_ok");
  expect(codesOf(await find(app, { maxBytes: 1 }))).toContain("backup_opens");

  const names = (await Array.fromAsync(Deno.readDir(backupDir), ({ name }) => name)).sort();
  for (const name of names.slice(0, -1)) await Deno.remove(`${backupDir}/${name}`);
  const path = `${backupDir}/${names.at(-1)}`;
  const bytes = await Deno.readFile(path);
  bytes[bytes.length - 40]! ^= 1;
  await Deno.writeFile(path, bytes);
  const damaged = await find(app);
  expect(codesOf(damaged, "problem")).toEqual(["backup_unusable"]);

  bytes[bytes.length - 40]! ^= 1;
  const old = `${backupDir}/parlor-${new Date(Date.now() - 4 * DAY_MS).toISOString().slice(0, 10)}T000000Z.backup`;
  await Deno.writeFile(old, bytes);
  await Deno.remove(path);
  expect((await find(app)).find(({ code }) => code === "backup_old")?.params).toMatchObject({ days: 4 });

  await Deno.remove(old);
  expect(codesOf(await find(app), "problem")).toEqual(["backups_gone"]);
});

test("a failed backup is a problem with its reason until one succeeds", async () => {
  await using home = await tempFolder();
  await Deno.writeTextFile(home.file("backups"), "a file is in the way");
  await using app = await openTestApp({ config: { backupDir: home.file("backups") } });
  await expect.poll(() => app.services.jobs.list().map(({ state }) => state)).toEqual(["failed"]);
  const failed = (await find(app)).find(({ code }) => code === "backup_failed");
  expect(failed).toMatchObject({ level: "problem", params: { error: expect.stringContaining("backups") } });
  await Deno.remove(home.file("backups"));
  await makeBackup(app);
  expect(codesOf(await find(app), "problem")).toEqual([]);
});

test("checking a backup with a passphrase requires the passphrase", async () => {
  await using home = await tempFolder();
  const backupDir = home.file("backups");
  await using app = await openTestApp();
  const { makeBackup } = await import("../../../services/backup/backup.ts");
  await Deno.mkdir(backupDir);
  await makeBackup({
    dataDir: app.dataDir,
    storageKey: await Deno.readFile(`${app.dataDir}/storage-key`),
    path: `${backupDir}/parlor-${new Date().toISOString().slice(0, 10)}T000000Z.backup`,
    passphrase: "correct horse",
    version: "1",
    nowMs: Date.now(),
  });
  const config = { backupDir };
  expect(codesOf(await find(app, { config }), "note")).toContain("backup_locked");
  expect(codesOf(await find(app, { config, backupPassphrase: "correct horse" }))).toContain("backup_ok");
  const wrong = await find(app, { config, backupPassphrase: "battery" });
  expect(codesOf(wrong, "problem")).toEqual(["backup_unusable"]);
});

test("opens every encrypted file, and names a damaged one", async () => {
  await using app = await openTestApp();
  await putPicture(app, "a.png");
  await app.post("/api/auth/token", { label: "x" });
  const good = await find(app);
  expect(good.find(({ code }) => code === "sealed_ok")?.params.count).toBeGreaterThanOrEqual(1);
  expect(codesOf(await find(app, { maxBytes: 1 }))).toContain("sealed_ok_partly");

  const [file] = await Array.fromAsync(Deno.readDir(`${app.dataDir}/attachments`), ({ name }) => name);
  await Deno.truncate(`${app.dataDir}/attachments/${file}`, 20);
  for (const name of ["credentials.json", "tokens.json"]) {
    await Deno.writeTextFile(`${app.dataDir}/${name}`, "damaged", { mode: 0o600 });
  }
  const findings = await find(app);
  expect(codesOf(findings, "problem")).toEqual(["credentials_damaged", "sealed_damaged"]);
  expect(findings.find(({ code }) => code === "sealed_damaged")?.params).toEqual({
    count: 2,
    paths: `tokens.json, attachments/${file}`,
  });
});

test("names a document whose original is damaged or missing", async () => {
  await using app = await openTestApp();
  const [whole, damaged, missing] = [
    await addDocument(app, "whole.txt", "One"),
    await addDocument(app, "damaged.txt", "Two"),
    await addDocument(app, "missing.txt", "Three"),
  ];
  expect((await find(app)).find(({ code }) => code === "sealed_ok")?.params).toMatchObject({ count: 3 });
  await Deno.truncate(`${app.dataDir}/documents/${damaged.id}`, 20);
  await Deno.remove(`${app.dataDir}/documents/${missing.id}`);
  const found = (await find(app)).find(({ code }) => code === "sealed_damaged")?.params as { paths: string };
  expect(found.paths.split(", ").sort()).toEqual([damaged, missing].map(({ id }) => `documents/${id}`).sort());
  expect(found.paths).not.toContain(whole.id);
});

test("with a wrong key, the only advice is to restore the right one", async () => {
  await using app = await openTestApp();
  await Deno.writeTextFile(`${app.dataDir}/credentials.json`, "sealed with the right key", { mode: 0o600 });
  await Deno.writeFile(`${app.dataDir}/storage-key`, crypto.getRandomValues(new Uint8Array(32)));
  const problems = (await find(app)).filter(({ level }) => level === "problem");
  expect(problems.map(({ code }) => code)).toEqual(["key_wrong"]);
  expect(problems[0]!.remedy).toMatch(/^Put back the key/);
});

test("asks a server with its own certificate through loopback under its public name", async () => {
  await using folder = await tempFolder();
  await using authority = await openAuthority();
  const { config, tls } = await certified(folder, authority, "chat.parlor.invalid");
  await using app = await openTestApp({ tls, config: { allowedHosts: config.allowedHosts } });
  const findings = await find(app, { config });
  expect(findings).toContainEqual(expect.objectContaining({
    code: "server_ok",
    params: { url: `https://chat.parlor.invalid:${app.port}` },
  }));
  // With a local connection: the demo of a first start responds.
  expect(codesOf(findings)).toContain("model_ok");

  const other = await certified(folder, authority, "other.parlor.invalid");
  const mismatched = await find(app, { config: other.config });
  expect(codesOf(mismatched, "problem")).toContain("certificate_not_served");
});

test("a server is asked if its certificate is known from no authority, and an expired one is a problem", async () => {
  await using folder = await tempFolder();
  await using authority = await openAuthority();
  const name = "chat.parlor.invalid";
  const { tls, config } = await certified(folder, authority, name, 15);
  await Deno.writeTextFile(config.tlsCert, tls.cert);
  await using app = await openTestApp({ tls, config: { allowedHosts: [name] } });
  const codes = codesOf(await find(app, { config }));
  expect(codes).toEqual(expect.arrayContaining(["server_ok", "model_ok", "certificate_ok"]));

  const now = Date.now;
  const until = Date.parse(new X509Certificate(tls.cert).validTo);
  const at = async (ms: number) => {
    Date.now = () => ms;
    try {
      return codesOf(await find(app, { config: { ...config, port: 9 } }));
    } finally {
      Date.now = now;
    }
  };
  expect(await at(until - 1)).toContain("certificate_expires");
  expect(await at(until + 1)).toContain("certificate_expired");
});

test("another program on the port, or one that is silent, is not a server that is off", async () => {
  await using app = await openTestApp();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  (async () => {
    for await (const connection of listener) connection.close();
  })().catch(() => {}); // closed at the end
  const { port } = listener.addr as Deno.NetAddr;
  expect(codesOf(await find(app, { config: { port } }), "problem")).toEqual(["server_unreachable"]);
});

test("without a session key, what only the server knows is unknown", async () => {
  await using app = await openTestApp();
  await Deno.remove(`${app.dataDir}/session-key`);
  expect(codesOf(await find(app), "note")).toContain("session_key_unreadable");
});

async function certified(
  folder: TempFolder,
  authority: Awaited<ReturnType<typeof openAuthority>>,
  name: string,
  days?: number,
) {
  const { cert, key } = await authority.issue({ name, days });
  const tlsCert = folder.file(`${name}.pem`);
  await Deno.writeTextFile(tlsCert, cert + authority.cert);
  return { tls: { cert, key }, config: { tlsCert, allowedHosts: [name] } };
}

test("finds a program where the server finds it, even outside PATH", async () => {
  await using folder = await tempFolder();
  const path = folder.file("parlor-test-program");
  await Deno.writeTextFile(path, "#!/bin/sh\n", { mode: 0o755 });
  const tool = {
    program: "parlor-test-program",
    key: "tailscaled_path",
    configured: null,
    missing: "no_tailscaled" as const,
  };
  expect(codesOf(await checkTools([tool]))).toEqual(["no_tailscaled"]);
  expect(await checkTools([{ ...tool, otherFolders: [folder.path] }])).toMatchObject([
    { code: "program_ok", params: { path } },
  ]);
});

test("points out a listener on all addresses without TLS", async () => {
  await using app = await openTestApp();
  const config = { host: "0.0.0.0", allowedHosts: ["192.168.1.9"], pairing: "code" };
  const note = (await find(app, { config })).find(({ code }) => code === "exposed_plain");
  expect(note).toMatchObject({ level: "note", params: { address: `0.0.0.0:${app.port}` } });
});

test("without a running server, what only it knows is unknown; with one, failed tasks are a note", async () => {
  await using app = await openTestApp();
  const off = await find(app, { config: { port: 9 } });
  expect(off.find(({ code }) => code === "server_off")?.about).toMatch(/unknown$/);
  app.services.jobs.register("test", {
    parallel: 1,
    resumable: false,
    run: () => Promise.reject(new Error("boom")),
  });
  const { id } = await app.services.jobs.start("test", { title: "Try", params: {} });
  await app.services.jobs.ended(id);
  expect((await find(app)).find(({ code }) => code === "jobs_failed")?.params).toMatchObject({
    count: 1,
    title: "Try",
  });
});
