/** Completes addresses that were typed without a scheme. The page loads this file, too. */

/** Names that are resolved in one's own network: RFC 6761, RFC 6762, RFC 8375, and what routers use. */
const LOCAL_NAME =
  /(^|\.)(localhost|local|lan|home|internal|intranet|corp|private|localdomain|test|home\.arpa|fritz\.box)$/;
/** A top-level domain has no digits, except an encoded one. */
const PUBLIC_NAME = /^([a-z0-9_-]+\.)+([a-z]{2,}|xn--[a-z0-9-]+)$/;

/**
 * Adds `https://` to a name of the internet, and `http://` to everything else: addresses, names of one's own network,
 * port 80.
 *
 * Names of a tailnet (`desk.fox-owl.ts.net`) have a certificate only at the default port.
 *
 * @param text `"192.168.1.5:8080"`, `"api.example.com/v1"`. With a scheme, or if it's no address, it stays as it is.
 */
export function completeScheme(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "" || /\s/.test(trimmed) || /^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed)) return trimmed;
  const [, host = "", port] = /^([^/?#:]*)(?::(\d+))?(?:[/?#]|$)/.exec(trimmed.toLowerCase()) ?? [];
  const isPublic = PUBLIC_NAME.test(host) && !LOCAL_NAME.test(host) && port !== "80" &&
    (!host.endsWith(".ts.net") || port === undefined || port === "443");
  return `${isPublic ? "https" : "http"}://${trimmed}`;
}
