/** ComfyUI: fills the placeholders of a workflow, runs it and downloads its images (docs/protocols/images.md, "ComfyUI"). */
import { AppError } from "../../errors.ts";
import {
  type Backend,
  type BackendHttp,
  type Checkpoint,
  encodeBase64,
  type GeneratedImages,
  type GenerationObserver,
  type ImageTask,
  isSupportedImage,
} from "../backend.ts";
import { ComfyRun, createRefusalError, openComfySocket, parseWarnings } from "./comfy_run.ts";
import { fillWorkflow, listPlaceholders, type PlaceholderValues, type Workflow } from "./workflow_format.ts";
import { asObject, type JsonObject } from "../../json/type_guards.ts";

/** Maximum number of images downloaded per run. */
const MAX_IMAGES = 16;
/** One transparent pixel as PNG, for characters without an avatar. */
const EMPTY_IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** A ComfyUI server. */
export class ComfyBackend implements Backend {
  readonly #server: ComfyServer;

  constructor(http: BackendHttp) {
    this.#server = new ComfyServer(http);
  }

  check(signal: AbortSignal): Promise<void> {
    return this.#server.check(signal);
  }

  async listCheckpoints(signal: AbortSignal): Promise<Checkpoint[]> {
    return (await this.#server.listCheckpoints(signal)).map((name) => ({ name, title: name }));
  }

  async generate(task: ImageTask, observer: GenerationObserver): Promise<GeneratedImages> {
    const { http } = this.#server;
    const placeholders = new Set(listPlaceholders(task.workflow));
    const values = await this.#createValues(task, placeholders, observer.signal);
    const { workflow, unfilled } = fillWorkflow(task.workflow, values);
    const clientId = crypto.randomUUID();
    const run = new ComfyRun(this.#server, observer);
    const socket = await openComfySocket(http, clientId, run);
    try {
      const { history, warnings } = await run.run(workflow, clientId);
      const images: Uint8Array<ArrayBuffer>[] = [];
      for (const file of history.images.slice(0, MAX_IMAGES)) {
        const bytes = await this.#server.download(file, observer.signal);
        if (isSupportedImage(bytes)) images.push(bytes);
      }
      if (images.length === 0) {
        throw new AppError(
          "upstream_error",
          "The workflow returned no image. Add a SaveImage or PreviewImage node",
        );
      }
      const unknown = unfilled.map((name) => `Parlor doesn't know the placeholder %${name}% of the workflow`);
      return { images, seed: task.seed, warnings: [...warnings, ...unknown] };
    } finally {
      socket?.close();
    }
  }

  async #createValues(task: ImageTask, placeholders: Set<string>, signal: AbortSignal): Promise<PlaceholderValues> {
    const values: PlaceholderValues = {
      prompt: task.prompt,
      negative_prompt: task.negativePrompt,
      width: task.widthPx,
      height: task.heightPx,
      steps: task.steps,
      scale: task.cfgScale,
      sampler: task.sampler ?? "euler",
      scheduler: task.scheduler ?? "normal",
      seed: task.seed,
      denoise: task.initImage === undefined ? 1 : 0.75,
      clip_skip: -1, // The last layer
    };
    if (placeholders.has("model")) values.model = task.checkpoint ?? await this.#findFirstCheckpoint(signal);
    if (placeholders.has("user_avatar")) values.user_avatar = EMPTY_IMAGE;
    if (placeholders.has("char_avatar")) {
      const image = await task.readCharacterImage?.();
      values.char_avatar = image === undefined ? EMPTY_IMAGE : encodeBase64(image);
    }
    if (task.initImage !== undefined) {
      if (!placeholders.has("init_image")) throw createNoInitImageError();
      values.init_image = await this.#server.upload(task.initImage, signal);
    }
    return values;
  }

  async #findFirstCheckpoint(signal: AbortSignal): Promise<string> {
    const [first] = await this.#server.listCheckpoints(signal);
    if (first !== undefined) return first;
    const message = "the image server has no checkpoints. Add one to its folder models/checkpoints";
    throw new AppError("unprocessable", `Can't generate the image: ${message}`, {
      issues: [{ path: "checkpoint", message }],
    });
  }
}

function createNoInitImageError(): AppError {
  const message = "the workflow has no initial image. Set the image of a LoadImage node to %init_image%";
  return new AppError("unprocessable", `Can't generate the image: ${message}`, {
    issues: [{ path: "init_image", message }],
  });
}

/** The state of a run. */
export type QueueState = "running" | "pending" | "absent";

/** Maximum size of an image, above the largest that backends generate. */
const MAX_IMAGE_BYTES = 64 * 1024 * 1024;

/** Requests to a ComfyUI server. Paths have no `/api` prefix because older servers don't know it. */
export class ComfyServer {
  constructor(readonly http: BackendHttp) {}

  /** @throws {AppError} `upstream_error` if it isn't ComfyUI */
  async check(signal: AbortSignal): Promise<void> {
    const stats = await this.http.requestJson("/system_stats", { signal }).catch((error) => {
      if (!(error instanceof AppError) || error.code !== "upstream_error") throw error;
      return this.http.requestJson("/prompt", { signal });
    });
    const { system, exec_info } = (stats ?? {}) as Record<string, unknown>;
    if (typeof system === "object" || typeof exec_info === "object") return;
    throw new AppError("upstream_error", `"${this.http.baseUrl}" isn't a ComfyUI server`);
  }

  /** Lists the installed checkpoints. */
  async listCheckpoints(signal: AbortSignal): Promise<string[]> {
    return parseOptions(await this.http.requestJson("/object_info/CheckpointLoaderSimple", { signal }), "ckpt_name") ??
      [];
  }

