/**
 * Parses lorebook entries into the form used by a scan: SillyTavern's fields in `extensions`, and V3 decorators, lines
 * `@@name value` at the start of the content that control activation and position.
 */
import { type Lorebook, type LorebookEntry, type LorebookScope, SILLYTAVERN_FIELDS } from "./lorebook_document.ts";
import { asObject, asText, type JsonObject } from "../json/type_guards.ts";
import { parsePattern, type ScanKey } from "./scan_keys.ts";

/** A book that takes part in a scan. */
export interface ActivationBook {
  /** Identifies the book in results and state; unique within a scan. */
  id: string;
  name: string;
  /** With a tight budget, chat books come first, then persona, character and global ones. */
  scope: LorebookScope;
  /** A lorebook, or the `character_book` of a card. */
  book: Lorebook;
}

/**
 * Position in the prompt: `note_*` is around the author's note, `*_examples` around the example dialogue. An `outlet` is
 * where a macro names it.
 */
export type EntryPosition =
  | "before_char"
  | "after_char"
  | "before_examples"
  | "after_examples"
  | "note_top"
  | "note_bottom"
  | "at_depth"
  | "outlet";

/** How secondary keys are combined. */
export type SecondaryLogic = "any" | "not_all" | "none" | "all";

/** Texts besides messages that an entry can scan. `always` is scanned for every entry. */
export type LorebookScanSource =
  | "always"
  | "persona"
  | "description"
  | "personality"
  | "depth_prompt"
  | "scenario"
  | "creator_notes";

/** One parsed entry. */
export interface ScanEntry extends DecoratedContent {
  owner: ActivationBook;
  /** Unique within its book: its own id, or its index. */
  id: string;
  name: string;
  /** Index in its book. */
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
  /** Name of its outlet; only for `outlet`. */
  outlet: string;
  depth: number;
  role: "system" | "user" | "assistant";
  /** `undefined` uses the depth of the book. */
  scanDepth: number | undefined;
  /** `undefined` uses the default. */
  bookScanDepth: number | undefined;
  /** Number of messages for which the entry stays active; infinite if set by a decorator. */
  sticky: number;
  /** Whether it stays active until the chat is trimmed, once its keys were found. */
  isKept: boolean;
  /** Number of messages after that during which it can't become active. */
  cooldown: number;
  /** Minimum number of messages. */
  delay: number;
  isRecursive: boolean;
  excludeRecursion: boolean;
  preventRecursion: boolean;
  /** Only active in recursive scans. Levels are scanned one after another, the lowest one first; 0 for any scan. */
  delayUntilRecursion: number;
  groups: string[];
  /** Wins in its groups, by order. */
  groupOverride: boolean;
  groupWeight: number;
  useGroupScoring: boolean;
  ignoreBudget: boolean;
  sources: Set<LorebookScanSource>;
  /** Generation types it applies to; empty for all. */
  triggers: string[];
  /** Limits the entry to characters with one of the names and one of the tags, or to all others. */
  characters: { names: string[]; tags: string[]; isExcluded: boolean };
}

/** Defaults for books and entries that don't set a field. */
export interface ScanDefaults {
  /** In messages. */
  scanDepth: number;
  isRecursive: boolean;
  isCaseSensitive: boolean;
  isWholeWord: boolean;
  /** Keeps what was found until the chat is trimmed. */
  keepsFound: boolean;
}

/** Key in a book's `extensions`: overrides `keepsFound`. */
const KEEP_FOUND = "parlor_keep_found";

/** SillyTavern's defaults, except that keys match parts of words (docs/protocols/cards.md#lorebooks). */
export const SCAN_DEFAULTS: Readonly<ScanDefaults> = Object.freeze({
  scanDepth: 2,
  isRecursive: true,
  isCaseSensitive: false,
  isWholeWord: false,
  keepsFound: false,
});

