/**
 * Finds tailscaled and keeps it running while the node is turned on. It starts when no other process uses its state,
 * and is restarted if it ends, a limited number of times.
 */
import { join } from "node:path";
import { delay } from "../async/delay.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { findOnPath, isFile, startWatched, type WatchedProcess } from "../process/supervised_process.ts";
import { LocalApi, removeSecrets } from "./local_api.ts";
import { createView, type NodeTimes } from "./node_state.ts";
import type { Log } from "../log.ts";
import { type FollowOptions, NodeFollower } from "./node_controller.ts";

/** tailscaled ends within milliseconds of SIGTERM, or hangs. */
const STOP_WITHIN_MS = 2_000;
/** A process whose server was killed is ended by its watcher within seconds. */
const PREDECESSOR_MS = 8_000;
const PREDECESSOR_POLL_MS = 100;
const SOCKET_POLL_MS = 50;

/** Options of one run. */
interface NodeLife {
  program: string;
  /** Created by the caller with mode 0700. */
  stateFolder: string;
  times: NodeTimes;
  /** Ends it. */
  signal: AbortSignal;
  /** Runs while the process is alive. */
  work(api: LocalApi, signal: AbortSignal): Promise<never>;
}

/**
 * Runs the process once.
 *
 * @returns Why it ended; continues a sentence.
 * @throws {AppError} if it can't be started. The abort reason.
 */
async function runNodeOnce({ program, stateFolder, times, signal, work }: NodeLife): Promise<string> {
  const socketPath = await prepareSocketPath(stateFolder);
  const api = new LocalApi(socketPath, times.answerMs);
  const working = new AbortController();
  const onAbort = () => working.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  let child: WatchedProcess | undefined;
  try {
    await waitUntilFree(socketPath, working.signal);
    child = startWatched(program, {
      args: createArguments(stateFolder, socketPath),
      env: createEnvironment(stateFolder),
      inherits: INHERITED,
      stopWithinMs: STOP_WITHIN_MS,
    });
    const { ended, lines } = child;
    const exit = ended.then((status) => describeEnd(status, lines));
    const follow = async () => {
      await waitForAnswer(socketPath, times, working.signal);
      return await work(api, working.signal);
    };
    const following = follow().catch((error) => {
      if (working.signal.aborted) throw error;
      return error instanceof Error ? error.message : String(error);
    });
    const why = await Promise.race([exit, following]);
    working.abort(new AppError("not_available", "The node has ended"));
    await following.catch(() => {});
    return why;
  } finally {
    signal.removeEventListener("abort", onAbort);
    working.abort(new AppError("not_available", "The node has ended"));
    await child?.stop();
    api.close();
  }
}

/** Waits until no other process uses the state. Two nodes would both write it. */
async function waitUntilFree(socketPath: string, signal: AbortSignal): Promise<void> {
  const until = performance.now() + PREDECESSOR_MS;
  while (await isAnswering(socketPath)) {
    if (performance.now() > until) {
      throw new AppError("not_available", "another process of an earlier start still holds its state");
    }
    await delay(PREDECESSOR_POLL_MS, signal);
  }
}

async function waitForAnswer(socketPath: string, { socketMs }: NodeTimes, signal: AbortSignal): Promise<void> {
  const until = performance.now() + socketMs;
  while (!await isAnswering(socketPath)) {
    if (performance.now() > until) {
      throw new AppError("not_available", `it did not answer within ${Math.round(socketMs / 1000)} s of its start`);
    }
    await delay(SOCKET_POLL_MS, signal);
  }
}

async function isAnswering(socketPath: string): Promise<boolean> {
  try {
    (await Deno.connect({ transport: "unix", path: socketPath })).close();
    return true;
  } catch {
    return false;
  }
}

function describeEnd({ code, signal }: Deno.CommandStatus, lines: readonly string[]): string {
  const how = signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`;
  const last = removeSecrets(lines.findLast((line) => line.trim() !== "") ?? "");
  return last === "" ? how : `${how}; its last words: ${last}`;
}

const PROGRAM = "tailscaled";

/** Where packages put it although PATH may not lead there. */
export const TAILSCALED_FOLDERS = [
  "/usr/sbin",
  "/usr/local/sbin",
  "/usr/local/bin",
  "/opt/homebrew/bin",
  "/opt/homebrew/opt/tailscale/bin",
];

/** Where to get it, in one sentence. */
const HOW_TO_GET =
  "Install Tailscale (https://tailscale.com/download; on macOS: brew install tailscale), or set tailscaled_path to its " +
  "tailscaled. Parlor runs a node of its own with it and leaves the machine's alone";

/** What tailscaled gets of this process's environment: any `TS_*` or `PORT` there would change what it does. */
const INHERITED = ["PATH", "HOME", "TMPDIR", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/**
 * Finds the program: the configured one, else on PATH, else where packages put it.
 *
 * @param configured `tailscaled_path`
 * @throws {AppError} `not_available` that says how to get it.
 */
export async function findTailscaled(configured: string | null): Promise<string> {
  if (Deno.build.os === "windows") {
    throw new AppError("not_available", "Can't run a tailnet node: Parlor does not support it on Windows");
  }
  if (configured === null) {
    const found = await findOnPath(PROGRAM, TAILSCALED_FOLDERS);
    if (found !== undefined) return found;
  } else if (await isFile(configured)) return configured;
  const where = configured === null ? `${PROGRAM} was not found` : `there is no file "${configured}"`;
  throw new AppError("not_available", `Can't run a tailnet node: ${where}. ${HOW_TO_GET}`);
}

