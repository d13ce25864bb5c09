/** State of the first-run wizard, what its search for model servers can reach, and flags that are set once. */
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Database } from "../storage/database/database.ts";

/** Where the search for model servers runs. The page uses it to explain why a search found nothing. */
export interface SetupEnvironment {
  /** Parlor runs in a container, so 127.0.0.1 is the container and not the machine that hosts it. */
  isContainer: boolean;
  /** Hosts that the search probes. */
  discoverHosts: readonly string[];
}

/** Files that Docker and Podman create in every container. */
const CONTAINER_MARKERS = ["/.dockerenv", "/run/.containerenv"];

/** State of the first-run wizard. */
export class Setup {
  readonly environment: SetupEnvironment;
  readonly #completed: PersistentFlag;
  readonly #events: EventHub;

  constructor(deps: { completed: PersistentFlag; events: EventHub; environment: SetupEnvironment }) {
    this.environment = deps.environment;
    this.#completed = deps.completed;
    this.#events = deps.events;
  }

  isCompleted(): boolean {
    return this.#completed.isSet();
  }

  /** @throws {AppError} `conflict` if a command-line flag or environment variable sets `setup_completed` to false. */
  async complete(): Promise<void> {
    if (this.#completed.isSet()) return;
    await this.#completed.set();
    this.#events.publish({ kind: "setup", id: "setup_completed" });
  }
}

/** Detects whether Parlor runs in a container. @param markers Files that exist only in containers. */
export async function detectSetupEnvironment(
  discoverHosts: readonly string[],
  markers: readonly string[] = CONTAINER_MARKERS,
): Promise<SetupEnvironment> {
  const found = await Promise.all(markers.map((path) => Deno.stat(path).then(() => true, () => false)));
  return { isContainer: found.includes(true), discoverHosts };
}

/** A flag that is never reset. */
export interface PersistentFlag {
  isSet(): boolean;
  /** @throws {AppError} `conflict` if a command-line flag or environment variable sets the key to false. */
  set(): Promise<void>;
}

/**
 * Opens a flag.
 *
 * @param options.key Config key of the flag.
 * @param options.isSet Value in the configuration.
 * @param options.save Writes the flag to the config file.
 * @param options.sealer For the purpose "settings".
 */
export function openPersistentFlag(options: {
  key: string;
  isSet: boolean;
  save(): Promise<void>;
  db: Database;
  sealer: PurposeSealer;
}): PersistentFlag {
  const { key, db, sealer } = options;
  let isSet = options.isSet || db.get("SELECT 1 FROM setting WHERE key = ?", key) !== undefined;
  return {
    isSet: () => isSet,
    async set() {
      if (isSet) return;
      try {
        await options.save();
      } catch (error) {
        if (error instanceof AppError && error.code === "conflict") throw error;
        const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)";
        const aad = { table: "setting", id: key, field: "value", version: 1 };
        await db.write([{ sql, params: [key, sealer.sealNow(aad, "true")] }]);
      }
      isSet = true;
    },
  };
}
