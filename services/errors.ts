/**
 * Error codes and `AppError`, the error type that every service throws. routes/errors.ts maps codes to HTTP statuses.
 */

/**
 * Every error code of the API. `interrupted` appears in stream events and in records of replies and jobs, never as the
 * error of a response.
 */
export type ErrorCode =
  | "invalid_json"
  | "invalid_request"
  | "unauthenticated"
  | "forbidden"
  | "host_not_allowed"
  | "cross_site"
  | "session_required"
  | "pairing_code_required"
  | "address_not_allowed"
  | "programs_not_allowed"
  | "not_found"
  | "method_not_allowed"
  | "conflict"
  | "cancelled"
  | "in_trash"
  | "gone"
  | "revision_mismatch"
  | "too_large"
  | "range_not_satisfiable"
  | "unsupported_media_type"
  | "unprocessable"
  | "too_many_requests"
  | "internal"
  | "interrupted"
  | "upstream_error"
  | "not_available"
  | "busy"
  | "upstream_timeout"
  | "storage_full";

/** One reason why a request fails its schema. */
export interface ErrorIssue {
  /** Dotted path into the body, `""` for the body itself. */
  path: string;
  message: string;
}

/**
 * Which call to a model server failed, and why. Field names are those of the API, because messages store this object.
 */
export interface UpstreamFailure {
  /** An `UpstreamErrorKind`. */
  kind: string;
  /** HTTP status, if the server responded. */
  status?: number;
  connection_id: string;
  connection_name: string;
  /** Empty if the model wasn't known yet. */
  model: string;
  /** Seconds after which the server accepts requests again. */
  retry_after_s?: number;
}

/** Details of an error besides its message. */
export interface AppErrorOptions {
  cause?: unknown;
  issues?: ErrorIssue[];
  /** Seconds until a retry makes sense; sent as `Retry-After`. */
  retryAfterSeconds?: number;
  /** Methods that the path supports; sent as `Allow` with `method_not_allowed`. */
  allow?: string[];
  /** Sent as `Content-Range` with `range_not_satisfiable`. */
  contentRange?: string;
  /** Trash item of the requested object; sent as `error.trash_id` with `in_trash`. */
  trashId?: string;
  upstream?: UpstreamFailure;
}

/** An error for users: its message may be shown, its cause may not. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly issues?: ErrorIssue[];
  readonly retryAfterSeconds?: number;
  readonly allow?: string[];
  readonly contentRange?: string;
  readonly trashId?: string;
  /** Set if a call to a model server failed. */
  upstream?: UpstreamFailure;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.name = "AppError";
    this.code = code;
    this.issues = options.issues;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.allow = options.allow;
    this.contentRange = options.contentRange;
    this.trashId = options.trashId;
    this.upstream = options.upstream;
  }
}

/** Returns the message of any thrown value. */
export function getErrorMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Returns a `catch` handler that returns `undefined` for errors with these codes and rethrows all others. */
export function ignoreErrors(...codes: ErrorCode[]): (thrown: unknown) => undefined {
  return (thrown) => {
    if (!(thrown instanceof AppError && codes.includes(thrown.code))) throw thrown;
  };
}

/** Returns the stack of any thrown value and the stacks of its causes, for the log. */
export function getErrorTrace(thrown: unknown): string {
  const parts: string[] = [];
  for (let value = thrown, depth = 0; value !== undefined && depth < 5; depth++) {
    parts.push(value instanceof Error ? value.stack ?? String(value) : String(value));
    value = value instanceof Error ? value.cause : undefined;
  }
  return parts.join("\ncaused by ");
}
