/** Finds the addresses that anyone who reaches them can use without signing in, for the start-up log and for `parlor doctor`. */
import type { Log } from "../log.ts";
import { isLoopbackName, type OwnNode, parseAddress } from "./hosts.ts";
import { getRpId } from "./rp_id.ts";

/** The configuration values that decide which addresses are open. */
export interface ReachSettings {
  /** Address the server listens on. */
  host: string;
  allowedHosts: readonly string[];
  trustedProxies: readonly string[];
  tlsCert: string | null;
  requireAuth: boolean;
  loopbackAuthBypass: boolean;
  pairing: string;
  tailnetSuffix: string;
}

/** Open addresses, by what closes them. */
export interface OpenAddresses {
  /** Loopback spellings: the first passkey on `localhost` closes all of them. */
  loopback: string[];
  /** Names that the first passkey enrolled there closes. */
  names: string[];
  /** IP addresses and CIDRs. No passkey closes them: browsers don't create passkeys for IP addresses. */
  addresses: string[];
  /** Names served over plain HTTP. No passkey closes them: browsers create passkeys in secure contexts only. */
  plainNames: string[];
  /** `*.suffix` entries. No passkey closes them: a client can make up a name below the suffix that has no passkey yet. */
  patterns: string[];
}

/** How the loopback host is written in messages; `isLoopbackName` has the rule. */
const LOOPBACK_SPELLINGS = ["localhost", "*.localhost", "127.0.0.0/8", "[::1]"];

/**
 * Finds the addresses where grace holds now.
 *
 * With `require_auth = false` everything is open, and with `pairing = "code"` grace opens no data: both return empty lists.
 * With the loopback bypass this machine is open by configuration, so its names aren't listed either.
 *
 * @param isGated Returns whether a passkey was enrolled for an RP ID.
 * @param ownNode Names of the own tailnet node, if it has any.
 */
export async function findOpenAddresses(
  settings: ReachSettings,
  isGated: (rpId: string) => boolean | Promise<boolean>,
  ownNode?: OwnNode,
): Promise<OpenAddresses> {
  const open: OpenAddresses = { loopback: [], names: [], addresses: [], plainNames: [], patterns: [] };
  if (!settings.requireAuth || settings.pairing === "code") return open;
  if (!settings.loopbackAuthBypass && acceptsLoopbackPeers(settings.host) && !await isGated("localhost")) {
    open.loopback = LOOPBACK_SPELLINGS;
  }
  const rpIdOf = (host: string) => getRpId(host, settings.tailnetSuffix, ownNode?.suffix);
  const isPlain = settings.tlsCert === null && settings.trustedProxies.length === 0;
  for (const entry of settings.allowedHosts) {
    const host = entry.toLowerCase().replace(/\.$/, "");
    if (isLoopbackEntry(host)) continue;
    if (host.startsWith("*.")) open.patterns.push(entry);
    else if (parseAddress(host.split("/")[0]!) !== undefined) open.addresses.push(entry);
    else if (!await isGated(rpIdOf(host))) (isPlain ? open.plainNames : open.names).push(entry);
  }
  if (ownNode !== undefined && !await isGated(rpIdOf(ownNode.fqdn))) open.names.push(ownNode.fqdn);
  open.names = [...new Set(open.names)];
  return open;
}

/** Logs one line for each kind of open address. */
export function logOpenAddresses(open: OpenAddresses, log: Log): void {
  const { loopback, names, addresses, plainNames, patterns } = open;
  if (loopback.length > 0) {
    log(
      "warn",
      `Open without sign-in to every user and program of this machine: ${loopback.join(", ")}. ` +
        "Open http://localhost in a browser and add a passkey to close them",
    );
  }
  if (names.length > 0) {
    log(
      "warn",
      `Open without sign-in to everyone who can reach this server: ${names.join(", ")}. ` +
        'Add a passkey there, or set pairing = "code"',
    );
  }
  if (addresses.length > 0) {
    log(
      "warn",
      `No browser makes a passkey for an IP address, so ${addresses.join(", ")} can't be closed: ` +
        'use a name with HTTPS, or set pairing = "code" and sign in there with a token',
    );
  }
  if (plainNames.length > 0) {
    log(
      "warn",
      `No browser makes a passkey over plain HTTP, so ${plainNames.join(", ")} can't be closed: ` +
        "set tls_cert and tls_key, or name an HTTPS proxy in trusted_proxies",
    );
  }
  if (patterns.length > 0) {
    log(
      "warn",
      `A client can make up a name below ${patterns.join(", ")} that has no passkey, so it can't be closed: ` +
        'list each name in allowed_hosts, or set pairing = "code"',
    );
  }
}

/** Returns whether connections from 127.0.0.1 or ::1 reach a listener on this address. */
function acceptsLoopbackPeers(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return isLoopbackName(bare) || bare === "0.0.0.0" || bare === "::";
}

/** Returns whether an entry of `allowed_hosts` names only loopback hosts. */
function isLoopbackEntry(entry: string): boolean {
  if (entry.startsWith("*.")) return isLoopbackName(`x${entry.slice(1)}`);
  const [base = "", bits] = entry.split("/");
  return isLoopbackName(base) && (bits === undefined || Number(bits) >= 8);
}
