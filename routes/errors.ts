/**
 * Converts thrown values to a status and an error body, in Parlor's or OpenAI's format
 * (docs/api.md#openai-compatible-api). Has the only table from codes to statuses.
 */
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { isOpenAiPath } from "../middleware/authentication.ts";
import type { AppContext } from "../middleware/env.ts";
import { AppError, type ErrorCode, type ErrorIssue, type UpstreamFailure } from "../services/errors.ts";
import { createSyntaxError } from "../services/json/json_body.ts";
import { UpstreamError, type UpstreamErrorKind } from "../services/http/upstream_error.ts";

/** See docs/api.md#errors. `interrupted` occurs only in stream events, after the status was sent. */
const STATUS_OF_CODE = {
  invalid_json: 400,
  invalid_request: 400,
  unauthenticated: 401,
  forbidden: 403,
  host_not_allowed: 403,
  cross_site: 403,
  session_required: 403,
  pairing_code_required: 403,
  address_not_allowed: 403,
  programs_not_allowed: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  cancelled: 409,
  in_trash: 409,
  gone: 410,
  revision_mismatch: 412,
  too_large: 413,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  unprocessable: 422,
  too_many_requests: 429,
  internal: 500,
  interrupted: 500,
  upstream_error: 502,
  not_available: 503,
  busy: 503,
  upstream_timeout: 504,
  storage_full: 507,
} as const satisfies Record<ErrorCode, ContentfulStatusCode>;

/** Error body of JSON responses and of stream events. */
export interface ErrorBody {
  error: {
    code: ErrorCode;
    message: string;
    request_id: string;
    issues?: ErrorIssue[];
    trash_id?: string;
    upstream?: UpstreamFailure;
  };
}

/** Returns the HTTP status of an error code. */
export function getStatus(code: ErrorCode): ContentfulStatusCode {
  return STATUS_OF_CODE[code];
}

/**
 * Converts any thrown value to an AppError. Errors of the framework are translated. A defect becomes `internal`, with
 * the value as its cause and none of it in its message.
 */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  if (thrown instanceof HTTPException) {
    if (thrown.status === 400) return createSyntaxError();
    if (thrown.status === 413) return new AppError("too_large", "The body of the request is too large");
    if (thrown.status === 415) {
      return new AppError(
        "unsupported_media_type",
        "This path doesn't accept the request's Content-Type",
      );
    }
  }
  return new AppError(
    "internal",
    "Can't complete the request because of an internal error. See the server's log for details",
    { cause: thrown },
  );
}

/** Creates the error body, which is also the last event of a failed stream. */
export function createErrorBody(thrown: unknown, requestId: string): ErrorBody {
  const { code, message, issues, trashId, upstream } = toAppError(thrown);
  return {
    error: {
      code,
      message: withoutFolders(message),
      request_id: requestId,
      ...(issues && { issues }),
      ...(trashId !== undefined && { trash_id: trashId }),
      ...(upstream && { upstream }),
    },
  };
}

/**
 * Creates the status and the error body for the OpenAI-compatible API. The body is also the last event of a failed
 * stream.
 */
export function createOpenAiError(thrown: unknown): OpenAiError {
  const error = toAppError(thrown);
  const { status, body } = toOpenAiError(error, getStatus(error.code));
  return { status, body: { error: { ...body.error, message: withoutFolders(error.message) } } };
}

/** Shortens quoted paths to their last part: the location of files belongs in the log, not in a response. */
function withoutFolders(message: string): string {
  return message.replace(/"(?:\/|[A-Za-z]:\\)[^"]*?([^"/\\]+)"/g, '"$1"');
}

/** Creates the complete response to a request that failed before its first byte was sent. */
export function createErrorResponse(thrown: unknown, c: AppContext): Response {
  const error = toAppError(thrown);
  if (error.code === "unauthenticated") c.header("WWW-Authenticate", "Bearer");
  if (error.allow !== undefined) c.header("Allow", error.allow.join(", "));
  if (error.contentRange !== undefined) c.header("Content-Range", error.contentRange);
  if (error.retryAfterSeconds !== undefined) c.header("Retry-After", String(Math.ceil(error.retryAfterSeconds)));
  if (isOpenAiPath(c.req.path)) {
    const { status, body } = createOpenAiError(error);
    return c.json(body, status);
  }
  return c.json(createErrorBody(error, c.var.requestId), getStatus(error.code));
}

/** Returns whether a thrown value is a defect, which is logged with its stack. */
export function isDefect(thrown: unknown): boolean {
  return toAppError(thrown).code === "internal";
}

/** Error body of OpenAI's API. */
export interface OpenAiErrorBody {
  error: { message: string; type: string; param: string | null; code: string };
}

/** An error in the format of the OpenAI-compatible API. */
export interface OpenAiError {
  /** The model server's status if the client can act on it, otherwise the status of the error's code. */
  status: ContentfulStatusCode;
  body: OpenAiErrorBody;
}

/** Statuses of a model server that clients can act on. */
const PASSED_ON = [400, 404, 413, 422, 429] as const;

/** Codes that clients of OpenAI's API look for. For other errors, the code is Parlor's. */
const UPSTREAM_CODE_NAMES: Partial<Record<UpstreamErrorKind, string>> = {
  overflow: "context_length_exceeded",
  not_found: "model_not_found",
};

/** Creates the status and the body. @param status Status of the error's code in the rest of the API */
function toOpenAiError(error: AppError, status: ContentfulStatusCode): OpenAiError {
  const passedOn = error instanceof UpstreamError ? PASSED_ON.find((status) => status === error.status) : undefined;
  const statusSent = passedOn ?? status;
  const param = error.issues?.[0]?.path || null;
  return {
    status: statusSent,
    body: {
      error: {
        message: error.message,
        type: chooseOpenAiType(statusSent),
        param,
        code: chooseOpenAiCode(error, param),
      },
    },
  };
}

function chooseOpenAiCode(error: AppError, param: string | null): string {
  const upstream = error instanceof UpstreamError ? UPSTREAM_CODE_NAMES[error.kind] : undefined;
  if (error.code === "not_found" && param === "model") return "model_not_found";
  return upstream ?? error.code;
}

function chooseOpenAiType(status: number): string {
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}
