/** How a model is asked to tell what happened so far, and what of its answer is the summary. */
import type { ChatCall, OpenAiCompletion } from "../llm/chat_event.ts";
import { withoutThoughts } from "../llm/reasoning.ts";

const INSTRUCTION =
  "You keep the record of a long conversation. Write down what has happened so far, in at most 250 words, in the language of the conversation and in the past tense: who takes part, what they did, agreed, learned and feel, where they are, and what is still open. Names and facts stay exact. Write the record alone: no heading, no comment.";
/** The record and, for models that think first, some room for that. */
const SUMMARY_TOKENS = 900;
/** Beyond this it is no summary. */
const MAX_CHARS = 4_000;

/** One message that is to be told of. */
export interface ToldMessage {
  name: string;
  text: string;
}

/** Makes the call. @param before The summary of what came earlier. */
export function summaryCall(model: string, before: string | undefined, messages: readonly ToldMessage[]): ChatCall {
  const parts = [
    ...(before === undefined ? [] : [`The record up to now:\n${before}`]),
    `What happened then:\n${messages.map(({ name, text }) => `${name}: ${text}`).join("\n\n")}`,
    "Write the whole record anew, with both.",
  ];
  return {
    model,
    messages: [{ role: "system", content: INSTRUCTION }, { role: "user", content: parts.join("\n\n") }],
    params: { max_tokens: SUMMARY_TOKENS },
  };
}

/** Gives the summary in a model's answer, or `undefined` where there is none. */
export function summaryIn(completion: OpenAiCompletion): string | undefined {
  const text = withoutThoughts(completion.choices[0]?.message.content ?? "").trim();
  if (text.length <= MAX_CHARS) return text || undefined;
  const cut = text.slice(0, MAX_CHARS);
  return cut.slice(0, Math.max(cut.lastIndexOf(". ") + 1, MAX_CHARS / 2));
}
