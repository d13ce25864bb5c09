/** The sentences of a preset around the parts of a prompt, and how it sends them: its own ones, else the built-in ones. */
import type { PresetFields } from "../../api/presets.ts";

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
  { name: "continue_nudge_prompt", rows: 2 },
] as const;

/** Name of a sentence. */
export type SentenceName = (typeof SENTENCES)[number]["name"];
/** A choice of yes or no, by SillyTavern's name. */
export type FlagName = "continue_prefill" | "squash_system_messages";
/** What stands between an answer and its continuation. */
export const JOINT = "continue_postfix";
/** What SillyTavern offers for it; a preset may say something else. */
export const JOINTS = { none: "", space: " ", line: "\n", paragraph: "\n\n" } as const;

type Rest = PresetFields["rest"];

/** Gives what a preset says for a sentence; an empty one is its own, too, and sends nothing. */
export function sentenceOf(
  rest: Rest,
  builtin: Rest,
  name: SentenceName | typeof JOINT,
): { text: string; isOwn: boolean } {
  const own = rest[name];
  const builtinText = typeof builtin[name] === "string" ? builtin[name] : "";
  return { text: typeof own === "string" ? own : builtinText, isOwn: typeof own === "string" && own !== builtinText };
}

/** Gives what a preset chooses. */
export function flagOf(rest: Rest, builtin: Rest, name: FlagName): boolean {
  return typeof rest[name] === "boolean" ? rest[name] : builtin[name] === true;
}

/** Gives the fields with a value of the preset's own, or with the built-in one for undefined. */
export function withSentence(
  rest: Rest,
  name: SentenceName | FlagName | typeof JOINT,
  value: string | boolean | undefined,
): Rest {
  const { [name]: _, ...others } = rest;
  return value === undefined ? others : { ...others, [name]: value };
}
