/**
 * The stored form of lorebooks: V3, with SillyTavern's additions in `extensions` under SillyTavern's names. Unknown
 * fields are preserved. SillyTavern's World Info is converted to it and back (docs/protocols/cards.md#lorebooks);
 * fields without such a name are stored next to them.
 */
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { asNumber, asObject, asText, asTexts, isJsonObject, type JsonObject } from "../json/type_guards.ts";

/** A lorebook, or the `character_book` of a card. Unknown fields are preserved. */
export interface Lorebook {
  name?: string;
  description?: string;
  /** Number of newest messages to scan. */
  scan_depth?: number;
  /** Token limit of the entries of this book together. */
  token_budget?: number;
  /** Also scans the content of active entries. */
  recursive_scanning?: boolean;
  extensions?: Record<string, unknown>;
  entries: LorebookEntry[];
  [field: string]: unknown;
}

/** One entry. */
export interface LorebookEntry {
  keys: string[];
  content: string;
  enabled: boolean;
  /** Lower comes first. */
  insertion_order: number;
  extensions: Record<string, unknown>;
  /** Keys written as `/…/flags` are regular expressions. */
  use_regex?: boolean;
  case_sensitive?: boolean;
  /** Always active. */
  constant?: boolean;
  selective?: boolean;
  secondary_keys?: string[];
  position?: string;
  /** The lowest is dropped first if the budget is exceeded. */
  priority?: number;
  id?: number | string;
  name?: string;
  comment?: string;
  [field: string]: unknown;
}

/** Where a book applies. */
export type LorebookScope = "global" | "character" | "persona" | "chat";

/** Key in `extensions` for SillyTavern fields without a V3 equivalent. */
export const SILLYTAVERN_FIELDS = "parlor/sillytavern";

/** Entry fields that SillyTavern stores in `extensions` when it writes a card. */
const EXTENSION_FIELDS: Record<string, string> = {
  position: "position",
  excludeRecursion: "exclude_recursion",
  displayIndex: "display_index",
  probability: "probability",
  useProbability: "useProbability",
  depth: "depth",
  selectiveLogic: "selectiveLogic",
  outletName: "outlet_name",
  group: "group",
  groupOverride: "group_override",
  groupWeight: "group_weight",
  preventRecursion: "prevent_recursion",
  delayUntilRecursion: "delay_until_recursion",
  scanDepth: "scan_depth",
  matchWholeWords: "match_whole_words",
  useGroupScoring: "use_group_scoring",
  caseSensitive: "case_sensitive",
  automationId: "automation_id",
  role: "role",
  vectorized: "vectorized",
  sticky: "sticky",
  cooldown: "cooldown",
  delay: "delay",
  matchPersonaDescription: "match_persona_description",
  matchCharacterDescription: "match_character_description",
  matchCharacterPersonality: "match_character_personality",
  matchCharacterDepthPrompt: "match_character_depth_prompt",
  matchScenario: "match_scenario",
  matchCreatorNotes: "match_creator_notes",
  triggers: "triggers",
  ignoreBudget: "ignore_budget",
};
const SILLYTAVERN_NAMES = Object.fromEntries(Object.entries(EXTENSION_FIELDS).map(([theirs, ours]) => [ours, theirs]));

/** Entry fields with a V3 equivalent. */
const MAPPED_FIELDS = ["uid", "key", "keysecondary", "comment", "content", "constant", "selective", "order", "disable"];
const MAPPED_V3_FIELDS = [
  ...["id", "keys", "secondary_keys", "comment", "content", "constant", "selective", "insertion_order", "enabled"],
  ...["position", "use_regex", "extensions"],
];

/** Key in SillyTavern's `extensions` for V3 fields without an equivalent there. */
const V3_FIELDS = "parlor/v3";
/** Key for the entry's key in its file, if that isn't its `uid`. */
const ENTRY_KEY = "parlor/place";
const DEFAULT_ORDER = 100;

/** Reports whether JSON is a World Info file: entries by number, or a list of SillyTavern entries. */
export function isSillyTavernLorebook(json: JsonObject): boolean {
  if (isJsonObject(json.entries)) return true;
  const [first] = Array.isArray(json.entries) ? json.entries : [];
  return isJsonObject(first) && Array.isArray(first.key) && !("keys" in first);
}

/** Parses a World Info file. Anything that isn't an entry is skipped. */
export function parseSillyTavernLorebook(file: JsonObject): Lorebook {
  const entries = Object.entries(file.entries as JsonObject).filter((entry): entry is [string, JsonObject] =>
    isJsonObject(entry[1])
  );
  const own = pickFields(file, (field) => field !== "entries");
  return { ...own, entries: entries.map(([key, entry]) => parseEntry(key, entry)) };
}

