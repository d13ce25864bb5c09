/**
 * Image backends: their interface, implemented in a1111_backend.ts and comfyui/, HTTP requests to backends, and
 * detection. Backends are detected by the structure of their responses, because other programs use the same ports.
 */
import type { Workflow } from "./comfyui/workflow_format.ts";
import { Buffer } from "node:buffer";
import { yieldToEventLoop } from "../async/delay.ts";
import { sniffImage } from "../attachments/images/image_header.ts";
import { AppError } from "../errors.ts";
import { maskKey, normalizeBaseUrl, toBearerHeader } from "../http/base_url.ts";
import { createResponseError, findErrorMessage, readBytes, readErrorText } from "../http/read_body.ts";
import { type HttpClient, type Probe, probeAddress, probeAll, type ProbeOptions } from "../http/http_client.ts";
import type { BackendKind, BackendTarget } from "./backend_profiles.ts";
import type { ResolveHost } from "../http/guard/target_policy.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import { asObject } from "../json/type_guards.ts";

/** What to generate. All settings are resolved, except those that only the backend knows. */
export interface ImageTask {
  prompt: string;
  negativePrompt: string;
  widthPx: number;
  heightPx: number;
  steps: number;
  cfgScale: number;
  sampler?: string;
  scheduler?: string;
  /** 0 or more. */
  seed: number;
  /** Name of a checkpoint; `undefined` for the backend's choice. */
  checkpoint?: string;
  /** For ComfyUI. */
  workflow: Workflow;
  /** For image-to-image. */
  initImage?: Uint8Array<ArrayBuffer>;
  /** Reads the character's avatar as PNG. Called only if a workflow uses it. */
  readCharacterImage?: () => Promise<Uint8Array | undefined>;
}

/** The progress of an image. */
export interface ImageProgress {
  /** 0 to 1. */
  share: number;
  step?: number;
  steps?: number;
  /** A small PNG or JPEG. */
  preview?: Uint8Array;
}

/** Follows and cancels the generation of an image. */
export interface GenerationObserver {
  /** Cancels the generation. The backend is freed before `generate` rejects. */
  signal: AbortSignal;
  onProgress(progress: ImageProgress): void;
  /** Reports whether anyone is viewing previews, which cost the backend time. */
  wantsPreview(): boolean;
}

/** The result of a task. */
export interface GeneratedImages {
  /** PNG, JPEG, WebP or GIF; at least one. */
  images: Uint8Array<ArrayBuffer>[];
  seed: number;
  /** Complete sentences. */
  warnings: string[];
}

/** A checkpoint that tasks can use. */
export interface Checkpoint {
  name: string;
  title: string;
}

/**
 * One image backend. All methods throw `upstream_error` or `upstream_timeout` if the server fails, `address_not_allowed`, and the
 * abort reason of the signal.
 */
export interface Backend {
  /** Checks that the server responds as expected. The error says what is wrong. */
  check(signal: AbortSignal): Promise<void>;
  listCheckpoints(signal: AbortSignal): Promise<Checkpoint[]>;
  /** @throws {AppError} `unprocessable` if the task can't be carried out, with an issue for each reason */
  generate(task: ImageTask, observer: GenerationObserver): Promise<GeneratedImages>;
}

/** Timeouts, in milliseconds. */
export interface BackendLimits {
  connectMs: number;
  /** For requests that don't generate images. */
  responseMs: number;
  /** Maximum time without progress. */
  idleMs: number;
  /** For a whole image. Workflows that create videos take hours. */
  overallMs: number;
  /** Between two requests for progress. */
  pollMs: number;
}

/** Defaults for consumer hardware. */
export const BACKEND_LIMITS: BackendLimits = {
  connectMs: 5_000,
  responseMs: 30_000,
  idleMs: 15 * 60 * 1000,
  overallMs: 6 * 60 * 60 * 1000,
  pollMs: 1_000,
};

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

/** Maximum size of lists and histories. A history includes its workflow, which may contain whole images. */
const MAX_JSON_BYTES = 64 * 1024 * 1024;
/** Maximum size of an error. ComfyUI lists every invalid node. */
const MAX_ERROR_BYTES = 1024 * 1024;

/** HTTP requests to one backend: its credentials, limits on response sizes, and its error responses. Has no state. */
export class BackendHttp {
  constructor(readonly client: HttpClient, readonly target: BackendTarget, readonly limits: BackendLimits) {}

  /** The server as errors show it. */
  get baseUrl(): string {
    return this.target.baseUrl;
  }

  /**
   * The `Authorization` header, for requests and the web socket.
   *
   * @throws {AppError} `invalid_request` for a key that isn't allowed in a header
   */
  get authorization(): Record<string, string> {
    const key = this.target.apiKey?.trim();
    const isLogin = this.target.kind === "a1111" && key?.includes(":");
    return isLogin ? { authorization: `Basic ${encodeLogin(key!)}` } : toBearerHeader(key);
  }

