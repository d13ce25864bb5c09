/**
 * Runs one local model with llama.cpp's server: starts, watches, restarts and stops it, and reports its status. The server
 * outlives Parlor for a while, and is taken over by the next one.
 */
import { basename, join } from "node:path";
import { raceAbort } from "../../async/delay.ts";
import { Mutex } from "../../async/locks.ts";
import { AppError, getErrorMessage } from "../../errors.ts";
import type { EventHub } from "../../events/event_hub.ts";
import type { Log } from "../../log.ts";
import { readFileIfExists, writeFileAtomic } from "../../storage/atomic_file.ts";
import type { LocalModel, LocalModels } from "../local/local_models.ts";
import { type ModelsFolder, removeIfExists } from "../local/models_folder.ts";
import {
  createLlamaCommand,
  findLlamaServer,
  HOW_TO_GET,
  keepRunning,
  LEAVE_RUNNING,
  type LlamaOptions,
  LlamaServer,
  notFound,
  type RunnerTimes,
  SUPERVISOR_TIMES,
} from "./llama_server.ts";
import { LeftServerFile } from "./left_server.ts";

/** State of the runner. */
export type RunnerState = "stopped" | "starting" | "running" | "failed";

/** The model to run, and its settings. */
export interface RunRequest {
  /** Path of the model, as listed. */
  path: string;
  /** Number of tokens; by default the model's trained size, at most 8,192. */
  contextSize?: number;
  gpuLayers?: number;
  /** Minutes without a chat after which it's stopped; 0 for never. */
  idleMinutes?: number;
}

/** Additional options of a run. */
interface RunOptions {
  /** Activates its connection as soon as it's ready. */
  activate?: boolean;
}

/** The settings of a run, with defaults filled in. */
export interface RunSettings extends RunRequest {
  contextSize: number;
  idleMinutes: number;
}

/** Status of the runner. */
export interface RunnerStatus {
  state: RunnerState;
  /** `null` if the program wasn't found. */
  program: string | null;
  /** How to install the program if it's missing. */
  advice?: string;
  /** Settings of the running model, or of the last one. */
  settings?: RunSettings;
  /** Memory of the server while it's running. */
  memoryBytes?: number;
  startedAtMs?: number;
  /** Number of restarts after crashes. */
  restarts: number;
  /** Why it failed, or was stopped automatically. */
  error?: string;
  /** The last lines of its output, oldest first. */
  log: readonly string[];
}

/** The connection for the model. */
export interface OfferedConnection {
  name: string;
  baseUrl: string;
  apiKey: string;
  model: string;
  contextSize: number;
  /** True if it should become the active connection. */
  activate: boolean;
}

/** The dependencies of the runner. */
export interface RunnerDeps {
  /** The data folder, for what the next Parlor must know. */
  dataDir: string;
  folder: ModelsFolder;
  local: LocalModels;
  /** `llama_server_path` */
  programPath: string | null;
  /** Adds the connection, or updates its address. */
  offer(connection: OfferedConnection): Promise<void>;
  events: Pick<EventHub, "publish">;
  log: Log;
  times?: Partial<RunnerTimes>;
}

const SHOWN_LINES = 40;
/** Port in the command for manual use. */
const USUAL_PORT = 8080;

type ModelPaths = Pick<LlamaOptions, "modelPath" | "projectorPath">;

interface Run {
  settings: RunSettings;
  model: LocalModel;
  /** True until the connection was added once. */
  activate: boolean;
  abort: AbortController;
  /** Resolves when it's ready; rejects if it fails. */
  ready: Promise<void>;
  /** Resolves when the run has ended. */
  over: Promise<void>;
}

/** A run that begins. */
interface NewRun {
  program: string;
  settings: RunSettings;
  model: LocalModel;
  paths: ModelPaths;
  /** Activates its connection as soon as it's ready. */
  activate?: boolean;
  /** Taken over from an earlier Parlor. */
  server?: LlamaServer;
}

/** Runs at most one model. */
export class Runner {
  readonly #options: RunnerDeps;
  readonly #times: RunnerTimes;
  #run: Run | undefined;
  #status: Omit<RunnerStatus, "program" | "log"> = { state: "stopped", restarts: 0 };
  /** Output of the last start. */
  #lines: readonly string[] = [];
  readonly #usage = { atMs: 0 };
  /** Serializes starts and stops. */
  readonly #lock = new Mutex();
  /** Set while a chat restarts the model; other chats wait for it. */
  #waking: Promise<void> | undefined;
  readonly #closing = new AbortController();
  readonly #memory: RunMemory;
  readonly #left: LeftServerFile;
  #takingOver: Promise<void> | undefined;

  constructor(options: RunnerDeps) {
    this.#options = options;
    this.#memory = new RunMemory(options.folder);
    this.#left = new LeftServerFile(options.dataDir);
    this.#times = { ...SUPERVISOR_TIMES, ...options.times };
  }

