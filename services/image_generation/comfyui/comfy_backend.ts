/** ComfyUI: fills the placeholders of a workflow, runs it and downloads its images (docs/protocols/images.md, "ComfyUI"). */
import { AppError } from "../../errors.ts";
import { assertOwnerAddress } from "../../http/base_url.ts";
import type { Backend, Checkpoint, GeneratedImages, GenerationObserver, ImageTask } from "../backend.ts";
import { type BackendHttp, encodeBase64, isSupportedImage } from "../backend_http.ts";
import { ComfyRun, openComfySocket } from "./comfy_run.ts";
import { ComfyServer } from "./comfy_server.ts";
import { fillWorkflow, listPlaceholders, type PlaceholderValues } from "./workflow_format.ts";

/** Images downloaded per run. */
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

  async checkpoints(signal: AbortSignal): Promise<Checkpoint[]> {
    return (await this.#server.checkpoints(signal)).map((name) => ({ name, title: name }));
  }

  async generate(task: ImageTask, observer: GenerationObserver): Promise<GeneratedImages> {
    const { http } = this.#server;
    const placeholders = new Set(listPlaceholders(task.workflow));
    const values = await this.#createValues(task, placeholders, observer.signal);
    const { workflow, unfilled } = fillWorkflow(task.workflow, values);
    const clientId = crypto.randomUUID();
    const run = new ComfyRun(this.#server, observer);
    await assertOwnerAddress(new URL(http.baseUrl)); // WebSocket does not go through the HTTP client
    const socket = await openComfySocket(http.baseUrl, clientId, {
      headers: http.authorization,
      timeoutMs: http.limits.connectMs,
      listener: run,
    });
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
          "The workflow produced no image. Add a SaveImage or PreviewImage node.",
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
      clip_skip: -1, // the last layer
    };
    if (placeholders.has("model")) values.model = task.checkpoint ?? await this.#firstCheckpoint(signal);
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

  async #firstCheckpoint(signal: AbortSignal): Promise<string> {
    const [first] = await this.#server.checkpoints(signal);
    if (first !== undefined) return first;
    const message = "the image server has no checkpoints. Put one into its folder models/checkpoints";
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
