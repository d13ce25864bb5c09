/**
 * Runs one tool server: connects when it's first needed, reconnects after failures with growing delays, and disconnects
 * when it's idle. Its tools stay known while it's disconnected.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { raceAbort } from "../async/delay.ts";
import { AppError, getErrorMessage, getErrorTrace } from "../errors.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import type { HttpClient } from "../http/http_client.ts";
import type { JsonObject } from "../json/type_guards.ts";
import type { Log } from "../log.ts";
import type { ToolCallOptions, ToolOutput } from "../tools/tool_registry.ts";
import type { ListedTool, McpConnection } from "./mcp_connection.ts";
import { type SignInChallenge, SignInNeededError } from "./mcp_result.ts";
import type { ServerFetch, SignInFetch } from "./server_fetch.ts";
import { listSignInSecrets, type StoredSignIn, type ToolServers } from "./tool_servers.ts";
import { type HttpContent, isInUse, listSecrets, type StdioContent, type ToolServerContent } from "./tool_server.ts";

/** Limits of all servers. Tests set their own. */
export interface RuntimeLimits {
  /** Maximum size of a message from a server. */
  maxMessageBytes: number;
  /** How long a server may be idle before it's disconnected. */
  idleMs: number;
  /** First delay before a failed server is started again. It doubles each time. */
  firstRetryMs: number;
  maxRetryMs: number;
  /** Time between the steps of stopping a program. */
  graceMs: number;
}

/** Default limits. 8 MiB are enough for a screenshot as base64, and are parsed within a few milliseconds. */
export const RUNTIME_LIMITS: RuntimeLimits = {
  maxMessageBytes: 8 * 1024 * 1024,
  idleMs: 10 * 60_000,
  firstRetryMs: 1_000,
  maxRetryMs: 5 * 60_000,
  graceMs: 2_000,
};

/** Minimum time between two lists of tools. */
const LIST_INTERVAL_MS = 1_000;

/** The state of a server, for the owner. */
export type ServerState = "off" | "held" | "starting" | "ready" | "needs_auth" | "failed";

/** A listed tool, and the state for which a permission is valid. */
export interface KnownTool extends ListedTool {
  /** Like in `Tool`. */
  fingerprint: string;
}

/** Dependencies of a runtime. */
export interface RuntimeDeps {
  servers: ToolServers;
  client: HttpClient;
  openGuard(): Promise<Guard>;
  log: Log;
  now(): number;
  /** Version of Parlor. */
  version: string;
  /** Folder below which each program gets its own working folder. */
  folder: string;
  limits: RuntimeLimits;
  /** Called when the state or the tools have changed. */
  onChange(id: string): void;
}

/** One server. Create a new one when its settings change. */
export class ServerRuntime {
  readonly id: string;
  readonly content: ToolServerContent;
  readonly #deps: RuntimeDeps;
  readonly #closing = new AbortController();
  #connection: McpConnection | undefined;
  #connecting: Promise<McpConnection> | undefined;
  #tools: KnownTool[] | undefined;
  #toolsListing: Promise<void> | undefined;
  #mustListAgain = false;
  #listTimer: ReturnType<typeof setTimeout> | undefined;
  #error: AppError | undefined;
  #failures = 0;
  #retryAtMs = 0;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #usedAtMs = 0;
  #runningCalls = 0;
  #software: { name: string; version: string } | undefined;
  #offers = { prompts: false, resources: false };
  #refreshing: Promise<StoredSignIn | undefined> | undefined;
  #connectionsEnding = new Set<Promise<void>>();

  constructor(id: string, content: ToolServerContent, deps: RuntimeDeps) {
    this.id = id;
    this.content = content;
    this.#deps = deps;
  }

