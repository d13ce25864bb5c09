/**
 * Eighth middleware, only for the OpenAI-compatible API: limits how many calls a limited token makes, at once and per
 * minute.
 */
import type { MiddlewareHandler } from "hono";
import { AppError } from "../services/errors.ts";
import { endBodyOnRevocation } from "./authentication.ts";
import type { Env } from "./env.ts";

/** Calls of one token at the same time. */
const MAX_CALLS = 8;
/** Calls of one token per minute. Indexing notes takes a few hundred; a client in a loop sends thousands. */
const MAX_CALLS_PER_MINUTE = 600;
const MINUTE_MS = 60_000;
/** It's unknown when a running call ends, so the client can ask again soon. */
const RETRY_AFTER_SECONDS = 2;

/** Limits of each token, and the clock. */
export interface CallLimits {
  /** Calls at the same time. */
  atOnce?: number;
  perMinute?: number;
  now?(): number;
}

/**
 * Counts the calls of each token of the scope `openai`: those that run, to the end of their responses, and those of a minute.
 * Other callers aren't limited.
 *
 * A route that continues without its client keeps its call counted with `holdCall`.
 *
 * @throws {AppError} `too_many_requests`
 */
export function callLimit(
  { atOnce = MAX_CALLS, perMinute = MAX_CALLS_PER_MINUTE, now = Date.now }: CallLimits = {},
): MiddlewareHandler<Env> {
  const running = new Map<string, number>();
  const rates = new CallRates(perMinute, now);
  return async (c, next) => {
    const { identity } = c.var;
    if (identity.method !== "token" || identity.scope !== "openai") return await next();
    const { tokenId } = identity;
    const count = running.get(tokenId) ?? 0;
    if (count >= atOnce) {
      throw new AppError("too_many_requests", `This token already has ${atOnce} calls running. Try again later`, {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    }
    const waitSeconds = rates.take(tokenId);
    if (waitSeconds > 0) {
      throw new AppError("too_many_requests", `This token may make ${perMinute} calls per minute. Try again later`, {
        retryAfterSeconds: waitSeconds,
      });
    }
    running.set(tokenId, count + 1);
    const held: Promise<unknown>[] = [];
    c.set("holdCall", (done) => void held.push(done));
    const end = async () => {
      await Promise.allSettled(held);
      const left = running.get(tokenId)! - 1;
      if (left === 0) running.delete(tokenId);
      else running.set(tokenId, left);
    };
    try {
      await next();
    } finally {
      const type = c.finalized ? c.res.headers.get("content-type") ?? "" : "";
      // Checks the type first: reading `body` turns a body that isn't a stream into one.
      if (/^(text\/event-stream|audio\/)/.test(type) && c.res.body !== null) {
        const body = endBodyOnRevocation(c.res.body, {
          signal: new AbortController().signal,
          release: () => void end(),
        });
        c.res = new Response(body, c.res);
      } else void end();
    }
  };
}

/** Counts the calls of tokens per minute. Each token saves up to a minute's calls and gets them back evenly. */
class CallRates {
  readonly #perMinute: number;
  readonly #now: () => number;
  readonly #left = new Map<string, { calls: number; atMs: number }>();

  constructor(perMinute: number, now: () => number) {
    this.#perMinute = perMinute;
    this.#now = now;
  }

  /** Counts a call. Returns 0, or the seconds to wait if none is left; then the call isn't counted. */
  take(tokenId: string): number {
    const atMs = this.#now();
    const before = this.#left.get(tokenId) ?? { calls: this.#perMinute, atMs };
    const perMs = this.#perMinute / MINUTE_MS;
    const calls = Math.min(this.#perMinute, before.calls + Math.max(0, atMs - before.atMs) * perMs);
    const isAllowed = calls >= 1;
    this.#left.set(tokenId, { calls: isAllowed ? calls - 1 : calls, atMs });
    return isAllowed ? 0 : Math.ceil((1 - calls) / perMs / 1000);
  }
}
