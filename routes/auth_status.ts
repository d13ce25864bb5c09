/** `GET /api/auth/status`: what the calling browser needs to know before it may do anything else. */
import type { RequestFacts } from "../middleware/env.ts";
import type { AccessPolicy } from "../services/auth/access_policy.ts";
import { parseAddress } from "../services/auth/addresses.ts";
import { isLoopbackName } from "../services/auth/host_names.ts";
import type { PageOriginWatch } from "../services/auth/page_origin.ts";
import { newRouter } from "./http/router.ts";
import { type AuthStatus, statusRoute, toIdentityFields } from "./schemas/auth.ts";

/** The status route. It tells a stranger nothing but flags of his own origin. */
export function authStatusRoutes(access: AccessPolicy, pageOrigins: PageOriginWatch) {
  return newRouter().openapi(statusRoute, async (c) => {
    const { facts, identity } = c.var;
    const { rpId, isPaired, bypass } = await access.stateOf(facts);
    const status: AuthStatus = {
      rp_id: rpId,
      origin: facts.origin,
      paired: isPaired,
      ...toIdentityFields(identity),
      bypass,
      passkeys_supported: passkeysSupported(facts),
      pairing: access.pairing,
    };
    if (facts.untrustedProxy) status.hint = "untrusted_proxy";
    if (pageOrigins.isTripped) status.hint = "bare_proxy";
    return c.json(status, 200);
  });
}

/** Browsers make passkeys in secure contexts only (https, or http on a loopback name), and never for an IP address. */
function passkeysSupported({ scheme, host }: RequestFacts): boolean {
  if (parseAddress(host) !== undefined) return false;
  return scheme === "https" || isLoopbackName(host);
}
