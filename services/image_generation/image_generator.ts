/** The one entry point for pictures, whatever kind of backend is active: a request becomes an order, and the order is drawn. */
import { randomInt } from "node:crypto";
import { originOf } from "../http/base_url.ts";
import type { OwnerClient } from "../http/http_client.ts";
import { KeyedSemaphore } from "../async/semaphore.ts";
import { A1111Backend } from "./a1111/a1111_backend.ts";
import { type Backend, BACKEND_LIMITS, type BackendLimits, type Checkpoint, type DrawOrder } from "./backend.ts";
import type { Drawn, DrawWatch } from "./backend.ts";
import { BackendHttp } from "./backend_http.ts";
import { ComfyBackend } from "./comfyui/comfy_backend.ts";
import type {
  BackendTarget,
  DrawDefaults,
  ImageProfile,
  ImageProfileInput,
  ImageProfiles,
} from "./backend_profiles.ts";
import { STARTER_ID, STARTER_WORKFLOW } from "./comfyui/starter_workflow.ts";
import type { Workflows } from "./comfyui/workflows.ts";
import { AppError } from "../errors.ts";

/** A picture as it is asked for; what is left out is as the profile says. */
export interface DrawRequest extends DrawDefaults {
  prompt: string;
  checkpoint?: string;
  workflowId?: string;
  /** Name of an attachment to begin from. */
  initImage?: string;
  /** Whose picture a workflow may use. */
  characterId?: string;
}

/** What drawing stands on. */
export interface DrawingParts {
  profiles: ImageProfiles;
  workflows: Workflows;
  client: OwnerClient;
  /** Gives a stored picture. @throws {AppError} `not_found` */
  readPicture(name: string): Promise<Uint8Array>;
  /** Gives the picture of a character; `undefined` where it has none. */
  characterPicture(id: string): Promise<Uint8Array | undefined>;
  limits?: Partial<BackendLimits>;
}

/** What a test of a profile found. */
export interface BackendVerdict {
  isReachable: boolean;
  error?: string;
}

/** Where neither request nor profile says anything. */
const DEFAULTS = { negativePrompt: "", widthPx: 512, heightPx: 512, steps: 20, cfgScale: 7 };
/** What every sampler of both kinds takes. */
const MAX_SEED = 2 ** 32;
/** A person watches a test and a list. */
const TEST_MS = 10_000;

/** Draws pictures. */
export class Drawing {
  readonly #parts: DrawingParts;
  readonly #limits: BackendLimits;
  /** Either kind has one model behind one lock; a queue of ours can be left. */
  readonly #semaphore = new KeyedSemaphore(1);

  constructor(parts: DrawingParts) {
    this.#parts = parts;
    this.#limits = { ...BACKEND_LIMITS, ...parts.limits };
  }

  /** Tells whether a backend that is not saved can be used. @throws {AppError} `invalid_request`, `address_not_allowed` */
  async test(input: ImageProfileInput, signal: AbortSignal): Promise<BackendVerdict> {
    const backend = this.#backend(this.#parts.profiles.targetForUnsaved(input), { answerMs: TEST_MS });
    try {
      await backend.check(signal);
      return { isReachable: true };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AppError) || !["upstream_error", "upstream_timeout"].includes(error.code)) throw error;
      return { isReachable: false, error: error.message };
    }
  }

  /** Lists the checkpoints of a saved profile, as they are now. @throws {AppError} `not_found`, `upstream_error`, … */
  checkpoints(profileId: string, signal: AbortSignal): Promise<Checkpoint[]> {
    return this.#backend(this.#parts.profiles.targetFor(profileId), { answerMs: TEST_MS }).checkpoints(signal);
  }

  /**
   * Draws with a profile. One picture at a time goes to one server; others wait here, where they can be given up.
   *
   * @throws {AppError} `not_found`, `conflict`, `unprocessable`, `upstream_error`, `upstream_timeout`
   * @throws The reason of the watch's signal, once the backend is free.
   */
  async draw(profileId: string, request: DrawRequest, watch: DrawWatch): Promise<Drawn> {
    const profile = this.#parts.profiles.get(profileId);
    const target = this.#parts.profiles.targetFor(profileId);
    const order = await this.#order(profile, request);
    const leave = await this.#semaphore.acquire(originOf(target.baseUrl), watch.signal);
    try {
      return await this.#backend(target).draw(order, watch);
    } finally {
      leave();
    }
  }

  async #order(profile: ImageProfile, request: DrawRequest): Promise<DrawOrder> {
    const { workflows, readPicture, characterPicture } = this.#parts;
    const { initImage, characterId, ...asked } = request;
    const { seed, ...rest } = { ...DEFAULTS, ...profile.defaults, ...withoutUndefined(asked) };
    const workflowId = request.workflowId ?? profile.workflowId ?? STARTER_ID;
    const isWithWorkflow = profile.kind === "comfyui";
    return {
      ...rest,
      checkpoint: request.checkpoint ?? profile.checkpoint,
      // Never the same twice unless asked: ComfyUI would give the old picture again.
      seed: seed === undefined || seed < 0 ? randomInt(MAX_SEED) : seed,
      workflow: isWithWorkflow ? (await workflows.get(workflowId)).workflow : STARTER_WORKFLOW,
      initImage: initImage === undefined ? undefined : new Uint8Array(await readPicture(initImage)),
      characterPicture: characterId === undefined ? undefined : () => characterPicture(characterId),
    };
  }

  #backend(target: BackendTarget, limits: Partial<BackendLimits> = {}): Backend {
    const http = new BackendHttp(this.#parts.client, target, { ...this.#limits, ...limits });
    return target.kind === "comfyui" ? new ComfyBackend(http) : new A1111Backend(http);
  }
}

function withoutUndefined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}
