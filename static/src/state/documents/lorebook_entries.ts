/** What the page reads and changes in an entry of a lorebook. What other programs keep in it stays. */
import type { CardBook, LorebookEntry } from "../../api/types.ts";

/** What a new entry begins with. */
export const EMPTY_ENTRY: LorebookEntry = {
  keys: [],
  content: "",
  enabled: true,
  insertion_order: 100,
  extensions: {},
};

/** Places in the prompt, by SillyTavern's numbers. */
export const ENTRY_POSITIONS = [
  "before_char",
  "after_char",
  "note_top",
  "note_bottom",
  "at_depth",
  "before_examples",
  "after_examples",
] as const;

/** A place in the prompt. */
export type EntryPosition = (typeof ENTRY_POSITIONS)[number];

/** How secondary keys decide, by SillyTavern's numbers. */
export const LOGICS = ["any", "not_all", "none", "all"] as const;

/** Who says an entry that stands among the messages, by SillyTavern's numbers. */
export const ROLES = ["system", "user", "assistant"] as const;

/** Gives the place an entry names; undefined where it names none. */
export function placeOf({ position, extensions }: LorebookEntry): EntryPosition | undefined {
  const number = extensions.position;
  const named = typeof number === "number" ? ENTRY_POSITIONS[number] : undefined;
  return named ?? (position === "before_char" || position === "after_char" ? position : undefined);
}

/** Gives the changes that put an entry in a place. A number is written only where the words of V3 do not do. */
export function setPosition(entry: LorebookEntry, place: EntryPosition | undefined): Partial<LorebookEntry> {
  const { position: before, ...extensions } = entry.extensions;
  if (place === undefined) return { position: undefined, extensions };
  const number = ENTRY_POSITIONS.indexOf(place);
  const isPlain = number < 2;
  return {
    position: place === "before_char" ? "before_char" : "after_char",
    extensions: isPlain && before === undefined ? extensions : { ...extensions, position: number },
  };
}

/** Says whether secondary keys count: without a word on it they do where there are some. */
export function isSelective({ selective, secondary_keys }: LorebookEntry): boolean {
  return selective ?? (secondary_keys ?? []).length > 0;
}

/** Gives a number of an entry's extensions. */
export function getExtensionNumber({ extensions }: LorebookEntry, field: string): number | undefined {
  const value = extensions[field];
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** Gives the changes that set a field of the extensions; undefined takes it out. */
export function setExtension(entry: LorebookEntry, field: string, value: unknown): Partial<LorebookEntry> {
  const { [field]: _, ...others } = entry.extensions;
  return { extensions: value === undefined ? others : { ...others, [field]: value } };
}

/** What an entry is called; empty where it has neither name nor key. */
export function getEntryTitle({ comment, name, keys }: LorebookEntry): string {
  return comment?.trim() || name?.trim() || keys.join(", ");
}

/** Gives the changes that name an entry, in the field that names it already. */
export function setEntryTitle({ comment, name }: LorebookEntry, title: string): Partial<LorebookEntry> {
  return name?.trim() && !comment?.trim() ? { name: title } : { comment: title };
}

/** An entry and its place in its book. */
export interface IndexedEntry {
  entry: LorebookEntry;
  index: number;
}

/** Finds the entries that hold all typed words in title, keys or text. */
export function searchEntries(book: CardBook, query: string): IndexedEntry[] {
  const words = query.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const entries = book.entries.map((entry, index) => ({ entry, index }));
  if (words.length === 0) return entries;
  return entries.filter(({ entry }) => {
    const { keys, secondary_keys = [], content } = entry;
    const text = [getEntryTitle(entry), ...keys, ...secondary_keys, content].join("\n").toLocaleLowerCase();
    return words.every((word) => text.includes(word));
  });
}
