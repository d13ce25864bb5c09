/** Parses responses of A1111's API, of which other servers implement only parts (docs/protocols/images.md#a1111). */
import type { Checkpoint } from "../backend.ts";

/** What is being drawn, by whomever. */
export interface A1111Progress {
  isBusy: boolean;
  /** 0 to 1. */
  share: number;
  step?: number;
  steps?: number;
  /** Another for every job. */
  jobMark: string;
  /** Base64. */
  preview?: string;
}

/** What came of a picture. */
export interface DrawnAnswer {
  base64?: string;
  seed?: number;
  /** The checkpoint it was drawn with. */
  checkpoint?: string;
}

/** Reads the list of checkpoints; `undefined` where it is none. */
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

/** The title carries a hash once that was computed, and an ending; the name does not change. */
export function nameOfCheckpoint(title: string): string {
  return title.replace(/\s*\[[0-9a-f]+\]$/i, "").replace(/^.*[\\/]/, "").replace(/\.(?:safetensors|ckpt|gguf)$/i, "");
}

/** Reads the answer of `/progress`; `undefined` where it is none. */
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

/** Reads the answer of `txt2img`. With several pictures a grid may come first, and `info` says where the picture is. */
export function drawnIn(json: unknown): DrawnAnswer {
  const { images, info } = (json ?? {}) as Record<string, unknown>;
  const told = parseInfo(info);
  const index = typeof told.index_of_first_image === "number" ? told.index_of_first_image : 0;
  const list = Array.isArray(images) ? images : [];
  return {
    base64: textOf(list[index] ?? list[0]),
    seed: typeof told.seed === "number" && told.seed >= 0 ? told.seed : undefined,
    checkpoint: textOf(told.sd_model_name),
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
