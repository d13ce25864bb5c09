/** Checks the running server, who can reach it, and which addresses don't require sign-in. */
import { join } from "node:path";
import { delay } from "../async/delay.ts";
import { createCredentialStore } from "../auth/credential_stores.ts";
import type { OwnNode } from "../auth/hosts.ts";
import { findLoopbackAddress, findOpenAddresses, type ReachSettings } from "../auth/access_policy.ts";
import { createOperatorProof, findStorageKey } from "../crypto/storage_key.ts";
import { createSealer } from "../crypto/sealer.ts";
import { explainConnectError } from "../http/upstream_error.ts";
import { pathExists } from "../storage/atomic_file.ts";
import { openReader } from "../storage/database/database.ts";
import { readOwnNames } from "../tailnet/node_state.ts";
import type { DataLocation } from "./data_checks.ts";
import { createOk, createProblem, type Finding, note } from "./finding.ts";
import { CertificateMismatchError, type LocalServer, openLocalClient } from "./local_server.ts";

/** The configuration it checks. */
export interface ReachConfig extends ReachSettings {
  guardAllow: readonly string[];
  port: number;
}

const LOOPBACK = /^(127\.|::1$|localhost$)/;

/** Checks the configuration against the enrolled passkeys. */
export async function checkReachability(config: ReachConfig & DataLocation): Promise<Finding[]> {
  const { host, allowedHosts, trustedProxies, requireAuth, loopbackAuthBypass } = config;
  const findings: Finding[] = [];
  if (!requireAuth) {
    findings.push(
      createProblem("auth_off"),
    );
  }
  const { isGated, ownNode } = await readEnrolment(config);
  const { loopback, names, addresses, plainNames, patterns } = await findOpenAddresses(config, isGated, ownNode);
  const address = findLoopbackAddress(config);
  if (loopback.length > 0) {
    findings.push(
      address === undefined
        ? createProblem("open_loopback_without_page", { addresses: loopback.join(", ") })
        : createProblem("open_loopback", { addresses: loopback.join(", "), address }),
    );
  }
  if (names.length > 0) {
    findings.push(createProblem("open_names", { names: names.join(", ") }));
  }
  if (addresses.length > 0) {
    findings.push(createProblem("open_addresses", { addresses: addresses.join(", ") }));
  }
  if (patterns.length > 0) {
    findings.push(createProblem("open_patterns", { patterns: patterns.join(", ") }));
  }
  if (plainNames.length > 0) {
    findings.push(createProblem("open_plain_names", { names: plainNames.join(", ") }));
  }
  if (loopbackAuthBypass && trustedProxies.some((proxy) => LOOPBACK.test(proxy))) {
    findings.push(createProblem("proxy_here_without_credentials"));
  } else if (loopbackAuthBypass && requireAuth) {
    findings.push(note("machine_without_credentials"));
  }
  if (!LOOPBACK.test(host) && allowedHosts.length === 0) {
    findings.push(createProblem("no_name_allowed", { host }));
  }
  if (config.guardAllow.length > 0) {
    findings.push(note("guard_allow", { addresses: config.guardAllow.join(", ") }));
  }
  // A note, because a firewall or a published port may close it again: the container image listens on all addresses.
  const exposed = LOOPBACK.test(host) || config.tlsCert !== null
    ? []
    : [note("exposed_plain", { address: `${host.includes(":") ? `[${host}]` : host}:${config.port}` })];
  return [...(findings.length > 0 ? findings : [createOk("reach_ok")]), ...exposed];
}

interface Enrolment {
  isGated(rpId: string): boolean | Promise<boolean>;
  ownNode?: OwnNode;
}

/**
 * Reads which RP IDs have passkeys, and the last known names of the tailnet node. A missing key and a damaged file are
 * findings of data_checks.ts.
 */
