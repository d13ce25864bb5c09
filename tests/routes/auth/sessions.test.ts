import { expect, test } from "vitest";
import { readSession } from "../../../services/auth/sessions.ts";
import { fetchAs } from "../../helpers/network/fetch_as.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openGatedApp, Visitor } from "../../helpers/app/visitor.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const COOKIE = "__Host-app_sess";
const desk = { host: "desk.example", address: "203.0.113.5" };

/** A client with a cookie that it made up. */
function withCookie(app: TestApp, cookie: string): Visitor {
  return new Visitor(app, { ...desk, headers: { Cookie: cookie } });
}

test("over HTTPS the cookie is __Host-app_sess with all its attributes", { tags: ["S01"] }, async () => {
  await using app = await openGatedApp();
  const answer = await new Visitor(app, desk).enrol();
  const [cookie] = answer.headers.getSetCookie();
  expect(cookie!.split("; ").slice(1).sort()).toEqual([
    "HttpOnly",
    "Max-Age=2592000",
    "Path=/",
    "SameSite=Lax",
    "Secure",
  ]);
  expect(cookie).toMatch(/^__Host-app_sess=1\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43};/);
});

test("over HTTP on this machine it is app_sess", { tags: ["S02"] }, async () => {
  await using app = await openTestApp();
  const answer = await new Visitor(app).enrol();
  const [cookie] = answer.headers.getSetCookie();
  expect(cookie!.split("; ").slice(1).sort()).toEqual(["HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=Lax"]);
  expect(cookie).toMatch(/^app_sess=/);
});

