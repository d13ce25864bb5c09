/** Validates repository names and file paths from clients and the hub, and parses what file names say. */
import { AppError } from "../../errors.ts";

/** The format of a model. */
export type ModelFormat = "gguf" | "mlx";

/** The role of a file. */
export type FileRole = "model" | "mmproj" | "other";

const REPO_PART = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$/;
const MAX_PATH = 512;
const MAX_SEGMENTS = 8;
const MAX_SEGMENT_BYTES = 200; // file systems allow 255; leaves space for our suffixes

/**
 * Validates the name of a repository: `owner/name`, or `name` for a few old ones.
 *
 * @throws {AppError} `invalid_request`
 */
export function parseRepo(text: string): string {
  const parts = text.split("/");
  const isValid = parts.length <= 2 &&
    parts.every((part) => REPO_PART.test(part) && !part.includes("..") && !/[.]$/.test(part));
  if (!isValid) throw new AppError("invalid_request", `"${text}" is not a repository. Expected owner/name.`);
  return text;
}

/** Reports whether a relative path is valid on every operating system. */
export function isSafePath(path: string): boolean {
  if (path.length > MAX_PATH) return false;
  const segments = path.split("/");
  return segments.length <= MAX_SEGMENTS && segments.every(isSafeSegment);
}

/**
 * Validates a relative path from a client or the hub.
 *
 * @throws {AppError} `invalid_request`
 */
export function parseFilePath(text: string): string {
  if (!isSafePath(text)) throw new AppError("invalid_request", `"${text}" is not a valid file path`);
  return text;
}

// `%`, because a path that is encoded twice must not mean another file; the others are reserved on Windows.
// deno-lint-ignore no-control-regex
const UNSAFE_CHARACTER = /[\x00-\x1f\x7f\\%:*?"<>|\ufffd]/;
const DEVICE_NAME = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

function isSafeSegment(segment: string): boolean {
  return segment !== "" && !segment.startsWith(".") && !/[. ]$/.test(segment) && segment.isWellFormed() &&
    !UNSAFE_CHARACTER.test(segment) && !DEVICE_NAME.test(segment) &&
    new TextEncoder().encode(segment).length <= MAX_SEGMENT_BYTES;
}

/** One file of a split model. `stem` is the common start of all file names. */
export interface Shard {
  stem: string;
  number: number;
  count: number;
}

/** Parses the name of a shard, `…-00001-of-00003.gguf`. */
export function parseShard(path: string): Shard | undefined {
  const match = /^(.*?)-(\d{5})-of-(\d{5})\.gguf$/.exec(path);
  if (match === null) return undefined;
  const [number, count] = [Number(match[2]), Number(match[3])];
  return number >= 1 && number <= count ? { stem: match[1]!, number, count } : undefined;
}

/** Lists all shards of a file's model in order; an unsplit file is its only shard. */
export function listShardPaths(path: string): string[] {
  const shard = parseShard(path);
  if (shard === undefined) return [path];
  const digits = (n: number) => String(n).padStart(5, "0");
  return Array.from(
    { length: shard.count },
    (_, n) => `${shard.stem}-${digits(n + 1)}-of-${digits(shard.count)}.gguf`,
  );
}

/**
 * Finds the split models that are complete.
 *
 * The count in a name is untrusted, so no list of that length is created.
 *
 * @returns The shards of each model in order.
 */
export function findCompleteModels<T extends { path: string }>(files: readonly T[]): T[][] {
  const groups = new Map<string, { count: number; parts: Map<number, T> }>();
  for (const file of files) {
    const shard = parseShard(file.path);
    if (shard === undefined) continue;
    const key = `${shard.count} ${shard.stem}`;
    const group = groups.get(key) ?? { count: shard.count, parts: new Map<number, T>() };
    group.parts.set(shard.number, file);
    groups.set(key, group);
  }
  return [...groups.values()].filter(({ count, parts }) => parts.size === count)
    .map(({ parts }) => [...parts].sort(([a], [b]) => a - b).map(([, file]) => file));
}

/** Finds a missing file of split MLX weights, according to the names of the others. */
export function findMissingWeights(paths: readonly string[]): string | undefined {
  const groups = new Map<string, { stem: string; total: string; numbers: Set<number> }>();
  for (const path of paths) {
    const [, stem, number, total] = /^(.*)-(\d{5})-of-(\d{5})\.safetensors$/.exec(path) ?? [];
    if (stem === undefined || number === undefined || total === undefined) continue;
    const group = groups.get(`${total} ${stem}`) ?? { stem, total, numbers: new Set<number>() };
    group.numbers.add(Number(number));
    groups.set(`${total} ${stem}`, group);
  }
  for (const { stem, total, numbers } of groups.values()) {
    for (let n = 1; n <= Number(total); n++) {
      if (!numbers.has(n)) return `${stem}-${String(n).padStart(5, "0")}-of-${total}.safetensors`;
    }
  }
  return undefined;
}

const QUANTIZATION = /(?:UD-)?(?:I?Q\d(?:_[0-9KMSLX]+)*|TQ\d_\d|MXFP4|BF16|FP?16|FP?32)(?=$|[^A-Za-z0-9])/gi;

/** Parses the quantization from the name of a GGUF file, or of its folder. */
export function parseQuantization(path: string): string | undefined {
  const last = (text: string) => [...text.matchAll(QUANTIZATION)].at(-1)?.[0];
  const cut = path.lastIndexOf("/");
  const found = last(path.slice(cut + 1).replace(/\.gguf$/i, "")) ?? last(path.slice(0, Math.max(0, cut)));
  return found?.toUpperCase().replace(/^FP/, "F");
}

/** Parses the role of a GGUF file from its name. Vision projectors and calibration data are not models. */
export function parseRole(path: string): FileRole {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  if (!name.endsWith(".gguf")) return "other";
  if (name.startsWith("mmproj") || name.includes("-mmproj-")) return "mmproj";
  return name.includes("imatrix") ? "other" : "model";
}

/** The files mlx-lm loads, by its own patterns (where `*` matches slashes), without `*.py`: we don't download code. */
const MLX_PATTERNS = [
  /\.json$/,
  /^model.*\.safetensors$/,
  /^(tokenizer\.model|tiktoken\.model)$/,
  /\.tiktoken$/,
  /\.txt$/,
  /\.jsonl$/,
  /\.jinja$/,
];

/** Reports whether a file of a repository belongs to its MLX snapshot. */
export function isMlxFile(path: string): boolean {
  return MLX_PATTERNS.some((pattern) => pattern.test(path));
}
