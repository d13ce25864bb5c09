/** The owner's connection profiles. They're stored encrypted, and one of them can be active. */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import type { EventHub } from "../../events/event_hub.ts";
import { type ProfileWrite, SealedProfiles } from "../../storage/documents/sealed_profiles.ts";
import type { Database } from "../../storage/database/database.ts";
import type { CallTimeouts } from "../../http/upstream_error.ts";
import { splitQuery } from "../../http/base_url.ts";
import { applyContract } from "../contract/contract.ts";
import type { Dialect } from "../dialects/dialect.ts";
import { chooseDialect } from "../dialects/dialects.ts";
import type { CallConnection, UpstreamTarget } from "../provider.ts";
import type { ExpectedVersion } from "../../storage/preconditions.ts";
import type { UpstreamClient } from "../upstream_client.ts";
import {
  type Connection,
  type ConnectionContent,
  type ConnectionInput,
  parseConnection,
  toConnection,
} from "./connection.ts";
import { type ConnectionFacts, ConnectionMemory, type ConnectionMemoryDeps } from "./connection_memory.ts";

export type { Connection, ConnectionInput } from "./connection.ts";

// Keys of the table `setting`; the values are encrypted for the purpose "connections".
const ACTIVE = "active_connection";
const DEMO_INSTALLED = "demo_installed";
const DEMO_ID = "demo";

/** The dependencies of the profiles. */
export interface ConnectionsDeps extends Pick<ConnectionMemoryDeps, "log" | "onRecovered"> {
  db: Database;
  /** For the purpose "connections". */
  sealer: PurposeSealer;
  events: EventHub;
  now?: () => number;
  /** Timeouts of profiles that don't set their own. */
  timeouts: CallTimeouts;
}

/**
 * Opens the profiles. A new data folder gets the demo connection, which is active.
 *
 * A profile that can't be decrypted stays in the list, marked as unreadable.
 */
export async function openConnections(deps: ConnectionsDeps): Promise<Connections> {
  const profiles = await SealedProfiles.open<ConnectionContent>({
    ...deps,
    kind: "connection",
    activeKey: ACTIVE,
    what: "connection",
  });
  const memory = new ConnectionMemory({ ...deps, now: deps.now ?? Date.now });
  const connections = new Connections(profiles, deps.timeouts, memory);
  await connections.installDemoOnce();
  return connections;
}

/** The profiles. They're in memory, and a change is visible once it's saved. */
export class Connections {
  readonly #profiles: SealedProfiles<ConnectionContent>;
  readonly #timeouts: CallTimeouts;
  /** Facts about the connections. */
  readonly memory: ConnectionMemory;

  /** Use openConnections. */
  constructor(profiles: SealedProfiles<ConnectionContent>, timeouts: CallTimeouts, memory: ConnectionMemory) {
    this.#profiles = profiles;
    this.#timeouts = timeouts;
    this.memory = memory;
  }

  /** Lists all profiles, newest first. */
  list(): Connection[] {
    return this.#profiles.list().map((record) => toConnection(record, this.#profiles.activeId));
  }

  /** Finds a readable profile. */
  find(id: string): Connection | undefined {
    const record = this.#profiles.find(id);
    return record?.content === undefined ? undefined : toConnection(record, this.#profiles.activeId);
  }

  /** Finds the active profile. */
  findActive(): Connection | undefined {
    const { activeId } = this.#profiles;
    return activeId === undefined ? undefined : this.find(activeId);
  }

  /**
   * Creates or replaces a profile. The first profile becomes active.
   *
   * @param expectedVersion The version the stored profile must have.
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`
   */
  async put(
    input: ConnectionInput,
    { expectedVersion, isImport, createdAtMs }: Omit<ProfileWrite, "extraStatements"> = {},
  ): Promise<{ connection: Connection; isNew: boolean }> {
    const { record, isNew } = await this.#profiles.put(input.id, (stored) => parseConnection(input, stored), {
      expectedVersion,
      isImport,
      createdAtMs,
    });
    await this.memory.forget(record.id);
    return { connection: toConnection(record, this.#profiles.activeId), isNew };
  }

  /**
   * Deletes a profile. If it was active, none is active afterwards, because using another one might cost money.
   *
   * @throws {AppError} `not_found`
   */
  async remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    await this.#profiles.remove(id, expectedVersion);
    await this.memory.forget(id);
  }

  /** Deletes the stored key of a profile. @throws {AppError} `not_found` */
  clearKey(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#profiles.change(id, ({ key, ...content }) => key === undefined ? undefined : content, expectedVersion);
  }

