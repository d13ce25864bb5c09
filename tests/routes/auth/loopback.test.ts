import { expect, test } from "vitest";
import { fetchAs } from "../../helpers/network/fetch_as.ts";
import { runParlor } from "../../helpers/processes/parlor_command.ts";
import { openTestApp, type TestApp, type TestAppOptions } from "../../helpers/app/test_app.ts";
import { Visitor } from "../../helpers/app/visitor.ts";

const SPELLINGS = ["localhost", "LOCALHOST.", "x.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"];
const GATED_PATHS = ["/api/conversations", "/api/settings", "/api/export"];

/** A server that treats this machine like any other client. */
function openWithoutBypass(config: TestAppOptions["config"] = {}): Promise<TestApp> {
  return openTestApp({ config: { loopbackAuthBypass: false, ...config } });
}

/** Statuses of the protected paths under every spelling of loopback, without duplicates. */
async function statusesOf(app: TestApp, headers: Record<string, string> = {}): Promise<Record<string, number[]>> {
  const found: Record<string, number[]> = {};
  for (const spelling of SPELLINGS) {
    const host = `${spelling}:${app.port}`;
    const answers = await Promise.all(GATED_PATHS.map((path) => fetchAs(app, { path, host, headers })));
    found[spelling] = [...new Set(answers.map(({ status }) => status))];
  }
  return found;
}

const all = (status: number) => Object.fromEntries(SPELLINGS.map((spelling) => [spelling, [status]]));

test("a passkey on localhost closes all loopback names", { tags: ["G22"] }, async () => {
  await using app = await openWithoutBypass();
  expect(await statusesOf(app)).toEqual(all(200));
  const stream = await fetch(`http://127.0.0.1:${app.port}/api/events`);
  const late = new Visitor(app, { host: `x.localhost:${app.port}` });
  const begun = await late.post("/api/auth/register/begin", {});

  const owner = new Visitor(app);
  expect((await owner.enrol()).status).toBe(200);
  expect(await statusesOf(app)).toEqual(all(401));
  expect(await stream.text()).toContain(":"); // it ends because it was opened in grace
  const answer = late.authenticator.create(begun.json, late.origin);
  expect((await late.post("/api/auth/register/finish", answer)).code).toBe("conflict");
  for (const spelling of SPELLINGS) {
    const visitor = new Visitor(app, { host: `${spelling}:${app.port}` });
    expect([spelling, (await visitor.enrol()).code]).toEqual([spelling, "unauthenticated"]);
    expect((await visitor.get("/api/auth/status")).json).toMatchObject({ paired: true, bypass: null });
  }

  const { json: { token } } = await owner.post("/api/auth/token", { label: "script" });
  expect(await statusesOf(app, { Authorization: `Bearer ${token}` })).toEqual(all(200));
  await owner.post("/api/auth/logout");
  expect((await owner.signIn()).status).toBe(200);
  expect(await owner.isIn()).toBe(true);

  await app.restart();
  expect(await statusesOf(app)).toEqual(all(401));
  await Deno.remove(`${app.dataDir}/credentials.json`);
  expect(await statusesOf(app)).toEqual(all(200));
});

