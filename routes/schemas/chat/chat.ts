/** Chat requests and the replies that the server stores, in the API. The frames of a stream are in chat_frames.ts. */
import { createRoute, z } from "@hono/zod-openapi";
import type { AnyChatRequest } from "../../../services/chat/chat_service.ts";
import { toSentJson } from "../../../services/chat/reply_saver.ts";
import type { ChatPreview } from "../../../services/chat/previews.ts";
import type { ChatMessage } from "../../../services/llm/chat_event.ts";
import type { LoreSource } from "../../../services/prompts/prompt.ts";
import type { Counted, PromptEntry } from "../../../services/prompts/prompt_messages.ts";
import { REASONING_EFFORTS } from "../../../services/llm/dialects/dialect.ts";
import { isTimeZone } from "../../../services/prompts/macros/macro_time.ts";
import { ERRORS, eventStream, Id, IdempotencyKey, json, jsonBody, Time } from "../common.ts";
import { MissedEntry } from "../lorebooks.ts";
import { DocumentUsesSchema, SentDocumentSchema } from "../documents.ts";
import { MessageResponse } from "./messages.ts";
import { ToolCallSchema } from "../tools.ts";

const RequestMessage = z.looseObject({
  role: z.string().min(1).max(32),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
  documents: DocumentUsesSchema.nullish(),
});

/** The chat request. Other fields pass through to the model: `top_k`, `min_p`, `max_tokens`, `seed`, `stop`, … */
const ChatBody = z.looseObject({
  model: z.string().min(1).nullish(),
  connection_id: Id.nullish().openapi({
    description: "The connection for this request; by default the conversation's, or else the active one",
  }),
  reasoning_effort: z.enum(REASONING_EFFORTS).nullish().openapi({
    description: "How much the model thinks; translated for each server; none turns thinking off",
  }),
  messages: z.array(RequestMessage).default([]).openapi({
    description: "The whole prompt; with context server only the new turn, or nothing",
  }),
  stream: z.boolean().nullish(),
  conversation_id: Id.nullish(),
  user_message_id: Id.nullish(),
  assistant_message_id: Id.nullish(),
  action: z.enum(["send", "edit", "regenerate", "continue", "impersonate"]).default("send").openapi({
    description:
      "edit adds a version to the user message user_message_id, with the text of the last of messages, and " +
      "replies to it; the earlier version keeps its following messages. " +
      "impersonate writes in the owner's name; neither the turn nor the text is stored",
  }),
  character_id: Id.nullish().openapi({ description: "Character that speaks, if several take part" }),
  next_speakers: z.array(Id).max(100).nullish().openapi({
    description: "In a group: the characters whose replies the client asks for after this one, if it is complete. " +
      "Queued messages wait for the last of them",
  }),
  time_zone: z.string().max(64).refine(isTimeZone, "it isn't the name of a time zone").nullish().openapi({
    description: "IANA time zone for dates and times in texts",
  }),
  context: z.enum(["client", "server"]).default("client").openapi({
    description: "Who assembles the prompt: the client, or the server from the stored conversation",
  }),
  temperature: z.number().min(0).max(100).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
}).refine(
  (body) =>
    body.action === "send" || body.action === "edit" || body.action === "impersonate" ||
    (typeof body.assistant_message_id === "string" && typeof body.conversation_id === "string"),
  {
    message: "regenerate and continue require the conversation and the message",
    path: ["assistant_message_id"],
  },
).refine(
  (body) =>
    body.action !== "edit" ||
    (typeof body.user_message_id === "string" && typeof body.conversation_id === "string"),
  { message: "edit requires the conversation and the user message", path: ["user_message_id"] },
).refine((body) => body.action !== "edit" || body.messages.at(-1)?.role === "user", {
  message: "the last message must be the new text of the user message",
  path: ["messages"],
}).refine((body) => body.action !== "impersonate" || typeof body.conversation_id === "string", {
  message: "impersonate requires the conversation",
  path: ["conversation_id"],
}).refine((body) => body.context === "server" || body.messages.length > 0, {
  message: "there is nothing to send",
  path: ["messages"],
}).refine((body) => body.context === "client" || typeof body.conversation_id === "string", {
  message: "context server requires a conversation_id",
  path: ["conversation_id"],
});

