/**
 * A tool server of the owner: an encrypted document, including its environment and headers, which are write-only. Also
 * parses the configuration of other MCP clients.
 */
import { AppError, getErrorMessage } from "../errors.ts";
import { type BoundHeaders, parseOwnerUrl, updateHeaders } from "../http/base_url.ts";
import type { ProfileRecord } from "../storage/documents/sealed_profiles.ts";
import { asArray, asObject, asString, isJsonObject, type JsonObject } from "../json/type_guards.ts";

/** How a server is reached: as a program on this machine, or over HTTP. */
export const SERVER_TRANSPORTS = ["stdio", "http"] as const;
/** A transport. */
export type ServerTransport = typeof SERVER_TRANSPORTS[number];

/** A server without its secrets. */
export interface ToolServer {
  id: string;
  name: string;
  transport: ServerTransport;
  /** For stdio: the program, as a path or a name on PATH. */
  command?: string;
  args?: string[];
  /** Names of the environment variables. */
  envNames: string[];
  /** For http. */
  url?: string;
  /** Names of the additional headers. */
  headerNames: string[];
  /** ID of an OAuth client that the owner registered. */
  clientId?: string;
  hasClientSecret: boolean;
  /** For http: other origins that the server may lead to, even in a private network. */
  trustedOrigins?: string[];
  /** A server that isn't enabled never runs and offers no tools. */
  isEnabled: boolean;
  /** True if an import set `isEnabled`. Until the owner sets it, the server is treated as not enabled. */
  isHeld?: true | undefined;
  createdAtMs: number;
  updatedAtMs: number;
  /** Increases with every write. */
  version: number;
  /** True if the record can't be decrypted. It can only be replaced or deleted. */
  isUnreadable?: boolean;
}

/** Input for a server. For a stored server, `undefined` fields don't change and `null` clears a field. */
export interface ToolServerInput {
  name?: string | null;
  transport?: ServerTransport;
  command?: string | null;
  args?: string[] | null;
  /** `undefined` preserves all variables, `null` removes all; a `null` value removes one. */
  env?: Record<string, string | null> | null;
  url?: string | null;
  /** Like in `updateHeaders`. */
  headers?: Record<string, string | null> | null;
  clientId?: string | null;
  /** Bound to the origin of the server, like headers. */
  clientSecret?: string | null;
  /** URLs or origins. Bound to the origin of the server, like headers. */
  trustedOrigins?: string[] | null;
  isEnabled?: boolean | null;
}

/** The encrypted content. */
export type ToolServerContent = StdioContent | HttpContent;

interface ContentFrame {
  name: string;
  isEnabled: boolean;
  /** Like in `ToolServer`. */
  isHeld?: true;
}

