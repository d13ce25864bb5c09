/** The text of a reply that continues what was sent: servers repeat that, or they don't. */
import { getContentText } from "../conversations/message.ts";
import type { ChatCall, ChatEvent } from "../llm/chat_event.ts";
import { TAG_FAMILIES } from "../llm/reasoning_tags.ts";
import type { UpstreamCall } from "./call_builder.ts";

/**
 * Returns the events of a reply so that the stored text and theirs are the whole reply, each part once:
 *
 * - What the server repeats of the reply that was sent last is dropped.
 * - The start of the reply that a preset sends belongs to the reply, unless it only opens the reasoning or names the speaker.
 * - A model that was asked to continue starts a new text: the separator comes before it.
 *
 * @param before The stored text; empty for a new reply. No separator is needed if it ends in white space.
 */
export function continueText(
  { call, joint, prefill }: Pick<UpstreamCall, "call" | "joint" | "prefill">,
  before: string,
  batches: AsyncIterable<ChatEvent[]>,
): AsyncIterable<ChatEvent[]> {
  const sent = findSent(call);
  const fresh = sent.trim() === "" ? batches : dropRepeated(sent, batches);
  if (before === "" && prefill !== undefined && belongsToReply(prefill)) {
    return changeFirstText(fresh, (text) => joinPrefill(prefill, text));
  }
  if (!joint || !/\S$/.test(before)) return fresh;
  // Models often start with a space or a line break.
  return changeFirstText(fresh, (text) => text.startsWith("\n") ? text : joint + text.replace(/^ +/, ""));
}

/** Returns the text of a whole reply in the same way. */
export function continueWholeText({ call, prefill }: Pick<UpstreamCall, "call" | "prefill">, text: string): string {
  const sent = findSent(call);
  const fresh = sent.trim() === "" ? text : findRest(sent, text, true)!;
  return prefill === undefined || !belongsToReply(prefill) || fresh === "" ? fresh : joinPrefill(prefill, fresh);
}

/** Returns the text of the reply that was sent last, to be continued. */
function findSent({ messages }: ChatCall): string {
  const last = messages.at(-1);
  return last?.role === "assistant" && last.tool_calls === undefined ? getContentText(last.content) : "";
}

function joinPrefill(prefill: string, text: string): string {
  return (/^\s/.test(text) ? prefill.trimEnd() : prefill) + text;
}

/** Drops a text that the events begin with, give or take white space. What may still become it is held back. */
async function* dropRepeated(sent: string, batches: AsyncIterable<ChatEvent[]>): AsyncIterable<ChatEvent[]> {
  let held: string | undefined = "";
  for await (const events of batches) {
    if (held === undefined) {
      yield events;
      continue;
    }
    const passed: ChatEvent[] = [];
    for (const event of events) {
      const isNoContent = event.type === "progress" || event.type === "kept" || event.type.startsWith("reasoning");
      if (held === undefined || isNoContent) {
        passed.push(event);
        continue;
      }
      const isText: boolean = event.type === "text";
      if (event.type === "text") held += event.text;
      const rest: string | undefined = findRest(sent, held, !isText);
      if (rest !== undefined) held = undefined;
      if (rest) passed.push({ type: "text", text: rest });
      if (!isText) passed.push(event);
    }
    if (passed.length > 0) yield passed;
  }
  const rest = held === undefined ? "" : findRest(sent, held, true);
  if (rest) yield [{ type: "text", text: rest }];
}

/**
 * Returns the new part of a text; `undefined` while it may still become a repetition.
 *
 * @param isEnded Whether the text is whole.
 */
function findRest(sent: string, text: string, isEnded: boolean): string | undefined {
  const repeated = sent.trimEnd();
  // Templates may put white space before the reply.
  const start = /^\s/.test(sent) ? text : text.trimStart();
  const space = sent.slice(repeated.length);
  if (start.startsWith(sent) && space !== "") return start.slice(sent.length);
  if (start.startsWith(repeated)) {
    const rest = start.slice(repeated.length);
    if (space === "") return rest;
    return isEnded || rest.trim() !== "" ? rest.trimStart() : undefined;
  }
  return isEnded || !repeated.startsWith(start) ? text : undefined;
}

async function* changeFirstText(
  batches: AsyncIterable<ChatEvent[]>,
  change: (text: string) => string,
): AsyncIterable<ChatEvent[]> {
  let isChanged = false;
  for await (const events of batches) {
    yield isChanged ? events : events.map((event) => {
      if (isChanged || event.type !== "text" || event.text === "") return event;
      isChanged = true;
      return { ...event, text: change(event.text) };
    });
  }
}

/** False for tags that open the reasoning, and for a line such as `Ada:`. */
function belongsToReply(prefill: string): boolean {
  const text = prefill.trim().toLowerCase();
  return !/^[^\n]{1,100}:$/.test(text) &&
    !TAG_FAMILIES.some(({ opens }) => opens.some((tag) => text.startsWith(tag.toLowerCase())));
}
