/**
 * Rewrites prompts for chat templates that require alternating roles: at most one system message, then user and
 * assistant in turn.
 */
import type { ChatMessage, ContentPart } from "../llm/chat_event.ts";

/** 0 accepts anything, 1 requires alternating roles, 2 also refuses system messages. */
export type RoleStrictness = 0 | 1 | 2;

/** Stands in for the user's message if the character speaks first. */
const OPENING = "(The conversation begins.)";

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
  const turns: Turn[] = [];
  // Arrays created here may grow in place. Copying them for each merge would take quadratic time.
  const joinedLists = new Set<ContentPart[]>();
  for (const { role, content } of messages.slice(leading.length)) {
    const turn: Turn = { role: role === "assistant" ? "assistant" : "user", content: content ?? "" };
    const last = turns.at(-1);
    if (last?.role !== turn.role) turns.push(turn);
    else if (typeof last.content === "string") last.content = joinContent(last.content, turn.content);
    else if (joinedLists.has(last.content)) last.content.push(...toParts(turn.content));
    else joinedLists.add(last.content = [...last.content, ...toParts(turn.content)]);
  }
  if (turns[0]?.role !== "user") turns.unshift({ role: "user", content: OPENING });
  if (system === "") return turns;
  if (strictness === 1) return [{ role: "system", content: system }, ...turns];
  return [{ role: "user", content: joinContent(system, turns[0]!.content) }, ...turns.slice(1)];
}

/** A message with content. */
interface Turn extends ChatMessage {
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
