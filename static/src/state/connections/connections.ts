/** The saved connections to model servers, and the state of the active one. */
import type { Connection, ConnectionInput, ConnectionTest, DetectedServer, Health } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";

/** A search for servers. */
export type Discovery =
  | { kind: "idle" }
  | { kind: "searching" }
  | { kind: "done"; servers: DetectedServer[] }
  | { kind: "failed"; error: ApiError };

/** A test of a saved connection. */
export type Check = { kind: "running" } | { kind: "done"; verdict: ConnectionTest } | {
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

  constructor(api: Api) {
    this.#api = api;
  }

  /** Loads the list and the state of the active connection. */
  async refresh(): Promise<void> {
    try {
      this.items.value = await this.#api.listConnections();
      this.state.value = "ready";
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
      if (this.state.value !== "ready") this.state.value = "failed";
    }
    await this.refreshHealth();
  }

  /** Checks whether the active model can be reached. */
  async refreshHealth(): Promise<void> {
    try {
      this.health.value = await this.#api.getHealth();
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

  /** Saves a detected server, unless it is saved already, and activates it. @throws {ApiError} */
  async use(server: DetectedServer): Promise<Connection> {
    const { base_url, kind, software, models } = server;
    const known = this.savedFor(server);
    const connection = known ??
      await this.#api.saveConnection({ name: software, kind, base_url, model: models[0] ?? null });
    await this.activate(connection.id);
    return connection;
  }

  /** Finds the saved connection of a detected server. */
  savedFor(server: DetectedServer): Connection | undefined {
    return this.items.value.find((item) => stripSlash(item.base_url) === stripSlash(server.base_url));
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
  test(input: ConnectionInput): Promise<ConnectionTest> {
    return this.#api.testConnection(input);
  }

  /** Tests a saved connection; the result is in `checks`. */
  async check(connection: Connection): Promise<void> {
    const { id, name, kind, base_url, model, context_size } = connection;
    const set = (check: Check) => this.checks.value = new Map(this.checks.value).set(id, check);
    set({ kind: "running" });
    try {
      set({ kind: "done", verdict: await this.test({ id, name, kind, base_url, model, context_size }) });
    } catch (thrown) {
      set({ kind: "failed", error: asApiError(thrown) });
    }
  }

  /** Searches for running servers; the result is in `discovery`. */
  async discover(): Promise<void> {
    if (this.discovery.value.kind === "searching") return;
    this.discovery.value = { kind: "searching" };
    try {
      this.discovery.value = { kind: "done", servers: await this.#api.discoverServers() };
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

function stripSlash(url: string): string {
  return url.replace(/\/+$/, "");
}
