/**
 * Finds tailscaled and keeps it running while the node is turned on. It starts when no other process uses its state,
 * and is restarted a limited number of times if it ends.
 */
import { join } from "node:path";
import { delay } from "../async/delay.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import {
  findOnPath,
  isFile,
  type ProcessEnd,
  startWatched,
  type WatchedProcess,
} from "../process/supervised_process.ts";
import { LocalApi, removeSecrets } from "./local_api.ts";
import { createView, type NodeTimes } from "./node_state.ts";
import type { Log } from "../log.ts";
import { type FollowOptions, NodeFollower } from "./node_controller.ts";

/** tailscaled ends within milliseconds of SIGTERM, or hangs. */
const STOP_WITHIN_MS = 2_000;
/** Time limit for the end of a previous process. If its server was killed, its watcher ends it within seconds. */
const PREDECESSOR_MS = 8_000;
const PREDECESSOR_POLL_MS = 100;
const SOCKET_POLL_MS = 50;

/** Options of a run. */
interface NodeRun {
  program: string;
  /** Folder for the state, created by the caller with mode 0700. */
  stateFolder: string;
  times: NodeTimes;
  /** Stops the node. */
  signal: AbortSignal;
  /** Runs while the process is running. */
  work(api: LocalApi, signal: AbortSignal): Promise<never>;
}

/**
 * Runs the process once.
 *
 * @returns Why it ended; continues a sentence.
 * @throws {AppError} if it can't be started; the abort reason
 */
