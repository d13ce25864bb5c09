/**
 * `parlor doctor` checks the installation and prints problems; `parlor health` asks the running server whether it
 * responds.
 */
import type { DoctorConfig } from "../diagnostics/doctor.ts";
import { takeOptions } from "./cli_environment.ts";
import { findLocalServer, type ListenConfig, openLocalClient } from "../diagnostics/local_server.ts";
import { AppError } from "../errors.ts";
import { explainConnectError } from "../http/upstream_error.ts";

/** Text of `parlor doctor --help`. */
export const DOCTOR_HELP = `Usage: parlor doctor [--deep] [--url URL] [options of parlor serve]

Checks configuration, permissions, addresses, data, backups, disk, clock, programs, and the running server with its model.
If the server runs, its own options count, also those that it got as flags or from its environment.
It reads every encrypted file and the last backup; PARLOR_BACKUP_PASSPHRASE opens a backup made with a passphrase.
--deep also opens every stored value now: all chats, cards, lorebooks and the like. Without it, you see what the server found.
--url also checks the address where users reach Parlor, such as https://chat.example.org.
Exits with code 1 if there is a problem.`;

/** What it has of the world around it. */
interface DoctorContext {
  readConfig(rest: string[]): DoctorConfig;
  /** Opens backups that were made with a passphrase. */
  backupPassphrase: string | undefined;
  print(text: string): void;
}

/** @returns 1 when there is a problem, else 0. */
export async function runDoctor(args: readonly string[], context: DoctorContext): Promise<number> {
  const { options, rest } = takeOptions(args, { url: true, deep: false }, { wordCount: 0, usage: "parlor doctor" });
  // Loaded here, because `parlor health` needs nothing of it.
  const { runDoctorChecks } = await import("../diagnostics/doctor.ts");
  const findings = await runDoctorChecks({
    readConfig: () => context.readConfig(rest),
    backupPassphrase: context.backupPassphrase,
    maxBytes: Infinity,
    isDeep: options.has("deep"),
    url: options.get("url"),
  });
  for (const { level, about, remedy } of findings) {
    context.print(`${level.padEnd(8)} ${about}`);
    if (remedy !== undefined) context.print(`${" ".repeat(9)}→ ${remedy}`);
  }
  const problems = findings.filter(({ level }) => level === "problem").length;
  context.print(
    problems === 0 ? "No problems found." : `${problems} ${problems === 1 ? "problem" : "problems"} found.`,
  );
  return problems === 0 ? 0 : 1;
}

/** Text of `parlor health --help`. */
export const HEALTH_HELP = `Usage: parlor health [options of parlor serve]

Checks whether the server with this configuration responds on this machine, also over TLS. Exits with code 1 if it doesn't.`;

/** As long as the health check of the image may take. */
const RESPONSE_TIMEOUT_MS = 10_000;

/** Asks the server. For health checks of containers. @throws {AppError} `upstream_error` if it doesn't respond. */
export async function runHealth(config: ListenConfig, print: (text: string) => void): Promise<void> {
  const { url, connectTo } = findLocalServer(config);
  using local = openLocalClient({ connectTo });
  let status: number;
  try {
    const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
    const answer = await local.fetch(`${url}/healthz`, { signal });
    await answer.body?.cancel();
    status = answer.status;
  } catch (cause) {
    throw new AppError("upstream_error", `Can't reach "${url}": ${explainConnectError(cause).reason}`, { cause });
  }
  if (status !== 204) throw new AppError("upstream_error", `"${url}" is not a Parlor server: status ${status}`);
  print(`The server responds at "${url}"`);
}
