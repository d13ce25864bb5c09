/** Errors of model servers: the error class, its kinds, and parsing of error bodies (docs/protocols/llm.md#errors). */
import { AppError, type ErrorCode } from "../errors.ts";
import { isJsonObject } from "../json/type_guards.ts";

/** Why a call to a model server failed. */
export type UpstreamErrorKind =
  | "refused" // nothing listens there
  | "unresolved" // no such host name
  | "unreachable" // no answer in time, no route
  | "certificate" // TLS certificate not trusted
  | "protocol" // not HTTP, or TLS where none is spoken
  | "blocked" // a port that is closed to HTTP by convention
  | "timeout" // connected, then silent for too long
  | "redirect" // sends us elsewhere
  | "web_page" // HTML in place of an answer
  | "bad_answer" // an answer of unknown shape
  | "auth"
  | "credit"
  | "not_found" // wrong model or wrong path
  | "overflow" // the prompt is longer than the context
  | "rate"
  | "starting" // the model is still being loaded
  | "overloaded"
  | "interrupted" // the answer was cut
  | "empty" // an answer without any content
  | "failed"; // any other failure: with a status the server reported it, without one no answer came

/** What can travel with an UpstreamError. */
export interface UpstreamErrorOptions {
  /** HTTP status the server gave, when there was one. */
  status?: number;
  retryAfterSeconds?: number;
}

/** A failure of a model server: `upstream_timeout` when it was too slow, else `upstream_error`. */
export class UpstreamError extends AppError {
  readonly kind: UpstreamErrorKind;
  readonly status?: number;

  constructor(kind: UpstreamErrorKind, message: string, options: UpstreamErrorOptions = {}) {
    const slow = kind === "timeout" || kind === "unreachable";
    const code: ErrorCode = slow ? "upstream_timeout" : "upstream_error";
    super(code, message, { retryAfterSeconds: options.retryAfterSeconds });
    this.name = "UpstreamError";
    this.kind = kind;
    this.status = options.status;
  }
}

/** What an error body or an error frame says. */
export interface ReportedError {
  message: string;
  /** `error.type`, `error.code` and `metadata.error_type` as far as they are words. */
  words: string[];
  /** The status inside the body, where one is given as a number. */
  status?: number;
}

type Json = Record<string, unknown>;

function firstText(...candidates: unknown[]): string | undefined {
  for (const candidate of candidates) {
    if (typeof candidate === "string" && candidate.trim() !== "") return candidate.trim();
  }
  return undefined;
}

/**
 * Reads the parsed JSON of an error in any of the forms that servers use.
 *
 * @returns `undefined` when the value holds no error.
 */
export function readReportedError(value: unknown): ReportedError | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : { message: value.trim(), words: [] };
  if (!isJsonObject(value)) return undefined;
  const error = value.error;
  const detail = value.detail;
  const inner = isJsonObject(error) ? error : undefined;
  const message = firstText(
    inner?.message,
    error,
    isJsonObject(detail) ? firstText(detail.msg, detail.error) : undefined,
    detail,
    Array.isArray(detail) && isJsonObject(detail[0]) ? detail[0].msg : undefined,
    value.message,
  );
  const source = inner ?? value;
  const metadata = isJsonObject(source.metadata) ? source.metadata : undefined;
  const words = [source.type, source.code, metadata?.error_type].filter((word) => typeof word === "string");
  if (message === undefined && !inner && words.length === 0) return undefined;
  const status = typeof source.code === "number" ? source.code : undefined;
  return { message: message ?? (words.join(" ") || "an error without a message"), words, status };
}

const OVERFLOW_TEXT =
  /maximum context length|context size|context length|prompt is too long|exceed context limit|does not fit in context|available context|out_of_context/i;
const OVERFLOW_STATUSES = new Set([200, 400, 413, 422, 500]);

