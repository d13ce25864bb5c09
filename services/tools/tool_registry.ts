/** Merges the tools of all sources for models: with unique names, in a stable order, and a limited number. */
import { Buffer } from "node:buffer";
import { AppError, getErrorMessage } from "../errors.ts";
import type { JsonObject } from "../json/type_guards.ts";

// The interface between replies and tools: listing tools, calling them, and their permissions. MCP servers and the
// built-in tools implement it.

/** Whether a call waits for the owner ("ask"), runs ("allow") or is refused ("deny"). */
export type ToolPermission = "ask" | "allow" | "deny";

/** A tool of a server. */
export interface Tool {
  serverId: string;
  /** The owner's name for the server. */
  serverName: string;
  /** Name of the tool at its server. */
  name: string;
  description: string;
  /** JSON schema of the arguments, from the server. */
  inputSchema: JsonObject;
  /** What the server declares about the tool's effects. Shown to the owner, but never trusted. */
  hints: { readOnly?: boolean; destructive?: boolean };
  permission: ToolPermission;
  /** SHA-256 of description and schema in hex. A permission and a waiting call are only valid for this definition. */
  fingerprint: string;
}

/** A server whose tools can't be used right now. */
export interface UnavailableServer {
  serverId: string;
  serverName: string;
  /** A sentence for the owner. */
  reason: string;
}

/** One part of a tool's result. */
export type ToolOutputPart =
  | { type: "text"; text: string }
  | { type: "image" | "audio"; data: Uint8Array<ArrayBuffer>; contentType: string }
  /** A link to a resource. Never fetched automatically. */
  | { type: "link"; uri: string; name?: string };

/** The output of a tool. */
export interface ToolOutput {
  parts: ToolOutputPart[];
  /** True if the tool ran and reported a failure. */
  isError: boolean;
  /** True if the result exceeded the limit and was truncated. */
  truncated: boolean;
}

/** Limits of one call. */
export interface ToolCallOptions {
  signal: AbortSignal;
  timeoutMs: number;
  /** Text beyond this number of bytes is truncated; images beyond it are dropped. */
  maxBytes: number;
  /** The chat and the reply that make the call. For built-in tools; never sent to a server. */
  conversationId?: string;
  messageId?: string;
}

/** A source of tools. */
export interface ToolSource {
  /**
   * Lists the tools of every enabled server, in a stable order. Servers that aren't ready within a few seconds are in
   * `unavailable`; one server's failure is never thrown.
   */
  listTools(signal: AbortSignal): Promise<{ tools: Tool[]; unavailable: UnavailableServer[] }>;
  /** Returns a tool from its server's current list; `undefined` if it no longer exists. */
  findTool(serverId: string, name: string, signal: AbortSignal): Promise<Tool | undefined>;
  /**
   * Calls a tool. Doesn't check the permission: the caller has done that.
   *
   * @throws {AppError} `upstream_timeout`; `upstream_error` if the server can't be reached, ends or sends an invalid
   *   response; `not_found` if the tool no longer exists. A failure reported by the tool is `isError` instead.
   */
  callTool(tool: Tool, args: JsonObject, options: ToolCallOptions): Promise<ToolOutput>;
  /** Stores a permission for the current definition of a tool. */
  setPermission(tool: Tool, permission: ToolPermission): Promise<void>;
}

/** A tool that is offered to a model. */
export interface OfferedTool {
  /** Its name for the model. */
  name: string;
  tool: Tool;
}

/** The tools that a request offers. */
export interface ToolOffer {
  tools: OfferedTool[];
  /** In the format of OpenAI's `tools`. */
  definitions: JsonObject[];
  /** Tools beyond the limit and unavailable servers, with reasons. */
  leftOut: { name: string; reason: string }[];
}

/** Identifies a tool. */
export type ToolName = Pick<Tool, "serverId" | "name">;

/** Maximum size of the definitions in a request: about 16,000 tokens. */
export const MAX_DEFINITION_BYTES = 64 * 1024;
/**
 * Matches names that all servers accept. Gemini's rule is the strictest.
 *
 * @see https://ai.google.dev/api/caching#FunctionDeclaration
 */
const VALID_NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,62}$/;
const MAX_NAME_LENGTH = 63;

/** Merges sources of tools. */
export class ToolRegistry {
  readonly #sources: readonly (() => Promise<ToolSource>)[];

  /** @param sources Functions that open the sources, in the order of their tools. */
  constructor(sources: readonly (() => Promise<ToolSource>)[]) {
    this.#sources = sources;
  }

  /** Lists the tools to offer to a model now, without denied ones. */
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

  /** Returns a tool from its server's current list; `undefined` if it no longer exists. */
  async findTool({ serverId, name }: ToolName, signal: AbortSignal): Promise<Tool | undefined> {
    return (await this.#find({ serverId, name }, signal))?.tool;
  }

  /**
   * Calls a tool. The caller has checked the permission.
   *
   * @throws {AppError} Like `ToolSource.callTool`, and `not_found` if no source has the tool.
   */
  async callTool(tool: Tool, args: JsonObject, options: ToolCallOptions): Promise<ToolOutput> {
    const { source } = await this.#get(tool, options.signal);
    return await source.callTool(tool, args, options);
  }

  /** Stores a permission for the current definition of a tool. @throws {AppError} `not_found` */
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
    throw new AppError("not_found", `"${tool.serverName}" no longer has a tool "${tool.name}"`);
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

/** Gives each tool a unique name: its own if possible, otherwise with the server's name as prefix. */
function nameTools(tools: readonly Tool[]): OfferedTool[] {
  const counts = new Map<string, number>();
  for (const { name } of tools) counts.set(name, (counts.get(name) ?? 0) + 1);
  const isOwn = ({ name }: Tool) => counts.get(name) === 1 && VALID_NAME.test(name);
  const usedNames = new Set(tools.filter(isOwn).map(({ name }) => name));
  return tools.map((tool) => {
    if (isOwn(tool)) return { name: tool.name, tool };
    const cleaned = `${tool.serverName}_${tool.name}`.replace(/[^a-zA-Z0-9_-]+/g, "_").replace(/^(?=[0-9-])/, "_")
      .slice(0, MAX_NAME_LENGTH);
    let name = cleaned;
    for (let n = 2; usedNames.has(name); n++) name = `${cleaned.slice(0, MAX_NAME_LENGTH - `_${n}`.length)}_${n}`;
    usedNames.add(name);
    return { name, tool };
  });
}

function toDefinition({ name, tool: { description, inputSchema } }: OfferedTool): JsonObject {
  return { type: "function", function: { name, description, parameters: inputSchema } };
}
