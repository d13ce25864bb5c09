/** Who performs a ceremony: the facts of a request as services/auth/passkeys.ts wants them, and which browser it is. */
import { cookieValue } from "../middleware/authentication.ts";
import type { AppContext } from "../middleware/env.ts";
import { sessionCookieName } from "../middleware/session_cookie.ts";
import { CHALLENGE_MS } from "../services/auth/challenges.ts";
import type { HostPolicy } from "../services/auth/host_names.ts";
import type { CeremonyCaller } from "../services/auth/passkeys.ts";
import { randomToken } from "../services/crypto/random.ts";

/** Gives the caller. @param isBeginning Marks the browser, so that only it can finish what it begins. */
export function ceremonyCaller(
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
    browser: browserOf(c, isBeginning),
  };
}

/**
 * Tells one browser from another by a cookie that lasts as long as a ceremony. What sends no fetch metadata is no browser
 * and may keep no cookies: it is known by its address and what it calls itself.
 */
function browserOf(c: AppContext, isBeginning: boolean): string {
  const { facts } = c.var;
  if (c.req.header("sec-fetch-site") === undefined) {
    return `address ${facts.clientAddress} ${c.req.header("user-agent") ?? ""}`;
  }
  const name = sessionCookieName(facts.scheme).replace("sess", "ceremony");
  const known = cookieValue(c.req.header("cookie") ?? null, name);
  if (!isBeginning) return `cookie ${known ?? ""}`;
  // One mark for all ceremonies of a browser: two tabs may begin one each.
  const mark = known !== undefined && /^[A-Za-z0-9_-]{22}$/.test(known) ? known : randomToken(16);
  const secure = facts.scheme === "https" ? "; Secure" : "";
  const attributes = `Path=/; Max-Age=${CHALLENGE_MS / 1000}; HttpOnly; SameSite=Strict${secure}`;
  c.header("Set-Cookie", `${name}=${mark}; ${attributes}`, { append: true });
  return `cookie ${mark}`;
}
