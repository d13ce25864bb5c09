/** How a model is asked for a title, and what of its answer is one. */
import type { ChatCall, ChatMessage, OpenAiCompletion } from "../llm/chat_event.ts";
import { titleFrom } from "../conversations/conversation.ts";
import { withoutThoughts } from "../llm/reasoning.ts";

const INSTRUCTION =
  "Give this conversation a title of two to six words, in the language I write in. Answer with the title alone: no quotation marks, no explanation.";
/** A title has some ten; a model that thinks first needs the rest. */
const TITLE_TOKENS = 400;
/** Fields that change how a template begins; without them a server's cache of the prompt would be of no use. */
const TEMPLATE_FIELDS = ["chat_template_kwargs", "reasoning_effort", "reasoning"];

/**
 * Makes the call for a title: what the reply was asked with, the reply, and one instruction. A server with one slot has
 * all but the instruction in its cache.
 *
 * @param answer The text of the reply; one that was continued stands at the end of `call` with its begin.
 */
export function titleCall({ model, messages, params }: ChatCall, answer: string): ChatCall {
  const asked = messages.at(-1)?.role === "assistant" ? messages.slice(0, -1) : messages;
  const behind: ChatMessage[] = [{ role: "assistant", content: answer }, { role: "user", content: INSTRUCTION }];
  const kept = TEMPLATE_FIELDS.filter((name) => params[name] !== undefined).map((name) => [name, params[name]]);
  return { model, messages: [...asked, ...behind], params: { ...Object.fromEntries(kept), max_tokens: TITLE_TOKENS } };
}

/** Gives the title in a model's answer, or `undefined` where there is none. */
export function titleIn(completion: OpenAiCompletion): string | undefined {
  const text = withoutThoughts(completion.choices[0]?.message.content ?? "");
  const lines = text.split(/\r?\n/).map(withoutMarks).filter((line) => line !== "");
  // "Here is a title:" stands before one.
  const line = lines.find((candidate) => !candidate.endsWith(":"));
  return line === undefined ? undefined : titleFrom(line) || undefined;
}

function withoutMarks(line: string): string {
  return line.trim()
    .replace(/^[#>*_\-\s]+|[*_\s]+$/g, "")
    .replace(/^(title|titel|タイトル)\s*[:：]\s*/i, "")
    .replace(/^["'“”„«»「『*_\s]+|["'“”„«»」』*_\s]+$/g, "")
    .replace(/(?<=[^.])\.$/, "");
}
