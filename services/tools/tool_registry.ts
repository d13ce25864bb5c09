/** The tools of all sources, as a model is offered them: with unique names, in a stable order, and not too many. */
import { Buffer } from "node:buffer";
import { AppError, getErrorMessage } from "../errors.ts";
import type { JsonObject } from "../json/type_guards.ts";

// What the reply loop knows of tools: which there are, how one is called, and what may be called without asking. MCP
// servers and the built-in tools are sources of this one shape.

/** Whether a call waits for the owner ("ask"), runs ("allow") or is refused ("deny"). */
export type ToolPermission = "ask" | "allow" | "deny";

/** One tool of one server. */
export interface Tool {
  serverId: string;
  /** Name of the server as the owner wrote it. */
  serverName: string;
  /** Name of the tool at its server. */
  name: string;
  description: string;
  /** JSON schema of the arguments, as the server gave it. */
  inputSchema: JsonObject;
  /** What the server says of the tool's effects: shown to the owner, never trusted. */
  hints: { readOnly?: boolean; destructive?: boolean };
  permission: ToolPermission;
  /** SHA-256 of description and schema, hexadecimal: a permission and a waiting call hold for this state of the tool only. */
  fingerprint: string;
}

/** A server whose tools can't be used right now. */
export interface UnavailableServer {
  serverId: string;
  serverName: string;
  /** One sentence for the owner. */
  reason: string;
}

/** One part of a tool's result. */
export type ToolOutputPart =
  | { type: "text"; text: string }
  | { type: "image" | "audio"; data: Uint8Array<ArrayBuffer>; contentType: string }
  /** A link to a resource: never fetched by itself. */
  | { type: "link"; uri: string; name?: string };

/** What a tool answered. */
export interface ToolOutput {
  parts: ToolOutputPart[];
  /** The tool ran and says that it failed. */
  isError: boolean;
  /** The result was longer than the limit and was cut. */
  truncated: boolean;
}

/** Limits of one call. */
export interface ToolCallOptions {
  signal: AbortSignal;
  timeoutMs: number;
  /** Text beyond this many bytes is cut, images beyond it are dropped. */
  maxBytes: number;
  /** The chat that the call comes from, and the reply in it. For built-in tools; never sent to a server. */
  conversationId?: string;
  messageId?: string;
}

/** Where tools come from. */
export interface ToolSource {
  /**
   * Lists the tools of every enabled server, in a stable order. A server that isn't ready within a few seconds is named in
   * `unavailable`; this never throws because of one server.
   */
  listTools(signal: AbortSignal): Promise<{ tools: Tool[]; unavailable: UnavailableServer[] }>;
  /** Returns the tool as its server lists it now, or undefined if it is gone. */
  findTool(serverId: string, name: string, signal: AbortSignal): Promise<Tool | undefined>;
  /**
   * Calls a tool. Never asks for a permission: the caller has checked it.
   *
   * @throws {AppError} `upstream_timeout`; `upstream_error` if the server can't be reached, ends or answers nonsense;
   * `not_found` if the tool is gone. A tool that reports a failure itself is `isError` and no throw.
   */
  callTool(tool: Tool, args: JsonObject, options: ToolCallOptions): Promise<ToolOutput>;
  /** Stores a permission for the tool as it is now. */
  setPermission(tool: Tool, permission: ToolPermission): Promise<void>;
}

/** A tool that is offered to a model. */
export interface OfferedTool {
  /** Its name toward the model. */
  name: string;
  tool: Tool;
}

/** The tools that go with a request. */
export interface ToolOffer {
  tools: OfferedTool[];
  /** As in OpenAI's `tools`. */
  definitions: JsonObject[];
  /** What isn't offered, and why: tools beyond the limit, and servers that can't be used. */
  leftOut: { name: string; reason: string }[];
}

/** Which tool is meant. */
export type ToolName = Pick<Tool, "serverId" | "name">;

/** Most bytes of the definitions of one request: about 16,000 tokens. */
export const MAX_DEFINITION_BYTES = 64 * 1024;
/** The names that all servers accept. @see https://platform.openai.com/docs/api-reference/chat/create */
const VALID_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_NAME_LENGTH = 64;

/** Merges sources of tools. */
export class ToolRegistry {
  readonly #sources: readonly (() => Promise<ToolSource>)[];

