/** What failed responses mean. Also for the service worker. */
import type { ErrorBody, UpstreamFailure } from "./types.ts";

/** Codes of 5xx responses about something other than Parlor itself. */
const LASTING = ["upstream_error", "upstream_timeout", "not_available", "storage_full"];

/** True if the same request may succeed soon. */
export function isTransientFailure(status: number, code: string | undefined): boolean {
  return [408, 425, 429].includes(status) || (status >= 500 && !LASTING.includes(code ?? ""));
}

/** Parses the one error body. Returns undefined for any other value. */
export function parseErrorBody(value: unknown): ErrorBody | undefined {
  if (typeof value !== "object" || value === null || !("error" in value)) return undefined;
  const error = value.error;
  if (typeof error !== "object" || error === null || !("code" in error) || !("message" in error)) return undefined;
  if (typeof error.code !== "string" || typeof error.message !== "string") return undefined;
  const body: ErrorBody = { code: error.code, message: error.message };
  if ("request_id" in error && typeof error.request_id === "string") body.request_id = error.request_id;
  if ("issues" in error && Array.isArray(error.issues)) body.issues = error.issues;
  if ("upstream" in error && typeof error.upstream === "object" && error.upstream !== null) {
    body.upstream = error.upstream as UpstreamFailure;
  }
  return body;
}