  /** Takes over the server that an earlier Parlor left, if there is one. Everything else here waits for that. */
  takeOver(): Promise<void> {
    return this.#takingOver ??= this.#lock.run(() => this.#takeOver()).catch((error) => {
      this.#options.log("warn", "Can't take over the local model of the last run", { error: getErrorMessage(error) });
    });
  }

  async #takeOver(): Promise<void> {
    const { signal } = this.#closing;
    const left = await this.#left.load();
    if (left === undefined || signal.aborted) return;
    const { settings, program } = left;
    const server = await LlamaServer.takeOver(left, this.#times.healthMs, signal);
    if (server === undefined) return await this.#left.clear();
    try {
      const model = await this.#getModel(settings.path);
      this.#begin({ program, settings, model, paths: await this.#getPaths(model), server });
      this.#options.log("info", "Took over the local model of the last run", { path: settings.path });
    } catch (error) {
      await server.stop(); // Its file was deleted
      await this.#left.clear();
      throw error;
    }
  }

  /** Returns the current status. */
  async getStatus(): Promise<RunnerStatus> {
    await this.takeOver();
    return await this.#createStatus();
  }

  async #createStatus(): Promise<RunnerStatus> {
    const program = await findLlamaServer(this.#options.programPath) ?? null;
    return {
      ...this.#status,
      program,
      ...(program === null && { advice: HOW_TO_GET }),
      log: this.#lines.slice(-SHOWN_LINES),
    };
  }

  /** Returns the command to run a model manually. @throws {AppError} `invalid_request`, `not_found` */
  async createCommand(path: string): Promise<string> {
    const model = await this.#getModel(path);
    const program = await findLlamaServer(this.#options.programPath);
    const settings = waitForStop({ path }, model);
    return createLlamaCommand(program, {
      ...await this.#getPaths(model),
      port: USUAL_PORT,
      contextSize: settings.contextSize,
    });
  }

  /**
   * Starts a model and stops the running one. Returns before it's ready.
   *
   * @throws {AppError} `not_available` if llama-server isn't found, with instructions to install it; `not_found`,
   *   `invalid_request`
   */
  async run(request: RunRequest, { activate = false }: RunOptions = {}): Promise<RunnerStatus> {
    await this.takeOver();
    return await this.#lock.run(async () => {
      if (this.#closing.signal.aborted) throw new AppError("not_available", "The server is shutting down");
      const model = await this.#getModel(request.path);
      const program = await findLlamaServer(this.#options.programPath);
      if (program === undefined) throw notFound(this.#options.programPath);
      await this.#end();
      const settings = waitForStop(request, model);
      await this.#memory.save(settings);
      this.#begin({ program, settings, model, paths: await this.#getPaths(model), activate });
      return await this.#createStatus();
    });
  }

  /** Stops the model and waits for its end. */
  async stop(): Promise<RunnerStatus> {
    await this.takeOver();
    return await this.#lock.run(async () => {
      await this.#end();
      await this.#memory.clear();
      this.#set({ state: "stopped", error: undefined });
      return await this.#createStatus();
    });
  }

  /** Reports whether a file of the models folder is in use. */
  isUsing(path: string): boolean {
    return this.#run !== undefined && (this.#run.model.path === path || this.#run.model.files.includes(path));
  }

  /**
   * Call this before each request to the model. Resets the idle timer, restarts a model that was stopped because it was
   * idle or at shutdown, and waits until it's ready.
   *
   * @throws {AppError} `not_available` if it was stopped by the user or doesn't start; the abort reason
   */
  async wake(signal: AbortSignal): Promise<void> {
    this.#usage.atMs = performance.now();
    if (this.#status.state === "running") return;
    await raceAbort(this.takeOver(), signal);
    if (this.#run === undefined) await (this.#waking ??= this.#startAgain().finally(() => this.#waking = undefined));
    await raceAbort(Promise.resolve(this.#run?.ready), signal);
    this.#usage.atMs = performance.now();
  }

  async #startAgain(): Promise<void> {
    const request = await this.#memory.load();
    const stopped = new AppError(
      "not_available",
      "The local model is stopped. Start it in Settings > Models",
    );
    if (request === undefined) throw stopped;
    await this.#getModel(request.path).catch(() => {
      throw stopped; // Deleted since
    });
    await this.run(request);
  }

  /**
   * Stops the model, or leaves its server running for the next Parlor. After the next start, it's restarted when needed.
   *
   * @param options.leave Replies go on in it.
   */
  async close({ leave = false }: { leave?: boolean } = {}): Promise<void> {
    this.#closing.abort();
    await this.#lock.run(() => this.#end(leave));
  }

  #begin({ program, settings, model, paths, activate = false, server: taken }: NewRun): void {
    const ready = Promise.withResolvers<void>();
    ready.promise.catch(() => {}); // Handled by the code that awaits it
    const abort = new AbortController();
    const run: Run = { settings, model, activate, abort, ready: ready.promise, over: Promise.resolve() };
    this.#run = run;
    this.#status = { state: "starting", settings, restarts: 0 };
    this.#publish();
    const { contextSize, gpuLayers, idleMinutes } = settings;
    const keeping = keepRunning({
      program,
      idleMinutes,
      usage: this.#usage,
      times: this.#times,
      log: this.#options.log,
      options: { ...paths, contextSize, gpuLayers },
      takenOver: taken,
      createPipePath: () => this.#left.createPipePath(),
      signal: abort.signal,
      onStart: async ({ process, record }) => {
        this.#lines = process.lines;
        await this.#left.save({ ...record, settings }).catch((error) =>
          this.#options.log("warn", "The local model can't outlive Parlor", { error: getErrorMessage(error) })
        );
      },
      onReady: async (server) => {
        await this.#offer(run, server);
        this.#usage.atMs = performance.now();
        const startedAtMs = server === taken ? server.record.startedAtMs : Date.now();
        this.#set({ state: "running", startedAtMs, error: undefined });
        ready.resolve();
      },
      onEnd: () => this.#left.clear(),
      onChange: (change) => this.#set(change),
    });
    const ended = { memoryBytes: undefined, startedAtMs: undefined } satisfies Partial<RunnerStatus>;
    run.over = keeping.then(
      () => this.#set({ state: "stopped", ...ended }),
      (error) => {
        if (abort.signal.aborted) return this.#set({ state: "stopped", ...ended });
        this.#options.log("warn", "The local model failed", { error: getErrorMessage(error) });
        this.#set({ state: "failed", error: getErrorMessage(error), ...ended });
      },
    ).finally(() => {
      const why = this.#status.error ?? "it was stopped";
      ready.reject(new AppError("not_available", `The local model isn't running: ${why}`));
      if (this.#run === run) this.#run = undefined;
    });
  }

  async #offer(run: Run, { baseUrl, apiKey }: LlamaServer): Promise<void> {
    const { model, settings: { contextSize }, activate } = run;
    await this.#options.offer({
      name: model.name ?? basename(model.path),
      model: basename(model.files[0]!),
      baseUrl: `${baseUrl}/v1`,
      apiKey,
      contextSize,
      activate,
    });
    run.activate = false;
  }

  async #end(leave = false): Promise<void> {
    this.#run?.abort.abort(leave ? LEAVE_RUNNING : new DOMException("The local model was stopped", "AbortError"));
    await this.#run?.over;
  }

  async #getModel(path: string): Promise<LocalModel> {
    const model = await this.#options.local.get(path);
    if (model.format === "gguf" && model.role === "model") return model;
    throw new AppError("invalid_request", `Can't run "${path}": llama.cpp runs models in GGUF format`);
  }

  /** Returns the paths of a model. If its folder has exactly one projector, that belongs to the model. */
  async #getPaths(model: LocalModel): Promise<ModelPaths> {
    const { folder, local } = this.#options;
    const getFolder = (path: string) => path.slice(0, path.lastIndexOf("/") + 1);
    const projectors = (await local.list()).filter(({ role, path }) =>
      role === "mmproj" && getFolder(path) === getFolder(model.path) && getFolder(path) !== ""
    );
    const projector = projectors.length === 1 ? folder.resolve(projectors[0]!.path) : undefined;
    return { modelPath: folder.resolve(model.files[0]!), projectorPath: projector };
  }

  #set(change: Partial<RunnerStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#publish();
  }

  #publish(): void {
    this.#options.events.publish({ kind: "runner", id: "local" });
  }
}