async function readEnrolment({ dataDir, storageKeyFile }: DataLocation): Promise<Enrolment> {
  const path = join(dataDir, "credentials.json");
  const key = await findStorageKey({ dataDir, storageKeyFile: storageKeyFile ?? undefined }).catch(() => undefined);
  // Without the key the server doesn't start; with a file it can't read, it gates every address.
  if (key === undefined) {
    const isAbsent = !await pathExists(path);
    return { isGated: () => !isAbsent };
  }
  const sealer = createSealer(key);
  const store = createCredentialStore({ path, sealer: sealer.forPurpose("credentials"), log: () => {} });
  return { isGated: store.isGated, ownNode: await readOwnNode() };

  async function readOwnNode(): Promise<OwnNode | undefined> {
    const databasePath = join(dataDir, "app.db");
    if (!await pathExists(databasePath)) return undefined;
    try {
      const reader = openReader(databasePath);
      try {
        return readOwnNames(reader, sealer.forPurpose("settings"));
      } finally {
        reader.close();
      }
    } catch {
      return undefined; // data_checks.ts reports a database that can't be used
    }
  }
}

/** How to ask a server. */
export interface ServerQuestion {
  /** `"http://localhost:8787"`, or the URL users type. */
  url: string;
  /** Address to connect to instead of the URL's host. */
  connectTo?: LocalServer["connectTo"];
  /** Signs the request; absent if the data folder has none. */
  sessionKey: Uint8Array | undefined;
  /** Names this machine as the client, as a trusted proxy here has to. */
  namesClient?: boolean;
  /** PEM text of an additional certificate authority. */
  caCert?: string;
  /** True for a URL the user named: a server must answer there. */
  isExpected: boolean;
}

const RESPONSE_TIMEOUT_MS = 15_000;
const MAX_CLOCK_GAP_MS = 60_000;

/** Asks the server. */
export async function checkServer(question: ServerQuestion): Promise<Finding[]> {
  const { url, connectTo, sessionKey, namesClient, caCert, isExpected } = question;
  const client: Record<string, string> = namesClient ? { "X-Forwarded-For": "127.0.0.1" } : {};
  using local = openLocalClient({ caCert, connectTo });
  const ask = (path: string, headers: Record<string, string> = {}) =>
    local.fetch(url.replace(/\/$/, "") + path, {
      headers: { ...client, ...headers },
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    });
  try {
    const alive = await ask("/healthz");
    await alive.body?.cancel();
    if (alive.status !== 204) {
      return [
        createProblem("other_server", { url, status: alive.status }),
      ];
    }
    const findings = [
      createOk("server_ok", { url }),
      ...checkClock(alive),
      ...await checkAccess(await ask("/api/auth/status"), url),
    ];
    if (sessionKey === undefined) return isExpected ? findings : [...findings, note("session_key_unreadable")];
    const askAsOperator = (path: string) =>
      ask(path, { Authorization: `Bearer ${createOperatorProof(sessionKey, Date.now())}` });
    findings.push(...await checkHealth(await askAsOperator("/api/health")));
    // The same server under another URL has nothing new to say.
    if (isExpected) return findings;
    findings.push(...await checkTailnet(await askAsOperator("/api/tailnet/status")));
    findings.push(...await checkConnections(await askAsOperator("/api/connections")));
    findings.push(...await checkToolServers(() => askAsOperator("/api/tools/servers")));
    findings.push(...await checkJobs(await askAsOperator("/api/jobs")));
    return findings;
  } catch (cause) {
    if (cause instanceof CertificateMismatchError) return [createProblem("certificate_not_served", { url })];
    const { kind, reason } = explainConnectError(cause);
    // Anything else that responds there, or is silent, isn't a server that is off. Port 9 and its like are never asked.
    if (isExpected || (kind !== "refused" && kind !== "blocked")) {
      return [createProblem("server_unreachable", { url, error: reason })];
    }
    return [note("server_off", { url })];
  }
}

function checkClock(answer: Response): Finding[] {
  const serverTimeMs = Date.parse(answer.headers.get("date") ?? "");
  if (!(Math.abs(serverTimeMs - Date.now()) > MAX_CLOCK_GAP_MS)) return [];
  return [createProblem("clocks_differ", { seconds: Math.round(Math.abs(serverTimeMs - Date.now()) / 1000) })];
}

