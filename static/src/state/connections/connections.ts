/** The saved connections to model servers, and the state of the active one. */
import type {
  Connection,
  ConnectionInput,
  ConnectionTest,
  DetectedServer,
  FoundServers,
  Health,
} from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";
import { type ConnectionState, getConnectionState } from "./connection_state.ts";
import { LatestRead } from "../app/latest_read.ts";

/** A search for servers. */
export type Discovery =
  | { kind: "idle" }
  | { kind: "searching" }
  | { kind: "done"; found: FoundServers }
  | { kind: "failed"; error: ApiError };

/** A test of a saved connection. */
export type Check = { kind: "running" } | { kind: "done"; result: ConnectionTest } | {
  kind: "failed";
  error: ApiError;
};

/** Connections as the settings show them. */
export class Connections {
  readonly items = signal<Connection[]>([]);
  readonly state = signal<"loading" | "ready" | "failed">("loading");
  readonly error = signal<ApiError | undefined>(undefined);
  readonly health = signal<Health | undefined>(undefined);
  readonly discovery = signal<Discovery>({ kind: "idle" });
  readonly checks = signal<ReadonlyMap<string, Check>>(new Map());
  readonly hiddenIds = signal<ReadonlySet<string>>(new Set());
  readonly shown = computed(() => this.items.value.filter((item) => !this.hiddenIds.value.has(item.id)));
  readonly active = computed(() => this.items.value.find((item) => item.active));
  /** True if there is only the demo connection. */
  readonly hasOnlyDemo = computed(() =>
    this.state.value === "ready" && this.shown.value.every((item) => item.kind === "demo")
  );
  #api: Api;
  readonly #lists = new LatestRead();
  readonly #healths = new LatestRead();

  constructor(api: Api) {
    this.#api = api;
  }

  /** Loads the list and the state of the active connection. */
  async refresh(): Promise<void> {
    await this.#readList();
    await this.refreshHealth();
  }

  /** Handles a change event. Each call to a model causes one, so the active server is only asked if it is another. */
  async onChanged(): Promise<void> {
    const before = this.active.peek();
    await this.#readList();
    const now = this.active.peek();
    if (now?.id !== before?.id || now?.updated_at !== before?.updated_at) await this.refreshHealth();
  }

