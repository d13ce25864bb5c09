/** Decides who has access. middleware/authentication.ts maps paths and headers to these rules. */
import { AppError } from "../errors.ts";
import type { CredentialStore } from "./credential_store.ts";
import type { FailureLimiter } from "./failure_limiter.ts";
import type { PageOriginWatch } from "./hosts.ts";
import { getRpId } from "./rp_id.ts";
import type { TokenScope } from "./token_store.ts";

/** Why a request without credentials has access; `null` if it doesn't, or doesn't need to. */
export type Bypass = "auth_disabled" | "loopback" | "grace" | null;

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
export interface AccessState {
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
export type CredentialCheck = (facts: AccessFacts, presented: PresentedCredentials) => Promise<Identity | undefined>;

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
