/** The files of a repository that can be downloaded, and the files each download consists of. */
import { AppError } from "../../errors.ts";
import type { HubFile, HubRepo } from "./hub.ts";
import {
  type FileRole,
  findCompleteModels,
  findMissingWeights,
  isMlxFile,
  isSafePath,
  listShardPaths,
  type ModelFormat,
  parseQuantization,
  parseRole,
  parseShard,
} from "../local/model_paths.ts";

/** One choice: a file, or all shards of a model. */
export interface DownloadCandidate {
  /** The file or the first shard. */
  path: string;
  /** Of all shards. */
  sizeBytes: number;
  sha256?: string;
  quantization?: string;
  shards?: string[];
  role: FileRole;
}

/** The hub doesn't serve larger files over plain HTTP. Larger models are split. */
const MAX_FILE_BYTES = 50e9;

/** Lists the choices in a repository. Incomplete split models are skipped. */
export function listCandidates(repo: HubRepo, format: ModelFormat): DownloadCandidate[] {
  const files = usableFiles(repo, format);
  const whole = new Map(findCompleteModels(files).map((parts) => [parts[0]!.path, parts]));
  return files.flatMap((file): DownloadCandidate[] => {
    const { path, sizeBytes, sha256 } = file;
    if (format === "mlx") return [{ path, sizeBytes, sha256, role: isWeights(path) ? "model" : "other" }];
    const about = { path, quantization: parseQuantization(path), role: parseRole(path) };
    if (parseShard(path) === undefined) return [{ ...about, sizeBytes, sha256 }];
    const parts = whole.get(path);
    if (parts === undefined) return [];
    const shards = parts.map((part) => part.path);
    return [{ ...about, sizeBytes: parts.reduce((sum, part) => sum + part.sizeBytes, 0), shards }];
  }).sort((a, b) => ROLE_ORDER.indexOf(a.role) - ROLE_ORDER.indexOf(b.role) || a.path.localeCompare(b.path));
}

const ROLE_ORDER: FileRole[] = ["model", "mmproj", "other"];

/**
 * Lists the files of one download: the shards of a GGUF model, or the MLX snapshot.
 *
 * @param file Any shard; not for MLX.
 * @throws {AppError} `invalid_request` if no file is named; `not_found` if it doesn't exist; `unprocessable` if shards or weights
 *   are missing, or a file is too large or has an invalid path
 */
export function listDownloadFiles(repo: HubRepo, format: ModelFormat, file: string | undefined): HubFile[] {
  const files = format === "mlx" ? listSnapshotFiles(repo) : listShards(repo, file);
  for (const { path, sizeBytes } of files) {
    if (sizeBytes > MAX_FILE_BYTES) {
      throw createError(repo, `"${path}" is larger than 50 GB, the hub's limit for one file`);
    }
  }
  return files;
}

function listShards(repo: HubRepo, file: string | undefined): HubFile[] {
  if (file === undefined) throw new AppError("invalid_request", "The name of the GGUF file is required");
  const byPath = new Map(usableFiles(repo, "gguf").map((found) => [found.path, found]));
  if (!byPath.has(file)) throw new AppError("not_found", `File "${file}" doesn't exist in "${repo.repo}"`);
  return listShardPaths(file).map((path) => {
    const found = byPath.get(path);
    if (found === undefined) throw createError(repo, `its shard "${path}" is missing`);
    return found;
  });
}

function listSnapshotFiles(repo: HubRepo): HubFile[] {
  const odd = repo.files.find(({ path }) => isMlxFile(path) && !isSafePath(path));
  if (odd !== undefined) throw createError(repo, `"${odd.path}" isn't a valid file path`);
  const files = usableFiles(repo, "mlx");
  const names = new Set(files.map(({ path }) => path.toLowerCase()));
  if (names.size < files.length) throw createError(repo, "some of its file names differ only in case");
  if (!names.has("config.json")) throw createError(repo, 'it has no "config.json"');
  if (!files.some(({ path }) => isWeights(path))) throw createError(repo, "it has no weights in safetensors format");
  const missing = findMissingWeights(files.map(({ path }) => path));
  if (missing !== undefined) {
    throw createError(repo, `its weights "${missing}" are missing`);
  }
  // Last, because the folder becomes a model with it.
  return [...files.filter(({ path }) => path !== "config.json"), ...files.filter(({ path }) => path === "config.json")];
}

function usableFiles(repo: HubRepo, format: ModelFormat): HubFile[] {
  const belongs = (path: string) => format === "mlx" ? isMlxFile(path) : path.toLowerCase().endsWith(".gguf");
  return repo.files.filter(({ path }) => belongs(path) && isSafePath(path));
}

function isWeights(path: string): boolean {
  return path.endsWith(".safetensors");
}

function createError(repo: HubRepo, found: string): AppError {
  return new AppError("unprocessable", `Can't download from "${repo.repo}": ${found}`);
}
