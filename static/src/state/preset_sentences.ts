/** The sentences of a preset around the parts of a prompt: its own ones, else the built-in ones. */
import type { PresetFields } from "../api/preset_endpoints.ts";

/** Those that are sent, by SillyTavern's names, in the order in which they come about. */
export const SENTENCES = [
  { name: "new_chat_prompt", rows: 2 },
  { name: "new_group_chat_prompt", rows: 2 },
  { name: "new_example_chat_prompt", rows: 2 },
  { name: "personality_format", rows: 2 },
  { name: "scenario_format", rows: 2 },
  { name: "wi_format", rows: 2 },
  { name: "group_nudge_prompt", rows: 2 },
  { name: "impersonation_prompt", rows: 4 },
  { name: "assistant_prefill", rows: 2 },
  { name: "assistant_impersonation", rows: 2 },
  { name: "send_if_empty", rows: 2 },
] as const;

/** Name of a sentence. */
export type SentenceName = (typeof SENTENCES)[number]["name"];

type Rest = PresetFields["rest"];

/** Gives what a preset says for a sentence; an empty one is its own, too, and sends nothing. */
export function sentenceOf(rest: Rest, builtin: Rest, name: SentenceName): { text: string; isOwn: boolean } {
  const own = rest[name];
  const builtinText = typeof builtin[name] === "string" ? builtin[name] : "";
  return { text: typeof own === "string" ? own : builtinText, isOwn: typeof own === "string" && own !== builtinText };
}

/** Gives the fields with a sentence of the preset's own, or with the built-in one for undefined. */
export function withSentence(rest: Rest, name: SentenceName, text: string | undefined): Rest {
  const { [name]: _, ...others } = rest;
  return text === undefined ? others : { ...others, [name]: text };
}
