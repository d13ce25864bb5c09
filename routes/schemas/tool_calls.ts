/** Calls of tools on the wire: deciding about them, and the list of all. */
import { createRoute, z } from "@hono/zod-openapi";
import type { ToolCallRecord } from "../../services/tools/tool_call_store.ts";
import { toCallJson } from "../../services/chat/tools/tool_messages.ts";
import { ERRORS, Id, json, jsonBody, Time } from "./common.ts";

const State = z.enum(["pending", "running", "done", "failed", "denied", "unknown"]);

/** A call of a tool. */
export const ToolCall = z.object({
  id: z.string(),
  name: z.string().openapi({ description: "The name that the model used" }),
  arguments: z.string().openapi({ description: "A JSON object as text, as it is or will be called" }),
  proposed_arguments: z.string().optional().openapi({ description: "What the model wanted, if the owner changed it" }),
  state: State.openapi({ description: "unknown where the server was killed while it ran" }),
  result: z.string().optional().openapi({ description: "The text that the model sees" }),
  server_id: z.string().optional(),
  server_name: z.string().optional(),
  tool_name: z.string().optional().openapi({ description: "The tool's name at its server" }),
  hints: z.object({ readOnly: z.boolean().optional(), destructive: z.boolean().optional() }).optional().openapi({
    description: "What the server says of the tool's effects. It can be wrong",
  }),
  decided_by: z.string().optional().openapi({
    description: "session, local or a token; chat or always for a permission; system for a call that Parlor ended",
  }),
  duration_ms: z.number().optional().openapi({ description: "How long the tool ran" }),
  message_id: z.string().openapi({ description: "The message with the call" }),
}).openapi("ToolCall");

const WholeToolCall = ToolCall.extend({
  result_full: z.string().optional().openapi({ description: "The whole text of the result, at most 1 MiB" }),
}).openapi("WholeToolCall");

const CallParams = z.object({ mid: Id, call_id: z.string().min(1).max(200) });
const CallQuery = z.object({ conversation_id: Id.optional() });

/** Decide about a call. */
export const decideRoute = createRoute({
  method: "post",
  path: "/api/chat/replies/{mid}/tool_calls/{call_id}",
  tags: ["chat"],
  summary: "Allow or deny a call of a tool that waits",
  request: {
    params: CallParams,
    query: CallQuery,
    body: jsonBody(z.object({
      decision: z.enum(["allow", "deny"]),
      arguments: z.string().max(1024 * 1024).nullish().openapi({
        description: "A JSON object as text, instead of what the model wanted",
      }),
      remember: z.enum(["chat", "always"]).nullish().openapi({
        description: "Holds for later calls of the tool, in this chat or in all",
      }),
    })),
  },
  responses: {
    200: json(ToolCall, "The call. The same decision again changes nothing; another one is 409"),
    ...ERRORS,
  },
});

/** One call with its whole result. */
export const callRoute = createRoute({
  method: "get",
  path: "/api/chat/replies/{mid}/tool_calls/{call_id}",
  tags: ["chat"],
  summary: "Fetch a call of a tool with its whole result",
  request: { params: CallParams, query: CallQuery },
  responses: { 200: json(WholeToolCall, "The call"), ...ERRORS },
});

const ListedCall = z.object({
  conversation_id: z.string(),
  message_id: z.string(),
  call: ToolCall,
  decided_by: z.string().nullable(),
  decided_at: Time.nullable(),
  duration_ms: z.number().nullable().openapi({ description: "How long the tool ran" }),
});

/** The list of all calls. */
export const callListRoute = createRoute({
  method: "get",
  path: "/api/tools/calls",
  tags: ["tools"],
  summary: "List all calls of tools, newest first: with what, who allowed it, and how long it took",
  request: { query: z.object({ cursor: z.coerce.number().int().min(1).optional() }) },
  responses: {
    200: json(
      z.object({ items: z.array(ListedCall), next_cursor: z.string().nullable() }).openapi("ToolCallList"),
      "A page. Calls of deleted conversations leave the list when the trash is emptied",
    ),
    ...ERRORS,
  },
});

/** Gives a call of the list its form on the wire. */
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

/** A call of a tool. */
export type ToolCallAnswer = z.output<typeof ToolCall>;
