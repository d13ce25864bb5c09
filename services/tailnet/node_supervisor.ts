/** Keeps a node running while it is turned on: restarts it if it ends, a limited number of times. */
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { delay } from "../async/delay.ts";
import type { LocalApi } from "./local_api.ts";
import { type FollowOptions, NodeFollower } from "./node_controller.ts";
import { runNodeOnce } from "./node_process.ts";
import { createView } from "./node_state.ts";

/** Restarts in a row. The count resets after `STEADY_MS`. */
const MAX_RESTARTS = 5;
const STEADY_MS = 10 * 60_000;
const LONGEST_PAUSE_MS = 60_000;

/** Options of a supervised node. */
export interface KeptNodeOptions extends FollowOptions {
  /** Finds the program. @throws {AppError} with instructions to install it */
  findProgram(): Promise<string>;
  /** Creates the folder for its state. */
  ensureStateFolder(): Promise<string>;
  log: Log;
}

/** A node that is turned on. */
export class KeptNode {
  readonly #options: KeptNodeOptions;
  readonly #abort = new AbortController();
  readonly #over: Promise<void>;
  #alive: { api: LocalApi; follower: NodeFollower } | undefined;
  #hostname: string;

  /** Starts it. */
  constructor(options: KeptNodeOptions) {
    this.#options = options;
    this.#hostname = options.hostname;
    this.#over = this.#keep();
  }

  /** Renames the node. @throws {AppError} if it refuses the name */
  async rename(hostname: string): Promise<void> {
    this.#hostname = hostname;
    await this.#alive?.follower.rename(hostname, this.#abort.signal);
  }

  /** Logs out at the control server, if it is reachable. */
  async logout(): Promise<void> {
    await this.#quietly((api, signal) => api.logout(signal));
  }

  /** Makes the node refuse connections, also after its next start. */
  async shield(): Promise<void> {
    await this.#quietly((api, signal) => api.patchPrefs({ ShieldsUp: true }, signal));
  }

  /** Stops the node and waits for its end. */
  async stop(): Promise<void> {
    this.#abort.abort(new DOMException("The node was switched off", "AbortError"));
    await this.#over;
  }

  async #quietly(say: (api: LocalApi, signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#alive === undefined) return;
    const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(this.#options.times.logoutMs)]);
    await say(this.#alive.api, signal).catch(() => {});
  }

  async #keep(): Promise<void> {
    const { log, times, onView } = this.#options;
    for (let inARow = 0;;) {
      const beganAt = performance.now();
      const why = await this.#live();
      if (this.#abort.signal.aborted) return;
      inARow = performance.now() - beganAt > STEADY_MS ? 1 : inARow + 1;
      const message = `The tailnet node does not run: ${why}`;
      if (inARow > MAX_RESTARTS) {
        const error = `${message}; given up after ${MAX_RESTARTS} restarts`;
        log("error", error);
        return onView(createView("error", { error }));
      }
      log("warn", `${message}; it is started again`);
      onView(createView("error", { error: `${message}; it is started again` }));
      const waitMs = Math.min(times.restartMs * 2 ** (inARow - 1), LONGEST_PAUSE_MS);
      await delay(waitMs, this.#abort.signal).catch(() => {});
      if (this.#abort.signal.aborted) return;
    }
  }

  async #live(): Promise<string> {
    const { findProgram, ensureStateFolder, times } = this.#options;
    try {
      const program = await findProgram();
      const stateFolder = await ensureStateFolder();
      return await runNodeOnce({
        program,
        stateFolder,
        times,
        signal: this.#abort.signal,
        work: async (api, signal) => {
          const follower = new NodeFollower(api, { ...this.#options, hostname: this.#hostname });
          this.#alive = { api, follower };
          return await follower.follow(signal);
        },
      });
    } catch (error) {
      return messageOf(error);
    } finally {
      this.#alive = undefined;
    }
  }
}
