/** Entries as the scan takes them: whatever a V2 or V3 lorebook, or SillyTavern in its `extensions`, says of one. */
import { type DecoratedContent, readDecorators } from "./decorators.ts";
import { type Lorebook, type LorebookEntry, type LorebookScope, SILLYTAVERN_FIELDS } from "./lorebook_document.ts";
import { asObject, type JsonObject } from "../json/type_guards.ts";
import { patternOf, type ScanKey } from "./scan_keys.ts";

/** A book that may add to a prompt. */
export interface ActivationBook {
  /** Names it in results and in the state; unique among the books of one scan. */
  id: string;
  name: string;
  /** In a tight budget a chat's book goes before a character's, that before a persona's, that before a global one. */
  scope: LorebookScope;
  /** A lorebook, or the `character_book` of a card. */
  book: Lorebook;
}

/** Where in the prompt an entry goes. `note_*` is around the author's note, `*_examples` around the example dialogue. */
export type EntryPosition =
  | "before_char"
  | "after_char"
  | "before_examples"
  | "after_examples"
  | "note_top"
  | "note_bottom"
  | "at_depth";

/** How secondary keys decide: any of them, not all, none, all. */
export type SecondaryLogic = "any" | "not_all" | "none" | "all";

/** Texts beside the messages that an entry can ask to have scanned. `always` is scanned for every entry. */
export type ScanSource =
  | "always"
  | "persona"
  | "description"
  | "personality"
  | "depth_prompt"
  | "scenario"
  | "creator_notes";

/** One entry, every field read. */
export interface ScanEntry extends DecoratedContent {
  owner: ActivationBook;
  /** Unique within its book: its own id, or its place. */
  id: string;
  name: string;
  /** Place in its book. */
  index: number;
  keys: ScanKey[];
  secondaryKeys: ScanKey[];
  logic: SecondaryLogic;
  additionalKeys: ScanKey[];
  excludeKeys: ScanKey[];
  isConstant: boolean;
  /** Percent. */
  probability: number;
  order: number;
  priority: number;
  position: EntryPosition;
  depth: number;
  role: "system" | "user" | "assistant";
  /** `undefined` follows the defaults. */
  scanDepth: number | undefined;
  /** Messages for which it stays after it fired; without end for a decorator. */
  sticky: number;
  /** Messages for which it then cannot fire. */
  cooldown: number;
  /** Messages there have to be. */
  delay: number;
  isRecursive: boolean;
  excludeRecursion: boolean;
  preventRecursion: boolean;
  /** Fires only while what fired is scanned, from this round on; 0 for any time. */
  delayUntilRecursion: number;
  groups: string[];
  /** Wins in its groups, by order. */
  groupOverride: boolean;
  groupWeight: number;
  useGroupScoring: boolean;
  ignoreBudget: boolean;
  sources: Set<ScanSource>;
  /** Kinds of generation it is for; empty for all. */
  triggers: string[];
  /** Characters it is for, or is not for. */
  characters: { names: string[]; isExcluded: boolean };
}

/** What holds where a book or an entry says nothing. */
export interface ScanDefaults {
  /** Messages. */
  scanDepth: number;
  isRecursive: boolean;
  isCaseSensitive: boolean;
  isWholeWord: boolean;
}

/** SillyTavern's defaults, except that keys match parts of words (docs/protocols/cards.md#lorebooks). */
export const SCAN_DEFAULTS: Readonly<ScanDefaults> = Object.freeze({
  scanDepth: 2,
  isRecursive: true,
  isCaseSensitive: false,
  isWholeWord: false,
});

const POSITIONS: Record<number, EntryPosition> = {
  0: "before_char",
  1: "after_char",
  2: "note_top",
  3: "note_bottom",
  4: "at_depth",
  5: "before_examples",
  6: "after_examples",
};
const LOGICS: SecondaryLogic[] = ["any", "not_all", "none", "all"];
const ROLES = ["system", "user", "assistant"] as const;
const SOURCES: Record<string, ScanSource> = {
  match_persona_description: "persona",
  match_character_description: "description",
  match_character_personality: "personality",
  match_character_depth_prompt: "depth_prompt",
  match_scenario: "scenario",
  match_creator_notes: "creator_notes",
};
const DEFAULT_DEPTH = 4;
const DEFAULT_WEIGHT = 100;
/** Groups of one entry; editors offer one. */
const MAX_GROUPS = 100;
/** Keys of one entry that are looked at. */
const MAX_KEYS = 1_000;
/** Keys of one book that are looked at; large worlds have some thousand. */
export const MAX_BOOK_KEYS = 100_000;

