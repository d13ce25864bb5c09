/**
 * Conversations, their revisions and forks, and what the search finds. Unknown fields of a conversation are preserved.
 */
import { createRoute, z } from "@hono/zod-openapi";
import {
  AttachmentUrl,
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
} from "../common.ts";
import { DocumentUses } from "../documents.ts";
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
    up_to_message_id: Id.optional().openapi({ description: "The last message that it covers" }),
  }).nullish().openapi({ description: "Sent instead of messages that don't fit; all chapters joined" }),
  chapters: z.array(z.looseObject({
    text: z.string().min(1).max(20_000),
    from_message_id: Id.optional().openapi({ description: "The first message that it covers" }),
    up_to_message_id: Id.openapi({ description: "The last message that it covers" }),
    edited: z.boolean().optional().openapi({ description: "It isn't written again by itself" }),
  })).max(200).nullish().openapi({
    description: "The summary in parts. Changing them changes `summary`; a summary that a client changes replaces them",
  }),
  background: z.union([z.literal("none"), AttachmentUrl]).nullish().openapi({
    description: "Image behind the chat; none: no image; absent: the one of the settings",
  }),
  learn: z.boolean().nullish().openapi({ description: "false: this chat isn't read for notes" }),
  documents: DocumentUses.nullish().openapi({ description: "Documents that are always at hand in this chat" }),
  lorebook_ids: z.array(Id).max(100).nullish(),
  preset_id: Id.nullish(),
  pinned: z.boolean().nullish(),
  folder: z.string().nullish(),
  tools: z.boolean().nullish().openapi({ description: "false turns all tools off in this chat" }),
  created_at: Time.nullish(),
  draft: z.string().optional(),
  draft_version: z.number().int().optional(),
});

const ConversationBody = ConversationFields.extend({ messages: z.array(MessageInDocument) });

/** A conversation with all its messages. */
const ConversationAnswer = ConversationFields.extend({
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
  is_branch: z.boolean().optional().openapi({ description: "Copied from another conversation" }),
  has_greeting_title: z.boolean().optional().openapi({
    description: "The title is only the beginning of the character's greeting",
  }),
}).openapi("ConversationSummary");

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
export const getRoute = createRoute({
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
export const putRoute = createRoute({
  method: "put",
  path: "/api/conversations/{id}",
  tags,
  summary: "Save a conversation, overwriting",
  request: { params: IdParams, headers: IfMatch, body: longJsonBody(ConversationBody, "messages") },
  responses: { 200: json(ConversationAnswer, "Saved"), 201: json(ConversationAnswer, "Created"), ...ERRORS },
});

/** Begin. */
export const createConversationRoute = createRoute({
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
export const patchRoute = createRoute({
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

const Revision = z.object({
  n: z.number().int().openapi({ description: "The revision that was replaced" }),
  created_at: Time,
  cause: z.enum(["put", "patch", "message_patch", "message_delete", "restore"]),
  message_count: z.number().int(),
}).openapi("Revision");
const RevisionParams = IdParams.extend({ n: z.coerce.number().int().min(1) });
const RevisionDifference = Revision.extend({
  fields: z.array(z.string()).openapi({ description: "Names of the conversation's fields that differ" }),
  messages: z.array(z.object({
    id: z.string(),
    role: z.string(),
    change: z.enum(["changed", "removed", "added"]).openapi({ description: "What happened to it since" }),
    before: z.string().optional().openapi({ description: "Its text in the earlier version" }),
    after: z.string().optional().openapi({ description: "Its text now" }),
  })),
  more: z.number().int().openapi({ description: "How many more messages differ" }),
}).openapi("RevisionDifference");

/** What can be restored. */
export const listRevisionsRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/revisions",
  tags,
  summary: "List the revisions that can be restored, the newest first",
  request: { params: IdParams },
  responses: { 200: json(z.array(Revision), "At most 50, of the last 30 days"), ...ERRORS },
});

/** Compare one with the conversation now. */
export const compareRevisionRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/revisions/{n}",
  tags,
  summary: "Compare a revision with the conversation now",
  request: { params: RevisionParams },
  responses: { 200: json(RevisionDifference, "What restoring it would change; at most 200 messages"), ...ERRORS },
});

/** Bring one back. */
export const restoreRevisionRoute = createRoute({
  method: "post",
  path: "/api/conversations/{id}/revisions/{n}/restore",
  tags,
  summary: "Bring back what a change replaced: the conversation, or for a change of messages those alone",
  request: { params: RevisionParams, headers: IfMatch },
  responses: { 200: json(ConversationAnswer, "The conversation"), ...ERRORS },
});

/** An earlier version of a conversation. */
export type RevisionJson = z.output<typeof Revision>;

/** How an earlier version differs from the conversation now. */
export type RevisionDiffJson = z.output<typeof RevisionDifference>;

const Branch = z.object({
  conversation_id: Id,
  message_id: z.string().openapi({ description: "The message at which they part, by its id in the original" }),
  title: z.string(),
  updated_at: Time,
  message_count: z.number().int(),
}).openapi("Branch");
const Branches = z.object({ origin: Branch.nullable(), forks: z.array(Branch) }).openapi("Branches");

/** Copy up to a message. */
export const forkRoute = createRoute({
  method: "post",
  path: "/api/conversations/{id}/fork",
  tags,
  summary: "Copy a conversation up to and with a message, under new ids",
  request: { params: IdParams, body: jsonBody(z.object({ message_id: Id })) },
  responses: { 201: json(ConversationAnswer, "The copy; forked_from names its origin"), ...ERRORS },
});

/** Who is a copy of whom. */
export const branchesRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/branches",
  tags,
  summary: "Name the origin and the copies of a conversation",
  request: { params: IdParams },
  responses: {
    200: json(
      Branches,
      "Only those that are there; copies changed last first",
    ),
    ...ERRORS,
  },
});

