/** Finds out what the servers of connections are, before the first call. */
import type { UpstreamClient } from "../upstream_client.ts";
import type { Connections } from "./connections.ts";

/** How long a call waits for it. A server that takes longer is used as one that says nothing of itself. */
const MAX_WAIT_MS = 2_000;
/** How long a server that didn't say isn't asked again. */
const SILENT_TTL_MS = 10 * 60 * 1000;

/** Dependencies of `ConnectionInspector`. */
export interface ConnectionInspectorDeps {
  connections: Connections;
  client: Pick<UpstreamClient, "identify">;
  now(): number;
}

/** Asks servers what they are, and remembers it with their connections. */
export class ConnectionInspector {
  readonly #deps: ConnectionInspectorDeps;
  readonly #closing = new AbortController();
  readonly #running = new Map<string, Promise<void>>();
  /** When a server was asked that didn't say, by id and version of its connection. */
  readonly #silentSinceMs = new Map<string, number>();

  constructor(deps: ConnectionInspectorDeps) {
    this.#deps = deps;
  }

  /**
   * Asks the server of a connection what it is, unless that is known or it didn't say a short time ago. Waits 2 s at most.
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

  /** Asks the server of a connection what it is and which models it has. @throws The reason of `signal`. */
  async inspect(id: string, signal: AbortSignal = this.#closing.signal): Promise<void> {
    const running = this.#running.get(id);
    if (running !== undefined) await running;
    else {
      const asking = this.#ask(id, AbortSignal.any([signal, this.#closing.signal, AbortSignal.timeout(MAX_WAIT_MS)]));
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

  /** Never rejects: a server that can't be asked is used as it is, and the call that follows fails with a better error. */
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
      // Aborted, too slow, or not to be reached.
    }
  }
}
