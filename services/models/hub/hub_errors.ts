/** Explains the hub's error responses (docs/protocols/models.md, "Authorization" and "Rate limits"). */
import { AppError } from "../../errors.ts";

/** An error response of the hub. */
export interface HubErrorResponse {
  status: number;
  header(name: string): string | undefined;
}

/** Statuses after which the same request may succeed later. */
const TEMPORARY = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Reports whether a retry may succeed. */
export function isTemporary(status: number): boolean {
  return TEMPORARY.has(status);
}

/**
 * Returns after how many seconds to retry, if the hub says so.
 *
 * Every response has a `RateLimit` header with the end of the window. It matters only if the limit is reached.
 */
export function parseHubRetryAfter({ status, header }: HubErrorResponse): number | undefined {
  const reset = status === 429 ? /(?:^|;)\s*t=(\d{1,6})/.exec(header("ratelimit") ?? "")?.[1] : undefined;
  const retry = /^\s*(\d{1,6})\s*$/.exec(header("retry-after") ?? "")?.[1];
  const seconds = reset ?? retry;
  return seconds === undefined ? undefined : Number(seconds);
}

/**
 * Creates the error for an error response.
 *
 * @param what What was requested: `the files of "owner/name"`.
 * @param page Page of the repository, where access is requested.
 * @param hasToken True if a token was sent.
 */
export function createHubError(response: HubErrorResponse, what: string, page: string, hasToken: boolean): AppError {
  const { status, header } = response;
  const code = header("x-error-code");
  const message = header("x-error-message") ?? "";
  const tried = `Can't get ${what} from the model hub`;
  const setToken = "save a token of your account to a file and set hub_token_file";
  if (code === "GatedRepo") {
    return new AppError(
      "upstream_error",
      hasToken
        ? `${tried}: your account has no access. Request it at ${page}, and allow the token to read gated repositories.`
        : `${tried}: accept its terms at ${page}, then ${setToken}`,
    );
  }
  if (status === 401 && hasToken && code === undefined) {
    return new AppError("upstream_error", `${tried}: the token in hub_token_file is invalid. Replace it.`);
  }
  if (status === 401) {
    const hint = hasToken ? "your account has no access to it" : `it is private. To use it, ${setToken}`;
    return new AppError("not_found", `${tried}: it doesn't exist, or ${hint}`);
  }
  if (status === 403 && /disabled/i.test(message)) {
    return new AppError("upstream_error", `${tried}: the hub has disabled it`);
  }
  if (status === 403) return new AppError("upstream_error", `${tried}: access denied. See ${page}`);
  if (status === 404 || status === 410) return new AppError("not_found", `${tried}: it doesn't exist`);
  const retry = parseHubRetryAfter(response);
  if (status === 429) {
    const wait = retry === undefined ? "later" : `in ${retry} s`;
    return new AppError("upstream_error", `${tried}: too many requests. Try again ${wait}.`, {
      retryAfterSeconds: retry,
    });
  }
  return new AppError("upstream_error", `${tried}: it returned status ${status}`, { retryAfterSeconds: retry });
}
