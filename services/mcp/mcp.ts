/** MCP servers and their tools: manages the servers, reports their state, and provides their tools to replies. */
import { join } from "node:path";
import { AppError } from "../errors.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import { type HttpClient, openHttpClient } from "../http/http_client.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import type { JsonObject } from "../json/type_guards.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import type {
  Tool,
  ToolCallOptions,
  ToolOutput,
  ToolPermission,
  ToolSource,
  UnavailableServer,
} from "../tools/tool_registry.ts";
import { isId } from "../storage/ids.ts";
import {
  BUILT_IN_ID,
  isInUse,
  parseServerList,
  type SkippedServer,
  type ToolServer,
  type ToolServerInput,
  toServerId,
} from "./tool_server.ts";
import type { ResourceContent, ServerPrompt, ServerResource } from "./mcp_connection.ts";
import {
  type KnownTool,
  RUNTIME_LIMITS,
  type RuntimeLimits,
  ServerRuntime,
  type ServerState,
} from "./server_runtime.ts";
import type { PendingSignIn } from "./sign_in.ts";
import { openToolServers, TOOL_SERVER_KIND, type ToolServers, type ToolServersDeps } from "./tool_servers.ts";

/** A tool with its permission, as the owner sees it. */
export interface ToolWithPermission extends KnownTool {
  permission: ToolPermission;
}

/** A server and its state. */
export interface ServerStatus {
  server: ToolServer;
  state: ServerState;
  /** Why it isn't ready. */
  error?: AppError;
  /** Page where the owner signs in, while a sign-in is pending. */
  authUrl?: string;
  /** Whether there are tokens from a sign-in. */
  isSignedIn: boolean;
  /** The tools in the last list. */
  tools: ToolWithPermission[];
  software?: { name: string; version: string };
  offers: { prompts: boolean; resources: boolean };
}

/** The dependencies of the servers. */
export interface McpDeps extends Omit<ToolServersDeps, "now"> {
  now(): number;
  version: string;
  openGuard(): Promise<Guard>;
  ownListeners?: OwnListeners;
  /** Folder below which programs run. */
  cacheFolder: string;
  limits?: Partial<RuntimeLimits>;
}

/** How long a list for the model waits for a server that is starting. */
const LIST_WAIT_MS = 5_000;
const MAX_PENDING_SIGN_INS = 20;

/** Opens the servers. They start when needed. */
export async function openMcp(deps: McpDeps): Promise<Mcp> {
  return new Mcp(deps, await openToolServers(deps));
}

/** All tool servers. */
export class Mcp implements ToolSource {
  /** The store. Write through this class, so that running servers are updated. */
  readonly servers: ToolServers;
  readonly #deps: McpDeps;
  readonly #client: HttpClient;
  readonly #runtimes = new Map<string, ServerRuntime>();
  readonly #closing = new Set<Promise<void>>();
  readonly #signIns = new Map<string, PendingSignIn>();
  /** Why the last sign-in of a server failed. */
  readonly #signInErrors = new Map<string, AppError>();
  #isClosed = false;

  /** Use openMcp. */
  constructor(deps: McpDeps, servers: ToolServers) {
    this.#deps = deps;
    this.#client = openHttpClient({ ownListeners: deps.ownListeners });
    this.servers = servers;
  }

