/** Decides when servers are asked what they do, and stores the results with their connections. */
import { isAddress, isPublicAddress } from "../../http/guard/target_policy.ts";
import { getErrorFields } from "../../http/upstream_error.ts";
import type { Log } from "../../log.ts";
import type { Connections } from "../connections/connections.ts";
import type { ContextSizes } from "../context_sizes.ts";
import type { Dialect } from "../dialects/dialect.ts";
import { getDialect, isHosted } from "../dialects/dialects.ts";
import { getTargetDialect, type UpstreamTarget } from "../provider.ts";
import type { UpstreamClient } from "../upstream_client.ts";
import { CONTRACT_ITEMS, isDifferent, isIncomplete, mergeContracts, type ServerContract } from "./contract.ts";

/** How long a probe may take. */
const PROBE_MS = 2_000;
/** How long a server that was asked isn't asked again whether it has changed. */
const RECHECK_MS = 60_000;

/** Dependencies of `ServerProbes`. */
export interface ServerProbesDeps {
  connections: Connections;
  client: Pick<UpstreamClient, "identify" | "probe" | "readFingerprint">;
  inspector: { ensure(id: string, signal: AbortSignal): Promise<void> };
  contextSizes: Pick<ContextSizes, "replace">;
  log: Log;
  now(): number;
  /** Maximum duration of a probe, for tests on slow machines. */
  limitMs?: number;
  /** Whether servers are asked only for tests of the owner. */
  isManual?: boolean;
}

/** Asks servers what they do. */
export class ServerProbes {
  readonly #deps: ServerProbesDeps;
  readonly #closing = new AbortController();
  readonly #running = new Map<string, Promise<void>>();
  /** When a server was last asked, by ID and version of its connection. */
  readonly #askedAtMs = new Map<string, number>();

  constructor(deps: ServerProbesDeps) {
    this.#deps = deps;
  }

  /**
   * Asks the server of a connection in the background, if it's on this machine or network, and it's new or has changed.
   *
   * @param isNews True if something has just happened to the connection or its server.
   */
  check(id: string, { isNews = false } = {}): void {
    const connection = this.#deps.isManual ? undefined : this.#deps.connections.find(id);
    if (connection === undefined || connection.kind === "demo" || this.#closing.signal.aborted) return;
    const running = this.#running.get(id);
    // The one that runs may have looked before the news.
    if (running !== undefined) return isNews ? void running.then(() => this.check(id, { isNews })) : undefined;
    const { hostname } = new URL(connection.baseUrl);
    if (!isOwnNetwork(hostname)) return;
    const key = `${id} ${connection.version}`;
    const askedAtMs = this.#askedAtMs.get(key);
    if (!isNews && askedAtMs !== undefined && this.#deps.now() < askedAtMs + RECHECK_MS) return;
    this.#askedAtMs.set(key, this.#deps.now());
    const started = this.#check(id).catch((error) => {
      if (!this.#closing.signal.aborted) {
        this.#deps.log("debug", "Can't ask a server what it does", { connection_id: id, ...getErrorFields(error) });
      }
    });
    this.#running.set(id, started.finally(() => this.#running.delete(id)));
  }

  /**
   * Asks a server for the owner, also a paid one.
   *
   * @param id The connection to remember the result with, if the target is that of a saved one.
   * @throws The caller's abort reason.
   */
  async test(
    target: UpstreamTarget,
    model: string,
    id: string | undefined,
    signal: AbortSignal,
  ): Promise<ServerContract | undefined> {
    if (target.kind === "demo") return undefined;
    const { client, now, limitMs = PROBE_MS } = this.#deps;
    const asked: UpstreamTarget = { ...target, dialect: await this.#findDialect(target, id, signal) };
    const contract = await client.probe(asked, model, { by: "owner", limitMs, now }, signal);
    return id === undefined ? contract : this.#keep(id, asked, model, contract);
  }

  /** Ends all probes. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#running.values());
  }

  /** Returns the dialect of a target that may not have been identified yet. */
  async #findDialect(target: UpstreamTarget, id: string | undefined, signal: AbortSignal): Promise<Dialect> {
    const { connections, client } = this.#deps;
    const own = getTargetDialect(target);
    if (own.name !== "generic") return own;
    const saved = id === undefined ? undefined : connections.getKnownDialect(id);
    const detected = saved === undefined ? (await client.identify(target, signal))?.dialect : undefined;
    return saved ?? (detected === undefined ? own : getDialect(detected));
  }

  async #check(id: string): Promise<void> {
    const { connections, inspector, client, now, limitMs = PROBE_MS } = this.#deps;
    const { signal } = this.#closing;
    await inspector.ensure(id, signal);
    const model = connections.find(id)?.model ?? connections.getFacts(id).firstModel;
    const dialect = connections.getKnownDialect(id);
    if (model === undefined || dialect === undefined || isHosted(dialect)) return;
    const target: UpstreamTarget = { ...connections.getTarget(id, model), dialect };
    const older = connections.getFacts(id).contracts?.[model];
    const isSame = older?.fingerprint === await client.readFingerprint(target, model, signal);
    if (older !== undefined && isSame && !isIncomplete(older)) return;
    const contract = await client.probe(target, model, { by: "parlor", limitMs, now }, signal);
    this.#keep(id, target, model, contract);
  }

  /** Stores a contract, and logs where it differs from the table, once. */
  #keep(id: string, target: UpstreamTarget, model: string, found: ServerContract): ServerContract {
    const { connections, contextSizes, log } = this.#deps;
    const older = connections.getFacts(id).contracts?.[model];
    const contract = mergeContracts(older, found);
    const known = connections.getTarget(id, model);
    known.connection?.memory?.reportContract(model, contract);
    const size = found.findings.context_size?.found;
    if (typeof size === "number") contextSizes.replace(target, model, size);
    for (const item of CONTRACT_ITEMS) {
      const finding = contract.findings[item];
      if (finding === undefined || !isDifferent(finding) || older?.findings[item]?.found === finding.found) continue;
      log("info", "A server does something else than others of its kind", {
        connection_id: id,
        model,
        server: getTargetDialect(target).name,
        item,
        expected: finding.expected,
        found: finding.found,
      });
    }
    return contract;
  }
}

/** Names of machines at home or in a tailnet: RFC 6761, 6762, 8375, and ICANN's private-use internal. */
const OWN_SUFFIXES = /(^|\.)(localhost|local|lan|home\.arpa|internal|ts\.net)$/;

/** Reports whether a host is on this machine or network, as far as its name tells. */
export function isOwnNetwork(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  if (isAddress(host)) return !isPublicAddress(host);
  return !host.includes(".") || OWN_SUFFIXES.test(host);
}
