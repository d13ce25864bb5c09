/** State of the first-run wizard, and what its search for model servers can reach. */
import type { EventHub } from "../events/event_hub.ts";
import type { PersistentFlag } from "./persistent_flag.ts";

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
