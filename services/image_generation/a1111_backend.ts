/**
 * Backends with A1111's API. Its progress and interrupt are global and may belong to another client's image, so both
 * are only used while Parlor's image is being generated.
 *
 * @see docs/protocols/images.md, "A1111"
 */
import { AppError } from "../errors.ts";
import { formatDuration } from "../http/upstream_error.ts";
import {
  type Backend,
  type BackendHttp,
  type Checkpoint,
  decodeBase64Image,
  encodeBase64,
  type GeneratedImages,
  type GenerationObserver,
  type ImageTask,
} from "./backend.ts";
import { delay } from "../async/delay.ts";
import { asObject } from "../json/type_guards.ts";

/** Maximum size of a response. An upscaled image has about 4 MB, and a batch with a grid is smaller than this. */
const MAX_RESPONSE_BYTES = 96 * 1024 * 1024;
/** How long to wait for the response after an interrupt. */
const FREE_MS = 10_000;
/** How long a canceled image may stay in the server's queue. */
const FREE_LATER_MS = 60 * 60 * 1000;
/** Timeout of `/progress`. */
const PROGRESS_MS = 10_000;

/** A server with A1111's API. */
export class A1111Backend implements Backend {
  readonly #http: BackendHttp;

  constructor(http: BackendHttp) {
    this.#http = http;
  }

  async check(signal: AbortSignal): Promise<void> {
    await this.listCheckpoints(signal);
  }

