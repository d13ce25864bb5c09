/** Revisions of conversations on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, IdParams, IfMatch, json, Time } from "./common.ts";
import { ConversationAnswer } from "./conversations.ts";

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
const tags = ["Conversations"];

/** What can be restored. */
export const listRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/revisions",
  tags,
  summary: "List the revisions that can be restored, the newest first",
  request: { params: IdParams },
  responses: { 200: json(z.array(Revision), "At most 50, of the last 30 days"), ...ERRORS },
});

/** Compare one with the conversation now. */
export const compareRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/revisions/{n}",
  tags,
  summary: "Compare a revision with the conversation now",
  request: { params: RevisionParams },
  responses: { 200: json(RevisionDifference, "What restoring it would change; at most 200 messages"), ...ERRORS },
});

/** Bring one back. */
export const restoreRoute = createRoute({
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
