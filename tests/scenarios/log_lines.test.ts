/** What the log reports about failures, and what it never contains. */
import { expect, test } from "vitest";
import { runDoctorChecks } from "../../services/diagnostics/doctor.ts";
import { MIGRATIONS } from "../../services/storage/database/migrations.ts";
import { ask, gather, until, useModel } from "../helpers/app/chat_client.ts";
import { startChildServer } from "../helpers/app/child_server.ts";
import { enrol } from "../helpers/app/enrolled.ts";
import { FIXTURE_FOLDER, FIXTURE_KEY } from "../helpers/app/schema_fixtures.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { openGatedApp, Visitor } from "../helpers/app/visitor.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";

const GUIDE = new URL("../../docs/guide/monitoring.md", import.meta.url);

interface Line {
  level: string;
  message: string;
  [field: string]: unknown;
}

const linesOf = (app: TestApp, message: string | RegExp): Line[] =>
  app.logLines.map((line): Line => JSON.parse(line)).filter((line) =>
    typeof message === "string" ? line.message === message : message.test(line.message)
  );

async function findingsOf(app: TestApp): Promise<string[]> {
  const config = { ...app.services.config, dataDir: app.dataDir, port: app.port };
  const found = await runDoctorChecks({ readConfig: () => config, backupPassphrase: undefined, maxBytes: 1 });
  return found.map(({ level, code }) => `${level} ${code}`);
}

test("a failed call is logged with connection, model and status, but without prompt, key, query or the server's message", async () => {
  await using app = await openTestApp();
  const llm = await openFakeLlm({ apiKey: "sk-needle" });
  try {
    await useModel(app, llm, { api_key: "sk-needle", base_url: `${llm.url}?tenant=needle` });
    llm.switches.fail = "status_json";
    llm.switches.status = 500;
    llm.switches.message = "I can't answer needle";
    const body = await (await ask(app, 1, { messages: [{ role: "user", content: "needle" }] })).text();
    expect(body).toContain("I can't answer needle");
    expect(linesOf(app, "A call to a model failed")).toEqual([{
      time: expect.any(String),
      level: "warn",
      message: "A call to a model failed",
      connection_id: "double",
      model: "fake-model",
      code: "upstream_error",
      kind: "failed",
      status: 500,
    }]);
    expect(await findingsOf(app)).toEqual(expect.arrayContaining(["note call_failed"]));
  } finally {
    await llm.close();
  }
  await (await ask(app, 2, { messages: [{ role: "user", content: "needle" }] })).text();
  expect(linesOf(app, "A call to a model failed").at(-1)).toMatchObject({ kind: "refused" });
  expect(linesOf(app, "A call to a model failed").at(-1)!.error).toMatch(/connection refused/);
  expect(app.logLines.join("\n")).not.toContain("needle");
  expect(await findingsOf(app)).toEqual(expect.arrayContaining(["problem model_silent"]));
});

test("a server that rejects requests for its models causes one log line, not one per poll", async () => {
  await using app = await openTestApp();
  const llm = await openFakeLlm();
  await useModel(app, llm);
  await llm.close();
  for (let n = 0; n < 3; n++) await (await app.get("/api/models")).body?.cancel();
  expect(linesOf(app, "Can't list the models of a connection")).toMatchObject([{
    connection_id: "double",
    kind: "refused",
  }]);
});

test("level debug logs upstream calls and clients", async () => {
  await using app = await openTestApp({ config: { logLevel: "debug" } });
  const llm = await openFakeLlm();
  try {
    await useModel(app, llm);
    await gather(await ask(app, 1));
    expect(linesOf(app, "Calling a model")).toMatchObject([{ level: "debug", connection_id: "double", messages: 1 }]);
    expect(linesOf(app, "A call to a model ended")).toMatchObject([{ model: "fake-model" }]);
    expect(linesOf(app, "POST /api/chat")).toMatchObject([{ client: "127.0.0.1", signed_in_by: "loopback" }]);
  } finally {
    await llm.close();
  }
});

test("a failed backup is logged and a problem in doctor", async () => {
  await using folder = await tempFolder();
  await Deno.writeTextFile(folder.file("backups"), "a file where the folder should be");
  await using app = await openTestApp({
    config: { backupDir: `${folder.file("backups")}/daily` },
  });
  const { id } = await (await app.post("/api/data/backups")).json();
  expect((await app.services.jobs.ended(id)).state).toBe("failed");
  const line = linesOf(app, "A job failed").find((line) => line.id === id)!;
  expect(line).toMatchObject({ level: "error", kind: "backup", error: expect.stringContaining("backups") });
  expect(await findingsOf(app)).toContain("problem backup_failed");
});

