/** Generates images with the backend of a profile, of any kind. */
import { randomInt } from "node:crypto";
import { KeyedSemaphore } from "../async/locks.ts";
import { AppError } from "../errors.ts";
import { parseOrigin } from "../http/base_url.ts";
import type { HttpClient } from "../http/http_client.ts";
import { A1111Backend } from "./a1111_backend.ts";
import {
  type Backend,
  BACKEND_LIMITS,
  BackendHttp,
  type BackendLimits,
  type Checkpoint,
  type GeneratedImages,
  type GenerationObserver,
  type ImageTask,
} from "./backend.ts";
import type {
  BackendProfile,
  BackendProfileInput,
  BackendProfiles,
  BackendTarget,
  ImageSettings,
} from "./backend_profiles.ts";
import { ComfyBackend } from "./comfyui/comfy_backend.ts";
import { STARTER_ID, STARTER_WORKFLOW } from "./comfyui/workflow_format.ts";
import type { Workflows } from "./comfyui/workflows.ts";

/** A request for an image. `undefined` settings come from the profile. */
export interface ImageRequest extends ImageSettings {
  prompt: string;
  checkpoint?: string;
  workflowId?: string;
  /** Name of an attachment, for image-to-image. */
  initImage?: string;
  /** The character whose avatar a workflow may use. */
  characterId?: string;
}

/** The settings with which an image was generated: those of the request, completed by the profile. */
export type GeneratedSettings = ImageSettings & Pick<ImageRequest, "checkpoint" | "workflowId">;

/** The dependencies of the generator. */
export interface ImageGeneratorDeps {
  profiles: BackendProfiles;
  workflows: Workflows;
  client: HttpClient;
  /** Reads an attachment. @throws {AppError} `not_found` */
  readImage(name: string): Promise<Uint8Array>;
  /** Reads a character's avatar. Returns `undefined` if it has none. */
  readCharacterImage(id: string): Promise<Uint8Array | undefined>;
  limits?: Partial<BackendLimits>;
}

/** The result of testing a profile. */
export interface BackendTestResult {
  isReachable: boolean;
  error?: string;
}

/** Settings that neither the request nor the profile has. */
const DEFAULTS = { negativePrompt: "", widthPx: 512, heightPx: 512, steps: 20, cfgScale: 7 };
/** Accepted by every sampler of both kinds. */
const MAX_SEED = 2 ** 32;
/** Time limit for a test and for the list of checkpoints, because someone is waiting. */
const TEST_MS = 10_000;

/** Generates images. */
export class ImageGenerator {
  readonly #deps: ImageGeneratorDeps;
  readonly #limits: BackendLimits;
  /**
   * Both kinds generate one image at a time. Requests wait here, because they can be canceled here, but not in the
   * server's queue.
   */
  readonly #semaphore = new KeyedSemaphore(1);

  constructor(deps: ImageGeneratorDeps) {
    this.#deps = deps;
    this.#limits = { ...BACKEND_LIMITS, ...deps.limits };
  }

  /** Tests the unsaved input of a profile. @throws {AppError} `invalid_request`, `address_not_allowed` */
  async test(input: BackendProfileInput, signal: AbortSignal): Promise<BackendTestResult> {
    const backend = this.#createBackend(this.#deps.profiles.getUnsavedTarget(input), { responseMs: TEST_MS });
    try {
      await backend.check(signal);
      return { isReachable: true };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AppError) || !["upstream_error", "upstream_timeout"].includes(error.code)) throw error;
      return { isReachable: false, error: error.message };
    }
  }

  /** Lists the current checkpoints of a saved profile's backend. @throws {AppError} `not_found`, `upstream_error`, … */
  listCheckpoints(profileId: string, signal: AbortSignal): Promise<Checkpoint[]> {
    const target = this.#deps.profiles.getTarget(profileId);
    return this.#createBackend(target, { responseMs: TEST_MS }).listCheckpoints(signal);
  }

  /**
   * Generates images with a profile and returns them with all their settings. Each server gets one request at a time; others wait.
   *
   * @throws {AppError} `not_found`, `conflict`, `unprocessable`, `upstream_error`, `upstream_timeout`
   * @throws The observer's abort reason, once the backend is free.
   */
  async generate(
    profileId: string,
    request: ImageRequest,
    observer: GenerationObserver,
  ): Promise<GeneratedImages & { settings: GeneratedSettings }> {
    const profile = this.#deps.profiles.get(profileId);
    const target = this.#deps.profiles.getTarget(profileId);
    const task = await this.#createTask(profile, request);
    const release = await this.#semaphore.acquire(parseOrigin(target.baseUrl), observer.signal);
    try {
      const generated = await this.#createBackend(target).generate(task, observer);
      return { ...generated, settings: toSettings(profile, request, { ...task, seed: generated.seed }) };
    } finally {
      release();
    }
  }

  async #createTask(profile: BackendProfile, request: ImageRequest): Promise<ImageTask> {
    const { workflows, readImage, readCharacterImage } = this.#deps;
    const { initImage, characterId, ...settings } = request;
    const { seed, ...rest } = { ...DEFAULTS, ...profile.defaults, ...removeUndefined(settings) };
    const workflowId = request.workflowId ?? profile.workflowId ?? STARTER_ID;
    const usesWorkflow = profile.kind === "comfyui";
    return {
      ...rest,
      checkpoint: request.checkpoint ?? profile.checkpoint,
      // By default a new seed each time: ComfyUI returns the same image for the same seed.
      seed: seed === undefined || seed < 0 ? randomInt(MAX_SEED) : seed,
      workflow: usesWorkflow ? (await workflows.get(workflowId)).workflow : STARTER_WORKFLOW,
      initImage: initImage === undefined ? undefined : new Uint8Array(await readImage(initImage)),
      readCharacterImage: characterId === undefined ? undefined : () => readCharacterImage(characterId),
    };
  }

  #createBackend(target: BackendTarget, limits: Partial<BackendLimits> = {}): Backend {
    const http = new BackendHttp(this.#deps.client, target, { ...this.#limits, ...limits });
    return target.kind === "comfyui" ? new ComfyBackend(http) : new A1111Backend(http);
  }
}

function toSettings(profile: BackendProfile, request: ImageRequest, task: ImageTask): GeneratedSettings {
  const { negativePrompt, widthPx, heightPx, steps, cfgScale, sampler, scheduler, seed, checkpoint } = task;
  const workflowId = profile.kind === "comfyui" ? request.workflowId ?? profile.workflowId : undefined;
  return { negativePrompt, widthPx, heightPx, steps, cfgScale, sampler, scheduler, seed, checkpoint, workflowId };
}

function removeUndefined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}
