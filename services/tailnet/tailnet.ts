/** The tailnet node: turns it on and off, renames it and reports its status. */
import { delay } from "../async/delay.ts";
import { KeyedMutex } from "../async/locks.ts";
import type { Config } from "../config/config.ts";
import { getErrorMessage } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import type { Log } from "../log.ts";
import { toFileError } from "../storage/atomic_file.ts";
import type { DataDir } from "../storage/data_dir.ts";
import { findTailscaled, NodeSupervisor, removeNodeSocket } from "./node_process.ts";
import {
  createView,
  NODE_TIMES,
  type NodeMemory,
  type NodeNames,
  type NodeTimes,
  type NodeView,
  type TailnetStatus,
} from "./node_state.ts";

/** The listener for requests from the tailnet. Only the node's proxy connects to it. */
export interface NodeListener {
  /** URL to which the node forwards requests: `"http://127.0.0.2:40123/secret"`. */
  readonly target: string;
  /** Closes the listener after running responses. */
  close(): Promise<void>;
}

/** The dependencies of the tailnet node. */
interface TailnetOptions {
  memory: NodeMemory;
  controlUrl: string;
  /** `tailscaled_path` */
  programPath: string | null;
  /** Creates `<datadir>/tsnet` with mode 0700. */
  ensureStateFolder(): Promise<string>;
  /** Deletes the folder with its content. */
  wipeState(): Promise<void>;
  events: Pick<EventHub, "publish">;
  /** Learns the addresses of the node. */
  ownListeners: Pick<OwnListeners, "setNodeAddresses">;
  log: Log;
  times?: Partial<NodeTimes>;
}

/** Key of the lock for all changes to the node. */
const LOCK = "node";

/** The tailnet node. */
export class Tailnet {
  readonly #options: TailnetOptions;
  readonly #times: NodeTimes;
  readonly #locks = new KeyedMutex();
  #openListener: (() => NodeListener) | undefined;
  #listener: NodeListener | undefined;
  #node: NodeSupervisor | undefined;
  #view: NodeView = createView("disabled");
  #isClosed = false;

  constructor(options: TailnetOptions) {
    this.#options = options;
    this.#times = { ...NODE_TIMES, ...options.times };
  }

