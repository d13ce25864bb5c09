/** Starts, lists and cancels downloads of models. They run as background jobs: see download_job.ts. */
import { AppError, messageOf } from "../../errors.ts";
import type { JobRunner, JobSnapshot } from "../../jobs/job_runner.ts";
import {
  createInitialDetail,
  type DownloadDetail,
  type DownloadOptions,
  type DownloadParams,
  runDownload,
  totalBytes,
} from "./download_job.ts";
import { listShardPaths, type ModelFormat, parseFilePath, parseRepo, parseRole } from "../local/model_paths.ts";
import { type DownloadSubject, toDownloadKey } from "../local/models_folder.ts";
import { listDownloadFiles } from "../hub/repo_files.ts";

const KIND = "model_download";
/** Downloads at once; others wait in the order they were requested. */
const PARALLEL = 2;
/** States that are final. */
const ENDED = new Set<string>(["done", "failed", "cancelled"]);

/** Snapshot of a download. */
export interface Download extends JobSnapshot {
  /** `undefined` if the stored job can't be decrypted. */
  detail?: DownloadDetail;
}

/** Which model to download. */
export interface DownloadRequest {
  repo: string;
  format: ModelFormat;
  /** Any shard of a GGUF model; absent for MLX. */
  file?: string;
}

/** All downloads. */
export class Downloads {
  readonly #jobs: JobRunner;
  readonly #options: DownloadOptions;

  /** Resumes what an earlier process left, and removes parts that belong to no job. */
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
      options.log("warn", "Can't remove parts of old downloads", { error: messageOf(error) })
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
    // Without its first shard a model isn't listed, so that one is put in place last.
    const ordered = format === "gguf" ? [...files.slice(1), ...files.slice(0, 1)] : files;
    const params: DownloadParams = { ...subject, revision: found.revision, files: ordered };
    const job = await this.#jobs.start(KIND, {
      title: subject.file ?? subject.repo,
      params,
      key: toDownloadKey(subject),
      progress: { done: 0, total: totalBytes(files), unit: "bytes" },
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
    if (this.#jobs.get(id).kind !== KIND) throw new AppError("not_found", `There is no download "${id}"`);
    return toDownload(await this.#jobs.cancel(id));
  }

  /** Returns whether a running download will write to a path of the models folder, or below it. */
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
    throw new AppError("invalid_request", "An MLX model is downloaded whole: leave out the file");
  }
  if (file === undefined) throw new AppError("invalid_request", "A GGUF download needs the name of its file");
  const path = parseFilePath(file);
  if (!/\.gguf$/i.test(path) || parseRole(path) === "other") {
    throw new AppError("invalid_request", `Can't download "${file}": it isn't a model in GGUF format`);
  }
  return listShardPaths(path)[0]!;
}

function toDownload(job: JobSnapshot): Download {
  return { ...job, detail: job.detail as DownloadDetail | undefined };
}
