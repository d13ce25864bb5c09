/** Reads settings of SillyTavern that are the user's own: the default persona and quick replies. Names the others. */
import { asArray, asObject, asText, isFilled, type JsonObject } from "../../../json/type_guards.ts";
import { type PromptTemplate, TEMPLATE_LIMITS } from "../../../settings/prompt_templates.ts";
import type { ImportNote, ImportStep } from "../../import_item.ts";
import { createLeftOutNote, importReason } from "../../import_report.ts";
import { deriveStableId } from "../../import_source.ts";
import { listObjects } from "../chat_files.ts";

/** A file of quick replies, or why it can't be read. */
export interface QuickReplySet {
  source: string;
  json?: JsonObject;
  fault?: ImportNote;
}

/** Values that a user wrote, by path in settings.json, and that Parlor has no place for. */
const OWN_TEXTS = [
  ...["power_user.custom_css", "power_user.custom_stopping_strings", "power_user.user_prompt_bias"],
  ...["power_user.sysprompt.content", "power_user.sysprompt.post_history", "power_user.auto_swipe_blacklist"],
  ...["extension_settings.note.default", "extension_settings.memory.prompt", "extension_settings.variables.global"],
  ...["extension_settings.dice", "extension_settings.objective", "extension_settings.expressions.custom"],
  ...["extension_settings.sd.prompts", "extension_settings.sd.prompt_prefix", "extension_settings.sd.negative_prompt"],
  ...["extension_settings.sd.character_prompts", "extension_settings.sd.character_negative_prompts"],
  ...["extension_settings.attachments", "extension_settings.character_attachments"],
  ...["extension_settings.connectionManager.profiles", "extension_settings.tts", "extension_settings.rvc"],
  ...["textgenerationwebui_settings.banned_tokens", "textgenerationwebui_settings.global_banned_tokens", "proxies"],
];
/** Parts of settings.json that are read elsewhere. */
const READ_PARTS = ["tags", "tag_map", "world_info_settings"];
/** Parts that the lists above look into. */
const SEARCHED_PARTS = ["power_user", "extension_settings", "proxies"];

/**
 * Yields the user's own settings as settings of Parlor, and notes about the others.
 *
 * @param options.personas IDs by image file.
 */
export function* readOwnSettings(
  settings: JsonObject,
  { source, personas, quickReplies }: {
    source: string;
    personas: ReadonlyMap<string, string>;
    quickReplies: readonly QuickReplySet[];
  },
): Generator<ImportStep> {
  const templates: PromptTemplate[] = [];
  for (const { source, json, fault } of quickReplies) {
    if (fault !== undefined) yield fault;
    else yield* readQuickReplies(json ?? {}, source, templates);
  }
  const persona = personas.get(asText(asObject(settings.power_user).default_persona));
  if (persona !== undefined || templates.length > 0) {
    yield {
      what: "settings",
      id: deriveStableId("sillytavern", "settings"),
      source,
      name: "SillyTavern",
      settings: {
        ...(persona !== undefined && { default_persona_id: persona }),
        ...(templates.length > 0 && { prompt_templates: templates }),
      },
      hadSpeechKey: false,
    };
  }
  yield* nameOtherSettings(settings, source);
}

function* nameOtherSettings(settings: JsonObject, source: string): Generator<ImportNote> {
  const regexes = listObjects(asObject(settings.extension_settings).regex);
  if (regexes.length > 0) {
    const names = regexes.map(({ scriptName }) => asText(scriptName)).filter((name) => name !== "");
    yield createNote(source, "tavern_regex", { names: names.join(", ") }, regexes.length);
  }
  const found = OWN_TEXTS.filter((path) =>
    isFilled(path.split(".").reduce<unknown>((value, name) => asObject(value)[name], settings))
  );
  if (found.length > 0) yield createNote(source, "tavern_own_settings", { names: found.join(", ") }, found.length);
  const others = Object.keys(settings).filter((name) =>
    !READ_PARTS.includes(name) && !SEARCHED_PARTS.includes(name) && isFilled(settings[name])
  );
  if (others.length > 0) yield createNote(source, "tavern_settings", { names: others.join(", ") }, others.length);
}

function createNote(
  source: string,
  code: Parameters<typeof importReason>[0],
  params: Record<string, string>,
  count: number,
): ImportNote {
  return { ...createLeftOutNote(source, code, count), ...importReason(code, params) };
}

/** Adds the replies that are text. Version 1 has them in slots. */
function* readQuickReplies(set: JsonObject, source: string, templates: PromptTemplate[]): Generator<ImportNote> {
  const scripts: string[] = [];
  const rest: string[] = [];
  for (const reply of [...listObjects(set.qrList), ...listObjects(set.quickReplySlots)]) {
    const label = asText(reply.label) || asText(reply.title);
    const text = asText(reply.message) || asText(reply.mes);
    if (text.trim() === "") continue;
    if (/^\s*\//.test(text) || asArray(reply.contextList).length > 0) scripts.push(label);
    else if (text.length > TEMPLATE_LIMITS.textChars || templates.length >= TEMPLATE_LIMITS.count) rest.push(label);
    else templates.push({ name: createName(label, templates), text });
  }
  if (scripts.length > 0) {
    yield createNote(source, "quick_reply_scripts", { names: scripts.join(", ") }, scripts.length);
  }
  if (rest.length > 0) yield createNote(source, "quick_replies_beyond", { names: rest.join(", ") }, rest.length);
}

/** Creates a name that templates may have and none has yet. */
function createName(label: string, templates: readonly PromptTemplate[]): string {
  const base = label.normalize("NFC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  const short = [...base].slice(0, 30).join("") || "reply";
  const isTaken = (name: string) => templates.some((one) => one.name.toLowerCase() === name.toLowerCase());
  for (let n = 1;; n++) {
    const name = n === 1 ? short : `${short}-${n}`;
    if (!isTaken(name)) return name;
  }
}
