/** Tool servers in the API. Environment, headers and the client secret can be set but are never returned. */
import { createRoute, z } from "@hono/zod-openapi";
import type { ServerStatus, ToolWithPermission } from "../../services/mcp/mcp.ts";
import type { ServerResource } from "../../services/mcp/mcp_connection.ts";
import { SERVER_TRANSPORTS, type ToolServerInput } from "../../services/mcp/tool_server.ts";
import { ERRORS, Id, IdParams, IfMatch, json, jsonBody, Time } from "./common.ts";

const Transport = z.enum(SERVER_TRANSPORTS).openapi({ description: "stdio: a program on the server's machine" });
const Permission = z.enum(["ask", "allow", "deny"]);
const SecretValues = z.record(z.string().min(1).max(200), z.string().max(32_000).nullable());

const ServerBody = z.object({
  name: z.string().max(200).nullish(),
  transport: Transport.optional(),
  command: z.string().max(4_000).nullish().openapi({
    description: "For stdio: a path, or the name of a program on PATH",
  }),
  args: z.array(z.string().max(32_000)).max(200).nullish(),
  env: SecretValues.nullish().openapi({
    description:
      "Environment variables of the program, besides PATH. A null value removes one, null removes all; changing the command removes them",
    additionalProperties: { type: ["string", "null"] },
  }),
  url: z.string().max(4_000).nullish().openapi({ description: "For http: the address of the MCP endpoint" }),
  headers: SecretValues.nullish().openapi({
    description:
      "Sent with every request. A null value removes one, null removes all; an address with another origin removes them",
    additionalProperties: { type: ["string", "null"] },
  }),
  client_id: z.string().max(2_000).nullish().openapi({ description: "OAuth client that was registered by hand" }),
  client_secret: z.string().max(10_000).nullish(),
  trusted_origins: z.array(z.string().max(4_000)).max(100).nullish().openapi({
    description:
      "Other addresses that the server may lead to, such as an authorization server in a private network. All others must be public. An address with another origin removes them",
  }),
  enabled: z.boolean().nullish(),
}).openapi("ToolServerInput", {
  description: "If the server is saved, omitted fields keep their value; null clears it",
});

const ToolResponse = z.object({
  name: z.string(),
  title: z.string().optional(),
  description: z.string(),
  input_schema: z.record(z.string(), z.unknown()).openapi({ additionalProperties: true }),
  permission: Permission.openapi({
    description: "Applies to this description and schema; if they change, it is reset to ask",
  }),
  hints: z.object({ read_only: z.boolean().optional(), destructive: z.boolean().optional() }).openapi({
    description: "What the server declares about the tool's effects",
  }),
}).openapi("ServerTool");

const ServerResponse = z.object({
  id: Id,
  name: z.string(),
  transport: Transport,
  command: z.string().optional(),
  args: z.array(z.string()).optional(),
  env_names: z.array(z.string()),
  url: z.string().optional(),
  header_names: z.array(z.string()),
  client_id: z.string().optional(),
  has_client_secret: z.boolean(),
  trusted_origins: z.array(z.string()).optional(),
  enabled: z.boolean(),
  state: z.enum(["off", "held", "starting", "ready", "needs_auth", "failed"]).openapi({
    description:
      "held: an import enabled it, and it's off until enabled is set. With needs_auth, POST …/sign-in returns the URL of the sign-in page",
  }),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  auth_url: z.string().optional().openapi({
    description: "The sign-in page, from POST …/sign-in until the sign-in ends or for 15 minutes",
  }),
  signed_in: z.boolean(),
  tools: z.array(ToolResponse),
  software: z.object({ name: z.string(), version: z.string() }).optional(),
  prompts: z.boolean().openapi({ description: "Whether it offers prompts" }),
  resources: z.boolean().openapi({ description: "Whether it offers resources" }),
  unreadable: z.boolean().optional(),
  created_at: Time,
  updated_at: Time,
}).openapi("ToolServer");

