/** One call to a model server: the HTTP call and the errors that model servers report (docs/protocols/llm.md, "Errors"). */
import { maskKey } from "../http/base_url.ts";
import { decodeBody } from "../http/decode_body.ts";
import { parseRetryAfter, readText } from "../http/read_body.ts";
import { HttpCall, type HttpClient } from "../http/http_client.ts";
import { type OverflowFacts, UpstreamError, type UpstreamErrorKind } from "../http/upstream_error.ts";
import type { ChatStream, UpstreamTarget } from "./provider.ts";
import { isJsonObject } from "../json/type_guards.ts";
import { readOverflow } from "./overflow.ts";

const MAX_ERROR_BYTES = 64 * 1024;
/** What is read of an error's text, because a stream may send megabytes of it. Less than that is shown. */
const MAX_ERROR_CHARS = 16_000;
/**
 * Time limit for requests about the server, such as its model list, which need no inference. A server that takes longer
 * is busy or broken.
 */
const QUICK_FIRST_BYTE_MS = 15_000;

/** A request to a model server. */
export interface ModelRequest {
  url: string;
  headers?: Record<string, string>;
  /** Sent as JSON with POST; a request without a body is a GET. */
  body?: unknown;
  /** Instead of GET. */
  method?: "DELETE";
}

/** One call to a model server. */
export class ModelCall extends HttpCall<UpstreamTarget> {
  constructor(target: UpstreamTarget, signal: AbortSignal) {
    super(getLabel(target), target, signal);
  }

  /** Replaces the target's key and the values of its headers in text from the server. */
  override mask(text: string): string {
    let masked = super.mask(text);
    for (const value of Object.values(this.target.headers ?? {})) masked = maskKey(masked, value, "[header]");
    return masked;
  }

  /**
   * Creates an error about the response.
   *
   * @param finding Continues the sentence "The model at … ".
   */
  createError(kind: UpstreamErrorKind, finding: string): UpstreamError {
    return new UpstreamError(kind, `${this.server[0]!.toUpperCase()}${this.server.slice(1)} ${finding}`);
  }

  /** Decodes a compressed response. */
  decode(response: Response): Response {
    return decodeBody(
      response,
      (coding) => this.createError("bad_answer", `returned a damaged response in the encoding "${coding}"`),
    );
  }

  /** Creates the error for an error object inside a response of status 200. */
  createReportedError(value: unknown): UpstreamError {
    return this.#toFailure(200, parseErrorReport(value) ?? { message: "an error without a message", codes: [] });
  }

  /** Reads the body of a response with an error status, at most 64 KiB, and creates its error. */
  async readError(response: Response): Promise<UpstreamError> {
    return (await this.readErrorText(response)).error;
  }

  /** Like `readError`, and also returns the body. */
  async readErrorText(response: Response): Promise<{ error: UpstreamError; text: string }> {
    // Masked before it's truncated, so that no part of a key remains.
    const text = this.mask(await readText(response, MAX_ERROR_BYTES).catch(() => ""));
    const error = this.#toFailure(response.status, parseErrorBody(text), {
      statusText: response.statusText,
      retryAfterSeconds: parseRetryAfter(response.headers, Date.now()),
    });
    return { error, text };
  }

  #toFailure(
    status: number,
    report: ErrorReport | undefined,
    options?: { statusText?: string; retryAfterSeconds?: number },
  ): UpstreamError {
    const masked = report && { ...report, message: this.mask(report.message) } satisfies ErrorReport;
    return createReportedError(this.server, status, masked, options);
  }
}

/** Returns the name of the server for errors. A connection's name is only used if it isn't just the address. */
function getLabel({ connection, baseUrl }: UpstreamTarget): string {
  if (connection === undefined || !URL.canParse(baseUrl)) return "the model";
  return new URL(baseUrl).host === connection.name ? "the model" : `the model of "${connection.name}"`;
}

/**
 * Sends one request of a call, with the query and the headers of its target.
 *
 * @throws Like `HttpClient.send`
 */
export async function sendRequest(http: HttpClient, call: ModelCall, request: ModelRequest): Promise<Response> {
  return call.decode(await send(http, call, request));
}