  /**
   * Queues a workflow. Can't be aborted: without its ID, the run couldn't be canceled.
   *
   * @throws {AppError} `unprocessable` with an issue for each rejected input
   */
  async queue(workflow: Workflow, clientId: string): Promise<{ id: string; warnings: string[] }> {
    const body = { prompt: workflow, client_id: clientId, prompt_id: crypto.randomUUID() };
    const response = await this.http.send("/prompt", { method: "POST", body });
    const text = await this.http.readText(response);
    if (!response.ok) {
      throw createRefusalError(response.status, text, workflow) ?? this.http.createError(response, text);
    }
    const { prompt_id: id, node_errors: errors } = asObject(parseJson(text));
    if (typeof id !== "string") {
      throw new AppError(
        "upstream_error",
        `The image server at "${this.http.baseUrl}" accepted the workflow but returned no ID`,
      );
    }
    return { id, warnings: parseWarnings(errors, workflow) };
  }

  /** Returns the result of a run; `undefined` if it hasn't ended or is unknown. */
  async findHistory(id: string, signal: AbortSignal): Promise<ComfyHistory | undefined> {
    return parseHistory(await this.http.requestJson(`/history/${encodeURIComponent(id)}`, { signal }), id);
  }

  async findQueueState(id: string, signal: AbortSignal): Promise<QueueState> {
    return findQueueState(await this.http.requestJson("/queue", { signal }), id);
  }

  /** Downloads an image. @throws {AppError} `upstream_error` if it is missing or too large */
  async download({ filename, subfolder, type }: ComfyFile, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const query = new URLSearchParams({ filename, subfolder, type });
    const response = await this.http.send(`/view?${query}`, { signal });
    if (!response.ok) throw await this.http.readError(response);
    return await this.http.readBytes(response, MAX_IMAGE_BYTES);
  }

  /** Uploads an image for LoadImage. Returns its name, which the server may have changed. */
  async upload(bytes: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<string> {
    const body = new FormData();
    body.append("image", new Blob([bytes]), `parlor-${crypto.randomUUID()}.png`);
    const answer = await this.http.requestJson("/upload/image", { method: "POST", body, signal });
    const { name, subfolder } = (answer ?? {}) as Record<string, unknown>;
    if (typeof name === "string") return typeof subfolder === "string" && subfolder ? `${subfolder}/${name}` : name;
    throw new AppError(
      "upstream_error",
      `The image server at "${this.http.baseUrl}" accepted an image but returned no name`,
    );
  }

  /**
   * Removes a run from the queue or stops it. Older servers stop any run, so call this only while Parlor's is running.
   */
  async cancel(id: string, signal: AbortSignal): Promise<void> {
    await this.#post("/queue", { delete: [id] }, signal);
    if (await this.findQueueState(id, signal) === "running") await this.#post("/interrupt", { prompt_id: id }, signal);
  }

  async #post(path: string, body: object, signal: AbortSignal): Promise<void> {
    const response = await this.http.send(path, { method: "POST", body, signal });
    await response.body?.cancel();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** An image file of a run. */
interface ComfyFile {
  filename: string;
  subfolder: string;
  type: string;
}

/** The result of a run. */
export interface ComfyHistory {
  isSuccess: boolean;
  /** The saved images, or the previews if none were saved. */
  images: ComfyFile[];
  /** The message that explains a failure. */
  failure?: { type: string; data: Record<string, unknown> };
}

/** Parses the options of an input, from either form of node description. Returns `undefined` if it has none. */
function parseOptions(json: unknown, input: string): string[] | undefined {
  const node = Object.values(asObject(json))[0];
  const spec = asObject(asObject(asObject(node).input).required)[input];
  if (!Array.isArray(spec)) return undefined;
  const list = Array.isArray(spec[0]) ? spec[0] : asObject(spec[1]).options;
  return Array.isArray(list) ? list.filter((name) => typeof name === "string") : undefined;
}

/** Parses the history of one run. Returns `undefined` if it hasn't ended. */
function parseHistory(json: unknown, id: string): ComfyHistory | undefined {
  const entry = asObject(json)[id];
  if (typeof entry !== "object" || entry === null) return undefined;
  const { outputs, status } = entry as JsonObject;
  const messages = asObject(status).messages;
  const images = Object.values(asObject(outputs)).flatMap((output) => parseFiles(output));
  const saved = images.filter(({ type }) => type === "output");
  return {
    isSuccess: asObject(status).status_str !== "error",
    images: saved.length > 0 ? saved : images,
    failure: Array.isArray(messages) ? findFailure(messages) : undefined,
  };
}

/** Finds a run in the queue. */
function findQueueState(json: unknown, id: string): "running" | "pending" | "absent" {
  const { queue_running: running, queue_pending: pending } = asObject(json);
  const contains = (list: unknown) =>
    Array.isArray(list) && list.some((entry) => Array.isArray(entry) && entry[1] === id);
  return contains(running) ? "running" : contains(pending) ? "pending" : "absent";
}

function parseFiles(output: unknown): ComfyFile[] {
  const { images } = asObject(output);
  if (!Array.isArray(images)) return [];
  return images.flatMap((image) => {
    const { filename, subfolder, type } = asObject(image);
    if (typeof filename !== "string" || filename === "") return [];
    return [{
      filename,
      subfolder: typeof subfolder === "string" ? subfolder : "",
      type: typeof type === "string" ? type : "output",
    }];
  });
}

function findFailure(messages: unknown[]): ComfyHistory["failure"] {
  for (const message of messages) {
    const [type, data] = Array.isArray(message) ? message : [];
    if (type === "execution_error" || type === "execution_interrupted") return { type, data: asObject(data) };
  }
  return undefined;
}
