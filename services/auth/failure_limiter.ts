/** Limits failed authentication attempts. Valid credentials never count, so they're never locked out. */
import { AppError } from "../errors.ts";
import { clientKey } from "./client_key.ts";

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
   * @returns `failure`, or `too_many_requests` once there were too many.
   */
  count(address: string, failure: AppError): AppError;
}

/** Creates a limiter without failures. */
export function createFailureLimiter(now: () => number): FailureLimiter {
  const clients = new Map<string, Window>();
  let all: Window = { count: 0, endsAtMs: 0 };

  const fresh = (): Window => ({ count: 0, endsAtMs: now() + WINDOW_MS });
  // If the clock is set back, the window must not become longer.
  const isOver = ({ endsAtMs }: Window) => endsAtMs <= now() || endsAtMs > now() + WINDOW_MS;

  return {
    count(address, failure) {
      const key = clientKey(address);
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
  };
}
