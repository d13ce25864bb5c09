/** The messages of the API: their fields, and creating one from a client's input. */
import { isDeepStrictEqual } from "node:util";
import type { UpstreamFailure } from "../errors.ts";
import type { ContentPart, Usage } from "../llm/chat_event.ts";
import type { LeftOutField } from "../llm/provider.ts";
import type { Source } from "../llm/sources.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import type { ConversationHead } from "./conversation.ts";

/** Status of a message. Only `streaming` changes without a request. */
export type MessageStatus = "complete" | "streaming" | "stopped" | "failed" | "interrupted";

/** Text, or OpenAI content parts (`{type: "text", text}`, `{type: "image_url", image_url}`, …). */
export type MessageContent = string | ContentPart[];

/** Why a reply failed. */
export interface MessageError {
  code: string;
  message: string;
  /** The failed call, if the model server failed. */
  upstream?: UpstreamFailure;
}

/** One message. Fields that the API doesn't know belong to the client and are stored. */
export interface Message {
  id: string;
  role: string;
  content: MessageContent;
  reasoning?: string;
  /** ISO 8601, UTC. */
  created_at: string;
  updated_at: string;
  model?: string;
  status: MessageStatus;
  error?: MessageError;
  usage?: Usage;
  /** The connection that answered. */
  connection_id?: string;
  /** Same values as in OpenAI's API. */
  finish_reason?: string;
  /** The token limit of the reply, if one was sent. */
  output_limit?: number;
  /** Fields that weren't sent because the server rejects them. */
  left_out?: LeftOutField[];
  /** With tool calls: blocks of reasoning that must be sent back to the server with the tool results. */
  reasoning_details?: unknown[];
  /** The sources that the model or its server named. */
  sources?: Source[];
  /** The tool calls of an assistant message. */
  tool_calls?: unknown[];
  /** The call that a message of the role `tool` has the result of. */
  tool_call_id?: string;
  /** In the earlier messages of a reply with tools: the ID of its last message. */
  reply_id?: string;
  /**
   * The messages before it that have its ID as `reply_id`; not stored in the message. Code that switches, rewrites or
   * removes a reply treats them as part of it; see `BlockStore.editReply`.
   */
  tool_rounds?: Message[];
  /** Whether the text was cut by a restart and continued with another call. */
  continued_after_restart?: true;
  /** How the prompt of the reply filled the context. */
  context_use?: Record<string, unknown>;
  /** True if the reasoning was streamed as text, because it had only a closing tag. */
  split_reasoning?: boolean;
  /** Number of versions, including the active one in `content`. */
  variant_count: number;
  /** Number of the active version, from 0. */
  active_variant: number;
  [field: string]: unknown;
}

/** Fields that belong to one version of a reply, besides its content, model, status and time: each version has its own. */
export const REPLY_FIELDS = [
  ...["reasoning", "error", "usage", "timings", "finish_reason", "tool_calls", "output_limit", "left_out"] as const,
  ...["lorebook_state", "documents", "memories", "connection_id"] as const,
  ...["split_reasoning", "reasoning_details", "sources", "context_use", "continued_after_restart"] as const,
  // Tool rounds belong to the version that they led to.
  "tool_rounds",
] as const;

/** Returns a message without the fields of its reply. */
export function withoutReply(message: Message): Message {
  const rest = { ...message };
  for (const field of REPLY_FIELDS) delete rest[field];
  return rest;
}

/** A message as a client sends it. */
export interface MessageInput {
  id?: string;
  role?: string;
  content?: MessageContent | null;
  [field: string]: unknown;
}

const STATUSES: readonly unknown[] = ["complete", "streaming", "stopped", "failed", "interrupted"];

/**
 * Creates a message from a client's input.
 *
 * @param stored The stored message of the same id. Its versions stay.
 * @param now ISO 8601, UTC.
 */
export function completeMessage(input: MessageInput, id: string, now: string, stored?: Message): Message {
  const status = STATUSES.includes(input.status) && input.status !== "streaming"
    ? input.status as MessageStatus
    : "complete";
  // In the order of `toStoredOrder`, without copying: a conversation can have thousands of messages.
  const message = { id, role: input.role ?? "user", content: input.content ?? "" } as Message;
  for (const field in input) {
    const value = input[field];
    if (value !== null && value !== undefined && !SEPARATE_FIELDS.has(field)) message[field] = value;
  }
  message.created_at = parseTime(input.created_at, stored?.created_at) ?? stored?.created_at ?? now;
  message.updated_at = parseTime(input.updated_at, stored?.updated_at) ?? now;
  message.status = status;
  message.variant_count = stored?.variant_count ?? 1;
  message.active_variant = stored?.active_variant ?? 0;
  return message;
}

/** Fields that aren't copied from the input: those set above or below, and the versions, which are stored elsewhere. */
const SEPARATE_FIELDS = new Set([
  "id",
  "role",
  "content",
  "created_at",
  "updated_at",
  "status",
  "variant_count",
  "active_variant",
  "variants",
  "tool_rounds",
]);

