/** What a card contains besides what Parlor uses: see services/json/ledger.ts. All of it stays in the card. */
import { Ledger, type LedgerEntry, UNREAD } from "../../json/ledger.ts";
import { findUnknownMacros } from "../../json/macro_names.ts";
import { asArray, asObject, asText, isFilled, isJsonObject } from "../../json/type_guards.ts";
import { createBookLedger, LOREBOOK_LEDGER } from "../../lorebooks/lorebook_ledger.ts";
import type { Lorebook } from "../../lorebooks/lorebook_document.ts";
import { type Card, KNOWN_DATA_FIELDS, KNOWN_ROOT_FIELDS } from "./card.ts";

/** The kinds. */
export const CARD_LEDGER = {
  unreadable_part: "parts of the card that can't be read, kept as they are",
  regex_script: "regex scripts: they run in a chat once you allow them there",
  card_script: "scripts of another program, which are kept but not run",
  remote_asset: "images and sounds at web addresses, which aren't fetched",
  program_data: "data of other programs, kept without effect",
  unknown_field: "fields that Parlor doesn't know, kept without effect",
  unknown_macro: "macros that Parlor doesn't have: they're sent as written",
} as const;

/** The kinds of a card and its lorebook. */
export const WHOLE_CARD_LEDGER = { ...CARD_LEDGER, ...LOREBOOK_LEDGER };

/** A kind of entry in the ledger of a card. */
export type CardLedgerKind = keyof typeof CARD_LEDGER;

/** Keys of `extensions` that Parlor uses. */
const USED_EXTENSIONS = ["fav", "parlor", "world", "depth_prompt", "talkativeness"];
/** Fields of RisuAI's extension that are scripts. */
const RISU_SCRIPTS = ["customScripts", "triggerscript", "virtualscript", "backgroundHTML", "lua"];
/** Extensions that are scripts: the Tavern helper of SillyTavern. */
const SCRIPT_EXTENSIONS = ["tavern_helper", "TavernHelper_scripts"];

/** Returns the ledger of a card, without that of its lorebook. */
export function createCardLedger(card: Card): LedgerEntry<CardLedgerKind>[] {
  const ledger = new Ledger<CardLedgerKind>(CARD_LEDGER);
  const { data } = card;
  const { extensions } = data;
  for (const part of Object.keys(asObject(extensions[UNREAD]))) ledger.add("unreadable_part", { example: part });
  for (const [name, value] of Object.entries(extensions)) {
    if (!isFilled(value) || USED_EXTENSIONS.includes(name) || name.startsWith("parlor/")) continue;
    if (name === "regex_scripts") {
      for (const script of asArray(value)) ledger.add("regex_script", { example: asText(asObject(script).scriptName) });
    } else if (SCRIPT_EXTENSIONS.includes(name)) ledger.add("card_script", { example: name });
    else if (name === "risuai" && isJsonObject(value)) {
      for (const [field, part] of Object.entries(value)) {
        if (!isFilled(part)) continue;
        if (RISU_SCRIPTS.includes(field)) {
          ledger.add("card_script", { count: Math.max(1, asArray(part).length), example: `risuai: ${field}` });
        } else ledger.add("program_data", { example: `risuai: ${field}` });
      }
    } else ledger.add("program_data", { example: name });
  }
  for (const macro of findUnknownMacros(listTexts(card))) ledger.add("unknown_macro", { example: `{{${macro}}}` });
  for (const { uri, name } of asArray(data.assets).map(asObject)) {
    if (/^https?:/i.test(asText(uri))) ledger.add("remote_asset", { example: asText(name) || asText(uri) });
  }
  for (const [name, value] of Object.entries(data)) {
    if (isFilled(value) && !KNOWN_DATA_FIELDS.includes(name)) ledger.add("unknown_field", { example: name });
  }
  for (const [name, value] of Object.entries(card)) {
    if (isFilled(value) && !KNOWN_ROOT_FIELDS.includes(name)) ledger.add("unknown_field", { example: name });
  }
  return ledger.list();
}

/** Returns the ledger of a card and its lorebook. */
export function createWholeCardLedger(card: Card): LedgerEntry[] {
  const book = card.data.character_book as Lorebook | undefined;
  return [...createCardLedger(card), ...book === undefined ? [] : createBookLedger(book)];
}

/** Lists the texts that are sent to a model. */
function listTexts({ data }: Card): string[] {
  const { description, personality, scenario, first_mes, mes_example, system_prompt } = data;
  return [
    ...[description, personality, scenario, first_mes, mes_example, system_prompt, data.post_history_instructions],
    ...[...data.alternate_greetings, ...data.group_only_greetings],
    asText(asObject(data.extensions.depth_prompt).prompt),
    asText(asObject(asObject(data.extensions.parlor).note).text),
  ];
}