const ImportResponse = z.object({
  servers: z.array(ServerResponse),
  skipped: z.array(z.object({
    name: z.string(),
    code: z.enum(["invalid", "unsupported", "present", "programs_not_allowed"]),
    reason: z.string(),
  })),
}).openapi("ToolServerImport");

const Prompt = z.object({
  name: z.string(),
  title: z.string().optional(),
  description: z.string().optional(),
  arguments: z.array(z.object({ name: z.string(), description: z.string().optional(), required: z.boolean() })),
}).openapi("ServerPrompt");

const Resource = z.object({
  uri: z.string(),
  name: z.string(),
  description: z.string().optional(),
  content_type: z.string().optional(),
}).openapi("ServerResource");

/** Converts a request body to the type of the service. */
export function toServerInput(body: z.infer<typeof ServerBody>): ToolServerInput {
  const { name, transport, command, args, env, url, headers, client_id, client_secret, trusted_origins, enabled } =
    body;
  return {
    name,
    transport,
    command,
    args,
    env,
    url,
    headers,
    clientId: client_id,
    clientSecret: client_secret,
    trustedOrigins: trusted_origins,
    isEnabled: enabled,
  };
}

/** Converts a tool to its JSON form. */
export function toToolJson(tool: ToolWithPermission): z.infer<typeof ToolResponse> {
  const { name, title, description, inputSchema, permission, hints } = tool;
  return {
    name,
    title,
    description,
    input_schema: inputSchema,
    permission,
    hints: { read_only: hints.readOnly, destructive: hints.destructive },
  };
}

/** Converts a server to its JSON form. */
export function toServerJson(status: ServerStatus): z.infer<typeof ServerResponse> {
  const { server, state, error, authUrl, isSignedIn, tools, software, offers } = status;
  const { id, name, transport, command, args, envNames, url, headerNames, clientId } = server;
  return {
    id,
    name,
    transport,
    command,
    args,
    env_names: envNames,
    url,
    header_names: headerNames,
    client_id: clientId,
    has_client_secret: server.hasClientSecret,
    trusted_origins: server.trustedOrigins,
    enabled: server.isEnabled,
    state,
    error: error && { code: error.code, message: error.message },
    auth_url: authUrl,
    signed_in: isSignedIn,
    tools: tools.map(toToolJson),
    software,
    ...offers,
    unreadable: server.isUnreadable,
    created_at: new Date(server.createdAtMs).toISOString(),
    updated_at: new Date(server.updatedAtMs).toISOString(),
  };
}

/** Converts a resource to its JSON form. */
export function toResourceJson({ contentType: content_type, ...rest }: ServerResource): z.infer<typeof Resource> {
  return { ...rest, content_type };
}

const path = "/api/tools/servers";
const one = `${path}/{id}` as const;
const tags = ["Tools"];
const server = (description: string) => ({ 200: json(ServerResponse, description), ...ERRORS });

/** All servers. */
export const listRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "List tool servers and their tools; this starts enabled servers",
  responses: { 200: json(z.array(ServerResponse), "The servers, oldest first"), ...ERRORS },
});

/** One server. */
export const getRoute = createRoute({
  method: "get",
  path: one,
  tags,
  summary: "Get a tool server and its tools",
  request: { params: IdParams },
  responses: server("The server; its ETag is its version"),
});

/** Create or replace a server. */
export const putRoute = createRoute({
  method: "put",
  path: one,
  tags,
  summary: "Create or update a tool server; a program needs tools_allow_programs in the configuration",
  request: { params: IdParams, headers: IfMatch, body: jsonBody(ServerBody) },
  responses: { 200: json(ServerResponse, "Saved"), 201: json(ServerResponse, "Created"), ...ERRORS },
});

/** Remove a server. */
export const deleteRoute = createRoute({
  method: "delete",
  path: one,
  tags,
  summary: "Stop and delete a tool server",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Add the servers of another client. */
export const importRoute = createRoute({
  method: "post",
  path: `${path}/import`,
  tags,
  summary: "Add the servers of another client's JSON: mcpServers, servers or context_servers",
  request: {
    body: jsonBody(
      z.record(z.string(), z.unknown()).openapi({
        example: {
          mcpServers: { files: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "/srv"] } },
        },
        additionalProperties: true,
      }),
    ),
  },
  responses: {
    200: json(ImportResponse, "The added servers. Servers with placeholders in their values are disabled"),
    ...ERRORS,
  },
});

