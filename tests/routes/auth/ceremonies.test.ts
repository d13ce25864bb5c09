import { expect, test } from "vitest";
import { Authenticator } from "../../helpers/fakes/authenticator.ts";
import { encodeCbor } from "../../helpers/fakes/cbor.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { openGatedApp, Visitor } from "../../helpers/app/visitor.ts";

const CEREMONIES = 100_000;

const desk = { host: "desk.example", address: "203.0.113.5" };

test("pairing ends the grace for everyone else, and signing out and in again works", async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  const stranger = new Visitor(app, { ...desk, address: "203.0.113.9" });
  expect(await stranger.isIn()).toBe(true);
  const enrolled = await owner.enrol({ name: "Laptop" });
  expect([enrolled.status, enrolled.json]).toMatchObject([200, { rp_id: "desk.example", name: "Laptop" }]);
  expect(await stranger.isIn()).toBe(false);
  expect(await owner.isIn()).toBe(true);
  expect((await owner.get("/api/auth/status")).json).toMatchObject({ paired: true, method: "session", bypass: null });

  expect((await owner.post("/api/auth/logout")).status).toBe(204);
  expect(owner.cookies.has("__Host-app_sess")).toBe(false);
  expect(await owner.isIn()).toBe(false);
  expect((await owner.signIn()).status).toBe(200);
  expect(await owner.isIn()).toBe(true);
  const [credential] = (await owner.get("/api/auth/credentials")).json;
  expect(credential).toMatchObject({ name: "Laptop", rp_id: "desk.example", current: true });
  expect(Date.parse(credential.last_used_at)).toBeGreaterThan(Date.parse(credential.created_at) - 1);
});

test("each RP ID has its own grace, and one passkey works on all machines of a tailnet", async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, { host: "desk.fox-owl.ts.net", address: "100.64.0.1" });
  await owner.enrol();
  const phone = new Visitor(app, { host: "phone.fox-owl.ts.net", address: "100.64.0.2" });
  expect(await phone.isIn()).toBe(false);
  const sameKey = new Visitor(app, {
    host: "phone.fox-owl.ts.net",
    address: "100.64.0.2",
    authenticator: owner.authenticator,
  });
  expect((await sameKey.signIn()).status).toBe(200);
  expect(await new Visitor(app, desk).isIn()).toBe(true);
});

test("a session is valid only on hosts of its own RP ID", async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const other = new Visitor(app, { ...desk, host: "phone.example" });
  await other.enrol();
  other.cookies.clear();
  const cookie = owner.cookies.get("__Host-app_sess")!;
  expect((await other.get("/api/conversations", { Cookie: `__Host-app_sess=${cookie}` })).status).toBe(401);
});

test(
  "of two concurrent enrollments one succeeds, and the RP ID is gated by one passkey",
  { tags: ["G01"] },
  async () => {
    await using app = await openGatedApp();
    const visitors = [1, 2, 3].map((n) => new Visitor(app, { ...desk, address: `203.0.113.${n}` }));
    const begun = await Promise.all(visitors.map((each) => each.post("/api/auth/register/begin", {})));
    const answers = await Promise.all(
      visitors.map((each, i) =>
        each.post("/api/auth/register/finish", each.authenticator.create(begun[i]!.json, each.origin))
      ),
    );
    expect(answers.map(({ status, code }) => code ?? status).sort()).toEqual([200, "conflict", "conflict"]);
    const winner = visitors[answers.findIndex(({ status }) => status === 200)]!;
    expect((await winner.get("/api/auth/credentials")).json).toHaveLength(1);
  },
);

