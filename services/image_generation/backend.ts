/** What every kind of image backend can do. */
import type { Workflow } from "./comfyui/workflow_format.ts";

/** A picture as it is ordered, with nothing left open but what only the backend knows. */
export interface DrawOrder {
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
  /** Name of one of its checkpoints; its own choice where left out. */
  checkpoint?: string;
  /** For ComfyUI. */
  workflow: Workflow;
  /** To begin from. */
  initImage?: Uint8Array<ArrayBuffer>;
  /** Gives the picture of the character as PNG; asked for only where a workflow has a place for it. */
  characterPicture?: () => Promise<Uint8Array | undefined>;
}

/** How far a picture is. */
export interface DrawStep {
  /** 0 to 1. */
  share: number;
  step?: number;
  steps?: number;
  /** What it looks like now: a small PNG or JPEG. */
  preview?: Uint8Array;
}

/** Whoever waits for a picture. */
export interface DrawWatch {
  /** Fires when it is not wanted any more; the backend is freed then before `draw` rejects. */
  signal: AbortSignal;
  onProgress(step: DrawStep): void;
  /** Says whether anybody looks at previews now, which cost the backend something. */
  wantsPreview(): boolean;
}

/** What came of an order. */
export interface Drawn {
  /** PNG, JPEG, WebP or GIF, at least one. */
  pictures: Uint8Array<ArrayBuffer>[];
  seed: number;
  /** What did not go as ordered, in sentences. */
  warnings: string[];
}

/** A checkpoint that can be named in an order. */
export interface Checkpoint {
  name: string;
  title: string;
}

/**
 * One image backend. All methods throw `upstream_error` and `upstream_timeout` where the server fails, `address_not_allowed`
 * where it may not be called, and the reason of the signal when that fired.
 */
export interface Backend {
  /** Asks for a sign of life; what it throws says what is wrong. */
  check(signal: AbortSignal): Promise<void>;
  checkpoints(signal: AbortSignal): Promise<Checkpoint[]>;
  /** @throws {AppError} `unprocessable` when the order cannot be drawn as it is, with an issue for each reason */
  draw(order: DrawOrder, watch: DrawWatch): Promise<Drawn>;
}

/** Time limits of calls, in milliseconds. */
export interface BackendLimits {
  connectMs: number;
  /** For answers that need no drawing. */
  answerMs: number;
  /** Longest time in which nothing moves. */
  idleMs: number;
  /** For a whole picture; workflows that make videos take hours. */
  overallMs: number;
  /** Between two looks. */
  pollMs: number;
}

/** Limits for machines at home. */
export const BACKEND_LIMITS: BackendLimits = {
  connectMs: 5_000,
  answerMs: 30_000,
  idleMs: 15 * 60 * 1000,
  overallMs: 6 * 60 * 60 * 1000,
  pollMs: 1_000,
};
