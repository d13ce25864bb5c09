import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { createOperatorProof } from "../../../services/crypto/storage_key.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { openGatedApp, Visitor } from "../../helpers/app/visitor.ts";

const desk = { host: "desk.example", address: "203.0.113.5" };
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

test("a session creates a token, which works on every listed host and ends when it is revoked", async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const minted = await owner.post("/api/auth/token", { label: "  script " });
  expect([minted.status, minted.json.label]).toEqual([201, "script"]);
  const { id, token } = minted.json;
  await new Visitor(app, { ...desk, host: "phone.example" }).enrol();
  for (const host of ["desk.example", "phone.example"]) {
    const script = new Visitor(app, { host, address: "198.51.100.1", headers: bearer(token) });
    expect([host, await script.isIn()]).toEqual([host, true]);
    expect((await script.get("/api/auth/status")).json).toMatchObject({ authenticated: true, method: "token" });
  }
  const query = new Visitor(app, { ...desk, address: "198.51.100.2" });
  expect((await query.get(`/api/settings?api_token=${token}`)).status).toBe(200);
  const [listed] = (await owner.get("/api/auth/tokens")).json;
  expect(Object.keys(listed).sort()).toEqual(["created_at", "id", "label", "last_used_at", "scope"]);
  expect(Date.parse(listed.last_used_at)).toBeGreaterThan(0);
  expect((await owner.ask("DELETE", `/api/auth/tokens/${id}`)).status).toBe(204);
  expect((await query.get(`/api/settings?api_token=${token}`)).status).toBe(401);
  expect((await owner.ask("DELETE", `/api/auth/tokens/${id}`)).code).toBe("not_found");
});

test("a token can't create tokens or invites, but lists and revokes them", { tags: ["S12"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const { token } = (await owner.post("/api/auth/token", { label: "t" })).json;
  const script = new Visitor(app, { ...desk, headers: bearer(token) });
  expect([(await script.post("/api/auth/token", { label: "more" })).status]).toEqual([403]);
  expect((await script.post("/api/auth/token", { label: "more" })).code).toBe("session_required");
  expect((await script.post("/api/auth/invites", {})).code).toBe("session_required");
  expect((await script.post("/api/stop")).code).toBe("forbidden");
  expect((await script.post("/api/auth/cli/approve", { challenge: "c".repeat(43) })).code).toBe("session_required");
  expect((await script.get("/api/auth/tokens")).json).toHaveLength(1);
  expect((await script.get("/api/auth/credentials")).json).toMatchObject([{ current: false }]);
});

test("a token without a name gets a label, and without a session that is the first error", async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  for (const body of [{}, undefined]) {
    expect((await owner.post("/api/auth/token", body)).json).toMatchObject({ label: "API token" });
    const inGrace = new Visitor(app, { ...desk, host: "phone.example" });
    expect((await inGrace.post("/api/auth/token", body)).code).toBe("session_required");
  }
  for (const label of ["", " ", 5, null, "x".repeat(101)]) {
    for (const type of ["application/json", "application/vnd.x+json"]) {
      expect((await owner.ask("POST", "/api/auth/token", { label }, { "Content-Type": type })).status).toBe(400);
    }
  }
});

test(
  "open access can neither list nor create tokens; the loopback bypass lists and revokes all",
  { tags: ["G04"] },
  async () => {
    await using app = await openGatedApp();
    const owner = new Visitor(app, desk);
    await owner.enrol();
    await owner.post("/api/auth/token", { label: "t" });
    const [credential] = (await owner.get("/api/auth/credentials")).json;
    const inGrace = new Visitor(app, { ...desk, host: "phone.example" });
    expect((await inGrace.get("/api/auth/credentials")).json).toEqual([]);
    expect((await inGrace.ask("DELETE", `/api/auth/credentials/${credential.id}`)).status).toBe(401);
    expect((await inGrace.get("/api/auth/tokens")).status).toBe(401);
    expect((await inGrace.ask("DELETE", "/api/auth/tokens/x")).status).toBe(401);
    expect((await inGrace.post("/api/auth/token", { label: "x" })).code).toBe("session_required");
    expect((await inGrace.post("/api/auth/invites", {})).status).toBe(401);

    await using same = await openTestApp();
    const local = new Visitor(same);
    await local.enrol();
    local.cookies.clear();
    const [own] = (await local.get("/api/auth/credentials")).json;
    expect(own).toMatchObject({ rp_id: "localhost", current: false });
    expect((await local.post("/api/auth/token", { label: "x" })).code).toBe("session_required");
    expect((await local.ask("DELETE", `/api/auth/credentials/${own.id}`)).status).toBe(204);
  },
);

