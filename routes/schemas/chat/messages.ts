/** Messages on the wire. They are the client's documents: fields unknown here are kept. */
import type { Message } from "../../../services/conversations/message.ts";
import { createRoute, z } from "@hono/zod-openapi";
import { DocumentUse, MAX_DOCUMENTS, SentDocument } from "../documents.ts";
import {
  ERRORS,
  Id,
  IdParams,
  IfMatch,
  json,
  jsonBody,
  type NamedFields,
  Time,
  UpstreamFailure,
  WithVariants,
} from "../common.ts";

const Content = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))])
  .openapi({ description: "Text, or OpenAI content parts" });
const Role = z.string().min(1).max(32);

const MessageDocuments = z.array(
  z.looseObject({ ...DocumentUse.shape, sent: SentDocument.partial().loose().optional() }),
).max(MAX_DOCUMENTS).openapi({
  description: "Of a user message: what it came with. Of a reply: what it was written from. sent says what was sent",
});

/** A call of a tool in a message. */
const MessageToolCall = z.looseObject({
  id: z.string().nullish(),
  type: z.string().nullish(),
  function: z.looseObject({
    name: z.string().nullish(),
    arguments: z.unknown().openapi({ type: "string", description: "A JSON object as text" }),
  }).nullish(),
  state: z.string().nullish().openapi({
    description:
      "Of a call that Parlor runs: pending, running, done, failed, denied, or unknown where the server was " +
      "killed while it ran",
  }),
}).openapi("MessageToolCall");

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
  pinned: z.boolean().nullish().openapi({ description: "Stays in the prompt when the history is trimmed" }),
  memories: z.array(z.string()).nullish().openapi({ description: "Of a reply: ids of the notes it was written with" }),
  attachments: z.array(z.string()).nullish(),
  documents: MessageDocuments.nullish(),
  active_variant: z.number().int().min(0).optional(),
  tool_calls: z.array(MessageToolCall).nullish().openapi({ description: "Calls of tools, in OpenAI's form" }),
  tool_call_id: z.string().nullish().openapi({ description: "Of a message of the role tool: the call it answers" }),
  reply_id: z.string().nullish().openapi({
    description: "Of a message that a reply with tools wrote before its last one: the id of the last one",
  }),
});

/** Why a reply failed. */
const MessageError = z.object({ code: z.string(), message: z.string(), upstream: UpstreamFailure.optional() });

const LeftOut = z.object({ field: z.string(), status: z.number().int(), reason: z.string() }).openapi("LeftOutField");

/** A message as a client sends it. */
const MessageBody = MessageFields.extend({
  id: Id.optional().openapi({ description: "Unique in its conversation; made by the server where mid is absent, too" }),
});

/** A message as a client sends it inside a whole conversation. */
export const MessageInDocument = MessageBody.extend({
  variants: z.array(z.looseObject({
    content: Content,
    reasoning: z.string().nullish(),
    model: z.string().nullish(),
    connection_id: z.string().nullish(),
    created_at: Time.nullish(),
  })).min(1).max(1000).nullish().openapi({
    description: "All its texts in order; absent, the stored ones stay. active_variant says which of them it shows",
  }),
});

const Variant = z.object({
  n: z.number().int(),
  content: Content,
  reasoning: z.string().optional(),
  model: z.string().optional(),
  connection_id: z.string().optional(),
  created_at: Time,
  message_count: z.number().int().optional().openapi({
    description: "Of a user message: how many messages follow this version",
  }),
});

/** A version of a message. */
export type MessageVariantJson = z.output<typeof Variant>;

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
  connection_id: z.string().optional().openapi({ description: "The connection that answered" }),
  error: MessageError.optional().openapi({ description: "Why the reply failed" }),
  finish_reason: z.string().optional().openapi({ description: "As in OpenAI's API; length where a limit cut it off" }),
  output_limit: z.number().int().optional().openapi({
    description: "Limit of the reply in tokens, where one was sent",
  }),
  left_out: z.array(LeftOut).optional().openapi({
    description: "Fields that were not sent because the server refuses them",
  }),
  split_reasoning: z.boolean().optional().openapi({
    description: "True if the reasoning was streamed as text, because only its closing tag came",
  }),
  last_attempt: z.object({
    status: z.enum(["failed", "interrupted"]),
    error: MessageError.optional(),
    created_at: Time,
  }).optional().openapi({ description: "The last try to write this answer again, where it failed" }),
  variants: z.array(Variant).optional().openapi({ description: "With ?variants=1, where there are several" }),
}).openapi("Message");