/** Fields that only Parlor uses. Model servers don't get them as sent; `stream_options` is set by Parlor itself. */
const OWN_FIELDS = new Set([
  ...[
    "model",
    "connection_id",
    "messages",
    "stream",
    "stream_options",
    "conversation_id",
    "user_message_id",
    "assistant_message_id",
  ],
  ...["action", "context", "time_zone", "character_id", "next_speakers"],
]);

/** Converts a parsed body to the type of the service; `conversationId` only if the request belongs to a conversation. */
export function toChatRequest(body: z.infer<typeof ChatBody>): AnyChatRequest {
  const params = Object.fromEntries(
    Object.entries(body).filter(([field, value]) => !OWN_FIELDS.has(field) && value !== null),
  );
  return {
    model: body.model ?? undefined,
    connectionId: body.connection_id ?? undefined,
    messages: body.messages.map((message) => ({ ...message, content: toContent(message) }) as ChatMessage),
    params,
    conversationId: body.conversation_id ?? undefined,
    userMessageId: body.user_message_id ?? undefined,
    assistantMessageId: body.assistant_message_id ?? undefined,
    action: body.action,
    usesTools: true,
    context: body.context,
    characterId: body.character_id ?? undefined,
    nextSpeakers: body.next_speakers ?? undefined,
    timeZone: body.time_zone ?? undefined,
  };
}

/** An assistant message that only calls tools has no text. Templates distinguish null from an empty text. */
function toContent({ role, content }: z.infer<typeof RequestMessage>) {
  return content ?? (role === "assistant" && content === null ? null : "");
}

/** Converts a preview to its JSON form. */
export function toPreviewJson({ route, context, params, prompt, dropped, preset, speakers, tools }: ChatPreview) {
  const { messages, parts, tokens, isExact, contextSize, replyTokens, budget, isTrimmed } = prompt;
  return {
    context,
    model: route.model,
    connection: route.connection,
    params,
    messages,
    parts: parts.map(toPartJson),
    preset: preset && { id: preset.id, name: preset.name },
    speakers,
    tokens,
    counted_by: isExact ? "server" as const : "estimate" as const,
    context_size: contextSize.tokens,
    context_size_assumed: contextSize.isAssumed,
    answer_tokens: replyTokens,
    fits: contextSize.isAssumed ? null : tokens <= budget,
    trimmed: isTrimmed,
    dropped: {
      count: dropped.count,
      last_message_id: dropped.lastMessageId,
      pieces: prompt.leftOut.map(toPieceJson),
      lorebook_entries: prompt.droppedLore.map(({ reason, key, ...entry }) => ({ ...toEntryJson(entry), reason, key })),
    },
    not_expanded: prompt.notExpanded,
    memories: prompt.memories.sent,
    memories_left_out: prompt.memories.leftOut,
    documents: prompt.documents.map(toSentJson),
    tools: tools.tools.map(({ name, tool: { serverId, serverName, name: toolName } }) => ({
      name,
      server_id: serverId,
      server_name: serverName,
      tool_name: toolName,
    })),
    tools_left_out: tools.leftOut,
  };
}

function toPartJson({ part, messageId, tokens, pieces }: PromptEntry) {
  return { part, message_id: messageId, tokens, pieces: pieces?.map(toPieceJson) };
}

function toPieceJson({ part, title, tokens, text, lore }: Counted) {
  return {
    part,
    title,
    tokens,
    text,
    entry: lore && { ...toEntryJson(lore), reason: lore.reason },
  };
}

