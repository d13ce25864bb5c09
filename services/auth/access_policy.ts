/**
 * Decides who has access, and finds the addresses that don't require sign-in. middleware/authentication.ts maps paths
 * and headers to these rules.
 */
import { AppError } from "../errors.ts";
import type { CredentialStore, TokenAllowance, TokenScope } from "./credential_stores.ts";
import type { FailureLimiter } from "./enrolment_codes.ts";
import {
  createAddressMatcher,
  getRpId,
  isLoopbackName,
  type OwnNode,
  type PageOriginWatch,
  parseAddress,
} from "./hosts.ts";
import type { Log } from "../log.ts";

/** The rule that gives a request access without credentials; `null` if none applies. */
type Bypass = "auth_disabled" | "loopback" | "grace" | null;

/** Identity of a caller. */
export type Identity =
  | {
    method: "session";
    sessionId: string;
    credentialId: string;
    rpId: string;
    /** New value for the session cookie, to be sent to the client. */
    renewal?: string;
  }
  | { method: "token"; tokenId: string; label: string; scope: TokenScope; allow?: TokenAllowance }
  | {
    method: null;
    bypass: Bypass;
    /** Whether the caller proved that it can read the data folder. */
    isOperator?: boolean;
  };

/** The facts of a request that the decision uses; a subset of `RequestFacts`. */
export interface AccessFacts {
  scheme: "http" | "https";
  /** Lower case, no port, no trailing dot. */
  host: string;
  isLocal: boolean;
  isPeerLoopback: boolean;
  /** Canonical; failures are counted per address. */
  clientAddress: string;
}

/** The credentials of a request, not verified yet. */
export interface PresentedCredentials {
  /** Token from `Authorization: Bearer` or `api_token`; `null` if the header has another scheme. */
  bearerToken?: string | null;
  /** Value of the session cookie for the request's scheme. */
  sessionCookie?: string;
}

/**
 * What kind of route a request is for. `ceremony` and `setup_status` are open in more cases than others. `openai` is
 * everything below `/api/v1`, which tokens of that scope are limited to.
 */
export type RouteAccess = "ceremony" | "setup_status" | "openai" | "other";

/** Configuration values that the decision uses. */
export interface AccessSettings {
  requireAuth: boolean;
  loopbackAuthBypass: boolean;
  /** `"code"` opens only the ceremonies and the setup status during the grace period; `"open"` opens everything. */
  pairing: string;
  /** Domain of tailnets, whose machines share their parent domain as RP ID: `"ts.net"`. */
  tailnetSuffix: string;
}

/** State of the caller's origin. */
interface AccessState {
  rpId: string;
  /** Whether a passkey was enrolled for the RP ID. */
  isPaired: boolean;
  /** The rule that gives access without credentials; ignores the credentials of the request. */
  bypass: Bypass;
}

/** Decides who has access: first by the rules that need no credentials, then by credentials. */
export interface AccessPolicy {
  readonly pairing: "open" | "code";
  /** Returns the RP ID of a host. */
  getRpId(host: string): string;
  /**
   * Returns the caller's identity.
   *
   * @throws {AppError} `unauthenticated` if a sign-in is required and the credentials are missing or invalid;
   *   `too_many_requests` instead after too many wrong tokens from one address; `forbidden` for a token whose scope
   *   doesn't include this route.
   */
  decide(facts: AccessFacts, presented: PresentedCredentials, route: RouteAccess): Promise<Identity>;
  /** Returns the state of the caller's origin. */
  getState(facts: AccessFacts): Promise<AccessState>;
}

/** Checks the credentials of a request; sessions and tokens each have a check. */
type CredentialCheck = (facts: AccessFacts, presented: PresentedCredentials) => Promise<Identity | undefined>;

