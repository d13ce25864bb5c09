/** Conversations on the wire. They are the client's documents: fields unknown here are kept. */
import { createRoute as route, z } from "@hono/zod-openapi";
import {
  ERRORS,
  Id,
  IdParams,
  IfMatch,
  json,
  jsonBody,
  longJsonBody,
  type NamedFields,
  Time,
  WithVariants,
} from "./common.ts";
import { Damaged, MessageAnswer, MessageInDocument, type MessageJson } from "./messages.ts";

const ConversationFields = z.looseObject({
  title: z.string().max(1000).nullish(),
  participants: z.array(
    z.looseObject({
      character_id: Id,
      muted: z.boolean().optional(),
      talkativeness: z.number().min(0).max(1).optional(),
    }),
  ).max(100).refine(
    (all) => new Set(all.map(({ character_id }) => character_id)).size === all.length,
    "a character takes part once",
  ).nullish(),
  reply_order: z.enum(["natural", "list", "manual"]).nullish().openapi({
    description: "Who speaks next of several: who is spoken of and likes to talk, one after another, or who is named",
  }),
  character_id: Id.nullish(),
  persona_id: z.string().nullish(),
  connection_id: z.string().nullish(),
  model: z.string().nullish(),
  system_prompt: z.string().nullish(),
  params: z.record(z.string(), z.unknown()).nullish(),
  note: z.looseObject({
    text: z.string(),
    depth: z.number().int().min(0).max(100_000).optional().openapi({ description: "Messages that stand behind it" }),
    role: z.enum(["system", "user", "assistant"]).optional(),
  }).nullish(),
  scenario: z.string().nullish().openapi({ description: "In the place of the card's" }),
  summary: z.looseObject({
    text: z.string(),
    up_to_message_id: Id.optional().openapi({ description: "The last message that it tells of" }),
  }).nullish().openapi({ description: "Goes out in the place of messages for which there is no room" }),
  lorebook_ids: z.array(Id).max(100).nullish(),
  preset_id: Id.nullish(),
  pinned: z.boolean().nullish(),
  folder: z.string().nullish(),
  created_at: Time.nullish(),
  draft: z.string().optional(),
  draft_version: z.number().int().optional(),
});

const ConversationBody = ConversationFields.extend({ messages: z.array(MessageInDocument) });

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
  damaged: Damaged,
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

const tags = ["Conversations"];

/** All conversations: whole, or summaries in pages. */
export const listRoute = route({
  method: "get",
  path: "/api/conversations",
  tags,
  summary: "List all conversations with their messages, or with view=summary one page of summaries",
  request: {
    query: z.object({
      view: z.enum(["full", "summary"]).default("full"),
      limit: z.coerce.number().int().min(1).max(500).default(100),
      cursor: z.string().optional(),
      variants: WithVariants,
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

const ConversationHeadAnswer = ConversationAnswer.omit({ messages: true }).extend({ message_count: z.number().int() })
  .openapi("ConversationHead");

const RecentConversationAnswer = ConversationHeadAnswer.extend({
  messages: z.array(MessageAnswer),
  next_cursor: z.string().nullable().openapi({ description: "Leads to the messages before these" }),
}).openapi("RecentConversation");

/** One conversation. */
export const getRoute = route({
  method: "get",
  path: "/api/conversations/{id}",
  tags,
  summary: "Fetch one conversation, with view=head without its messages, with view=recent with the last of them",
  request: {
    params: IdParams,
    query: z.object({
      view: z.enum(["full", "head", "recent"]).default("full"),
      limit: z.coerce.number().int().min(1).max(500).default(50).openapi({
        description: "Most messages of view=recent",
      }),
      variants: WithVariants,
    }),
  },
  responses: {
    200: json(
      z.union([ConversationAnswer, ConversationHeadAnswer, RecentConversationAnswer]),
      "The conversation; its ETag is its revision",
    ),
    ...ERRORS,
  },
});

/** Save, overwriting. */
export const putRoute = route({
  method: "put",
  path: "/api/conversations/{id}",
  tags,
  summary: "Save a conversation, overwriting",
  request: { params: IdParams, headers: IfMatch, body: longJsonBody(ConversationBody, "messages") },
  responses: { 200: json(ConversationAnswer, "Saved"), 201: json(ConversationAnswer, "Created"), ...ERRORS },
});

/** Begin. */
export const createRoute = route({
  method: "post",
  path: "/api/conversations",
  tags,
  summary: "Begin a conversation under an id of the server's",
  request: {
    body: jsonBody(z.object({
      character_ids: z.array(Id).max(100).nullish(),
      persona_id: Id.nullish(),
      greeting: z.number().int().min(0).nullish().openapi({
        description:
          "Which of the first character's greetings: 0 is first_mes, then alternate_greetings, with several " +
          "characters then group_only_greetings, the first of which is the one unless said",
      }),
    })),
  },
  responses: { 201: json(ConversationAnswer, "Created"), ...ERRORS },
});

/** Change fields. */
export const patchRoute = route({
  method: "patch",
  path: "/api/conversations/{id}",
  tags,
  summary: "Change any field of a conversation but its messages; null clears",
  request: {
    params: IdParams,
    headers: IfMatch,
    body: jsonBody(ConversationFields.extend({
      messages: z.unknown().refine((value) => value === undefined, "messages are changed one by one, or all by PUT")
        .optional(),
    })),
  },
  responses: { 200: json(ConversationHeadAnswer, "The conversation without its messages"), ...ERRORS },
});

/** Remove. */
export const deleteRoute = route({
  method: "delete",
  path: "/api/conversations/{id}",
  tags,
  summary: "Remove a conversation; a running reply in it is aborted",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Save the composer's draft. */
export const patchDraftRoute = route({
  method: "patch",
  path: "/api/conversations/{id}/draft",
  tags,
  summary: "Persist the composer draft",
  request: { params: IdParams, headers: IfMatch, body: jsonBody(z.object({ draft: z.string().nullable() })) },
  responses: { 204: { description: "Saved; the ETag is the draft's version" }, ...ERRORS },
});

/** A conversation with all its messages. */
export type ConversationJson = Omit<NamedFields<z.output<typeof ConversationAnswer>>, "messages"> & {
  messages: MessageJson[];
  forked_from?: ConversationHeadJson["forked_from"];
};

/** A conversation without its messages. */
export type ConversationHeadJson = NamedFields<z.output<typeof ConversationHeadAnswer>> & {
  forked_from?: { conversation_id: string; message_id: string };
};

/** A conversation with its last messages. */
export type RecentConversationJson = Omit<NamedFields<z.output<typeof RecentConversationAnswer>>, "messages"> & {
  messages: MessageJson[];
};

/** One line of the list of conversations. */
export type ConversationSummaryJson = z.output<typeof Summary>;

/** The fields of a conversation that a client changes; null clears. */
export type ConversationPatchJson = NamedFields<z.input<typeof ConversationFields>>;
