/**
 * Converts blocks to messages. Adjacent blocks of one role become one message, because many templates reject two in a
 * row. Rewrites prompts for chat templates that require alternating roles: at most one system message, then user and
 * assistant in turn.
 */
import type { ChatMessage, ContentPart } from "../llm/chat_event.ts";
import type { BlockAtDepth, BlockPart, PromptBlock, PromptBlocks } from "./prompt.ts";
import { putNameInText } from "../llm/dialects/portable_messages.ts";
import { MESSAGE_TOKENS } from "../llm/token_count.ts";

/** A block with its token count. */
export type Counted<T extends PromptBlock = PromptBlock> = T & { tokens: number };

/** The blocks of a prompt with their token counts. */
export type CountedBlocks = { [K in "leading" | "trailing"]: Counted[] } & {
  inserted: Counted<PromptBlocks["inserted"][number]>[];
  prefill: Counted[];
};

/** The content of a message: leading system blocks, a stored message, or the part of its first block. */
export type PromptPart = "system_prompt" | "history" | BlockPart;

/** One message of a prompt. */
export interface PromptEntry {
  part: PromptPart;
  /** Id of a stored message. */
  messageId?: string;
  message: ChatMessage;
  tokens: number;
  /** The blocks it was made from; absent for stored messages. */
  pieces?: Counted[];
}

/** Order of blocks with the same depth and order (docs/protocols/cards.md#prompt-order). */
const ROLES = ["assistant", "user", "system"];
/** Number of tokens for the blank line between two blocks. */
const JOIN_TOKENS = 1;

/**
 * Converts consecutive blocks to messages.
 *
 * @param isLeading True for blocks before the history.
 */
export function toPromptEntries(blocks: readonly Counted[], isLeading = false): PromptEntry[] {
  const entries: (PromptEntry & { pieces: Counted[] })[] = [];
  for (const block of blocks) {
    const last = entries.at(-1);
    if (last?.message.role === block.role) {
      last.message.content += `\n\n${block.text}`;
      last.tokens += block.tokens - MESSAGE_TOKENS + JOIN_TOKENS;
      last.pieces.push(block);
      continue;
    }
    const part = isLeading && block.role === "system" ? "system_prompt" : block.part;
    const message = { role: block.role, content: block.text };
    entries.push({ part, message, tokens: block.tokens, pieces: [block] });
  }
  return entries;
}

/** Merges consecutive system messages. Stored messages aren't merged, because each is identified by its ID. */
export function squashSystemMessages(entries: readonly PromptEntry[]): PromptEntry[] {
  const all: PromptEntry[] = [];
  for (const entry of entries) {
    const last = all.at(-1);
    if (last === undefined || !isSystemPiece(last) || !isSystemPiece(entry)) {
      all.push(entry);
      continue;
    }
    all[all.length - 1] = {
      ...last,
      message: { ...last.message, content: `${last.message.content}\n\n${entry.message.content}` },
      tokens: last.tokens + entry.tokens - MESSAGE_TOKENS + JOIN_TOKENS,
      pieces: [...last.pieces!, ...entry.pieces!],
    };
  }
  return all;
}

function isSystemPiece({ message, pieces }: PromptEntry): boolean {
  return message.role === "system" && pieces !== undefined;
}

/**
 * Inserts blocks into the history at their depths. Blocks deeper than the history are placed before it. Blocks between
 * a tool call and its result are placed before the call.
 */
export function insertAtDepths(
  history: readonly PromptEntry[],
  inserted: readonly Counted<BlockAtDepth>[],
): PromptEntry[] {
  const all: PromptEntry[] = [];
  const byIndex = Map.groupBy(inserted, ({ depth }) => {
    let index = Math.max(0, history.length - depth);
    while (index > 0 && history[index]?.message.role === "tool") index--;
    return index;
  });
  for (let index = 0; index <= history.length; index++) {
    const here = byIndex.get(index) ?? [];
    // If several are deeper than the history, the deepest comes first.
    here.sort((a, b) => b.depth - a.depth || a.order - b.order || ROLES.indexOf(a.role) - ROLES.indexOf(b.role));
    all.push(...toPromptEntries(here));
    if (index < history.length) all.push(history[index]!);
  }
  return all;
}

/** 0 accepts anything, 1 requires alternating roles, 2 also rejects system messages. */
export type RoleStrictness = 0 | 1 | 2;

/** Replaces the user's message if the character speaks first. */
const FIRST_USER_MESSAGE = "(The conversation begins.)";

/**
 * Reports whether an upstream error comes from a template that requires alternating roles. @param message The server's
 * error message.
 */
export function isTemplateRefusal(message: string): boolean {
  return /roles? must alternate|system (role|message)s?\b.*(support|must|begin|first|only)|only user(, | and )(and )?assistant|(jinja|chat.?template)/i
    .test(message);
}

/**
 * Rewrites messages into alternating roles.
 *
 * Later system messages are merged into the user message at their position. Adjacent messages of one role become one.
 */
export function toAlternatingRoles(messages: readonly ChatMessage[], strictness: RoleStrictness): ChatMessage[] {
  if (strictness === 0) return [...messages];
  const begin = messages.findIndex(({ role }) => role !== "system");
  const leading = messages.slice(0, begin < 0 ? messages.length : begin);
  const system = leading.map(({ content }) => toPlainText(content)).join("\n\n");
  const merged: ContentMessage[] = [];
  // Arrays created here may grow in place. Copying them for each merge would take quadratic time.
  const joinedLists = new Set<ContentPart[]>();
  // Messages that become one can't have two names.
  for (const { role, content } of messages.slice(leading.length).map(putNameInText)) {
    const next: ContentMessage = { role: role === "assistant" ? "assistant" : "user", content: content ?? "" };
    const last = merged.at(-1);
    if (last?.role !== next.role) merged.push(next);
    else if (typeof last.content === "string") last.content = joinContent(last.content, next.content);
    else if (joinedLists.has(last.content)) last.content.push(...toParts(next.content));
    else joinedLists.add(last.content = [...last.content, ...toParts(next.content)]);
  }
  if (merged[0]?.role !== "user") merged.unshift({ role: "user", content: FIRST_USER_MESSAGE });
  if (system === "") return merged;
  if (strictness === 1) return [{ role: "system", content: system }, ...merged];
  return [{ role: "user", content: joinContent(system, merged[0]!.content) }, ...merged.slice(1)];
}

/** A message with content. */
interface ContentMessage extends ChatMessage {
  content: Content;
}

type Content = NonNullable<ChatMessage["content"]>;

function joinContent(before: Content, after: Content): Content {
  if (typeof before === "string" && typeof after === "string") return `${before}\n\n${after}`;
  return [...toParts(before), ...toParts(after)];
}

function toParts(content: Content): ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function toPlainText(content: ChatMessage["content"]): string {
  return toParts(content ?? "").flatMap((part) => typeof part.text === "string" ? [part.text] : []).join("\n");
}

/** Converts a block to a separate message. */
export function toMessage({ role, text }: PromptBlock): ChatMessage {
  return { role, content: text };
}
