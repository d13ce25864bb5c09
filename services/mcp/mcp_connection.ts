/** One connection to a tool server: handshake, tools, calls, prompts and resources, each bounded in size and time. */
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

/** A tool as its server lists it. */
export interface ListedTool {
  name: string;
  /** A name for people. */
  title?: string;
  description: string;
  inputSchema: JsonObject;
  hints: { readOnly?: boolean; destructive?: boolean };
}

/** A prompt that a server offers. */
export interface ServerPrompt {
  name: string;
  title?: string;
  description?: string;
  arguments: { name: string; description?: string; required: boolean }[];
}

/** A resource that a server offers. */
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
  /** Not set for bytes. */
  text?: string;
}

/** What to connect to. */
export interface ConnectionOptions {
  /** Name of the server, for errors. */
  name: string;
  transport: StdioTransport | HttpTransport;
  /** Version of Parlor. */
  version: string;
  /** Lists what is never shown in errors, at the time of an error: tokens are renewed. */
  listSecrets(): readonly string[];
  /** Called when the connection ends, whoever ended it. */
  onClose(connection: McpConnection): void;
  /** Called when the server says that its tools have changed. */
  onToolsChanged(connection: McpConnection): void;
  /** Called when an HTTP server doesn't know the session any more. */
  onSessionLost(): void;
}

/** Longest handshake. The first start of a program may have to download it. */
const CONNECT_MS = 120_000;
const REQUEST_MS = 30_000;
const MAX_PAGES = 50;
const MAX_ITEMS = 500;
/** Names, descriptions and schemas of a server's tools together. */
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
    // No capabilities: Parlor neither asks its owner in a server's name (elicitation) nor lends it the model (sampling).
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

  /** Name and version that the server gave in the handshake. */
  get software(): { name: string; version: string } | undefined {
    const { name, version } = this.#client.getServerVersion() ?? {};
    return name === undefined ? undefined : { name: name.slice(0, 200), version: String(version ?? "").slice(0, 100) };
  }

  /** What the server offers besides tools. */
  get offers(): { prompts: boolean; resources: boolean } {
    const { prompts, resources } = this.#client.getServerCapabilities() ?? {};
    return { prompts: prompts !== undefined, resources: resources !== undefined };
  }

  /** Why the connection ended by itself. */
  get failure(): AppError | undefined {
    return this.#options.transport.failure;
  }

  /** Lists the tools, sorted by name. Tools that can't be offered to a model are left out. */
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
      if (findJsonFault(inputSchema) !== undefined) continue;
      chars += name.length + description.length + JSON.stringify(inputSchema).length;
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
      });
    }
    return [...tools.values()].sort((a, b) => a.name < b.name ? -1 : 1);
  }

  /**
   * Calls a tool. An error that the server reports is a result, too: the model can correct its arguments.
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

  /** Returns the text of a prompt; parts that aren't text are left out. @throws {AppError} `upstream_error`, `upstream_timeout` */
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
    // A client whose transport has closed doesn't close it again, but its program may still be ending.
    await this.#options.transport.close().catch(() => {});
  }

  /** Converts a result. Errors repeat what was sent to the server, keys included. */
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

  /** Runs one request within its limits. @throws {ReportedError} What the server reported. */
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
      // The SDK has a limit of its own, which must not fire first.
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
        // The SDK ends pending requests after it has reported the end. Its code for that is one that servers use, too.
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

/** Passed to the SDK with a request. */
interface RequestLimits {
  signal: AbortSignal;
  timeout: number;
}

/** What a server reported of a request. Never leaves this file. */
class ReportedError extends Error {
  constructor(readonly reported: string) {
    super(reported);
  }
}

/** The server has ended the session, so it hasn't run the request. A new connection can send it again. */
export class SessionLostError extends AppError {
  constructor(name: string) {
    super("upstream_error", `The tool server "${name}" ended the session`);
    this.name = "SessionLostError";
  }
}

/** Returns the last part of a URI as the name of a file. */
function decodeName(uri: string): string {
  const last = uri.replace(/[?#].*$/, "").replace(/\/+$/, "").split("/").at(-1) || uri;
  try {
    return decodeURIComponent(last).slice(0, 200);
  } catch {
    return last.slice(0, 200);
  }
}
