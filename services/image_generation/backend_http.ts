/** HTTP requests to one image backend: its credentials, limits on response sizes, and its error responses. */
import { Buffer } from "node:buffer";
import { yieldToEventLoop } from "../async/delay.ts";
import { sniffImage } from "../attachments/images/image_header.ts";
import { AppError } from "../errors.ts";
import { maskKey, toBearerHeader } from "../http/base_url.ts";
import { createResponseError, findErrorMessage, readBytes, readErrorText } from "../http/read_body.ts";
import type { HttpClient } from "../http/http_client.ts";
import type { BackendLimits } from "./backend.ts";
import type { BackendTarget } from "./backend_profiles.ts";

/** One request. */
export interface BackendRequest {
  method?: "GET" | "POST";
  /** Sent as JSON unless it is a form. */
  body?: object;
  /** Until the response starts. Default: `responseMs` of the limits. */
  firstByteMs?: number;
  signal?: AbortSignal;
  /** Limit of the response. */
  maxBytes?: number;
}

/** For lists and histories. A history repeats its workflow, which may contain whole images. */
const MAX_JSON_BYTES = 64 * 1024 * 1024;
/** ComfyUI lists every invalid node in its error. */
const MAX_ERROR_BYTES = 1024 * 1024;

/** Sends requests to one backend. Has no state. */
export class BackendHttp {
  constructor(readonly client: HttpClient, readonly target: BackendTarget, readonly limits: BackendLimits) {}

  /** The server as errors show it. */
  get baseUrl(): string {
    return this.target.baseUrl;
  }

  /** The `Authorization` header, also for the web socket. @throws {AppError} `invalid_request` for a key no header can carry */
  get authorization(): Record<string, string> {
    const key = this.target.apiKey?.trim();
    const isLogin = this.target.kind === "a1111" && key?.includes(":");
    return isLogin ? { authorization: `Basic ${encodeLogin(key!)}` } : toBearerHeader(key);
  }

  /** Sends a request. Returns the response whatever its status; its body must be read or canceled. */
  async send(path: string, request: BackendRequest = {}): Promise<Response> {
    const { method = "GET", body, firstByteMs = this.limits.responseMs, signal } = request;
    const isJson = body !== undefined && !(body instanceof FormData);
    const { connectMs, responseMs } = this.limits;
    const timeouts = { connectMs, firstByteMs, idleMs: responseMs };
    return await this.client.fetch("the image server", { ...this.target, timeouts }, {
      url: this.baseUrl + path,
      method,
      headers: { ...this.authorization, accept: "*/*", ...(isJson && { "content-type": "application/json" }) },
      body: body === undefined || body instanceof FormData ? body : JSON.stringify(body),
    }, signal);
  }

  /** Requests JSON. @throws {AppError} `upstream_error` for an error response, a web page or too much data */
  async requestJson(path: string, request: BackendRequest = {}): Promise<unknown> {
    const response = await this.send(path, request);
    if (!response.ok) throw await this.readError(response);
    const bytes = await this.readBytes(response, request.maxBytes ?? MAX_JSON_BYTES);
    try {
      return JSON.parse(new TextDecoder().decode(bytes));
    } catch {
      throw new AppError("upstream_error", `"${this.baseUrl}${path}" didn't return JSON. Is it an image server?`);
    }
  }

  /** Reads a whole body. @throws {AppError} `upstream_error` if it is longer than `maxBytes` */
  async readBytes(response: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = await readBytes(response, maxBytes);
    if (bytes !== undefined) return bytes;
    throw new AppError("upstream_error", `The image server at "${this.baseUrl}" sent more than ${maxBytes} bytes`);
  }

  /** Reads an error response and creates its error. */
  async readError(response: Response): Promise<AppError> {
    return this.createError(response, await this.readText(response));
  }

  /** Reads the text of a response, with the credentials masked. */
  async readText(response: Response): Promise<string> {
    const key = this.target.apiKey?.trim();
    const password = key?.split(":").slice(1).join(":");
    return maskKey(await readErrorText(response, key, MAX_ERROR_BYTES), password);
  }

  /** Creates the error for an error response whose text was read. */
  createError(response: Pick<Response, "status" | "headers">, text: string): AppError {
    const message = findErrorsField(text) ?? findErrorMessage(text);
    const advice = "check its login or key";
    return createResponseError(
      "The image server",
      this.target,
      response,
      message === undefined ? undefined : removePaths(message),
      { 401: advice, 403: advice },
    );
  }
}

/** A1111 puts the reason into `errors` and the name of the exception into `error` (docs/protocols/images.md, "A1111 errors"). */
function findErrorsField(text: string): string | undefined {
  try {
    const { error, errors } = JSON.parse(text) as { error?: unknown; errors?: unknown };
    if (typeof errors !== "string" || errors.trim() === "") return undefined;
    const first = errors.trim().split("\n")[0]!.slice(0, 500);
    return typeof error === "string" && error !== "" ? `${error}: ${first}` : first;
  } catch {
    return undefined;
  }
}

/** Shortens absolute paths to their last part. Clients must not see the folders of the server. */
export function removePaths(text: string): string {
  return text.replace(/(?:\b[A-Za-z]:[\\/]|(?<![\w.:/])\/)(?:[^\s"'\\/:]+[\\/])+([^\s"'\\/:]*)/g, "…/$1");
}

function encodeLogin(login: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(login)));
}

/** Base64 characters decoded at a time; a multiple of four. */
const STEP_CHARS = 1024 * 1024;

/** Decodes base64 or a data URL, without blocking the event loop. Returns undefined if the bytes are not a supported image. */
export async function decodeBase64Image(base64: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const start = base64.startsWith("data:") ? base64.indexOf(",", 0) + 1 : 0;
  const pieces: Uint8Array[] = [];
  for (let at = start; at < base64.length; at += STEP_CHARS) {
    pieces.push(Buffer.from(base64.slice(at, at + STEP_CHARS), "base64"));
    if (base64.length > STEP_CHARS) await yieldToEventLoop();
  }
  const bytes = new Uint8Array(Buffer.concat(pieces));
  return isSupportedImage(bytes) ? bytes : undefined;
}

/** Reports whether bytes start like an image of a supported type. */
export function isSupportedImage(bytes: Uint8Array): boolean {
  return sniffImage(bytes) !== undefined;
}

/** Encodes bytes as base64. */
export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