  /** Makes a profile the active one. @throws {AppError} `not_found`; `conflict` if it's unreadable */
  async activate(id: string): Promise<Connection> {
    return toConnection(await this.#profiles.activate(id), this.#profiles.activeId);
  }

  /**
   * Returns the target of a profile, including its key.
   *
   * @param model The model to call, if it's known already.
   * @throws {AppError} `not_found`; `conflict` if it's unreadable
   */
  getTarget(id: string, model?: string): UpstreamTarget {
    const content = this.#profiles.getContent(id);
    const dialect = this.getDialect(id, model);
    const connection = {
      id,
      name: content.name,
      memory: this.memory.toCallMemory(id, content.model !== undefined),
    } satisfies CallConnection;
    const target = this.#toTarget(content);
    const sizes = content.contextSizes ?? {};
    if (model !== undefined && Object.hasOwn(sizes, model)) target.contextSize = sizes[model];
    return { ...target, ...(dialect && { dialect }), connection };
  }

  /** Returns whether unsaved input is for the server of a saved profile. */
  isTargetOf(id: string, { kind, baseUrl, query }: UpstreamTarget): boolean {
    const content = this.#profiles.find(id)?.content;
    if (content === undefined) return false;
    const saved = splitQuery(content.baseUrl);
    return content.kind === kind && saved.baseUrl === baseUrl && saved.query === query;
  }

  /** Returns the facts about a connection. */
  getFacts(id: string): ConnectionFacts {
    return this.memory.find(id);
  }

  /**
   * Returns the dialect in force: the table's, with what the server was found to do. Returns `undefined` for the demo and
   * for an unreadable profile.
   *
   * @param model The connection's own, or the first that the server lists, by default.
   */
  getDialect(id: string, model?: string): Dialect | undefined {
    const { contracts, firstModel } = this.memory.find(id);
    const used = model ?? this.#profiles.find(id)?.content?.model ?? firstModel;
    const known = this.getKnownDialect(id);
    return known && applyContract(known, used === undefined ? undefined : contracts?.[used]);
  }

  /** Returns what the table says about the server of a profile. */
  getKnownDialect(id: string): Dialect | undefined {
    const content = this.#profiles.find(id)?.content;
    if (content === undefined || content.kind === "demo") return undefined;
    const { kind, baseUrl, serverOverride: override } = content;
    return chooseDialect({ kind, baseUrl, override, detected: this.memory.find(id).detected });
  }

  /**
   * Returns the target of unsaved input. If it has the ID of a saved profile with the same origin, that profile's key
   * is used.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`
   */
  getUnsavedTarget(input: ConnectionInput): UpstreamTarget {
    const stored = input.id === undefined ? undefined : this.#profiles.find(input.id)?.content;
    const content = parseConnection(input, stored);
    const { kind, baseUrl, serverOverride: override } = content;
    return {
      ...this.#toTarget(content),
      ...(kind !== "demo" && { dialect: chooseDialect({ kind, baseUrl, override }) }),
    };
  }

  /** Adds the demo to a new installation. It doesn't come back after it was deleted. */
  async installDemoOnce(): Promise<void> {
    if (this.#profiles.readSetting(DEMO_INSTALLED) !== undefined) return;
    await this.#profiles.put(DEMO_ID, () => parseConnection({ kind: "demo", name: "Demo" }, undefined), {
      extraStatements: [this.#profiles.createSetting(DEMO_INSTALLED, "true")],
    });
  }

  #toTarget(content: ConnectionContent): UpstreamTarget {
    const { kind, key, headers, contextSize, extraBody, background } = content;
    const timeouts = { ...this.#timeouts, ...content.timeouts };
    const { baseUrl, query } = splitQuery(content.baseUrl);
    return {
      kind,
      baseUrl,
      apiKey: key?.value,
      timeouts,
      contextSize,
      ...(query && { query }),
      ...(headers && { headers: headers.values }),
      ...(extraBody && { extraBody }),
      ...(background && { background }),
    };
  }
}

// Identifies the servers of connections before the first call.

/** How long a call waits for the identification. A server that takes longer is treated as unknown. */
const MAX_WAIT_MS = 2_000;
/** How long an unknown server isn't asked again. */
const SILENT_TTL_MS = 10 * 60 * 1000;

/** Dependencies of `ConnectionInspector`. */
export interface ConnectionInspectorDeps {
  connections: Connections;
  client: Pick<UpstreamClient, "identify">;
  now(): number;
  /** How long a call waits for the identification. */
  maxWaitMs?: number;
}

/** Identifies servers and remembers the result with their connections. */
export class ConnectionInspector {
  readonly #deps: ConnectionInspectorDeps;
  readonly #closing = new AbortController();
  readonly #running = new Map<string, Promise<void>>();
  /** When an unknown server was last asked, by ID and version of its connection. */
  readonly #silentSinceMs = new Map<string, number>();

  constructor(deps: ConnectionInspectorDeps) {
    this.#deps = deps;
  }

  /**
   * Identifies the server of a connection, unless it's known or was recently asked without success. Waits at most 2 s.
   *
   * @throws The reason of `signal`.
   */
  async ensure(id: string, signal: AbortSignal): Promise<void> {
    const { connections, now } = this.#deps;
    const connection = connections.find(id);
    if (connection?.kind !== "openai" || connections.getDialect(id)?.name !== "generic") return;
    const key = `${id} ${connection.version}`;
    if (now() < (this.#silentSinceMs.get(key) ?? -Infinity) + SILENT_TTL_MS) return;
    await this.inspect(id, signal);
    if (connections.getDialect(id)?.name === "generic") this.#silentSinceMs.set(key, now());
  }

  /** Identifies the server of a connection and lists its models. @throws The reason of `signal`. */
  async inspect(id: string, signal: AbortSignal = this.#closing.signal): Promise<void> {
    const running = this.#running.get(id);
    if (running !== undefined) await running;
    else {
      const { maxWaitMs = MAX_WAIT_MS } = this.#deps;
      const asking = this.#ask(id, AbortSignal.any([signal, this.#closing.signal, AbortSignal.timeout(maxWaitMs)]));
      this.#running.set(id, asking);
      await asking.finally(() => this.#running.delete(id));
    }
    signal.throwIfAborted();
  }

  /** Ends all requests. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#running.values());
  }

  /** Asks a server. Never rejects: if the server doesn't respond, the following call fails with a better error. */
  async #ask(id: string, signal: AbortSignal): Promise<void> {
    const { connections, client } = this.#deps;
    try {
      const target = connections.getTarget(id);
      const identity = await client.identify(target, signal);
      if (identity === undefined) return;
      const memory = target.connection?.memory;
      if (identity.dialect !== undefined) memory?.reportDialect(identity.dialect);
      if (identity.models.length > 0) memory?.reportModels(identity.models);
    } catch {
      // Aborted, too slow, or unreachable
    }
  }
}
