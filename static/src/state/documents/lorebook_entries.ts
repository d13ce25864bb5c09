/** Reads and changes lorebook entries. Fields of other programs stay. */
import { containsAllTerms, foldForSearch } from "../../../../services/json/search_fold.ts";
import type { CardBook, LorebookEntry } from "../../api/types.ts";

/** Longest title made from content, in characters. */
const MAX_TITLE = 60;

/** A new entry. */
export const EMPTY_ENTRY: LorebookEntry = {
  keys: [],
  content: "",
  enabled: true,
  insertion_order: 100,
  extensions: {},
};

/** Positions in the prompt, by SillyTavern's numbers. */
export const ENTRY_POSITIONS = [
  "before_char",
  "after_char",
  "note_top",
  "note_bottom",
  "at_depth",
  "before_examples",
  "after_examples",
  "outlet",
] as const;

/** A position in the prompt. */
export type EntryPosition = (typeof ENTRY_POSITIONS)[number];

/** Logic of secondary keys, by SillyTavern's numbers. */
export const LOGICS = ["any", "not_all", "none", "all"] as const;

/** Role of an entry among the messages, by SillyTavern's numbers. */
export const ROLES = ["system", "user", "assistant"] as const;

/** Returns the position of an entry; undefined if it has none. */
export function findPosition({ position, extensions }: LorebookEntry): EntryPosition | undefined {
  const number = extensions.position;
  const named = typeof number === "number" ? ENTRY_POSITIONS[number] : undefined;
  return named ?? (position === "before_char" || position === "after_char" ? position : undefined);
}

/** Returns the changes that set an entry's position. A number is written only if V3 has no word for it. */
export function setPosition(entry: LorebookEntry, position: EntryPosition | undefined): Partial<LorebookEntry> {
  const { position: before, ...extensions } = entry.extensions;
  if (position === undefined) return { position: undefined, extensions };
  const number = ENTRY_POSITIONS.indexOf(position);
  const isPlain = number < 2;
  return {
    position: position === "before_char" ? "before_char" : "after_char",
    extensions: isPlain && before === undefined ? extensions : { ...extensions, position: number },
  };
}

/** Returns whether secondary keys apply: by default, if there are some. */
export function isSelective({ selective, secondary_keys }: LorebookEntry): boolean {
  return selective ?? (secondary_keys ?? []).length > 0;
}

/** Returns a number of an entry's extensions. */
export function getExtensionNumber({ extensions }: LorebookEntry, field: string): number | undefined {
  const value = extensions[field];
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** Returns the changes that set an extension; undefined removes it. */
export function setExtension(entry: LorebookEntry, field: string, value: unknown): Partial<LorebookEntry> {
  const { [field]: _, ...others } = entry.extensions;
  return { extensions: value === undefined ? others : { ...others, [field]: value } };
}

/** Returns the title that the user gave an entry, as written; empty without one. */
export function getOwnTitle({ comment, name }: LorebookEntry): string {
  return [comment, name].find((each) => each !== undefined && each.trim() !== "") ?? "";
}

/** Returns the title of an entry: its own, else its keys, else the first line of its content after decorators. */
export function getEntryTitle(entry: LorebookEntry): string {
  return getOwnTitle(entry).trim() || entry.keys.join(", ") || getFirstLine(entry.content);
}

function getFirstLine(content: string): string {
  const line = content.split("\n").find((line) => line.trim() !== "" && !line.startsWith("@@"))?.trim() ?? "";
  return line.length > MAX_TITLE ? `${line.slice(0, MAX_TITLE).replace(/\s\S*$/, "")}…` : line;
}

/** Returns the changes that name an entry, in the field that names it already. */
export function setEntryTitle({ comment, name }: LorebookEntry, title: string): Partial<LorebookEntry> {
  return name?.trim() && !comment?.trim() ? { name: title } : { comment: title };
}

/** An entry and its index in the lorebook. */
export interface IndexedEntry {
  entry: LorebookEntry;
  index: number;
}

/** Finds the entries that contain all words in title, keys or content. */
export function searchEntries(book: CardBook, query: string): IndexedEntry[] {
  const words = foldForSearch(query).split(/\s+/).filter(Boolean);
  const entries = book.entries.map((entry, index) => ({ entry, index }));
  if (words.length === 0) return entries;
  return entries.filter(({ entry }) => {
    const { keys, secondary_keys = [], content } = entry;
    const text = [getEntryTitle(entry), ...keys, ...secondary_keys, content].join("\n");
    return containsAllTerms(foldForSearch(text), words);
  });
}
