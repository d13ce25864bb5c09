/** One run on a ComfyUI server. Web socket messages report progress; the history has the result. */
import { delay } from "../../async/delay.ts";
import { AppError, type ErrorIssue } from "../../errors.ts";
import { type BackendHttp, type GenerationObserver, type ImageProgress, removePaths } from "../backend.ts";
import { asObject } from "../../json/type_guards.ts";
import type { ComfyHistory, ComfyServer } from "./comfy_backend.ts";
import { getNodeName, type Workflow } from "./workflow_format.ts";

/** Maximum interval between two polls. */
const MAX_POLL_MS = 5_000;
/** Maximum number of consecutive failed polls. */
const MAX_FAILED_POLLS = 5;
/** Time limit for stopping the run on the server. */
const FREE_MS = 10_000;
const ENDS = new Set(["execution_success", "execution_error", "execution_interrupted"]);

/** Follows one run. Create it before queueing: only a socket that is already open receives the messages. */
export class ComfyRun implements ComfyListener {
  readonly #server: ComfyServer;
  readonly #observer: GenerationObserver;
  #id: string | undefined;
  #progress: ImageProgress = { share: 0 };
  #ended = Promise.withResolvers<void>();

  constructor(server: ComfyServer, observer: GenerationObserver) {
    this.#server = server;
    this.#observer = observer;
  }

  onMessage(type: string, data: Record<string, unknown>): void {
    const { prompt_id: id, node, value, max } = data;
    // Messages after a reconnect have no run ID.
    if (this.#id === undefined || (id !== undefined && id !== this.#id)) return;
    if (ENDS.has(type) || (type === "executing" && node === null)) this.#ended.resolve();
    if (type !== "progress" || typeof value !== "number" || typeof max !== "number" || max <= 0) return;
    const share = Math.max(this.#progress.share, Math.min(value / max, 1)); // A second sampler starts at 0.
    this.#progress = { share, step: value, steps: max };
    this.#observer.onProgress(this.#progress);
  }

  onPreview(preview: Uint8Array<ArrayBuffer>): void {
    if (this.#id !== undefined && this.#observer.wantsPreview()) {
      this.#observer.onProgress({ ...this.#progress, preview });
    }
  }

  /**
   * Queues the workflow and waits for its end.
   *
   * @throws {AppError} `unprocessable`, `upstream_error`, `upstream_timeout`
   */
  async run(workflow: Workflow, clientId: string): Promise<{ history: ComfyHistory; warnings: string[] }> {
    const { signal } = this.#observer;
    signal.throwIfAborted();
    const { id, warnings } = await this.#server.queue(workflow, clientId);
    this.#id = id;
    try {
      const history = await this.#waitForEnd(id, signal);
      if (!history.isSuccess) throw createRunError(history.failure, workflow);
      return { history, warnings };
    } catch (error) {
      await this.#server.cancel(id, AbortSignal.timeout(FREE_MS)).catch(() => {
        // The server is unreachable; nothing more can be done.
      });
      throw error;
    }
  }

