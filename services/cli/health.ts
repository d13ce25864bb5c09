/** `parlor health`: asks the running server whether it responds. For health checks of containers. */
import { findLocalServer, type ListenConfig, openLocalClient } from "../diagnostics/local_server.ts";
import { AppError } from "../errors.ts";
import { explainConnectError } from "../http/upstream_error.ts";

/** Text of `parlor health --help`. */
export const HEALTH_HELP = `Usage: parlor health [options of parlor serve]

Asks the server of this configuration on this machine whether it responds, also over TLS. Exits with code 1 if it doesn't.`;

const ANSWER_WITHIN_MS = 5_000;

/** Asks the server. @throws {AppError} `upstream_error` if it doesn't respond. */
export async function runHealth(config: ListenConfig, print: (text: string) => void): Promise<void> {
  const { url, connectTo } = findLocalServer(config);
  const caCert = config.tlsCert === null ? undefined : await Deno.readTextFile(config.tlsCert).catch(() => undefined);
  using local = openLocalClient({ caCert, connectTo });
  let status: number;
  try {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const answer = await fetch(`${url}/healthz`, { client: local.client, signal, redirect: "manual" });
    await answer.body?.cancel();
    status = answer.status;
  } catch (cause) {
    throw new AppError("upstream_error", `Can't reach "${url}": ${explainConnectError(cause).reason}`, { cause });
  }
  if (status !== 204) throw new AppError("upstream_error", `"${url}" is not a Parlor server: status ${status}`);
  print(`The server responds at "${url}"`);
}
