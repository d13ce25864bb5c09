/**
 * Models on this machine: the hub, downloads, files on disk, and running a model. Also recommends models from a short
 * list that fit this machine's memory and disk.
 */
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { JobRunner } from "../jobs/job_runner.ts";
import type { Log } from "../log.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import { type DownloadCandidate, Downloads, listCandidates } from "./downloads/downloads.ts";
import { DEFAULT_LIMITS, type DownloadLimits } from "./downloads/file_download.ts";
import { type FoundRepo, Hub } from "./hub.ts";
import { LocalModels } from "./local/local_models.ts";
import { type ModelFormat, ModelsFolder, parseRepo } from "./local/models_folder.ts";
import type { RunnerTimes } from "./runner/llama_server.ts";
import { type OfferedConnection, Runner } from "./runner/runner.ts";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";

/** Dependencies of `Models`. */
export interface ModelsOptions {
  dataDir: string;
  /** `<datadir>/models` */
  folder: string;
  jobs: JobRunner;
  events: EventHub;
  log: Log;
  guard: Guard;
  /** Like for the guard: downloads open their own connections, under the same rules. */
  guardAllow: readonly string[];
  guardExactOrigins: readonly string[];
  ownListeners: OwnListeners;
  hubUrl: string;
  hubTokenFile: string | null;
  llamaServerPath: string | null;
  /** Adds the connection of the running model. */
  offer(connection: OfferedConnection): Promise<void>;
  /** Limits of downloads, for tests. */
  limits?: Partial<DownloadLimits>;
  times?: Partial<RunnerTimes>;
  measure?: (folder: string) => Promise<Machine>;
}

/** The files in a repository that can be chosen. */
export interface RepoListing {
  repo: string;
  revision: string;
  isGated: boolean;
  license: string | null;
  /** The web page of the repository. */
  page: string;
  /** True if it contains code, which is never downloaded. Some MLX models require it. */
  hasCode: boolean;
  files: DownloadCandidate[];
}

/** Searches, downloads, lists and runs models. */
export class Models {
  readonly downloads: Downloads;
  readonly local: LocalModels;
  readonly runner: Runner;
  readonly #hub: Hub;
  readonly #events: EventHub;
  readonly #folder: string;
  readonly #measure: (folder: string) => Promise<Machine>;

  /** Continues downloads of an earlier process. */
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
      ownListeners: options.ownListeners,
      limits: { ...DEFAULT_LIMITS, ...options.limits },
    });
    this.local = new LocalModels(folder, log);
    this.runner = new Runner({
      dataDir: options.dataDir,
      folder,
      local: this.local,
      events,
      log,
      times: options.times,
      offer: options.offer,
      programPath: options.llamaServerPath,
    });
  }

  /** Searches the hub; see `Hub.search`. */
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

  /** Lists the files of a repository in a format. @throws {AppError} `invalid_request`, and like `Hub.getRepo` */
  async listFiles(repo: string, format: ModelFormat, signal: AbortSignal): Promise<RepoListing> {
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
   * Deletes a model from the disk, and its failed downloads with their partial files. Stops it if it's running.
   *
   * @throws {AppError} `invalid_request`, `not_found`; `conflict` while it's being downloaded
   */
  async remove(path: string): Promise<void> {
    if (this.downloads.isWriting(path)) {
      throw new AppError("conflict", `Can't delete "${path}": it's being downloaded. Cancel the download first`);
    }
    const hasDropped = await this.downloads.dropFailed(path);
    const model = await this.local.get(path).catch((error) => {
      if (hasDropped && error instanceof AppError && error.code === "not_found") return undefined;
      throw error;
    });
    if (model !== undefined) {
      await this.runner.takeOver();
      if (this.runner.isUsing(model.path)) await this.runner.stop();
      await this.local.remove(model);
    }
    this.#events.publish({ kind: "local_model", id: "local" });
  }
}

/** Why a model is recommended. */
export type RecommendedLevel = "fast" | "balanced" | "best";

/** A model of the list. */
interface ListedModel {
  id: string;
  name: string;
  /** Repository on the hub, with GGUF files and without access restrictions. */
  repo: string;
  quantization: string;
  /** Approximate size of the file; the hub's list has the exact size. */
  sizeBytes: number;
  /** Part of the file that is read for each token: all of it, or the active experts. */
  activeShare: number;
}

/**
 * Instruction-tuned models that chat in English, German and Japanese without a reasoning phase, from small to large.
 * Sizes are those of the files on the hub in 2025.
 *
 * @see https://huggingface.co/ggml-org
 */
