/** What the configuration says about who can come in, and where nobody can be kept out. */
import { placesWithoutPasskeys, type ReachSettings } from "../auth/start_warnings.ts";
import { type Finding, note, ok, problem } from "./finding.ts";

/** What of the configuration is judged. */
export interface ReachConfig extends ReachSettings {
  host: string;
  pairing: string;
  loopbackAuthBypass: boolean;
  guardAllow: readonly string[];
}

const LOOPBACK = /^(127\.|::1$|localhost$)/;

/** Judges it. */
export function reachFindings(config: ReachConfig): Finding[] {
  const { host, allowedHosts, trustedProxies, requireAuth, loopbackAuthBypass, pairing } = config;
  const findings: Finding[] = [];
  if (!requireAuth) {
    findings.push(
      problem("Nobody has to sign in (require_auth = false)", "Set require_auth = true; false is for development"),
    );
  }
  const { addresses, plainNames } = placesWithoutPasskeys(config);
  if (addresses.length > 0 && pairing === "open") {
    findings.push(problem(
      `Whoever reaches ${addresses.join(", ")} needs no passkey, for good: browsers make none for an IP address`,
      'Use a name with HTTPS, or set pairing = "code" and sign in there by token',
    ));
  }
  if (plainNames.length > 0) {
    findings.push(problem(
      `${plainNames.join(", ")} can never be closed by a passkey: browsers make none over plain HTTP`,
      "Set tls_cert and tls_key, or put an HTTPS proxy in front and name it in trusted_proxies",
    ));
  }
  if (loopbackAuthBypass && trustedProxies.some((proxy) => LOOPBACK.test(proxy))) {
    findings.push(problem(
      "A proxy on this machine is trusted while requests from this machine need no credentials",
      "Set loopback_auth_bypass = false: a proxy that forgets its header makes every visitor look like you",
    ));
  } else if (loopbackAuthBypass && requireAuth) {
    findings.push(note(
      "Every user and program of this machine has the whole API (loopback_auth_bypass = true)",
      "Where others use this machine set loopback_auth_bypass = false",
    ));
  }
  if (!LOOPBACK.test(host) && allowedHosts.length === 0) {
    findings.push(problem(
      `The server listens on ${host}, but no name is allowed to reach it from elsewhere`,
      "Name the host it is reached by in allowed_hosts, or set host = 127.0.0.1",
    ));
  }
  if (config.guardAllow.length > 0) {
    findings.push(note(
      `Addresses in cards and pages may lead to ${config.guardAllow.join(", ")} (guard_allow)`,
      "Leave in guard_allow only what a card or a download has to be fetched from",
    ));
  }
  return findings.length > 0 ? findings : [ok("Every address it is reached by can be closed by a passkey")];
}
