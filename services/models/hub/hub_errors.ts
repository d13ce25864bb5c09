/** What the hub's refusals mean, in words one can act on (protocols: X-Error-Code of the hub). */
import { AppError } from "../../errors.ts";

/** What is known of a refusing answer. */
export interface HubRefusal {
  status: number;
  header(name: string): string | undefined;
}

/** Statuses after which the same request may well succeed. */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Says whether asking again later makes sense. */
export function isPassing(status: number): boolean {
  return PASSING.has(status);
}

/**
 * Gives the seconds after which the hub wants to be asked again, where it says so.
 *
 * Its `RateLimit` stands on every answer and tells when the window ends: that is a wait only where the window is used up.
 */
export function retryAfterSeconds({ status, header }: HubRefusal): number | undefined {
  const reset = status === 429 ? /(?:^|;)\s*t=(\d{1,6})/.exec(header("ratelimit") ?? "")?.[1] : undefined;
  const retry = /^\s*(\d{1,6})\s*$/.exec(header("retry-after") ?? "")?.[1];
  const seconds = reset ?? retry;
  return seconds === undefined ? undefined : Number(seconds);
}

/**
 * Makes the error of a refused request.
 *
 * @param what What was asked for, as in `the files of "owner/name"`.
 * @param page Page of the repository, where access is asked for.
 * @param hasToken Whether a token was sent.
 */
export function hubError(refusal: HubRefusal, what: string, page: string, hasToken: boolean): AppError {
  const { status, header } = refusal;
  const code = header("x-error-code");
  const message = header("x-error-message") ?? "";
  const tried = `Cannot get ${what} from the model hub`;
  const setToken = "put a token of your account into a file and name it as hub_token_file";
  if (code === "GatedRepo") {
    return new AppError(
      "upstream_error",
      hasToken
        ? `${tried}: its owner has not granted access to the account of your token; ask for it at ${page}, and see that the token may read gated repositories`
        : `${tried}: its terms have to be accepted first; do so at ${page}, then ${setToken}`,
    );
  }
  if (status === 401 && hasToken && code === undefined) {
    return new AppError("upstream_error", `${tried}: the hub does not accept the token in hub_token_file; replace it`);
  }
  if (status === 401) {
    const asked = hasToken ? "the account of your token cannot see it" : `it is private: then ${setToken}`;
    return new AppError("not_found", `${tried}: it does not exist, or ${asked}`);
  }
  if (status === 403 && /disabled/i.test(message)) {
    return new AppError("upstream_error", `${tried}: the hub has taken it down`);
  }
  if (status === 403) return new AppError("upstream_error", `${tried}: the hub denies access; see ${page}`);
  if (status === 404 || status === 410) return new AppError("not_found", `${tried}: it does not exist there`);
  const retry = retryAfterSeconds(refusal);
  if (status === 429) {
    const wait = retry === undefined ? "later" : `in ${retry} s`;
    return new AppError("upstream_error", `${tried}: it has been asked too often; try again ${wait}`, {
      retryAfterSeconds: retry,
    });
  }
  return new AppError("upstream_error", `${tried}: it answered with status ${status}`, { retryAfterSeconds: retry });
}
