/**
 * `/api/auth`: the caller's identity, passkey ceremonies, and access for other devices, programs and the command line.
 */
import type { Services } from "../services/services.ts";
import {
  canHoldSession,
  clearSessionCookie,
  findCookie,
  getSessionCookieName,
  sendSessionCookie,
} from "../middleware/authentication.ts";
import type { AppContext, RequestFacts } from "../middleware/env.ts";
import type { Identity } from "../services/auth/access_policy.ts";
import { isOwnRequest } from "../middleware/trusted_proxies.ts";
import { type HostPolicy, isLoopbackName, parseAddress } from "../services/auth/hosts.ts";
import { checkPublicAddress } from "../services/auth/public_address.ts";
import type { Auth } from "../services/auth/auth.ts";
import { CHALLENGE_MS } from "../services/auth/ceremonies.ts";
import type { CredentialRecord } from "../services/auth/credential_stores.ts";
import type { CeremonyCaller } from "../services/auth/passkeys.ts";
import { randomToken } from "../services/crypto/random.ts";
import { AppError } from "../services/errors.ts";
import { createRouter } from "./http/router.ts";
import {
  approveCliRoute,
  type AuthStatus,
  beginLoginRoute,
  beginRegistrationRoute,
  checkAddressRoute,
  credentialsRoute,
  finishLoginRoute,
  finishRegistrationRoute,
  inviteRoute,
  logoutRoute,
  mintTokenRoute,
  redeemCliRoute,
  revokeCredentialRoute,
  revokeTokenRoute,
  statusRoute,
  toIdentityFields,
  tokensRoute,
  toPasskeyJson,
  toTokenJson,
} from "./schemas/auth.ts";

/** Routes of authentication. */
export function authRoutes({ auth }: Services) {
  return createRouter().route("/", statusRoutes(auth)).route("/", ceremonyRoutes(auth)).route("/", accessRoutes(auth));
}

/** Routes that need no authentication. Strangers learn only about their own origin. */
function statusRoutes({ access, pageOrigins }: Auth) {
  return createRouter().openapi(statusRoute, async (c) => {
    const { facts, identity } = c.var;
    const { rpId, isPaired, bypass } = await access.getState(facts);
    const status: AuthStatus = {
      rp_id: rpId,
      origin: facts.origin,
      paired: isPaired,
      ...toIdentityFields(identity),
      bypass,
      passkeys_supported: canUsePasskeys(facts),
      pairing: access.pairing,
    };
    if (facts.untrustedProxy && !isOwnRequest(c.req.raw.headers)) status.hint = "untrusted_proxy";
    if (pageOrigins.isTripped) status.hint = "bare_proxy";
    return c.json(status, 200);
  });
}

/**
 * Returns whether browsers support passkeys at an origin: only in secure contexts (https, or http on a loopback name)
 * and never for IP addresses.
 */
function canUsePasskeys({ scheme, host }: RequestFacts): boolean {
  if (parseAddress(host) !== undefined) return false;
  return scheme === "https" || isLoopbackName(host);
}

/** Passkey registration, sign-in and sign-out. */
function ceremonyRoutes(auth: Auth) {
  const { access, hosts, passkeys, sessions } = auth;
  const getCaller = (c: AppContext, isBeginning: boolean) =>
    createCaller(c, access.getRpId(c.var.facts.host), hosts, isBeginning);

  async function openSession(c: AppContext, credential: CredentialRecord): Promise<void> {
    const value = await sessions.open({ rpId: credential.rp_id, credentialId: credential.id });
    sendSessionCookie(c, value);
  }

  return createRouter()
    .openapi(beginRegistrationRoute, async (c) => {
      const options = await passkeys.beginRegistration(getCaller(c, true), c.req.valid("json"));
      return c.json(options, 200);
    })
    .openapi(finishRegistrationRoute, async (c) => {
      const { name, ...answer } = c.req.valid("json");
      const credential = await passkeys.finishRegistration(getCaller(c, false), answer, name);
      await auth.announceEnrolment();
      // So that the person who ends open access isn't locked out.
      const authenticated = canHoldSession(c.var.facts);
      if (authenticated) await openSession(c, credential);
      const { id, rp_id, created_at } = credential;
      return c.json({ id, rp_id, name: credential.name, created_at, authenticated }, 200);
    })
    .openapi(beginLoginRoute, (c) => c.json(passkeys.beginLogin(getCaller(c, true)), 200))
    .openapi(finishLoginRoute, async (c) => {
      if (!canHoldSession(c.var.facts)) {
        throw new AppError(
          "invalid_request",
          "Can't sign in over plain HTTP, because others on the network could read the session. Use HTTPS or a bearer token",
        );
      }
      const credential = await passkeys.finishLogin(getCaller(c, false), c.req.valid("json"));
      await openSession(c, credential);
      return c.json({ credential_id: credential.id, rp_id: credential.rp_id, authenticated: true as const }, 200);
    })
    .openapi(logoutRoute, async (c) => {
      const { identity } = c.var;
      if (identity.method === "session") await auth.endSession(identity.sessionId);
      if (canHoldSession(c.var.facts)) clearSessionCookie(c);
      return c.body(null, 204);
    });
}

/** Time that the command line has to create its token with its session, in milliseconds. */
const CLI_SESSION_MS = 5 * 60 * 1000;

/** Label of a token without one. */
const DEFAULT_LABEL = "API token";

