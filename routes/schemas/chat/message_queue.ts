/** Messages that wait for the end of a reply, in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import { MAX_QUEUED } from "../../../services/conversations/message_queues.ts";
import { isTimeZone } from "../../../services/prompts/macros/macro_time.ts";
import { ERRORS, Id, IdParams, json, jsonBody, Time } from "../common.ts";
import { DocumentUsesSchema } from "../documents.ts";

const Content = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))])
  .openapi({ description: "Text, or OpenAI content parts" });

const QueueMessage = z.looseObject({
  role: z.literal("user").default("user"),
  content: Content.nullish(),
  documents: DocumentUsesSchema.nullish(),
  attachments: z.array(z.string()).nullish(),
}).refine(
  ({ content, documents, attachments }) =>
    (content ?? "").length > 0 || (documents ?? []).length > 0 || (attachments ?? []).length > 0,
  { message: "there is nothing to send", path: ["content"] },
);

const NewMessage = QueueMessage.safeExtend({
  id: Id.nullish().openapi({ description: "ID of the user message; one that waits already isn't queued twice" }),
});

const Names = z.record(z.string().max(500), z.string().max(500)).refine(
  (names) => Object.keys(names).length <= 200,
  "at most 200 names",
).openapi({ description: "Names of its files for clients, by the URL of the image or the ID of the document" });

const Queued = z.object({
  n: z.number().int().openapi({ description: "Its number, which no other message of this queue has or had" }),
  message: z.looseObject({
    id: Id,
    role: z.string(),
    content: Content,
    documents: DocumentUsesSchema.optional(),
    attachments: z.array(z.string()).optional(),
  }),
  assistant_message_id: Id.openapi({ description: "ID that its reply will have" }),
  names: Names.optional(),
  created_at: Time,
}).openapi("QueuedMessage");

/** The messages that wait in a conversation. */
export const QueueSchema = z.object({
  version: z.number().int().openapi({ description: "Grows with each change" }),
  items: z.array(Queued).openapi({ description: "In the order in which they are sent" }),
}).openapi("MessageQueue");

const tags = ["Conversations"];
const QueuedParams = IdParams.extend({ n: z.coerce.number().int().min(1) });

/** List. */
export const listQueueRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/queue",
  tags,
  summary: "List the messages that wait for the end of a reply",
  request: { params: IdParams },
  responses: { 200: json(QueueSchema, "The messages"), ...ERRORS },
});

/** Add. */
export const addQueuedRoute = createRoute({
  method: "post",
  path: "/api/conversations/{id}/queue",
  tags,
  summary: `Queue a message, at most ${MAX_QUEUED}: the server sends one after each reply that ends well; ` +
    "at once if none is running and the last one did. POST /api/chat with its IDs sends it now",
  request: {
    params: IdParams,
    body: jsonBody(z.object({
      message: NewMessage,
      assistant_message_id: Id.nullish(),
      names: Names.nullish(),
      time_zone: z.string().max(64).refine(isTimeZone, "it isn't the name of a time zone").nullish().openapi({
        description: "IANA time zone for dates and times in texts",
      }),
    })),
  },
  responses: { 201: json(Queued, "It waits, or is being sent"), ...ERRORS },
});

/** Change. */
export const changeQueuedRoute = createRoute({
  method: "patch",
  path: "/api/conversations/{id}/queue/{n}",
  tags,
  summary: "Change a message that waits, or its place",
  request: {
    params: QueuedParams,
    body: jsonBody(z.object({
      message: QueueMessage.optional().openapi({ description: "Replaces the message; its ID stays" }),
      names: Names.optional(),
      position: z.number().int().min(0).max(MAX_QUEUED - 1).optional().openapi({ description: "Its place, from 0" }),
    })),
  },
  responses: { 200: json(Queued, "The message"), ...ERRORS },
});

/** Remove. */
export const removeQueuedRoute = createRoute({
  method: "delete",
  path: "/api/conversations/{id}/queue/{n}",
  tags,
  summary: "Remove a message that waits; 404 if it was sent",
  request: { params: QueuedParams },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** The messages that wait in a conversation. */
export type MessageQueueJson = z.output<typeof QueueSchema>;

/** A message that waits. */
export type QueuedMessageJson = z.output<typeof Queued>;

/** A message to queue. */
export type NewQueuedMessageJson = z.input<
  typeof addQueuedRoute.request.body.content["application/json"]["schema"]
>;