  async listCheckpoints(signal: AbortSignal): Promise<Checkpoint[]> {
    const response = await this.#http.send("/sdapi/v1/sd-models", { signal });
    if (response.status === 404) {
      await response.body?.cancel();
      throw await this.#createNoApiError(signal);
    }
    if (!response.ok) throw await this.#http.readError(response);
    const list = parseCheckpoints(await this.#http.readBytes(response, 4 * 1024 * 1024));
    if (list !== undefined) return list;
    throw new AppError(
      "upstream_error",
      `"${this.#http.baseUrl}" didn't return a list of checkpoints. Is it an A1111 server?`,
    );
  }

  async generate(task: ImageTask, observer: GenerationObserver): Promise<GeneratedImages> {
    const { signal } = observer;
    const checkpoint = task.checkpoint === undefined ? undefined : await this.#getCheckpoint(task.checkpoint, signal);
    const before = await readProgress(this.#http, false, signal);
    const call = new AbortController();
    const path = task.initImage === undefined ? "/sdapi/v1/txt2img" : "/sdapi/v1/img2img";
    const response = this.#request(path, createBody(task, checkpoint), call.signal);
    const settled = response.then(() => {}, () => {});
    const run = new A1111Run(this.#http, before, observer);
    try {
      await Promise.race([response, run.watch(settled)]);
      signal.throwIfAborted();
      return await toGeneratedImages(await response, task, checkpoint, this.#http.baseUrl);
    } catch (error) {
      const giveUp = () => call.abort(new DOMException("The image is complete", "AbortError"));
      if (await run.free(settled)) giveUp();
      else void run.freeLater(settled).finally(giveUp);
      throw error;
    }
  }

  async #request(path: string, body: object, signal: AbortSignal): Promise<A1111Result> {
    const { overallMs } = this.#http.limits;
    const options = { method: "POST", body, signal, firstByteMs: overallMs, maxBytes: MAX_RESPONSE_BYTES } as const;
    return parseResult(await this.#http.requestJson(path, options));
  }

  /**
   * Finds a checkpoint. A1111 would ignore an unknown name and use another checkpoint.
   *
   * @throws {AppError} `unprocessable`
   */
  async #getCheckpoint(name: string, signal: AbortSignal): Promise<Checkpoint> {
    const list = await this.listCheckpoints(signal);
    const found = list.find((entry) => entry.name === name || entry.title === name) ??
      list.find((entry) => toCheckpointName(entry.title) === toCheckpointName(name));
    if (found !== undefined) return found;
    const message = `the image server has no checkpoint "${name}"`;
    throw new AppError("unprocessable", `Can't generate the image: ${message}`, {
      issues: [{ path: "checkpoint", message }],
    });
  }

  async #createNoApiError(signal: AbortSignal): Promise<AppError> {
    const ping = await this.#http.send("/internal/ping", { signal });
    await ping.body?.cancel();
    return new AppError(
      "upstream_error",
      ping.ok
        ? `The web UI at "${this.#http.baseUrl}" is running, but its API is off. Start it with --api.`
        : `"${this.#http.baseUrl}" doesn't have the API of A1111 or Forge`,
    );
  }
}

/** Follows the progress of an image. The API doesn't distinguish it from the images of other clients. */
class A1111Run {
  readonly #http: BackendHttp;
  readonly #before: A1111Progress | undefined;
  readonly #observer: GenerationObserver;
  #isOurs = false;

  constructor(http: BackendHttp, before: A1111Progress | undefined, observer: GenerationObserver) {
    this.#http = http;
    this.#before = before;
    this.#observer = observer;
  }

  /** Reports progress until the response arrives. @throws {AppError} `upstream_timeout` if there is no progress */
  async watch(settled: Promise<void>): Promise<void> {
    const { limits, baseUrl } = this.#http;
    let isOver = false;
    settled.then(() => isOver = true);
    let last = "";
    let movedAtMs = performance.now();
    while (!isOver) {
      await delay(limits.pollMs, this.#observer.signal, settled);
      if (isOver) return;
      const now = await readProgress(this.#http, this.#observer.wantsPreview(), this.#observer.signal);
      if (isOver) return;
      // A server without progress is only subject to the overall limit.
      const mark = now === undefined ? `${performance.now()}` : `${now.share} ${now.jobMark} ${now.step}`;
      if (mark !== last) [last, movedAtMs] = [mark, performance.now()];
      if (now !== undefined) await this.#report(now);
      if (performance.now() - movedAtMs > limits.idleMs) {
        throw new AppError(
          "upstream_timeout",
          `The image server at "${baseUrl}" made no progress for ${formatDuration(limits.idleMs)}`,
        );
      }
    }
  }

  /** Stops the image on the server. Returns false if it's waiting for another client's image. */
  async free(settled: Promise<void>): Promise<boolean> {
    const timeout = AbortSignal.timeout(FREE_MS);
    try {
      const isOver = await Promise.race([settled.then(() => true), Promise.resolve(false)]);
      if (isOver) return true;
      const now = await readProgress(this.#http, false, timeout);
      if (now !== undefined && !this.#checkIsOurs(now)) return false;
      await this.#interrupt(timeout);
      await delay(FREE_MS, timeout, settled);
    } catch {
      // The server is unreachable; nothing more can be done.
    }
    return true;
  }

  /** Stops the image as soon as it starts, because the API can't remove it from the queue. */
  async freeLater(settled: Promise<void>): Promise<void> {
    const timeout = AbortSignal.timeout(FREE_LATER_MS);
    let isOver = false;
    void settled.then(() => isOver = true);
    try {
      for (;;) {
        await delay(this.#http.limits.pollMs, timeout, settled);
        if (isOver) return;
        if (this.#checkIsOurs(await readProgress(this.#http, false, timeout))) return await this.#interrupt(timeout);
      }
    } catch {
      // The server is unreachable; nothing more can be done.
    }
  }

  async #interrupt(signal: AbortSignal): Promise<void> {
    const response = await this.#http.send("/sdapi/v1/interrupt", { method: "POST", signal });
    await response.body?.cancel();
  }

  async #report(now: A1111Progress): Promise<void> {
    if (!this.#checkIsOurs(now)) return;
    const preview = now.preview === undefined ? undefined : await decodeBase64Image(now.preview);
    this.#observer.onProgress({ share: now.share, step: now.step, steps: now.steps, preview });
  }

  /**
   * Reports whether Parlor's image is being generated. The server generates one at a time: it's next if the server was
   * idle before, or once a new job has started.
   */
  #checkIsOurs(now: A1111Progress | undefined): boolean {
    if (now === undefined || !now.isBusy) return this.#isOurs;
    this.#isOurs ||= this.#before === undefined || !this.#before.isBusy || this.#before.jobMark !== now.jobMark;
    return this.#isOurs;
  }
}

async function readProgress(
  http: BackendHttp,
  isWithPreview: boolean,
  signal: AbortSignal,
): Promise<A1111Progress | undefined> {
  try {
    const query = isWithPreview ? "" : "?skip_current_image=true";
    return parseProgress(await http.requestJson(`/sdapi/v1/progress${query}`, { signal, firstByteMs: PROGRESS_MS }));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AppError) return undefined; // The request for the image will report the error.
    throw error;
  }
}

function createBody(task: ImageTask, checkpoint: Checkpoint | undefined): object {
  const { initImage, sampler, scheduler } = task;
  return {
    prompt: task.prompt,
    negative_prompt: task.negativePrompt,
    seed: task.seed,
    steps: task.steps,
    cfg_scale: task.cfgScale,
    width: task.widthPx,
    height: task.heightPx,
    batch_size: 1,
    n_iter: 1,
    send_images: true,
    save_images: false,
    ...(sampler && { sampler_name: sampler }),
    ...(scheduler && { scheduler }),
    ...(initImage && { init_images: [encodeBase64(initImage)], denoising_strength: 0.75 }),
    ...(checkpoint && {
      override_settings: { sd_model_checkpoint: checkpoint.title },
      // Restoring would load two models for every image.
      override_settings_restore_afterwards: false,
    }),
  };
}

async function toGeneratedImages(
  result: A1111Result,
  task: ImageTask,
  checkpoint: Checkpoint | undefined,
  baseUrl: string,
): Promise<GeneratedImages> {
  const image = result.base64 === undefined ? undefined : await decodeBase64Image(result.base64);
  if (image === undefined) throw new AppError("upstream_error", `The image server at "${baseUrl}" returned no image`);
  const used = result.checkpoint;
  const isOther = checkpoint !== undefined && used !== undefined &&
    ![checkpoint.name, toCheckpointName(checkpoint.title)].includes(toCheckpointName(used));
  return {
    images: [image],
    seed: result.seed ?? task.seed,
    warnings: isOther ? [`The server used the checkpoint "${used}" instead of "${checkpoint.name}"`] : [],
  };
}

// Parses responses of A1111's API leniently: compatible servers omit many fields (docs/protocols/images.md, "A1111").

/** Progress of the current image, which may be another client's. */
interface A1111Progress {
  isBusy: boolean;
  /** 0 to 1. */
  share: number;
  step?: number;
  steps?: number;
  /** Different for every job. */
  jobMark: string;
  /** Base64. */
  preview?: string;
}

/** Response to a generation request. */
interface A1111Result {
  base64?: string;
  seed?: number;
  /** The checkpoint that was used. */
  checkpoint?: string;
}

/** Parses the list of checkpoints. Returns `undefined` if it isn't one. */
function parseCheckpoints(bytes: Uint8Array): Checkpoint[] | undefined {
  let list: unknown;
  try {
    list = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
  if (!Array.isArray(list)) return undefined;
  return list.flatMap((entry) => {
    const name = toText(entry?.model_name) ?? toText(entry?.title);
    return name === undefined ? [] : [{ name, title: toText(entry.title) ?? name }];
  });
}

/** Returns the constant part of a title. Titles include a file extension, and a hash once it's computed. */
function toCheckpointName(title: string): string {
  return title.replace(/\s*\[[0-9a-f]+\]$/i, "").replace(/^.*[\\/]/, "").replace(/\.(?:safetensors|ckpt|gguf)$/i, "");
}

/** Parses a response of `/progress`. Returns `undefined` if it isn't one. */
function parseProgress(json: unknown): A1111Progress | undefined {
  const { progress, state, current_image: preview } = (json ?? {}) as Record<string, unknown>;
  if (typeof progress !== "number") return undefined;
  const { job, job_count: jobCount, job_timestamp: timestamp, sampling_step: step, sampling_steps: steps } = asObject(
    state,
  );
  const share = Math.min(Math.max(progress, 0), 1);
  return {
    isBusy: share > 0 || (typeof jobCount === "number" && jobCount > 0) || (typeof job === "string" && job !== ""),
    share,
    ...(typeof step === "number" && typeof steps === "number" && steps > 0 && { step, steps }),
    jobMark: String(timestamp ?? ""),
    preview: toText(preview),
  };
}

/** Parses a response of `txt2img`. A grid of all images may come first; `info` has the index of the first image. */
function parseResult(json: unknown): A1111Result {
  const { images, info } = (json ?? {}) as Record<string, unknown>;
  const details = parseInfo(info);
  const index = typeof details.index_of_first_image === "number" ? details.index_of_first_image : 0;
  const list = Array.isArray(images) ? images : [];
  return {
    base64: toText(list[index] ?? list[0]),
    seed: typeof details.seed === "number" && details.seed >= 0 ? details.seed : undefined,
    checkpoint: toText(details.sd_model_name),
  };
}

function parseInfo(info: unknown): Record<string, unknown> {
  try {
    return asObject(typeof info === "string" && info !== "" ? JSON.parse(info) : undefined);
  } catch {
    return {};
  }
}

function toText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
