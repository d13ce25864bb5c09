/** A message of a conversation as the API shows it, and how one comes into being. */
import { isDeepStrictEqual } from "node:util";
import type { ContentPart, Usage } from "../llm/chat_event.ts";

/** How a message stands; only `streaming` changes without a request. */
export type MessageStatus = "complete" | "streaming" | "stopped" | "failed" | "interrupted";

/** Text, or OpenAI content parts (`{type: "text", text}`, `{type: "image_url", image_url}`, …). */
export type MessageContent = string | ContentPart[];

/** One message. Fields the API does not know are the client's and kept. */
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
  error?: { code: string; message: string };
  usage?: Usage;
  /** Number of stored texts for this place; the one in `content` counts. */
  variant_count: number;
  /** From 0. */
  active_variant: number;
  [field: string]: unknown;
}

/** What a client may hand in for a message: everything but the content may be missing. */
export interface MessageInput {
  id?: string;
  role?: string;
  content?: MessageContent | null;
  [field: string]: unknown;
}

const STATUSES: readonly unknown[] = ["complete", "streaming", "stopped", "failed", "interrupted"];

/**
 * Makes a whole message of what a client sent.
 *
 * @param stored The message of the same id as it stands, whose variants the client cannot change this way.
 * @param now ISO 8601, UTC.
 */
export function completeMessage(input: MessageInput, id: string, now: string, stored?: Message): Message {
  const status = STATUSES.includes(input.status) && input.status !== "streaming"
    ? input.status as MessageStatus
    : "complete";
  // As `inOrder` has it, without the copies: a document has thousands of these.
  const message = { id, role: input.role ?? "user", content: input.content ?? "" } as Message;
  for (const field in input) {
    const value = input[field];
    if (value !== null && value !== undefined && !SET_APART.has(field)) message[field] = value;
  }
  message.created_at = timeOf(input.created_at, stored?.created_at) ?? stored?.created_at ?? now;
  message.updated_at = timeOf(input.updated_at, stored?.updated_at) ?? now;
  message.status = status;
  message.variant_count = stored?.variant_count ?? 1;
  message.active_variant = stored?.active_variant ?? 0;
  return message;
}

/** Fields that a message has whatever a client says of them, and its texts, which lie elsewhere. */
const SET_APART = new Set([
  ...["id", "role", "content", "created_at", "updated_at", "status", "variant_count", "active_variant", "variants"],
]);

/**
 * Gives the message with its fields in the one order in which they are stored: one that a client sends back as it got it
 * has the same text then, and its block need not be written.
 */
export function inOrder(message: Message): Message {
  const { id, role, content, created_at, updated_at, status, variant_count, active_variant, ...rest } = message;
  return { id, role, content, ...rest, created_at, updated_at, status, variant_count, active_variant };
}

/** A reply that failed before its first word: to send again means to try again. */
export function isEmptyFailure({ status, content, reasoning }: Message): boolean {
  return status === "failed" && content === "" && reasoning === undefined;
}

/** A reply that ended before its first word, however it ended. */
export function isEmptyAttempt({ status, content, reasoning }: Message): boolean {
  return status !== "complete" && content === "" && reasoning === undefined;
}

/** Gives the text that a reply has written, without its reasoning. */
export function replyText({ content }: { content?: MessageContent }): string {
  return textOfContent(content);
}

/** Says whether two contents say the same: plain text is the same as one text part. */
export function isSameContent(one: MessageContent, other: MessageContent): boolean {
  return isDeepStrictEqual(partsOf(one), partsOf(other));
}

function partsOf(content: MessageContent): ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** Gives the object without its members that are null: on the wire null clears an optional field. */
export function withoutNulls<T extends object>(object: T): T {
  const copy = { ...object };
  for (const field in copy) {
    if (copy[field] === null || copy[field] === undefined) delete copy[field];
  }
  return copy;
}

/** Gives the text of any content, image and other parts left out. */
export function textOfContent(content: MessageContent | null | undefined): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => typeof part.text === "string" ? part.text : "").filter((text) => text !== "")
    .join("\n");
}

/** A page that saves a conversation sends back nearly every time as it is stored: that one needs no parsing. */
function timeOf(value: unknown, stored: string | undefined): string | undefined {
  return value === stored ? stored : isoTime(value);
}

const CANONICAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Gives a time in the one form the API uses, or `undefined` for what is no time. */
export function isoTime(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  if (CANONICAL_TIME.test(value) && !Number.isNaN(Date.parse(value))) return value;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}