function toEntryJson({ book, bookName, entry, title }: Omit<LoreSource, "reason">) {
  return { lorebook_id: book, lorebook_name: bookName, entry_id: entry, entry_name: title };
}

const Completion = z.looseObject({
  id: z.string(),
  object: z.literal("chat.completion"),
  created: z.number(),
  model: z.string(),
  choices: z.array(z.looseObject({})),
}).openapi("ChatCompletion");

const Entry = MissedEntry.omit({ reason: true, key: true }).extend({
  reason: z.object({ kind: z.string(), key: z.string().optional() }).openapi({
    description: "key, constant, sticky, recursion or decorator; and the key that matched",
  }),
}).openapi("PromptLore");

const Piece = z.object({
  part: z.string().openapi({ description: "main, persona, description, lorebook, examples, summary, note, …" }),
  title: z.string().optional(),
  tokens: z.number().int(),
  text: z.string(),
  entry: Entry.optional().openapi({ description: "The lorebook entry, and why it activated" }),
}).openapi("PromptPiece");

const NotExpanded = z.object({
  field: z.string().openapi({
    description: "A part of the prompt: main, description, examples, lorebook, preset, note, …; history for a message",
  }),
  source: z.string().optional().openapi({
    description: "Which one, if a prompt has several: a lorebook entry, a prompt of a preset, the ID of a message",
  }),
  reason: z.enum(["steps", "bytes", "depth", "variables", "unknown", "arguments"]).openapi({
    description:
      "Too many macros, too much text from macros, too deeply nested macros, or too many or too large variables: the field is sent unexpanded. unknown: Parlor doesn't have the macro; arguments: they don't fit the macro",
  }),
  macro: z.string().optional().openapi({ description: "Name of the macro, if only it isn't expanded" }),
}).openapi("PromptNotExpanded");

const Preview = z.object({
  context: z.enum(["client", "server"]),
  model: z.string(),
  connection: z.object({ id: z.string(), name: z.string() }),
  params: z.record(z.string(), z.unknown()),
  messages: z.array(z.looseObject({ role: z.string() })).openapi({
    description: "Exactly what would be sent, with images as URLs",
  }),
  parts: z.array(z.object({
    part: z.string().openapi({
      description: "system_prompt, history, or the kind of its first piece: note, lorebook, instructions, prefill, …",
    }),
    message_id: Id.optional(),
    tokens: z.number().int(),
    pieces: z.array(Piece).optional().openapi({ description: "The pieces of a message, in order" }),
  })).openapi({ description: "The source of each message" }),
  preset: z.object({ id: z.string(), name: z.string() }).optional(),
  speakers: z.array(z.string()).openapi({ description: "The characters that speak next, in order" }),
  tokens: z.number().int(),
  counted_by: z.enum(["server", "estimate"]),
  context_size: z.number().int(),
  context_size_assumed: z.boolean(),
  answer_tokens: z.number().int().openapi({ description: "Tokens reserved for the reply" }),
  fits: z.boolean().nullable().openapi({ description: "`null` if the context size is assumed" }),
  trimmed: z.boolean(),
  dropped: z.object({
    count: z.number().int(),
    last_message_id: Id.optional(),
    pieces: z.array(Piece).openapi({
      description: "Examples that don't fit, or a summary that isn't needed",
    }),
    lorebook_entries: z.array(MissedEntry).openapi({ description: "Entries that activated but aren't sent" }),
  }).openapi({ description: "Messages at the start of the conversation that don't fit, and other omitted parts" }),
  documents: z.array(SentDocumentSchema).openapi({ description: "The parts of each document that would be sent" }),
  memories: z.array(z.object({ id: Id, text: z.string(), tokens: z.number().int() })).openapi({
    description: "Memories that would be sent, in order",
  }),
  memories_left_out: z.array(Id).openapi({ description: "Memories that exceed the memories' share of the context" }),
  tools: z.array(z.object({ name: z.string(), server_id: z.string(), server_name: z.string(), tool_name: z.string() }))
    .openapi({ description: "Tools that would be offered; their definitions are in `params`" }),
  tools_left_out: z.array(z.object({ name: z.string(), reason: z.string() })).openapi({
    description: "Servers and tools that wouldn't be offered, and why",
  }),
  not_expanded: z.array(NotExpanded).openapi({
    description: "Fields whose macros exceed the budget of a prompt, and macros that aren't expanded",
  }),
}).openapi("ChatPreview");

