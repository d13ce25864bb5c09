/** The error of a call to one of the owner's servers: model, speech or image server. */
import { AppError } from "../errors.ts";

/** Why a call failed. */
export type UpstreamErrorKind =
  | "refused" // connection refused
  | "unresolved" // unknown host name
  | "unreachable" // no response in time, no route
  | "certificate" // TLS certificate not trusted
  | "protocol" // not HTTP, or TLS where the server speaks plain HTTP
  | "blocked" // a bad port of the Fetch standard
  | "timeout" // connected, then silent for too long
  | "redirect" // redirects to another origin, in a loop, or without a location
  | "web_page" // HTML instead of an API response
  | "bad_answer" // a response of unknown shape
  | "auth" // key missing or refused
  | "credit" // the account has no credit
  | "not_found" // wrong model or wrong path
  | "overflow" // the prompt is longer than the context
  | "rate" // too many requests
  | "starting" // the model is still loading
  | "overloaded" // the server is busy
  | "interrupted" // the response was cut off
  | "empty" // a response without content
  | "failed"; // anything else: with a status the server reported it, without one there was no response

/** Optional facts about an UpstreamError. */
export interface UpstreamErrorOptions {
  /** HTTP status of the response, if there was one. */
  status?: number;
  retryAfterSeconds?: number;
  cause?: unknown;
}

/** A failed call to a server: `upstream_timeout` if it was too slow, otherwise `upstream_error`. */
export class UpstreamError extends AppError {
  readonly kind: UpstreamErrorKind;
  readonly status?: number;

  constructor(kind: UpstreamErrorKind, message: string, options: UpstreamErrorOptions = {}) {
    const { status, retryAfterSeconds, cause } = options;
    const isSlow = kind === "timeout" || kind === "unreachable";
    super(isSlow ? "upstream_timeout" : "upstream_error", message, { retryAfterSeconds, cause });
    this.name = "UpstreamError";
    this.kind = kind;
    this.status = status;
  }
}