/** Returns the arguments: userspace networking needs no root, device or routes. */
function createArguments(stateFolder: string, socketPath: string): string[] {
  // The port is said since the variable PORT would change it; logs stay here.
  return [
    ...["--tun=userspace-networking", `--statedir=${stateFolder}`, `--socket=${socketPath}`],
    ...["--port=0", "--no-logs-no-support"],
  ];
}

/** Returns the variables that are added to the inherited environment. */
function createEnvironment(stateFolder: string): Record<string, string> {
  return {
    // Else it writes an id into the folder of the machine's own node, or into the current one.
    TS_LOGS_DIR: stateFolder,
    // It would ask the router to open a port.
    TS_DISABLE_PORTMAPPER: "1",
  };
}

/** Longest path that a Unix socket may have on macOS, less one; Linux takes four more. */
const MAX_BYTES = 103;
const NAME = "ts.sock";

/**
 * Returns the path, the same at every start: the node refuses a socket on which another one still answers, so that no two
 * write one state.
 *
 * @param stateFolder Its usual place; where that is too deep, a short folder of its own is made.
 * @throws {AppError} `not_available` when there is no such folder to be had.
 */
async function prepareSocketPath(stateFolder: string): Promise<string> {
  const usual = join(stateFolder, NAME);
  if (isShort(usual)) return usual;
  const folder = await getShortFolder(stateFolder);
  const path = join(folder, NAME);
  if (!isShort(path)) throw createNoSocketPathError(`"${path}" is too long for a socket`);
  try {
    await Deno.mkdir(folder, { mode: 0o700, recursive: true });
    const { isDirectory, mode, uid } = await Deno.lstat(folder);
    const isOurs = isDirectory && uid === Deno.uid() && mode !== null && (mode & 0o077) === 0;
    if (!isOurs) throw new Error("somebody else may enter it");
  } catch (cause) {
    throw createNoSocketPathError(`"${folder}" cannot hold it: ${getErrorMessage(cause)}`, cause);
  }
  return path;
}

/** Removes what `prepareSocketPath` made outside of the state's own folder, if it did. */
export async function removeNodeSocket(stateFolder: string): Promise<void> {
  if (isShort(join(stateFolder, NAME))) return;
  await Deno.remove(await getShortFolder(stateFolder), { recursive: true }).catch(() => {}); // an empty folder does no harm
}

async function getShortFolder(stateFolder: string): Promise<string> {
  return join(Deno.env.get("XDG_RUNTIME_DIR") || "/tmp", `parlor-${await hashShort(stateFolder)}`);
}

function isShort(path: string): boolean {
  return new TextEncoder().encode(path).length <= MAX_BYTES;
}

function createNoSocketPathError(why: string, cause?: unknown): AppError {
  return new AppError("not_available", `No place for the socket of the tailnet node: ${why}`, { cause });
}

async function hashShort(text: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(hash, 0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Restarts in a row. The count resets after `STEADY_MS`. */
const MAX_RESTARTS = 5;
const STEADY_MS = 10 * 60_000;
const MAX_RESTART_DELAY_MS = 60_000;

/** Options of a supervised node. */
export interface NodeSupervisorOptions extends FollowOptions {
  /** Finds the program. @throws {AppError} with instructions to install it */
  findProgram(): Promise<string>;
  /** Creates the folder for its state. */
  ensureStateFolder(): Promise<string>;
  log: Log;
}

/** A node that is turned on. */
export class NodeSupervisor {
  readonly #options: NodeSupervisorOptions;
  readonly #abort = new AbortController();
  readonly #over: Promise<void>;
  #alive: { api: LocalApi; follower: NodeFollower } | undefined;
  #hostname: string;

  /** Starts it. */
  constructor(options: NodeSupervisorOptions) {
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
  async logOut(): Promise<void> {
    await this.#tryCall((api, signal) => api.logOut(signal));
  }

  /** Makes the node refuse connections, also after its next start. */
  async setShield(): Promise<void> {
    await this.#tryCall((api, signal) => api.patchPrefs({ ShieldsUp: true }, signal));
  }

  /** Stops the node and waits for its end. */
  async stop(): Promise<void> {
    this.#abort.abort(new DOMException("The node was switched off", "AbortError"));
    await this.#over;
  }

  async #tryCall(say: (api: LocalApi, signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#alive === undefined) return;
    const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(this.#options.times.logoutMs)]);
    await say(this.#alive.api, signal).catch(() => {});
  }

  async #keep(): Promise<void> {
    const { log, times, onView } = this.#options;
    for (let inARow = 0;;) {
      const beganAt = performance.now();
      const why = await this.#runOnce();
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
      const waitMs = Math.min(times.restartMs * 2 ** (inARow - 1), MAX_RESTART_DELAY_MS);
      await delay(waitMs, this.#abort.signal).catch(() => {});
      if (this.#abort.signal.aborted) return;
    }
  }

  async #runOnce(): Promise<string> {
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
      return getErrorMessage(error);
    } finally {
      this.#alive = undefined;
    }
  }
}
