/** Reads the messages of a conversation that go to a model, newest first. */
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { Message, MessageContent } from "../conversations/message.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import type { ActivationState } from "../lorebooks/activation.ts";
import type { PromptMessage } from "../prompts/prompts.ts";

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
  if (userMessage !== undefined) yield { message: toChatMessage(userMessage, view) };
  let row = before === undefined ? blocks.previous(id) : blocks.rowOf(id, before);
  for (; row !== undefined; row = blocks.previous(id, row)) {
    const messages = blocks.readableMessagesOf(id, row) ?? []; // a damaged block is skipped
    let index = messages.findIndex((message) => message.id === before);
    if (index < 0) index = messages.length - 1;
    else if (!isIncluded) index--;
    for (; index >= 0; index--) {
      const message = messages[index]!;
      const isContinued = message.id === before;
      if (!isSent(message) && !isContinued) continue;
      // A prefilled answer is sent unchanged. Otherwise the continuation wouldn't match the stored text.
      const sent = isContinued && view.isPrefilled
        ? { role: message.role, content: message.content }
        : toChatMessage(message, view);
      yield {
        id: message.id,
        message: sent,
        atMs: Date.parse(message.created_at),
        loreState: parseLoreState(message.lorebook_state),
      };
    }
  }
}

/** Clients can write any field of a message, so its type is checked. */
function parseLoreState(value: unknown): ActivationState | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as ActivationState : undefined;
}

/** Hidden messages, empty ones and one that is being written aren't sent. */
function isSent({ hidden, status, content }: Message): boolean {
  return hidden !== true && status !== "streaming" && content.length > 0;
}

/** Drops the reasoning of earlier answers, which models don't expect (docs/protocols/llm.md#reasoning). */
function toChatMessage(message: HistoryMessage, { expand, nameOf, now }: HistoryView): ChatMessage {
  const { role, content, id, created_at: at } = message;
  const name = nameOf?.(message);
  const change = (text: string) => expand?.(text, id ?? "", at === undefined ? now() : Date.parse(at)) ?? text;
  return { role, content: prefixName(mapTexts(content, change), name) };
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
