/** Authentication on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import type { Identity } from "../../services/auth/access_policy.ts";
import { ERRORS, json } from "./common.ts";

const AuthStatus = z.object({
  rp_id: z.string(),
  origin: z.string(),
  paired: z.boolean(),
  authenticated: z.boolean(),
  method: z.enum(["session", "token"]).nullable(),
  bypass: z.enum(["auth_disabled", "loopback", "grace"]).nullable(),
  passkeys_supported: z.boolean(),
  pairing: z.enum(["open", "code"]),
  hint: z.enum(["bare_proxy", "untrusted_proxy"]).optional().openapi({
    description: "Why this request counts as it does: `bare_proxy`, a proxy on the server's machine forwards without " +
      "saying so and the loopback bypass is off until restart; `untrusted_proxy`, forwarding headers came from a peer " +
      "that is not in trusted_proxies",
  }),
}).openapi("AuthStatus");

/** What the calling origin and browser may do, as `GET /api/auth/status` says it. */
export type AuthStatus = z.infer<typeof AuthStatus>;

/** `GET /api/auth/status` */
export const statusRoute = createRoute({
  method: "get",
  path: "/api/auth/status",
  tags: ["auth"],
  summary: "How the calling origin and browser stand; open to everyone",
  responses: { 200: json(AuthStatus, "The state of the caller"), ...ERRORS },
});

/** How an identity is named on the wire. */
export function identityFields(identity: Identity): Pick<AuthStatus, "authenticated" | "method"> {
  return { authenticated: identity.method !== null, method: identity.method };
}
