/**
 * Reads the server lists of other MCP clients: `mcpServers` (Claude Desktop, Cursor, LM Studio), `servers` (VS Code) and
 * `context_servers` (Zed). Facts and addresses: docs/protocols/mcp.md.
 */
import { AppError } from "../errors.ts";
import { asArray, asObject, asString, isJsonObject, type JsonObject } from "../json/type_guards.ts";
import type { ToolServerInput } from "./tool_server.ts";

/** A server of another client's list. */
export interface ListedServer {
  name: string;
  input: ToolServerInput;
  /** Values that the other client asks for or takes from elsewhere, such as `${input:key}`. The server arrives off. */
  placeholders: string[];
}

/** A server that can't be added. */
export interface SkippedServer {
  name: string;
  code: "invalid" | "unsupported" | "present" | "programs_not_allowed";
  /** One sentence for the owner. */
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
  const cleaned = (values: unknown) => {
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
    input = { name, transport: "stdio", command: program.command, args, env: cleaned(program.env) };
  } else if (url) input = { name, transport: "http", url, headers: cleaned(server.headers) };
  else return undefined;
  return {
    name,
    input: { ...input, isEnabled: isEnabled && placeholders.size === 0 },
    placeholders: [...placeholders],
  };
}

/** Makes an id of a name: `"My files"` → `"my-files"`, with a number if it is taken. */
export function toServerId(name: string, isTaken: (id: string) => boolean): string {
  const base = name.toLowerCase().normalize("NFKD").replace(/[^a-z0-9_]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 50) ||
    "server";
  for (let n = 1;; n++) {
    const id = n === 1 ? base : `${base}-${n}`;
    if (!isTaken(id)) return id;
  }
}
