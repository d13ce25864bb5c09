/** Memories, proposed memories, and passages of other chats in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import {
  MAX_FOLDER,
  MAX_MEMORY_TEXT,
  type Memory,
  type MemoryScope,
  SCOPE_KINDS,
} from "../../services/memories/memory.ts";
import type { MemoryInput, MemoryVersion } from "../../services/memories/memories.ts";
import type { Proposal, ProposalDecision } from "../../services/memories/memory_proposals.ts";
import { ERRORS, Id, IdParams, IfMatch, json, jsonBody, Time, Unreadable } from "./common.ts";
import { SearchHitSchema } from "./chat/conversations.ts";
import { createRestoreVersionRoute, createVersionsRoute, VersionNumber } from "./versions.ts";
import { VERSION_CAUSES } from "../../services/storage/versions.ts";

const Scope = z.object({
  kind: z.enum(SCOPE_KINDS),
  id: z.string().min(1).max(MAX_FOLDER).optional().openapi({
    description: "ID of the character or persona, or name of the folder",
  }),
  persona_id: Id.optional().openapi({
    description: "For a character's memory: ID of the persona to which it is limited",
  }),
}).refine(({ kind, id }) => kind === "everything" ? id === undefined : id !== undefined, {
  message: "all scopes except everything require an id",
  path: ["id"],
}).refine(({ kind, id }) => kind === "folder" || id === undefined || Id.safeParse(id).success, {
  message: "an ID has 1 to 64 letters, digits, _ or -",
  path: ["id"],
}).refine(({ kind, persona_id }) => kind === "character" || persona_id === undefined, {
  message: "only a character's memory can also name a persona",
  path: ["persona_id"],
}).openapi("MemoryScope");

const Source = z.object({ conversation_id: Id, message_id: Id.optional() }).openapi("MemorySource", {
  description: "The message from which it was derived",
});
const Text = z.string().min(1).max(MAX_MEMORY_TEXT);

const MemoryResponse = z.object({
  id: Id,
  text: z.string(),
  scope: Scope,
  pinned: z.boolean().openapi({ description: "Sent before all others if not all memories fit" }),
  source: Source.optional(),
  created_at: Time,
  updated_at: Time,
  error: Unreadable.optional().openapi({ description: "True if the memory can't be read" }),
}).openapi("Memory");

const MemoryBody = z.object({
  text: Text.optional(),
  scope: Scope.optional(),
  pinned: z.boolean().optional(),
  source: Source.nullish(),
}).openapi("MemoryInput", { description: "Omitted fields keep their value; a new memory requires a text" });

const ProposalResponse = z.object({
  id: Id,
  text: z.string(),
  scope: Scope,
  source: Source.optional(),
  replaces: Id.optional().openapi({
    description: "The memory that it contradicts; accepting the proposal changes that memory",
  }),
  created_at: Time,
}).openapi("MemoryProposal");

const DecisionBody = z.object({
  decision: z.enum(["accept", "dismiss"]),
  text: Text.optional().openapi({ description: "Text to use instead of the proposed one" }),
  scope: Scope.optional().openapi({ description: "Scope to use instead of the proposed one" }),
});

const VersionResponse = z.object({
  n: z.number().int(),
  created_at: Time.openapi({ description: "When this version was replaced" }),
  cause: z.enum(VERSION_CAUSES),
  text: z.string(),
  scope: Scope,
  pinned: z.boolean(),
}).openapi("MemoryVersion");

const tags = ["Memory"];
const path = "/api/memories";

/** All, or those of one scope. */
export const listRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "List memories, newest first",
  request: {
    query: z.object({
      scope: z.enum(SCOPE_KINDS).optional(),
      id: z.string().max(MAX_FOLDER).optional().openapi({
        description: "ID of the character or persona, or name of the folder",
      }),
    }),
  },
  responses: { 200: json(z.array(MemoryResponse), "The memories"), ...ERRORS },
});

/** One. */
export const getRoute = createRoute({
  method: "get",
  path: `${path}/{id}`,
  tags,
  summary: "Get a memory",
  request: { params: IdParams },
  responses: { 200: json(MemoryResponse, "The memory; its ETag is its version"), ...ERRORS },
});

/** Create or change. */
export const putRoute = createRoute({
  method: "put",
  path: `${path}/{id}`,
  tags,
  summary: "Create or change a memory; the replaced state becomes a version",
  request: { params: IdParams, headers: IfMatch, body: jsonBody(MemoryBody) },
  responses: { 200: json(MemoryResponse, "Saved"), 201: json(MemoryResponse, "Created"), ...ERRORS },
});

