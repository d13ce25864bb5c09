/** Everything about models that lie here or could: the hub, downloads, what is on disk, and running one. */
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { JobRunner } from "../jobs/job_runner.ts";
import type { Log } from "../log.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import { Downloads } from "./downloads/downloads.ts";
import { DEFAULT_LIMITS, type DownloadLimits } from "./downloads/file_download.ts";
import { type FoundRepo, Hub } from "./hub/hub.ts";
import { LocalModels } from "./local/local_models.ts";
import { type ModelFormat, parseRepo } from "./local/model_paths.ts";
import { ModelsFolder } from "./local/models_folder.ts";
import { type DownloadCandidate, listCandidates } from "./hub/repo_files.ts";
import { type Machine, measureMachine, type RecommendedModel, recommendModels } from "./recommended.ts";
import type { RunnerTimes } from "./runner/model_supervisor.ts";
import { type OfferedConnection, Runner } from "./runner/runner.ts";

/** What the models need. */
export interface ModelsOptions {
  /** `<datadir>/models` */
  folder: string;
  jobs: JobRunner;
  events: EventHub;
  log: Log;
  guard: Guard;
  /** As the guard was opened with: downloads connect by themselves, under the same rules. */
  guardAllow: readonly string[];
  guardExactOrigins: readonly string[];
  hubUrl: string;
  hubTokenFile: string | null;
  llamaServerPath: string | null;
  /** Makes the running model's connection known. */
  offer(connection: OfferedConnection): Promise<void>;
  /** How patient to be; for tests. */
  limits?: Partial<DownloadLimits>;
  times?: Partial<RunnerTimes>;
  measure?: (folder: string) => Promise<Machine>;
}

/** The files of a repository that can be chosen. */
export interface RepoListing {
  repo: string;
  revision: string;
  isGated: boolean;
  license: string | null;
  /** Its page on the hub, for people. */
  page: string;
  /** True when it holds programs, which are never downloaded: an MLX model may want them. */
  hasCode: boolean;
  files: DownloadCandidate[];
}

/** The models. */
export class Models {
  readonly downloads: Downloads;
  readonly local: LocalModels;
  readonly runner: Runner;
  readonly #hub: Hub;
  readonly #events: EventHub;
  readonly #folder: string;
  readonly #measure: (folder: string) => Promise<Machine>;

  /** Takes up downloads that an earlier process left. */
  constructor(options: ModelsOptions) {
    const { jobs, events, log, guard } = options;
    const folder = new ModelsFolder(options.folder);
    this.#events = events;
    this.#folder = options.folder;
    this.#measure = options.measure ?? measureMachine;
    this.#hub = new Hub({ guard, url: options.hubUrl, tokenFile: options.hubTokenFile });
    this.downloads = new Downloads(jobs, {
      hub: this.#hub,
      folder,
      log,
      policy: { allow: [...options.guardAllow], exactOrigins: [...options.guardExactOrigins] },
      limits: { ...DEFAULT_LIMITS, ...options.limits },
    });
    this.local = new LocalModels(folder, log);
    this.runner = new Runner({
      folder,
      local: this.local,
      events,
      log,
      times: options.times,
      offer: options.offer,
      programPath: options.llamaServerPath,
    });
  }

  /** Searches the hub; as `Hub.search`. */
  search(
    request: { query: string; format: ModelFormat; cursor?: string },
    signal: AbortSignal,
  ): Promise<{ items: FoundRepo[]; nextCursor: string | null }> {
    return this.#hub.search(request, signal);
  }

  /** Returns up to three models that fit this machine. @throws {AppError} `internal` */
  async recommend(): Promise<{ machine: Machine; items: RecommendedModel[] }> {
    const machine = await this.#measure(this.#folder);
    return { machine, items: recommendModels(machine) };
  }

  /** Lists what a repository offers in a format. @throws {AppError} `invalid_request`, and as `Hub.repo` */
  async files(repo: string, format: ModelFormat, signal: AbortSignal): Promise<RepoListing> {
    const found = await this.#hub.getRepo(parseRepo(repo), signal);
    const { revision, isGated, license } = found;
    const hasCode = format === "mlx" && found.files.some(({ path }) => path.endsWith(".py"));
    return {
      repo,
      revision,
      isGated,
      license,
      page: this.#hub.getPageUrl(repo),
      hasCode,
      files: listCandidates(found, format),
    };
  }

  /**
   * Removes a model from the disk, and failed downloads of it with the parts they keep.
   *
   * @throws {AppError} `invalid_request`, `not_found`; `conflict` while it runs or is downloaded
   */
  async remove(path: string): Promise<void> {
    if (this.downloads.isWriting(path)) {
      throw new AppError("conflict", `Can't delete "${path}": it is being downloaded; cancel that first`);
    }
    const hasDropped = await this.downloads.dropFailed(path);
    const model = await this.local.get(path).catch((error) => {
      if (hasDropped && error instanceof AppError && error.code === "not_found") return undefined;
      throw error;
    });
    if (model !== undefined) {
      if (this.runner.isUsing(model.path)) {
        throw new AppError("conflict", `Can't delete "${path}": it is running; stop it first`);
      }
      await this.local.remove(model);
    }
    this.#events.publish({ kind: "local_model", id: "local" });
  }
}