async function runNodeOnce({ program, stateFolder, times, signal, work }: NodeRun): Promise<string> {
  const socketPath = await prepareSocketPath(stateFolder);
  const api = new LocalApi(socketPath, times.responseTimeoutMs);
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
      await waitForResponse(socketPath, times, working.signal);
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

/** Waits until no other process uses the state. Otherwise, two nodes would write it. */
async function waitUntilFree(socketPath: string, signal: AbortSignal): Promise<void> {
  const until = performance.now() + PREDECESSOR_MS;
  while (await isResponding(socketPath)) {
    if (performance.now() > until) {
      throw new AppError("not_available", "another process from an earlier start is still using its state");
    }
    await delay(PREDECESSOR_POLL_MS, signal);
  }
}

async function waitForResponse(socketPath: string, { socketMs }: NodeTimes, signal: AbortSignal): Promise<void> {
  const until = performance.now() + socketMs;
  while (!await isResponding(socketPath)) {
    if (performance.now() > until) {
      throw new AppError("not_available", `it didn't respond within ${Math.round(socketMs / 1000)} s of its start`);
    }
    await delay(SOCKET_POLL_MS, signal);
  }
}

async function isResponding(socketPath: string): Promise<boolean> {
  try {
    (await Deno.connect({ transport: "unix", path: socketPath })).close();
    return true;
  } catch {
    return false;
  }
}

function describeEnd({ code, signal }: ProcessEnd, lines: readonly string[]): string {
  const how = signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`;
  const last = removeSecrets(lines.findLast((line) => line.trim() !== "") ?? "");
  return last === "" ? how : `${how}. Its last message: ${last}`;
}

const PROGRAM = "tailscaled";

/** Folders in which packages install it, which may not be on PATH. */
export const TAILSCALED_FOLDERS = [
  "/usr/sbin",
  "/usr/local/sbin",
  "/usr/local/bin",
  "/opt/homebrew/bin",
  "/opt/homebrew/opt/tailscale/bin",
];

/** How to install it, in one sentence. */
const HOW_TO_GET =
  "Install Tailscale (https://tailscale.com/download; on macOS: brew install tailscale), or set tailscaled_path to its " +
  "tailscaled. Parlor runs a separate node with it and doesn't touch this machine's own node";

/** Environment variables that tailscaled inherits: any other `TS_*` or `PORT` would change its behavior. */
const INHERITED = ["PATH", "HOME", "TMPDIR", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/**
 * Finds the program: the configured one, or else on PATH, or else in the usual folders of packages.
 *
 * @param configured `tailscaled_path`
 * @throws {AppError} `not_available`, with instructions to install it
 */
export async function findTailscaled(configured: string | null): Promise<string> {
  if (Deno.build.os === "windows") {
    throw new AppError("not_available", "Can't run a tailnet node: Parlor doesn't support it on Windows");
  }
  if (configured === null) {
    const found = await findOnPath(PROGRAM, TAILSCALED_FOLDERS);
    if (found !== undefined) return found;
  } else if (await isFile(configured)) return configured;
  const where = configured === null ? `${PROGRAM} wasn't found` : `the file "${configured}" doesn't exist`;
  throw new AppError("not_available", `Can't run a tailnet node: ${where}. ${HOW_TO_GET}`);
}

/** Returns the arguments. Userspace networking requires no root rights, device or routes. */
function createArguments(stateFolder: string, socketPath: string): string[] {
  // An explicit port, because the variable PORT would change it. Logs aren't uploaded.
  return [
    ...["--tun=userspace-networking", `--statedir=${stateFolder}`, `--socket=${socketPath}`],
    ...["--port=0", "--no-logs-no-support"],
  ];
}

/** Returns the environment variables to add. */
function createEnvironment(stateFolder: string): Record<string, string> {
  return {
    // Otherwise it writes an ID into the folder of the machine's own node, or into the current folder.
    TS_LOGS_DIR: stateFolder,
    // Otherwise it asks the router to open a port.
    TS_DISABLE_PORTMAPPER: "1",
  };
}

/** Maximum length of a Unix socket path on macOS, minus one; Linux allows four more. */
const MAX_BYTES = 103;
const NAME = "ts.sock";

/**
 * Returns the path of the socket. It's the same for every start: the node rejects a socket on which another node
 * responds, so that two nodes never write the same state.
 *
 * @param stateFolder Folder for the socket. If its path is too long, a folder with a short path is created.
 * @throws {AppError} `not_available` if no folder can be used
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
    if (!isOurs) throw new Error("other users can access it");
  } catch (cause) {
    throw createNoSocketPathError(`"${folder}" can't be used: ${getErrorMessage(cause)}`, cause);
  }
  return path;
}

/** Deletes the folder that `prepareSocketPath` may have created. */
export async function removeNodeSocket(stateFolder: string): Promise<void> {
  if (isShort(join(stateFolder, NAME))) return;
  await Deno.remove(await getShortFolder(stateFolder), { recursive: true }).catch(() => {}); // An empty folder is harmless.
}

async function getShortFolder(stateFolder: string): Promise<string> {
  return join(Deno.env.get("XDG_RUNTIME_DIR") || "/tmp", `parlor-${await hashShort(stateFolder)}`);
}

function isShort(path: string): boolean {
  return new TextEncoder().encode(path).length <= MAX_BYTES;
}

function createNoSocketPathError(why: string, cause?: unknown): AppError {
  return new AppError("not_available", `Can't find a place for the socket of the tailnet node: ${why}`, { cause });
}

async function hashShort(text: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(hash, 0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Maximum number of consecutive restarts. The count resets after `STEADY_MS`. */
const MAX_RESTARTS = 5;
const STEADY_MS = 10 * 60_000;
const MAX_RESTART_DELAY_MS = 60_000;

/** Options of a supervised node. */
export interface NodeSupervisorOptions extends FollowOptions {
  /** Finds the program. @throws {AppError} with instructions to install it */
  findProgram(): Promise<string>;
  /** Creates the folder for the state. */
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

  /** Starts the node. */
  constructor(options: NodeSupervisorOptions) {
    this.#options = options;
    this.#hostname = options.hostname;
    this.#over = this.#keep();
  }

  /** Renames the node. @throws {AppError} if it rejects the name */
  async rename(hostname: string): Promise<void> {
    this.#hostname = hostname;
    await this.#alive?.follower.rename(hostname, this.#abort.signal);
  }

  /** Logs out at the control server, if it's reachable. */
  async logOut(): Promise<void> {
    await this.#tryCall((api, signal) => api.logOut(signal));
  }

  /** Makes the node refuse connections, even after its next start. */
  async setShield(): Promise<void> {
    await this.#tryCall((api, signal) => api.patchPrefs({ ShieldsUp: true }, signal));
  }

  /** Stops the node and waits for its end. */
  async stop(): Promise<void> {
    this.#abort.abort(new DOMException("The node was turned off", "AbortError"));
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
      const message = `The tailnet node isn't running: ${why}`;
      if (inARow > MAX_RESTARTS) {
        const error = `${message}; stopped after ${MAX_RESTARTS} restarts`;
        log("error", error);
        return onView(createView("error", { error }));
      }
      log("warn", `${message}; restarting it`);
      onView(createView("error", { error: `${message}; restarting it` }));
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
