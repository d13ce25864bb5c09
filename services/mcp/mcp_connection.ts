/** One connection to a tool server: handshake, tools, calls, prompts and resources, each with size and time limits. */
import { AppError } from "../errors.ts";
import { formatDuration } from "../http/upstream_error.ts";
import { findJsonFault, type JsonObject } from "../json/type_guards.ts";
import type { ToolCallOptions, ToolOutput } from "../tools/tool_registry.ts";
import type { HttpTransport } from "./http_transport.ts";
import { maskSecrets, type ResultContent, toToolOutput, TransportFault } from "./mcp_result.ts";
import {
  CallToolResultSchema,
  Client,
  GetPromptResultSchema,
  ListPromptsResultSchema,
  ListResourcesResultSchema,
  ListToolsResultSchema,
  McpError,
  ReadResourceResultSchema,
  StreamableHTTPError,
  ToolListChangedNotificationSchema,
} from "./sdk.ts";
import type { StdioTransport } from "./stdio_transport.ts";

/** A tool in a server's list. */
export interface ListedTool {
  name: string;
  /** Display name. */
  title?: string;
  description: string;
  inputSchema: JsonObject;
  hints: { readOnly?: boolean; destructive?: boolean };
  /** All annotations, as the server sent them. */
  annotations: JsonObject;
}

/** A prompt of a server. */
export interface ServerPrompt {
  name: string;
  title?: string;
  description?: string;
  arguments: { name: string; description?: string; required: boolean }[];
}

/** A resource of a server. */
export interface ServerResource {
  uri: string;
  name: string;
  description?: string;
  contentType?: string;
}

/** The content of a resource. */
export interface ResourceContent {
  name: string;
  contentType: string;
  /** Absent for bytes. */
  text?: string;
}

/** Options of a connection. */
export interface ConnectionOptions {
  /** Name of the server, for errors. */
  name: string;
  transport: StdioTransport | HttpTransport;
  /** Version of Parlor. */
  version: string;
  /** Returns the secrets that must not be in errors. Called for each error, because tokens are renewed. */
  listSecrets(): readonly string[];
  /** Called when the connection ends for any reason. */
  onClose(connection: McpConnection): void;
  /** Called when the server reports that its tools have changed. */
  onToolsChanged(connection: McpConnection): void;
  /** Called when an HTTP server no longer knows the session. */
  onSessionLost(): void;
}

/** Time limit of the handshake. The first start of a program may have to download it. */
const CONNECT_MS = 120_000;
const REQUEST_MS = 30_000;
const MAX_PAGES = 50;
const MAX_ITEMS = 500;
/** Maximum total length of names, descriptions and schemas of a server's tools. */
const MAX_LIST_CHARS = 1024 * 1024;
const MAX_NAME_CHARS = 200;

/** A connection. */
export class McpConnection {
  readonly #options: ConnectionOptions;
  readonly #client: Client;
  #isClosed = false;

