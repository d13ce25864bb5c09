/** Downloads of models as background jobs: asked for, listed, cancelled; what one does is in download_job.ts. */
import { AppError, messageOf } from "../../errors.ts";
import type { JobRunner, JobSnapshot } from "../../jobs/job_runner.ts";
import { type DownloadOptions, runDownload } from "./download_job.ts";
import { type DownloadDetail, type DownloadParams, initialDetail, totalBytes } from "./download_progress.ts";
import { listShardPaths, type ModelFormat, parseFilePath, parseRepo, parseRole } from "../local/model_paths.ts";
import { type DownloadSubject, toDownloadKey } from "../local/models_folder.ts";
import { listDownloadFiles } from "../hub/repo_files.ts";

const KIND = "model_download";
/** At once; the rest waits in the order it came. */
const PARALLEL = 2;
/** Free-standing names of the states in which a job will change no more. */
const ENDED = new Set<string>(["done", "failed", "cancelled"]);

/** A download as it is at one moment. */
export interface Download extends JobSnapshot {
  /** `undefined` when the stored job cannot be opened. */
  detail?: DownloadDetail;
}

/** What somebody asks for. */
export interface DownloadRequest {
  repo: string;
  format: ModelFormat;
  /** Of GGUF, any shard; of MLX none. */
  file?: string;
}

/** All downloads. */
export class Downloads {
  readonly #jobs: JobRunner;
  readonly #options: DownloadOptions;

  /** Takes up what an earlier process left; what no job speaks of any more is removed. */
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
      console.error(`Can't remove what old downloads left: ${messageOf(error)}`)
    );
  }

  /**
   * Starts a download, or gives the one that is under way for the same model.
   *
   * @throws {AppError} `invalid_request`, `not_found`, `unprocessable`, and what the hub refuses with.
   */
  async start({ repo, format, file }: DownloadRequest, signal: AbortSignal): Promise<Download> {
    const subject: DownloadSubject = { repo: parseRepo(repo), format, file: fileOf(format, file) };
    const same = this.list().find((job) =>
      !ENDED.has(job.state) && job.detail !== undefined && toDownloadKey(job.detail) === toDownloadKey(subject)
    );
    if (same !== undefined) return same;
    const found = await this.#options.hub.getRepo(subject.repo, signal);
    const files = listDownloadFiles(found, format, subject.file);
    // Shards after the first are of no use without it: it is put in place last.
    const ordered = format === "gguf" ? [...files.slice(1), ...files.slice(0, 1)] : files;
    const params: DownloadParams = { ...subject, revision: found.revision, files: ordered };
    const job = await this.#jobs.start(KIND, {
      title: subject.file ?? subject.repo,
      params,
      key: toDownloadKey(subject),
      progress: { done: 0, total: totalBytes(files), unit: "bytes" },
      detail: initialDetail(params),
    });
    return asDownload(job);
  }

  /** Gives active and recent downloads, newest first. */
  list(): Download[] {
    return this.#jobs.list().filter(({ kind }) => kind === KIND).map(asDownload);
  }

  /** Ends a download and removes its parts. @throws {AppError} `not_found`; `conflict` when it has ended */
  async cancel(id: string): Promise<Download> {
    if (this.#jobs.get(id).kind !== KIND) throw new AppError("not_found", `There is no download "${id}"`);
    return asDownload(await this.#jobs.cancel(id));
  }

  /** Says whether a download is under way that will put a file at a path below the models folder, or below that path. */
  isWriting(path: string): boolean {
    return this.list().some(({ state, detail }) =>
      !ENDED.has(state) && detail?.files.some((file) => `${detail.repo}/${file.path}/`.startsWith(`${path}/`)) === true
    );
  }

  /**
   * Takes the failed downloads of a path out of the list, with the parts they keep.
   *
   * @returns Whether there were any.
   */
  async dropFailed(path: string): Promise<boolean> {
    const failed = this.list().filter(({ state, detail }) =>
      state === "failed" && detail !== undefined && subjectPath(detail) === path
    );
    for (const { id, detail } of failed) {
      await this.#options.folder.removeWorkFolder(toDownloadKey(detail!));
      await this.#jobs.forget(id);
    }
    return failed.length > 0;
  }
}

/** Gives the path under which a download's model will be listed. */
function subjectPath({ repo, file }: DownloadSubject): string {
  return file === undefined ? repo : `${repo}/${file}`;
}

function fileOf(format: ModelFormat, file: string | undefined): string | undefined {
  if (format === "mlx") {
    if (file === undefined) return undefined;
    throw new AppError("invalid_request", "An MLX model is downloaded whole; leave the file out");
  }
  if (file === undefined) throw new AppError("invalid_request", "A GGUF download needs the name of its file");
  const path = parseFilePath(file);
  if (!/\.gguf$/i.test(path) || parseRole(path) === "other") {
    throw new AppError("invalid_request", `Can't download "${file}": it is no model in GGUF format`);
  }
  return listShardPaths(path)[0]!;
}

function asDownload(job: JobSnapshot): Download {
  return { ...job, detail: job.detail as DownloadDetail | undefined };
}
