/** Conversations, their revisions and forks, and search results. Unknown fields of a conversation are preserved. */
import { createRoute, z } from "@hono/zod-openapi";
import {
  AttachmentUrl,
  ERRORS,
  Id,
  IdempotencyKey,
  IdParams,
  IfMatch,
  json,
  jsonBody,
  longJsonBody,
  type NamedFields,
  Time,
  WithVariants,
} from "../common.ts";
import { DocumentUsesSchema } from "../documents.ts";
import { QueueSchema } from "./message_queue.ts";
import { Damaged, ImageSizes, MessageInDocument, type MessageJson, MessageResponse } from "./messages.ts";

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
    "each character may take part only once",
  ).nullish(),
  reply_order: z.enum(["natural", "list", "manual"]).nullish().openapi({
    description: "Who speaks next in a group: mentioned and talkative characters, all in turn, or only a named one",
  }),
  character_id: Id.nullish(),
  persona_id: z.string().nullish(),
  connection_id: z.string().nullish(),
  model: z.string().nullish(),
  system_prompt: z.string().nullish(),
  params: z.record(z.string(), z.unknown()).nullish(),
  note: z.looseObject({
    text: z.string(),
    depth: z.number().int().min(0).max(100_000).optional().openapi({
      description: "Number of messages after which it is inserted",
    }),
    role: z.enum(["system", "user", "assistant"]).optional(),
    position: z.enum(["in_chat", "before_main", "after_main"]).optional().openapi({
      description: "Before or after the main prompt instead of among the messages",
    }),
    interval: z.number().int().min(0).max(100_000).optional().openapi({
      description: "Sent with every so many messages of the user; 0 never sends it; 1 by default",
    }),
  }).nullish(),
  variables: z.record(z.string().max(1000), z.string().max(100_000)).nullish().openapi({
    description: "Macro variables that are set from the start, such as those of an imported chat",
  }),
  scenario: z.string().nullish().openapi({ description: "Used instead of the card's text" }),
  summary: z.looseObject({
    text: z.string(),
    up_to_message_id: Id.optional().openapi({ description: "ID of the last message that it covers" }),
  }).nullish().openapi({ description: "Sent instead of messages that don't fit; all chapters joined" }),
  chapters: z.array(z.looseObject({
    text: z.string().min(1).max(20_000),
    from_message_id: Id.optional().openapi({ description: "The first message that it covers" }),
    up_to_message_id: Id.openapi({ description: "The last message that it covers" }),
    edited: z.boolean().optional().openapi({ description: "Whether it is excluded from automatic rewriting" }),
  })).max(200).nullish().openapi({
    description:
      "The summary in parts. Changing them changes `summary`; a `summary` that a client changes replaces them",
  }),
  background: z.union([z.literal("none"), AttachmentUrl]).nullish().openapi({
    description: "Image behind the chat; none for no image; if absent, the image of the settings",
  }),
  learn: z.boolean().nullish().openapi({ description: "false: no memories are proposed from this chat" }),
  documents: DocumentUsesSchema.nullish().openapi({ description: "Documents that are always available in this chat" }),
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
const ConversationResponse = ConversationFields.extend({
  id: Id,
  title: z.string(),
  created_at: Time,
  updated_at: Time,
  revision: z.number().int(),
  draft: z.string(),
  draft_version: z.number().int(),
  messages: z.array(MessageResponse),
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
  unread: z.boolean().openapi({
    description: "Whether a reply ended that no client was following, and that hasn't been read since",
  }),
  snippet: z.string(),
  last_message_at: Time.openapi({ description: "When the last message was made; without messages, the conversation" }),
  character_ids: z.array(z.string()),
  pinned: z.boolean().optional(),
  folder: z.string().optional(),
  is_branch: z.boolean().optional().openapi({ description: "Copied from another conversation" }),
  has_greeting_title: z.boolean().optional().openapi({
    description: "Whether the title is only the beginning of the character's greeting",
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
      z.union([
        z.array(ConversationResponse),
        z.object({ items: z.array(Summary), next_cursor: z.string().nullable() }),
      ]),
      "An array of conversations, or a page of summaries",
    ),
    ...ERRORS,
  },
});