test("a session on one host sees and revokes the lost phone of another", { tags: ["G04"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol({ name: "Laptop" });
  const phone = new Visitor(app, { ...desk, host: "phone.example" });
  await phone.enrol({ name: "Phone" });
  const listed = (await owner.get("/api/auth/credentials")).json;
  expect(listed).toMatchObject([{ name: "Phone", current: false }, { name: "Laptop", current: true }]);
  expect((await owner.ask("DELETE", `/api/auth/credentials/${listed[0].id}`)).status).toBe(204);
  expect(await phone.isIn()).toBe(false);
  expect((await phone.signIn()).status).toBe(401);
});

test("without its last passkey an RP ID stays gated; an invite allows one enrollment", { tags: ["G05"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const other = new Visitor(app, { ...desk, host: "phone.example" });
  await other.enrol();
  const { id } = (await owner.get("/api/auth/credentials")).json[1];
  expect((await owner.ask("DELETE", `/api/auth/credentials/${id}`)).status).toBe(204);
  const stranger = new Visitor(app, desk);
  expect((await stranger.get("/api/auth/status")).json).toMatchObject({ paired: true, bypass: null });
  expect((await stranger.enrol()).status).toBe(401);
  await app.restart();
  expect((await new Visitor(app, desk).enrol()).status).toBe(401);
  const { code } = (await other.post("/api/auth/invites", { rp_id: "desk.example" })).json;
  expect((await new Visitor(app, desk).enrol({ code })).status).toBe(200);
  expect((await new Visitor(app, desk).enrol({ code })).code).toBe("pairing_code_required");
});

test("a wrong bearer token is rejected despite an api_token cookie; with another scheme the cookie still works", {
  tags: ["S13"],
}, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const { token } = (await owner.post("/api/auth/token", { label: "t" })).json;
  const path = `/api/settings?api_token=${token}`;
  for (const header of ["Bearer wrong", `Basic ${token}`, `Token ${token}`, "Bearer"]) {
    const visitor = new Visitor(app, { ...desk, headers: { Authorization: header } });
    expect([header, (await visitor.get(path)).status]).toEqual([header, 401]);
  }
  expect((await owner.get("/api/settings", { Authorization: "Basic cHJveHk6c2VjcmV0" })).status).toBe(200);
  expect((await new Visitor(app, { ...desk, headers: bearer(token) }).get("/api/settings?api_token=wrong")).status)
    .toBe(
      200,
    );
});

test("a token that is repeated, empty or a MiB long is rejected", { tags: ["S14"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const { token } = (await owner.post("/api/auth/token", { label: "t" })).json;
  const stranger = new Visitor(app, { ...desk, address: "198.51.100.1" });
  for (const query of ["api_token=", `api_token=${token}&api_token=${token}`, `api_token=${token.slice(0, -1)}`]) {
    expect([query.length, (await stranger.get(`/api/settings?${query}`)).status]).toEqual([query.length, 401]);
  }
  expect((await stranger.get("/api/settings", bearer(`${token}, ${token}`))).status).toBe(401);
});

test("no log line, error or list contains a token or its hash", { tags: ["S15", "S16"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const { token } = (await owner.post("/api/auth/token", { label: "t" })).json;
  const visitor = new Visitor(app, { ...desk, address: "198.51.100.1" });
  const said = [
    await visitor.get(`/api/settings?api_token=${token}`),
    await visitor.get(`/api/nowhere?api_token=${token}`),
    await visitor.get(`/api/settings?api_token=${token}x`),
    await owner.get("/api/auth/tokens"),
  ];
  const secrets = [token, createHash("sha256").update(token).digest("base64url"), token.slice(8, 30)];
  for (const { headers, json } of said) {
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    for (const secret of secrets) expect(JSON.stringify([json, [...headers]])).not.toContain(secret);
  }
  for (const secret of secrets) expect(app.logLines.join("\n")).not.toContain(secret);
});

test(
  "a flood of wrong tokens gets 429; a valid credential from the same address doesn't",
  { tags: ["L03"] },
  async () => {
    await using app = await openGatedApp();
    const owner = new Visitor(app, desk);
    await owner.enrol();
    const attacker = new Visitor(app, { ...desk, headers: bearer("wrong") });
    const statuses: number[] = [];
    for (let i = 0; i < 110; i++) statuses.push((await attacker.get("/api/settings")).status);
    expect([statuses[0], statuses.at(-1)]).toEqual([401, 429]);
    const told = await attacker.get("/api/settings");
    expect(Number(told.headers.get("retry-after"))).toBeGreaterThan(200);
    expect((await owner.signIn({ userVerified: false })).status).toBe(429);
    expect(await owner.isIn()).toBe(true);
    owner.cookies.clear();
    expect((await owner.signIn()).status).toBe(200);
  },
);

test("the command line's code is exchanged for a session of a few minutes, which creates a token and ends", async () => {
  let nowMs = Date.now();
  await using app = await openGatedApp({ now: () => nowMs });
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const verifier = "v".repeat(64);
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  const approve = async () => (await owner.post("/api/auth/cli/approve", { challenge })).json.code as string;
  const cli = new Visitor(app, { ...desk, address: "198.51.100.7" });
  expect((await cli.post("/api/auth/cli/approve", { challenge })).status).toBe(401);
  const code = await approve();
  expect((await cli.post("/api/auth/cli/redeem", { code, verifier })).status).toBe(200);
  expect((await cli.post("/api/auth/cli/redeem", { code, verifier })).status).toBe(401);
  expect((await cli.post("/api/auth/token", { label: "CLI" })).status).toBe(201);
  expect((await cli.post("/api/auth/logout")).status).toBe(204);
  expect(await cli.isIn()).toBe(false);
  await cli.post("/api/auth/cli/redeem", { code: await approve(), verifier });
  expect(await cli.isIn()).toBe(true);
  nowMs += 5 * 60 * 1000 + 1;
  expect(await cli.isIn()).toBe(false);
  expect((await cli.post("/api/auth/cli/redeem", { code: await approve(), verifier: "w".repeat(64) })).status).toBe(
    401,
  );
});

test("an invite links to the page at the caller's origin, with the code in the fragment", async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const { status, json } = await owner.post("/api/auth/invites");
  expect([status, json.url]).toEqual([201, `https://desk.example/pair#code=${json.code}`]);
  expect(Date.parse(json.expires_at) - Date.now()).toBeGreaterThan(9 * 60 * 1000);
  expect((await owner.post("/api/auth/invites", { rp_id: "phone.example" })).json.url).toMatch(
    /^https:\/\/phone\.example\/pair#code=/,
  );
});

test("only the owner can have addresses checked, and only those that a phone could use", async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  const visitor = new Visitor(app, desk);
  expect((await visitor.post("/api/auth/check_address", { url: "https://desk.example" })).status).toBe(401);
  await owner.enrol();
  expect((await visitor.post("/api/auth/check_address", { url: "https://desk.example" })).status).toBe(401);
  const { status, json } = await owner.post("/api/auth/check_address", { url: "http://desk.example" });
  expect([status, json.error.issues[0].path]).toEqual([400, "url"]);
});

test("a caller who can read the session key is the owner at this machine, even if the bypass is off", async () => {
  await using app = await openGatedApp();
  const here = { "X-Forwarded-For": "127.0.0.1" };
  await new Visitor(app, { headers: here }).enrol();
  const key = await Deno.readFile(`${app.dataDir}/session-key`);
  const operator = new Visitor(app, { headers: { ...here, ...bearer(createOperatorProof(key, Date.now())) } });
  const invite = await operator.post("/api/auth/invites", {});
  expect(invite.status).toBe(201);
  expect((await new Visitor(app, { headers: here }).enrol({ code: invite.json.code })).status).toBe(200);
  const late = bearer(createOperatorProof(key, Date.now() - 120_000));
  const old = new Visitor(app, { headers: { ...here, ...late } });
  expect((await old.post("/api/auth/invites", {})).status).toBe(401);
  await using elsewhere = await openTestApp({
    connection: { peerAddress: "192.168.1.5" },
    config: { allowedHosts: ["desk.example"] },
  });
  await new Visitor(elsewhere, { host: "desk.example" }).enrol();
  const otherKey = await Deno.readFile(`${elsewhere.dataDir}/session-key`);
  const remote = new Visitor(elsewhere, {
    host: "desk.example",
    headers: bearer(createOperatorProof(otherKey, Date.now())),
  });
  expect((await remote.post("/api/auth/invites", {})).status).toBe(401);
});

test(
  "only the command on its machine stops the server: no page, session or token does",
  { tags: ["S12"] },
  async () => {
    let stops = 0;
    await using app = await openTestApp({ requestStop: () => stops++ });
    const here = new Visitor(app, { host: `localhost:${app.port}` });
    expect([await here.isIn(), (await here.post("/api/stop")).code]).toEqual([true, "forbidden"]);
    await here.enrol();
    const { token } = (await here.post("/api/auth/token", { label: "t" })).json;
    expect((await here.post("/api/stop")).code).toBe("forbidden");
    expect((await here.ask("POST", "/api/stop", undefined, bearer(token))).code).toBe("forbidden");
    expect((await here.get("/api/stop")).status).toBe(405);
    const key = await Deno.readFile(`${app.dataDir}/session-key`);
    const late = bearer(createOperatorProof(key, Date.now() - 120_000));
    expect((await here.ask("POST", "/api/stop", undefined, late)).status).not.toBe(202);
    expect(stops).toBe(0);
    const proof = bearer(createOperatorProof(key, Date.now()));
    expect(await here.ask("POST", "/api/stop", undefined, proof)).toMatchObject({
      status: 202,
      json: { pid: Deno.pid },
    });
    expect(stops).toBe(1);
  },
);

test('under pairing = "code" the first enrollment requires the code on the terminal, or an invite', async () => {
  const shown: string[] = [];
  await using app = await openGatedApp({ config: { pairing: "code" }, announce: (text) => shown.push(text) });
  expect(shown).toEqual([expect.stringMatching(/^Pairing code: \w{4}-\w{4}$/)]);
  const visitor = new Visitor(app, desk);
  expect(await visitor.isIn()).toBe(false);
  expect((await visitor.enrol()).code).toBe("pairing_code_required");
  expect((await visitor.enrol({ code: "0000-0000" })).code).toBe("pairing_code_required");
  expect((await visitor.enrol({ code: shown[0]!.slice(-9) })).status).toBe(200);
  expect(await visitor.isIn()).toBe(true);
  expect(shown).toHaveLength(2);
  const phone = new Visitor(app, { ...desk, host: "phone.example" });
  const { code } = (await visitor.post("/api/auth/invites", {})).json;
  expect((await phone.enrol({ code })).status).toBe(200);
  expect(app.logLines.join("\n")).not.toContain(shown[1]!.slice(-9));
});

test(
  "from another machine under localhost, listed by the operator, the ceremony requires the code",
  { tags: ["H03"] },
  async () => {
    const shown: string[] = [];
    await using app = await openTestApp({
      connection: { peerAddress: "172.17.0.1" },
      config: { allowedHosts: ["localhost", "127.0.0.1"], pairing: "code" },
      announce: (text) => shown.push(text),
    });
    const visitor = new Visitor(app);
    expect((await visitor.enrol()).code).toBe("pairing_code_required");
    expect((await visitor.enrol({ code: shown[0]!.slice(-9) })).status).toBe(200);
    expect(await visitor.isIn()).toBe(true);
  },
);

test("refuses to enroll under the tailnet name through another listener", { tags: ["H04"] }, async () => {
  await using app = await openTestApp({
    connection: { peerAddress: "192.168.1.5" },
    config: { allowedHosts: ["desk.fox-owl.ts.net"] },
  });
  const visitor = new Visitor(app, { host: "parlor.fox-owl.ts.net" });
  for (const path of ["/api/auth/register/begin", "/api/auth/login/begin", "/api/auth/register/finish"]) {
    expect([path, (await visitor.post(path, {})).code]).toEqual([path, "host_not_allowed"]);
  }
  expect((await visitor.get("/api/auth/status")).code).toBe("host_not_allowed");
  expect((await visitor.get("/api/settings")).code).toBe("host_not_allowed");
});

test(
  "startup and status name the addresses under which browsers can't enroll",
  { tags: ["G21"] },
  async () => {
    await using app = await openTestApp({
      connection: { peerAddress: "192.168.1.5" },
      config: { allowedHosts: ["192.168.1.10", "desk.example"] },
    });
    const lines = app.logLines.filter((line) => line.includes("Browsers don't create passkeys"));
    expect(lines).toEqual([expect.stringContaining("192.168.1.10"), expect.stringContaining("desk.example")]);
    for (const host of ["192.168.1.10", "desk.example"]) {
      const { json } = await new Visitor(app, { host }).get("/api/auth/status");
      expect(json).toMatchObject({ passkeys_supported: false, bypass: "grace" });
    }
    await using quiet = await openTestApp();
    expect(quiet.logLines.filter((line) => line.includes("Browsers don't create passkeys"))).toEqual([]);
  },
);