  async #readList(): Promise<void> {
    try {
      await this.#lists.run(() => this.#api.listConnections(), (items) => this.#take(items));
      this.state.value = "ready";
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
      if (this.state.value !== "ready") this.state.value = "failed";
    }
  }

  /** A call since the last list is newer than what a test or the health check found before. */
  #take(items: Connection[]): void {
    const known = new Map(this.items.peek().map((item) => [item.id, item]));
    this.items.value = items;
    for (const { id, last_call } of items) {
      const before = known.get(id);
      if (!before || !last_call || before.last_call?.at === last_call.at) continue;
      if (this.checks.peek().get(id)?.kind === "done") this.#forgetCheck(id);
      if (this.health.peek()?.connection?.id === id) this.health.value = undefined;
    }
  }

  /** Finds a connection; without an id, or if that one is gone, the active one. Reads signals. */
  find(id: string | null | undefined): Connection | undefined {
    return this.items.value.find((item) => item.id === id) ?? this.active.value;
  }

  /** Returns whether a connection works. Reads signals. */
  getState(connection: Connection): ConnectionState {
    return getConnectionState(connection, this.checks.value.get(connection.id), this.health.value?.connection);
  }

  /**
   * Asks quietly whether a connection works: a failure changes nothing, success is shown.
   *
   * @returns True if it works.
   */
  async probe(id: string): Promise<boolean> {
    const connection = this.items.peek().find((item) => item.id === id);
    if (!connection) return false;
    const { name, kind, base_url, model, context_size } = connection;
    try {
      const result = await this.test({ id, name, kind, base_url, model, context_size, quick: true });
      const works = result.reachable && result.authorized && result.error === undefined;
      if (works) this.checks.value = new Map(this.checks.peek()).set(id, { kind: "done", result });
      return works;
    } catch {
      // Parlor itself can't be reached or refuses. The next attempt shows whether that has changed.
      return false;
    }
  }

  /** Checks whether the active model can be reached. */
  async refreshHealth(): Promise<void> {
    try {
      await this.#healths.run(() => this.#api.getHealth(), (health) => this.health.value = health);
    } catch {
      this.health.value = undefined;
    }
  }

  /** Saves a connection. @throws {ApiError} */
  async save(input: ConnectionInput): Promise<Connection> {
    const saved = await this.#api.saveConnection(input);
    this.#forgetCheck(saved.id);
    await this.refresh();
    return saved;
  }

  /** Makes a connection the active one. @throws {ApiError} */
  async activate(id: string): Promise<void> {
    await this.#api.activateConnection(id);
    await this.refresh();
  }

  /** Asks a detected server with a key what it is. @throws {ApiError} */
  unlock({ base_url, kind }: DetectedServer, apiKey: string): Promise<ConnectionTest> {
    return this.test({ kind, base_url, api_key: apiKey, quick: true });
  }

  /** Saves a detected server, unless it is saved already, and activates it. @throws {ApiError} */
  async use(server: DetectedServer, apiKey?: string): Promise<Connection> {
    const { base_url, kind, software, models } = server;
    const known = this.savedFor(server);
    const address = software === "Ollama"
      ? { kind: "ollama" as const, base_url: stripPath(base_url) } satisfies ConnectionInput
      : { kind, base_url } satisfies ConnectionInput;
    const key: ConnectionInput = apiKey === undefined ? {} : { api_key: apiKey };
    const connection = known ??
      await this.#api.saveConnection({ name: software, ...address, ...key, model: models[0] ?? null });
    await this.activate(connection.id);
    return connection;
  }

  /** Finds the saved connection of a detected server. */
  savedFor(server: DetectedServer): Connection | undefined {
    return this.items.value.find((item) => stripPath(item.base_url) === stripPath(server.base_url));
  }

  /** Hides a connection; `remove` deletes it. */
  hide(id: string, isHidden: boolean): void {
    const ids = new Set(this.hiddenIds.value);
    if (isHidden) ids.add(id);
    else ids.delete(id);
    this.hiddenIds.value = ids;
  }

  /** Deletes a connection permanently. @throws {ApiError} */
  async remove(id: string, keepalive: boolean): Promise<void> {
    try {
      await this.#api.deleteConnection(id, { keepalive });
      this.items.value = this.items.value.filter((item) => item.id !== id);
      await this.refresh();
    } finally {
      this.hide(id, false);
    }
  }

  /** Removes the stored key. @throws {ApiError} */
  async clearKey(id: string): Promise<void> {
    await this.#api.clearConnectionKey(id);
    await this.refresh();
  }

  /** Tests a connection that may be unsaved. @throws {ApiError} */
  test(input: ConnectionInput & { quick?: boolean }): Promise<ConnectionTest> {
    return this.#api.testConnection(input);
  }

  /**
   * Tests a saved connection; the result is in `checks`.
   *
   * @param quick False if the owner pressed Test, so that the server is also asked what it does.
   */
  async check(connection: Connection, { quick = true } = {}): Promise<void> {
    const { id, name, kind, base_url, model, context_size } = connection;
    const set = (check: Check) => this.checks.value = new Map(this.checks.value).set(id, check);
    set({ kind: "running" });
    try {
      set({ kind: "done", result: await this.test({ id, name, kind, base_url, model, context_size, quick }) });
    } catch (thrown) {
      set({ kind: "failed", error: asApiError(thrown) });
    }
  }

  /** Searches for running servers of all kinds; the result is in `discovery`. */
  async discover(): Promise<void> {
    if (this.discovery.value.kind === "searching") return;
    this.discovery.value = { kind: "searching" };
    try {
      this.discovery.value = { kind: "done", found: await this.#api.discoverServers() };
    } catch (thrown) {
      this.discovery.value = { kind: "failed", error: asApiError(thrown) };
    }
  }

  #forgetCheck(id: string): void {
    const checks = new Map(this.checks.value);
    checks.delete(id);
    this.checks.value = checks;
  }
}

/** Ollama is the same server with and without `/v1`. */
function stripPath(url: string): string {
  return url.replace(/\/+$/, "").replace(/\/v1$/, "");
}
