/**
 * What the next Parlor must know of the model server to take it over after a restart. A file with mode 0600, because it
 * has the server's key, as the environment of the server does. It's in no backup.
 */
import { join } from "node:path";
import { readStartTime } from "../../process/supervised_process.ts";
import { randomToken } from "../../crypto/random.ts";
import { readFileIfExists, writeFileAtomic } from "../../storage/atomic_file.ts";
import { MODEL_SERVER_FILE, MODEL_SERVER_FOLDER } from "../../storage/data_dir.ts";
import { removeIfExists } from "../local/models_folder.ts";
import type { RunSettings } from "./runner.ts";

/** A model server as it's found again. */
export interface ServerRecord {
  pid: number;
  /** In milliseconds since 1970. */
  startedAtMs: number;
  /** On the loopback interface. */
  port: number;
  apiKey: string;
  /** Path of its watcher's pipe; `null` if it has none. */
  pipe: string | null;
  /** Path of llama-server. */
  program: string;
}

/** A model server with the settings of its run. */
export interface LeftServer extends ServerRecord {
  settings: RunSettings;
}

/** How much the start of the same process may differ: it's rounded, and clocks are set. */
const SAME_START_MS = 3_000;

/** Returns whether the server is still running: its ID can belong to another process by now. */
export async function isStillRunning({ pid, startedAtMs }: ServerRecord): Promise<boolean> {
  const startTime = await readStartTime(pid);
  return startTime !== undefined && Math.abs(startTime - startedAtMs) <= SAME_START_MS;
}

/** The file about the model server. */
export class LeftServerFile {
  readonly #folder: string;
  readonly #path: string;

  /** @param dataDir The data folder. */
  constructor(dataDir: string) {
    this.#folder = join(dataDir, MODEL_SERVER_FOLDER);
    this.#path = join(this.#folder, MODEL_SERVER_FILE);
  }

  /** Returns a new path for a watcher's pipe, and removes those of earlier servers, which ends their watchers. */
  async createPipePath(): Promise<string> {
    await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for await (const { name } of Deno.readDir(this.#folder)) await removeIfExists(join(this.#folder, name));
    return join(this.#folder, `${randomToken(9)}.pipe`);
  }

  async save(server: LeftServer): Promise<void> {
    await writeFileAtomic(this.#path, JSON.stringify(server));
  }

  async clear(): Promise<void> {
    await removeIfExists(this.#path);
  }

  /** Returns the server; `undefined` if there is none, or another version of Parlor wrote the file. */
  async load(): Promise<LeftServer | undefined> {
    const bytes = await readFileIfExists(this.#path);
    if (bytes === undefined) return undefined;
    try {
      const server = JSON.parse(new TextDecoder().decode(bytes)) as LeftServer;
      const { pid, startedAtMs, port, apiKey, pipe, program, settings } = server;
      const numbers = [pid, startedAtMs, port, settings.contextSize, settings.idleMinutes];
      const texts = [apiKey, program, settings.path, pipe ?? ""];
      const isWhole = numbers.every(Number.isFinite) && texts.every((text) => typeof text === "string");
      return isWhole ? server : undefined;
    } catch {
      return undefined;
    }
  }
}