test("a cookie under the other scheme's name is valid nowhere", { tags: ["S03"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const value = owner.cookies.get(COOKIE)!;
  expect(await withCookie(app, `${COOKIE}=${value}`).isIn()).toBe(true);
  expect((await withCookie(app, `app_sess=${value}`).get("/api/settings")).status).toBe(401);
  const here = new Visitor(app, { headers: { "X-Forwarded-For": "127.0.0.1" } });
  await here.enrol();
  const local = here.cookies.get("app_sess")!;
  here.cookies.clear();
  expect((await here.get("/api/settings", { Cookie: `app_sess=${local}` })).status).toBe(200);
  expect((await here.get("/api/settings", { Cookie: `__Host-app_sess=${local}` })).status).toBe(401);
});

test("no other cookie is used as the session, and none breaks the server", { tags: ["S04"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const value = owner.cookies.get(COOKIE)!;
  const cookies = [
    `${COOKIE}=${value}; ${COOKIE}=${value}`,
    `${COOKIE}=x; ${COOKIE}=${value}`,
    `\u00a0${COOKIE}=${value}`,
    `=${COOKIE}=${value}`,
    `${COOKIE}="${value}"`,
    `${COOKIE}=%zz`,
    `a=${"x".repeat(16 * 1024)}`,
    `${COOKIE}=${value.slice(0, -1)}`,
  ];
  for (const cookie of cookies) {
    const { status } = await withCookie(app, cookie).get("/api/settings");
    expect([cookie.slice(0, 60), [400, 401, 431].includes(status)]).toEqual([cookie.slice(0, 60), true]);
  }
});

test(
  "a session idle for 30 days and a second has ended; one used after 29 days is renewed",
  { tags: ["S06"] },
  async () => {
    let nowMs = Date.now();
    await using app = await openGatedApp({ now: () => nowMs });
    const owner = new Visitor(app, desk);
    await owner.enrol();
    const first = owner.cookies.get(COOKIE)!;
    nowMs += 29 * DAY_MS;
    const used = await owner.get("/api/settings");
    expect([used.status, used.headers.getSetCookie()[0]]).toEqual([200, expect.stringMatching(/^__Host-app_sess=1\./)]);
    expect(owner.cookies.get(COOKIE)).not.toBe(first);
    expect((await owner.get("/api/settings")).headers.getSetCookie()).toEqual([]);
    nowMs += 30 * DAY_MS;
    expect(await owner.isIn()).toBe(true);
    // Recent use survives a restart.
    await app.restart();
    expect(await owner.isIn()).toBe(true);
    nowMs += 30 * DAY_MS + 1_000;
    expect(await owner.isIn()).toBe(false);
    nowMs -= 20 * DAY_MS;
    expect(await owner.isIn()).toBe(false);
  },
);

test("a session that is idle for too long at startup is deleted", { tags: ["S06"] }, async () => {
  let nowMs = Date.now();
  await using app = await openGatedApp({ now: () => nowMs });
  const owner = new Visitor(app, desk);
  await owner.enrol();
  nowMs += 30 * DAY_MS + 1_000;
  await app.restart();
  nowMs -= 30 * DAY_MS;
  expect(await owner.isIn()).toBe(false);
});

test(
  "setting the clock back a year and forward again doesn't extend a session",
  { tags: ["S07"] },
  async () => {
    let nowMs = Date.now();
    await using app = await openGatedApp({ now: () => nowMs });
    const owner = new Visitor(app, desk);
    await owner.enrol();
    nowMs -= 365 * DAY_MS;
    expect(await owner.isIn()).toBe(true);
    nowMs += 365 * DAY_MS;
    expect((await owner.get("/api/settings")).status).toBe(401);
    expect((await owner.signIn()).status).toBe(200);
    nowMs += 30 * DAY_MS + 1_000;
    expect(await owner.isIn()).toBe(false);
  },
);

test("after signing out the old cookie is invalid, also after a restart", { tags: ["S08"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const replay = withCookie(app, `${COOKIE}=${owner.cookies.get(COOKIE)}`);
  expect(await replay.isIn()).toBe(true);
  await owner.post("/api/auth/logout");
  expect(await replay.isIn()).toBe(false);
  await app.restart();
  expect(await replay.isIn()).toBe(false);
});

/** Opens the stream of changes as a user, and reports its end. */
async function openStream(app: TestApp, headers: Record<string, string>) {
  const forwarded = { "X-Forwarded-For": desk.address, "X-Forwarded-Proto": "https", "X-Forwarded-Host": desk.host };
  const answer = await fetch(`http://127.0.0.1:${app.port}/api/events`, { headers: { ...forwarded, ...headers } });
  expect(answer.status).toBe(200);
  const reader = answer.body!.getReader();
  await reader.read();
  const ended = (async () => {
    while (!(await reader.read()).done);
    return "ended";
  })();
  return { ended };
}

test("signing out, revoking the passkey or the token, and enrolling end the streams of that access", {
  tags: ["S08", "S09", "S18"],
}, async () => {
  await using app = await openGatedApp();
  const inGrace = await openStream(app, {});
  const owner = new Visitor(app, desk);
  await owner.enrol();
  expect(await inGrace.ended).toBe("ended");

  const bySession = await openStream(app, { Cookie: `${COOKIE}=${owner.cookies.get(COOKIE)}` });
  await owner.post("/api/auth/logout");
  expect(await bySession.ended).toBe("ended");

  await owner.signIn();
  const { id, token } = (await owner.post("/api/auth/token", { label: "t" })).json;
  const byToken = await openStream(app, { Authorization: `Bearer ${token}` });
  expect((await owner.ask("DELETE", `/api/auth/tokens/${id}`)).status).toBe(204);
  expect(await byToken.ended).toBe("ended");

  const again = await openStream(app, { Cookie: `${COOKIE}=${owner.cookies.get(COOKIE)}` });
  const [credential] = (await owner.get("/api/auth/credentials")).json;
  expect((await owner.ask("DELETE", `/api/auth/credentials/${credential.id}`)).status).toBe(204);
  expect(await again.ended).toBe("ended");
  expect((await owner.get("/api/settings")).status).toBe(401);
});

test.each(["credentials.json", "session-key"])(
  "removing %s ends open streams within seconds",
  { tags: ["S09", "S18"] },
  async (name) => {
    await using app = await openGatedApp();
    const owner = new Visitor(app, desk);
    await owner.enrol();
    const stream = await openStream(app, { Cookie: `${COOKIE}=${owner.cookies.get(COOKIE)}` });
    await Deno.remove(`${app.dataDir}/${name}`);
    expect(await stream.ended).toBe("ended");
  },
);

test("removing tokens.json ends the streams of tokens within seconds", { tags: ["S18"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  await owner.enrol();
  const { token } = (await owner.post("/api/auth/token", { label: "t" })).json;
  const stream = await openStream(app, { Authorization: `Bearer ${token}` });
  await Deno.remove(`${app.dataDir}/tokens.json`);
  expect(await stream.ended).toBe("ended");
  expect(await owner.isIn()).toBe(true);
});

test("refuses a cookie signed with the key of another installation", { tags: ["S05"] }, async () => {
  await using app = await openGatedApp();
  await using other = await openGatedApp();
  await new Visitor(app, desk).enrol();
  const foreign = new Visitor(other, desk);
  await foreign.enrol();
  expect(await withCookie(app, `${COOKIE}=${foreign.cookies.get(COOKIE)}`).isIn()).toBe(false);
  const key = await Deno.readFile(`${other.dataDir}/session-key`);
  expect(readSession(key, foreign.cookies.get(COOKIE)!)).toMatchObject({ rp_id: "desk.example" });
});

test("a forwarding header on a request from this machine disables the bypass", { tags: ["H05"] }, async () => {
  await using app = await openTestApp();
  await new Visitor(app).enrol();
  expect(await new Visitor(app).isIn()).toBe(true);
  const names = ["X-Forwarded-For", "Forwarded", "Via", "CF-Connecting-IP", "Tailscale-User-Login", "Client-IP"];
  for (const name of [...names, "X-Originating-IP"]) {
    expect((await fetchAs(app, { path: "/api/settings", headers: { [name]: "127.0.0.1" } })).status).toBe(401);
  }
});

test(
  "behind a trusted proxy, the client is the last one it names, and needs a session",
  { tags: ["H06"] },
  async () => {
    await using app = await openTestApp({ config: { trustedProxies: ["127.0.0.1"] } });
    const here = { "X-Forwarded-For": "127.0.0.1" };
    await new Visitor(app, { headers: here }).enrol();
    const elsewhere = { "X-Forwarded-For": "127.0.0.1, 203.0.113.9" };
    const answer = await fetchAs(app, { path: "/api/settings", headers: elsewhere });
    expect(answer.status).toBe(401);
    expect((await fetchAs(app, { path: "/api/settings", headers: here })).status).toBe(200);
  },
);

test("a listed host gets 401 without a credential; an unlisted host gets 403 with one", {
  tags: ["H14", "H15"],
}, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, desk);
  expect((await new Visitor(app, desk).get("/api/settings")).status).toBe(200);
  await owner.enrol();
  expect((await new Visitor(app, desk).get("/api/settings")).status).toBe(401);
  const { token } = (await owner.post("/api/auth/token", { label: "t" })).json;
  const bearer = { Authorization: `Bearer ${token}` };
  const unlisted = { host: "unlisted.example", address: desk.address };
  expect((await new Visitor(app, { ...unlisted, headers: bearer }).get("/api/settings")).code).toBe("host_not_allowed");
  const session = { Cookie: `${COOKIE}=${owner.cookies.get(COOKIE)}` };
  expect((await new Visitor(app, { ...unlisted, headers: session }).get("/api/settings")).code).toBe(
    "host_not_allowed",
  );
});