/** Passkeys, tokens, invites, and sign-in of the command line. */
function accessRoutes(auth: Auth) {
  return createRouter()
    .openapi(credentialsRoute, async (c) => {
      const { identity } = c.var;
      if (!isOwner(identity)) return c.json([], 200);
      const currentId = identity.method === "session" ? identity.credentialId : undefined;
      return c.json((await auth.listCredentials()).map((record) => toPasskeyJson(record, currentId)), 200);
    })
    .openapi(revokeCredentialRoute, async (c) => {
      assertOwner(c);
      await auth.revokeCredential(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(mintTokenRoute, async (c) => {
      requireSession(c, "Creating a token requires a session: sign in with a passkey first");
      const { label = DEFAULT_LABEL, scope, allow } = c.req.valid("json") ?? {};
      const { record, token } = await auth.mintToken(label, scope, allow);
      const { id, created_at } = record;
      return c.json({ id, label, scope: record.scope, allow: record.allow, token, created_at }, 201);
    })
    .openapi(tokensRoute, async (c) => {
      assertOwner(c);
      return c.json((await auth.listTokens()).map(toTokenJson), 200);
    })
    .openapi(revokeTokenRoute, async (c) => {
      assertOwner(c);
      await auth.revokeToken(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(inviteRoute, (c) => {
      if (c.var.identity.method === "token") {
        throw new AppError("session_required", "A bearer token can't create invites: sign in with a passkey first");
      }
      assertOwner(c);
      const { rp_id: rpId } = c.req.valid("json");
      const { code, expiresAtMs } = auth.codes.invite(rpId);
      const expiresAt = new Date(expiresAtMs).toISOString();
      return c.json({ code, url: createPairUrl(c.var.facts, auth, rpId, code), expires_at: expiresAt }, 201);
    })
    .openapi(checkAddressRoute, async (c) => {
      assertOwner(c);
      return c.json({ result: await checkPublicAddress(c.req.valid("json").url) }, 200);
    })
    .openapi(approveCliRoute, (c) => {
      const owner = requireSession(c, "Signing in the command line requires a session: sign in with a passkey first");
      return c.json({ code: auth.cliCodes.issue(owner, c.req.valid("json").challenge) }, 201);
    })
    .openapi(redeemCliRoute, async (c) => {
      const { facts } = c.var;
      const { code, verifier } = c.req.valid("json");
      const owner = auth.cliCodes.redeem(code, verifier, auth.access.getRpId(facts.host));
      if (owner === undefined || !canHoldSession(facts)) {
        const refusal = new AppError("unauthenticated", "The code is invalid, already used or expired");
        throw auth.failures.count(facts.clientAddress, refusal, { method: "code" });
      }
      sendSessionCookie(c, await auth.sessions.open(owner, CLI_SESSION_MS));
      return c.json({ authenticated: true as const }, 200);
    });
}

/**
 * Returns whether the caller is the owner: a session, a token, or a caller on this machine. Callers in grace can be
 * anyone.
 */
function isOwner(identity: Identity): boolean {
  return identity.method !== null || identity.bypass === "loopback" || identity.bypass === "auth_disabled";
}

function assertOwner(c: AppContext): void {
  if (!isOwner(c.var.identity)) throw new AppError("unauthenticated", "Sign in with a passkey or send a bearer token");
}

function requireSession(c: AppContext, message: string): { rpId: string; credentialId: string } {
  const { identity } = c.var;
  if (identity.method !== "session") throw new AppError("session_required", message);
  return { rpId: identity.rpId, credentialId: identity.credentialId };
}

/** Returns the URL of the pairing page. The code is in the fragment, which browsers don't send to servers. */
function createPairUrl({ host, origin }: RequestFacts, auth: Auth, rpId: string | undefined, code: string): string {
  const isHere = rpId === undefined || auth.access.getRpId(host) === rpId;
  return `${isHere ? origin : `https://${rpId}`}/pair#code=${code}`;
}

/**
 * Returns the caller of a ceremony.
 *
 * @param isBeginning Whether to set the cookie that lets only this browser finish the ceremony
 */
function createCaller(
  c: AppContext,
  rpId: string,
  hosts: HostPolicy,
  isBeginning: boolean,
): CeremonyCaller {
  const { facts, identity } = c.var;
  return {
    rpId,
    origin: facts.origin,
    clientAddress: facts.clientAddress,
    isHostListed: hosts.isAllowed(facts),
    identity,
    browser: identifyBrowser(c, isBeginning),
  };
}

/**
 * Identifies a browser by a cookie that lasts as long as a ceremony. A client without fetch metadata isn't a browser
 * and may not store cookies, so it is identified by its address and user agent.
 */
function identifyBrowser(c: AppContext, isBeginning: boolean): string {
  const { facts } = c.var;
  if (c.req.header("sec-fetch-site") === undefined) {
    return `address ${facts.clientAddress} ${c.req.header("user-agent") ?? ""}`;
  }
  const name = getSessionCookieName(facts.scheme).replace("sess", "ceremony");
  const known = findCookie(c.req.header("cookie") ?? null, name);
  if (!isBeginning) return `cookie ${known ?? ""}`;
  // All ceremonies of a browser share one mark, because two tabs may each start one.
  const mark = known !== undefined && /^[A-Za-z0-9_-]{22}$/.test(known) ? known : randomToken(16);
  const secure = facts.scheme === "https" ? "; Secure" : "";
  const attributes = `Path=/; Max-Age=${CHALLENGE_MS / 1000}; HttpOnly; SameSite=Strict${secure}`;
  c.header("Set-Cookie", `${name}=${mark}; ${attributes}`, { append: true });
  return `cookie ${mark}`;
}
