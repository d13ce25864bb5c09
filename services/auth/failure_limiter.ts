/** Limits failed authentication attempts. Valid credentials never count, so they're never locked out. */
import { AppError } from "../errors.ts";
import type { Log } from "../log.ts";
import { getClientKey } from "./hosts.ts";

const HOUR_MS = 60 * 60 * 1000;
/** Hours that `recent` counts. */
const HOURS = 24;
const WINDOW_MS = 5 * 60 * 1000;
/** Failures per address and window before a 429 response. */
const MAX_PER_CLIENT = 100;
/** The same for all addresses together: a flood from many of them. */
const MAX_IN_ALL = 2_000;
/** Maximum number of addresses to remember. The oldest is dropped first. */
const MAX_CLIENTS = 10_000;

interface Window {
  count: number;
  endsAtMs: number;
}

/** Counts failed authentications. */
export interface FailureLimiter {
  /**
   * Counts a failure.
   *
   * @param address Of the client.
   * @param failure What to answer while there were few.
   * @param attempt What was refused, for the log.
   * @returns `failure`, or `too_many_requests` once there were too many.
   */
  count(address: string, failure: AppError, attempt: RefusedAttempt): AppError;
  /** Logs a refused sign-in that has another limit, and counts it for `recent` only. */
  record(address: string, attempt: RefusedAttempt): void;
  /** Returns how many sign-ins were refused in the last 24 hours, or since the start if that is later. */
  recent(): number;
}

/** A refused sign-in, for the log. */
export interface RefusedAttempt {
  method: "passkey" | "token" | "code";
  /** Why, if it's known. */
  reason?: string;
}

/** Creates a limiter without failures. */
export function createFailureLimiter(now: () => number, log: Log): FailureLimiter {
  const clients = new Map<string, Window>();
  let all: Window = { count: 0, endsAtMs: 0 };
  /** Refusals by hour since 1970. */
  const hours = new Map<number, number>();

  const fresh = (): Window => ({ count: 0, endsAtMs: now() + WINDOW_MS });
  // If the clock is set back, the window must not become longer.
  const isOver = ({ endsAtMs }: Window) => endsAtMs <= now() || endsAtMs > now() + WINDOW_MS;

  function record(address: string, { method, reason }: RefusedAttempt): void {
    // The address comes first: whatever a client can choose follows it, so that no line can name another address.
    log("warn", "Refused a sign-in", { client: address, method, ...(reason && { reason: reason.slice(0, 200) }) });
    const hour = Math.floor(now() / HOUR_MS);
    hours.set(hour, (hours.get(hour) ?? 0) + 1);
    for (const old of hours.keys()) if (old <= hour - HOURS || old > hour) hours.delete(old);
  }

  return {
    record,
    count(address, failure, attempt) {
      record(address, attempt);
      const key = getClientKey(address);
      let window = clients.get(key);
      if (window === undefined || isOver(window)) {
        clients.delete(key);
        if (clients.size >= MAX_CLIENTS) clients.delete(clients.keys().next().value!);
        clients.set(key, window = fresh());
      }
      if (isOver(all)) all = fresh();
      window.count++;
      all.count++;
      const full = window.count > MAX_PER_CLIENT ? window : all.count > MAX_IN_ALL ? all : undefined;
      if (full === undefined) return failure;
      return new AppError("too_many_requests", "Too many failed sign-ins. Try again later", {
        retryAfterSeconds: (full.endsAtMs - now()) / 1000,
        cause: failure,
      });
    },
    recent() {
      const oldest = Math.floor(now() / HOUR_MS) - HOURS;
      return [...hours].reduce((sum, [hour, count]) => hour > oldest ? sum + count : sum, 0);
    },
  };
}
