/** The messages of a conversation that go to a model, newest first, as the prompts take them. */
import type { ChatMessage } from "../llm/chat_event.ts";
import type { ActivationState } from "../lorebooks/activation.ts";
import type { PromptTurn } from "../prompts/prompts.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { Message, MessageContent } from "../conversations/message.ts";

/** Where the history ends. */
export interface HistoryEnd {
  /** The message before which it ends; the end of the conversation without it. */
  before?: string;
  /** True when that message is the last of it: an answer that is to be continued. */
  isIncluded?: boolean;
  /** A turn behind everything, which is not stored; with its id where it has one. */
  turn?: ChatMessage & { id?: string };
}

/** A message as far as it matters to how it is sent; without an id where it is not stored. */
export type SaidMessage = Pick<Message, "role" | "content"> & Partial<Message>;

/** What becomes of the texts of messages on their way. */
export interface HistoryView {
  /** Puts in what the macros of a text stand for. */
  expand?(text: string, id: string, atMs: number): string;
  /** Gives the name that stands before a message, where several take part. */
  nameOf?(message: SaidMessage): string | undefined;
  /** True where what is continued is the begin of what the model writes. */
  isPrefilled?: boolean;
  now(): number;
}

/** Gives the messages that go out. They are read only as far as they are asked for. */
export function* turnsOf(
  blocks: BlockStore,
  id: string,
  { before, isIncluded, turn }: HistoryEnd,
  view: HistoryView,
): Generator<PromptTurn> {
  if (turn !== undefined) yield { message: viewed(turn, view) };
  let row = before === undefined ? blocks.previous(id) : blocks.rowOf(id, before);
  for (; row !== undefined; row = blocks.previous(id, row)) {
    const messages = blocks.readableMessagesOf(id, row) ?? []; // a damaged block ends no conversation
    let at = messages.findIndex((message) => message.id === before);
    if (at < 0) at = messages.length - 1;
    else if (!isIncluded) at--;
    for (; at >= 0; at--) {
      const message = messages[at]!;
      const isContinued = message.id === before;
      if (!isSent(message) && !isContinued) continue;
      // What the model goes on from goes out as it is, or the rest would not fit to it.
      const sent = isContinued && view.isPrefilled
        ? { role: message.role, content: message.content }
        : viewed(message, view);
      yield {
        ...{ id: message.id, message: sent, atMs: Date.parse(message.created_at) },
        loreState: loreStateOf(message.lorebook_state),
      };
    }
  }
}

/** The field is one of the message's, which a client may have written. */
function loreStateOf(value: unknown): ActivationState | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as ActivationState : undefined;
}

/** Hidden messages stay here; so do answers that have no text, or none yet. */
function isSent({ hidden, status, content }: Message): boolean {
  return hidden !== true && status !== "streaming" && content.length > 0;
}

/** Removes reasoning of earlier messages, which models don't expect (docs/protocols/llm.md#reasoning). */
function viewed(message: SaidMessage, { expand, nameOf, now }: HistoryView): ChatMessage {
  const { role, content, id, created_at: at } = message;
  const name = nameOf?.(message);
  const change = (text: string) => expand?.(text, id ?? "", at === undefined ? now() : Date.parse(at)) ?? text;
  return { role, content: named(mapped(content, change), name) };
}

function mapped(content: MessageContent, change: (text: string) => string): MessageContent {
  if (typeof content === "string") return change(content);
  return content.map((part) => typeof part.text === "string" ? { ...part, text: change(part.text) } : part);
}

function named(content: MessageContent, name: string | undefined): MessageContent {
  if (name === undefined) return content;
  if (typeof content === "string") return `${name}: ${content}`;
  const at = content.findIndex((part) => typeof part.text === "string");
  if (at < 0) return [{ type: "text", text: `${name}:` }, ...content];
  return content.map((part, n) => n === at ? { ...part, text: `${name}: ${part.text}` } : part);
}