  /** Lists the servers, oldest first, and starts those that are enabled and whose tools aren't known yet. */
  list(): ServerStatus[] {
    const servers = this.servers.list();
    for (const server of servers) this.#findEnabled(server)?.start();
    return servers.map((server) => this.#toStatus(server));
  }

  /** @throws {AppError} `not_found` */
  get(id: string): ServerStatus {
    const server = this.servers.get(id);
    this.#findEnabled(server)?.start();
    return this.#toStatus(server);
  }

  /** Creates or replaces a server, and restarts it. @throws {AppError} Like `ToolServers.put` */
  async put(
    id: string | undefined,
    input: ToolServerInput,
    expectedVersion?: ExpectedVersion,
  ): Promise<{ status: ServerStatus; isNew: boolean }> {
    const { server, isNew } = await this.servers.put(id, input, { expectedVersion });
    this.#forget(server.id);
    return { status: this.get(server.id), isNew };
  }

  /**
   * Adds the servers in another client's configuration.
   *
   * @throws {AppError} `invalid_request` if it contains no list; `programs_not_allowed` if all servers are programs and
   *   they aren't allowed
   */
  async importServers(json: JsonObject): Promise<{ added: ServerStatus[]; skipped: SkippedServer[] }> {
    const { servers, skipped } = parseServerList(json);
    const added: ServerStatus[] = [];
    let refusal: AppError | undefined;
    for (const { name, input } of servers) {
      const present = this.servers.list();
      const isPresent = present.some((one) =>
        one.name === name && (input.transport === "stdio" ? one.command === input.command : one.url === input.url)
      );
      if (isPresent) {
        skipped.push({ name, code: "present", reason: "Already in the list" });
        continue;
      }
      const isTaken = (id: string) =>
        !isId(id) || id === BUILT_IN_ID || present.some((one) => one.id.toLowerCase() === id);
      try {
        added.push((await this.put(toServerId(name, isTaken), input)).status);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        const { code, message } = error;
        if (code === "programs_not_allowed") refusal = error;
        else if (code !== "invalid_request" && code !== "address_not_allowed") throw error;
        skipped.push({ name, code: code === "programs_not_allowed" ? code : "invalid", reason: message });
      }
    }
    if (refusal !== undefined && added.length === 0 && servers.length === skipped.length) throw refusal;
    return { added, skipped };
  }

  /** Deletes a server and stops it. @throws {AppError} `not_found`, `revision_mismatch` */
  async remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    await this.servers.remove(id, expectedVersion);
    this.#forget(id);
  }

  /**
   * Reconnects to a server and lists its tools. Disconnects again if the server isn't enabled.
   *
   * @throws {AppError} `not_found`, `programs_not_allowed`; `conflict` if it's unreadable
   */
  async test(id: string, signal: AbortSignal): Promise<ServerStatus> {
    const content = this.servers.getContent(id);
    if (content.transport === "stdio") this.servers.assertProgramsAllowed();
    if (isInUse(content)) {
      await this.#getRuntime(id).test(signal);
      return this.#toStatus(this.servers.get(id));
    }
    const runtime = this.#createRuntime(id);
    try {
      await runtime.test(signal);
      return this.#toStatus(this.servers.get(id), runtime);
    } finally {
      this.#close(runtime);
    }
  }