async function checkAccess(answer: Response, url: string): Promise<Finding[]> {
  const status = await answer.json().catch(() => undefined);
  if (answer.status === 403) {
    return [createProblem("host_refused", { url })];
  }
  if (status?.hint === "untrusted_proxy") {
    return [createProblem("proxy_untrusted")];
  }
  if (status?.passkeys_supported === false) {
    return [createProblem("no_passkeys", { url })];
  }
  return [];
}

/** More refused sign-ins a day than a person makes by mistake. */
const MANY_REFUSALS = 20;

async function checkHealth(answer: Response): Promise<Finding[]> {
  const health = await answer.json().catch(() => undefined);
  if (!answer.ok) return [note("health_untold", { status: answer.status })];
  const count = health?.refused_sign_ins ?? 0;
  const refused = count === 0 ? [] : [
    count > MANY_REFUSALS ? createProblem("sign_ins_refused_often", { count }) : note("sign_ins_refused", { count }),
  ];
  return [...refused, ...checkModels(health)];
}

// deno-lint-ignore no-explicit-any
function checkModels(health: any): Finding[] {
  const { connection } = health ?? {};
  if (connection === null || connection === undefined) {
    return [note("no_connection")];
  }
  if (health.status === "ok") return [createOk("model_ok", { name: connection.name, ms: connection.latency_ms })];
  return [createProblem("model_silent", { name: connection.name, error: connection.error ?? "no reason given" })];
}

async function checkTailnet(answer: Response): Promise<Finding[]> {
  const status = await answer.json().catch(() => undefined);
  if (!answer.ok || typeof status?.state !== "string") return [note("tailnet_untold", { status: answer.status })];
  if (!status.enabled) return [];
  if (status.state === "running") return [createOk("tailnet_ok", { url: status.url ?? status.hostname })];
  return [createProblem("tailnet_down", { state: status.state, error: status.error ?? "no reason given" })];
}

/** Finds connections whose last call failed. */
async function checkConnections(answer: Response): Promise<Finding[]> {
  const connections = await answer.json().catch(() => undefined);
  if (!answer.ok || !Array.isArray(connections)) return [note("calls_untold", { status: answer.status })];
  return connections.flatMap(({ id, name, last_call: call }) => {
    const isRecent = call?.ok === false && Date.now() - Date.parse(call.at) < DAY_MS;
    return isRecent ? [note("call_failed", { id, name, error: call.error?.message ?? "no reason given" })] : [];
  });
}

/** Waits for servers that are starting, which the question itself makes them do. */
async function checkToolServers(ask: () => Promise<Response>): Promise<Finding[]> {
  const until = Date.now() + RESPONSE_TIMEOUT_MS;
  for (;;) {
    const answer = await ask();
    const servers: unknown = await answer.json().catch(() => undefined);
    if (!answer.ok || !Array.isArray(servers)) return [note("tool_servers_untold", { status: answer.status })];
    const enabled = servers.filter((server) => server.enabled === true || server.unreadable === true);
    if (enabled.some(({ state }) => state === "starting") && Date.now() < until) {
      await delay(STARTING_POLL_MS);
      continue;
    }
    return enabled.map(({ name, state, tools, error }) =>
      state === "ready"
        ? createOk("tool_server_ok", { name, count: tools.length })
        : createProblem("tool_server_failed", { name, error: error?.message ?? state })
    );
  }
}

const STARTING_POLL_MS = 250;

const DAY_MS = 24 * 60 * 60 * 1000;

/** Backups have findings of their own. */
async function checkJobs(answer: Response): Promise<Finding[]> {
  const jobs = await answer.json().catch(() => undefined);
  if (!answer.ok || !Array.isArray(jobs)) return [note("jobs_untold", { status: answer.status })];
  const failed = jobs.filter(({ kind, state, updated_at }) =>
    kind !== "backup" && state === "failed" && Date.now() - Date.parse(updated_at) < DAY_MS
  );
  if (failed.length === 0) return [];
  return [note("jobs_failed", {
    count: failed.length,
    title: failed[0].title,
    error: failed[0].error?.message ?? "no reason given",
  })];
}