/** The conversation that another was copied from, and the copies of it. */
export type BranchesJson = z.output<typeof Branches>;

/** A place that a search found. */
export const SearchHit = z.object({
  conversation_id: Id,
  message_id: Id.nullable().openapi({ description: "null where the title was found" }),
  title: z.string(),
  role: z.string().nullable(),
  snippet: z.string().openapi({ description: "The text around the hit" }),
  created_at: Time,
}).openapi("SearchHit");

const DocumentHit = z.object({
  document_id: Id,
  page: z.number().int(),
  title: z.string().openapi({ description: "Name of the document" }),
  snippet: z.string(),
  created_at: Time,
}).openapi("DocumentHit");

const SearchPage = z.object({
  items: z.array(z.union([SearchHit, DocumentHit])).openapi({ description: "Documents come after all conversations" }),
  next_cursor: z.string().nullable().openapi({ description: "null when everything has been searched" }),
  unreadable: z.array(Id).optional().openapi({
    description: "Conversations of which something can't be read, and wasn't searched",
  }),
}).openapi("SearchPage");

/** `GET /api/search` */
export const searchRoute = createRoute({
  method: "get",
  path: "/api/search",
  tags: ["Search"],
  summary: "Find messages, titles and pages of documents that hold all words of a query, newest conversations first",
  request: {
    query: z.object({
      q: z.string().openapi({ description: 'Words, and "quoted phrases" as a whole; 1 to 500 characters' }),
      conversation_id: Id.optional(),
      character_id: Id.optional(),
      cursor: z.string().optional(),
    }),
  },
  responses: { 200: json(SearchPage, "At most 20 hits; a page may be short and still have a next one"), ...ERRORS },
});

/** A place that a search found. */
export type SearchHitJson = z.output<typeof SearchHit>;

/** A page of a document that a search found. */
export type DocumentHitJson = z.output<typeof DocumentHit>;
