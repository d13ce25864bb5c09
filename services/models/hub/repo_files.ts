/** What a repository offers: its files as one can choose them, and what belongs to a choice. */
import { AppError } from "../../errors.ts";
import type { HubFile, HubRepo } from "./hub.ts";
import {
  type FileRole,
  isMlxFile,
  isSafePath,
  missingWeights,
  type ModelFormat,
  parseShard,
  quantizationOf,
  roleOf,
  shardPaths,
  wholeShardGroups,
} from "../local/model_paths.ts";

/** One thing to choose: a file, or all shards of a model. */
export interface Candidate {
  /** Of the file, or of the first shard. */
  path: string;
  /** All shards together. */
  sizeBytes: number;
  sha256?: string;
  quantization?: string;
  shards?: string[];
  role: FileRole;
}

/** The hub's own client refuses larger files over plain HTTP; larger models are split. */
const MAX_FILE_BYTES = 50e9;

/** Gives what can be chosen from a repository; of sharded models only those that are whole. */
export function candidatesOf(repo: HubRepo, format: ModelFormat): Candidate[] {
  const files = usableFiles(repo, format);
  const whole = new Map(wholeShardGroups(files).map((parts) => [parts[0]!.path, parts]));
  return files.flatMap((file): Candidate[] => {
    const { path, sizeBytes, sha256 } = file;
    if (format === "mlx") return [{ path, sizeBytes, sha256, role: isWeights(path) ? "model" : "other" }];
    const about = { path, quantization: quantizationOf(path), role: roleOf(path) };
    if (parseShard(path) === undefined) return [{ ...about, sizeBytes, sha256 }];
    const parts = whole.get(path);
    if (parts === undefined) return [];
    const shards = parts.map((part) => part.path);
    return [{ ...about, sizeBytes: parts.reduce((sum, part) => sum + part.sizeBytes, 0), shards }];
  }).sort((a, b) => ROLE_ORDER.indexOf(a.role) - ROLE_ORDER.indexOf(b.role) || a.path.localeCompare(b.path));
}

const ROLE_ORDER: FileRole[] = ["model", "mmproj", "other"];

/**
 * Gives the files that one download brings: the shards of a GGUF model, or the MLX snapshot.
 *
 * @param file Any shard; not for MLX.
 * @throws {AppError} `invalid_request` when no file is named; `not_found` when there is none of that name;
 *   `unprocessable` when shards or weights are missing, or a file is too large or of a name that is no path here.
 */
export function filesToDownload(repo: HubRepo, format: ModelFormat, file: string | undefined): HubFile[] {
  const files = format === "mlx" ? snapshotOf(repo) : shardsOf(repo, file);
  for (const { path, sizeBytes } of files) {
    if (sizeBytes > MAX_FILE_BYTES) {
      throw cannot(repo, `"${path}" is larger than 50 GB, which the hub does not hand out in one piece`);
    }
  }
  return files;
}

function shardsOf(repo: HubRepo, file: string | undefined): HubFile[] {
  if (file === undefined) throw new AppError("invalid_request", "A GGUF download needs the name of the file");
  const byPath = new Map(usableFiles(repo, "gguf").map((found) => [found.path, found]));
  if (!byPath.has(file)) throw new AppError("not_found", `There is no file "${file}" in "${repo.repo}"`);
  return shardPaths(file).map((path) => {
    const found = byPath.get(path);
    if (found === undefined) throw cannot(repo, `"${path}" is missing, without which the other parts are of no use`);
    return found;
  });
}

function snapshotOf(repo: HubRepo): HubFile[] {
  const odd = repo.files.find(({ path }) => isMlxFile(path) && !isSafePath(path));
  if (odd !== undefined) throw cannot(repo, `"${odd.path}" cannot be a file here`);
  const files = usableFiles(repo, "mlx");
  const names = new Set(files.map(({ path }) => path.toLowerCase()));
  if (names.size < files.length) throw cannot(repo, "names of its files differ by letter case alone");
  if (!names.has("config.json")) throw cannot(repo, 'it has no "config.json"');
  if (!files.some(({ path }) => isWeights(path))) throw cannot(repo, "it has no weights in safetensors format");
  const missing = missingWeights(files.map(({ path }) => path));
  if (missing !== undefined) {
    throw cannot(repo, `"${missing}" is missing, without which the other weights are of no use`);
  }
  // Last in place: without it the folder is no model to anybody.
  return [...files.filter(({ path }) => path !== "config.json"), ...files.filter(({ path }) => path === "config.json")];
}

function usableFiles(repo: HubRepo, format: ModelFormat): HubFile[] {
  const belongs = (path: string) => format === "mlx" ? isMlxFile(path) : path.toLowerCase().endsWith(".gguf");
  return repo.files.filter(({ path }) => belongs(path) && isSafePath(path));
}

function isWeights(path: string): boolean {
  return path.endsWith(".safetensors");
}

function cannot(repo: HubRepo, found: string): AppError {
  return new AppError("unprocessable", `Cannot download from "${repo.repo}": ${found}`);
}
