/**
 * The models folder: safe paths inside it, never through a symbolic link, and a work folder for downloads. Names of
 * repositories and files come from clients and the hub; they're validated and show what a file is.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { AppError, getErrorMessage } from "../../errors.ts";
import { syncFolder, toFileError } from "../../storage/atomic_file.ts";

/** Folder for incomplete downloads. No repository or file can have this name. */
const WORK_FOLDER = ".parts";

/** What a download is for. The same subject has the same key, regardless of the commit. */
export interface DownloadSubject {
  repo: string;
  format: ModelFormat;
  /** For GGUF the file or its first shard; `undefined` for MLX. */
  file?: string;
}

/** Returns the key of a subject, which is the name of its work folder. */
export function toDownloadKey({ repo, format, file = "" }: DownloadSubject): string {
  return createHash("sha256").update(JSON.stringify([repo, format, file])).digest("hex").slice(0, 32);
}

/** `<datadir>/models`. */
export class ModelsFolder {
  /** Absolute path. */
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Returns the absolute path of a relative one.
   *
   * @throws {AppError} `invalid_request` if the path is invalid
   */
  resolve(path: string): string {
    if (!isSafePath(path)) throw new AppError("invalid_request", `"${path}" isn't a valid path in the models folder`);
    return join(this.path, ...path.split("/"));
  }

  /** Returns the work folder of a download. */
  getWorkFolder(key: string): string {
    return join(this.path, WORK_FOLDER, key);
  }

  /** Creates a download's work folder. @throws {AppError} `storage_full`, `internal` */
  async makeWorkFolder(key: string): Promise<string> {
    await this.#makeFolders([WORK_FOLDER, key]);
    return this.getWorkFolder(key);
  }

  /** Deletes a download's work folder if it exists. @throws {AppError} `internal` */
  async removeWorkFolder(key: string): Promise<void> {
    await removeIfExists(this.getWorkFolder(key));
  }

  /** Deletes the work folders of all other downloads. */
  async sweep(keys: ReadonlySet<string>): Promise<void> {
    for await (const { name } of readDirIfExists(join(this.path, WORK_FOLDER))) {
      if (!keys.has(name)) await this.removeWorkFolder(name);
    }
  }

  /** Moves a complete file to its final path, durably. @throws {AppError} `storage_full`, `internal` */
  async moveIntoPlace(partPath: string, path: string): Promise<void> {
    const target = this.resolve(path);
    const folders = path.split("/").slice(0, -1);
    await this.#makeFolders(folders);
    try {
      await Deno.rename(partPath, target);
      await syncFolder(join(this.path, ...folders));
    } catch (cause) {
      throw toFileError(`Can't move the file to "${target}"`, cause);
    }
  }

  /** Creates folders. Rejects links, which could lead out of the models folder. */
  async #makeFolders(names: string[]): Promise<void> {
    let folder = this.path;
    for (const name of ["", ...names]) {
      folder = join(folder, name);
      try {
        await Deno.mkdir(folder, { mode: 0o700 });
      } catch (cause) {
        if (!(cause instanceof Deno.errors.AlreadyExists)) {
          throw toFileError(`Can't create the folder "${folder}"`, cause);
        }
        if (!(await Deno.lstat(folder)).isDirectory) {
          throw new AppError("internal", `Can't use "${folder}": it isn't a folder`);
        }
      }
    }
  }
}

/** Lists a folder. A missing folder is empty. @throws {AppError} `internal` if it can't be read */
export async function* readDirIfExists(folder: string): AsyncGenerator<Deno.DirEntry> {
  try {
    yield* Deno.readDir(folder);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound || cause instanceof Deno.errors.NotADirectory) return;
    throw new AppError("internal", `Can't read the folder "${folder}": ${getErrorMessage(cause)}`, { cause });
  }
}

/** Returns the metadata of a file, or `undefined` if it doesn't exist. @throws {AppError} `internal` */
export async function statIfExists(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.lstat(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw toFileError(`Can't access "${path}"`, cause);
  }
}

/** Deletes a file or a folder with its content, if it exists. @throws {AppError} `internal` */
export async function removeIfExists(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) throw toFileError(`Can't delete "${path}"`, cause);
  }
}

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
  if (!isValid) throw new AppError("invalid_request", `"${text}" isn't a repository: expected owner/name`);
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
  if (!isSafePath(text)) throw new AppError("invalid_request", `"${text}" isn't a valid file path`);
  return text;
}

// `%`, because a path that is encoded twice must not refer to another file. The others are reserved on Windows.
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
  const padDigits = (n: number) => String(n).padStart(5, "0");
  return Array.from(
    { length: shard.count },
    (_, n) => `${shard.stem}-${padDigits(n + 1)}-of-${padDigits(shard.count)}.gguf`,
  );
}

/**
 * Finds the split models that are complete.
 *
 * The count in a name is untrusted, so lists of that length are never created.
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

/**
 * The files that mlx-lm loads, by its own patterns (where `*` matches slashes), without `*.py`: code is never
 * downloaded.
 */
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
