/** Parses responses of A1111's API leniently: compatible servers omit many fields (docs/protocols/images.md, "A1111"). */
import type { Checkpoint } from "../backend.ts";

/** Progress of the current image, which may be another client's. */
export interface A1111Progress {
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
export interface A1111Result {
  base64?: string;
  seed?: number;
  /** The checkpoint that was used. */
  checkpoint?: string;
}

/** Parses the list of checkpoints. Returns undefined if it isn't one. */
export function parseCheckpoints(bytes: Uint8Array): Checkpoint[] | undefined {
  let list: unknown;
  try {
    list = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
  if (!Array.isArray(list)) return undefined;
  return list.flatMap((entry) => {
    const name = textOf(entry?.model_name) ?? textOf(entry?.title);
    return name === undefined ? [] : [{ name, title: textOf(entry.title) ?? name }];
  });
}

/** Returns the part of a title that never changes. A title includes a file extension, and a hash once it is computed. */
export function toCheckpointName(title: string): string {
  return title.replace(/\s*\[[0-9a-f]+\]$/i, "").replace(/^.*[\\/]/, "").replace(/\.(?:safetensors|ckpt|gguf)$/i, "");
}

/** Parses a response of `/progress`. Returns undefined if it isn't one. */
export function parseProgress(json: unknown): A1111Progress | undefined {
  const { progress, state, current_image: preview } = (json ?? {}) as Record<string, unknown>;
  if (typeof progress !== "number") return undefined;
  const { job, job_count: jobCount, job_timestamp: timestamp, sampling_step: step, sampling_steps: steps } =
    (typeof state === "object" && state !== null ? state : {}) as Record<string, unknown>;
  const share = Math.min(Math.max(progress, 0), 1);
  return {
    isBusy: share > 0 || (typeof jobCount === "number" && jobCount > 0) || (typeof job === "string" && job !== ""),
    share,
    ...(typeof step === "number" && typeof steps === "number" && steps > 0 && { step, steps }),
    jobMark: String(timestamp ?? ""),
    preview: textOf(preview),
  };
}

/** Parses a response of `txt2img`. A grid of all images may come first; `info` has the index of the first image. */
export function parseResult(json: unknown): A1111Result {
  const { images, info } = (json ?? {}) as Record<string, unknown>;
  const details = parseInfo(info);
  const index = typeof details.index_of_first_image === "number" ? details.index_of_first_image : 0;
  const list = Array.isArray(images) ? images : [];
  return {
    base64: textOf(list[index] ?? list[0]),
    seed: typeof details.seed === "number" && details.seed >= 0 ? details.seed : undefined,
    checkpoint: textOf(details.sd_model_name),
  };
}

function parseInfo(info: unknown): Record<string, unknown> {
  try {
    const value = typeof info === "string" && info !== "" ? JSON.parse(info) : undefined;
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
