/** Schemas of tool calls and of the built-in web tools. */
import { createRoute, z } from "@hono/zod-openapi";
import type { ToolCallRecord } from "../../services/tools/tool_call_store.ts";
import { toCallJson } from "../../services/chat/tools/tool_messages.ts";
import { ERRORS, Id, IfMatch, json, jsonBody, Time } from "./common.ts";
import type { Tool } from "../../services/tools/tool_registry.ts";
import type { WebConfig, WebConfigInput } from "../../services/tools/web/web_settings.ts";
import type { WebTestResult } from "../../services/tools/web/web_tools.ts";

const State = z.enum(["pending", "running", "done", "failed", "denied", "unknown"]);

/** A tool call. */
export const ToolCallSchema = z.object({
  id: z.string(),
  name: z.string().openapi({ description: "The name that the model used" }),
  arguments: z.string().openapi({ description: "The arguments of the call: a JSON object as text" }),
  proposed_arguments: z.string().optional().openapi({
    description: "The arguments that the model sent, if the owner changed them",
  }),
  state: State.openapi({ description: "unknown if the server was killed during the call" }),
  result: z.string().optional().openapi({ description: "The text that the model sees" }),
  server_id: z.string().optional(),
  server_name: z.string().optional(),
  tool_name: z.string().optional().openapi({ description: "The tool's name at its server" }),
  hints: z.object({ readOnly: z.boolean().optional(), destructive: z.boolean().optional() }).optional().openapi({
    description: "What the server declares about the tool's effects. It may be wrong",
  }),
  decided_by: z.string().optional().openapi({
    description: "session, local or a token; chat or always for a permission; system for a call that Parlor ended",
  }),
  duration_ms: z.number().optional().openapi({ description: "How long the tool ran, in milliseconds" }),
  message_id: z.string().openapi({ description: "The message that contains the call" }),
}).openapi("ToolCall");

const WholeToolCall = ToolCallSchema.extend({
  result_full: z.string().optional().openapi({ description: "The whole text of the result, at most 1 MiB" }),
}).openapi("WholeToolCall");

/** A tool call in the API. */
export type ToolCallJson = z.output<typeof WholeToolCall>;

const CallParams = z.object({ mid: Id, call_id: z.string().min(1).max(200) });
const CallQuery = z.object({ conversation_id: Id.optional() });

const Decision = z.object({
  decision: z.enum(["allow", "deny"]),
  arguments: z.string().max(1024 * 1024).nullish().openapi({
    description: "A JSON object as text that replaces the model's arguments",
  }),
  remember: z.enum(["chat", "always"]).nullish().openapi({
    description: "Also applies to later calls of the tool, in this chat or in all chats",
  }),
});

/** The owner's decision about a call. */
export type ToolDecisionJson = z.input<typeof Decision>;

/** Decide about a call. */
export const decideRoute = createRoute({
  method: "post",
  path: "/api/chat/replies/{mid}/tool_calls/{call_id}",
  tags: ["chat"],
  summary: "Allow or deny a tool call that is waiting for a decision",
  request: {
    params: CallParams,
    query: CallQuery,
    body: jsonBody(Decision),
  },
  responses: {
    200: json(ToolCallSchema, "The call. Repeating the same decision changes nothing; another decision gets 409"),
    ...ERRORS,
  },
});

/** One call with its whole result. */
export const callRoute = createRoute({
  method: "get",
  path: "/api/chat/replies/{mid}/tool_calls/{call_id}",
  tags: ["chat"],
  summary: "Get a tool call with its whole result",
  request: { params: CallParams, query: CallQuery },
  responses: { 200: json(WholeToolCall, "The call"), ...ERRORS },
});

const ListedCall = z.object({
  conversation_id: z.string(),
  message_id: z.string(),
  call: ToolCallSchema,
  decided_by: z.string().nullable(),
  decided_at: Time.nullable(),
  duration_ms: z.number().nullable().openapi({ description: "How long the tool ran, in milliseconds" }),
});

/** A call in the list of all calls. */
export type ListedToolCallJson = z.output<typeof ListedCall>;

/** The list of all calls. */
export const callListRoute = createRoute({
  method: "get",
  path: "/api/tools/calls",
  tags: ["tools"],
  summary: "List all tool calls, newest first: arguments, who allowed them, and how long they took",
  request: { query: z.object({ cursor: z.coerce.number().int().min(1).optional() }) },
  responses: {
    200: json(
      z.object({ items: z.array(ListedCall), next_cursor: z.string().nullable() }).openapi("ToolCallList"),
      "A page. Calls of deleted conversations are removed when the trash is emptied",
    ),
    ...ERRORS,
  },
});

