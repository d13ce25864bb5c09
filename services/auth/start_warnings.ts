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

/** Listed places where no browser can make a passkey, so that grace never ends there. */
export function placesWithoutPasskeys(
  { allowedHosts, trustedProxies, tlsCert, requireAuth }: ReachSettings,
): { addresses: string[]; plainNames: string[] } {
  if (!requireAuth) return { addresses: [], plainNames: [] };
  const isAddress = (entry: string) => parseAddress(entry.split("/")[0]!) !== undefined;
  const others = allowedHosts.filter((entry) => !isLoopbackName(entry));
  const isPlain = tlsCert === null && trustedProxies.length === 0;
  return {
    addresses: others.filter(isAddress),
    plainNames: isPlain ? others.filter((entry) => !isAddress(entry)) : [],
  };
}

/** Logs one line for listed addresses, one for names reached over plain HTTP: grace cannot end there. */
export function warnOfPlacesWithoutPasskeys(settings: ReachSettings, log: Log): void {
  const { addresses, plainNames } = placesWithoutPasskeys(settings);
  if (addresses.length > 0) {
    log(
      "warn",
      `No browser makes a passkey for an IP address, so whoever reaches this server under ${addresses.join(", ")} ` +
        'needs none, for good: use a name with HTTPS, or set pairing = "code" and sign in there by token',
    );
  }
  if (plainNames.length > 0) {
    log(
      "warn",
      `No browser makes a passkey over plain HTTP: without tls_cert or an HTTPS proxy in trusted_proxies, ${
        plainNames.join(", ")
      } cannot be closed by one`,
    );
  }
}
