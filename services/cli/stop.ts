/** `parlor stop` ends the server that runs on a data folder, on every system: Windows has no SIGTERM. */
import process from "node:process";
import { delay } from "../async/delay.ts";
import type { DoctorConfig } from "../diagnostics/doctor.ts";
import { askRunningServer } from "../diagnostics/running_server.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { readField } from "../json/type_guards.ts";
import { isDataDirInUse } from "../storage/data_dir.ts";

/** Text of `parlor stop --help`. */
export const STOP_HELP = `Usage: parlor stop [options of parlor serve]

Stops the server that runs on the data folder, and returns when it has ended. Like SIGTERM, it saves running replies, or
hands them over to the next start. Run it as the user of the server, on its machine.
Exits with code 0 if the server has ended, 3 if none runs, and 1 if it can't be stopped.`;

/** The server ends within ten seconds, unless the machine is very busy. */
const WITHIN_MS = 30_000;
const POLL_MS = 100;
/** Exit code if no server runs; init scripts have the same. */
const NOT_RUNNING = 3;

/**
 * Stops the server and waits for its end. A server that is starting or already stopping is waited for.
 *
 * @param withinMs How long to wait.
 * @returns The exit code.
 * @throws {AppError} with a message for the terminal if it can't be stopped, or doesn't end in time.
 */
export async function runStop(
  config: DoctorConfig,
  print: (text: string) => void,
  withinMs = WITHIN_MS,
): Promise<number> {
  const { dataDir } = config;
  const untilMs = performance.now() + withinMs;
  const seconds = Math.ceil(withinMs / 1000);
  let isWaiting = false;
  let pid: number | undefined;
  // Without the lock, whatever responds at its address is another program.
  while (await isDataDirInUse(dataDir)) {
    pid = await requestStop(config);
    if (pid !== undefined) break;
    if (!isWaiting) print(`A process uses "${dataDir}", but no server of it responds yet. Waiting`);
    isWaiting = true;
    if (performance.now() > untilMs) {
      throw new AppError(
        "not_available",
        `A process uses "${dataDir}", but no server of it responded within ${seconds} s. It may hang, or be another ` +
          `command such as parlor import`,
      );
    }
    await delay(POLL_MS);
  }
  if (pid === undefined) {
    print(isWaiting ? "It has ended" : `No server runs on "${dataDir}"`);
    return isWaiting ? 0 : NOT_RUNNING;
  }
  while (isRunning(pid)) {
    if (performance.now() > untilMs) {
      throw new AppError(
        "not_available",
        `The server was asked to stop, but its process ${pid} still runs after ${seconds} s. End the process: ` +
          "replies are in the journal",
      );
    }
    await delay(POLL_MS);
  }
  print("The server has stopped");
  return 0;
}

/**
 * Asks the server to stop.
 *
 * @returns Its process; `undefined` if it doesn't respond, such as while it starts.
 */
async function requestStop(config: DoctorConfig): Promise<number | undefined> {
  const { dataDir } = config;
  let sessionKey: Uint8Array;
  try {
    sessionKey = await Deno.readFile(`${dataDir}/session-key`);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined; // A first start creates it.
    throw new AppError(
      "internal",
      `Can't read "${dataDir}/session-key", which proves that you own this server: ${
        getErrorMessage(cause)
      }. Run it as ` +
        "the user of the server",
      { cause },
    );
  }
  const asked = await askRunningServer(config, sessionKey, "/api/stop", "POST")
    .catch(() => undefined);
  if (asked === undefined) return undefined;
  const { url, answer } = asked;
  const json: unknown = await answer.json().catch(() => undefined);
  const pid = readField(json, "pid");
  if (answer.status === 202 && typeof pid === "number") return pid;
  throw new AppError(
    "upstream_error",
    `"${url}" answered with status ${answer.status}: it's another program, an earlier version of Parlor, or a server ` +
      "that without TLS listens on another address than localhost. Stop it with Ctrl+C, SIGTERM or its service manager",
  );
}

/** Returns whether a process exists. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as { code?: string }).code !== "ESRCH";
  }
}