const ConversationHeadResponse = ConversationResponse.omit({ messages: true }).extend({
  message_count: z.number().int(),
})
  .openapi("ConversationHead");

const RecentConversationResponse = ConversationHeadResponse.extend({
  messages: z.array(MessageResponse),
  next_cursor: z.string().nullable().openapi({ description: "Cursor of the messages before these" }),
  image_sizes: ImageSizes,
  queue: QueueSchema.optional().openapi({
    description: "Messages that wait for the end of a reply; absent if there never were any",
  }),
}).openapi("RecentConversation");

/** One conversation. */
export const getRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}",
  tags,
  summary: "Get a conversation; with view=head without its messages, with view=recent with the last ones",
  request: {
    params: IdParams,
    query: z.object({
      view: z.enum(["full", "head", "recent"]).default("full"),
      limit: z.coerce.number().int().min(1).max(500).default(50).openapi({
        description: "Maximum number of messages with view=recent",
      }),
      variants: WithVariants,
    }),
  },
  responses: {
    200: json(
      z.union([ConversationResponse, ConversationHeadResponse, RecentConversationResponse]),
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
  responses: { 200: json(ConversationResponse, "Saved"), 201: json(ConversationResponse, "Created"), ...ERRORS },
});

/** Create. */
export const createConversationRoute = createRoute({
  method: "post",
  path: "/api/conversations",
  tags,
  summary: "Create a conversation with an ID that the server assigns",
  request: {
    headers: IdempotencyKey,
    body: jsonBody(z.object({
      character_ids: z.array(Id).max(100).nullish(),
      persona_id: Id.nullish().openapi({
        description: "By default the persona of the only character, or else the default persona; null for none",
      }),
      greeting: z.number().int().min(0).nullish().openapi({
        description:
          "Index of the first character's greeting: 0 is first_mes, then alternate_greetings; with several " +
          "characters, also group_only_greetings, the first of which is the default",
      }),
    })),
  },
  responses: { 201: json(ConversationResponse, "Created"), ...ERRORS },
});

/** Change fields. */
export const patchRoute = createRoute({
  method: "patch",
  path: "/api/conversations/{id}",
  tags,
  summary: "Change fields of a conversation other than its messages; null clears a field",
  request: {
    params: IdParams,
    headers: IfMatch,
    body: jsonBody(ConversationFields.extend({
      messages: z.unknown().refine((value) => value === undefined, "messages must be changed one by one, or all by PUT")
        .optional(),
    })),
  },
  responses: { 200: json(ConversationHeadResponse, "The conversation without its messages"), ...ERRORS },
});

/** Remove. */
export const deleteRoute = createRoute({
  method: "delete",
  path: "/api/conversations/{id}",
  tags,
  summary: "Delete a conversation; a running reply in it is aborted",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Save the composer's draft. */
export const patchDraftRoute = createRoute({
  method: "patch",
  path: "/api/conversations/{id}/draft",
  tags,
  summary: "Save the draft in the composer",
  request: { params: IdParams, headers: IfMatch, body: jsonBody(z.object({ draft: z.string().nullable() })) },
  responses: { 204: { description: "Saved; the ETag is the draft's version" }, ...ERRORS },
});

/** Marks the chat as read. */
export const readRoute = createRoute({
  method: "post",
  path: "/api/conversations/{id}/read",
  tags,
  summary: "Mark a conversation as read",
  request: { params: IdParams },
  responses: { 204: { description: "No reply is unread" }, ...ERRORS },
});

/** A conversation with all its messages. */
export type ConversationJson = Omit<NamedFields<z.output<typeof ConversationResponse>>, "messages"> & {
  messages: MessageJson[];
  forked_from?: ConversationHeadJson["forked_from"];
};

/** A conversation without its messages. */
export type ConversationHeadJson = NamedFields<z.output<typeof ConversationHeadResponse>> & {
  forked_from?: { conversation_id: string; message_id: string };
};

/** A conversation with its last messages. */
export type RecentConversationJson = Omit<NamedFields<z.output<typeof RecentConversationResponse>>, "messages"> & {
  messages: MessageJson[];
};

/** One line of the list of conversations. */
export type ConversationSummaryJson = z.output<typeof Summary>;

/** The fields of a conversation that a client can change; null clears a field. */
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
    change: z.enum(["changed", "removed", "added"]).openapi({ description: "What has happened to it since" }),
    before: z.string().optional().openapi({ description: "Its text in the earlier version" }),
    after: z.string().optional().openapi({ description: "Its text now" }),
  })),
  more: z.number().int().openapi({ description: "How many more messages differ" }),
}).openapi("RevisionDifference");

