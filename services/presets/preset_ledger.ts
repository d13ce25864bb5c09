/** What a preset contains besides what Parlor uses: see services/json/ledger.ts. All of it stays in the preset. */
import { Ledger, type LedgerEntry } from "../json/ledger.ts";
import { findUnknownMacros } from "../json/macro_names.ts";
import { asArray, asObject, asText, isFilled } from "../json/type_guards.ts";
import { isPromptMarker, type PresetDocument, USED_FIELDS } from "./preset.ts";

/** The kinds. */
export const PRESET_LEDGER = {
  preset_regex_script: "regex scripts, which are kept but not run",
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
const IGNORED_FIELDS = ["name", "preset_settings_openai", "bias_preset_selected"];

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
  for (const [field, value] of Object.entries(rest)) {
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
