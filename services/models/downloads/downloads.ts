/**
 * Starts, lists and cancels downloads of models, and lists the files that each consists of. Downloads are background
 * jobs; see download_job.ts.
 */
import { AppError, getErrorMessage } from "../../errors.ts";
import type { JobRunner, JobSnapshot } from "../../jobs/job_runner.ts";
import {
  createInitialDetail,
  type DownloadDetail,
  type DownloadOptions,
  type DownloadParams,
  runDownload,
  sumBytes,
} from "./download_job.ts";
import {
  type DownloadSubject,
  type FileRole,
  findCompleteModels,
  findMissingWeights,
  isMlxFile,
  isSafePath,
  listShardPaths,
  type ModelFormat,
  parseFilePath,
  parseQuantization,
  parseRepo,
  parseRole,
  parseShard,
  toDownloadKey,
} from "../local/models_folder.ts";
import type { HubFile, HubRepo } from "../hub.ts";

const KIND = "model_download";
/** Number of concurrent downloads. Others wait in the order in which they were requested. */
const PARALLEL = 2;
/** States that are final. */
const ENDED = new Set<string>(["done", "failed", "cancelled"]);

/** Snapshot of a download. */
export interface Download extends JobSnapshot {
  /** `undefined` if the stored job can't be decrypted. */
  detail?: DownloadDetail;
}

/** The model to download. */
export interface DownloadRequest {
  repo: string;
  format: ModelFormat;
  /** Any shard of a GGUF model; absent for MLX. */
  file?: string;
}

/** Manages downloads. */
export class Downloads {
  readonly #jobs: JobRunner;
  readonly #options: DownloadOptions;

  /** Resumes downloads of an earlier process, and deletes partial files that don't belong to a job. */
  constructor(jobs: JobRunner, options: DownloadOptions) {
    this.#jobs = jobs;
    this.#options = options;
    const { folder } = options;
    jobs.register(KIND, {
      parallel: PARALLEL,
      resumable: true,
      run: (context) => runDownload(options, context),
      discard: (params) => folder.removeWorkFolder(toDownloadKey(params as DownloadParams)),
    });
    const known = this.list().flatMap(({ detail }) => detail === undefined ? [] : [toDownloadKey(detail)]);
    folder.sweep(new Set(known)).catch((error) =>
      options.log("warn", "Can't remove parts of old downloads", { error: getErrorMessage(error) })
    );
  }

