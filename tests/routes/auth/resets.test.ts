/** The five reset actions, on a running server and across a restart (docs/guide/access.md#reset). */
import { expect, test } from "vitest";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openGatedApp, Visitor } from "../../helpers/app/visitor.ts";

const desk = { host: "desk.example", address: "203.0.113.5" };

/** What users see after signing in with a passkey, and with a token. */
async function enter(app: TestApp) {
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const { token } = (await owner.post("/api/auth/token", { label: "t" })).json;
  const script = new Visitor(app, { ...desk, headers: { Authorization: `Bearer ${token}` } });
  await owner.ask("PATCH", "/api/settings", { display_name: "Kept" });
  return { owner, script, stranger: new Visitor(app, { ...desk, address: "198.51.100.1" }) };
}

async function removeFile(app: TestApp, name: string, isRunning: boolean): Promise<void> {
  // The file is deleted between two processes; the old process must not write it again at its end.
  if (isRunning) return await Deno.remove(`${app.dataDir}/${name}`);
  await app.restart(() => Deno.remove(`${app.dataDir}/${name}`));
}

const WHEN: [string, boolean][] = [["while running", true], ["between runs", false]];

test.each(WHEN)(
  "credentials.json removed %s: grace returns, sessions end, nothing else is lost",
  { tags: ["G07"] },
  async (_, isRunning) => {
    await using app = await openGatedApp();
    const { owner, script, stranger } = await enter(app);
    await removeFile(app, "credentials.json", isRunning);
    expect((await stranger.get("/api/auth/status")).json).toMatchObject({ paired: false, bypass: "grace" });
    expect((await owner.get("/api/auth/status")).json.method).toBe(null);
    expect((await script.get("/api/auth/status")).json.method).toBe("token");
    expect((await stranger.get("/api/settings")).json.display_name).toBe("Kept");
    expect((await owner.signIn()).status).toBe(401);
    const again = new Visitor(app, desk);
    expect((await again.enrol()).status).toBe(200);
    expect(await stranger.isIn()).toBe(false);
    expect((await owner.get("/api/settings")).status).toBe(401);
  },
);

test.each(WHEN)("session-key removed %s: everyone is signed out, passkeys and tokens stay", async (_, isRunning) => {
  await using app = await openGatedApp();
  const { owner, script } = await enter(app);
  await removeFile(app, "session-key", isRunning);
  expect(await owner.isIn()).toBe(false);
  expect(await script.isIn()).toBe(true);
  expect((await owner.signIn()).status).toBe(200);
  expect(await owner.isIn()).toBe(true);
});

test.each(WHEN)(
  "tokens.json removed %s: all tokens are gone, passkeys and sessions stay",
  { tags: ["S17"] },
  async (_, isRunning) => {
    await using app = await openGatedApp();
    const { owner, script } = await enter(app);
    await removeFile(app, "tokens.json", isRunning);
    expect(await script.isIn()).toBe(false);
    expect(await owner.isIn()).toBe(true);
    expect((await owner.get("/api/auth/tokens")).json).toEqual([]);
    expect((await owner.post("/api/auth/token", { label: "new" })).status).toBe(201);
  },
);

test("a damaged tokens.json accepts no token and doesn't stop startup", { tags: ["S17"] }, async () => {
  await using app = await openGatedApp();
  const { owner, script } = await enter(app);
  await Deno.writeTextFile(`${app.dataDir}/tokens.json`, "[]");
  expect([await script.isIn(), await owner.isIn()]).toEqual([false, true]);
  await app.restart();
  expect([await script.isIn(), await owner.isIn()]).toEqual([false, true]);
});

test(
  "a damaged credentials.json gates everything, even after a restart, and is never overwritten",
  { tags: ["G06"] },
  async () => {
    await using app = await openGatedApp();
    const { owner, stranger } = await enter(app);
    const good = await Deno.readFile(`${app.dataDir}/credentials.json`);
    for (const content of [new Uint8Array(), new TextEncoder().encode("[]"), good.subarray(0, 50)]) {
      await Deno.writeFile(`${app.dataDir}/credentials.json`, content);
      for (let round = 0; round < 2; round++) {
        expect([await owner.isIn(), await stranger.isIn()]).toEqual([false, false]);
        expect((await new Visitor(app, { ...desk, host: "phone.example" }).enrol()).status).toBeGreaterThanOrEqual(400);
        expect(await Deno.readFile(`${app.dataDir}/credentials.json`)).toEqual(content);
        await app.restart();
      }
    }
    await Deno.writeFile(`${app.dataDir}/credentials.json`, good);
    expect(await owner.isIn()).toBe(true);
  },
);

test("require_auth = false opens a gated origin, and true gates it again", async () => {
  const dataDir = await Deno.makeTempDir({ prefix: "parlor-test-" });
  try {
    for (const [requireAuth, isOpen] of [[true, false], [false, true], [true, false]] as const) {
      await using app = await openGatedApp({ dataDir, config: { requireAuth } });
      const stranger = new Visitor(app, desk);
      const { json } = await stranger.get("/api/auth/status");
      if (!json.paired) await new Visitor(app, desk).enrol();
      expect(await stranger.isIn()).toBe(isOpen);
      if (isOpen) expect(json.bypass).toBe("auth_disabled");
    }
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});

test("loopback_auth_bypass opens this machine, and only it, whether it is paired or not", async () => {
  const dataDir = await Deno.makeTempDir({ prefix: "parlor-test-" });
  try {
    for (const loopbackAuthBypass of [true, false, true]) {
      await using app = await openTestApp({ dataDir, config: { loopbackAuthBypass } });
      const visitor = new Visitor(app);
      const { json } = await visitor.get("/api/auth/status");
      if (!json.paired) await new Visitor(app).enrol();
      expect(await visitor.isIn()).toBe(loopbackAuthBypass);
    }
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});

test("signing out ends one session and leaves the others", async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const second = new Visitor(app, { ...desk, authenticator: owner.authenticator });
  await second.signIn();
  await owner.post("/api/auth/logout");
  expect([await owner.isIn(), await second.isIn()]).toEqual([false, true]);
});
