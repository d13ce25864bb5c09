/** Names that come from outside and become paths: repositories of the hub, files in them, and what a file's name says of it. */
import { AppError } from "../../errors.ts";

/** What a model is stored as. */
export type ModelFormat = "gguf" | "mlx";

/** What a file is for. */
export type FileRole = "model" | "mmproj" | "other";

const REPO_PART = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$/;
const MAX_PATH = 512;
const MAX_SEGMENTS = 8;
const MAX_SEGMENT_BYTES = 200; // leaves room for our own endings below the 255 of usual file systems

/**
 * Checks the name of a repository: `owner/name`, of a few old ones `name` alone.
 *
 * @throws {AppError} `invalid_request`
 */
export function parseRepo(text: string): string {
  const parts = text.split("/");
  const isSound = parts.length <= 2 &&
    parts.every((part) => REPO_PART.test(part) && !part.includes("..") && !/[.]$/.test(part));
  if (!isSound) throw new AppError("invalid_request", `Cannot use "${text}" as a repository: expected owner/name`);
  return text;
}

/** Says whether a path inside a repository, or below the models folder, can be one of a file here on every system. */
export function isSafePath(path: string): boolean {
  if (path.length > MAX_PATH) return false;
  const segments = path.split("/");
  return segments.length <= MAX_SEGMENTS && segments.every(isSafeSegment);
}

/**
 * Checks a path that a client or the hub gave.
 *
 * @throws {AppError} `invalid_request`
 */
export function parseFilePath(text: string): string {
  if (!isSafePath(text)) throw new AppError("invalid_request", `Cannot use "${text}" as the path of a file`);
  return text;
}

// `%` is left out since a path that was encoded twice must not mean another place to somebody; the rest is Windows'.
// deno-lint-ignore no-control-regex
const UNSAFE_CHARACTER = /[\x00-\x1f\x7f\\%:*?"<>|\ufffd]/;
const DEVICE_NAME = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

function isSafeSegment(segment: string): boolean {
  return segment !== "" && !segment.startsWith(".") && !/[. ]$/.test(segment) && segment.isWellFormed() &&
    !UNSAFE_CHARACTER.test(segment) && !DEVICE_NAME.test(segment) &&
    new TextEncoder().encode(segment).length <= MAX_SEGMENT_BYTES;
}

/** Where a file stands in a model that was split into several; `stem` is what all of them begin with. */
export interface Shard {
  stem: string;
  number: number;
  count: number;
}

/** Reads the name of a shard, `…-00001-of-00003.gguf`. */
export function parseShard(path: string): Shard | undefined {
  const match = /^(.*?)-(\d{5})-of-(\d{5})\.gguf$/.exec(path);
  if (match === null) return undefined;
  const [number, count] = [Number(match[2]), Number(match[3])];
  return number >= 1 && number <= count ? { stem: match[1]!, number, count } : undefined;
}

/** Gives the names of all shards of the model that one belongs to, in order; of an unsplit file its own. */
export function shardPaths(path: string): string[] {
  const shard = parseShard(path);
  if (shard === undefined) return [path];
  const digits = (n: number) => String(n).padStart(5, "0");
  return Array.from(
    { length: shard.count },
    (_, n) => `${shard.stem}-${digits(n + 1)}-of-${digits(shard.count)}.gguf`,
  );
}

/**
 * Finds the split models of which every shard is there.
 *
 * The count in a name is a stranger's: names are made of it only where so many files are there.
 *
 * @returns Of each its shards in order.
 */
export function wholeShardGroups<T extends { path: string }>(files: readonly T[]): T[][] {
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

/** Gives the name of one file of split MLX weights that its siblings speak of and that is not there. */
export function missingWeights(paths: readonly string[]): string | undefined {
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

/** Gives the quantisation that the name of a GGUF file tells, or the name of its folder. */
export function quantizationOf(path: string): string | undefined {
  const last = (text: string) => [...text.matchAll(QUANTIZATION)].at(-1)?.[0];
  const cut = path.lastIndexOf("/");
  const found = last(path.slice(cut + 1).replace(/\.gguf$/i, "")) ?? last(path.slice(0, Math.max(0, cut)));
  return found?.toUpperCase().replace(/^FP/, "F");
}

/** Says what a GGUF file is for, by its name: a vision projector belongs to a model and is none, calibration data neither. */
export function roleOf(path: string): FileRole {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  if (!name.endsWith(".gguf")) return "other";
  if (name.startsWith("mmproj") || name.includes("-mmproj-")) return "mmproj";
  return name.includes("imatrix") ? "other" : "model";
}

/** What mlx-lm loads, by its own patterns (a `*` there passes slashes), without `*.py`, which is code of strangers. */
const MLX_PATTERNS = [
  /\.json$/,
  /^model.*\.safetensors$/,
  /^(tokenizer\.model|tiktoken\.model)$/,
  /\.tiktoken$/,
  /\.txt$/,
  /\.jsonl$/,
  /\.jinja$/,
];

/** Says whether a file of a repository belongs into its MLX snapshot. */
export function isMlxFile(path: string): boolean {
  return MLX_PATTERNS.some((pattern) => pattern.test(path));
}