/** Entries that are converted at a time. */
const STEP_ENTRIES = 50;

/** Converts a book to a World Info file. */
export async function toSillyTavernLorebook(book: Lorebook): Promise<JsonObject> {
  const entries: [string, JsonObject][] = [];
  const usedIds = new Set(book.entries.flatMap(({ id }) => asNumber(id) ?? []));
  let next = 0;
  const free = () => {
    while (usedIds.has(next)) next++;
    return next++;
  };
  const keys = new Set<string>();
  for (const entry of book.entries) {
    const uid = asNumber(entry.id) ?? free();
    const originalKey = asObject(entry.extensions[SILLYTAVERN_FIELDS])[ENTRY_KEY];
    let key = typeof originalKey === "string" ? originalKey : String(uid);
    if (keys.has(key)) key = String(free());
    keys.add(key);
    entries.push([key, toSillyTavernEntry(uid, entry)]);
    if (entries.length % STEP_ENTRIES === 0) await yieldIfTickUsedUp();
  }
  return {
    ...pickFields(book, (field) => field !== "entries"),
    // Not an assignment, which would fail for `__proto__`.
    entries: Object.fromEntries(entries),
  };
}

function parseEntry(key: string, entry: JsonObject): LorebookEntry {
  const more = pickFields(entry, (field) => Object.hasOwn(EXTENSION_FIELDS, field));
  const theirs = asObject(entry.extensions);
  const others = pickFields(
    entry,
    (field) => !Object.hasOwn(EXTENSION_FIELDS, field) && !MAPPED_FIELDS.includes(field) && field !== "extensions",
  );
  const { [V3_FIELDS]: v3, ...extensions } = theirs;
  if (Object.keys(extensions).length > 0) others.extensions = extensions;
  const uid = asNumber(entry.uid);
  if (String(uid) !== key) others[ENTRY_KEY] = key;
  return {
    use_regex: true,
    ...(uid !== undefined && { id: uid }),
    keys: asTexts(entry.key),
    ...("keysecondary" in entry && { secondary_keys: asTexts(entry.keysecondary) }),
    ...pickFields(entry, (field) => ["comment", "constant", "selective"].includes(field)),
    content: asText(entry.content),
    insertion_order: asNumber(entry.order) ?? DEFAULT_ORDER,
    enabled: entry.disable !== true,
    ...("position" in entry && { position: entry.position === 0 ? "before_char" : "after_char" }),
    ...asObject(v3),
    extensions: {
      ...asObject(asObject(v3).extensions),
      ...Object.fromEntries(Object.entries(more).map(([field, value]) => [EXTENSION_FIELDS[field]!, value])),
      ...nestUnder(SILLYTAVERN_FIELDS, others),
    },
  };
}

function toSillyTavernEntry(uid: number, entry: LorebookEntry): JsonObject {
  const { [SILLYTAVERN_FIELDS]: original, ...extensions } = entry.extensions;
  const { [ENTRY_KEY]: _, extensions: theirs, ...others } = asObject(original);
  const known = pickFields(extensions, (field) => Object.hasOwn(SILLYTAVERN_NAMES, field));
  const foreign = pickFields(extensions, (field) => !Object.hasOwn(SILLYTAVERN_NAMES, field));
  const v3 = pickFields(entry, (field) => !MAPPED_V3_FIELDS.includes(field));
  if (entry.use_regex !== true) v3.use_regex = entry.use_regex ?? false;
  if (typeof entry.id === "string") v3.id = entry.id;
  // Restored when Parlor imports the file again. Other programs preserve or ignore it.
  if (Object.keys(foreign).length > 0) v3.extensions = foreign;
  const v3Extensions = { ...asObject(theirs), ...nestUnder(V3_FIELDS, v3) };
  return {
    ...others,
    uid,
    key: entry.keys,
    ...("secondary_keys" in entry && { keysecondary: entry.secondary_keys }),
    ...pickFields(entry, (field) => ["comment", "constant", "selective"].includes(field)),
    content: entry.content,
    order: entry.insertion_order,
    disable: !entry.enabled,
    ...("position" in entry && { position: entry.position === "after_char" ? 1 : 0 }),
    ...Object.fromEntries(Object.entries(known).map(([field, value]) => [SILLYTAVERN_NAMES[field]!, value])),
    ...(Object.keys(v3Extensions).length > 0 && { extensions: v3Extensions }),
  };
}

function pickFields(from: JsonObject, isWanted: (field: string) => boolean): JsonObject {
  return Object.fromEntries(Object.entries(from).filter(([field]) => isWanted(field)));
}

function nestUnder(name: string, fields: JsonObject): JsonObject {
  return Object.keys(fields).length === 0 ? {} : { [name]: fields };
}
