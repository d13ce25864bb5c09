/** The errors of the OpenAI-compatible API: OpenAI's shape and status codes (docs/api.md#openai-compatible-api). */
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { AppError } from "../../services/errors.ts";
import { UpstreamError, type UpstreamErrorKind } from "../../services/http/upstream_error.ts";

/** The error body of OpenAI's API. */
export interface OpenAiErrorBody {
  error: { message: string; type: string; param: string | null; code: string };
}

/** An error as this API answers it. */
export interface OpenAiError {
  /** What the model server said if the client can act on it, otherwise as everywhere. */
  status: ContentfulStatusCode;
  body: OpenAiErrorBody;
}

/** Statuses of a model server that are the client's business. */
const PASSED_ON = [400, 404, 413, 422, 429] as const;

/** Codes that clients of OpenAI's API look for. All others are ours. */
const UPSTREAM_CODE_NAMES: Partial<Record<UpstreamErrorKind, string>> = {
  overflow: "context_length_exceeded",
  not_found: "model_not_found",
};

/** Makes the status and the body. @param status That of the error's code outside this API. */
export function toOpenAiError(error: AppError, status: ContentfulStatusCode): OpenAiError {
  const passedOn = error instanceof UpstreamError ? PASSED_ON.find((status) => status === error.status) : undefined;
  const shown = passedOn ?? status;
  const param = error.issues?.[0]?.path || null;
  return {
    status: shown,
    body: { error: { message: error.message, type: typeOf(shown), param, code: codeOf(error, param) } },
  };
}

function codeOf(error: AppError, param: string | null): string {
  const upstream = error instanceof UpstreamError ? UPSTREAM_CODE_NAMES[error.kind] : undefined;
  if (error.code === "not_found" && param === "model") return "model_not_found";
  return upstream ?? error.code;
}

function typeOf(status: number): string {
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}