const POSITIONS: Record<number, EntryPosition> = {
  0: "before_char",
  1: "after_char",
  2: "note_top",
  3: "note_bottom",
  4: "at_depth",
  5: "before_examples",
  6: "after_examples",
  7: "outlet",
};
const LOGICS: SecondaryLogic[] = ["any", "not_all", "none", "all"];
const ROLES = ["system", "user", "assistant"] as const;
const SOURCES: Record<string, LorebookScanSource> = {
  match_persona_description: "persona",
  match_character_description: "description",
  match_character_personality: "personality",
  match_character_depth_prompt: "depth_prompt",
  match_scenario: "scenario",
  match_creator_notes: "creator_notes",
};
const DEFAULT_DEPTH = 4;
const DEFAULT_WEIGHT = 100;
/** Maximum number of characters of a name that is the start of the content. */
const MAX_NAME_CHARS = 60;
/** Maximum number of groups per entry; editors offer one. */
const MAX_GROUPS = 100;
/** Maximum number of keys used per entry. */
const MAX_KEYS = 1_000;
/** Maximum number of keys used per book; large books have a few thousand. */
export const MAX_BOOK_KEYS = 100_000;

/** Parses the entries that can become active: enabled ones with content or in a group. */
export function* readScanEntries(owner: ActivationBook, defaults: ScanDefaults): Generator<ScanEntry, void, undefined> {
  const entries: unknown = owner.book.entries;
  if (!Array.isArray(entries)) return;
  const usedIds = new Set<string>();
  let keys = 0;
  for (const [index, entry] of entries.entries()) {
    if (typeof entry !== "object" || entry === null) continue;
    let id = typeof entry.id === "string" || typeof entry.id === "number" ? String(entry.id) : `#${index}`;
    if (usedIds.has(id)) id = `${id}#${index}`;
    usedIds.add(id);
    if (entry.enabled === false || typeof entry.content !== "string") continue;
    const read = toScanEntry(owner, entry, { id, index }, defaults);
    keys += read.keys.length + read.secondaryKeys.length;
    if (keys > MAX_BOOK_KEYS) return;
    // One without content may win in a group, so that nothing is sent.
    if (read.text.trim() !== "" || read.groups.length > 0) yield read;
  }
}

/** Reads the levels of recursion that entries wait for, also of those that can't become active. */
export function* readRecursionLevels({ book }: ActivationBook): Generator<number, void, undefined> {
  const entries: unknown = book.entries;
  if (!Array.isArray(entries)) return;
  for (const entry of entries) yield toRecursionLevel(asObject(asObject(entry).extensions));
}

function toRecursionLevel({ delay_until_recursion: delay }: Record<string, unknown>): number {
  return delay === true ? 1 : toNumber(delay) ?? 0;
}