test("once gated, enrolling requires a session, an invite or the loopback bypass", { tags: ["G02"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const stranger = new Visitor(app, { ...desk, address: "203.0.113.9" });
  expect([(await stranger.enrol()).status, (await stranger.enrol()).code]).toEqual([401, "unauthenticated"]);
  const foreignFinish = stranger.authenticator.create(
    { challenge: "AAAA", rp: { id: "desk.example" }, user: { id: "AAAA" } },
    stranger.origin,
  );
  expect((await stranger.post("/api/auth/register/finish", foreignFinish)).status).toBe(401);

  const { token } = (await owner.post("/api/auth/token", { label: "script" })).json;
  const script = new Visitor(app, { ...desk, headers: { Authorization: `Bearer ${token}` } });
  expect(await script.isIn()).toBe(true);
  expect([(await script.enrol()).status, (await script.enrol()).code]).toEqual([403, "session_required"]);
  expect((await script.post("/api/auth/register/finish", foreignFinish)).code).toBe("session_required");

  const second = new Visitor(app, desk);
  for (const [name, value] of owner.cookies) second.cookies.set(name, value);
  expect((await second.enrol({ name: "Second key" })).status).toBe(200);

  const { code } = (await owner.post("/api/auth/invites", {})).json;
  const phone = new Visitor(app, { ...desk, address: "203.0.113.20" });
  expect((await phone.enrol({ code: code.toLowerCase().replace("-", " ") })).status).toBe(200);
  expect(await phone.isIn()).toBe(true);
  expect((await new Visitor(app, desk).enrol({ code })).code).toBe("pairing_code_required");
});

test("grace of another RP ID allows no enrollment here", { tags: ["G02"] }, async () => {
  await using app = await openGatedApp();
  await new Visitor(app, desk).enrol();
  const other = new Visitor(app, { ...desk, host: "phone.example" });
  const begun = await other.post("/api/auth/register/begin", {});
  const answer = other.authenticator.create({ ...begun.json, rp: { id: "desk.example" } }, "https://desk.example");
  expect((await new Visitor(app, desk).post("/api/auth/register/finish", answer)).status).toBe(401);
});

test("the loopback bypass allows enrolling on its own machine, gated or not", { tags: ["G02"] }, async () => {
  await using app = await openTestApp();
  const owner = new Visitor(app);
  expect((await owner.enrol()).status).toBe(200);
  expect((await new Visitor(app).enrol({ name: "Second" })).status).toBe(200);
});

test("access that ended during the ceremony doesn't count", { tags: ["G02"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const begun = await owner.post("/api/auth/register/begin", {});
  await owner.post("/api/auth/logout");
  const answer = owner.authenticator.create(begun.json, owner.origin);
  expect((await owner.post("/api/auth/register/finish", answer)).status).toBe(401);
});

test(
  "a passkey enrolled under an unlisted host opens nothing, neither there nor elsewhere",
  { tags: ["G03"] },
  async () => {
    await using app = await openGatedApp();
    const evil = new Visitor(app, { host: "evil.test", address: "203.0.113.66" });
    expect((await evil.enrol()).status).toBe(200);
    const refused = ["/api/conversations", "/api/auth/credentials", "/api/auth/tokens"];
    for (const path of refused) expect((await evil.get(path)).code).toBe("host_not_allowed");
    expect((await evil.post("/api/auth/token", { label: "x" })).code).toBe("host_not_allowed");
    await new Visitor(app, desk).enrol();
    const cookie = `__Host-app_sess=${evil.cookies.get("__Host-app_sess")}`;
    const elsewhere = new Visitor(app, { ...desk, headers: { Cookie: cookie } });
    for (const path of refused) expect((await elsewhere.get(path)).status).toBe(401);
  },
);

test(
  "refuses to enroll under names next to this machine's, its node's or a listed host's",
  { tags: ["G03"] },
  async () => {
    await using app = await openGatedApp();
    for (const host of ["localhost", "made-up.fox-owl.ts.net"]) {
      const visitor = new Visitor(app, { host, address: "203.0.113.66" });
      expect([host, (await visitor.enrol()).code]).toEqual([host, "host_not_allowed"]);
    }
  },
);

test(
  "register/begin on an unlisted host doesn't reveal the owner's user handle, nor use its own",
  { tags: ["G03"] },
  async () => {
    await using app = await openGatedApp();
    const handleOf = async (host: string) => {
      const visitor = new Visitor(app, { host, address: "203.0.113.66" });
      return (await visitor.post("/api/auth/register/begin", {})).json.user.id as string;
    };
    // An earlier client doesn't choose the owner's user handle.
    const stranger = new Visitor(app, { host: "first.test", address: "203.0.113.66" });
    await stranger.enrol();
    const owner = new Visitor(app, desk);
    await owner.enrol();
    const [ownHandle] = owner.authenticator.passkeys.map(({ userHandle }) => userHandle);
    expect(stranger.authenticator.passkeys[0]!.userHandle).not.toBe(ownHandle);
    const seen = [await handleOf("evil.test"), await handleOf("evil.test"), await handleOf("other.test")];
    expect(new Set([...seen, ownHandle]).size).toBe(4);
    expect(await handleOf("phone.example")).toBe(ownHandle);
  },
);

test("unlisted hosts have at most 16 RP IDs, and listed hosts don't count", { tags: ["G03"] }, async () => {
  await using app = await openGatedApp();
  await new Visitor(app, desk).enrol();
  for (let i = 0; i < 16; i++) {
    expect((await new Visitor(app, { host: `h${i}.test`, address: "203.0.113.66" }).enrol()).status).toBe(200);
  }
  const last = new Visitor(app, { host: "h16.test", address: "203.0.113.66" });
  expect([(await last.enrol()).status, (await last.enrol()).code]).toEqual([429, "too_many_requests"]);
  expect((await new Visitor(app, { ...desk, host: "phone.example" }).enrol()).status).toBe(200);
});

test("a challenge is valid once, for its own ceremony, RP ID, origin and browser", { tags: ["G08"] }, async () => {
  let nowMs = Date.now();
  await using app = await openGatedApp({ now: () => nowMs });
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const finish = async (visitor: Visitor, challenge: string) => {
    const answer = owner.authenticator.get({ challenge, rpId: "desk.example" }, owner.origin);
    return (await visitor.post("/api/auth/login/finish", answer)).status;
  };
  const begin = async (visitor = owner) => (await visitor.post("/api/auth/login/begin", {})).json.challenge as string;

  const used = await begin();
  expect([await finish(owner, used), await finish(owner, used)]).toEqual([200, 401]);
  const parallel = await begin();
  const both = await Promise.all([finish(owner, parallel), finish(owner, parallel)]);
  expect(both.sort()).toEqual([200, 401]);
  // The first attempt counts, even if it fails.
  const spoilt = await begin();
  const wrong = owner.authenticator.get({ challenge: spoilt, rpId: "desk.example" }, owner.origin, {
    userVerified: false,
  });
  expect((await owner.post("/api/auth/login/finish", wrong)).status).toBe(401);
  expect(await finish(owner, spoilt)).toBe(401);
  const old = await begin();
  nowMs += 5 * 60 * 1000;
  expect(await finish(owner, old)).toBe(401);
  expect(await finish(owner, await begin(new Visitor(app, { ...desk, host: "phone.example" })))).toBe(401);
  const registration = (await owner.post("/api/auth/register/begin", {})).json.challenge;
  expect(await finish(owner, registration)).toBe(401);
  expect(await finish(owner, await begin(new Visitor(app, { ...desk, address: "203.0.113.9" })))).toBe(401);
  const browser = new Visitor(app, { ...desk, headers: { "Sec-Fetch-Site": "same-origin" } });
  const other = new Visitor(app, { ...desk, headers: { "Sec-Fetch-Site": "same-origin" } });
  await begin(other);
  expect(await finish(other, await begin(browser))).toBe(401);
  expect(await finish(browser, await begin(browser))).toBe(200);
});

test.each([
  "https://phone.fox-owl.ts.net",
  "https://desk.fox-owl.ts.net:8443",
  "http://desk.fox-owl.ts.net",
  "null",
  "https://DESK.fox-owl.ts.net",
  "https://desk.fox-owl.ts.net.",
  "https://desk.fox-owl.ts.net/",
])("a response created on the page of %s is rejected", { tags: ["G09"] }, async (origin) => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, { host: "desk.fox-owl.ts.net", address: "100.64.0.1" });
  expect((await owner.enrol({}, { origin })).code).toBe("invalid_request");
  expect((await owner.get("/api/auth/status")).json.paired).toBe(false);
  await owner.enrol();
  expect((await owner.signIn({ origin })).status).toBe(401);
});

