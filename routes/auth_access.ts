/** `/api/auth/credentials`, `tokens`, `token`, `invites`, `cli`: seeing, giving and taking away access. */
import type { AppContext, RequestFacts } from "../middleware/env.ts";
import { canHoldSession, sendSessionCookie } from "../middleware/session_cookie.ts";
import type { Identity } from "../services/auth/access_policy.ts";
import type { Auth } from "../services/auth/auth.ts";
import { AppError } from "../services/errors.ts";
import { newRouter } from "./http/router.ts";
import {
  approveCliRoute,
  credentialsRoute,
  inviteRoute,
  mintTokenRoute,
  redeemCliRoute,
  revokeCredentialRoute,
  revokeTokenRoute,
  tokensRoute,
  toPasskeyJson,
  toTokenJson,
} from "./schemas/auth.ts";

/** Time the command line has to mint its token with the session it got. */
const CLI_SESSION_MS = 5 * 60 * 1000;

/** What a token is called to which nobody gave a name. */
const DEFAULT_LABEL = "API token";

/** Routes of passkeys, tokens, invites and the command line's login. */
export function authAccessRoutes(auth: Auth) {
  return newRouter()
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
      sessionOf(c, "Minting a token needs a session: sign in with a passkey first");
      const { record, token } = await auth.mintToken(c.req.valid("json")?.label ?? DEFAULT_LABEL);
      return c.json({ id: record.id, label: record.label, token, created_at: record.created_at }, 201);
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
        throw new AppError("session_required", "A bearer token invites nobody; sign in with a passkey first");
      }
      assertOwner(c);
      const { rp_id: rpId } = c.req.valid("json");
      const { code, expiresAtMs } = auth.codes.invite(rpId);
      const expiresAt = new Date(expiresAtMs).toISOString();
      return c.json({ code, url: pairUrl(c.var.facts, auth, rpId, code), expires_at: expiresAt }, 201);
    })
    .openapi(approveCliRoute, (c) => {
      const owner = sessionOf(c, "Letting a command line in needs a session: sign in with a passkey first");
      return c.json({ code: auth.cliCodes.issue(owner, c.req.valid("json").challenge) }, 201);
    })
    .openapi(redeemCliRoute, async (c) => {
      const { facts } = c.var;
      const { code, verifier } = c.req.valid("json");
      const owner = auth.cliCodes.redeem(code, verifier, auth.access.rpIdOf(facts.host));
      if (owner === undefined || !canHoldSession(facts)) {
        const refusal = new AppError("unauthenticated", "The code of the command line is wrong, used already or over");
        throw auth.failures.count(facts.clientAddress, refusal);
      }
      sendSessionCookie(c, await auth.sessions.open(owner, CLI_SESSION_MS));
      return c.json({ authenticated: true as const }, 200);
    });
}

/** A session, a token, or the owner at this machine; grace is anybody. */
function isOwner(identity: Identity): boolean {
  return identity.method !== null || identity.bypass === "loopback" || identity.bypass === "auth_disabled";
}

function assertOwner(c: AppContext): void {
  if (!isOwner(c.var.identity)) throw new AppError("unauthenticated", "Sign in with a passkey or send a bearer token");
}

function sessionOf(c: AppContext, message: string): { rpId: string; credentialId: string } {
  const { identity } = c.var;
  if (identity.method !== "session") throw new AppError("session_required", message);
  return { rpId: identity.rpId, credentialId: identity.credentialId };
}

/** The code stands behind "#": browsers send that part to nobody. */
function pairUrl({ host, origin }: RequestFacts, auth: Auth, rpId: string | undefined, code: string): string {
  const isHere = rpId === undefined || auth.access.rpIdOf(host) === rpId;
  return `${isHere ? origin : `https://${rpId}`}/pair#code=${code}`;
}
