/** The WebAuthn relying party of a host. */
import { AppError } from "../errors.ts";

/**
 * Returns the WebAuthn RP ID for the host that the browser used.
 *
 * Machines of one tailnet share their parent domain, so one passkey serves them all. Any other host stands alone.
 *
 * @param host Lower case, no port: `"desk.fox-owl.ts.net"`.
 * @param tailnetSuffix Without a leading dot: `"ts.net"`.
 * @param ownSuffix MagicDNS suffix of the own tailnet node, for control servers with names of their own: `"tail.test"`.
 * @returns `"fox-owl.ts.net"` for the host above; other hosts unchanged.
 * @throws {AppError} `invalid_request` when the host is empty.
 * @see WebAuthn Level 2, section 4, "Relying Party Identifier"
 */
export function getRpId(host: string, tailnetSuffix: string, ownSuffix?: string): string {
  if (host === "") throw new AppError("invalid_request", "Can't determine the RP ID: the host is empty");
  const parent = host.slice(host.indexOf(".") + 1);
  if (parent === host || parent === "") return host;
  // Below the suffix, on a label boundary; the bare suffix is shared by strangers and never an RP ID.
  return parent.endsWith(`.${tailnetSuffix}`) || parent === ownSuffix ? parent : host;
}
