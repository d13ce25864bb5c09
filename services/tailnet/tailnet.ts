/** The tailnet node as the owner has it: switched on or off, under a name, in one of six states. */
import { delay } from "../async/delay.ts";
import { messageOf } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import { KeyedMutex } from "../async/keyed_mutex.ts";
import { KeptNode } from "./node_supervisor.ts";
import type { NodeMemory, OwnNames } from "./node_state.ts";
import { DEFAULT_TIMES, type NodeTimes, type NodeView, type TailnetStatus, viewOf } from "./node_status.ts";
import { findTailscaled } from "./tailscaled_program.ts";

/** Where requests from the tailnet come in: a listener of their own, which only the node's serve reaches. */
export interface Door {
  /** What serve hands requests to: `"http://127.0.0.2:40123/secret"`. */
  readonly target: string;
  /** Lets running answers finish. */
  close(): Promise<void>;
}

/** What the room works with. */
export interface TailnetOptions {
  memory: NodeMemory;
  controlUrl: string;
  /** `tailscaled_path` */
  programPath: string | null;
  /** Makes `<datadir>/tsnet`, 0700. */
  ensureStateFolder(): Promise<string>;
  /** Removes it with everything in it. */
  wipeState(): Promise<void>;
  events: Pick<EventHub, "publish">;
  log: Log;
  times?: Partial<NodeTimes>;
}

/** All that happens to the node happens in turn. */
const TURN = "node";

/** The one node. */
export class Tailnet {
  readonly #options: TailnetOptions;
  readonly #times: NodeTimes;
  readonly #locks = new KeyedMutex();
  #openDoor: (() => Door) | undefined;
  #door: Door | undefined;
  #node: KeptNode | undefined;
  #view: NodeView = viewOf("disabled");
  #isClosed = false;

  constructor(options: TailnetOptions) {
    this.#options = options;
    this.#times = { ...DEFAULT_TIMES, ...options.times };
  }

  /** Says how it stands. */
  status(): TailnetStatus {
    const { enabled, hostname } = this.#options.memory.wanted;
    const { url } = this.#view;
    const port = url === null ? null : url.startsWith("https:") ? 443 : 80;
    return { enabled, mode: enabled ? "userspace" : "off", ...this.#view, hostname, port };
  }

  /** The names of the own node, last values known. */
  get own(): OwnNames | undefined {
    return this.#options.memory.own;
  }

  /** To be called once requests can be taken: the node starts if it is wanted. */
  begin(openDoor: () => Door): void {
    this.#openDoor = openDoor;
    const { memory } = this.#options;
    if (memory.isWipeDue) void this.#locks.run(TURN, () => this.#wipe());
    if (!memory.wanted.enabled) return;
    this.#set(viewOf("starting"));
    void this.#locks.run(TURN, () => this.#start());
  }

  /**
   * Switches it on, or gives it another name; answers before it is reached. One that has failed is started again.
   *
   * @param hostname One label of a host name.
   * @throws {AppError} `not_available` when there is no tailscaled, with how to get it; `conflict` when a flag or the
   *   environment says otherwise.
   */
  enable(hostname?: string): Promise<TailnetStatus> {
    return this.#locks.run(TURN, async () => {
      const { memory, programPath } = this.#options;
      await findTailscaled(programPath);
      const isRenamed = hostname !== undefined && hostname !== memory.wanted.hostname;
      await memory.want({ enabled: true, hostname });
      const isDown = this.#node === undefined || this.#view.state === "error" || this.#view.state === "stopped";
      if (isDown) await this.#start();
      else if (isRenamed) await this.#rename(hostname);
      else this.#publish();
      return this.status();
    });
  }

  /**
   * Switches it off and wipes its state; answers before that is done.
   *
   * @throws {AppError} `conflict` when a flag or the environment says otherwise.
   */
  disable(): Promise<TailnetStatus> {
    return this.#locks.run(TURN, async () => {
      const { memory } = this.#options;
      await memory.want({ enabled: false });
      await memory.noteWipe(true);
      this.#set(viewOf(this.#node === undefined ? "disabled" : "stopped"));
      void this.#locks.run(TURN, () => this.#end());
      return this.status();
    });
  }

  /** Ends the node and keeps its state: it comes back at the next start. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#locks.run(TURN, async () => {
      // Whoever is being answered still needs the node.
      await Promise.all([this.#door?.close(), this.#node?.shield()]);
      this.#door = undefined;
      await this.#node?.stop();
      this.#node = undefined;
    });
  }

  async #start(): Promise<void> {
    if (this.#isClosed || this.#openDoor === undefined) return;
    await this.#node?.stop();
    this.#set(viewOf("starting"));
    try {
      this.#door ??= this.#openDoor();
    } catch (error) {
      return this.#set(viewOf("error", { error: messageOf(error) }));
    }
    const { memory, controlUrl, programPath, ensureStateFolder, log } = this.#options;
    const node: KeptNode = new KeptNode({
      ...{ controlUrl, ensureStateFolder, log, times: this.#times },
      hostname: memory.wanted.hostname,
      target: this.#door.target,
      findProgram: () => findTailscaled(programPath),
      onView: (view) => {
        if (this.#node === node && memory.wanted.enabled) this.#set(view);
      },
      onNames: (names) =>
        memory.rememberOwn(names).catch((error) =>
          log("error", "Cannot remember the names of the tailnet node", { error: messageOf(error) })
        ),
    });
    this.#node = node;
  }

  async #rename(hostname: string): Promise<void> {
    try {
      await this.#node?.rename(hostname);
    } catch (error) {
      this.#options.log("warn", "The tailnet node does not take its new name and is started again", {
        error: messageOf(error),
      });
      await this.#start();
    }
    this.#publish();
  }

  async #end(): Promise<void> {
    if (this.#options.memory.wanted.enabled) return; // switched on again meanwhile
    if (this.#node !== undefined) {
      // Who switched it off over the tailnet would not hear of it.
      await delay(this.#times.farewellMs);
      await this.#node.logout();
      await this.#node.stop();
      this.#node = undefined;
    }
    await this.#door?.close();
    this.#door = undefined;
    await this.#wipe();
  }

  async #wipe(): Promise<void> {
    const { memory, wipeState, log } = this.#options;
    try {
      await wipeState();
      await memory.noteWipe(false);
      if (!memory.wanted.enabled) this.#set(viewOf("disabled"));
    } catch (error) {
      const message = `The node is off, but its state cannot be removed: ${messageOf(error)}`;
      log("error", message);
      this.#set(viewOf("error", { error: message }));
    }
  }

  #set(view: NodeView): void {
    if (JSON.stringify(view) === JSON.stringify(this.#view)) return;
    if (view.url !== null && view.url !== this.#view.url) {
      const { url, error } = view;
      if (error === null) this.#options.log("info", `Parlor is reached on the tailnet at ${url}`);
      else {this.#options.log(
          "warn",
          `Parlor is reached on the tailnet at ${url}, and no passkey can close it: ${error}`,
        );}
    }
    this.#view = view;
    this.#publish();
  }

  #publish(): void {
    this.#options.events.publish({ kind: "tailnet", id: "node" });
  }
}