const MODELS: readonly ListedModel[] = [
  {
    id: "gemma-3-1b",
    name: "Gemma 3 1B",
    repo: "ggml-org/gemma-3-1b-it-GGUF",
    quantization: "Q4_K_M",
    sizeBytes: 806e6,
    activeShare: 1,
  },
  {
    id: "llama-3.2-3b",
    name: "Llama 3.2 3B",
    repo: "bartowski/Llama-3.2-3B-Instruct-GGUF",
    quantization: "Q4_K_M",
    sizeBytes: 2_019e6,
    activeShare: 1,
  },
  {
    id: "gemma-3-4b",
    name: "Gemma 3 4B",
    repo: "ggml-org/gemma-3-4b-it-GGUF",
    quantization: "Q4_K_M",
    sizeBytes: 2_490e6,
    activeShare: 1,
  },
  {
    id: "llama-3.1-8b",
    name: "Llama 3.1 8B",
    repo: "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
    quantization: "Q4_K_M",
    sizeBytes: 4_921e6,
    activeShare: 1,
  },
  {
    id: "gemma-3-12b",
    name: "Gemma 3 12B",
    repo: "ggml-org/gemma-3-12b-it-GGUF",
    quantization: "Q4_K_M",
    sizeBytes: 7_301e6,
    activeShare: 1,
  },
  {
    id: "gemma-3-27b",
    name: "Gemma 3 27B",
    repo: "ggml-org/gemma-3-27b-it-GGUF",
    quantization: "Q4_K_M",
    sizeBytes: 16_546e6,
    activeShare: 1,
  },
];

/** The facts that decide which models fit. */
export interface Machine {
  memoryBytes: number;
  /** Free space on the disk of the models folder. */
  freeDiskBytes: number;
  /** Estimated rate at which the processor reads memory, in bytes per second. */
  memoryRate: number;
}

/** A model that fits this machine. */
export interface RecommendedModel {
  id: string;
  name: string;
  repo: string;
  quantization: string;
  level: RecommendedLevel;
  sizeBytes: number;
  /** Memory that it needs while it's running. */
  memoryBytes: number;
  /** Rough estimate without a graphics card. */
  tokensPerSecond: number;
}

/** Context, buffers and the program itself, in bytes: about what llama.cpp uses for 8,192 tokens of a small model. */
const RUN_BYTES = 700e6;
/** Factor for the context, which grows with the model. */
const RUN_SHARE = 1.1;
/** Share of memory that a model can use. The rest is for the system and the browser. */
const MEMORY_SHARE = 0.75;
/** Space that a download leaves on the disk. */
const DISK_RESERVE_BYTES = 1e9;
/** Minimum speed in tokens per second. Slower replies are tedious to read. */
const MIN_RATE = 3;

/** Chooses up to three models that fit: the fastest, the best, and one in between. */
export function recommendModels(machine: Machine): RecommendedModel[] {
  const fitting = MODELS.flatMap((model) => {
    const { sizeBytes, activeShare } = model;
    const memoryBytes = sizeBytes * RUN_SHARE + RUN_BYTES;
    const tokensPerSecond = machine.memoryRate / (sizeBytes * activeShare);
    const fits = memoryBytes <= machine.memoryBytes * MEMORY_SHARE &&
      sizeBytes + DISK_RESERVE_BYTES <= machine.freeDiskBytes;
    return fits ? [{ model, memoryBytes, tokensPerSecond }] : [];
  });
  const quick = fitting.filter(({ tokensPerSecond }) => tokensPerSecond >= MIN_RATE);
  const usable = quick.length > 0 ? quick : fitting.slice(0, 1);
  const chosen: [RecommendedLevel, (typeof usable)[number] | undefined][] = [
    ["fast", usable[0]],
    ["balanced", usable.length > 2 ? usable[Math.floor(usable.length / 2)] : undefined],
    ["best", usable.length > 1 ? usable.at(-1) : undefined],
  ];
  return chosen.flatMap(([level, found]) => {
    if (found === undefined) return [];
    const { model: { id, name, repo, quantization, sizeBytes }, memoryBytes, tokensPerSecond } = found;
    return [{ id, name, repo, quantization, level, sizeBytes, memoryBytes, tokensPerSecond }];
  });
}

/**
 * Measures this machine.
 *
 * @param folder The models folder, which may not exist yet.
 * @throws {AppError} `internal` if the disk can't be read
 */
export async function measureMachine(folder: string): Promise<Machine> {
  const { total } = Deno.systemMemoryInfo();
  return {
    memoryBytes: Math.min(total, await readMemoryLimit()),
    freeDiskBytes: await readFreeDisk(folder),
    memoryRate: estimateMemoryRate(Deno.build.os, Deno.build.arch, navigator.hardwareConcurrency),
  };
}

/**
 * Returns the memory limit. A container may have less memory than its host.
 *
 * @see https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
 */
async function readMemoryLimit(): Promise<number> {
  const text = await Deno.readTextFile("/sys/fs/cgroup/memory.max").catch(() => "max");
  return Number(text.trim()) || Infinity;
}

/** Returns the free disk space. A missing folder will be created on the disk of its parent. */
async function readFreeDisk(folder: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch (cause) {
    const parent = dirname(folder);
    if ((cause as { code?: string }).code === "ENOENT" && parent !== folder) return readFreeDisk(parent);
    throw new AppError("internal", `Can't read the free space of "${folder}"`, { cause });
  }
}

/**
 * Estimates the memory bandwidth, which limits how fast a model writes: each token reads the whole model once. Apple's
 * processors reach 70 GB/s and more; two channels of DDR4 about 30 GB/s, to which a core contributes about 5.
 */
export function estimateMemoryRate(os: string, arch: string, cores: number): number {
  if (os === "darwin" && arch === "aarch64") return 70e9;
  return Math.min(30e9, Math.max(1, cores) * 5e9);
}
