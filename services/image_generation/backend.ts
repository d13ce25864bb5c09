/** The interface of an image backend, implemented in a1111/ and comfyui/. */
import type { Workflow } from "./comfyui/workflow_format.ts";

/** What to generate. Everything is resolved except what only the backend knows. */
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
  /** Name of a checkpoint. Undefined: the backend's choice. */
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

/** A checkpoint a task can name. */
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
  checkpoints(signal: AbortSignal): Promise<Checkpoint[]>;
  /** @throws {AppError} `unprocessable` if the task can't be carried out, with an issue for each reason */
  generate(task: ImageTask, observer: GenerationObserver): Promise<GeneratedImages>;
}

/** Timeouts, in milliseconds. */
export interface BackendLimits {
  connectMs: number;
  /** For requests that generate nothing. */
  responseMs: number;
  /** Without any progress. */
  idleMs: number;
  /** For a whole image. Workflows that make videos take hours. */
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
