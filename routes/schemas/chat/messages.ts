/** Messages in the API. They are documents of the client: unknown fields are preserved. */
import type { Message } from "../../../services/conversations/message.ts";
import { createRoute, z } from "@hono/zod-openapi";
import { DocumentUseSchema, MAX_DOCUMENTS, SentDocumentSchema } from "../documents.ts";
import {
  ERRORS,
  Id,
  IdParams,
  IfMatch,
  json,
  jsonBody,
  type NamedFields,
  Time,
  UpstreamFailureSchema,
  WithVariants,
} from "../common.ts";

const Content = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))])
  .openapi({ description: "Text, or OpenAI content parts" });
const Role = z.string().min(1).max(32);

const MessageDocuments = z.array(
  z.looseObject({ ...DocumentUseSchema.shape, sent: SentDocumentSchema.partial().loose().optional() }),
).max(MAX_DOCUMENTS).openapi({
  description:
    "For a user message: its documents. For a reply: the documents it was generated from; sent is what was sent",
});

/** A tool call in a message. */
const MessageToolCall = z.looseObject({
  id: z.string().nullish(),
  type: z.string().nullish(),
  function: z.looseObject({
    name: z.string().nullish(),
    arguments: z.unknown().openapi({ type: "string", description: "A JSON object as text" }),
  }).nullish(),
  state: z.string().nullish().openapi({
    description: "For a call that Parlor runs: pending, running, done, failed, denied, or unknown if the server was " +
      "killed during the call",
  }),
}).openapi("MessageToolCall");

/** A source of a reply. */
const MessageSource = z.looseObject({
  n: z.number().int().openapi({ description: "Its number in the reply, from 1" }),
  url: z.string().optional(),
  title: z.string().optional(),
  document_id: z.string().optional(),
  quote: z.string().optional().openapi({ description: "The cited text" }),
}).openapi("MessageSource");

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
  pinned: z.boolean().nullish().openapi({
    description: "Whether the message stays in the prompt when the history is trimmed",
  }),
  memories: z.array(z.string()).nullish().openapi({ description: "For a reply: IDs of the memories that were sent" }),
  attachments: z.array(z.string()).nullish(),
  documents: MessageDocuments.nullish(),
  active_variant: z.number().int().min(0).optional(),
  sources: z.array(MessageSource).max(500).nullish().openapi({
    description: "The sources that the model or its server named for a reply",
  }),
  tool_calls: z.array(MessageToolCall).nullish().openapi({ description: "Tool calls, in OpenAI's format" }),
  tool_call_id: z.string().nullish().openapi({ description: "For a message with the role tool: ID of its call" }),
  reply_id: z.string().nullish().openapi({
    description: "For a message that a reply with tools wrote before its last message: ID of that last message",
  }),
});

/** Why a reply failed. */
const MessageError = z.object({ code: z.string(), message: z.string(), upstream: UpstreamFailureSchema.optional() });

const LeftOut = z.object({ field: z.string(), status: z.number().int(), reason: z.string() }).openapi("LeftOutField");

/** A message as a client sends it. */
const MessageBody = MessageFields.extend({
  id: Id.optional().openapi({
    description: "Unique in its conversation; if mid is absent as well, the server assigns one",
  }),
});

/** A message within a whole conversation that a client sends. */
export const MessageInDocument = MessageBody.extend({
  variants: z.array(z.looseObject({
    content: Content,
    reasoning: z.string().nullish(),
    model: z.string().nullish(),
    connection_id: z.string().nullish(),
    created_at: Time.nullish(),
  })).min(1).max(1000).nullish().openapi({
    description:
      "All its texts in order; if absent, the stored ones are kept. active_variant is the index of the visible one",
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
    description: "For a user message: number of messages that follow this version",
  }),
});

/** A version of a message. */
export type MessageVariantJson = z.output<typeof Variant>;

/** A message, as the API returns it. */
export const MessageResponse = MessageFields.extend({
  id: Id,
  role: Role,
  content: Content,
  status: z.enum(["complete", "streaming", "stopped", "failed", "interrupted"]),
  created_at: Time,
  updated_at: Time,
  variant_count: z.number().int(),
  active_variant: z.number().int(),
  connection_id: z.string().optional().openapi({ description: "ID of the connection that generated the reply" }),
  error: MessageError.optional().openapi({ description: "Why the reply failed" }),
  finish_reason: z.string().optional().openapi({
    description: "As in OpenAI's API; length if a limit truncated the reply",
  }),
  output_limit: z.number().int().optional().openapi({
    description: "Token limit of the reply, if one was sent",
  }),
  left_out: z.array(LeftOut).optional().openapi({
    description: "Fields that weren't sent, because the server rejects them",
  }),
  split_reasoning: z.boolean().optional().openapi({
    description: "True if the reasoning was streamed as text, because only its closing tag was sent",
  }),
  continued_after_restart: z.literal(true).optional().openapi({
    description: "Present if a restart cut the text, and it was continued with another call",
  }),
  context_use: z.object({
    size: z.number().int().openapi({ description: "Tokens of the model's context" }),
    assumed: z.boolean().optional().openapi({ description: "True if neither the server nor the owner said the size" }),
    tokens: z.number().int().openapi({ description: "Tokens of the prompt, as Parlor counted them" }),
    reply_tokens: z.number().int().openapi({ description: "Tokens reserved for the reply" }),
    parts: z.array(z.object({ kind: z.string(), tokens: z.number().int() })),
    first_message_id: z.string().optional().openapi({
      description: "The oldest message that was sent, if older ones were left out",
    }),
    left_out: z.object({
      messages: z.number().int().optional().openapi({ description: "How many messages at the start" }),
      pieces: z.array(z.object({ kind: z.string(), title: z.string().optional(), tokens: z.number().int() }))
        .optional(),
      lorebook_entries: z.array(z.object({
        lorebook_name: z.string(),
        entry_name: z.string(),
        reason: z.string(),
        key: z.string().optional(),
      })).optional(),
      memories: z.array(z.string()).optional().openapi({ description: "IDs of memories over their budget" }),
    }).optional().openapi({ description: "What wasn't sent. `documents` of the message has the pages that were" }),
  }).optional().openapi({ description: "How the prompt that Parlor assembled for this reply filled the context" }),
  last_attempt: z.object({
    action: z.enum(["regenerate", "continue"]).optional(),
    status: z.enum(["failed", "interrupted"]),
    error: MessageError.optional(),
    created_at: Time,
  }).optional().openapi({ description: "The last attempt to regenerate or continue this reply, if it failed" }),
  variants: z.array(Variant).optional().openapi({ description: "With ?variants=1, if there are several" }),
}).openapi("Message");