  /** Sends a request. Returns the response, whatever its status; its body must be read or canceled. */
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

/**
 * Finds the reason in an error of A1111: it's in `errors`, while `error` has the name of the exception
 * (docs/protocols/images.md, "A1111 errors").
 */
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

/** Shortens absolute paths to their last part, because clients must not see the server's folders. */
export function removePaths(text: string): string {
  return text.replace(/(?:\b[A-Za-z]:[\\/]|(?<![\w.:/])\/)(?:[^\s"'\\/:]+[\\/])+([^\s"'\\/:]*)/g, "…/$1");
}

function encodeLogin(login: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(login)));
}

/** Number of base64 characters decoded at a time; a multiple of four. */
const STEP_CHARS = 1024 * 1024;

/** Decodes base64 or a data URL, without blocking the event loop. Returns `undefined` if it isn't a supported image. */
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

/** Reports whether bytes start like a supported image. */
export function isSupportedImage(bytes: Uint8Array): boolean {
  return sniffImage(bytes) !== undefined;
}

/** Encodes bytes as base64. */
export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** A detected backend. */
export interface DetectedBackend {
  kind: BackendKind;
  baseUrl: string;
  /** Why it can't be used yet: its API is off, or it requires a login. */
  hint?: "api_off" | "login";
}

/** The default ports of A1111 and ComfyUI. */
const PORTS = [{ port: 7860 }, { port: 8188 }];

/** Probes all hosts for both kinds on both ports. */
export async function detectBackends(
  options: Omit<ProbeOptions<object>, "ports" | "otherPort"> & { ports?: readonly { port: number }[] },
): Promise<DetectedBackend[]> {
  return await probeAll({ ...options, ports: options.ports ?? PORTS, otherPort: {} }, async (origin, _port, probe) => {
    const found = await detectKind(probe);
    return found && { ...found, baseUrl: origin };
  });
}

/** Result of the detection at an address. Without a kind, the server is unreachable or another program. */
export type AddressDetection = Partial<Omit<DetectedBackend, "baseUrl">> & { isReachable: boolean };

/** Time limit per request. A server behind a tunnel needs longer than one on this machine. */
const ADDRESS_DEADLINE_MS = 5_000;

/**
 * Detects the kind of the server at an address that the owner entered. No credentials are sent.
 *
 * @throws {AppError} `invalid_request`, `address_not_allowed`
 */
export async function detectBackendAt(
  address: string,
  { deadlineMs = ADDRESS_DEADLINE_MS, ...policy }: {
    deadlineMs?: number;
    resolve?: ResolveHost;
    ownListeners?: OwnListeners;
  } = {},
): Promise<AddressDetection> {
  const baseUrl = normalizeBaseUrl(address);
  return await probeAddress({ baseUrl, deadlineMs, ...policy }, async (probe) => {
    let isReachable = false;
    const found = await detectKind(async (path) => {
      const response = await probe(path);
      isReachable ||= response !== undefined;
      return response;
    });
    return { isReachable, ...found };
  });
}

async function detectKind(probe: Probe): Promise<Omit<DetectedBackend, "baseUrl"> | undefined> {
  const [isComfy, a1111] = await Promise.all([isComfyUi(probe), detectA1111(probe)]);
  if (isComfy) return { kind: "comfyui" };
  return a1111 && { kind: "a1111", ...a1111 };
}

async function isComfyUi(probe: Probe): Promise<boolean> {
  const stats = await probe("/system_stats");
  const { system, devices } = asObject(stats?.json);
  if (stats?.status === 200 && typeof system === "object" && Array.isArray(devices)) return true;
  const queue = await probe("/prompt");
  return queue?.status === 200 && typeof asObject(asObject(queue.json).exec_info).queue_remaining === "number";
}

/** Every Gradio app uses port 7860, so a web page is not enough. */
async function detectA1111(probe: Probe): Promise<Pick<DetectedBackend, "hint"> | undefined> {
  const models = await probe("/sdapi/v1/sd-models");
  if (models === undefined) return undefined;
  if (models.status === 200 && Array.isArray(models.json)) {
    if (models.json.length > 0) return models.json.every((entry) => typeof entry?.title === "string") ? {} : undefined;
    const options = await probe("/sdapi/v1/options");
    return "sd_model_checkpoint" in asObject(options?.json) ? {} : undefined;
  }
  const isLogin = models.status === 401 && /^basic/i.test(models.headers.get("www-authenticate") ?? "");
  if (!isLogin && models.status !== 404) return undefined;
  // This path requires no login and exists even if the API is off.
  const ping = await probe("/internal/ping");
  if (ping?.status !== 200 || ping.text.trim() !== "{}") return undefined;
  return { hint: isLogin ? "login" : "api_off" };
}
