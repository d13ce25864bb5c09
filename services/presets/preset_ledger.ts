/** What a preset contains besides what Parlor uses: see services/json/ledger.ts. All of it stays in the preset. */
import { Ledger, type LedgerEntry } from "../json/ledger.ts";
import { findUnknownMacros } from "../json/macro_names.ts";
import { asArray, asObject, asText, isFilled } from "../json/type_guards.ts";
import { isPromptMarker, type PresetDocument, readLogitBias, USED_FIELDS } from "./preset.ts";

/** The kinds. */
export const PRESET_LEDGER = {
  preset_regex_script: "regex scripts: they run in a chat once you allow them there",
  preset_logit_bias: "logit bias: servers other than llama.cpp only use token IDs, and some have none",
  preset_marker: "prompts that stand for a part of the chat that Parlor doesn't know",
  preset_connection: "settings of SillyTavern's connection: connections in Parlor have their own",
  preset_setting: "settings without effect in Parlor, kept for export",
  unknown_macro: "macros that Parlor doesn't have: they're sent as written",
} as const;

/** A kind of entry in the ledger of a preset. */
export type PresetLedgerKind = keyof typeof PRESET_LEDGER;

/** Fields of SillyTavern's files that choose a server or a model. */
const CONNECTION_FIELD =
  /_model$|^(custom|openrouter|reverse_proxy|proxy|vertexai|azure)(_|$)|^(chat_completion_source|max_context_unlocked|stream_openai|show_external_models|bypass_status_check)$/;
/** The name of a file, and SillyTavern's own bookkeeping. */
const IGNORED_FIELDS = ["name", "preset_settings_openai", "logit_bias", "bias_presets"];
/** SillyTavern's name for a preset without logit bias. */
const NO_BIAS = "Default (none)";

/** Prompts per step. */
const STEP_PROMPTS = 20;

/** Returns the ledger of a preset, in steps. */
export function* collectPresetLedger(
  { rest, prompts }: PresetDocument,
): Generator<void, LedgerEntry<PresetLedgerKind>[]> {
  const ledger = new Ledger<PresetLedgerKind>(PRESET_LEDGER);
  const macros = new Set<string>();
  for (const [n, { identifier, marker, name, content }] of prompts.entries()) {
    for (const macro of findUnknownMacros([asText(content)])) macros.add(macro);
    if (n % STEP_PROMPTS === 0) yield;
    if (marker === true && !isPromptMarker(identifier)) ledger.add("preset_marker", { example: name || identifier });
  }
  for (const macro of [...macros].sort()) ledger.add("unknown_macro", { example: `{{${macro}}}` });
  const biases = readLogitBias(rest);
  for (const { text } of biases) ledger.add("preset_logit_bias", { example: text });
  for (const [field, value] of Object.entries(rest)) {
    // The list that it names is among the settings of SillyTavern, not in the file.
    const isBias = field === "bias_preset_selected";
    if (isBias && (value === NO_BIAS || biases.length > 0 || Array.isArray(rest.logit_bias))) continue;
    if (!isFilled(value) || USED_FIELDS.includes(field) || IGNORED_FIELDS.includes(field)) continue;
    if (CONNECTION_FIELD.test(field)) ledger.add("preset_connection", { example: field });
    else if (field !== "extensions") ledger.add("preset_setting", { example: field });
    else {
      for (const [name, own] of Object.entries(asObject(value))) {
        if (!isFilled(own)) continue;
        if (name !== "regex_scripts") ledger.add("preset_setting", { example: `extensions: ${name}` });
        else {
          for (const script of asArray(own)) {
            ledger.add("preset_regex_script", { example: asText(asObject(script).scriptName) });
          }
        }
      }
    }
  }
  return ledger.list();
}