  /**
   * State of the server. A server that was disconnected because it was idle is `ready`: it starts again when needed.
   */
  get state(): ServerState {
    if (this.#connecting !== undefined) return "starting";
    if (this.#error instanceof SignInNeededError) return "needs_auth";
    if (this.#error !== undefined) return "failed";
    if (this.#tools !== undefined) return "ready";
    return isInUse(this.content) ? "starting" : "off";
  }

  /** Why the server isn't ready. */
  get error(): AppError | undefined {
    return this.#connecting === undefined ? this.#error : undefined;
  }

  /** What the server requested when it required a sign-in. */
  get challenge(): SignInChallenge {
    return this.#error instanceof SignInNeededError ? this.#error.challenge : {};
  }

  /** The tools in the last list. */
  get tools(): readonly KnownTool[] {
    return this.#tools ?? [];
  }

  get software(): { name: string; version: string } | undefined {
    return this.#software;
  }

  get offers(): { prompts: boolean; resources: boolean } {
    return this.#offers;
  }

  /**
   * Returns the tools. Connects if they aren't known.
   *
   * @throws {AppError} The reason why the server isn't ready. After a failure, it isn't tried again immediately.
   */
  async listTools(signal: AbortSignal): Promise<readonly KnownTool[]> {
    if (this.#tools === undefined || this.#error !== undefined) await this.#connect({ signal, isPatient: true });
    this.#touch();
    if (this.#toolsListing !== undefined) await raceAbort(this.#toolsListing, signal);
    return this.tools;
  }

  /** Returns a tool from the server's current list. Connects if necessary. @throws {AppError} */
  async findTool(name: string, signal: AbortSignal): Promise<KnownTool | undefined> {
    await this.#connect({ signal });
    if (this.#toolsListing !== undefined) await raceAbort(this.#toolsListing, signal);
    return this.tools.find((tool) => tool.name === name);
  }

  /** Calls a tool. @throws {AppError} Like `ToolSource.callTool` */
  async callTool(name: string, args: JsonObject, options: ToolCallOptions): Promise<ToolOutput> {
    const deadline = AbortSignal.any([options.signal, this.#closing.signal]);
    const call = async () => {
      const connection = await this.#connect({ signal: deadline });
      if (this.#toolsListing !== undefined) await raceAbort(this.#toolsListing, deadline);
      if (!this.tools.some((tool) => tool.name === name)) {
        throw new AppError("not_found", `The tool server "${this.content.name}" no longer has a tool "${name}"`);
      }
      return await connection.callTool(name, args, { ...options, signal: deadline });
    };
    return await this.#use(call);
  }

  /** Runs a request of the owner, such as listing prompts. @throws {AppError} */
  async request<T>(ask: (connection: McpConnection) => Promise<T>, signal: AbortSignal): Promise<T> {
    return await this.#use(async () => await ask(await this.#connect({ signal })));
  }

  /** Reconnects, even right after a failure. @returns Whether it's ready; if not, `error` has the reason. */
  async test(signal: AbortSignal): Promise<boolean> {
    await this.#disconnect();
    return await this.#connect({ signal }).then(() => true, (error) => {
      if (signal.aborted) throw error;
      return false;
    });
  }

  /** Starts connecting without waiting. */
  start(): void {
    if (!isInUse(this.content) || this.#tools !== undefined || this.#connecting !== undefined) return;
    this.#connect({ signal: this.#closing.signal, isPatient: true }).catch(() => {});
  }

  /** Creates a `fetch` for the server's sign-in. */
  async openSignInFetch({ name, url, trustedOrigins = [] }: HttpContent): Promise<SignInFetch> {
    const { createPageCheck, createServerFetch } = await import("./server_fetch.ts");
    const { maxMessageBytes } = this.#deps.limits;
    const target = { name, url: new URL(url), headers: {}, trustedOrigins, maxMessageBytes, onTooLarge: () => {} };
    return { fetch: createServerFetch(this.#deps, target), checkPage: createPageCheck(this.#deps, target) };
  }

  /** Disconnects, and waits until its program has ended. The runtime can't be used afterwards. */
  async close(): Promise<void> {
    this.#closing.abort(new AppError("not_available", `The tool server "${this.content.name}" was stopped`));
    await this.#disconnect();
    await this.#connecting?.catch(() => {});
    await this.#disconnect();
  }

  async #use<T>(ask: () => Promise<T>): Promise<T> {
    this.#runningCalls++;
    try {
      try {
        return await ask();
      } catch (error) {
        // A restarted HTTP server doesn't know the session and hasn't run the request.
        if ((error as AppError)?.name !== "SessionLostError") throw error;
        return await ask();
      }
    } finally {
      this.#runningCalls--;
      this.#touch();
    }
  }

  /**
   * Returns the connection. Connects first if necessary.
   *
   * @param options.isPatient Throws the last error while a failed server waits for its next start.
   */
  async #connect({ signal, isPatient = false }: { signal: AbortSignal; isPatient?: boolean }): Promise<McpConnection> {
    signal.throwIfAborted();
    this.#closing.signal.throwIfAborted();
    this.#touch();
    if (this.#connection !== undefined && this.#error === undefined) return this.#connection;
    if (this.#connecting === undefined) {
      const waits = isPatient && (this.#error instanceof SignInNeededError || this.#deps.now() < this.#retryAtMs);
      if (waits && this.#error !== undefined) throw this.#error;
    }
    return await raceAbort(this.#reopen(), signal);
  }

  /** Reconnects, or joins a running reconnection. */
  #reopen(): Promise<McpConnection> {
    if (this.#connecting !== undefined) return this.#connecting;
    clearTimeout(this.#retryTimer);
    const connecting = this.#open().finally(() => {
      this.#connecting = undefined;
      this.#deps.onChange(this.id);
    });
    this.#connecting = connecting;
    connecting.catch(() => {});
    this.#deps.onChange(this.id);
    return connecting;
  }

  async #open(): Promise<McpConnection> {
    const { log, limits } = this.#deps;
    const { name } = this.content;
    await this.#disconnect();
    try {
      const connection = await this.#openConnection();
      this.#connection = connection;
      this.#software = connection.software;
      this.#offers = connection.offers;
      this.#tools = await this.#readTools(connection);
      if (connection.failure !== undefined) throw connection.failure;
      this.#error = undefined;
      this.#failures = 0;
      log("debug", "Connected to a tool server", { server: name, tools: this.#tools.length });
      return connection;
    } catch (thrown) {
      await this.#disconnect();
      const error = thrown instanceof AppError
        ? thrown
        : new AppError("upstream_error", `Can't connect to the tool server "${name}": ${getErrorMessage(thrown)}`, {
          cause: thrown,
        });
      if (!(thrown instanceof AppError) && !this.#closing.signal.aborted) {
        log("error", "Can't connect to a tool server", { server: name, error: getErrorTrace(thrown) });
      }
      this.#fail(error, limits);
      throw error;
    }
  }

  async #openConnection(): Promise<McpConnection> {
    const { content } = this;
    const { version } = this.#deps;
    const { McpConnection } = await import("./mcp_connection.ts");
    const transport = content.transport === "stdio" ? await this.#openStdio(content) : await this.#openHttp(content);
    return await McpConnection.open({
      name: content.name,
      transport,
      version,
      listSecrets: () => [...listSecrets(content), ...listSignInSecrets(this.#deps.servers.findSignIn(this.id))],
      onClose: (closed) => this.#onClose(closed),
      onToolsChanged: (changed) => this.#updateTools(changed),
      onSessionLost: () => void this.#disconnect(),
    }, this.#closing.signal);
  }

  async #openStdio(content: StdioContent) {
    const { servers, folder, log, limits } = this.#deps;
    servers.assertProgramsAllowed();
    const { StdioTransport } = await import("./stdio_transport.ts");
    return new StdioTransport({ ...content, folder: join(folder, this.id), log, ...limits });
  }

  async #openHttp(content: HttpContent) {
    const [{ HttpTransport }, { createServerFetch }] = await Promise.all([
      import("./http_transport.ts"),
      import("./server_fetch.ts"),
    ]);
    const url = new URL(content.url);
    const headers = content.headers?.values ?? {};
    const { limits: { maxMessageBytes } } = this.#deps;
    const fetch = createServerFetch(this.#deps, {
      name: content.name,
      url,
      headers,
      trustedOrigins: content.trustedOrigins ?? [],
      maxMessageBytes,
      onTooLarge: (error) => transport.fail(error),
    });
    const transport = new HttpTransport({
      url,
      fetch: (input, init) => this.#fetchSignedIn(content, fetch, input, init),
    });
    return transport;
  }

  /** Adds the access token. If the server rejects it, it's renewed once. After that, the owner must sign in. */
  async #fetchSignedIn(
    content: HttpContent,
    fetchServer: ServerFetch,
    input: string | URL,
    init: RequestInit | undefined,
  ): Promise<Response> {
    const { servers } = this.#deps;
    const hasOwnHeader = Object.keys(content.headers?.values ?? {}).some((name) =>
      name.toLowerCase() === "authorization"
    );
    const send = async (signIn: StoredSignIn | undefined) => {
      const token = hasOwnHeader ? undefined : signIn?.tokens?.access_token;
      const headers = new Headers(init?.headers);
      if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
      return await fetchServer(input, { ...init, headers });
    };
    const before = servers.findSignIn(this.id);
    let response = await send(before);
    if (response.status !== 401 && response.status !== 403) return response;
    const { extractWWWAuthenticateParams } = await import("./sdk.ts");
    if (response.status === 401 && !hasOwnHeader && before !== undefined) {
      const renewed = await this.#refresh(content, before);
      if (renewed !== undefined) {
        await response.body?.cancel();
        response = await send(renewed);
        if (response.status !== 401 && response.status !== 403) return response;
      }
    }
    const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(response);
    if (response.status === 403 && error !== "insufficient_scope") return response;
    await response.body?.cancel();
    if (hasOwnHeader) {
      throw new AppError(
        "upstream_error",
        `The tool server "${content.name}" rejects its Authorization header (HTTP ${response.status})`,
      );
    }
    const needed = new SignInNeededError(content.name, { resourceMetadataUrl, scope });
    this.#fail(needed);
    throw needed;
  }

  /**
   * Renews the access token. Concurrent requests share one renewal, because a refresh token is often valid only once.
   */
  async #refresh(content: HttpContent, before: StoredSignIn): Promise<StoredSignIn | undefined> {
    const { servers } = this.#deps;
    const current = servers.findSignIn(this.id);
    if (current?.tokens?.access_token !== before.tokens?.access_token) return current;
    this.#refreshing ??= (async () => {
      const { refreshSignIn } = await import("./sign_in.ts");
      const { fetch } = await this.openSignInFetch(content);
      const renewed = await refreshSignIn(content, before, fetch);
      if (renewed !== undefined) await servers.setSignIn(this.id, renewed);
      return renewed;
    })().finally(() => this.#refreshing = undefined);
    return await this.#refreshing;
  }

  async #readTools(connection: McpConnection): Promise<KnownTool[]> {
    const listed = await connection.listTools(this.#closing.signal);
    return listed.map((tool) => ({ ...tool, fingerprint: hashTool(this.content, tool) }));
  }

  /** Lists the tools again. If that fails, ends the connection, because the old list may be wrong. */
  #updateTools(connection: McpConnection): void {
    if (this.#connection !== connection) return;
    if (this.#toolsListing !== undefined || this.#listTimer !== undefined) {
      this.#mustListAgain = true;
      return;
    }
    const list = async () => {
      try {
        const tools = await this.#readTools(connection);
        if (this.#connection === connection) this.#tools = tools;
      } catch (error) {
        if (this.#connection !== connection || this.#closing.signal.aborted) return;
        await this.#disconnect();
        this.#fail(error as AppError);
      }
    };
    this.#toolsListing = list().finally(() => {
      this.#toolsListing = undefined;
      this.#deps.onChange(this.id);
      // A server that reports changes continuously is only asked once per pause.
      this.#listTimer = setTimeout(() => {
        this.#listTimer = undefined;
        const isChanged = this.#mustListAgain;
        this.#mustListAgain = false;
        if (isChanged && this.#connection === connection) this.#updateTools(connection);
      }, LIST_INTERVAL_MS);
    });
  }

  #onClose(connection: McpConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#fail(
      connection.failure ??
        new AppError("upstream_error", `The tool server "${this.content.name}" closed the connection`),
    );
    void this.#end(connection);
  }

  /** Records a failure. A server in use is restarted automatically. */
  #fail(error: AppError, { firstRetryMs, maxRetryMs, idleMs } = this.#deps.limits): void {
    if (this.#closing.signal.aborted) return;
    this.#error = error;
    const waitMs = Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(this.#failures++, 20));
    this.#retryAtMs = this.#deps.now() + waitMs;
    clearTimeout(this.#retryTimer);
    const isWorthRetrying = isInUse(this.content) && !(error instanceof SignInNeededError) &&
      error.code !== "programs_not_allowed" && this.#deps.now() - this.#usedAtMs < idleMs;
    if (isWorthRetrying) {
      this.#retryTimer = setTimeout(() => void this.#reopen().catch(() => {}), waitMs);
    }
    this.#deps.onChange(this.id);
  }

  #touch(): void {
    this.#usedAtMs = this.#deps.now();
    clearTimeout(this.#idleTimer);
    if (this.#closing.signal.aborted) return;
    const check = () => {
      if (this.#runningCalls > 0 || this.#connecting !== undefined) this.#touch();
      else void this.#disconnect();
    };
    this.#idleTimer = setTimeout(check, this.#deps.limits.idleMs);
  }

  async #disconnect(): Promise<void> {
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#listTimer);
    this.#listTimer = undefined;
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection !== undefined) void this.#end(connection);
    await Promise.all(this.#connectionsEnding);
  }

  #end(connection: McpConnection): Promise<void> {
    const ending = connection.close().catch(() => {}).finally(() => this.#connectionsEnding.delete(ending));
    this.#connectionsEnding.add(ending);
    return ending;
  }
}

/**
 * Returns the SHA-256, in hex, of everything that the owner decides by: the server's address or program, and what the
 * server says about the tool. The order of keys doesn't matter.
 */
function hashTool(
  server: ToolServerContent,
  { title = "", description, inputSchema, annotations }: ListedTool,
): string {
  const address = server.transport === "http" ? server.url : [server.command, ...server.args];
  const said = [address, title, description, sortKeys(inputSchema), sortKeys(annotations)];
  return createHash("sha256").update(JSON.stringify(said)).digest("hex");
}

/** Sorts the keys of a schema. Recursion is safe, because the depth of schemas is limited. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, sortKeys(item)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => a < b ? -1 : 1));
}