/** Reconnect. */
export const testRoute = createRoute({
  method: "post",
  path: `${one}/test`,
  tags,
  summary: "Reconnect to a tool server and list its tools",
  request: { params: IdParams },
  responses: server("The server; its state and error contain the result"),
});

/** Set a tool's permission. */
export const permissionRoute = createRoute({
  method: "patch",
  path: `${one}/tools/{name}`,
  tags,
  summary: "Set whether a tool waits for approval, runs at once or is blocked",
  request: {
    params: z.object({ id: Id, name: z.string().min(1).max(200) }),
    body: jsonBody(z.object({ permission: Permission })),
  },
  responses: { 200: json(ToolResponse, "The tool"), ...ERRORS },
});

/** Start a sign-in. */
export const signInRoute = createRoute({
  method: "post",
  path: `${one}/sign-in`,
  tags,
  summary: "Start signing in to a server over HTTP (OAuth)",
  request: { params: IdParams },
  responses: { 200: json(z.object({ auth_url: z.string() }), "The page to open in the same browser"), ...ERRORS },
});

/** Delete a sign-in. */
export const signOutRoute = createRoute({
  method: "delete",
  path: `${one}/sign-in`,
  tags,
  summary: "Delete the tokens of a server",
  request: { params: IdParams },
  responses: { 204: { description: "Forgotten" }, ...ERRORS },
});

/** Where the authorization server sends the browser. */
export const callbackRoute = createRoute({
  method: "get",
  path: "/api/tools/callback",
  tags,
  summary: "Finish a sign-in: the authorization server sends the browser here",
  request: {
    query: z.object({
      state: z.string().min(1).max(200),
      code: z.string().min(1).max(10_000).optional(),
      iss: z.string().max(2_000).optional(),
      error: z.string().max(500).optional(),
    }),
  },
  responses: { 303: { description: "Redirect to the page's list of servers" }, ...ERRORS },
});

/** Prompts of a server. */
export const promptsRoute = createRoute({
  method: "get",
  path: `${one}/prompts`,
  tags,
  summary: "List the prompts that a tool server offers",
  request: { params: IdParams },
  responses: { 200: json(z.array(Prompt), "The prompts; none if it offers none"), ...ERRORS },
});

/** One prompt's text. */
export const promptRoute = createRoute({
  method: "post",
  path: `${one}/prompts/{name}`,
  tags,
  summary: "Get the text of a prompt",
  request: {
    params: z.object({ id: Id, name: z.string().min(1).max(200) }),
    body: jsonBody(z.object({ arguments: z.record(z.string(), z.string().max(100_000)).default({}) })),
  },
  responses: { 200: json(z.object({ text: z.string() }), "The text"), ...ERRORS },
});

/** Resources of a server. */
export const resourcesRoute = createRoute({
  method: "get",
  path: `${one}/resources`,
  tags,
  summary: "List the resources that a tool server offers",
  request: { params: IdParams },
  responses: { 200: json(z.array(Resource), "The resources; none if it offers none"), ...ERRORS },
});

/** One resource's text. */
export const resourceRoute = createRoute({
  method: "post",
  path: `${one}/resources/read`,
  tags,
  summary: "Read a resource that is text",
  request: { params: IdParams, body: jsonBody(z.object({ uri: z.string().min(1).max(8_000) })) },
  responses: {
    200: json(z.object({ name: z.string(), content_type: z.string(), text: z.string() }), "The text"),
    ...ERRORS,
  },
});

/** A tool server, as the API returns it. */
export type ToolServerJson = z.output<typeof ServerResponse>;
/** A tool of a server, as the API returns it. */
export type ServerToolJson = z.output<typeof ToolResponse>;
/** The body that creates or updates a server. */
export type ToolServerBody = z.input<typeof ServerBody>;
/** The result of an import. */
export type ToolServerImportJson = z.output<typeof ImportResponse>;
