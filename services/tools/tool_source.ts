/**
 * What the reply loop knows of tools: which there are, how one is called, and what may be called without asking. MCP
 * servers and the built-in tools are sources of this one shape.
 */
import type { JsonObject } from "../json/type_guards.ts";

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