  /**
   * Sets the permission of a tool, for its current definition.
   *
   * @throws {AppError} `not_found` if the server has no such tool
   */
  async setToolPermission(
    id: string,
    name: string,
    permission: ToolPermission,
    signal: AbortSignal,
  ): Promise<ToolWithPermission> {
    const content = this.servers.getContent(id);
    const known = this.#runtimes.get(id)?.tools.find((tool) => tool.name === name) ??
      (isInUse(content) ? await this.#getRuntime(id).findTool(name, signal) : undefined);
    if (known === undefined) throw new AppError("not_found", `The tool server "${content.name}" has no tool "${name}"`);
    await this.servers.setPermission(id, name, { permission, fingerprint: known.fingerprint });
    this.#publish(id);
    return { ...known, permission };
  }

  /**
   * Starts a sign-in.
   *
   * @param redirectUrl Address of the callback for the owner's browser.
   * @returns The page to open.
   * @throws {AppError} `not_found`; `unprocessable` for a program; `upstream_error` if the server doesn't support
   *   sign-in
   */
  async startSignIn(id: string, redirectUrl: string): Promise<string> {
    const server = this.servers.getContent(id);
    if (server.transport !== "http") throw new AppError("unprocessable", "Can't sign in: only HTTP servers support it");
    const { startSignIn } = await import("./sign_in.ts");
    const runtime = this.#getRuntime(id);
    const nowMs = this.#deps.now();
    const pending = await startSignIn({
      serverId: id,
      server,
      stored: this.servers.findSignIn(id),
      challenge: runtime.challenge,
      redirectUrl,
      ...await runtime.openSignInFetch(server),
      nowMs,
    });
    for (const [state, other] of this.#signIns) {
      const isOld = other.expiresAtMs < nowMs || other.serverId === id || this.#signIns.size >= MAX_PENDING_SIGN_INS;
      if (isOld) this.#signIns.delete(state);
    }
    this.#signIns.set(pending.state, pending);
    this.#signInErrors.delete(id);
    this.#publish(id);
    return pending.authUrl;
  }

  /**
   * Finishes a sign-in. Its state is valid once. If it fails, the status of its server has the reason.
   *
   * @returns The ID of the server.
   * @throws {AppError} `forbidden` for an unknown state
   */
  async finishSignIn(answer: { state: string; code?: string; issuer?: string; error?: string }): Promise<string> {
    const pending = this.#signIns.get(answer.state);
    this.#signIns.delete(answer.state);
    if (pending === undefined || pending.expiresAtMs < this.#deps.now()) {
      throw new AppError(
        "forbidden",
        "This sign-in is unknown, expired or already used. Start it again",
      );
    }
    const { serverId } = pending;
    const { name } = this.servers.getContent(serverId);
    try {
      if (answer.code === undefined) {
        const reason = (answer.error ?? "no code").slice(0, 200);
        throw new AppError("upstream_error", `Can't sign in to "${name}": ${reason}`);
      }
      await this.servers.setSignIn(serverId, await pending.finish(answer.code, answer.issuer ?? null));
      this.#forget(serverId);
      this.get(serverId);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#signInErrors.set(serverId, error);
    }
    this.#publish(serverId);
    return serverId;
  }

  /** Forgets the tokens of a server. @throws {AppError} `not_found` */
  async signOut(id: string): Promise<void> {
    await this.servers.setSignIn(id, undefined);
    this.#forget(id);
    this.#publish(id);
  }

  /** @throws {AppError} `not_found`, `upstream_error`, `upstream_timeout` */
  async listPrompts(id: string, signal: AbortSignal): Promise<ServerPrompt[]> {
    return await this.#getUsable(id).request((connection) => connection.listPrompts(signal), signal);
  }

  /** Returns a prompt's text. @throws {AppError} `not_found`, `upstream_error`, `upstream_timeout` */
  async getPrompt(id: string, name: string, args: Record<string, string>, signal: AbortSignal): Promise<string> {
    return await this.#getUsable(id).request((connection) => connection.getPrompt(name, args, signal), signal);
  }

  /** @throws {AppError} `not_found`, `upstream_error`, `upstream_timeout` */
  async listResources(id: string, signal: AbortSignal): Promise<ServerResource[]> {
    return await this.#getUsable(id).request((connection) => connection.listResources(signal), signal);
  }

  /** @throws {AppError} `not_found`, `upstream_error`, `upstream_timeout` */
  async readResource(id: string, uri: string, signal: AbortSignal): Promise<ResourceContent> {
    return await this.#getUsable(id).request((connection) => connection.readResource(uri, signal), signal);
  }

  async listTools(signal: AbortSignal): Promise<{ tools: Tool[]; unavailable: UnavailableServer[] }> {
    const servers = this.servers.list().filter(isInUse);
    const limit = AbortSignal.timeout(LIST_WAIT_MS);
    const listed = await Promise.all(servers.map(async (server) => {
      try {
        const tools = await this.#getRuntime(server.id).listTools(AbortSignal.any([signal, limit]));
        return tools.map((tool) => this.#toTool(server, tool));
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        const reason = error instanceof AppError ? error.message : `The tool server "${server.name}" is still starting`;
        return { serverId: server.id, serverName: server.name, reason };
      }
    }));
    return {
      tools: listed.flatMap((one) => Array.isArray(one) ? one : []),
      unavailable: listed.flatMap((one) => Array.isArray(one) ? [] : [one]),
    };
  }

  async findTool(serverId: string, name: string, signal: AbortSignal): Promise<Tool | undefined> {
    const server = this.servers.list().find(({ id }) => id === serverId);
    if (server === undefined || !isInUse(server)) return undefined;
    const tool = await this.#getRuntime(serverId).findTool(name, signal);
    return tool && this.#toTool(server, tool);
  }

  async callTool(tool: Tool, args: JsonObject, options: ToolCallOptions): Promise<ToolOutput> {
    return await this.#getUsable(tool.serverId).callTool(tool.name, args, options);
  }

  async setPermission(tool: Tool, permission: ToolPermission): Promise<void> {
    await this.servers.setPermission(tool.serverId, tool.name, { permission, fingerprint: tool.fingerprint });
    this.#publish(tool.serverId);
  }

  /** Stops all servers, and waits until their programs have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const id of [...this.#runtimes.keys()]) this.#forget(id);
    await Promise.all(this.#closing);
    this.#client.close();
  }

  #findEnabled(server: ToolServer): ServerRuntime | undefined {
    return isInUse(server) && !server.isUnreadable ? this.#getRuntime(server.id) : undefined;
  }

  /** @throws {AppError} `not_found`; `conflict` if the server is off or unreadable */
  #getUsable(id: string): ServerRuntime {
    const content = this.servers.getContent(id);
    if (!isInUse(content)) throw new AppError("conflict", `The tool server "${content.name}" is off`);
    return this.#getRuntime(id);
  }

  #getRuntime(id: string): ServerRuntime {
    const known = this.#runtimes.get(id);
    if (known !== undefined) return known;
    const runtime = this.#createRuntime(id);
    this.#runtimes.set(id, runtime);
    return runtime;
  }

