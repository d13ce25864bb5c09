/** Reads the messages of a conversation that go to a model, newest first. */
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { Message, MessageContent } from "../conversations/message.ts";
import { type DocumentUse, parseDocumentUses } from "../documents/document.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import { splitReasoning } from "../llm/reasoning.ts";
import type { ActivationState } from "../lorebooks/activation.ts";
import type { PromptMessage } from "../prompts/prompt.ts";
import { hasCalls, pairToolResults, toToolMessage } from "./tools/tool_history.ts";

/** Where the history ends. */
export interface HistoryEnd {
  /** The history ends before this message. Defaults to the end of the conversation. */
  before?: string;
  /** Whether that message is included: an answer that is continued. */
  isIncluded?: boolean;
  /** A user message after all others that isn't stored yet, with its id if it has one. */
  userMessage?: ChatMessage & { id?: string };
}

/** A message of the history. It has no id if it isn't stored. */
export type HistoryMessage = Pick<Message, "role" | "content"> & Partial<Message>;

/** How messages change before they are sent. */
export interface HistoryView {
  /** Expands the macros of a text. */
  expand?(text: string, id: string, atMs: number): string;
  /** Returns the name to put in front of a message, in a group. */
  nameOf?(message: HistoryMessage): string | undefined;
  /** Whether the message that is continued is sent as the beginning of the model's answer. */
  isPrefilled?: boolean;
  now(): number;
}

/** Reads the messages that are sent, newest first. Reads only as many blocks as the caller consumes. */
export function* readHistory(
  blocks: BlockStore,
  id: string,
  { before, isIncluded, userMessage }: HistoryEnd,
  view: HistoryView,
): Generator<PromptMessage> {
  if (userMessage !== undefined) {
    const message = toChatMessage({ ...userMessage, content: userMessage.content ?? "" }, view);
    yield { message, documents: findDocuments(userMessage) };
  }
  for (const message of pairToolResults(readSent(blocks, id, { before, isIncluded }))) {
    // A prefilled answer is sent unchanged. Otherwise the continuation wouldn't match the stored text.
    const isPrefill = message.id !== undefined && message.id === before && view.isPrefilled;
    const sent = isPrefill ? { role: message.role, content: message.content } : toChatMessage(message, view);
    yield {
      id: message.id,
      message: sent,
      atMs: message.created_at === undefined ? undefined : Date.parse(message.created_at),
      loreState: parseLoreState(message.lorebook_state),
      documents: findDocuments(message),
    };
  }
}

/** Reads the stored messages that are sent, newest first. */
function* readSent(blocks: BlockStore, id: string, { before, isIncluded }: HistoryEnd): Generator<HistoryMessage> {
  let row = before === undefined ? blocks.previous(id) : blocks.rowOf(id, before);
  for (; row !== undefined; row = blocks.previous(id, row)) {
    const messages = blocks.readableMessagesOf(id, row) ?? []; // a damaged block is skipped
    let index = messages.findIndex((message) => message.id === before);
    if (index < 0) index = messages.length - 1;
    else if (!isIncluded) index--;
    for (; index >= 0; index--) {
      const message = messages[index]!;
      if (isSent(message) || message.id === before) yield message;
    }
  }
}

/** Clients can write any field of a message, so its type is checked. */
function parseLoreState(value: unknown): ActivationState | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as ActivationState : undefined;
}

/** A reply's documents are those that it was given. */
function findDocuments({ role, documents }: HistoryMessage | ChatMessage): DocumentUse[] | undefined {
  return role === "user" && documents !== undefined ? parseDocumentUses(documents) : undefined;
}

/** Hidden messages, empty ones and one that is being written aren't sent. */
function isSent(message: Message): boolean {
  const { hidden, status, content } = message;
  return hidden !== true && status !== "streaming" && (content.length > 0 || hasCalls(message));
}

/**
 * Drops the reasoning of earlier answers, which models don't expect (docs/protocols/llm.md#reasoning). Imported answers, and those
 * that were stored before reasoning was split off, have it in their text.
 */
function toChatMessage(message: HistoryMessage, { expand, nameOf, now }: HistoryView): ChatMessage {
  const { role, id, created_at: at } = message;
  // What a tool returned has no macros: somebody else wrote it.
  if (role === "tool") return toToolMessage(message);
  const content = role === "assistant" ? mapTexts(message.content, dropReasoning) : message.content;
  const name = nameOf?.(message);
  const change = (text: string) => expand?.(text, id ?? "", at === undefined ? now() : Date.parse(at)) ?? text;
  const text = mapTexts(content, change);
  if (hasCalls(message)) {
    return toToolMessage({ ...message, content: text.length === 0 ? text : prefixName(text, name) });
  }
  return { role, content: prefixName(text, name) };
}

function dropReasoning(text: string): string {
  return splitReasoning(text)?.text ?? text;
}

function mapTexts(content: MessageContent, change: (text: string) => string): MessageContent {
  if (typeof content === "string") return change(content);
  return content.map((part) => typeof part.text === "string" ? { ...part, text: change(part.text) } : part);
}

function prefixName(content: MessageContent, name: string | undefined): MessageContent {
  if (name === undefined) return content;
  if (typeof content === "string") return `${name}: ${content}`;
  const index = content.findIndex((part) => typeof part.text === "string");
  if (index < 0) return [{ type: "text", text: `${name}:` }, ...content];
  return content.map((part, n) => n === index ? { ...part, text: `${name}: ${part.text}` } : part);
}