test.each([
  ["the hash of another RP ID", { rpId: "evil.test" }],
  ["crossOrigin", { crossOrigin: true }],
  ["crossOrigin with topOrigin", { crossOrigin: true, topOrigin: "https://evil.test" }],
  ["topOrigin alone", { topOrigin: "https://evil.test" }],
  ["no user verification", { userVerified: false }],
  ["no user presence", { userPresent: false }],
])("both ceremonies reject %s", { tags: ["G10", "G11", "G12"] }, async (_name, faults) => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  expect((await owner.enrol({}, faults)).code).toBe("invalid_request");
  await owner.enrol();
  expect([400, 401]).toContain((await owner.signIn(faults)).status);
});

test("a response of the other ceremony's type is rejected", { tags: ["G10"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  expect((await owner.enrol({}, { type: "webauthn.get" })).code).toBe("invalid_request");
  await owner.enrol();
  expect((await owner.signIn({ type: "webauthn.create" })).status).toBe(401);
});

test(
  "a counter that doesn't increase is rejected and logged, unless the authenticator has none",
  { tags: ["G13"] },
  async () => {
    await using app = await openGatedApp();
    const owner = new Visitor(app, desk);
    await owner.enrol();
    expect([(await owner.signIn()).status, (await owner.signIn()).status]).toEqual([200, 200]);
    owner.authenticator.counter = 5;
    expect((await owner.signIn()).status).toBe(200);
    for (const counter of [5, 4, 0]) expect((await owner.signIn({ counter })).status).toBe(401);
    expect(app.logLines.filter((line) => line.includes("counter"))).toHaveLength(3);
    owner.authenticator.counter = 6;
    expect((await owner.signIn()).status).toBe(200);
  },
);

test("of two concurrent sign-ins with the same counter exactly one succeeds", { tags: ["G13"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  for (const counter of [1, 2, 3]) {
    const browsers = ["a", "b"].map((name) => new Visitor(app, { ...desk, headers: { "User-Agent": name } }));
    // Both responses are ready before either is checked.
    const begun = await Promise.all(browsers.map((browser) => browser.post("/api/auth/login/begin", {})));
    const answers = begun.map(({ json }) => owner.authenticator.get(json, owner.origin, { counter }));
    const ended = await Promise.all(browsers.map((each, at) => each.post("/api/auth/login/finish", answers[at])));
    expect([counter, ended.map(({ status }) => status).sort()]).toEqual([counter, [200, 401]]);
    expect(ended.find(({ status }) => status === 401)!.headers.get("set-cookie")).toBeNull();
  }
});

test("all reasons to reject a sign-in get the same response", { tags: ["G14"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const phone = new Visitor(app, { ...desk, host: "phone.example" });
  await phone.enrol();
  const refusals = [
    await owner.signIn({ signature: (right) => right.map((byte, i) => i === 20 ? byte ^ 1 : byte) }),
    await owner.signIn({ id: "unknown" }),
    await owner.signIn({ rawId: "unknown" }),
    await owner.signIn({ id: phone.authenticator.passkeys[0]!.id }),
    await owner.signIn({ userHandle: "c29tZWJvZHk" }),
  ];
  const said = refusals.map(({ status, json: { error: { code, message } } }) => ({ status, code, message }));
  expect(new Set(said.map((each) => JSON.stringify(each)))).toEqual(
    new Set([
      JSON.stringify({
        status: 401,
        code: "unauthenticated",
        message: "Can't sign in: the passkey wasn't accepted",
      }),
    ]),
  );
});

test(
  "rejects attestation other than none, without requests about its certificates",
  { tags: ["G15"] },
  async () => {
    await using app = await openGatedApp();
    let asked = 0;
    await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, () => {
      asked++;
      return new Response();
    });
    const url = new TextEncoder().encode(`http://127.0.0.1:${server.addr.port}/crl`);
    const owner = new Visitor(app, desk);
    for (const fmt of ["packed", "fido-u2f", "android-key", "tpm", "apple", "android-safetynet", "nonsense"]) {
      const attStmt = new Map<string, number | Uint8Array | Uint8Array[]>([
        ["alg", -7],
        ["sig", new Uint8Array(70)],
        ["x5c", [url]],
      ]);
      expect([fmt, (await owner.enrol({}, { fmt, attStmt })).code]).toEqual([fmt, "invalid_request"]);
    }
    expect(asked).toBe(0);
    expect((await owner.get("/api/auth/status")).json.paired).toBe(false);
  },
);

test("other algorithms and broken CBOR are rejected, and the server continues", { tags: ["G16"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  for (const algorithm of [-35, -36, -37, -47, -65535, 0]) {
    expect((await owner.enrol({}, { algorithm })).code).toBe("invalid_request");
  }
  const deep = new Uint8Array(10_000).fill(0x81);
  const broken = [new Uint8Array(), new Uint8Array([0xff]), encodeCbor("none"), encodeCbor(new Map()), deep];
  for (const attestationObject of broken) {
    expect((await owner.enrol({}, { attestationObject })).code).toBe("invalid_request");
  }
  const huge = await owner.enrol({}, { attestationObject: new Uint8Array(10 * 1024 * 1024) });
  expect([400, 413]).toContain(huge.status);
  expect((await owner.enrol()).status).toBe(200);
});

test(
  `after ${CEREMONIES} unfinished sign-ins and as many enrollments the owner can still sign in`,
  { tags: ["G17"] },
  async () => {
    await using app = await openGatedApp();
    const owner = new Visitor(app, desk);
    await owner.enrol();
    const begun = await owner.post("/api/auth/login/begin", {});
    const { passkeys } = app.services.auth;
    for (let i = 0; i < CEREMONIES; i++) {
      const caller = {
        rpId: "desk.example",
        origin: "https://desk.example",
        clientAddress: `198.51.${i % 40}.${i % 17}`,
        isHostListed: true,
        identity: { method: null, bypass: null },
        browser: "flood",
      };
      passkeys.beginLogin(caller);
      // The address is protected, so only users who may enroll get a challenge.
      await passkeys.beginRegistration({ ...caller, identity: { method: null, bypass: "loopback" } }, {});
    }
    const answer = owner.authenticator.get(begun.json, owner.origin);
    expect((await owner.post("/api/auth/login/finish", answer)).status).toBe(200);
  },
);

test("the options contain the RP ID of the host", { tags: ["G18"] }, async () => {
  await using app = await openTestApp();
  const cases = [
    ["a.tail.ts.net", "tail.ts.net"],
    ["a.b.tail.ts.net", "b.tail.ts.net"],
    ["tail.ts.net", "tail.ts.net"],
    ["ts.net", "ts.net"],
    ["xts.net", "xts.net"],
    ["a.ts.net.evil.test", "a.ts.net.evil.test"],
    ["A.TAIL.TS.NET.", "tail.ts.net"],
  ];
  for (const [host, rpId] of cases) {
    const visitor = new Visitor(app, { host });
    expect([host, (await visitor.post("/api/auth/register/begin", {})).json.rp.id]).toEqual([host, rpId]);
    expect([host, (await visitor.post("/api/auth/login/begin")).json.rpId]).toEqual([host, rpId]);
  }
});

test("rejects a credential ID that is already enrolled and keeps the old record", { tags: ["G20"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol({ name: "First" });
  const { id } = owner.authenticator.passkeys[0]!;
  const thief = new Authenticator();
  const begun = await owner.post("/api/auth/register/begin", {});
  const again = await owner.post("/api/auth/register/finish", thief.create(begun.json, owner.origin, { id }));
  expect([again.status, again.code]).toEqual([409, "conflict"]);
  expect((await owner.get("/api/auth/credentials")).json).toMatchObject([{ id, name: "First" }]);
  expect((await owner.signIn()).status).toBe(200);
});

test("over plain HTTP from another machine, no session is created and no cookie set", async () => {
  await using app = await openGatedApp({ connection: { peerAddress: "192.168.1.5" } });
  const visitor = new Visitor(app, { host: "desk.example" });
  const enrolled = await visitor.enrol();
  expect([enrolled.status, enrolled.json.authenticated]).toEqual([200, false]);
  expect((await visitor.signIn()).code).toBe("invalid_request");
  expect([...visitor.cookies.keys()]).toEqual([]);
});

test("begin accepts no body, or a valid one, whatever its type", async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  expect((await owner.post("/api/auth/register/begin")).status).toBe(200);
  const odd = { "Content-Type": "application/x-odd" };
  expect((await owner.ask("POST", "/api/auth/register/begin", { name: 5 }, odd)).code).toBe("invalid_request");
  expect((await owner.ask("POST", "/api/auth/invites", { rp_id: 5 }, odd)).status).toBe(400);
});
