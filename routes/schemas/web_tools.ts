/** The built-in web tools: web search and reading pages. */
import { createRoute, z } from "@hono/zod-openapi";
import type { Tool } from "../../services/tools/tool_registry.ts";
import type { WebConfig, WebConfigInput } from "../../services/tools/web/web_settings.ts";
import type { WebTestResult } from "../../services/tools/web/web_tools.ts";
import { ERRORS, IfMatch, json, jsonBody } from "./common.ts";

const Permission = z.enum(["ask", "allow", "deny"]);

const WebTool = z.object({
  name: z.string().openapi({ example: "web_search" }),
  description: z.string(),
  input_schema: z.record(z.string(), z.unknown()),
  permission: Permission,
  enabled: z.boolean().openapi({ description: "Whether models are offered it" }),
}).openapi("WebTool");

const WebConfigAnswer = z.object({
  search_url: z.string().nullable().openapi({ description: "Address of a SearXNG server" }),
  search: z.boolean().openapi({ description: "Whether web_search is on; never without an address" }),
  read_page: z.boolean().openapi({ description: "Whether read_page is on" }),
  tools: z.array(WebTool),
}).openapi("WebTools");

const WebConfigBody = z.object({
  search_url: z.string().max(2000).nullish().openapi({ description: "null removes the address" }),
  search: z.boolean().optional(),
  read_page: z.boolean().optional(),
}).openapi("WebToolsPatch", {
  description: "Omitted fields keep their value. Until they are set, both tools are on while there is an address",
});

const TestBody = z.object({
  search_url: z.string().max(2000).optional().openapi({ description: "By default the stored address" }),
}).openapi("WebToolsTestRequest");

const TestAnswer = z.object({
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
  { searchUrl, canSearch, canReadPages }: WebConfig,
  tools: { tool: Tool; isOn: boolean }[],
): z.infer<typeof WebConfigAnswer> {
  return {
    search_url: searchUrl ?? null,
    search: canSearch,
    read_page: canReadPages,
    tools: tools.map(toWebToolJson),
  };
}

/** Converts the result of a test to its JSON form. */
export function toWebTestJson(result: WebTestResult): z.infer<typeof TestAnswer> {
  const { isWorking: working, error, results, latencyMs: latency_ms } = result;
  return { working, error, results, latency_ms };
}

const tags = ["Tools"];
const path = "/api/tools/web";

/** The settings. */
export const configRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "Settings of web search and page reading, and both tools",
  responses: { 200: json(WebConfigAnswer, "The settings; the ETag is their version"), ...ERRORS },
});

/** Change the settings. */
export const putConfigRoute = createRoute({
  method: "put",
  path,
  tags,
  summary: "Set the SearXNG server, and turn web search and page reading on or off",
  request: { headers: IfMatch, body: jsonBody(WebConfigBody) },
  responses: { 200: json(WebConfigAnswer, "The new settings"), ...ERRORS },
});

/** Test an address. */
export const testRoute = createRoute({
  method: "post",
  path: `${path}/test`,
  tags,
  summary: "Search for a common word, without saving the address",
  request: { body: jsonBody(TestBody) },
  responses: { 200: json(TestAnswer, "Whether it works"), ...ERRORS },
});

/** Change a permission. */
export const permissionRoute = createRoute({
  method: "patch",
  path: `${path}/tools/{name}`,
  tags,
  summary: "Set whether calls of a built-in tool wait for approval, run at once or are refused",
  request: { params: z.object({ name: z.string() }), body: jsonBody(z.object({ permission: Permission })) },
  responses: { 200: json(WebTool, "The tool"), ...ERRORS },
});

/** Settings of the web tools. */
export type WebToolsJson = z.output<typeof WebConfigAnswer>;

/** Settings of the web tools to change. */
export type WebToolsPatchJson = z.input<typeof WebConfigBody>;

/** The result of a test. */
export type WebToolsTestJson = z.output<typeof TestAnswer>;
