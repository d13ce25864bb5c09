/** `/api/auth/register`, `/api/auth/login`, `/api/auth/logout`: becoming somebody, and ceasing to be. */
import type { AppContext } from "../middleware/env.ts";
import { canHoldSession, clearSessionCookie, sendSessionCookie } from "../middleware/session_cookie.ts";
import type { CredentialRecord } from "../services/auth/credential_store.ts";
import type { HostPolicy } from "../services/auth/host_names.ts";
import type { Auth } from "../services/auth/auth.ts";
import { AppError } from "../services/errors.ts";
import { ceremonyCaller } from "./ceremony_caller.ts";
import { newRouter } from "./http/router.ts";
import {
  beginLoginRoute,
  beginRegistrationRoute,
  finishLoginRoute,
  finishRegistrationRoute,
  logoutRoute,
} from "./schemas/auth.ts";

/** Routes of the ceremonies. */
export function authCeremonyRoutes(auth: Auth, hosts: HostPolicy) {
  const { access, passkeys, sessions } = auth;
  const callerOf = (c: AppContext, isBeginning: boolean) =>
    ceremonyCaller(c, access.rpIdOf(c.var.facts.host), hosts, isBeginning);

  async function openSession(c: AppContext, credential: CredentialRecord): Promise<void> {
    const value = await sessions.open({ rpId: credential.rp_id, credentialId: credential.id });
    sendSessionCookie(c, value);
  }

  return newRouter()
    .openapi(beginRegistrationRoute, async (c) => {
      const options = await passkeys.beginRegistration(callerOf(c, true), c.req.valid("json"));
      return c.json(options, 200);
    })
    .openapi(finishRegistrationRoute, async (c) => {
      const { name, ...answer } = c.req.valid("json");
      const credential = await passkeys.finishRegistration(callerOf(c, false), answer, name);
      await auth.announceEnrolment();
      // So that ending the grace does not lock out whoever ended it.
      const authenticated = canHoldSession(c.var.facts);
      if (authenticated) await openSession(c, credential);
      const { id, rp_id, created_at } = credential;
      return c.json({ id, rp_id, name: credential.name, created_at, authenticated }, 200);
    })
    .openapi(beginLoginRoute, (c) => c.json(passkeys.beginLogin(callerOf(c, true)), 200))
    .openapi(finishLoginRoute, async (c) => {
      if (!canHoldSession(c.var.facts)) {
        throw new AppError(
          "invalid_request",
          "Cannot open a session over plain HTTP, which the network can read: use HTTPS, or a bearer token",
        );
      }
      const credential = await passkeys.finishLogin(callerOf(c, false), c.req.valid("json"));
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