/** A program on this machine. */
export interface StdioContent extends ContentFrame {
  transport: "stdio";
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** A server over HTTP. */
export interface HttpContent extends ContentFrame {
  transport: "http";
  url: string;
  headers?: BoundHeaders;
  clientId?: string;
  clientSecret?: string;
  trustedOrigins?: string[];
}

/** ID of the built-in web tools. The owner's servers can't have it. */
export const BUILT_IN_ID = "web";
const MAX_VARIABLES = 100;
const MAX_VALUE_CHARS = 32_000;
const MAX_ARGS = 200;
const MAX_ORIGINS = 20;

/**
 * Validates the input for a server and returns its content.
 *
 * @param stored The stored content of the same ID. `undefined` input fields preserve its values.
 * @throws {AppError} `invalid_request`, `address_not_allowed`
 */
export function parseToolServer(
  id: string,
  input: ToolServerInput,
  stored: ToolServerContent | undefined,
): ToolServerContent {
  if (id === BUILT_IN_ID) refuse("id", `"${BUILT_IN_ID}" is the ID of the built-in tools`);
  const transport = input.transport ?? stored?.transport ?? (input.command ? "stdio" : "http");
  const before = stored?.transport === transport ? stored : undefined;
  const isEnabled = (input.isEnabled === undefined ? stored?.isEnabled : input.isEnabled) ?? true;
  const name = (input.name === undefined ? stored?.name : input.name)?.trim() || id;
  const isHeld = isEnabled && stored?.isHeld === true && typeof input.isEnabled !== "boolean";
  const frame = { name, isEnabled, ...(isHeld && { isHeld }) } satisfies ContentFrame;
  return transport === "stdio"
    ? { transport, ...frame, ...parseProgram(input, before as StdioContent | undefined) }
    : { transport, ...frame, ...parseAddress(input, before as HttpContent | undefined) };
}

function parseProgram(
  input: ToolServerInput,
  stored: StdioContent | undefined,
): Pick<StdioContent, "command" | "args" | "env"> {
  const command = (input.command === undefined ? stored?.command : input.command)?.trim() ?? "";
  if (command === "") refuse("command", "the command is required");
  const args = (input.args === undefined ? stored?.args : input.args) ?? [];
  if (args.length > MAX_ARGS) refuse("args", `a program can have at most ${MAX_ARGS} arguments`);
  if ([command, ...args].some((text) => text.includes("\0"))) {
    refuse("args", "an argument can't contain a NUL character");
  }
  // Variables of one program are never passed to another.
  const env = stored?.command === command ? stored.env : {};
  return { command, args: [...args], env: updateEnv(input.env, env) };
}

function updateEnv(input: ToolServerInput["env"], stored: Record<string, string>): Record<string, string> {
  if (input === null) return {};
  const env = { ...stored };
  for (const [name, value] of Object.entries(input ?? {})) {
    if (!/^[^=\0\s]{1,200}$/.test(name)) refuse("env", `"${name}" isn't a valid name of an environment variable`);
    if (value === null) delete env[name];
    else if (value.length > MAX_VALUE_CHARS || value.includes("\0")) {
      refuse("env", `the value of "${name}" is too long or contains a NUL character`);
    } else env[name] = value;
  }
  if (Object.keys(env).length > MAX_VARIABLES) {
    refuse("env", `a program can have at most ${MAX_VARIABLES} environment variables`);
  }
  return env;
}

function parseAddress(
  input: ToolServerInput,
  stored: HttpContent | undefined,
): Omit<HttpContent, "transport" | keyof ContentFrame> {
  const text = (input.url === undefined ? stored?.url : input.url)?.trim() ?? "";
  if (text === "") refuse("url", "the URL is required");
  const url = parseOwnerUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  url.hash = "";
  const isSameOrigin = stored !== undefined && new URL(stored.url).origin === url.origin;
  const clientId = (input.clientId === undefined ? stored?.clientId : input.clientId)?.trim();
  const secret = input.clientSecret === undefined && isSameOrigin && stored.clientId === clientId
    ? stored.clientSecret
    : input.clientSecret?.trim();
  const trusted = input.trustedOrigins === undefined && isSameOrigin ? stored.trustedOrigins : input.trustedOrigins;
  const trustedOrigins = [...new Set((trusted ?? []).map(parseTrustedOrigin))];
  if (trustedOrigins.length > MAX_ORIGINS) {
    refuse("trusted_origins", `a tool server can have at most ${MAX_ORIGINS} other addresses`);
  }
  return {
    url: url.href,
    ...trustedOrigins.length > 0 && { trustedOrigins },
    ...updateHeaders(url.href, input.headers, stored?.headers),
    ...(clientId && { clientId }),
    ...(clientId && secret && { clientSecret: secret }),
  };
}

function parseTrustedOrigin(text: string): string {
  try {
    return parseOwnerUrl(text.trim()).origin;
  } catch (error) {
    refuse("trusted_origins", `"${text}" isn't usable. ${getErrorMessage(error)}`);
  }
}

function refuse(path: string, message: string): never {
  throw new AppError("invalid_request", `Can't save the tool server: ${message}`, { issues: [{ path, message }] });
}

/** Returns the server of a record, without its secrets. */
export function toToolServer(record: ProfileRecord<ToolServerContent>): ToolServer {
  const { id, version, createdAtMs, updatedAtMs, content } = record;
  const frame = { id, version, createdAtMs, updatedAtMs, envNames: [], headerNames: [], hasClientSecret: false };
  if (content === undefined) {
    return { ...frame, name: "Unreadable server", transport: "http", isEnabled: false, isUnreadable: true };
  }
  const { name, transport, isEnabled, isHeld } = content;
  if (transport === "stdio") {
    const { command, args, env } = content;
    return { ...frame, name, transport, isEnabled, isHeld, command, args, envNames: Object.keys(env) };
  }
  const { url, headers, clientId, clientSecret, trustedOrigins } = content;
  return {
    ...frame,
    name,
    transport,
    isEnabled,
    isHeld,
    url,
    headerNames: Object.keys(headers?.values ?? {}),
    ...(clientId && { clientId }),
    ...(trustedOrigins && { trustedOrigins }),
    hasClientSecret: clientSecret !== undefined,
  };
}

/** Returns whether a server may run: it's enabled, and not only by an import. */
export function isInUse({ isEnabled, isHeld }: Pick<ToolServer, "isEnabled" | "isHeld">): boolean {
  return isEnabled && isHeld !== true;
}

/**
 * Returns whether permissions and sign-in of one content are valid for another: the same program, or the same URL.
 */
export function isSameServer(a: ToolServerContent, b: ToolServerContent): boolean {
  if (a.transport === "stdio") return b.transport === "stdio" && a.command === b.command;
  return b.transport === "http" && a.url === b.url;
}

/** Lists the values that must not appear in errors and logs. */
export function listSecrets(content: ToolServerContent): string[] {
  return content.transport === "stdio"
    ? Object.values(content.env)
    : [...Object.values(content.headers?.values ?? {}), content.clientSecret ?? ""].filter((value) => value !== "");
}

/**
 * Reads the server lists of other MCP clients: `mcpServers` (Claude Desktop, Cursor, LM Studio), `servers` (VS Code)
 * and `context_servers` (Zed). See docs/protocols/mcp.md.
 */
export interface ListedServer {
  name: string;
  input: ToolServerInput;
  /**
   * Values that the other client asks for or reads from elsewhere, such as `${input:key}`. The server is imported
   * disabled.
   */
  placeholders: string[];
}

/** A server that can't be added. */
export interface SkippedServer {
  name: string;
  code: "invalid" | "unsupported" | "present" | "programs_not_allowed";
  /** A sentence for the owner. */
  reason: string;
}

const MAX_SERVERS = 100;
const PLACEHOLDER = /\$\{[^}]*\}/g;