function toScanEntry(
  owner: ActivationBook,
  entry: LorebookEntry,
  { id, index }: { id: string; index: number },
  defaults: ScanDefaults,
): ScanEntry {
  const more = asObject(entry.extensions);
  const { decorators, text } = parseDecorators(entry.content);
  const key = createKeyReader(entry, more, defaults);
  const position = decorators.position ??
    (decorators.depth !== undefined || decorators.reverseDepth !== undefined
      ? "at_depth"
      : POSITIONS[toNumber(more.position) ?? -1] ?? (entry.position === "after_char" ? "after_char" : "before_char"));
  return {
    owner,
    id,
    index,
    decorators,
    text,
    position,
    name: getEntryName(entry, text),
    keys: toTexts(entry.keys).map(key),
    secondaryKeys: entry.selective === false ? [] : toTexts(entry.secondary_keys).map(key),
    logic: LOGICS[toNumber(more.selectiveLogic) ?? 0] ?? "any",
    additionalKeys: (decorators.additionalKeys ?? []).map(key),
    excludeKeys: (decorators.excludeKeys ?? []).map(key),
    outlet: asText(more.outlet_name),
    isConstant: entry.constant === true,
    probability: more.useProbability === false ? 100 : toNumber(more.probability) ?? 100,
    order: toNumber(entry.insertion_order) ?? 0,
    priority: toNumber(entry.priority) ?? 0,
    depth: Math.max(0, Math.floor(decorators.depth ?? toNumber(more.depth) ?? DEFAULT_DEPTH)),
    role: decorators.role ?? ROLES[toNumber(more.role) ?? 0] ?? "system",
    scanDepth: decorators.scanDepth ?? toNumber(more.scan_depth),
    bookScanDepth: toNumber(owner.book.scan_depth),
    isKept: entry.constant !== true && (toBoolean(asObject(owner.book.extensions)[KEEP_FOUND]) ?? defaults.keepsFound),
    sticky: decorators.keepActivateAfterMatch ? Infinity : toNumber(more.sticky) ?? 0,
    cooldown: decorators.dontActivateAfterMatch ? Infinity : toNumber(more.cooldown) ?? 0,
    delay: toNumber(more.delay) ?? 0,
    isRecursive: owner.book.recursive_scanning ?? defaults.isRecursive,
    excludeRecursion: more.exclude_recursion === true,
    preventRecursion: more.prevent_recursion === true,
    delayUntilRecursion: toRecursionLevel(more),
    groups: typeof more.group === "string"
      ? more.group.split(",", MAX_GROUPS).map((name) => name.trim()).filter(Boolean)
      : [],
    groupOverride: more.group_override === true,
    groupWeight: Math.max(0, toNumber(more.group_weight) ?? DEFAULT_WEIGHT),
    useGroupScoring: more.use_group_scoring === true,
    ignoreBudget: more.ignore_budget === true,
    sources: new Set(Object.keys(SOURCES).filter((field) => more[field] === true).map((field) => SOURCES[field]!)),
    triggers: toTexts(more.triggers),
    characters: parseCharacterFilter(asObject(asObject(more[SILLYTAVERN_FIELDS]).characterFilter)),
  };
}

/** Returns the comment, name or first key of an entry; without these, the start of its content. */
function getEntryName({ comment, name, keys }: LorebookEntry, text: string): string {
  return [comment, name, toTexts(keys)[0]].find((each) => typeof each === "string" && each !== "") ??
    text.trim().split("\n", 1)[0]!.slice(0, MAX_NAME_CHARS).toWellFormed();
}

/**
 * A key is a pattern only if the entry has `use_regex` and the key has the form `/…/`: SillyTavern sets `use_regex` on every
 * entry, which would break keys such as `C++` (docs/protocols/cards.md#lorebooks).
 */
function createKeyReader(entry: LorebookEntry, more: JsonObject, defaults: ScanDefaults) {
  const isCaseSensitive = toBoolean(entry.case_sensitive) ?? toBoolean(more.case_sensitive) ?? defaults.isCaseSensitive;
  const isWholeWord = toBoolean(more.match_whole_words) ?? defaults.isWholeWord;
  return (text: string): ScanKey => {
    const pattern = entry.use_regex === true ? parsePattern(text) : undefined;
    return { text, isCaseSensitive, isWholeWord, ...(pattern && { pattern }) };
  };
}

function parseCharacterFilter(filter: JsonObject): ScanEntry["characters"] {
  return { names: toTexts(filter.names), tags: toTexts(filter.tags), isExcluded: filter.isExclude === true };
}

function toTexts(value: unknown): string[] {
  return Array.isArray(value)
    ? value.slice(0, MAX_KEYS).filter((item) => typeof item === "string" && item.trim() !== "")
    : [];
}