/**
 * Returns the message with its fields in the order in which they are stored. A message that a client sends back unchanged
 * then has the same JSON, and its block isn't rewritten.
 */
export function toStoredOrder(message: Message): Message {
  const { id, role, content, created_at, updated_at, status, variant_count, active_variant, ...rest } = message;
  return { id, role, content, ...rest, created_at, updated_at, status, variant_count, active_variant };
}

/** Returns whether two messages have the same JSON, without writing it. */
export function hasSameJson(one: Message, other: Message): boolean {
  const fields = Object.keys(other);
  let index = 0;
  for (const field in one) {
    if (fields[index++] !== field) return false;
    const [value, otherValue] = [one[field], other[field]];
    if (value === otherValue) continue;
    if (typeof value !== "object" || JSON.stringify(value) !== JSON.stringify(otherValue)) return false;
  }
  return index === fields.length;
}

/** Returns whether a reply failed without any text, so that sending the request again retries it. */
export function isEmptyFailure({ status, content, reasoning }: Message): boolean {
  return status === "failed" && content === "" && reasoning === undefined;
}

/** Returns whether a reply ended without any text. */
export function isEmptyAttempt({ status, content, reasoning, tool_rounds }: Message): boolean {
  return status !== "complete" && content === "" && reasoning === undefined && tool_rounds === undefined;
}

/** Returns the text of a reply without its reasoning. */
export function getReplyText({ content }: { content?: MessageContent }): string {
  return getContentText(content);
}

/** Returns whether two contents are equal. Plain text equals a single text part. */
export function isSameContent(one: MessageContent, other: MessageContent): boolean {
  return isDeepStrictEqual(toParts(one), toParts(other));
}

function toParts(content: MessageContent): ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** Returns the object without fields that are null. In requests null clears an optional field. */
export function withoutNulls<T extends object>(object: T): T {
  const copy = { ...object };
  for (const field in copy) {
    if (copy[field] === null || copy[field] === undefined) delete copy[field];
  }
  return copy;
}

/** Returns the text of a content without images and other parts. */
export function getContentText(content: MessageContent | null | undefined): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => typeof part.text === "string" ? part.text : "").filter((text) => text !== "")
    .join("\n");
}

/** Normalizes a time from a client. Most are unchanged and needn't be parsed. */
function parseTime(value: unknown, stored: string | undefined): string | undefined {
  return value === stored ? stored : parseIsoTime(value);
}

const CANONICAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Returns a time in the API's format; `undefined` for an invalid one. */
export function parseIsoTime(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  if (CANONICAL_TIME.test(value) && !Number.isNaN(Date.parse(value))) return value;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

// Pinned messages stay in the prompt when the history is trimmed. Their IDs are in the head, so that a prompt finds
// them without reading the whole conversation.

/** Maximum number of pinned messages in the prompt; further ones aren't sent. */
const MAX_PINNED = 100;

/** Returns the IDs of pinned messages, in order. */
export function listPinnedIds(messages: readonly { id: string; pinned?: unknown }[]): string[] {
  return messages.filter(({ pinned }) => pinned === true).map(({ id }) => id);
}

/** Returns the IDs of pinned messages in a head. Some may be gone or off the active path. */
export function readPinnedIds({ pinned_message_ids: ids }: ConversationHead): string[] {
  return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
}

/** Returns a head with these pinned messages. */
export function withPins(head: ConversationHead, ids: readonly string[]): ConversationHead {
  const { pinned_message_ids: _, ...rest } = head;
  return (ids.length === 0 ? rest : { ...rest, pinned_message_ids: ids.slice(0, MAX_PINNED) }) as ConversationHead;
}

/**
 * Returns the head after a message was added, changed or removed. A deleted message stays listed, in case it's
 * restored.
 */
export function withPin(
  head: ConversationHead,
  before: Message | undefined,
  after: Message | undefined,
): ConversationHead {
  const isPinned = after?.pinned === true;
  if (after === undefined || (before?.pinned === true) === isPinned) return head;
  const others = readPinnedIds(head).filter((id) => id !== after.id);
  return withPins(head, isPinned ? [...others, after.id] : others);
}

/** Reads the pinned messages on the active path, oldest first. Skips unreadable ones. */
export function readPinnedMessages(blocks: BlockStore, id: string, head: ConversationHead): Message[] {
  const { path } = blocks.getTree(id);
  const found = readPinnedIds(head).flatMap((mid) => {
    const row = blocks.findRow(id, mid);
    const messages = row === undefined ? [] : blocks.findReadableMessages(id, row) ?? [];
    const index = messages.findIndex((message) => message.id === mid);
    const message = messages[index];
    if (row === undefined || message?.pinned !== true || message.hidden === true) return [];
    return [{ message, index, position: row.position, range: blocks.getTree(id).findRangeIndex(row) ?? path.length }];
  });
  found.sort((a, b) => a.range - b.range || a.position - b.position || a.index - b.index);
  return found.map(({ message }) => message);
}
