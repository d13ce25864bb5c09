/** Reads settings of SillyTavern that are the user's own: the default persona and regex scripts. Names the others. */
import { asNumber, asObject, asText, isFilled, type JsonObject } from "../../../json/type_guards.ts";
import { splitReasoning } from "../../../llm/reasoning.ts";
import type { PromptTemplate } from "../../../settings/prompt_templates.ts";
import type { BookOrder } from "../../../lorebooks/activation_rules.ts";
import type { OwnerSettings } from "../../../settings/settings.ts";
import type { ImportNote, ImportStep } from "../../import_item.ts";
import { createNamesNote } from "../../import_report.ts";
import { deriveStableId } from "../../import_source.ts";
import { listObjects } from "../chat_files.ts";

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
/** The orders of lorebooks by SillyTavern's numbers. */
const BOOK_STRATEGIES: readonly BookOrder[] = ["evenly", "character_first", "global_first"];
/** Parts of settings.json that are read elsewhere. */
const READ_PARTS = ["tags", "tag_map", "world_info_settings"];
/** Parts that the lists above look into. */
const SEARCHED_PARTS = ["power_user", "extension_settings", "proxies"];

/**
 * Yields the user's own settings as settings of Parlor, and notes about the others.
 *
 * @param options.personas IDs by image file.
 * @param options.templates The quick replies.
 */
export function* readOwnSettings(
  settings: JsonObject,
  { source, personas, templates }: {
    source: string;
    personas: ReadonlyMap<string, string>;
    templates: PromptTemplate[];
  },
): Generator<ImportStep> {
  const lore = readLoreSettings(asObject(settings.world_info_settings));
  const persona = personas.get(asText(asObject(settings.power_user).default_persona));
  if (persona !== undefined || templates.length > 0 || Object.keys(lore).length > 0) {
    yield {
      what: "settings",
      id: deriveStableId("sillytavern", "settings"),
      source,
      name: "SillyTavern",
      settings: {
        ...lore,
        ...(persona !== undefined && { default_persona_id: persona }),
        ...(templates.length > 0 && { prompt_templates: templates }),
      },
      hadSpeechKey: false,
    };
  }
  for (const [n, json] of listObjects(asObject(settings.extension_settings).regex).entries()) {
    const name = asText(json.scriptName);
    const id = deriveStableId("sillytavern", "regex_script", asText(json.id) || `${n} ${name}`);
    yield { what: "regex_script", id, source, name, json };
  }
  yield* nameOtherSettings(settings, source);
}

/** Reads the settings of World Info that apply to all lorebooks. The others are written into each. */
function readLoreSettings(info: JsonObject): Partial<OwnerSettings> {
  const read = (name: string, most: number) => {
    const value = asNumber(info[`world_info_${name}`]);
    return value !== undefined && value >= 0 ? Math.min(most, Math.floor(value)) : undefined;
  };
  const budget = read("budget", 1_000);
  const tokens = read("budget_cap", 10_000_000);
  const minActivations = read("min_activations", 1_000);
  const depth = read("min_activations_depth_max", 1_000);
  // SillyTavern also counts the first scan.
  const steps = read("max_recursion_steps", 101);
  const order = BOOK_STRATEGIES[read("character_strategy", 2) ?? -1];
  return {
    ...(budget !== undefined && budget <= 100 && { lore_budget_percent: budget }),
    ...(tokens && { lore_budget_tokens: tokens }),
    ...(minActivations !== undefined && { lore_min_activations: minActivations }),
    ...(depth && { lore_min_activations_depth: depth }),
    ...(steps && { lore_max_recursion: steps - 1 }),
    ...(order && { lore_order: order }),
    ...(typeof info.world_info_include_names === "boolean" && { lore_scans_names: info.world_info_include_names }),
  };
}

/** Reports whether reasoning is added to prompts, or marked otherwise than models mark it. */
function hasOwnReasoning({ add_to_prompts, auto_parse, prefix }: JsonObject): boolean {
  const mark = asText(prefix).trim();
  return add_to_prompts === true || (auto_parse === true && mark !== "" && splitReasoning(mark) === undefined);
}

function* nameOtherSettings(settings: JsonObject, source: string): Generator<ImportNote> {
  const found = OWN_TEXTS.filter((path) =>
    isFilled(path.split(".").reduce<unknown>((value, name) => asObject(value)[name], settings))
  );
  if (hasOwnReasoning(asObject(asObject(settings.power_user).reasoning))) found.push("power_user.reasoning");
  if (found.length > 0) yield createNamesNote(source, "tavern_own_settings", found);
  const others = Object.keys(settings).filter((name) =>
    !READ_PARTS.includes(name) && !SEARCHED_PARTS.includes(name) && isFilled(settings[name])
  );
  if (others.length > 0) yield createNamesNote(source, "tavern_settings", others);
}