  /** @param sources Each opens a source. Their order is the order of the tools. */
  constructor(sources: readonly (() => Promise<ToolSource>)[]) {
    this.#sources = sources;
  }

  /** Lists the tools that a model may be offered now. Those that are denied aren't. */
  async listOffer(signal: AbortSignal): Promise<ToolOffer> {
    const leftOut: ToolOffer["leftOut"] = [];
    const all: Tool[] = [];
    for (const listed of await Promise.allSettled(this.#sources.map((open) => this.#list(open, signal)))) {
      if (listed.status === "rejected") {
        leftOut.push({ name: "tools", reason: getErrorMessage(listed.reason) });
        continue;
      }
      all.push(...listed.value.tools);
      leftOut.push(...listed.value.unavailable.map(({ serverName, reason }) => ({ name: serverName, reason })));
    }
    signal.throwIfAborted();
    const named = nameTools(all.filter(({ permission }) => permission !== "deny"));
    const tools: OfferedTool[] = [];
    const definitions: JsonObject[] = [];
    let bytes = 0;
    for (const offered of named) {
      const definition = toDefinition(offered);
      bytes += Buffer.byteLength(JSON.stringify(definition));
      if (bytes > MAX_DEFINITION_BYTES) {
        leftOut.push({
          name: offered.name,
          reason: `the definitions of all tools together are larger than ${MAX_DEFINITION_BYTES / 1024} KiB`,
        });
        continue;
      }
      tools.push(offered);
      definitions.push(definition);
    }
    return { tools, definitions, leftOut };
  }

  /** Returns a tool as its server lists it now, or undefined if it is gone. */
  async findTool({ serverId, name }: ToolName, signal: AbortSignal): Promise<Tool | undefined> {
    return (await this.#find({ serverId, name }, signal))?.tool;
  }

  /**
   * Calls a tool. The caller has checked the permission.
   *
   * @throws {AppError} As `ToolSource.callTool`, and `not_found` if no source has the tool.
   */
  async callTool(tool: Tool, args: JsonObject, options: ToolCallOptions): Promise<ToolOutput> {
    const { source } = await this.#get(tool, options.signal);
    return await source.callTool(tool, args, options);
  }

  /** Stores a permission for a tool as it is now. @throws {AppError} `not_found` */
  async setPermission(tool: Tool, permission: ToolPermission, signal: AbortSignal): Promise<void> {
    const { source } = await this.#get(tool, signal);
    await source.setPermission(tool, permission);
  }

  async #list(open: () => Promise<ToolSource>, signal: AbortSignal) {
    return await (await open()).listTools(signal);
  }

  async #get(tool: Tool, signal: AbortSignal): Promise<{ source: ToolSource; tool: Tool }> {
    const found = await this.#find(tool, signal);
    if (found !== undefined) return found;
    throw new AppError("not_found", `"${tool.serverName}" has no tool "${tool.name}" anymore`);
  }

  async #find({ serverId, name }: ToolName, signal: AbortSignal) {
    for (const open of this.#sources) {
      const source = await open();
      const tool = await source.findTool(serverId, name, signal);
      if (tool !== undefined) return { source, tool };
    }
    return undefined;
  }
}

/** Gives each tool a name that no other has: its own if possible, else with its server's in front. */
function nameTools(tools: readonly Tool[]): OfferedTool[] {
  const counts = new Map<string, number>();
  for (const { name } of tools) counts.set(name, (counts.get(name) ?? 0) + 1);
  const isOwn = ({ name }: Tool) => counts.get(name) === 1 && VALID_NAME.test(name);
  const taken = new Set(tools.filter(isOwn).map(({ name }) => name));
  return tools.map((tool) => {
    if (isOwn(tool)) return { name: tool.name, tool };
    const cleaned = `${tool.serverName}_${tool.name}`.replace(/[^a-zA-Z0-9_-]+/g, "_").slice(0, MAX_NAME_LENGTH);
    let name = cleaned;
    for (let n = 2; taken.has(name); n++) name = `${cleaned.slice(0, MAX_NAME_LENGTH - `_${n}`.length)}_${n}`;
    taken.add(name);
    return { name, tool };
  });
}

function toDefinition({ name, tool: { description, inputSchema } }: OfferedTool): JsonObject {
  return { type: "function", function: { name, description, parameters: inputSchema } };
}
