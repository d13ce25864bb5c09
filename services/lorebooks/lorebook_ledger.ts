/** What a lorebook contains besides what Parlor uses: see services/json/ledger.ts. */
import { runAtOnce } from "../async/delay.ts";
import { Ledger, type LedgerEntry, UNREAD } from "../json/ledger.ts";
import { findUnknownMacros } from "../json/macro_names.ts";
import { asArray, asObject, asText, isJsonObject, type JsonObject } from "../json/type_guards.ts";
import type { Lorebook, LorebookEntry } from "./lorebook_document.ts";

/** The kinds. The first one is only known while a file is imported; the others show in the book itself. */
export const LOREBOOK_LEDGER = {
  empty_entry_left_out: "entries without keys and text, which aren't imported",
  empty_entry: "entries without keys and text, which have no effect",
  unreadable_entry: "entries that can't be read, kept as they are",
  vectorized: "entries that SillyTavern also finds by meaning: here they're found by their keys",
  automation: "automations of entries, which aren't run",
  foreign_book_settings: "settings of lorebooks that only work in another program, kept for export",
  unknown_macro: "macros that Parlor doesn't have: they're sent as written",
} as const;

/** A kind of entry in the ledger of a lorebook. */
export type LorebookLedgerKind = keyof typeof LOREBOOK_LEDGER;

/** Programs whose own settings a converted book keeps in `extensions`. */
const PROGRAMS = ["novelai"];

/** Reports whether an entry has neither keys nor text. */
function isEmptyEntry({ keys, content }: LorebookEntry): boolean {
  return content.trim() === "" && keys.every((key) => key.trim() === "");
}

/** Removes the entries without keys and text. @returns Their ledger as well. */
export function removeEmptyEntries(book: Lorebook): { book: Lorebook; ledger: LedgerEntry<LorebookLedgerKind>[] } {
  const ledger = new Ledger<LorebookLedgerKind>(LOREBOOK_LEDGER);
  const entries = book.entries.filter((entry) => {
    if (!isEmptyEntry(entry)) return true;
    ledger.add("empty_entry_left_out", { example: getEntryName(entry) });
    return false;
  });
  return { book: ledger.list().length === 0 ? book : { ...book, entries }, ledger: ledger.list() };
}

/** Returns the ledger of a book in its stored form, or of the book in a card. */
export function createBookLedger(book: Lorebook): LedgerEntry<LorebookLedgerKind>[] {
  return runAtOnce(collectBookLedger(book));
}

/** Entries per step. */
const STEP_ENTRIES = 50;

/** As `createBookLedger`, in steps. */
export function* collectBookLedger(book: Lorebook): Generator<void, LedgerEntry<LorebookLedgerKind>[]> {
  const ledger = new Ledger<LorebookLedgerKind>(LOREBOOK_LEDGER);
  const unread = asArray(asObject(asObject(book.extensions)[UNREAD]).entries);
  if (unread.length > 0) {
    ledger.add("unreadable_entry", { count: unread.length, example: JSON.stringify(unread[0]) });
  }
  addForeign(ledger, asObject(book.extensions));
  const macros = new Set<string>();
  for (const [n, entry] of book.entries.entries()) {
    for (const macro of findUnknownMacros([entry.content, ...entry.keys])) macros.add(macro);
    if (n % STEP_ENTRIES === 0) yield;
    const example = getEntryName(entry);
    const extensions = asObject(entry.extensions);
    if (isEmptyEntry(entry)) ledger.add("empty_entry", { example });
    if (extensions.vectorized === true) ledger.add("vectorized", { example });
    if (asText(extensions.automation_id) !== "") {
      ledger.add("automation", { example: asText(extensions.automation_id) });
    }
    addForeign(ledger, extensions);
  }
  for (const macro of [...macros].sort()) ledger.add("unknown_macro", { example: `{{${macro}}}` });
  return ledger.list();
}

function addForeign(ledger: Ledger<LorebookLedgerKind>, extensions: JsonObject): void {
  for (const program of PROGRAMS) {
    if (!isJsonObject(extensions[program])) continue;
    for (const field of Object.keys(extensions[program])) {
      ledger.add("foreign_book_settings", { example: `${program}: ${field}` });
    }
  }
}

function getEntryName({ comment, name, id, keys, content }: LorebookEntry): string | undefined {
  const number = typeof id === "number" ? `#${id}` : asText(id);
  return [asText(comment), asText(name), keys.join(", "), content, number].find((text) => text.trim() !== "");
}
