/** How a model is run where nothing else is said, and what was to run when the server ended. */
import { join } from "node:path";
import { readFileIfExists, writeFileAtomic } from "../../storage/atomic_file.ts";
import type { LocalModel } from "../local/local_models.ts";
import { type ModelsFolder, removeIfExists } from "../local/models_folder.ts";
import type { RunRequest, RunSettings } from "./runner_status.ts";

const DEFAULT_CONTEXT = 8192;
const DEFAULT_IDLE_MINUTES = 30;
const MEMORY_FILE = ".runner.json";

/** Settles what a request leaves open. */
export function settled(request: RunRequest, model: LocalModel): RunSettings {
  const { contextSize = Math.min(model.contextSize ?? DEFAULT_CONTEXT, DEFAULT_CONTEXT) } = request;
  return { ...request, path: model.path, contextSize, idleMinutes: request.idleMinutes ?? DEFAULT_IDLE_MINUTES };
}

/** Keeps what is to run beside the models, so that the connection finds it again after the next start. */
export class RunMemory {
  readonly #path: string;

  constructor(folder: ModelsFolder) {
    this.#path = join(folder.path, MEMORY_FILE);
  }

  async save(settings: RunSettings): Promise<void> {
    await writeFileAtomic(this.#path, JSON.stringify(settings));
  }

  /** Nothing is to run any more. */
  async clear(): Promise<void> {
    await removeIfExists(this.#path);
  }

  /** Gives what was to run; `undefined` when nothing was, or another version wrote it. */
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