/** Remove. */
export const deleteRoute = createRoute({
  method: "delete",
  path: `${path}/{id}`,
  tags,
  summary: "Move a memory to the trash",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Earlier versions. */
export const versionsRoute = createRoute({
  ...createVersionsRoute({
    path: `${path}/{id}`,
    what: "a memory",
    tags,
    params: IdParams,
    numbered: IdParams,
    response: MemoryResponse,
  }),
  responses: { 200: json(z.array(VersionResponse), "At most 50, from the last 30 days"), ...ERRORS },
});

/** Restore one. */
export const restoreVersionRoute = createRestoreVersionRoute({
  path: `${path}/{id}`,
  what: "a memory",
  tags,
  params: IdParams,
  numbered: IdParams.extend({ n: VersionNumber }),
  response: MemoryResponse,
});

/** Proposals. */
export const proposalsRoute = createRoute({
  method: "get",
  path: `${path}/proposals`,
  tags,
  summary: "List the proposed memories that are waiting for a decision, newest first",
  responses: { 200: json(z.array(ProposalResponse), "The proposals"), ...ERRORS },
});

/** Accept or dismiss. */
export const decideRoute = createRoute({
  method: "post",
  path: `${path}/proposals/{id}`,
  tags,
  summary:
    "Accept a proposed memory, with its own or another text, or dismiss it; dismissed memories aren't proposed again",
  request: { params: IdParams, body: jsonBody(DecisionBody) },
  responses: {
    200: json(MemoryResponse, "The memory of an accepted proposal"),
    204: { description: "Dismissed" },
    ...ERRORS,
  },
});

/** Passages of other chats. */
export const recallRoute = createRoute({
  method: "get",
  path: "/api/recall",
  tags,
  summary: "Find passages of other chats about a question, those with most of its words first",
  request: {
    query: z.object({
      q: z.string().openapi({ description: "A question in everyday words; 1 to 500 characters" }),
      conversation_id: Id.optional().openapi({ description: "ID of the asking chat, which isn't searched" }),
    }),
  },
  responses: {
    200: json(
      z.object({
        items: z.array(SearchHitSchema),
        next_cursor: z.null(),
        unreadable: z.array(Id).optional().openapi({ description: "Conversations that can't be searched completely" }),
      }),
      "At most 20 messages",
    ),
    ...ERRORS,
  },
});

/** Converts a request body to the type of the service. */
export function toMemoryInput({ text, scope, pinned, source }: z.infer<typeof MemoryBody>): MemoryInput {
  return {
    text,
    scope: scope && parseScope(scope),
    pinned,
    source: source && { conversationId: source.conversation_id, messageId: source.message_id },
  };
}

/** Converts a decision to the type of the service. */
export function toDecision({ decision, text, scope }: z.infer<typeof DecisionBody>): ProposalDecision {
  return { decision, text, scope: scope && parseScope(scope) };
}

/** Converts a memory to its JSON form. */
export function toMemoryJson({ id, fields, createdAtMs, updatedAtMs }: Memory): z.infer<typeof MemoryResponse> {
  return {
    id,
    text: fields?.text ?? "",
    scope: toScopeJson(fields?.scope ?? { kind: "everything" }),
    pinned: fields?.pinned ?? false,
    ...(fields?.source && { source: toSourceJson(fields.source) }),
    created_at: new Date(createdAtMs).toISOString(),
    updated_at: new Date(updatedAtMs).toISOString(),
    ...(fields === undefined && { error: { code: "unreadable" as const } }),
  };
}

/** Converts a proposal to its JSON form. */
export function toProposalJson(proposal: Proposal): z.infer<typeof ProposalResponse> {
  const { id, text, scope, source, replaces, createdAtMs } = proposal;
  return {
    id,
    text,
    scope: toScopeJson(scope),
    ...(source && { source: toSourceJson(source) }),
    ...(replaces && { replaces }),
    created_at: new Date(createdAtMs).toISOString(),
  };
}

/** Converts a version of a memory to its JSON form. */
export function toMemoryVersionJson({ n, createdAtMs, cause, fields }: MemoryVersion): z.infer<typeof VersionResponse> {
  const { text, scope, pinned } = fields;
  return { n, created_at: new Date(createdAtMs).toISOString(), cause, text, scope: toScopeJson(scope), pinned };
}

function parseScope({ kind, id, persona_id: personaId }: z.infer<typeof Scope>): MemoryScope {
  return { kind, ...(id !== undefined && { id }), ...(personaId !== undefined && { personaId }) };
}

function toScopeJson({ kind, id, personaId }: MemoryScope): z.infer<typeof Scope> {
  return { kind, ...(id !== undefined && { id }), ...(personaId !== undefined && { persona_id: personaId }) };
}

function toSourceJson({ conversationId, messageId }: NonNullable<NonNullable<Memory["fields"]>["source"]>) {
  return { conversation_id: conversationId, ...(messageId !== undefined && { message_id: messageId }) };
}

/** A memory. */
export type MemoryJson = z.output<typeof MemoryResponse>;

/** The body that saves a memory. */
export type MemoryInputJson = z.input<typeof MemoryBody>;

/** The chats that a memory is for. */
export type MemoryScopeJson = z.output<typeof Scope>;

/** A proposed memory. */
export type MemoryProposalJson = z.output<typeof ProposalResponse>;

/** An earlier version of a memory. */
export type MemoryVersionJson = z.output<typeof VersionResponse>;