/** Converts a call of the list to its JSON form. */
export function toListedCallJson(record: ToolCallRecord) {
  const { conversationId, messageId, decidedBy, decidedAtMs, startedAtMs, endedAtMs } = record;
  return {
    conversation_id: conversationId,
    message_id: messageId,
    call: toCallJson(record),
    decided_by: decidedBy ?? null,
    decided_at: decidedAtMs === undefined ? null : new Date(decidedAtMs).toISOString(),
    duration_ms: startedAtMs === undefined || endedAtMs === undefined ? null : endedAtMs - startedAtMs,
  };
}

const Permission = z.enum(["ask", "allow", "deny"]);

const WebTool = z.object({
  name: z.string().openapi({ example: "web_search" }),
  description: z.string(),
  input_schema: z.record(z.string(), z.unknown()),
  permission: Permission,
  enabled: z.boolean().openapi({ description: "Whether the tool is offered to models" }),
}).openapi("WebTool");

const WebConfigResponse = z.object({
  search_url: z.string().nullable().openapi({ description: "Address of a SearXNG server" }),
  search: z.boolean().openapi({ description: "Whether web_search is on; always false without an address" }),
  read_page: z.boolean().openapi({ description: "Whether read_page is on" }),
  held: z.boolean().optional().openapi({
    description: "True if the settings came with an import: both tools are off until a setting is changed",
  }),
  tools: z.array(WebTool),
}).openapi("WebTools");

const WebConfigBody = z.object({
  search_url: z.string().max(2000).nullish().openapi({ description: "null removes the address" }),
  search: z.boolean().optional(),
  read_page: z.boolean().optional(),
}).openapi("WebToolsPatch", {
  description: "Omitted fields keep their value. By default, both tools are on if there is an address",
});

const TestBody = z.object({
  search_url: z.string().max(2000).optional().openapi({ description: "By default the stored address" }),
}).openapi("WebToolsTestRequest");

const TestResponse = z.object({
  working: z.boolean(),
  error: z.string().optional(),
  results: z.number().int(),
  latency_ms: z.number().int(),
}).openapi("WebToolsTest");

/** Converts a change of the settings from its JSON form. */
export function toWebConfigInput(body: z.infer<typeof WebConfigBody>): WebConfigInput {
  const { search_url: searchUrl, search, read_page: readPage } = body;
  return { searchUrl, search, readPage };
}

/** Converts a tool to its JSON form. */
export function toWebToolJson({ tool, isOn }: { tool: Tool; isOn: boolean }): z.infer<typeof WebTool> {
  const { name, description, inputSchema: input_schema, permission } = tool;
  return { name, description, input_schema, permission, enabled: isOn };
}

/** Converts the settings to their JSON form. */
export function toWebConfigJson(
  { searchUrl, canSearch, canReadPages, isHeld }: WebConfig,
  tools: { tool: Tool; isOn: boolean }[],
): z.infer<typeof WebConfigResponse> {
  return {
    search_url: searchUrl ?? null,
    search: canSearch,
    read_page: canReadPages,
    held: isHeld,
    tools: tools.map(toWebToolJson),
  };
}

/** Converts the result of a test to its JSON form. */
export function toWebTestJson(result: WebTestResult): z.infer<typeof TestResponse> {
  const { isWorking: working, error, results, latencyMs: latency_ms } = result;
  return { working, error, results, latency_ms };
}

const tags = ["Tools"];
const path = "/api/tools/web";

/** The settings. */
export const webConfigRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "Get the settings of web search and page reading, and both tools",
  responses: { 200: json(WebConfigResponse, "The settings; the ETag is their version"), ...ERRORS },
});

/** Change the settings. */
export const putWebConfigRoute = createRoute({
  method: "put",
  path,
  tags,
  summary: "Set the SearXNG server, and turn web search and page reading on or off",
  request: { headers: IfMatch, body: jsonBody(WebConfigBody) },
  responses: { 200: json(WebConfigResponse, "The new settings"), ...ERRORS },
});

/** Test an address. */
export const testWebRoute = createRoute({
  method: "post",
  path: `${path}/test`,
  tags,
  summary: "Test a SearXNG server by searching for a common word, without saving the address",
  request: { body: jsonBody(TestBody) },
  responses: { 200: json(TestResponse, "The result of the test"), ...ERRORS },
});

/** Change a permission. */
export const webPermissionRoute = createRoute({
  method: "patch",
  path: `${path}/tools/{name}`,
  tags,
  summary: "Set whether calls of a built-in tool wait for approval, run at once or are blocked",
  request: { params: z.object({ name: z.string() }), body: jsonBody(z.object({ permission: Permission })) },
  responses: { 200: json(WebTool, "The tool"), ...ERRORS },
});

/** Settings of the web tools. */
export type WebToolsJson = z.output<typeof WebConfigResponse>;

/** Settings of the web tools to change. */
export type WebToolsPatchJson = z.input<typeof WebConfigBody>;

/** The result of a test. */
export type WebToolsTestJson = z.output<typeof TestResponse>;