/**
 * Reads a list.
 *
 * @throws {AppError} `invalid_request` if there is no list of servers
 */
export function parseServerList(json: JsonObject): { servers: ListedServer[]; skipped: SkippedServer[] } {
  const list = findList(json);
  const entries = Object.entries(list ?? {});
  if (list === undefined || entries.length === 0) {
    throw new AppError("invalid_request", 'Can\'t import: the JSON has no list of servers such as "mcpServers"');
  }
  if (entries.length > MAX_SERVERS) {
    throw new AppError("invalid_request", `Can't import: the list has more than ${MAX_SERVERS} servers`);
  }
  const servers: ListedServer[] = [];
  const skipped: SkippedServer[] = [];
  for (const [name, value] of entries) {
    const read = isJsonObject(value) ? parseServer(name, value) : undefined;
    if (read === undefined) {
      skipped.push({ name, code: "invalid", reason: "It has neither a command nor a URL" });
    } else if ("reason" in read) skipped.push(read);
    else servers.push(read);
  }
  return { servers, skipped };
}

function findList(json: JsonObject): JsonObject | undefined {
  for (const list of [json.mcpServers, json.servers, asObject(json.mcp).servers, json.context_servers]) {
    if (isJsonObject(list)) return list;
  }
  const values = Object.values(json);
  const isBareList = values.length > 0 &&
    values.every((value) => isJsonObject(value) && ("command" in value || "url" in value));
  return isBareList ? json : undefined;
}

function parseServer(name: string, server: JsonObject): ListedServer | SkippedServer | undefined {
  const type = asString(server.type) ?? asString(server.transport);
  if (type === "sse") {
    const reason = "It uses the older SSE transport. Enter its streamable HTTP address instead, often ending in /mcp";
    return { name, code: "unsupported", reason };
  }
  const isEnabled = server.disabled !== true && server.enabled !== false;
  // Zed nests: {"command": {"path", "args", "env"}}.
  const program = isJsonObject(server.command)
    ? { command: asString(server.command.path), args: server.command.args, env: server.command.env }
    : { command: asString(server.command), args: server.args, env: server.env };
  const url = asString(server.url) ?? asString(server.serverUrl) ?? asString(server.httpUrl);
  const placeholders = new Set<string>();
  const cleanName = (values: unknown) => {
    const found: Record<string, string> = {};
    for (const [key, value] of Object.entries(asObject(values))) {
      if (typeof value === "object") continue;
      const text = String(value);
      const missing = text.match(PLACEHOLDER);
      if (missing === null) found[key] = text;
      else missing.forEach((one) => placeholders.add(one));
    }
    return found;
  };
  let input: ToolServerInput;
  if (program.command) {
    const args = asArray(program.args).map(String);
    for (const arg of args) arg.match(PLACEHOLDER)?.forEach((one) => placeholders.add(one));
    input = { name, transport: "stdio", command: program.command, args, env: cleanName(program.env) };
  } else if (url) input = { name, transport: "http", url, headers: cleanName(server.headers) };
  else return undefined;
  return {
    name,
    input: { ...input, isEnabled: isEnabled && placeholders.size === 0 },
    placeholders: [...placeholders],
  };
}

/** Creates an ID from a name: `"My files"` → `"my-files"`, with a number if it's taken. */
export function toServerId(name: string, isTaken: (id: string) => boolean): string {
  const base = name.toLowerCase().normalize("NFKD").replace(/[^a-z0-9_]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 50) ||
    "server";
  for (let n = 1;; n++) {
    const id = n === 1 ? base : `${base}-${n}`;
    if (!isTaken(id)) return id;
  }
}
