import { expect, test } from "vitest";
import {
  type AccessSettings,
  createAccessPolicy,
  findLoopbackAddress,
  logOpenAddresses,
  type RouteAccess,
} from "../../../services/auth/access_policy.ts";
import { createFailureLimiter } from "../../../services/auth/enrolment_codes.ts";
import type { CredentialStore } from "../../../services/auth/credential_stores.ts";

const settings: AccessSettings = {
  requireAuth: true,
  loopbackAuthBypass: true,
  pairing: "open",
  tailnetSuffix: "ts.net",
};
const local = {
  scheme: "http",
  host: "localhost",
  isLocal: true,
  isPeerLoopback: true,
  clientAddress: "127.0.0.1",
} as const;
const remote = {
  scheme: "https",
  host: "desk.example",
  isLocal: false,
  isPeerLoopback: false,
  clientAddress: "203.0.113.5",
} as const;

/** Credentials in memory; the store has its own tests. */
function enrolled(...rpIds: string[]): Pick<CredentialStore, "isGated"> {
  return { isGated: (rpId) => Promise.resolve(rpIds.includes(rpId)) };
}

function policy(changes: Partial<AccessSettings> = {}, credentials = enrolled(), isTripped = false) {
  return createAccessPolicy({
    settings: { ...settings, ...changes },
    credentials,
    pageOrigins: { isTripped, note: () => {} },
    failures: createFailureLimiter(Date.now, () => {}),
  });
}

test("require_auth = false lets everything through", async () => {
  const access = policy({ requireAuth: false }, enrolled("desk.example"));
  expect(await access.decide(remote, {}, "other")).toEqual({ method: null, bypass: "auth_disabled" });
});

test("a local request is allowed by the loopback bypass, and without it treated like any other", async () => {
  const gated = enrolled("localhost");
  expect(await policy({}, gated).decide(local, {}, "other")).toEqual({ method: null, bypass: "loopback" });
  await expect(policy({ loopbackAuthBypass: false }, gated).decide(local, {}, "other"))
    .rejects.toMatchObject({ code: "unauthenticated" });
});

test("the loopback bypass ends once an unlisted proxy was seen", { tags: ["H17"] }, async () => {
  await expect(policy({}, enrolled("localhost"), true).decide(local, {}, "other"))
    .rejects.toMatchObject({ code: "unauthenticated" });
});

test("each RP ID has its own grace", async () => {
  const access = policy({}, enrolled("desk.example"));
  await expect(access.decide(remote, {}, "other")).rejects.toMatchObject({ code: "unauthenticated" });
  expect(await access.decide({ ...remote, host: "phone.example" }, {}, "other"))
    .toEqual({ method: null, bypass: "grace" });
});

test("machines of one tailnet share an RP ID and its gate", async () => {
  const access = policy({}, enrolled("fox-owl.ts.net"));
  await expect(access.decide({ ...remote, host: "phone.fox-owl.ts.net" }, {}, "other"))
    .rejects.toMatchObject({ code: "unauthenticated" });
});

test.each<[RouteAccess, boolean]>([["ceremony", true], ["setup_status", true], ["openai", false], ["other", false]])(
  'under pairing = "code" grace opens %s: %s',
  { tags: ["H03"] },
  async (route, opens) => {
    const decision = policy({ pairing: "code" }).decide(remote, {}, route);
    if (opens) expect(await decision).toEqual({ method: null, bypass: "grace" });
    else await expect(decision).rejects.toMatchObject({ code: "unauthenticated" });
  },
);

test("at a gated RP ID, strangers can use only the ceremonies", async () => {
  const access = policy({}, enrolled("desk.example"));
  expect(await access.decide(remote, {}, "ceremony")).toEqual({ method: null, bypass: null });
  await expect(access.decide(remote, {}, "setup_status")).rejects.toMatchObject({ code: "unauthenticated" });
});

test("an unknown token is rejected at a gated RPID and ignored elsewhere", async () => {
  const access = policy({}, enrolled("desk.example"));
  await expect(access.decide(remote, { bearerToken: "wrong" }, "other")).rejects.toMatchObject({
    code: "unauthenticated",
  });
  expect(await access.decide(local, { bearerToken: "wrong" }, "other")).toEqual({ method: null, bypass: "loopback" });
});

test("verified credentials take precedence over any bypass", async () => {
  const access = createAccessPolicy({
    settings,
    credentials: enrolled("localhost"),
    pageOrigins: { isTripped: false, note: () => {} },
    failures: createFailureLimiter(Date.now, () => {}),
    checks: [
      (_, { bearerToken }) =>
        Promise.resolve(
          bearerToken === "t1" ? { method: "token", tokenId: "1", label: "cli", scope: "all" } : undefined,
        ),
    ],
  });
  expect(await access.decide(local, { bearerToken: "t1" }, "other")).toMatchObject({ method: "token", label: "cli" });
});

test("a token with the scope openai can use only that API, even with a bypass", async () => {
  const access = createAccessPolicy({
    settings: { ...settings, requireAuth: false },
    credentials: enrolled(),
    pageOrigins: { isTripped: false, note: () => {} },
    failures: createFailureLimiter(Date.now, () => {}),
    checks: [() => Promise.resolve({ method: "token", tokenId: "1", label: "editor", scope: "openai" })],
  });
  expect(await access.decide(local, {}, "openai")).toMatchObject({ label: "editor" });
  for (const route of ["ceremony", "setup_status", "other"] as const) {
    await expect(access.decide(local, {}, route)).rejects.toMatchObject({ code: "forbidden" });
  }
});

test.each([
  ["on its own", {}, "Open http://localhost:8787 in a browser"],
  ["on port 80", { port: 80 }, "Open http://localhost in a browser"],
  ["behind a proxy elsewhere", { trustedProxies: ["10.0.0.7"] }, "Open http://localhost:8787 in a browser"],
  // A browser on this machine doesn't name its client, so Parlor refuses it.
  ["behind a proxy here", { trustedProxies: ["127.0.0.0/8", "::1"] }, 'Set pairing = "code"'],
  ["with a certificate", { tlsCert: "/etc/parlor/cert.pem" }, 'Set pairing = "code"'],
])("the line about open loopback addresses names what works %s", (_, changes, remedy) => {
  const place = { host: "127.0.0.1", port: 8787, tlsCert: null, trustedProxies: [], ...changes };
  const lines: string[] = [];
  const open = { loopback: ["localhost"], names: [], addresses: [], plainNames: [], patterns: [] };
  logOpenAddresses(open, findLoopbackAddress(place), (_level, message) => lines.push(message));
  expect(lines).toEqual([expect.stringContaining(`this machine: localhost. ${remedy}`)]);
});
