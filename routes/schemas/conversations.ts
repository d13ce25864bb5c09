/** Conversations and messages on the wire. Both are the client's documents: fields unknown here are kept. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, Id, IdParams, IfMatch, json, jsonBody, Time } from "./common.ts";

const Content = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))])
  .openapi({ description: "Text, or OpenAI content parts" });
const Role = z.string().min(1).max(32);

const MessageFields = z.looseObject({
  role: Role.optional(),
  content: Content.nullish(),
  reasoning: z.string().nullish(),
  created_at: Time.nullish(),
  updated_at: Time.nullish(),
  model: z.string().nullish(),
  character_id: z.string().nullish(),
  persona_id: z.string().nullish(),
  hidden: z.boolean().nullish(),
  attachments: z.array(z.string()).nullish(),
  active_variant: z.number().int().min(0).optional(),
});

/** A message as a client sends it inside a conversation. */
export const MessageBody = MessageFields.extend({ id: Id.optional() });

/** A message as the API shows it. */
export const MessageAnswer = MessageFields.extend({
  id: Id,
  role: Role,
  content: Content,
  status: z.enum(["complete", "streaming", "stopped", "failed", "interrupted"]),
  created_at: Time,
  updated_at: Time,
  variant_count: z.number().int(),
  active_variant: z.number().int(),
}).openapi("Message");

const ConversationFields = z.looseObject({
  title: z.string().max(1000).nullish(),
  participants: z.array(
    z.looseObject({ character_id: Id, muted: z.boolean().optional(), talkativeness: z.number().optional() }),
  ).nullish(),
  character_id: Id.nullish(),
  persona_id: z.string().nullish(),
  connection_id: z.string().nullish(),
  model: z.string().nullish(),
  system_prompt: z.string().nullish(),
  params: z.record(z.string(), z.unknown()).nullish(),
  pinned: z.boolean().nullish(),
  folder: z.string().nullish(),
  created_at: Time.nullish(),
  draft: z.string().optional(),
  draft_version: z.number().int().optional(),
});

const ConversationBody = ConversationFields.extend({ messages: z.array(MessageBody) });

/** A conversation with all its messages. */
export const ConversationAnswer = ConversationFields.extend({
  id: Id,
  title: z.string(),
  created_at: Time,
  updated_at: Time,
  revision: z.number().int(),
  draft: z.string(),
  draft_version: z.number().int(),
  messages: z.array(MessageAnswer),
}).openapi("Conversation");

const Summary = z.object({
  id: Id,
  title: z.string(),
  created_at: Time,
  updated_at: Time,
  revision: z.number().int(),
  message_count: z.number().int(),
  draft_version: z.number().int(),
  snippet: z.string(),
  character_ids: z.array(z.string()),
  pinned: z.boolean().optional(),
  folder: z.string().optional(),
}).openapi("ConversationSummary");

const Variant = z.object({
  n: z.number().int(),
  content: Content,
  reasoning: z.string().optional(),
  model: z.string().optional(),
  created_at: Time,
});
const MessageParams = IdParams.extend({ mid: Id });
const tags = ["Conversations"];

/** All conversations: whole, or summaries in pages. */
export const listRoute = createRoute({
  method: "get",
  path: "/api/conversations",
  tags,
  summary: "List all conversations with their messages, or with view=summary one page of summaries",
  request: {
    query: z.object({
      view: z.enum(["full", "summary"]).default("full"),
      limit: z.coerce.number().int().min(1).max(500).default(100),
      cursor: z.string().optional(),
    }),
  },
  responses: {
    200: json(
      z.union([z.array(ConversationAnswer), z.object({ items: z.array(Summary), next_cursor: z.string().nullable() })]),
      "An array of conversations, or a page of summaries",
    ),
    ...ERRORS,
  },
});

/** One conversation. */
export const getRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}",
  tags,
  summary: "Fetch one conversation",
  request: { params: IdParams },
  responses: { 200: json(ConversationAnswer, "The conversation; its ETag is its revision"), ...ERRORS },
});

/** Save, overwriting. */
export const putRoute = createRoute({
  method: "put",
  path: "/api/conversations/{id}",
  tags,
  summary: "Save a conversation, overwriting",
  request: { params: IdParams, headers: IfMatch, body: jsonBody(ConversationBody) },
  responses: { 200: json(ConversationAnswer, "Saved"), 201: json(ConversationAnswer, "Created"), ...ERRORS },
});

/** Remove. */
export const deleteRoute = createRoute({
  method: "delete",
  path: "/api/conversations/{id}",
  tags,
  summary: "Remove a conversation; a running reply in it is aborted",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Save the composer's draft. */
export const patchDraftRoute = createRoute({
  method: "patch",
  path: "/api/conversations/{id}/draft",
  tags,
  summary: "Persist the composer draft",
  request: { params: IdParams, headers: IfMatch, body: jsonBody(z.object({ draft: z.string() })) },
  responses: { 204: { description: "Saved; the ETag is the draft's version" }, ...ERRORS },
});

/** Edit one message. */
export const patchMessageRoute = createRoute({
  method: "patch",
  path: "/api/conversations/{id}/messages/{mid}",
  tags,
  summary: "Edit one message in place, or switch to another of its texts",
  request: { params: MessageParams, headers: IfMatch, body: jsonBody(MessageFields) },
  responses: { 200: json(MessageAnswer, "The message"), ...ERRORS },
});

/** Remove one message. */
export const deleteMessageRoute = createRoute({
  method: "delete",
  path: "/api/conversations/{id}/messages/{mid}",
  tags,
  summary: "Remove one message",
  request: { params: MessageParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** All texts of one message. */
export const variantsRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/messages/{mid}/variants",
  tags,
  summary: "List all texts of one message",
  request: { params: MessageParams },
  responses: { 200: json(z.array(Variant), "The texts in order"), ...ERRORS },
});
