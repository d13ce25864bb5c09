/**
 * Watches for a same-host proxy that forwards bare: no forwarding header and Host 127.0.0.1, so that its clients look
 * like the owner. One request cannot tell; the page can, since it knows the address it was loaded from.
 */
import type { Log } from "../log.ts";

/** What of a request's facts the watch rests on. */
export interface PageFacts {
  isPeerLoopback: boolean;
  hasForwardingHeader: boolean;
  /** `scheme://host[:port]` as we computed it. */
  origin: string;
}

/** Remembers, until the process ends, that such a proxy was seen. */
export interface PageOriginWatch {
  /** The loopback bypass must not hold any more. */
  readonly isTripped: boolean;
  /** Compares where the page says it is (`X-Parlor-Page`) with where we think it is. */
  note(pageOrigin: string, facts: PageFacts): void;
}

/** @param options.corsOrigins Pages there call us from elsewhere by configuration and prove no proxy. */
export function createPageOriginWatch(options: { corsOrigins: readonly string[]; log: Log }): PageOriginWatch {
  let isTripped = false;
  return {
    get isTripped() {
      return isTripped;
    },
    note(pageOrigin, facts) {
      if (isTripped || !facts.isPeerLoopback || facts.hasForwardingHeader || pageOrigin === facts.origin) return;
      if (options.corsOrigins.includes(pageOrigin)) return;
      isTripped = true;
      // Only an origin goes to the log as it came; anything else could carry control characters or a secret.
      const page = URL.canParse(pageOrigin) ? new URL(pageOrigin).origin : "another address";
      options.log(
        "warn",
        `A page at ${page} reaches this server as ${facts.origin}: a proxy on this machine forwards requests without X-Forwarded headers. ` +
          "The loopback bypass is off until the next start. Set loopback_auth_bypass = false, and set trusted_proxies to the " +
          "proxy's address once it sends X-Forwarded-For, -Proto and -Host",
      );
    },
  };
}
