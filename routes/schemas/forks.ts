/** Forks of conversations on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, Id, IdParams, json, jsonBody, Time } from "./common.ts";
import { ConversationAnswer } from "./conversations.ts";

const Branch = z.object({
  conversation_id: Id,
  message_id: z.string().openapi({ description: "The message at which they part, by its id in the original" }),
  title: z.string(),
  updated_at: Time,
  message_count: z.number().int(),
}).openapi("Branch");
const Branches = z.object({ origin: Branch.nullable(), forks: z.array(Branch) }).openapi("Branches");
const tags = ["Conversations"];

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
