/** Checks the host. Runs after authentication, so that a new origin can enroll. */
import type { MiddlewareHandler } from "hono";
import { type HostPolicy, isLoopbackName } from "../services/auth/hosts.ts";
import { AppError } from "../services/errors.ts";
import { isCeremonyPath } from "./authentication.ts";
import type { Env } from "./env.ts";

/**
 * @param options.corsOrigins Origins whose pages may call this server. On this machine such calls don't count as local
 *   and get no bypass, but they may use loopback names; otherwise they couldn't reach a server on this machine.
 * @throws {AppError} `host_not_allowed`, with a message that names the setting.
 */
export function hostAllowlist(options: {
  hosts: HostPolicy;
  corsOrigins: readonly string[];
}): MiddlewareHandler<Env> {
  const { hosts, corsOrigins } = options;
  return async (c, next) => {
    const { host, listener, isSameMachine, isLocal, requestOrigin } = c.var.facts;
    const isListedPage = requestOrigin !== null && corsOrigins.includes(requestOrigin);
    const facts = { host, listener, isLocal: isLocal || (isSameMachine && isListedPage) };
    const isOpen = isCeremonyPath(c.req.path) ? hosts.allowsCeremonies(facts) : hosts.isAllowed(facts);
    if (!isOpen) {
      const advice = isLoopbackName(host)
        ? "Only requests that come directly from this machine can use it. Open the address of the proxy in trusted_proxies"
        : "To allow it, add it to allowed_hosts";
      throw new AppError("host_not_allowed", `The host "${host}" isn't allowed here. ${advice}`);
    }
    await next();
  };
}