/** Unreadable parts of a conversation. */
export const Damaged = z.array(z.object({
  part: z.enum(["head", "draft", "queue", "messages", "variants"]),
  message_ids: z.array(z.string()).optional(),
  after: z.string().nullable().optional().openapi({ description: "ID of the message before the unreadable ones" }),
})).optional().openapi({
  description: "Parts left out because they can't be read. Absent if there are none",
});

/** Sizes of images. */
export const ImageSizes = z.record(z.string(), z.object({ width: z.number().int(), height: z.number().int() }))
  .optional().openapi({
    description: "Sizes in pixels of the images in these messages, as shown, by the name of the attachment",
  });

const MessageParams = IdParams.extend({ mid: Id });
const tags = ["Conversations"];

const Changes = z.object({
  revision: z.number().int().openapi({ description: "The current revision" }),
  changed: z.array(z.string()).openapi({ description: "New and changed messages, by id" }),
  removed: z.array(z.string()),
  order_changed: z.boolean().openapi({ description: "Whether the order of existing messages has changed" }),
}).openapi("Changes");

/** Changes. */
export const changesRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/changes",
  tags,
  summary: "List the messages that have changed since a revision",
  request: {
    params: IdParams,
    query: z.object({
      since: z.coerce.number().int().min(0).openapi({ description: "The revision that the client has" }),
    }),
  },
  responses: {
    200: json(
      Changes,
      "The changes; 410 gone if they are unknown and everything must be loaded again",
    ),
    ...ERRORS,
  },
});

/** One page. */
export const pageRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/messages",
  tags,
  summary: "Get the last messages, or those before a message; oldest first",
  request: {
    params: IdParams,
    query: z.object({
      before: Id.optional().openapi({ description: "ID of a message, or next_cursor of the previous page" }),
      limit: z.coerce.number().int().min(1).max(500).default(50),
      variants: WithVariants,
    }),
  },
  responses: {
    200: json(
      z.object({
        items: z.array(MessageResponse),
        next_cursor: z.string().nullable(),
        damaged: Damaged,
        image_sizes: ImageSizes,
      }).openapi(
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
  summary: "Add a message at the end or after another one",
  request: {
    params: IdParams,
    headers: IfMatch,
    body: jsonBody(z.object({ message: MessageBody, after: Id.nullish() })),
  },
  responses: { 201: json(MessageResponse, "The message"), ...ERRORS },
});

/** A request for a greeting. */
export const greetRoute = createRoute({
  method: "post",
  path: "/api/conversations/{id}/greeting",
  tags,
  summary: "Add a greeting of a participating character at the end; in a group, one of its group greetings",
  request: { params: IdParams, body: jsonBody(z.object({ character_id: Id })) },
  responses: { 201: json(MessageResponse, "The message; the card's other greetings are its variants"), ...ERRORS },
});

/** One message. */
export const getMessageRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/messages/{mid}",
  tags,
  summary: "Get a message; if a reply is running, with its text so far",
  request: { params: MessageParams, query: z.object({ variants: WithVariants }) },
  responses: { 200: json(MessageResponse, "The message"), ...ERRORS },
});

/** Edit one message. */
export const patchMessageRoute = createRoute({
  method: "patch",
  path: "/api/conversations/{id}/messages/{mid}",
  tags,
  summary: "Edit a message in place, or switch to another of its texts",
  request: { params: MessageParams, headers: IfMatch, body: jsonBody(MessageFields) },
  responses: { 200: json(MessageResponse, "The message"), ...ERRORS },
});

/** Delete one message, or also all following ones. */
export const deleteMessageRoute = createRoute({
  method: "delete",
  path: "/api/conversations/{id}/messages/{mid}",
  tags,
  summary: "Delete a message; with following=true also all messages after it",
  request: {
    params: MessageParams,
    headers: IfMatch,
    query: z.object({ following: z.enum(["true", "false"]).default("false") }),
  },
  responses: { 204: { description: "Deleted; X-Parlor-Trash-Id is the trash item to restore" }, ...ERRORS },
});

/** All texts of one message. */
export const variantsRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/messages/{mid}/variants",
  tags,
  summary: "List all texts of a message; for a user message, its versions",
  request: { params: MessageParams },
  responses: { 200: json(z.array(Variant), "The texts in order"), ...ERRORS },
});

/** A message, as the API returns it. */
export type MessageJson =
  & NamedFields<z.output<typeof MessageResponse>>
  & Pick<Message, "usage">
  & {
    /** Measurements of the model server, such as llama.cpp's `predicted_per_second`. */ timings?: Record<
      string,
      unknown
    >;
  };

/** The changes in a conversation since a revision. */
export type ConversationChangesJson = z.output<typeof Changes>;

/** The parts of a conversation that the server can't read. */
export type DamagedPartJson = NonNullable<z.output<typeof Damaged>>[number];