/** Reads the entries of a book that can fire at all: enabled ones with something to send. */
export function* scanEntries(owner: ActivationBook, defaults: ScanDefaults): Generator<ScanEntry, void, undefined> {
  const entries: unknown = owner.book.entries;
  if (!Array.isArray(entries)) return;
  const taken = new Set<string>();
  let keys = 0;
  for (const [index, entry] of entries.entries()) {
    if (typeof entry !== "object" || entry === null) continue;
    let id = typeof entry.id === "string" || typeof entry.id === "number" ? String(entry.id) : `#${index}`;
    if (taken.has(id)) id = `${id}#${index}`;
    taken.add(id);
    if (entry.enabled === false || typeof entry.content !== "string") continue;
    const read = scanEntry(owner, entry, { id, index }, defaults);
    keys += read.keys.length + read.secondaryKeys.length;
    if (keys > MAX_BOOK_KEYS) return;
    if (read.text.trim() !== "") yield read;
  }
}

function scanEntry(
  owner: ActivationBook,
  entry: LorebookEntry,
  { id, index }: { id: string; index: number },
  defaults: ScanDefaults,
): ScanEntry {
  const more = asObject(entry.extensions);
  const { decorators, text } = readDecorators(entry.content);
  const key = keyReader(entry, more, defaults);
  const position = decorators.position ??
    (decorators.depth !== undefined || decorators.reverseDepth !== undefined
      ? "at_depth"
      : POSITIONS[numberOf(more.position) ?? -1] ?? (entry.position === "after_char" ? "after_char" : "before_char"));
  return {
    ...{ owner, id, index, decorators, text, position },
    name: [entry.comment, entry.name, texts(entry.keys)[0]].find((name) => typeof name === "string" && name !== "") ??
      id,
    keys: texts(entry.keys).map(key),
    secondaryKeys: entry.selective === false ? [] : texts(entry.secondary_keys).map(key),
    logic: LOGICS[numberOf(more.selectiveLogic) ?? 0] ?? "any",
    additionalKeys: (decorators.additionalKeys ?? []).map(key),
    excludeKeys: (decorators.excludeKeys ?? []).map(key),
    isConstant: entry.constant === true,
    probability: more.useProbability === false ? 100 : numberOf(more.probability) ?? 100,
    order: numberOf(entry.insertion_order) ?? 0,
    priority: numberOf(entry.priority) ?? 0,
    depth: Math.max(0, Math.floor(decorators.depth ?? numberOf(more.depth) ?? DEFAULT_DEPTH)),
    role: decorators.role ?? ROLES[numberOf(more.role) ?? 0] ?? "system",
    scanDepth: decorators.scanDepth ?? numberOf(more.scan_depth) ?? numberOf(owner.book.scan_depth),
    sticky: decorators.keepActivateAfterMatch ? Infinity : numberOf(more.sticky) ?? 0,
    cooldown: decorators.dontActivateAfterMatch ? Infinity : numberOf(more.cooldown) ?? 0,
    delay: numberOf(more.delay) ?? 0,
    isRecursive: owner.book.recursive_scanning ?? defaults.isRecursive,
    excludeRecursion: more.exclude_recursion === true,
    preventRecursion: more.prevent_recursion === true,
    delayUntilRecursion: more.delay_until_recursion === true ? 1 : numberOf(more.delay_until_recursion) ?? 0,
    groups: typeof more.group === "string"
      ? more.group.split(",", MAX_GROUPS).map((name) => name.trim()).filter(Boolean)
      : [],
    groupOverride: more.group_override === true,
    groupWeight: Math.max(0, numberOf(more.group_weight) ?? DEFAULT_WEIGHT),
    useGroupScoring: more.use_group_scoring === true,
    ignoreBudget: more.ignore_budget === true,
    sources: new Set(Object.keys(SOURCES).filter((field) => more[field] === true).map((field) => SOURCES[field]!)),
    triggers: texts(more.triggers),
    characters: charactersOf(asObject(asObject(more[SILLYTAVERN_FIELDS]).characterFilter)),
  };
}

/**
 * A key is a pattern only if the entry has `use_regex` and the key has the form `/…/`: SillyTavern sets `use_regex` on every
 * entry, which would break keys such as `C++` (docs/protocols/cards.md#lorebooks).
 */
function keyReader(entry: LorebookEntry, more: JsonObject, defaults: ScanDefaults) {
  const isCaseSensitive = boolean(entry.case_sensitive) ?? boolean(more.case_sensitive) ?? defaults.isCaseSensitive;
  const isWholeWord = boolean(more.match_whole_words) ?? defaults.isWholeWord;
  return (text: string): ScanKey => {
    const pattern = entry.use_regex === true ? patternOf(text) : undefined;
    return { text, isCaseSensitive, isWholeWord, ...(pattern && { pattern }) };
  };
}

function charactersOf(filter: JsonObject): ScanEntry["characters"] {
  return { names: texts(filter.names), isExcluded: filter.isExclude === true };
}

function texts(value: unknown): string[] {
  return Array.isArray(value)
    ? value.slice(0, MAX_KEYS).filter((item) => typeof item === "string" && item.trim() !== "")
    : [];
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function boolean(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}