/** What of a conversation can't be read. */
export const Damaged = z.array(z.object({
  part: z.enum(["head", "draft", "messages", "variants"]),
  message_ids: z.array(z.string()).optional(),
  after: z.string().nullable().optional().openapi({ description: "The message before those that can't be read" }),
})).optional().openapi({ description: "Parts that can't be read and are missing here; absent where all is whole" });

const MessageParams = IdParams.extend({ mid: Id });
const tags = ["Conversations"];

const Changes = z.object({
  revision: z.number().int().openapi({ description: "The present one" }),
  changed: z.array(z.string()).openapi({ description: "New and changed messages, by id" }),
  removed: z.array(z.string()),
  order_changed: z.boolean().openapi({ description: "Messages that stayed have another order" }),
}).openapi("Changes");

/** What has changed. */
export const changesRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/changes",
  tags,
  summary: "List the messages that have changed since a revision",
  request: {
    params: IdParams,
    query: z.object({ since: z.coerce.number().int().min(0).openapi({ description: "A revision the client has" }) }),
  },
  responses: {
    200: json(
      Changes,
      "What has changed; 410 gone where that isn't known, for which everything has to be loaded again",
    ),
    ...ERRORS,
  },
});

/** One page. */
export const pageRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/messages",
  tags,
  summary: "Fetch the last messages, or those before one; oldest first",
  request: {
    params: IdParams,
    query: z.object({
      before: Id.optional().openapi({ description: "A message id, or the next_cursor of the page after" }),
      limit: z.coerce.number().int().min(1).max(500).default(50),
      variants: WithVariants,
    }),
  },
  responses: {
    200: json(
      z.object({ items: z.array(MessageAnswer), next_cursor: z.string().nullable(), damaged: Damaged }).openapi(
        "MessagePage",
      ),
      "The page; next_cursor leads to the messages before it",
    ),
    ...ERRORS,
  },
});

/** Add one. */
export const addRoute = createRoute({
  method: "post",
  path: "/api/conversations/{id}/messages",
  tags,
  summary: "Add a message at the end, or behind another",
  request: {
    params: IdParams,
    headers: IfMatch,
    body: jsonBody(z.object({ message: MessageBody, after: Id.nullish() })),
  },
  responses: { 201: json(MessageAnswer, "The message"), ...ERRORS },
});

/** A request for a greeting. */
export const greetRoute = createRoute({
  method: "post",
  path: "/api/conversations/{id}/greeting",
  tags,
  summary: "Let a character who takes part say a greeting at the end, in a group one of those for groups",
  request: { params: IdParams, body: jsonBody(z.object({ character_id: Id })) },
  responses: { 201: json(MessageAnswer, "The message; the card's other greetings are its variants"), ...ERRORS },
});

/** One message. */
export const getMessageRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/messages/{mid}",
  tags,
  summary: "Fetch one message, with what a running reply has written so far",
  request: { params: MessageParams, query: z.object({ variants: WithVariants }) },
  responses: { 200: json(MessageAnswer, "The message"), ...ERRORS },
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

/** Remove one message, or it and all behind it. */
export const deleteMessageRoute = createRoute({
  method: "delete",
  path: "/api/conversations/{id}/messages/{mid}",
  tags,
  summary: "Remove one message, with following=true also all behind it",
  request: {
    params: MessageParams,
    headers: IfMatch,
    query: z.object({ following: z.enum(["true", "false"]).default("false") }),
  },
  responses: { 204: { description: "Removed; X-Parlor-Trash-Id names what to restore" }, ...ERRORS },
});

/** All texts of one message. */
export const variantsRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/messages/{mid}/variants",
  tags,
  summary: "List all texts of one message; of a user message its versions",
  request: { params: MessageParams },
  responses: { 200: json(z.array(Variant), "The texts in order"), ...ERRORS },
});

/** A message, as the API returns it. */
export type MessageJson =
  & NamedFields<z.output<typeof MessageAnswer>>
  & Pick<Message, "usage">
  & {
    /** What the model server measured, such as llama.cpp's `predicted_per_second`. */ timings?: Record<
      string,
      unknown
    >;
  };

/** What changed in a conversation since a revision. */
export type ConversationChangesJson = z.output<typeof Changes>;

/** The parts of a conversation that the server can't read. */
export type DamagedPartJson = NonNullable<z.output<typeof Damaged>>[number];