/** Creates the policy from its settings, the enrolled passkeys and the detection of proxies. */
export function createAccessPolicy(options: {
  settings: AccessSettings;
  credentials: Pick<CredentialStore, "isGated">;
  pageOrigins: PageOriginWatch;
  failures: FailureLimiter;
  /** Returns the last known MagicDNS suffix of Parlor's own tailnet node. */
  ownSuffix?: () => string | undefined;
  /** Tried in order; the first one that returns an identity decides. */
  checks?: CredentialCheck[];
}): AccessPolicy {
  const { settings, credentials, pageOrigins, failures, ownSuffix = () => undefined, checks = [] } = options;
  const toRpId = (host: string) => getRpId(host, settings.tailnetSuffix, ownSuffix());

  /** Applies the rules that don't depend on enrolled passkeys. */
  function findBypass({ isLocal }: AccessFacts): "auth_disabled" | "loopback" | null {
    if (!settings.requireAuth) return "auth_disabled";
    return isLocal && settings.loopbackAuthBypass && !pageOrigins.isTripped ? "loopback" : null;
  }

  const pairing = settings.pairing === "code" ? "code" : "open";
  return {
    pairing,
    getRpId: toRpId,
    async getState(facts) {
      const rpId = toRpId(facts.host);
      const isPaired = await credentials.isGated(rpId);
      return { rpId, isPaired, bypass: findBypass(facts) ?? (isPaired ? null : "grace") };
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
      const bypass = findBypass(facts) ?? (await credentials.isGated(toRpId(facts.host)) ? null : "grace");
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

/** Addresses that anyone who reaches them can use without signing in, grouped by what closes them. */
interface OpenAddresses {
  /** Loopback spellings: the first passkey on `localhost` closes all of them. */
  loopback: string[];
  /** Names that the first passkey enrolled there closes. */
  names: string[];
  /** IP addresses and CIDRs. No passkey closes them: browsers don't create passkeys for IP addresses. */
  addresses: string[];
  /** Names served over plain HTTP. No passkey closes them: browsers create passkeys in secure contexts only. */
  plainNames: string[];
  /**
   * `*.suffix` entries. No passkey closes them: a client can invent a name below the suffix that has no passkey yet.
   */
  patterns: string[];
}

/** Names of the loopback host in messages. `isLoopbackName` has the complete rule. */
const LOOPBACK_SPELLINGS = ["localhost", "*.localhost", "127.0.0.0/8", "[::1]"];

/**
 * Finds the addresses that are open because of the grace period.
 *
 * With `require_auth = false` everything is open, and with `pairing = "code"` the grace period doesn't open data: both
 * return empty lists. With the loopback bypass this machine is open by configuration, so its names aren't listed
 * either.
 *
 * @param isGated Returns whether a passkey was enrolled for an RP ID.
 * @param ownNode Names of Parlor's own tailnet node, if any.
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
  const toRpId = (host: string) => getRpId(host, settings.tailnetSuffix, ownNode?.suffix);
  const isPlain = settings.tlsCert === null && settings.trustedProxies.length === 0;
  for (const entry of settings.allowedHosts) {
    const host = entry.toLowerCase().replace(/\.$/, "");
    if (isLoopbackEntry(host)) continue;
    if (host.startsWith("*.")) open.patterns.push(entry);
    else if (parseAddress(host.split("/")[0]!) !== undefined) open.addresses.push(entry);
    else if (!await isGated(toRpId(host))) (isPlain ? open.plainNames : open.names).push(entry);
  }
  if (ownNode !== undefined && !await isGated(toRpId(ownNode.fqdn))) open.names.push(ownNode.fqdn);
  open.names = [...new Set(open.names)];
  return open;
}

/**
 * Returns the address where the page opens on this machine, so that a passkey there closes the loopback addresses.
 *
 * If this machine is a trusted proxy, each request from it must name its client, which no browser does. Over TLS, the
 * certificate is for another name, and browsers create no passkeys for one that they don't trust.
 *
 * @param settings.port 0 for any free port.
 * @returns `"http://localhost:8787"`; `undefined` if there is none.
 */
export function findLoopbackAddress(
  { host, port, tlsCert, trustedProxies }: Pick<ReachSettings, "host" | "tlsCert" | "trustedProxies"> & {
    port: number;
  },
): string | undefined {
  const isProxyHere = createAddressMatcher(trustedProxies)(/^\[?::/.test(host) ? "::1" : "127.0.0.1");
  if (isProxyHere || tlsCert !== null) return undefined;
  return port === 0 || port === 80 ? "http://localhost" : `http://localhost:${port}`;
}

/** Logs one line for each kind of open address. Called at the start. @param address From `findLoopbackAddress`. */
export function logOpenAddresses(open: OpenAddresses, address: string | undefined, log: Log): void {
  const { loopback, names, addresses, plainNames, patterns } = open;
  if (loopback.length > 0) {
    log(
      "warn",
      `Open without sign-in to every user and program of this machine: ${loopback.join(", ")}. ` +
        (address === undefined
          ? 'Set pairing = "code" to close them'
          : `Open ${address} in a browser and add a passkey to close them`),
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
      `Open without sign-in to everyone who can reach ${
        addresses.join(", ")
      }. Browsers don't create passkeys for IP addresses: ` +
        'use a name with HTTPS, or set pairing = "code" and sign in there with a token',
    );
  }
  if (plainNames.length > 0) {
    log(
      "warn",
      `Open without sign-in to everyone who can reach ${
        plainNames.join(", ")
      }. Browsers don't create passkeys over plain HTTP: ` +
        "set tls_cert and tls_key, or name an HTTPS proxy in trusted_proxies",
    );
  }
  if (patterns.length > 0) {
    log(
      "warn",
      `Open without sign-in to everyone who can reach ${
        patterns.join(", ")
      }. A client can invent a name there that has no passkey: ` +
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
