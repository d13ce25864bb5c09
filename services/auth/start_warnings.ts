/** What the owner should know at the start about addresses where no browser can make a passkey. */
import type { Log } from "../log.ts";
import { parseAddress } from "./addresses.ts";
import { isLoopbackName } from "./host_names.ts";

/** What of the configuration the warnings rest on. */
export interface ReachSettings {
  allowedHosts: readonly string[];
  trustedProxies: readonly string[];
  tlsCert: string | null;
  requireAuth: boolean;
}

/** Logs one line for listed addresses, one for names reached over plain HTTP: grace cannot end there. */
export function warnOfPlacesWithoutPasskeys(settings: ReachSettings, log: Log): void {
  const { allowedHosts, trustedProxies, tlsCert, requireAuth } = settings;
  if (!requireAuth) return;
  const isAddress = (entry: string) => parseAddress(entry.split("/")[0]!) !== undefined;
  const addresses = allowedHosts.filter((entry) => isAddress(entry) && !isLoopbackName(entry));
  const names = allowedHosts.filter((entry) => !isAddress(entry) && !isLoopbackName(entry));
  if (addresses.length > 0) {
    log(
      "warn",
      `No browser makes a passkey for an IP address, so whoever reaches this server under ${addresses.join(", ")} ` +
        'needs none, for good: use a name with HTTPS, or set pairing = "code" and sign in there by token',
    );
  }
  if (names.length > 0 && tlsCert === null && trustedProxies.length === 0) {
    log(
      "warn",
      `No browser makes a passkey over plain HTTP: without tls_cert or an HTTPS proxy in trusted_proxies, ${
        names.join(", ")
      } cannot be closed by one`,
    );
  }
}