  #createRuntime(id: string): ServerRuntime {
    if (this.#isClosed) throw new AppError("not_available", "The server is shutting down");
    const { cacheFolder, limits } = this.#deps;
    return new ServerRuntime(id, this.servers.getContent(id), {
      ...this.#deps,
      servers: this.servers,
      client: this.#client,
      folder: join(cacheFolder, "tool_servers"),
      limits: { ...RUNTIME_LIMITS, ...limits },
      onChange: () => this.#publish(id),
    });
  }

  /** Stops a server. The next use starts it with the stored settings. */
  #forget(id: string): void {
    this.#signInErrors.delete(id);
    const runtime = this.#runtimes.get(id);
    this.#runtimes.delete(id);
    if (runtime !== undefined) this.#close(runtime);
  }

  #close(runtime: ServerRuntime): void {
    const closing = runtime.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  #publish(id: string): void {
    this.#deps.events.publish({ kind: TOOL_SERVER_KIND, id });
  }

  #toStatus(server: ToolServer, runtime = this.#runtimes.get(server.id)): ServerStatus {
    const pending = [...this.#signIns.values()].find(({ serverId, expiresAtMs }) =>
      serverId === server.id && expiresAtMs >= this.#deps.now()
    );
    const state = runtime?.state ?? "off";
    return {
      server,
      state: state === "off" && server.isHeld ? "held" : state,
      error: this.#signInErrors.get(server.id) ?? runtime?.error,
      ...(pending && { authUrl: pending.authUrl }),
      isSignedIn: this.servers.findSignIn(server.id)?.tokens !== undefined,
      tools: (runtime?.tools ?? []).map((tool) => ({ ...tool, permission: this.#getPermission(server.id, tool) })),
      software: runtime?.software,
      offers: runtime?.offers ?? { prompts: false, resources: false },
    };
  }

  #getPermission(id: string, { name, fingerprint }: KnownTool): ToolPermission {
    const stored = this.servers.findPermission(id, name);
    return stored?.fingerprint === fingerprint ? stored.permission : "ask";
  }

  #toTool(server: ToolServer, tool: KnownTool): Tool {
    const { name, description, inputSchema, hints, fingerprint } = tool;
    return {
      serverId: server.id,
      serverName: server.name,
      name,
      description,
      inputSchema,
      hints,
      permission: this.#getPermission(server.id, tool),
      fingerprint,
    };
  }
}
