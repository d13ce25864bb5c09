/** What this browser may do. */
import type { AuthStatus } from "../../api/types.ts";

/** Reports whether this browser may use what is the owner's, such as passkeys and the tailnet. */
export function isOwner(status: AuthStatus | undefined): boolean {
  return status !== undefined &&
    (status.authenticated || status.bypass === "loopback" || status.bypass === "auth_disabled");
}