const events = eventStream("A chat.completion.chunk in OpenAI's format; [DONE] is the last");
const tags = ["Chat"];
const ReplyParams = z.object({ mid: Id });
const ReplyQuery = z.object({
  conversation_id: Id.optional().openapi({
    description:
      "ID of the conversation with the message; needed only if several conversations have messages with this ID",
  }),
});

/** Chat. */
export const chatRoute = createRoute({
  method: "post",
  path: "/api/chat",
  tags,
  summary: "Send messages to a model; with conversation_id, the server stores the turn and the reply",
  request: { headers: IdempotencyKey, body: jsonBody(ChatBody) },
  responses: {
    200: {
      description: "The stream; with stream: false, one object in OpenAI's format",
      content: { ...events, "application/json": { schema: Completion } },
    },
    ...ERRORS,
  },
});

/** Preview. */
export const previewRoute = createRoute({
  method: "post",
  path: "/api/chat/preview",
  tags,
  summary:
    "Preview a chat request: what would be sent, its number of tokens, and what doesn't fit; nothing is sent or stored",
  request: { body: jsonBody(ChatBody) },
  responses: { 200: json(Preview, "What would be sent"), ...ERRORS },
});

const RunningReply = z.object({
  assistant_message_id: Id,
  conversation_id: Id,
  started_at: Time,
  connection_id: z.string().optional().openapi({ description: "Absent until the connection is chosen" }),
  status: z.enum(["streaming", "reattaching"]).openapi({
    description: "reattaching: after a restart, the model server is being asked for the rest",
  }),
  is_waiting: z.boolean().openapi({ description: "Whether it continues after its pending calls are decided" }),
  pending_calls: z.array(ToolCallSchema).openapi({ description: "Tool calls that are waiting for a decision" }),
});

/** Running replies. */
export const repliesRoute = createRoute({
  method: "get",
  path: "/api/chat/replies",
  tags,
  summary: "List the replies that are being generated",
  responses: {
    200: json(
      z.array(RunningReply),
      "Running replies",
    ),
    ...ERRORS,
  },
});

/** Follow a reply. */
export const followRoute = createRoute({
  method: "get",
  path: "/api/chat/replies/{mid}",
  tags,
  summary: "Follow a running or finished reply; Last-Event-ID continues exactly at that position",
  request: {
    params: ReplyParams,
    query: ReplyQuery,
    headers: z.object({ "last-event-id": z.string().max(200).optional() }),
  },
  responses: { 200: { description: "The stream", content: events }, ...ERRORS },
});

/** Stop a reply. */
export const stopRoute = createRoute({
  method: "post",
  path: "/api/chat/replies/{mid}/stop",
  tags,
  summary: "Stop a reply and keep its text so far",
  request: { params: ReplyParams, query: ReplyQuery },
  responses: { 202: json(MessageResponse, "The message"), ...ERRORS },
});

/** The body of a chat request. */
export type ChatRequestJson = z.input<typeof ChatBody>;

/** The preview of a chat request. */
export type ChatPreviewJson = Omit<z.output<typeof Preview>, "messages"> & { messages: ChatMessage[] };

/** One piece of a message in a prompt. */
export type PromptPieceJson = z.output<typeof Piece>;

/** A reply that is being generated. */
export type RunningReplyJson = z.output<typeof RunningReply>;