/** Revisions. */
export const listRevisionsRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/revisions",
  tags,
  summary: "List the revisions that can be restored, newest first",
  request: { params: IdParams },
  responses: { 200: json(z.array(Revision), "At most 50, from the last 30 days"), ...ERRORS },
});

/** Compare a revision with the current state. */
export const compareRevisionRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/revisions/{n}",
  tags,
  summary: "Compare a revision with the current state of the conversation",
  request: { params: RevisionParams },
  responses: {
    200: json(RevisionDifference, "The changes that restoring would make; at most 200 messages"),
    ...ERRORS,
  },
});

/** Restore a revision. */
export const restoreRevisionRoute = createRoute({
  method: "post",
  path: "/api/conversations/{id}/revisions/{n}/restore",
  tags,
  summary: "Restore what a change replaced: the conversation, or for changes of messages only those",
  request: { params: RevisionParams, headers: IfMatch },
  responses: { 200: json(ConversationResponse, "The conversation"), ...ERRORS },
});

/** An earlier version of a conversation. */
export type RevisionJson = z.output<typeof Revision>;

/** How an earlier version differs from the current state of the conversation. */
export type RevisionDiffJson = z.output<typeof RevisionDifference>;

const Branch = z.object({
  conversation_id: Id,
  message_id: z.string().openapi({ description: "ID of the message at which they diverge, in the original" }),
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
  summary: "Copy a conversation up to and including a message, with new IDs",
  request: { params: IdParams, headers: IdempotencyKey, body: jsonBody(z.object({ message_id: Id })) },
  responses: { 201: json(ConversationResponse, "The copy; forked_from refers to its original"), ...ERRORS },
});

/** Copies. */
export const branchesRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/branches",
  tags,
  summary: "Get the original and the copies of a conversation",
  request: { params: IdParams },
  responses: {
    200: json(
      Branches,
      "Only existing conversations; the most recently changed copies first",
    ),
    ...ERRORS,
  },
});

/** The conversation from which another was copied, and its copies. */
export type BranchesJson = z.output<typeof Branches>;

/** A search result. */
export const SearchHitSchema = z.object({
  conversation_id: Id,
  message_id: Id.nullable().openapi({ description: "null if the title matches" }),
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
  items: z.array(z.union([SearchHitSchema, DocumentHit])).openapi({
    description: "Document results come after those of all conversations",
  }),
  next_cursor: z.string().nullable().openapi({ description: "null after everything has been searched" }),
  unreadable: z.array(Id).optional().openapi({
    description: "Conversations with unreadable parts, which weren't searched",
  }),
}).openapi("SearchPage");

const SearchTime = z.iso.datetime({ offset: true });

/** `GET /api/search` */
export const searchRoute = createRoute({
  method: "get",
  path: "/api/search",
  tags: ["Search"],
  summary: "Find messages, titles and pages of documents that contain all words of a query; newest conversations first",
  request: {
    query: z.object({
      q: z.string().openapi({ description: 'Words and "quoted phrases"; 1 to 500 characters' }),
      conversation_id: Id.optional(),
      character_id: Id.optional(),
      role: z.enum(["user", "assistant", "system"]).optional().openapi({ description: "Only messages with this role" }),
      since: SearchTime.optional().openapi({ description: "Only messages made at this time or later" }),
      until: SearchTime.optional().openapi({ description: "Only messages made before this time" }),
      cursor: z.string().optional(),
    }),
  },
  responses: { 200: json(SearchPage, "At most 20 results; even a shorter page may have a next one"), ...ERRORS },
});

/** A search result. */
export type SearchHitJson = z.output<typeof SearchHitSchema>;

/** A page of a document in the search results. */
export type DocumentHitJson = z.output<typeof DocumentHit>;