  /**
   * Starts a download, or returns the running one of the same model.
   *
   * @throws {AppError} `invalid_request`, `not_found`, `unprocessable` and the errors of the hub.
   */
  async start({ repo, format, file }: DownloadRequest, signal: AbortSignal): Promise<Download> {
    const subject: DownloadSubject = { repo: parseRepo(repo), format, file: getFile(format, file) };
    const same = this.list().find((job) =>
      !ENDED.has(job.state) && job.detail !== undefined && toDownloadKey(job.detail) === toDownloadKey(subject)
    );
    if (same !== undefined) return same;
    const found = await this.#options.hub.getRepo(subject.repo, signal);
    const files = listDownloadFiles(found, format, subject.file);
    // A model without its first shard isn't listed, so that shard is renamed last.
    const ordered = format === "gguf" ? [...files.slice(1), ...files.slice(0, 1)] : files;
    const params: DownloadParams = { ...subject, revision: found.revision, files: ordered };
    const job = await this.#jobs.start(KIND, {
      title: subject.file ?? subject.repo,
      params,
      key: toDownloadKey(subject),
      progress: { done: 0, total: sumBytes(files), unit: "bytes" },
      detail: createInitialDetail(params),
    });
    return toDownload(job);
  }

  /** Lists running and recent downloads, newest first. */
  list(): Download[] {
    return this.#jobs.list().filter(({ kind }) => kind === KIND).map(toDownload);
  }

  /** Cancels a download and removes its parts. @throws {AppError} `not_found`; `conflict` if it has ended. */
  async cancel(id: string): Promise<Download> {
    if (this.#jobs.get(id).kind !== KIND) throw new AppError("not_found", `Download "${id}" not found`);
    return toDownload(await this.#jobs.cancel(id));
  }

  /** Returns whether a running download will write to a path in the models folder, or below it. */
  isWriting(path: string): boolean {
    return this.list().some(({ state, detail }) =>
      !ENDED.has(state) && detail?.files.some((file) => `${detail.repo}/${file.path}/`.startsWith(`${path}/`)) === true
    );
  }

  /**
   * Removes the failed downloads of a path with their parts.
   *
   * @returns Whether there were any.
   */
  async dropFailed(path: string): Promise<boolean> {
    const failed = this.list().filter(({ state, detail }) =>
      state === "failed" && detail !== undefined && getModelPath(detail) === path
    );
    for (const { id, detail } of failed) {
      await this.#options.folder.removeWorkFolder(toDownloadKey(detail!));
      await this.#jobs.forget(id);
    }
    return failed.length > 0;
  }
}

/** Returns the path under which the model will be listed. */
function getModelPath({ repo, file }: DownloadSubject): string {
  return file === undefined ? repo : `${repo}/${file}`;
}

function getFile(format: ModelFormat, file: string | undefined): string | undefined {
  if (format === "mlx") {
    if (file === undefined) return undefined;
    throw new AppError("invalid_request", "Can't download a single file of an MLX model: omit the file");
  }
  if (file === undefined) throw new AppError("invalid_request", "Can't download: the file of a GGUF model is required");
  const path = parseFilePath(file);
  if (!/\.gguf$/i.test(path) || parseRole(path) === "other") {
    throw new AppError("invalid_request", `Can't download "${file}": it isn't a model in GGUF format`);
  }
  return listShardPaths(path)[0]!;
}

function toDownload(job: JobSnapshot): Download {
  return { ...job, detail: job.detail as DownloadDetail | undefined };
}

/** A choice: a file, or all shards of a model. */
export interface DownloadCandidate {
  /** The file or the first shard. */
  path: string;
  /** Total size of all shards. */
  sizeBytes: number;
  sha256?: string;
  quantization?: string;
  shards?: string[];
  role: FileRole;
}

/** Maximum file size: the hub doesn't serve larger files over plain HTTP. Larger models are split. */
const MAX_FILE_BYTES = 50e9;

/** Lists the choices in a repository. Incomplete split models are skipped. */
export function listCandidates(repo: HubRepo, format: ModelFormat): DownloadCandidate[] {
  const files = listUsableFiles(repo, format);
  const whole = new Map(findCompleteModels(files).map((parts) => [parts[0]!.path, parts]));
  return files.flatMap((file): DownloadCandidate[] => {
    const { path, sizeBytes, sha256 } = file;
    if (format === "mlx") return [{ path, sizeBytes, sha256, role: isWeights(path) ? "model" : "other" }];
    const about = { path, quantization: parseQuantization(path), role: parseRole(path) } satisfies Partial<
      DownloadCandidate
    >;
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
 * @throws {AppError} `invalid_request` if a file is required; `not_found` if it doesn't exist; `unprocessable` if
 *   shards or weights are missing, or a file is too large or has an invalid path
 */
function listDownloadFiles(repo: HubRepo, format: ModelFormat, file: string | undefined): HubFile[] {
  const files = format === "mlx" ? listSnapshotFiles(repo) : listShards(repo, file);
  for (const { path, sizeBytes } of files) {
    if (sizeBytes > MAX_FILE_BYTES) {
      throw createError(repo, `"${path}" is larger than 50 GB, the hub's limit for one file`);
    }
  }
  return files;
}

function listShards(repo: HubRepo, file: string | undefined): HubFile[] {
  if (file === undefined) {
    throw new AppError("invalid_request", "Can't download: the name of the GGUF file is required");
  }
  const byPath = new Map(listUsableFiles(repo, "gguf").map((found) => [found.path, found]));
  if (!byPath.has(file)) throw new AppError("not_found", `File "${file}" not found in "${repo.repo}"`);
  return listShardPaths(file).map((path) => {
    const found = byPath.get(path);
    if (found === undefined) throw createError(repo, `its shard "${path}" is missing`);
    return found;
  });
}

function listSnapshotFiles(repo: HubRepo): HubFile[] {
  const odd = repo.files.find(({ path }) => isMlxFile(path) && !isSafePath(path));
  if (odd !== undefined) throw createError(repo, `"${odd.path}" isn't a valid file path`);
  const files = listUsableFiles(repo, "mlx");
  const names = new Set(files.map(({ path }) => path.toLowerCase()));
  if (names.size < files.length) throw createError(repo, "some of its file names differ only in case");
  if (!names.has("config.json")) throw createError(repo, 'it has no "config.json"');
  if (!files.some(({ path }) => isWeights(path))) throw createError(repo, "it has no weights in safetensors format");
  const missing = findMissingWeights(files.map(({ path }) => path));
  if (missing !== undefined) {
    throw createError(repo, `its weights "${missing}" are missing`);
  }
  // Last, because it makes the folder a model.
  return [...files.filter(({ path }) => path !== "config.json"), ...files.filter(({ path }) => path === "config.json")];
}

function listUsableFiles(repo: HubRepo, format: ModelFormat): HubFile[] {
  const isPartOf = (path: string) => format === "mlx" ? isMlxFile(path) : path.toLowerCase().endsWith(".gguf");
  return repo.files.filter(({ path }) => isPartOf(path) && isSafePath(path));
}

function isWeights(path: string): boolean {
  return path.endsWith(".safetensors");
}

function createError(repo: HubRepo, found: string): AppError {
  return new AppError("unprocessable", `Can't download from "${repo.repo}": ${found}`);
}
