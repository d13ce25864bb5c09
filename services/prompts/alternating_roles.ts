/** The form of a prompt for chat templates that take turns strictly: one system message at most, then user and assistant. */
import type { ChatMessage, ContentPart } from "../llm/chat_event.ts";

/** How strict a template is: takes anything, wants turns in order, wants that and no system message at all. */
export type Strictness = 0 | 1 | 2;

/** What stands for the owner's turn where the character speaks first. */
const OPENING = "(The conversation begins.)";

/** Says whether a refusal is that of a template which wants turns in order. @param message As the server gave it. */
export function isTemplateRefusal(message: string): boolean {
  return /roles? must alternate|system (role|message)s?\b.*(support|must|begin|first|only)|only user(, | and )(and )?assistant|(jinja|chat.?template)/i
    .test(message);
}

/**
 * Gives the messages in that form. Later system messages become part of the owner's turn where they stand, neighbours of
 * one role are one message; the last one stays last.
 */
export function strictTurns(messages: readonly ChatMessage[], strictness: Strictness): ChatMessage[] {
  if (strictness === 0) return [...messages];
  const begin = messages.findIndex(({ role }) => role !== "system");
  const leading = messages.slice(0, begin < 0 ? messages.length : begin);
  const system = leading.map(({ content }) => textOf(content)).join("\n\n");
  const turns: ChatMessage[] = [];
  // Lists made here, which may grow: copying them for each neighbour would take the square of their length.
  const joinedLists = new Set<ContentPart[]>();
  for (const { role, content } of messages.slice(leading.length)) {
    const turn = { role: role === "assistant" ? "assistant" : "user", content };
    const last = turns.at(-1);
    if (last?.role !== turn.role) turns.push(turn);
    else if (typeof last.content === "string") last.content = joined(last.content, content);
    else if (joinedLists.has(last.content)) last.content.push(...partsOf(content));
    else joinedLists.add(last.content = [...last.content, ...partsOf(content)]);
  }
  if (turns[0]?.role !== "user") turns.unshift({ role: "user", content: OPENING });
  if (system === "") return turns;
  if (strictness === 1) return [{ role: "system", content: system }, ...turns];
  return [{ role: "user", content: joined(system, turns[0]!.content) }, ...turns.slice(1)];
}

function joined(before: ChatMessage["content"], after: ChatMessage["content"]): ChatMessage["content"] {
  if (typeof before === "string" && typeof after === "string") return `${before}\n\n${after}`;
  return [...partsOf(before), ...partsOf(after)];
}

function partsOf(content: ChatMessage["content"]): ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function textOf(content: ChatMessage["content"]): string {
  return partsOf(content).flatMap((part) => typeof part.text === "string" ? [part.text] : []).join("\n");
}