function send(http: HttpClient, call: ModelCall, request: ModelRequest): Promise<Response> {
  const { body } = request;
  const { query, headers: own } = call.target;
  const url = query ? `${request.url}${request.url.includes("?") ? "&" : "?"}${query}` : request.url;
  const headers: Record<string, string> = {
    accept: "application/json",
    "accept-encoding": "identity",
    ...request.headers,
    ...own,
  };
  if (body === undefined) return http.send(call, { url, headers, method: request.method });
  return http.send(call, {
    url,
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/**
 * Makes a call that ends when `run` returns.
 *
 * @throws {AppError} Like `HttpClient.send`
 */
export async function runCall<T>(
  target: UpstreamTarget,
  signal: AbortSignal,
  run: (call: ModelCall) => Promise<T>,
): Promise<T> {
  const call = new ModelCall(target, signal);
  try {
    return await run(call);
  } catch (thrown) {
    throw call.toError(thrown);
  } finally {
    call.timer.end();
  }
}

/**
 * Makes a call that ends with the stream that `open` returns.
 *
 * @throws {AppError} Like `HttpClient.send`
 */
export async function openStream(
  target: UpstreamTarget,
  signal: AbortSignal,
  open: (call: ModelCall) => Promise<ChatStream>,
): Promise<ChatStream> {
  const call = new ModelCall(target, signal);
  try {
    return await open(call);
  } catch (thrown) {
    call.timer.end();
    throw call.toError(thrown);
  }
}

/**
 * Opens a stream that a server has kept, as `openStream` does.
 *
 * @returns `undefined` if the server no longer has it, or, with status 400, no longer from the beginning.
 * @throws {AppError} Like `HttpClient.send`
 */
export async function openKeptStream(...args: Parameters<typeof openStream>): Promise<ChatStream | undefined> {
  try {
    return await openStream(...args);
  } catch (error) {
    if (error instanceof UpstreamError && (error.kind === "not_found" || error.status === 400)) return undefined;
    throw error;
  }
}

/** Returns a target with the shorter timeouts of requests about the server itself. */
export function withQuickTimeouts(target: UpstreamTarget): UpstreamTarget {
  const firstByteMs = Math.min(target.timeouts.firstByteMs, QUICK_FIRST_BYTE_MS);
  return { ...target, timeouts: { ...target.timeouts, firstByteMs } };
}

/** Content of an error body or error event. */
export interface ErrorReport {
  message: string;
  /** `error.type`, `error.code`, `error.status` (Google) and `metadata.error_type`, if they are strings. */
  codes: string[];
  /** The status inside the body, if it's a number. */
  status?: number;
  /** Whether a content filter rejected the prompt or the reply. */
  isFiltered?: boolean;
  /** Sizes, if the error is about a prompt that is too long. */
  overflow?: OverflowFacts;
}

/**
 * Parses the JSON of an error in any of the formats that servers use.
 *
 * @returns `undefined` if the value isn't an error
 */
export function parseErrorReport(value: unknown): ErrorReport | undefined {
  if (typeof value === "string") {
    const text = value.trim().slice(0, MAX_ERROR_CHARS);
    return text === "" ? undefined : { message: text, codes: [], overflow: readOverflow({}, text) };
  }
  // Gemini wraps its error in an array.
  if (Array.isArray(value)) return value.length > 0 ? parseErrorReport(value[0]) : undefined;
  if (!isJsonObject(value)) return undefined;
  const { error, detail } = value;
  const inner = isJsonObject(error) ? error : undefined;
  const message = firstText(
    inner?.message,
    inner?.msg,
    inner?.detail,
    error,
    isJsonObject(detail) ? firstText(detail.msg, detail.message, detail.error) : undefined,
    detail,
    describeDetails(detail),
    value.message,
    // Mistral includes FastAPI's details in its message.
    describeDetails(isJsonObject(value.message) ? value.message.detail : value.message),
    ...MESSAGE_FIELDS.map((name) => value[name]),
    findListedMessage(value.errors),
  );
  const source = inner ?? value;
  const metadata = isJsonObject(source.metadata) ? source.metadata : undefined;
  const codes = [source.type, source.code, source.status, metadata?.error_type].filter((code) =>
    typeof code === "string"
  );
  if (message === undefined && !inner && codes.length === 0) return undefined;
  const status = typeof source.code === "number" ? source.code : undefined;
  // OpenRouter reports moderation with the status of a missing permission.
  const isFiltered = codes.some((code) => FILTER_CODES.has(code)) || metadata?.flagged_input !== undefined;
  const text = message?.slice(0, MAX_ERROR_CHARS) ?? (codes.join(" ") || "an error without a message");
  return { message: text, codes, status, overflow: readOverflow(source, text), ...(isFiltered && { isFiltered }) };
}

/** Other names of the message, used by gateways and hosted services. */
const MESSAGE_FIELDS = ["error_message", "error_msg", "errorMessage", "msg", "Message", "title", "reason"];

/** Returns the message of the first error in a list. */
function findListedMessage(errors: unknown): string | undefined {
  if (!Array.isArray(errors)) return undefined;
  return firstText(isJsonObject(errors[0]) ? errors[0].message : errors[0]);
}

/** Fields of replies, in the formats of all protocols. An object with one of them is no error. */
const REPLY_FIELDS = ["choices", "content", "content_block", "delta", "usage", "timings", "done"];

/**
 * Reports whether JSON inside a response of status 200 is an error: it says so, or it has a message and nothing of a
 * reply.
 */
export function isReportedError(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0 && isReportedError(value[0]);
  if (!isJsonObject(value)) return false;
  const { error, type, object, message, detail } = value;
  // `error` may be present and empty in a reply.
  if (error || type === "error" || object === "error") return true;
  if (isJsonObject(message) || REPLY_FIELDS.some((name) => Array.isArray(value[name]) || isJsonObject(value[name]))) {
    return false;
  }
  if (typeof value.content === "string" || typeof value.done === "boolean") return false;
  // Other types are events, such as `ping`.
  if (typeof type === "string" && !/error|fail/i.test(type)) return false;
  if (message || detail) return parseErrorReport({ message, detail }) !== undefined;
  return [...MESSAGE_FIELDS.filter((name) => name !== "title" && name !== "reason"), "errors"]
    .some((name) => parseErrorReport({ [name]: value[name] }) !== undefined);
}

/** Describes validation errors of FastAPI: the first message, with its field. */
function describeDetails(details: unknown): string | undefined {
  if (!Array.isArray(details) || !isJsonObject(details[0])) return undefined;
  const { msg, loc } = details[0];
  if (typeof msg !== "string" || msg.trim() === "") return undefined;
  const field = Array.isArray(loc) ? loc.slice(1).join(".") : "";
  return field === "" ? msg : `${field}: ${msg}`;
}

/** Parses an error body that may be JSON or plain text. Returns `undefined` if it's empty or a web page. */
function parseErrorBody(body: string): ErrorReport | undefined {
  try {
    return parseErrorReport(JSON.parse(body));
  } catch {
    const text = body.trim();
    if (text === "" || text.startsWith("<")) return undefined;
    return { message: truncate(text, 500), codes: [], overflow: readOverflow({}, text) };
  }
}

function firstText(...candidates: unknown[]): string | undefined {
  for (const candidate of candidates) {
    if (typeof candidate === "string" && candidate.trim() !== "") return candidate.trim();
  }
  return undefined;
}

const OVERFLOW_TEXT =
  /maximum (?:context|prompt|model) length|maximum number of tokens allowed|reduce the length of the messages|context size|context length|prompt is too long|exceed context limit|does not fit in context|available context|out_of_context/i;
/** Codes of content filters: OpenAI and Azure, Mistral, xAI. */
const FILTER_CODES = new Set([
  "content_filter",
  "content_policy_violation",
  "moderation_blocked",
  "ResponsibleAIPolicyViolation",
  "data_inspection_failed",
]);
/** OpenAI reports an account without credit with status 429. */
const CREDIT_CODES = ["payment_required", "billing_error", "insufficient_quota"];
const OVERFLOW_STATUSES = new Set([200, 400, 413, 422, 500]);

/** Classifies a failure by its status (200 for an error event) and its report. */
export function classifyError(status: number, report: ErrorReport | undefined): UpstreamErrorKind {
  const codes = report?.codes ?? [];
  const message = report?.message ?? "";
  if (codes.includes("exceed_context_size_error") || codes.includes("context_length_exceeded")) return "overflow";
  if (report?.isFiltered) return "filtered";
  const effective = status === 200 ? (report?.status ?? 200) : status;
  if (OVERFLOW_STATUSES.has(effective) && OVERFLOW_TEXT.test(message)) return "overflow";
  if (effective === 401 || effective === 403 || codes.includes("authentication_error")) return "auth";
  // Gemini rejects a wrong key with status 400.
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

/** Added to the server's own message for kinds whose messages are often unclear. */
const EXPLANATIONS: Partial<Record<UpstreamErrorKind, string>> = {
  overflow: "the conversation is longer than the model's context",
  filtered: "the model's provider blocked this reply",
  credit: "the account has no credit left",
  rate: "too many requests",
  starting: "the model is still loading",
  overloaded: "the server is busy",
};

/**
 * Creates the error for a failure that the server reported.
 *
 * @param server Name for errors: `the model at "http://127.0.0.1:8080"`.
 * @param status HTTP status; 200 for an error inside a response.
 */
function createReportedError(
  server: string,
  status: number,
  report: ErrorReport | undefined,
  options: { statusText?: string; retryAfterSeconds?: number } = {},
): UpstreamError {
  const { statusText = "", retryAfterSeconds } = options;
  const kind = classifyError(status, report);
  const text = truncate(report?.message ?? `status ${status} ${statusText}`.trim(), 1000);
  const statusSent = status === 200 || !report ? "" : ` (status ${status})`;
  const explanation = EXPLANATIONS[kind] === undefined ? "" : ` – ${EXPLANATIONS[kind]}`;
  const message = `${server[0]!.toUpperCase()}${server.slice(1)} returned an error${statusSent}: ${text}${explanation}`;
  const overflow = kind === "overflow" ? report?.overflow : undefined;
  return new UpstreamError(kind, message.replace(/\.+(?= –|$)/, ""), {
    status,
    retryAfterSeconds,
    reported: text,
    overflow,
  });
}

function truncate(text: string, maxChars: number): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
}