test("a rejected host and a rejected sign-in log the client's address, which the filter for fail2ban finds", async () => {
  await using app = await openGatedApp();
  await enrol(app, "desk.example");
  const place = { host: "desk.example", address: "203.0.113.7" };
  const intruder = new Visitor(app, { ...place, headers: { Authorization: "Bearer needle" } });
  expect((await intruder.get("/api/settings?q=needle")).status).toBe(401);
  expect((await new Visitor(app, { ...place, host: "evil.example" }).get("/api/settings")).status).toBe(403);

  expect(linesOf(app, "Refused a sign-in")).toMatchObject([{ level: "warn", client: "203.0.113.7", method: "token" }]);
  expect(linesOf(app, "Refused a host")).toMatchObject([
    { client: "203.0.113.7", host: "evil.example", status: 403 },
  ]);
  expect(linesOf(app, "GET /api/settings")).toMatchObject([
    { client: "203.0.113.7", status: 401 },
    { client: "203.0.113.7", status: 403 },
  ]);
  expect(app.logLines.join("\n")).not.toContain("needle");

  const [, pattern] = /^failregex = (.*)$/m.exec(await Deno.readTextFile(GUIDE))!;
  const filter = new RegExp(pattern!.replace("<ADDR>", "(?<ip>[0-9a-f.:]+)"));
  const found = (lines: string[]) => lines.flatMap((line) => filter.exec(line)?.groups?.ip ?? []);
  expect(found(app.logLines)).toEqual(["203.0.113.7"]);
  // In the journal, a line starts with the host and the program.
  expect(found(app.logLines.map((line) => `desk parlor[17]: ${line}`))).toEqual(["203.0.113.7"]);
  const forged = JSON.stringify({
    time: "",
    level: "warn",
    message: "Refused a host",
    client: "203.0.113.7",
    host: pattern,
  });
  expect(found([forged, `x ${app.logLines.at(-1)}`])).toEqual([]);
});

test("doctor reports rejected sign-ins, and many of them as a problem", async () => {
  await using app = await openTestApp();
  const { failures } = app.services.auth;
  failures.record("203.0.113.7", { method: "code" });
  expect(await findingsOf(app)).toContain("note sign_ins_refused");
  for (let n = 0; n < 20; n++) failures.record("203.0.113.7", { method: "code" });
  expect(await findingsOf(app)).toContain("problem sign_ins_refused_often");
});

test("a failing speech server is logged with the request's ID", async () => {
  await using app = await openTestApp();
  const refused = await app.put("/api/tts/config", { base_url: "http://127.0.0.1:9/v1", model: "m" });
  await refused.body?.cancel();
  const answer = await app.post("/api/tts/speak", { text: "needle" });
  expect(answer.status).toBeGreaterThanOrEqual(500);
  expect(linesOf(app, "A server that a request needs failed")).toMatchObject([{
    request_id: answer.headers.get("x-request-id"),
    code: expect.stringMatching(/^upstream_/),
  }]);
  expect(app.logLines.join("\n")).not.toContain("needle");
  await answer.body?.cancel();
});

test(
  "the process logs its start, a schema upgrade and recovered replies as JSON lines",
  { timeout: 240_000 },
  async () => {
    await using folder = await tempFolder();
    const { DatabaseSync } = await import("node:sqlite");
    await Deno.writeFile(folder.file("storage-key"), FIXTURE_KEY, { mode: 0o600 });
    using file = new DatabaseSync(folder.file("app.db"));
    file.exec(await Deno.readTextFile(new URL("1.sql", FIXTURE_FOLDER)));
    file.close();
    const llm = await openFakeLlm({ switches: { manual: "on" } });
    const read = (logs: string[]): Line[] =>
      logs.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
    try {
      {
        await using server = await startChildServer({ dataDir: folder.path });
        const started = () => read(server.logs).find(({ message }) => message === "Started");
        await until(() => started() !== undefined, "the line of the start");
        expect(started()).toMatchObject({
          version: expect.stringMatching(/^\d+\.\d+\.\d+/),
          runtime: `Deno ${Deno.version.deno}`,
          data_dir: folder.path,
          listen: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
          addresses: [expect.stringMatching(/^http:\/\/localhost:\d+$/)],
        });
        expect(read(server.logs)).toContainEqual(expect.objectContaining({
          message: "Upgraded the schema of the database",
          from: 1,
          to: MIGRATIONS.at(-1)!.version,
          copy: "app.db.schema-1",
        }));
        const connection = { id: "double", name: "Double", kind: "openai", base_url: llm.url, model: "m" };
        await server.json("PUT", "/api/connections", connection);
        await (await server.request("POST", "/api/connections/double/activate")).body?.cancel();
        const ids = { conversation_id: "c9", user_message_id: "u9", assistant_message_id: "a9" };
        const asked = server.request("POST", "/api/chat", { ...ids, messages: [{ role: "user", content: "hi" }] });
        await (await llm.nextCall()).emit("half");
        await (await asked).body!.getReader().read();
        await server.kill();
      }
      await using again = await startChildServer({ dataDir: folder.path });
      await again.json("GET", "/api/conversations/c9");
      // Its output may arrive after its answer.
      await expect.poll(() => read(again.logs)).toContainEqual(
        expect.objectContaining({ message: "Recovered interrupted replies", count: 1 }),
      );
    } finally {
      await llm.close();
    }
  },
);