  /** Connects to a server. @throws {AppError} `upstream_error`, `upstream_timeout`, `not_available`; the reason of `signal` */
  static async open(options: ConnectionOptions, signal: AbortSignal): Promise<McpConnection> {
    const connection = new McpConnection(options);
    try {
      await connection.#run(
        "connect",
        { signal, timeoutMs: CONNECT_MS },
        (limits) => connection.#client.connect(options.transport, limits),
      );
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  private constructor(options: ConnectionOptions) {
    this.#options = options;
    // No capabilities: Parlor doesn't ask the owner on behalf of a server (elicitation) or let it use the model
    // (sampling).
    this.#client = new Client({ name: "parlor", title: "Parlor", version: options.version }, {
      capabilities: {},
      // The SDK would compile the schemas of foreign servers to code. Parlor doesn't use structured results.
      jsonSchemaValidator: {
        getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
      },
    });
    this.#client.setNotificationHandler(ToolListChangedNotificationSchema, () => options.onToolsChanged(this));
    this.#client.onclose = () => {
      this.#isClosed = true;
      options.onClose(this);
    };
  }

  /** Name and version from the handshake. */
  get software(): { name: string; version: string } | undefined {
    const { name, version } = this.#client.getServerVersion() ?? {};
    return name === undefined ? undefined : { name: name.slice(0, 200), version: String(version ?? "").slice(0, 100) };
  }

  /** Features of the server besides tools. */
  get offers(): { prompts: boolean; resources: boolean } {
    const { prompts, resources } = this.#client.getServerCapabilities() ?? {};
    return { prompts: prompts !== undefined, resources: resources !== undefined };
  }

  /** Why the connection ended without a call of `close`. */
  get failure(): AppError | undefined {
    return this.#options.transport.failure;
  }

  /** Lists the tools, sorted by name. Omits tools that can't be offered to a model. */
  async listTools(signal?: AbortSignal): Promise<ListedTool[]> {
    if (this.#client.getServerCapabilities()?.tools === undefined) return [];
    const listed = await this.#listAll("list the tools", signal, async (params, limits) => {
      const { tools, nextCursor } = await this.#client.request(
        { method: "tools/list", params },
        ListToolsResultSchema,
        limits,
      );
      return { items: tools, nextCursor };
    });
    const tools = new Map<string, ListedTool>();
    let chars = 0;
    for (const { name, title, description = "", inputSchema, annotations = {}, execution } of listed) {
      if (name === "" || name.length > MAX_NAME_CHARS || tools.has(name)) continue;
      // Such a tool runs as a task of the server, an experimental part of the protocol.
      if (execution?.taskSupport === "required") continue;
      if (findJsonFault(inputSchema) !== undefined || findJsonFault(annotations) !== undefined) continue;
      chars += name.length + description.length + JSON.stringify([inputSchema, annotations]).length;
      if (chars > MAX_LIST_CHARS) break;
      const shown = title ?? annotations.title;
      tools.set(name, {
        name,
        ...(shown && { title: shown.slice(0, MAX_NAME_CHARS) }),
        description,
        inputSchema: inputSchema as JsonObject,
        hints: {
          ...(annotations.readOnlyHint !== undefined && { readOnly: annotations.readOnlyHint }),
          ...(annotations.destructiveHint !== undefined && { destructive: annotations.destructiveHint }),
        },
        annotations: annotations as JsonObject,
      });
    }
    return [...tools.values()].sort((a, b) => a.name < b.name ? -1 : 1);
  }

  /**
   * Calls a tool. An error reported by the server is also a result, so that the model can correct its arguments.
   *
   * @throws {AppError} `upstream_timeout`, `upstream_error`; the reason of `signal`
   */
  async callTool(name: string, args: JsonObject, options: ToolCallOptions): Promise<ToolOutput> {
    try {
      const result = await this.#run(
        `run "${name}"`,
        options,
        (limits) =>
          this.#client.request(
            { method: "tools/call", params: { name, arguments: args } },
            CallToolResultSchema,
            limits,
          ),
      );
      return this.#toOutput(result as ResultContent, options.maxBytes);
    } catch (error) {
      if (!(error instanceof ReportedError)) throw error;
      return this.#toOutput({ content: [{ type: "text", text: error.reported }], isError: true }, options.maxBytes);
    }
  }

  /** Lists the prompts. */
  async listPrompts(signal?: AbortSignal): Promise<ServerPrompt[]> {
    if (!this.offers.prompts) return [];
    const listed = await this.#listAll("list the prompts", signal, async (params, limits) => {
      const { prompts, nextCursor } = await this.#client.request(
        { method: "prompts/list", params },
        ListPromptsResultSchema,
        limits,
      );
      return { items: prompts, nextCursor };
    });
    return listed.map(({ name, title, description, arguments: args = [] }) => ({
      name,
      title,
      description,
      arguments: args.map(({ name, description, required = false }) => ({ name, description, required })),
    }));
  }

  /**
   * Returns the text of a prompt; omits parts that aren't text.
   *
   * @throws {AppError} `upstream_error`, `upstream_timeout`
   */
  async getPrompt(name: string, args: Record<string, string>, signal?: AbortSignal): Promise<string> {
    const { messages } = await this.#request(
      `get the prompt "${name}"`,
      signal,
      (limits) =>
        this.#client.request(
          { method: "prompts/get", params: { name, arguments: args } },
          GetPromptResultSchema,
          limits,
        ),
    );
    return messages.flatMap(({ content }) => {
      if (content.type === "text") return [content.text];
      return content.type === "resource" && "text" in content.resource ? [content.resource.text] : [];
    }).join("\n\n");
  }

  /** Lists the resources. */
  async listResources(signal?: AbortSignal): Promise<ServerResource[]> {
    if (!this.offers.resources) return [];
    const listed = await this.#listAll("list the resources", signal, async (params, limits) => {
      const { resources, nextCursor } = await this.#client.request(
        { method: "resources/list", params },
        ListResourcesResultSchema,
        limits,
      );
      return { items: resources, nextCursor };
    });
    return listed.map(({ uri, name, description, mimeType }) => ({ uri, name, description, contentType: mimeType }));
  }

  /** Reads a resource. @throws {AppError} `upstream_error`, `upstream_timeout` */
  async readResource(uri: string, signal?: AbortSignal): Promise<ResourceContent> {
    const { contents } = await this.#request(
      `read "${uri}"`,
      signal,
      (limits) => this.#client.request({ method: "resources/read", params: { uri } }, ReadResourceResultSchema, limits),
    );
    const texts = contents.flatMap((one) => "text" in one ? [one.text] : []);
    const contentType = contents[0]?.mimeType ?? (texts.length > 0 ? "text/plain" : "application/octet-stream");
    const name = decodeName(uri);
    return texts.length === 0 ? { name, contentType } : { name, contentType, text: texts.join("\n\n") };
  }

  /** Ends the connection, and the program of a stdio server. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#client.close().catch(() => {});
    // A client whose transport has closed doesn't close it again, but its program may still be running.
    await this.#options.transport.close().catch(() => {});
  }

  /** Converts a result. Masks secrets, because errors may contain everything that was sent to the server. */
  #toOutput(result: ResultContent, maxBytes: number): ToolOutput {
    return toToolOutput(result, maxBytes, result.isError ? (text) => this.#mask(text) : undefined);
  }

  #mask(text: string): string {
    return maskSecrets(text, this.#options.listSecrets());
  }

  async #listAll<Item>(
    what: string,
    signal: AbortSignal | undefined,
    ask: (params: { cursor?: string }, limits: RequestLimits) => Promise<{ items: Item[]; nextCursor?: string }>,
  ): Promise<Item[]> {
    const found: Item[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES && found.length < MAX_ITEMS; page++) {
      const { items, nextCursor } = await this.#request(
        what,
        signal,
        (limits) => ask(cursor === undefined ? {} : { cursor }, limits),
      );
      found.push(...items);
      if (nextCursor === undefined || nextCursor === cursor) break;
      cursor = nextCursor;
    }
    return found.slice(0, MAX_ITEMS);
  }

  async #request<T>(
    what: string,
    signal: AbortSignal | undefined,
    ask: (limits: RequestLimits) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#run(what, { signal, timeoutMs: REQUEST_MS }, ask);
    } catch (error) {
      if (!(error instanceof ReportedError)) throw error;
      throw new AppError(
        "upstream_error",
        `The tool server "${this.#options.name}" couldn't ${what}: ${error.reported}`,
      );
    }
  }

  /** Runs one request within its limits. @throws {ReportedError} The error that the server reported. */
  async #run<T>(
    what: string,
    { signal, timeoutMs }: { signal?: AbortSignal; timeoutMs: number },
    ask: (limits: RequestLimits) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted();
    const limit = new AbortController();
    const { name, transport } = this.#options;
    const abort = () => limit.abort(signal!.reason);
    signal?.addEventListener("abort", abort, { once: true });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      limit.abort(new Error("timeout"));
    }, timeoutMs);
    const createFailure = (why: string, cause?: unknown) =>
      new AppError("upstream_error", `The tool server "${name}" couldn't ${what}: ${why}`, { cause });
    try {
      // The SDK has its own limit, which must not fire first.
      return await ask({ signal: limit.signal, timeout: timeoutMs + 60_000 });
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (timedOut) {
        throw new AppError(
          "upstream_timeout",
          `The tool server "${name}" didn't ${what} within ${formatDuration(timeoutMs)}`,
        );
      }
      if (transport.failure !== undefined) throw transport.failure;
      if (error instanceof AppError) throw error;
      if (error instanceof StreamableHTTPError) {
        if (error.code === 404 && "sessionId" in transport && transport.sessionId !== undefined) {
          this.#options.onSessionLost();
          throw new SessionLostError(name);
        }
        throw createFailure(error.code === -1 ? "its response isn't MCP" : `HTTP ${error.code}`);
      }
      if (error instanceof McpError) {
        if (error.data instanceof TransportFault) throw createFailure(error.data.why);
        // The SDK ends pending requests after it has reported the end. Servers also use its error code for that.
        if (this.#isClosed) throw createFailure("the connection was closed");
        const reported = error.message.replace(/^MCP error -?\d+: /, "");
        throw new ReportedError(this.#mask(reported).slice(0, 10_000));
      }
      throw createFailure("its response isn't valid MCP", error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }
}

/** Limits passed to the SDK with a request. */
interface RequestLimits {
  signal: AbortSignal;
  timeout: number;
}

/** An error that a server reported for a request. Never leaves this file. */
class ReportedError extends Error {
  constructor(readonly reported: string) {
    super(reported);
  }
}

/**
 * Thrown if the server has ended the session and so hasn't run the request. It can be sent again over a new connection.
 */
export class SessionLostError extends AppError {
  constructor(name: string) {
    super("upstream_error", `The tool server "${name}" ended the session`);
    this.name = "SessionLostError";
  }
}

/** Returns the last part of a URI as a file name. */
function decodeName(uri: string): string {
  const last = uri.replace(/[?#].*$/, "").replace(/\/+$/, "").split("/").at(-1) || uri;
  try {
    return decodeURIComponent(last).slice(0, 200);
  } catch {
    return last.slice(0, 200);
  }
}
