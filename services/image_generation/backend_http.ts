/** HTTP calls to one image backend: its key, caps on what it sends, and its refusals in plain words. */
import { AppError } from "../errors.ts";
import type { OwnerClient } from "../http/http_client.ts";
import { maskedText, reported } from "../http/error_response.ts";
import { readText } from "../http/read_body.ts";
import type { BackendLimits } from "./backend.ts";
import type { BackendTarget } from "./backend_profiles.ts";

/** One call. */
export interface BackendCall {
  method?: "GET" | "POST";
  /** JSON, unless it is a form. */
  body?: object;
  /** Until the head of the answer; `answerMs` of the limits unless told. */
  firstByteMs?: number;
  signal?: AbortSignal;
  /** Of the answer. */
  maxBytes?: number;
}

/** Lists and histories; a history repeats its workflow, which may hold whole pictures. */
const MAX_JSON_BYTES = 64 * 1024 * 1024;
const MAX_REFUSAL_BYTES = 1024 * 1024;

/** Talks to one backend; cheap to make, keeps nothing. */
export class BackendHttp {
  constructor(readonly client: OwnerClient, readonly target: BackendTarget, readonly limits: BackendLimits) {}

  /** The server as shown to the owner. */
  get place(): string {
    return this.target.baseUrl;
  }

  /** What lets us in, for calls that are not made here. */
  get authorization(): Record<string, string> {
    const key = this.target.apiKey?.trim();
    if (key === undefined || key === "") return {};
    const isLogin = this.target.kind === "a1111" && key.includes(":");
    return { authorization: isLogin ? `Basic ${base64Of(key)}` : `Bearer ${plainKey(key)}` };
  }

  /** Sends a call and gives its answer, of whatever status; its body has to be read or cancelled. */
  async send(path: string, call: BackendCall = {}): Promise<Response> {
    const { method = "GET", body, signal } = call;
    const isForm = body instanceof FormData;
    return await this.client.send({
      url: this.place + path,
      method,
      headers: {
        ...this.authorization,
        accept: "*/*",
        ...(body !== undefined && !isForm && { "content-type": "application/json" }),
      },
      body: body === undefined || isForm ? body : JSON.stringify(body),
      connectMs: this.limits.connectMs,
      firstByteMs: call.firstByteMs ?? this.limits.answerMs,
      idleMs: this.limits.answerMs,
      signal,
    });
  }

  /** Gives the JSON of an answer. @throws {AppError} `upstream_error` for a refusal, a page, or too much */
  async json(path: string, call: BackendCall = {}): Promise<unknown> {
    const response = await this.send(path, call);
    if (!response.ok) throw await this.refusal(response);
    const bytes = await this.readBytes(response, call.maxBytes ?? MAX_JSON_BYTES);
    try {
      return JSON.parse(new TextDecoder().decode(bytes));
    } catch {
      throw new AppError(
        "upstream_error",
        `What answers at "${this.place}${path}" sends no JSON: is it an image server?`,
      );
    }
  }

  /** Reads a body whole. @throws {AppError} `upstream_error` beyond the cap */
  async readBytes(response: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      if (size > maxBytes) {
        throw new AppError("upstream_error", `The image server at "${this.place}" sent more than ${maxBytes} bytes`);
      }
      chunks.push(chunk as Uint8Array<ArrayBuffer>);
    }
    return new Uint8Array(await new Blob(chunks).arrayBuffer());
  }

  /** Makes the error for an answer that is a refusal. */
  async refusal(response: Response): Promise<AppError> {
    return this.refused(response.status, await this.refusalText(response), response.headers);
  }

  /** Reads what a refusal says, without our key. */
  async refusalText(response: Response): Promise<string> {
    return this.masked(await readText(response, MAX_REFUSAL_BYTES).catch(() => ""));
  }

  /** Makes the error for a refusal that was read. */
  refused(status: number, text: string, headers = new Headers()): AppError {
    const said = errorsField(text) ?? reported(text);
    const shown = said === undefined ? `status ${status}` : `${withoutPaths(said)} (status ${status})`;
    const advice = status === 401 || status === 403 ? " – check its login or key" : "";
    const seconds = Number(headers.get("retry-after") ?? Number.NaN);
    return new AppError("upstream_error", `The image server at "${this.place}" reported an error: ${shown}${advice}`, {
      retryAfterSeconds: Number.isFinite(seconds) && seconds >= 0 ? Math.ceil(seconds) : undefined,
    });
  }

  /** Masks our key in the server's text. */
  masked(text: string): string {
    const key = this.target.apiKey?.trim();
    const password = key?.split(":").slice(1).join(":");
    return maskedText(maskedText(text, key), password === "" ? undefined : password);
  }
}

/** A1111 puts the message in `errors`, next to the name of the exception (docs/protocols/images.md#a1111-errors). */
function errorsField(text: string): string | undefined {
  try {
    const { error, errors } = JSON.parse(text) as { error?: unknown; errors?: unknown };
    if (typeof errors !== "string" || errors.trim() === "") return undefined;
    const first = errors.trim().split("\n")[0]!.slice(0, 500);
    return typeof error === "string" && error !== "" ? `${error}: ${first}` : first;
  } catch {
    return undefined;
  }
}

/** Shortens absolute paths to their last part: where things lie on the server is nobody's business. */
export function withoutPaths(text: string): string {
  return text.replace(/(?:\b[A-Za-z]:[\\/]|(?<![\w.:/])\/)(?:[^\s"'\\/:]+[\\/])+([^\s"'\\/:]*)/g, "…/$1");
}

function base64Of(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/** The runtime's own complaint about a bad header value quotes the value. */
function plainKey(key: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new AppError("invalid_request", "Cannot use the API key: it holds spaces or characters other than plain ASCII");
}