test("of two concurrent enrollments under different loopback names one succeeds", { tags: ["G22"] }, async () => {
  await using app = await openWithoutBypass();
  const visitors = ["localhost", "x.localhost", "y.localhost"].map((host) =>
    new Visitor(app, { host: `${host}:${app.port}` })
  );
  const begun = await Promise.all(visitors.map((visitor) => visitor.post("/api/auth/register/begin", {})));
  const ended = await Promise.all(
    visitors.map((visitor, at) =>
      visitor.post("/api/auth/register/finish", visitor.authenticator.create(begun[at]!.json, visitor.origin))
    ),
  );
  expect(ended.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
});

test(
  "a passkey elsewhere doesn't close loopback, and a passkey on localhost closes nothing else",
  { tags: ["G22"] },
  async () => {
    await using app = await openWithoutBypass({ allowedHosts: ["desk.example"] });
    const desk = { host: `desk.example:${app.port}` };
    await new Visitor(app, desk).enrol();
    expect(await new Visitor(app, desk).isIn()).toBe(false);
    expect(await statusesOf(app)).toEqual(all(200));

    await using other = await openWithoutBypass({ allowedHosts: ["desk.example"] });
    await new Visitor(other).enrol();
    expect(await new Visitor(other, { host: `desk.example:${other.port}` }).isIn()).toBe(true);
    expect(await statusesOf(other)).toEqual(all(401));
  },
);

test("a session works only with the host name it was created on", { tags: ["G22"] }, async () => {
  await using app = await openWithoutBypass();
  const owner = new Visitor(app);
  await owner.enrol();
  const cookie = { Cookie: `app_sess=${owner.cookies.get("app_sess")}` };
  expect(await statusesOf(app, cookie)).toEqual({ ...all(401), "localhost": [200], "LOCALHOST.": [200] });
});

test("startup names the addresses that are open, and no longer once they are closed", { tags: ["G21"] }, async () => {
  await using app = await openTestApp({
    config: {
      loopbackAuthBypass: false,
      allowedHosts: ["desk.example", "phone.example", "*.wild.example", "*.localhost", "127.0.0.0/8", "10.0.0.0/8"],
      trustedProxies: ["192.0.2.1"],
    },
  });
  const warnings = () => {
    const lines = app.logLines.map((line): { level: string; message: string } => JSON.parse(line));
    return lines.filter(({ level }) => level === "warn").map((line) => JSON.stringify(line));
  };
  expect(warnings()).toEqual([
    expect.stringContaining("every user and program of this machine: localhost, *.localhost, 127.0.0.0/8, [::1]"),
    expect.stringContaining("reach this server: desk.example, phone.example."),
    expect.stringContaining("everyone who can reach 10.0.0.0/8."),
    expect.stringContaining("everyone who can reach *.wild.example."),
  ]);
  await new Visitor(app).enrol();
  await new Visitor(app, { host: "desk.example" }).enrol();
  const before = warnings().length;
  await app.restart();
  expect(warnings().slice(before)).toEqual([
    expect.stringContaining("reach this server: phone.example."),
    expect.stringContaining("everyone who can reach 10.0.0.0/8."),
    expect.stringContaining("everyone who can reach *.wild.example."),
  ]);
});

test.each([
  ["the loopback bypass", { loopbackAuthBypass: true }],
  ['pairing = "code"', { pairing: "code", allowedHosts: ["localhost", "desk.example", "10.0.0.1"] }],
  ["require_auth = false", { requireAuth: false, allowedHosts: ["desk.example"] }],
  ["an address of the network to listen on", { host: "192.0.2.7" }],
])("startup names no open address with %s", { tags: ["G21"] }, async (_name, config) => {
  await using app = await openWithoutBypass(config);
  expect(app.logLines.filter((line) => /Open without/.test(line))).toEqual([]);
});

test(
  "doctor names the open addresses and doesn't report that everything is fine",
  { tags: ["G21"], timeout: 300_000 },
  async () => {
    await using app = await openWithoutBypass();
    const doctor = async (...args: string[]) => {
      const flags = ["--data-dir", app.dataDir, "--port", "9", "--loopback-auth-bypass", "false"];
      const { code, stdout } = await runParlor(["doctor", ...flags, ...args]);
      return { code, isFine: stdout.includes("No problems found."), problems: stdout.match(/^problem .*$/gm) ?? [] };
    };
    const loopback = expect.stringContaining("at localhost, *.localhost, 127.0.0.0/8, [::1]");
    expect(await doctor()).toEqual({ code: 1, isFine: false, problems: [loopback] });
    const hosts = ["--allowed-hosts", "desk.example,*.wild.example,10.0.0.1", "--trusted-proxies", "192.0.2.1"];
    const others = [
      expect.stringContaining("Anyone who reaches 10.0.0.1"),
      expect.stringContaining("A passkey can't protect *.wild.example"),
    ];
    const open = expect.stringContaining("desk.example: anyone who can reach");
    expect((await doctor(...hosts)).problems).toEqual([loopback, open, ...others]);

    await new Visitor(app).enrol();
    expect(await doctor()).toEqual({ code: 0, isFine: true, problems: [] });
    expect((await doctor(...hosts)).problems).toEqual([open, ...others]);
    await Deno.writeTextFile(`${app.dataDir}/credentials.json`, "{}");
    expect((await doctor()).problems).toEqual([
      expect.stringContaining("credentials.json, with the passkeys, is damaged"),
    ]);
  },
);
