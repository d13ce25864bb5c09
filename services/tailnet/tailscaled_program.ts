/** Where tailscaled lies on this machine, how one gets it, and what it is started with. */
import { AppError } from "../errors.ts";
import { findOnPath, isFile } from "../process/find_program.ts";

const PROGRAM = "tailscaled";

/** Where packages put it although PATH may not lead there. */
const USUAL_FOLDERS = [
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
export const INHERITED = ["PATH", "HOME", "TMPDIR", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR"];

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
    const found = await findOnPath(PROGRAM, USUAL_FOLDERS);
    if (found !== undefined) return found;
  } else if (await isFile(configured)) return configured;
  const where = configured === null ? `${PROGRAM} was not found` : `there is no file "${configured}"`;
  throw new AppError("not_available", `Can't run a tailnet node: ${where}. ${HOW_TO_GET}`);
}

/** Gives the arguments: userspace networking needs no root, no device and no routes. */
export function tailscaledArguments(stateFolder: string, socketPath: string): string[] {
  // The port is said since the variable PORT would change it; logs stay here.
  return [
    ...["--tun=userspace-networking", `--statedir=${stateFolder}`, `--socket=${socketPath}`],
    ...["--port=0", "--no-logs-no-support"],
  ];
}

/** Gives what its environment has beside what it inherits. */
export function tailscaledEnvironment(stateFolder: string): Record<string, string> {
  return {
    // Else it writes an id into the folder of the machine's own node, or into the current one.
    TS_LOGS_DIR: stateFolder,
    // It would ask the router to open a port.
    TS_DISABLE_PORTMAPPER: "1",
  };
}
