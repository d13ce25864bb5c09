/** Error bodies and error events of model servers (docs/protocols/llm.md, "Errors"). */
import { isJsonObject } from "../json/type_guards.ts";
import { UpstreamError, type UpstreamErrorKind } from "../http/upstream_error.ts";

/** What an error body or error event says. */
export interface ErrorReport {
  message: string;
  /** `error.type`, `error.code`, `error.status` (Google) and `metadata.error_type`, if they are strings. */
  codes: string[];
  /** The status inside the body, if it is a number. */
  status?: number;
}

/**
 * Parses the JSON of an error in any of the forms servers use.
 *
 * @returns undefined if the value isn't an error
 */
export function parseErrorReport(value: unknown): ErrorReport | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : { message: value.trim(), codes: [] };
  // Gemini puts its error into an array.
  if (Array.isArray(value)) return value.length > 0 ? parseErrorReport(value[0]) : undefined;
  if (!isJsonObject(value)) return undefined;
  const { error, detail } = value;
  const inner = isJsonObject(error) ? error : undefined;
  const message = firstText(
    inner?.message,
    error,
    isJsonObject(detail) ? firstText(detail.msg, detail.message, detail.error) : undefined,
    detail,
    describeDetails(detail),
    value.message,
    // Mistral puts FastAPI's details into its message.
    describeDetails(isJsonObject(value.message) ? value.message.detail : value.message),
  );
  const source = inner ?? value;
  const metadata = isJsonObject(source.metadata) ? source.metadata : undefined;
  const codes = [source.type, source.code, source.status, metadata?.error_type].filter((code) =>
    typeof code === "string"
  );
  if (message === undefined && !inner && codes.length === 0) return undefined;
  const status = typeof source.code === "number" ? source.code : undefined;
  return { message: message ?? (codes.join(" ") || "an error without a message"), codes, status };
}

/** FastAPI's validation errors: the first message, with the field it is about. */
function describeDetails(details: unknown): string | undefined {
  if (!Array.isArray(details) || !isJsonObject(details[0])) return undefined;
  const { msg, loc } = details[0];
  if (typeof msg !== "string" || msg.trim() === "") return undefined;
  const field = Array.isArray(loc) ? loc.slice(1).join(".") : "";
  return field === "" ? msg : `${field}: ${msg}`;
}

/** Parses an error body that may be JSON or plain text. Returns undefined if it is empty or a web page. */
export function parseErrorBody(body: string): ErrorReport | undefined {
  try {
    return parseErrorReport(JSON.parse(body));
  } catch {
    const text = body.trim();
    return text === "" || text.startsWith("<") ? undefined : { message: truncate(text, 500), codes: [] };
  }
}

function firstText(...candidates: unknown[]): string | undefined {
  for (const candidate of candidates) {
    if (typeof candidate === "string" && candidate.trim() !== "") return candidate.trim();
  }
  return undefined;
}

const OVERFLOW_TEXT =
  /maximum context length|maximum number of tokens allowed|reduce the length of the messages|context size|context length|prompt is too long|exceed context limit|does not fit in context|available context|out_of_context/i;
/** OpenAI reports an account without credit with status 429. */
const CREDIT_CODES = ["payment_required", "billing_error", "insufficient_quota"];
const OVERFLOW_STATUSES = new Set([200, 400, 413, 422, 500]);

/** Classifies a failure by its status (200 for an error event) and its report. */
export function classifyError(status: number, report: ErrorReport | undefined): UpstreamErrorKind {
  const codes = report?.codes ?? [];
  const message = report?.message ?? "";
  if (codes.includes("exceed_context_size_error") || codes.includes("context_length_exceeded")) return "overflow";
  const effective = status === 200 ? (report?.status ?? 200) : status;
  if (OVERFLOW_STATUSES.has(effective) && OVERFLOW_TEXT.test(message)) return "overflow";
  if (effective === 401 || effective === 403 || codes.includes("authentication_error")) return "auth";
  // Gemini refuses a wrong key with status 400.
  if (effective === 400 && /api key not valid|api key (not found|expired)/i.test(message)) return "auth";
  if (effective === 402 || CREDIT_CODES.some((code) => codes.includes(code))) return "credit";
  if (effective === 404 || effective === 405 || codes.includes("not_found_error")) return "not_found";
  // LM Studio responds with status 200 to every path it doesn't know.
  if (/^unexpected endpoint or method/i.test(message)) return "not_found";
  if (effective === 408 || effective === 504 || codes.includes("timeout_error")) return "timeout";
  if (effective === 429 || codes.includes("rate_limit_error") || codes.includes("rate_limit_exceeded")) return "rate";
  if (effective === 503 && /loading model|starting/i.test(message)) return "starting";
  if (effective === 503 || effective === 529) return "overloaded";
  if (codes.includes("overloaded_error") || codes.includes("provider_overloaded")) return "overloaded";
  return "failed";
}

/** Added to the server's own message, for the kinds whose messages are often unclear. */
const EXPLANATIONS: Partial<Record<UpstreamErrorKind, string>> = {
  overflow: "the conversation is longer than the model's context",
  credit: "the account has no credit left",
  rate: "too many requests",
  starting: "the model is still loading",
  overloaded: "the server is busy",
};

/**
 * Creates the error for a failure that the server reported.
 *
 * @param server As errors name it: `the model at "http://127.0.0.1:8080"`.
 * @param status HTTP status; 200 for an error inside a response.
 */
export function createReportedError(
  server: string,
  status: number,
  report: ErrorReport | undefined,
  options: { statusText?: string; retryAfterSeconds?: number } = {},
): UpstreamError {
  const { statusText = "", retryAfterSeconds } = options;
  const kind = classifyError(status, report);
  const text = truncate(report?.message ?? `status ${status} ${statusText}`.trim(), 1000);
  const shownStatus = status === 200 || !report ? "" : ` (status ${status})`;
  const explanation = EXPLANATIONS[kind] === undefined ? "" : ` – ${EXPLANATIONS[kind]}`;
  const message = `${server[0]!.toUpperCase()}${
    server.slice(1)
  } returned an error${shownStatus}: ${text}${explanation}`;
  return new UpstreamError(kind, message.replace(/\.+(?= –|$)/, ""), { status, retryAfterSeconds, reported: text });
}

function truncate(text: string, maxChars: number): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
}