  /** Returns the current status. */
  getStatus(): TailnetStatus {
    const { enabled, hostname } = this.#options.memory.wanted;
    const { url } = this.#view;
    const port = url === null ? null : url.startsWith("https:") ? 443 : 80;
    return { enabled, mode: enabled ? "userspace" : "off", ...this.#view, hostname, port };
  }

  /** The last known names of the node. */
  get own(): NodeNames | undefined {
    return this.#options.memory.own;
  }

  /** Starts the node if it is turned on. Call this once requests can be served. */
  begin(openListener: () => NodeListener): void {
    this.#openListener = openListener;
    const { memory } = this.#options;
    if (memory.isWipeDue) void this.#locks.run(LOCK, () => this.#wipe());
    if (!memory.wanted.enabled) return;
    this.#set(createView("starting"));
    void this.#locks.run(LOCK, () => this.#start());
  }

  /**
   * Turns the node on or renames it. Returns before it's reachable. Restarts a node that has failed.
   *
   * @param hostname One label of a host name.
   * @throws {AppError} `not_available` if tailscaled isn't found, with instructions to install it; `conflict` if a flag
   *   or the environment overrides this.
   */
  enable(hostname?: string): Promise<TailnetStatus> {
    return this.#locks.run(LOCK, async () => {
      const { memory, programPath } = this.#options;
      await findTailscaled(programPath);
      const isRenamed = hostname !== undefined && hostname !== memory.wanted.hostname;
      await memory.changeSettings({ enabled: true, hostname });
      const isDown = this.#node === undefined || this.#view.state === "error" || this.#view.state === "stopped";
      if (isDown) await this.#start();
      else if (isRenamed) await this.#rename(hostname);
      else this.#publish();
      return this.getStatus();
    });
  }

  /**
   * Turns the node off and deletes its state. Returns before that is done.
   *
   * @throws {AppError} `conflict` if a flag or the environment overrides this.
   */
  disable(): Promise<TailnetStatus> {
    return this.#locks.run(LOCK, async () => {
      const { memory } = this.#options;
      await memory.changeSettings({ enabled: false });
      await memory.noteWipe(true);
      this.#set(createView(this.#node === undefined ? "disabled" : "stopped"));
      void this.#locks.run(LOCK, () => this.#end());
      return this.getStatus();
    });
  }

  /** Stops the node. Its state stays, so that it returns at the next start. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#locks.run(LOCK, async () => {
      // Running responses still need the node.
      await Promise.all([this.#listener?.close(), this.#node?.setShield()]);
      this.#listener = undefined;
      await this.#node?.stop();
      this.#node = undefined;
    });
  }

  async #start(): Promise<void> {
    if (this.#isClosed || this.#openListener === undefined) return;
    await this.#node?.stop();
    this.#set(createView("starting"));
    try {
      this.#listener ??= this.#openListener();
    } catch (error) {
      return this.#set(createView("error", { error: getErrorMessage(error) }));
    }
    const { memory, controlUrl, programPath, ensureStateFolder, log, ownListeners } = this.#options;
    const node: NodeSupervisor = new NodeSupervisor({
      controlUrl,
      ensureStateFolder,
      log,
      times: this.#times,
      hostname: memory.wanted.hostname,
      target: this.#listener.target,
      findProgram: () => findTailscaled(programPath),
      onView: (view) => {
        if (this.#node === node && memory.wanted.enabled) this.#set(view);
      },
      onAddresses: (addresses) => ownListeners.setNodeAddresses(addresses),
      onNames: (names) =>
        memory.saveNames(names).catch((error) =>
          log("error", "Can't save the names of the tailnet node", { error: getErrorMessage(error) })
        ),
    });
    this.#node = node;
  }

  async #rename(hostname: string): Promise<void> {
    try {
      await this.#node?.rename(hostname);
    } catch (error) {
      this.#options.log("warn", "The tailnet node doesn't accept its new name and is being restarted", {
        error: getErrorMessage(error),
      });
      await this.#start();
    }
    this.#publish();
  }

  async #end(): Promise<void> {
    if (this.#options.memory.wanted.enabled) return; // Turned on again
    if (this.#node !== undefined) {
      // A client that turned it off over the tailnet still needs its response.
      await delay(this.#times.farewellMs);
      await this.#node.logOut();
      await this.#node.stop();
      this.#node = undefined;
    }
    await this.#listener?.close();
    this.#listener = undefined;
    await this.#wipe();
  }

  async #wipe(): Promise<void> {
    const { memory, wipeState, log } = this.#options;
    try {
      await wipeState();
      await memory.noteWipe(false);
      if (!memory.wanted.enabled) this.#set(createView("disabled"));
    } catch (error) {
      const message = `The node is off, but its state can't be deleted: ${getErrorMessage(error)}`;
      log("error", message);
      this.#set(createView("error", { error: message }));
    }
  }

  #set(view: NodeView): void {
    if (JSON.stringify(view) === JSON.stringify(this.#view)) return;
    if (view.url !== null && view.url !== this.#view.url) {
      const { url, error } = view;
      if (error === null) this.#options.log("info", `Parlor is reachable on the tailnet at ${url}`);
      else {this.#options.log(
          "warn",
          `Parlor is reachable on the tailnet at ${url}, and a passkey can't protect it: ${error}`,
        );}
    }
    this.#view = view;
    this.#publish();
  }

  #publish(): void {
    this.#options.events.publish({ kind: "tailnet", id: "node" });
  }
}

/** Name of the folder below the data folder. */
const STATE_FOLDER = "tsnet";

/** Creates the service. `begin` starts the node. */
export function openTailnet(
  { config, dataDir, ...parts }: Pick<TailnetOptions, "memory" | "events" | "ownListeners" | "log" | "times"> & {
    config: Config;
    dataDir: DataDir;
  },
): Tailnet {
  return new Tailnet({
    ...parts,
    controlUrl: config.tailnetControlUrl,
    programPath: config.tailscaledPath,
    ensureStateFolder: () => dataDir.ensureFolder(STATE_FOLDER),
    async wipeState() {
      const folder = dataDir.file(STATE_FOLDER);
      await removeNodeSocket(folder);
      try {
        await Deno.remove(folder, { recursive: true });
      } catch (cause) {
        if (!(cause instanceof Deno.errors.NotFound)) throw toFileError(`Can't remove "${folder}"`, cause);
      }
    },
  });
}
