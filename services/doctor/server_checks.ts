/** What the running server says of itself and of its model, asked as its operator; and how it is reached by an address. */
import { operatorProof } from "../crypto/operator_proof.ts";
import { connectFinding } from "../net/connect_finding.ts";
import { type Finding, note, ok, problem } from "./finding.ts";

/** How to ask a server. */
export interface ServerQuestion {
  /** `"http://localhost:8787"`, or what its users type. */
  url: string;
  /** Shows that we may ask; absent where the data folder has none. */
  sessionKey: Uint8Array | undefined;
  /** PEM text of an authority beside the public ones. */
  caCert?: string;
  /** True for an address that somebody named: then a server has to answer there. */
  isExpected: boolean;
}

const ANSWER_WITHIN_MS = 15_000;
const MAX_CLOCK_GAP_MS = 60_000;

/** Asks it. */
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
        problem(
          `What answers at "${url}" is no Parlor: status ${alive.status}`,
          "Point the proxy, or --url, at Parlor",
        ),
      ];
    }
    const findings = [
      ok(`A server answers at "${url}"`),
      ...clockGap(alive),
      ...await reach(await ask("/api/auth/status"), url),
    ];
    if (sessionKey === undefined) return findings;
    const health = await ask("/api/health", { Authorization: `Bearer ${operatorProof(sessionKey, Date.now())}` });
    return [...findings, ...await upstream(health)];
  } catch (cause) {
    const { finding } = connectFinding(cause);
    if (isExpected) {
      return [problem(`Cannot reach "${url}": ${finding}`, "Start the server, or correct proxy, name and certificate")];
    }
    return [note(`No server runs at "${url}", so its model was not asked`, "Start it and run parlor doctor again")];
  } finally {
    client?.close();
  }
}

function clockGap(answer: Response): Finding[] {
  const theirs = Date.parse(answer.headers.get("date") ?? "");
  if (!(Math.abs(theirs - Date.now()) > MAX_CLOCK_GAP_MS)) return [];
  return [
    problem(
      `The clocks here and there differ by ${Math.round(Math.abs(theirs - Date.now()) / 1000)} s`,
      "Set both by NTP",
    ),
  ];
}

async function reach(answer: Response, url: string): Promise<Finding[]> {
  const status = await answer.json().catch(() => undefined);
  if (answer.status === 403) {
    return [problem(`The server does not let itself be reached by "${url}"`, "Name that host in allowed_hosts")];
  }
  if (status?.hint === "untrusted_proxy") {
    return [problem("A proxy stands before the server that is not trusted", "Name its address in trusted_proxies")];
  }
  if (status?.passkeys_supported === false) {
    return [problem(`No browser makes a passkey at "${url}"`, "Reach it by a name over HTTPS")];
  }
  return [];
}

async function upstream(answer: Response): Promise<Finding[]> {
  const health = await answer.json().catch(() => undefined);
  if (!answer.ok) return [note(`The server did not tell how its model is: status ${answer.status}`)];
  const { connection } = health ?? {};
  if (connection === null || connection === undefined) {
    return [note("No connection to a model is active", "Choose one under Settings, Connections")];
  }
  if (health.status === "ok") return [ok(`The model of "${connection.name}" answers in ${connection.latency_ms} ms`)];
  return [problem(
    `The model of "${connection.name}" does not answer: ${connection.error ?? "no reason given"}`,
    "Start its server, or correct the connection under Settings, Connections",
  )];
}
