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
      problem("auth_off"),
    );
  }
  const { addresses, plainNames } = placesWithoutPasskeys(config);
  if (addresses.length > 0 && pairing === "open") {
    findings.push(problem("open_addresses", { addresses: addresses.join(", ") }));
  }
  if (plainNames.length > 0) {
    findings.push(problem("open_plain_names", { names: plainNames.join(", ") }));
  }
  if (loopbackAuthBypass && trustedProxies.some((proxy) => LOOPBACK.test(proxy))) {
    findings.push(problem("proxy_here_without_credentials"));
  } else if (loopbackAuthBypass && requireAuth) {
    findings.push(note("machine_without_credentials"));
  }
  if (!LOOPBACK.test(host) && allowedHosts.length === 0) {
    findings.push(problem("no_name_allowed", { host }));
  }
  if (config.guardAllow.length > 0) {
    findings.push(note("guard_allow", { addresses: config.guardAllow.join(", ") }));
  }
  return findings.length > 0 ? findings : [ok("reach_ok")];
}
