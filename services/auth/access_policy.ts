/**
 * Decides who has access, and finds the addresses that need no sign-in. middleware/authentication.ts maps paths and
 * headers to these rules.
 */
import { AppError } from "../errors.ts";
import type { CredentialStore, TokenScope } from "./credential_stores.ts";
import type { FailureLimiter } from "./enrolment_codes.ts";
import { getRpId, isLoopbackName, type OwnNode, type PageOriginWatch, parseAddress } from "./hosts.ts";
import type { Log } from "../log.ts";

/** Why a request without credentials has access; `null` if it doesn't, or doesn't need to. */
type Bypass = "auth_disabled" | "loopback" | "grace" | null;

/** Identity of a caller. */
export type Identity =
  | {
    method: "session";
    sessionId: string;
    credentialId: string;
    rpId: string;
    /** A newer value for the session cookie, to be sent back. */
    renewal?: string;
  }
  | { method: "token"; tokenId: string; label: string; scope: TokenScope }
  | { method: null; bypass: Bypass };

/** What of a request's facts the decision rests on; RequestFacts has it all. */
export interface AccessFacts {
  scheme: "http" | "https";
  /** Lower case, no port, no trailing dot. */
  host: string;
  isLocal: boolean;
  isPeerLoopback: boolean;
  /** Canonical; failures are counted against it. */
  clientAddress: string;
}

/** The credentials a request brought, unchecked. */
export interface PresentedCredentials {
  /** Token of `Authorization: Bearer`, else of `api_token`; `null` where the header's scheme rules a token out. */
  bearerToken?: string | null;
  /** Value of the session cookie for the request's scheme. */
  sessionCookie?: string;
}

/**
 * What a route opens to callers whose RPID is gated, or in grace under `pairing = "code"`. `openai` is everything below
 * `/api/v1`, which tokens of that scope are limited to.
 */
export type RouteAccess = "ceremony" | "setup_status" | "openai" | "other";

/** Values of the configuration the decision rests on. */
export interface AccessSettings {
  requireAuth: boolean;
  loopbackAuthBypass: boolean;
  /** `"code"` narrows grace to ceremonies and status; `"open"` allows everything. */
  pairing: string;
  /** Domain below which machines share their parent as RPID: `"ts.net"`. */
  tailnetSuffix: string;
}

/** State of the caller's origin. */
interface AccessState {
  rpId: string;
  /** A credential is enrolled for the RPID. */
  isPaired: boolean;
  /** The pass-through rule that holds, whatever the request brought along. */
  bypass: Bypass;
}

/** Decides by the three rules that need no credentials, then by credentials. */
export interface AccessPolicy {
  readonly pairing: "open" | "code";
  /** Returns the RP ID of a host. */
  rpIdOf(host: string): string;
  /**
   * Returns the caller's identity.
   *
   * @throws {AppError} `unauthenticated` if the RPID is gated and nothing valid was presented, or when grace does not
   *   open this route; `too_many_requests` in its place after too many wrong tokens from one address; `forbidden` for a
   *   token whose scope doesn't include this route.
   */
  decide(facts: AccessFacts, presented: PresentedCredentials, route: RouteAccess): Promise<Identity>;
  /** Returns the state of the caller's origin. */
  stateOf(facts: AccessFacts): Promise<AccessState>;
}

/** Checks what a request presented; sessions and tokens bring their own. */
type CredentialCheck = (facts: AccessFacts, presented: PresentedCredentials) => Promise<Identity | undefined>;

/** Builds the policy over its settings, the enrolled credentials and the watch over bare proxies. */
export function createAccessPolicy(options: {
  settings: AccessSettings;
  credentials: Pick<CredentialStore, "isGated">;
  pageOrigins: PageOriginWatch;
  failures: FailureLimiter;
  /** MagicDNS suffix of the own tailnet node, last value known. */
  ownSuffix?: () => string | undefined;
  /** Tried in order; the first identity counts. */
  checks?: CredentialCheck[];
}): AccessPolicy {
  const { settings, credentials, pageOrigins, failures, ownSuffix = () => undefined, checks = [] } = options;
  const rpIdOf = (host: string) => getRpId(host, settings.tailnetSuffix, ownSuffix());

  /** The rules that need no look at the enrolled passkeys. */
  function bypassOf({ isLocal }: AccessFacts): "auth_disabled" | "loopback" | null {
    if (!settings.requireAuth) return "auth_disabled";
    return isLocal && settings.loopbackAuthBypass && !pageOrigins.isTripped ? "loopback" : null;
  }

  const pairing = settings.pairing === "code" ? "code" : "open";
  return {
    pairing,
    rpIdOf,
    async stateOf(facts) {
      const rpId = rpIdOf(facts.host);
      const isPaired = await credentials.isGated(rpId);
      return { rpId, isPaired, bypass: bypassOf(facts) ?? (isPaired ? null : "grace") };
    },
    async decide(facts, presented, route) {
      for (const check of checks) {
        const identity = await check(facts, presented);
        if (identity === undefined) continue;
        if (identity.method === "token" && identity.scope === "openai" && route !== "openai") {
          throw new AppError("forbidden", "This token is limited to the OpenAI-compatible API below /api/v1");
        }
        return identity;
      }
      const bypass = bypassOf(facts) ?? (await credentials.isGated(rpIdOf(facts.host)) ? null : "grace");
      const opens = bypass === "grace" && pairing === "code"
        ? route === "ceremony" || route === "setup_status"
        : bypass !== null;
      if (opens) return { method: null, bypass };
      if (route === "ceremony") return { method: null, bypass: null };
      const refusal = new AppError(
        "unauthenticated",
        bypass === "grace"
          ? "Sign in first. To add a passkey, use the code that the server printed in its terminal"
          : "Sign in with a passkey or send a bearer token",
      );
      throw typeof presented.bearerToken === "string"
        ? failures.count(facts.clientAddress, refusal, { method: "token" })
        : refusal;
    },
  };
}

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

/** Addresses that anyone who reaches them can use without signing in, by what closes them. */
interface OpenAddresses {
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

/** Logs one line for each kind of open address, at the start. */
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
