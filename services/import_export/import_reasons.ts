/**
 * The sentences of a report by codes that stay, so that whoever shows one can say it in another language. Readers say
 * them in English, some with words of the file inside; here each is known again, at the one place that every line passes.
 */
import type { TextParams } from "../json/message_template.ts";

/** `{name}` stands for what a sentence says of its file. A sentence that is not here goes out as it is, without a code. */
export const IMPORT_REASONS = {
  not_plain_file: "it is no plain file inside of the import",
  unreadable: "it cannot be read",
  not_json: "it is no JSON in UTF-8",
  not_whole_json: "it is no whole JSON",
  not_object: "it is no object of JSON",
  no_chat: "it is no chat",
  no_messages: "it has no messages",
  messages_missing: "its messages are not there",
  not_jsonl: "it is no .jsonl file",
  no_chats_inside: "files that are no chats are left out",
  broken_line: "line {line} is no object of JSON and was passed over",
  broken_lines: "{count} lines are no objects of JSON",
  picture_missing: 'the picture "{picture}" is not there',
  chatgpt_pictures: "its pictures are not in the file of chats and do not come in",
  changed_here: "it is here already and went on here, or was changed, since it came in: left as it is",
  picture_unreadable: "its picture cannot be read",
  came_without_picture: "its picture cannot be read: it came in without one",
  avatar_missing: "its picture is not in the file: it comes in without one",
  avatar_not_there: "its picture is not there: it comes in without one",
  keyless: "keys are in no export: enter its key anew",
  keys_left_out: "keys of services and settings are not taken over; enter connections under Connections",
  service_keys_left_out: "keys of services are not taken over; enter them under Connections",
  character_missing: 'its character "{card}" is not there: the chat comes in without one',
  group_missing: "no group has this chat: it comes in without characters",
  members_missing: "characters of the group are not there: {cards}",
  no_persona_has_it: "no persona has this picture",
  backgrounds: "backgrounds are left out: chats here have none",
  thumbnails: "thumbnails are made anew",
  backups: "backups are copies of what is brought in",
  themes: "themes are of SillyTavern's own page",
  presets_of_service: "these presets are for a service that Parlor does not speak to",
  presets_of_interface: "these presets are for an interface that Parlor does not speak",
  instruct: "instruct templates are left out: servers apply the template of their model",
  context: "context templates are left out: servers apply the template of their model",
  sillytavern_own: "it is of SillyTavern's own and has no place here",
  agnai_not: "it is no file of Agnai",
  agnai_scenarios: "scenarios that change with a chat have no place here",
  agnai_templates: "templates of prompts are left out: they are in Agnai's own language",
  agnai_presets: "prompts of presets are left out: they are in Agnai's own language",
  agnai_trees: "trees of chats are made from their messages",
  chat_without_character: "its character is not in the file: the chat comes in without one",
  agnai_overrides: "what it says in place of its character is left out: {fields}",
  risu_not: "it is no file of RisuAI",
  risu_neither: "it is neither a card nor a persona",
  risu_persona: "its persona cannot be read",
  risu_no_entries: "its lorebook has no entries",
  risu_text_chat: "a chat as text or page has neither times nor roles: export it as JSON",
  risu_note: "its note is left out: personas here have none",
  risu_module: "of a module the lorebook comes in alone: its scripts and pictures do nothing outside of RisuAI",
  risu_module_rest: "scripts and pictures of a module are left out: they do nothing outside of RisuAI",
  risu_scripts: "scripts are left out: they do nothing outside of RisuAI",
  risu_chats_without_character: "its character is not in the file: chats come in without one and without its greeting",
  risu_presets: "prompts of presets are left out: they are in RisuAI's own template language",
  risu_character_missing: "the file of this character is not there",
  risu_trash: "they lie in RisuAI's trash",
  risu_empty_chats: "nobody has said anything in them",
  risu_chat_pictures: "{count} pictures in its messages are in no file of RisuAI's and do not come in",
  risu_memory: "what RisuAI remembers of it is left out: summaries here are made anew when one is needed",
  risu_variables: "the variables of its scripts are left out",
  risu_voice: "its voice model is left out: voices here are samples of a speech server",
  risu_card_scripts: "its scripts are kept in the card for RisuAI and do nothing here",
  risu_damaged: "it is damaged: it cannot be unpacked",
  risu_cut_off: "it is cut off",
  agnai_body: "its body of parts is kept in the card for Agnai, which alone can draw it",
  moods: "only pictures of moods come in, in a folder that is called as the file of a card beside it",
  kept_beside: "its further pictures and sounds are kept beside it: an export as CHARX has them",
  too_many_files: "its character has too many further files",
  risu_media: "{count} further pictures and sounds of it are not there",
  risu_module_empty: "this module has no lorebook: its scripts and pictures do nothing outside of RisuAI",
  risu_no_module: "it is no module of RisuAI, or of a newer kind",
  risu_holds_no_module: "it holds no module",
  risu_module_damaged: "it is damaged: its module cannot be read",
  risu_no_preset: "it is no preset of RisuAI, or of a newer kind",
  risu_holds_no_preset: "it holds no preset",
  risu_preset_damaged: "it is damaged: its preset cannot be opened",
  risu_foreign: "it is not of RisuAI, or damaged",
} as const;

/** Code of a sentence. */
export type ImportReasonCode = keyof typeof IMPORT_REASONS;

/** Of what a sentence says of its file: the words are those of a stranger. */
const MAX_PARAM_CHARS = 500;

const PLACE = /\{(\w+)\}/g;
const PATTERNS = Object.entries(IMPORT_REASONS).filter(([, text]) => text.includes("{")).map(([code, text]) => ({
  code,
  names: [...text.matchAll(PLACE)].map(([, name]) => name!),
  pattern: new RegExp(
    `^${text.split(PLACE).map((part, n) => n % 2 === 0 ? RegExp.escape(part) : "(.*)").join("")}$`,
    "s",
  ),
}));
const CODES = new Map<string, string>(Object.entries(IMPORT_REASONS).map(([code, text]) => [text, code]));

/** Gives the code of a sentence and what stands in its places; nothing for one that has no code. */
export function codedReason(reason: string): { code?: string; params?: TextParams } {
  const code = CODES.get(reason);
  if (code !== undefined) return { code };
  for (const { code, names, pattern } of PATTERNS) {
    const match = pattern.exec(reason);
    if (match) return { code, params: Object.fromEntries(names.map((name, n) => [name, cut(match[n + 1]!)])) };
  }
  return {};
}

function cut(text: string): string {
  return text.slice(0, MAX_PARAM_CHARS);
}