/** Finds the kind of a failure from its status (200 for an error frame) and from what was reported. */
export function classifyError(status: number, reported: ReportedError | undefined): UpstreamErrorKind {
  const words = reported?.words ?? [];
  const message = reported?.message ?? "";
  if (words.includes("exceed_context_size_error") || words.includes("context_length_exceeded")) return "overflow";
  const effective = status === 200 ? (reported?.status ?? 200) : status;
  if (OVERFLOW_STATUSES.has(effective) && OVERFLOW_TEXT.test(message)) return "overflow";
  if (effective === 401 || effective === 403 || words.includes("authentication_error")) return "auth";
  if (effective === 402 || words.includes("payment_required") || words.includes("billing_error")) return "credit";
  if (effective === 404 || effective === 405 || words.includes("not_found_error")) return "not_found";
  // LM Studio answers 200 to every path it does not know.
  if (/^unexpected endpoint or method/i.test(message)) return "not_found";
  if (effective === 408 || effective === 504 || words.includes("timeout_error")) return "timeout";
  if (effective === 429 || words.includes("rate_limit_error") || words.includes("rate_limit_exceeded")) return "rate";
  if (effective === 503 && /loading model|starting/i.test(message)) return "starting";
  if (effective === 503 || effective === 529) return "overloaded";
  if (words.includes("overloaded_error") || words.includes("provider_overloaded")) return "overloaded";
  return "failed";
}

// What a sentence adds to the server's own words; only where these seldom say it themselves.
const MEANING: Partial<Record<UpstreamErrorKind, string>> = {
  overflow: "the conversation is longer than the model's context",
  credit: "the account has no credit left",
  rate: "too many requests",
  starting: "the model is still being loaded",
  overloaded: "the server is busy",
};

/** The text of an error body that is no JSON, unless it is a web page. */
export function textOfErrorBody(body: string): string | undefined {
  const text = body.trim();
  if (text === "" || text.startsWith("<")) return undefined;
  return text.length > 500 ? `${text.slice(0, 500)}…` : text;
}

/**
 * Makes the error for a call that the server answered with a failure.
 *
 * @param place The server as shown to the owner: `"http://127.0.0.1:8080"`.
 * @param status HTTP status; 200 for an error inside an answer.
 */
export function errorFromReport(
  place: string,
  status: number,
  reported: ReportedError | undefined,
  options: { statusText?: string; retryAfterSeconds?: number } = {},
): UpstreamError {
  const kind = classifyError(status, reported);
  const meaning = MEANING[kind];
  const said = reported?.message ?? (`status ${status} ${options.statusText ?? ""}`).trim();
  const text = said.length > 1000 ? `${said.slice(0, 1000)}…` : said;
  const shown = status === 200 || !reported ? "" : ` (status ${status})`;
  const message = `The model at "${place}" reported an error${shown}: ${text}${meaning ? ` – ${meaning}` : ""}`;
  return new UpstreamError(kind, message.replace(/\.+(?= –|$)/, ""), {
    status,
    retryAfterSeconds: options.retryAfterSeconds,
  });
}

/**
 * Masks a key in text that a server sent back.
 *
 * Keys below four characters are placeholders ("x") and would spoil the text for nothing.
 */
export function maskKey(text: string, apiKey: string | undefined): string {
  const key = apiKey?.trim();
  if (key === undefined || key.length < 4) return text;
  let masked = text;
  for (const form of new Set([key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)])) {
    masked = masked.replaceAll(form, "[key]");
  }
  return masked;
}

/** Reads `Retry-After` (seconds or a date) and `retry-after-ms`. */
export function readRetryAfter(headers: Headers, nowMs: number): number | undefined {
  const millis = Number(headers.get("retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(millis) && millis >= 0) return Math.ceil(millis / 1000);
  const value = headers.get("retry-after");
  if (value === null || value.trim() === "") return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return seconds >= 0 ? Math.ceil(seconds) : undefined;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - nowMs) / 1000));
}