function toNumber(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function toBoolean(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** The decorators of one entry. Absent ones aren't set. */
export interface Decorators {
  /** Minimum number of character messages. */
  activateOnlyAfter?: number;
  /** The number of character messages must be a multiple of this. */
  activateOnlyEvery?: number;
  keepActivateAfterMatch?: true;
  dontActivateAfterMatch?: true;
  depth?: number;
  /** Depth counted from the first message. */
  reverseDepth?: number;
  role?: "system" | "user" | "assistant";
  scanDepth?: number;
  /** Only active if this greeting started the chat; 0 is `first_mes`. */
  isGreeting?: number;
  position?: "before_char" | "after_char";
  ignoreOnMaxContext?: true;
  additionalKeys?: string[];
  excludeKeys?: string[];
  activate?: true;
  dontActivate?: true;
  disableUiPrompt?: UiPrompt;
}

/** A prompt that decorators can disable. */
export type UiPrompt = "system_prompt" | "post_history_instructions";

/** Content of an entry, split. */
export interface DecoratedContent {
  decorators: Decorators;
  /** The content without decorators. */
  text: string;
}

/** Parses the value of a decorator. @returns `undefined` if the value is invalid. */
type Reader = (value: string) => Partial<Decorators> | undefined;

/** V3 requires at least five fallbacks in a row. */
const MAX_LINES = 200;

/**
 * The decorators that apply to chats. Others are treated as unknown, so that their fallbacks apply: `instruct_depth`,
 * `reverse_instruct_depth` and `instruct_scan_depth` count tokens of a text without messages; `is_user_icon` needs
 * cards that replace personas.
 */
const READERS = new Map<string, Reader>(Object.entries<Reader>({
  activate_only_after: readNumber((activateOnlyAfter) => ({ activateOnlyAfter })),
  activate_only_every: readNumber((activateOnlyEvery) => activateOnlyEvery > 0 ? { activateOnlyEvery } : undefined),
  keep_activate_after_match: () => ({ keepActivateAfterMatch: true }),
  dont_activate_after_match: () => ({ dontActivateAfterMatch: true }),
  depth: readNumber((depth) => ({ depth })),
  reverse_depth: readNumber((reverseDepth) => ({ reverseDepth })),
  role: (value) => value === "system" || value === "user" || value === "assistant" ? { role: value } : undefined,
  scan_depth: readNumber((scanDepth) => ({ scanDepth })),
  is_greeting: readNumber((isGreeting) => ({ isGreeting })),
  position: (value) =>
    value === "before_desc"
      ? { position: "before_char" }
      : value === "after_desc"
      ? { position: "after_char" }
      : undefined,
  ignore_on_max_context: () => ({ ignoreOnMaxContext: true }),
  additional_keys: readList((additionalKeys) => ({ additionalKeys })),
  exclude_keys: readList((excludeKeys) => ({ excludeKeys })),
  activate: () => ({ activate: true }),
  dont_activate: () => ({ dontActivate: true }),
  disable_ui_prompt: (value) =>
    value === "system_prompt" || value === "post_history_instructions" ? { disableUiPrompt: value } : undefined,
}));

/**
 * Splits decorators from an entry's content. All decorator lines are removed, including unknown ones.
 *
 * If several have the same name, the first one applies. `@@@name` is a fallback that applies if the line above it is
 * unknown or invalid.
 */
export function parseDecorators(content: string): DecoratedContent {
  let decorators: Decorators = {};
  let text = content;
  let isSettled = true;
  for (let lines = 0; lines < MAX_LINES; lines++) {
    const match = /^\s*(@@@?)([A-Za-z_]+)[^\S\n]*([^\n]*)(?:\n|$)/.exec(text);
    if (match === null) break;
    text = text.slice(match[0].length);
    const isFallback = match[1] === "@@@";
    if (isFallback && isSettled) continue;
    const decorator = READERS.get(match[2]!.toLowerCase())?.(match[3]!.trim());
    isSettled = decorator !== undefined;
    if (decorator !== undefined) decorators = { ...decorator, ...decorators };
  }
  return { decorators, text: text === content ? content : text.replace(/^\s*\n/, "") };
}

function readNumber(use: (value: number) => Partial<Decorators> | undefined): Reader {
  return (value) => /^-?\d{1,9}(\.\d{1,9})?$/.test(value) ? use(Math.max(0, Math.floor(Number(value)))) : undefined;
}

function readList(use: (values: string[]) => Partial<Decorators>): Reader {
  return (value) => {
    const values = value.split(",").map((item) => item.trim()).filter((item) => item !== "");
    return values.length === 0 ? undefined : use(values);
  };
}