  async #waitForEnd(id: string, signal: AbortSignal): Promise<ComfyHistory> {
    const { pollMs, overallMs } = this.#server.http.limits;
    const deadlineMs = performance.now() + overallMs;
    let waitMs = pollMs;
    let absences = 0;
    let failures = 0;
    while (performance.now() < deadlineMs) {
      await delay(waitMs, signal, this.#ended.promise);
      this.#ended = Promise.withResolvers();
      waitMs = Math.min(waitMs * 1.5, MAX_POLL_MS);
      try {
        const history = await this.#server.findHistory(id, signal);
        if (history !== undefined) return history;
        // If the run ended between these two requests, the next poll finds it.
        absences = await this.#server.findQueueState(id, signal) === "absent" ? absences + 1 : 0;
        if (absences > 0) waitMs = pollMs;
        failures = 0;
      } catch (error) {
        signal.throwIfAborted();
        if (++failures >= MAX_FAILED_POLLS) throw error;
      }
      if (absences >= 3) throw createLostError(this.#server.http.baseUrl);
    }
    throw new AppError("upstream_timeout", `The image server at "${this.#server.http.baseUrl}" took too long`);
  }
}

function createLostError(baseUrl: string): AppError {
  return new AppError(
    "upstream_error",
    `The image server at "${baseUrl}" lost the image: it was restarted, or the image was removed from its queue`,
  );
}

// ComfyUI's web socket, which reports the progress of runs. It's optional: the result comes from the history.

/** Receives the messages of the socket. */
interface ComfyListener {
  onMessage(type: string, data: Record<string, unknown>): void;
  /** A preview: JPEG or PNG. */
  onPreview(bytes: Uint8Array<ArrayBuffer>): void;
}

/** An open socket. */
interface ComfySocket {
  close(): void;
}

/** Kind of binary frames (docs/protocols/images.md, "WebSocket"). */
const PREVIEW = 1;
const MAX_FRAME_CHARS = 8 * 1024 * 1024;

/**
 * Opens the socket of one client.
 *
 * @returns `undefined` if it doesn't open in time
 * @throws {AppError} `address_not_allowed`
 */
export async function openComfySocket(
  { client, baseUrl, authorization, limits }: BackendHttp,
  clientId: string,
  listener: ComfyListener,
): Promise<ComfySocket | undefined> {
  const url = `${baseUrl}/ws?clientId=${encodeURIComponent(clientId)}`;
  const socket = await client.createWebSocket(url, authorization, limits.connectMs);
  if (socket === undefined) return undefined;
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => receive(data, listener);
  const close = () => {
    socket.onmessage = null;
    try {
      socket.close();
    } catch {
      // Never opened
    }
  };
  const opened = Promise.withResolvers<boolean>();
  socket.onopen = () => opened.resolve(true);
  socket.onerror = () => opened.resolve(false);
  socket.onclose = () => opened.resolve(false);
  const timer = setTimeout(() => opened.resolve(false), limits.connectMs);
  const isOpen = await opened.promise;
  clearTimeout(timer);
  if (isOpen) return { close };
  close();
  return undefined;
}

function receive(data: unknown, listener: ComfyListener): void {
  if (data instanceof ArrayBuffer) {
    // Four bytes of event type, four of image type, then the image. Custom nodes send other events.
    if (data.byteLength > 8 && new DataView(data).getUint32(0) === PREVIEW) listener.onPreview(new Uint8Array(data, 8));
    return;
  }
  if (typeof data !== "string" || data.length > MAX_FRAME_CHARS) return;
  try {
    const { type, data: content } = JSON.parse(data);
    if (typeof type === "string" && typeof content === "object" && content !== null) listener.onMessage(type, content);
  } catch {
    // Custom nodes may send text that isn't JSON.
  }
}

// Explains ComfyUI's errors for refused workflows and failed runs. Tracebacks are never shown.

const MAX_ISSUES = 20;
const MAX_TEXT = 400;

/**
 * Creates the error for a workflow that the server rejected.
 *
 * @returns `undefined` if the response doesn't blame the workflow
 */
export function createRefusalError(status: number, text: string, workflow: Workflow): AppError | undefined {
  if (status !== 400) return undefined;
  let response: Record<string, unknown>;
  try {
    response = asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
  const issues = parseIssues(response.node_errors, workflow);
  const reason = issues[0]?.message ?? parseReason(response.error);
  if (reason === undefined) return undefined;
  const others = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return new AppError("unprocessable", `The image server rejected the workflow: ${reason}${others}`, { issues });
}

/** Returns a warning for each part of an accepted workflow that the server won't run. */
export function parseWarnings(nodeErrors: unknown, workflow: Workflow): string[] {
  return parseIssues(nodeErrors, workflow).map(({ message }) =>
    `The image server skipped a part of the workflow: ${message}`
  );
}

/** Creates the error for a run that failed or was stopped by another client. */
function createRunError(
  failure: { type: string; data: Record<string, unknown> } | undefined,
  workflow: Workflow,
) {
  if (failure === undefined) return new AppError("upstream_error", "The image server couldn't generate the image");
  const { node_id: id, exception_message: message } = failure.data;
  if (failure.type === "execution_interrupted") {
    return new AppError("upstream_error", "The image was stopped on the image server");
  }
  const name = getNodeName(String(id), workflow[String(id)]);
  return new AppError(
    "upstream_error",
    `The image server failed at ${name}: ${readText(message) ?? "no reason given"}`,
  );
}

function parseIssues(nodeErrors: unknown, workflow: Workflow): ErrorIssue[] {
  return Object.entries(asObject(nodeErrors)).flatMap(([id, entry]) => {
    const errors = asObject(entry).errors;
    const name = getNodeName(id, workflow[id]);
    return (Array.isArray(errors) ? errors : []).map((error) => {
      const { type, message, details, extra_info: extra } = asObject(error);
      const { input_name: input, received_value: value } = asObject(extra);
      const path = typeof input === "string" ? `${id}.inputs.${input}` : id;
      return { path, message: `${name}: ${explainIssue(String(type), { input, value, message, details })}` };
    });
  }).slice(0, MAX_ISSUES);
}

function explainIssue(
  type: string,
  { input, value, message, details }: Record<"input" | "value" | "message" | "details", unknown>,
): string {
  const shown = typeof value === "string" || typeof value === "number"
    ? `"${String(value).slice(0, 100)}"`
    : "its value";
  switch (type) {
    case "value_not_in_list":
      return input === "ckpt_name"
        ? `the checkpoint ${shown} isn't installed on the image server`
        : `the image server doesn't have ${shown} for ${input}`;
    case "required_input_missing":
      return `the input ${input ?? readText(details)} is missing`;
    case "value_smaller_than_min":
      return `${shown} is too small for ${input}`;
    case "value_bigger_than_max":
      return `${shown} is too large for ${input}`;
    case "invalid_input_type":
      return `${shown} has the wrong type for ${input}`;
    case "exception_during_validation":
    case "exception_during_inner_validation":
      return `the input ${input ?? ""} is invalid: a node it is linked to is missing or broken`.replace("  ", " ");
    default:
      return [readText(message), readText(details)].filter((text) => text !== undefined).join(": ") || type;
  }
}

function parseReason(error: unknown): string | undefined {
  if (typeof error === "string") return readText(error);
  const { message, details } = asObject(error);
  return [readText(message), readText(details)].filter((text) => text !== undefined).join(": ") || undefined;
}

function readText(value: unknown): string | undefined {
  if (typeof value !== "string" || value.trim() === "") return undefined;
  return removePaths(value.trim().split("\n")[0]!).replace(/\.+$/, "").slice(0, MAX_TEXT);
}