const DEFAULT_CONTEXT = 8192;
const DEFAULT_IDLE_MINUTES = 30;
const MEMORY_FILE = ".runner.json";

/** Fills in the defaults of a request. */
function waitForStop(request: RunRequest, model: LocalModel): RunSettings {
  const { contextSize = Math.min(model.contextSize ?? DEFAULT_CONTEXT, DEFAULT_CONTEXT) } = request;
  return { ...request, path: model.path, contextSize, idleMinutes: request.idleMinutes ?? DEFAULT_IDLE_MINUTES };
}

/** Stores the model to run in the models folder, so that the connection works again after the next start. */
class RunMemory {
  readonly #path: string;

  constructor(folder: ModelsFolder) {
    this.#path = join(folder.path, MEMORY_FILE);
  }

  async save(settings: RunSettings): Promise<void> {
    await writeFileAtomic(this.#path, JSON.stringify(settings));
  }

  /** Removes the stored model. */
  async clear(): Promise<void> {
    await removeIfExists(this.#path);
  }

  /** Returns the model that should run; `undefined` if there is none or another version wrote it. */
  async load(): Promise<RunRequest | undefined> {
    const bytes = await readFileIfExists(this.#path);
    if (bytes === undefined) return undefined;
    try {
      const { path, contextSize, gpuLayers, idleMinutes } = JSON.parse(new TextDecoder().decode(bytes));
      return { path, contextSize, gpuLayers, idleMinutes };
    } catch {
      return undefined;
    }
  }
}
