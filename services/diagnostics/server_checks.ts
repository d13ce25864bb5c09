/** Asks the running server about itself and its model as its operator, and how it is reached under a URL. */
import { operatorProof } from "../crypto/operator_proof.ts";
import { explainConnectError } from "../http/connect_error.ts";
import { type Finding, note, ok, problem } from "./finding.ts";

/** How to ask a server. */
export interface ServerQuestion {
  /** `"http://localhost:8787"`, or the URL users type. */
  url: string;
  /** Signs the request; absent if the data folder has none. */
  sessionKey: Uint8Array | undefined;
  /** PEM text of an additional certificate authority. */
  caCert?: string;
  /** True for a URL the user named: a server must answer there. */
  isExpected: boolean;
}

const ANSWER_WITHIN_MS = 15_000;
const MAX_CLOCK_GAP_MS = 60_000;

/** Asks the server. */
export async function serverFindings({ url, sessionKey, caCert, isExpected }: ServerQuestion): Promise<Finding[]> {
  const client = caCert === undefined ? undefined : Deno.createHttpClient({ caCerts: [caCert] });
  const ask = (path: string, headers: Record<string, string> = {}) =>
    fetch(url.replace(/\/$/, "") + path, {
      client,
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
  try {
    const alive = await ask("/healthz");
    await alive.body?.cancel();
    if (alive.status !== 204) {
      return [
        problem("other_server", { url, status: alive.status }),
      ];
    }
    const findings = [
      ok("server_ok", { url }),
      ...clockGap(alive),
      ...await reach(await ask("/api/auth/status"), url),
    ];
    if (sessionKey === undefined) return findings;
    const health = await ask("/api/health", { Authorization: `Bearer ${operatorProof(sessionKey, Date.now())}` });
    return [...findings, ...await upstream(health)];
  } catch (cause) {
    if (isExpected) return [problem("server_unreachable", { url, error: explainConnectError(cause).reason })];
    return [note("server_off", { url })];
  } finally {
    client?.close();
  }
}

function clockGap(answer: Response): Finding[] {
  const theirs = Date.parse(answer.headers.get("date") ?? "");
  if (!(Math.abs(theirs - Date.now()) > MAX_CLOCK_GAP_MS)) return [];
  return [problem("clocks_differ", { seconds: Math.round(Math.abs(theirs - Date.now()) / 1000) })];
}

async function reach(answer: Response, url: string): Promise<Finding[]> {
  const status = await answer.json().catch(() => undefined);
  if (answer.status === 403) {
    return [problem("host_refused", { url })];
  }
  if (status?.hint === "untrusted_proxy") {
    return [problem("proxy_untrusted")];
  }
  if (status?.passkeys_supported === false) {
    return [problem("no_passkeys", { url })];
  }
  return [];
}

async function upstream(answer: Response): Promise<Finding[]> {
  const health = await answer.json().catch(() => undefined);
  if (!answer.ok) return [note("health_untold", { status: answer.status })];
  const { connection } = health ?? {};
  if (connection === null || connection === undefined) {
    return [note("no_connection")];
  }
  if (health.status === "ok") return [ok("model_ok", { name: connection.name, ms: connection.latency_ms })];
  return [problem("model_silent", { name: connection.name, error: connection.error ?? "no reason given" })];
}
