/**
 * Converts between SillyTavern's World Info and our lorebooks. Its fields are in `extensions` under its own names
 * (docs/protocols/cards.md#lorebooks); fields without such a name are stored next to them.
 */
import { asNumber, asObject, asText, asTexts, isJsonObject, type JsonObject } from "../json/type_guards.ts";
import { type Lorebook, type LorebookEntry, SILLYTAVERN_FIELDS } from "./lorebook_document.ts";

/** Fields of an entry that SillyTavern keeps in `extensions` when it writes a card. */
const IN_EXTENSIONS: Record<string, string> = {
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
const OUT_OF_EXTENSIONS = Object.fromEntries(Object.entries(IN_EXTENSIONS).map(([theirs, ours]) => [ours, theirs]));

/** Fields of an entry that have a place of their own in V3. */
const MAPPED = ["uid", "key", "keysecondary", "comment", "content", "constant", "selective", "order", "disable"];
const MAPPED_HERE = [
  ...["id", "keys", "secondary_keys", "comment", "content", "constant", "selective", "insertion_order", "enabled"],
  ...["position", "use_regex", "extensions"],
];

/** Under which an entry of SillyTavern keeps what only V3 knows of it. */
const V3_FIELDS = "parlor/v3";
/** Under which the number of an entry in its file is kept, where that is not its `uid`. */
const PLACE = "parlor/place";
const FROM_ORDER = 100;

/** Says whether parsed JSON is such a file: entries by number, or a list of entries in its words. */
export function isSillyTavernBook(json: JsonObject): boolean {
  if (isJsonObject(json.entries)) return true;
  const [first] = Array.isArray(json.entries) ? json.entries : [];
  return isJsonObject(first) && Array.isArray(first.key) && !("keys" in first);
}

/** Reads such a file. What is no entry in it is left out. */
export function fromSillyTavern(file: JsonObject): Lorebook {
  const entries = Object.entries(file.entries as JsonObject).filter((entry): entry is [string, JsonObject] =>
    isJsonObject(entry[1])
  );
  const own = picked(file, (field) => field !== "entries");
  return { ...own, entries: entries.map(([place, entry]) => entryFrom(place, entry)) };
}

/** Makes such a file. */
export function toSillyTavern(book: Lorebook): JsonObject {
  const entries: [string, JsonObject][] = [];
  const taken = new Set(book.entries.flatMap(({ id }) => asNumber(id) ?? []));
  let next = 0;
  const free = () => {
    while (taken.has(next)) next++;
    return next++;
  };
  const places = new Set<string>();
  for (const entry of book.entries) {
    const uid = asNumber(entry.id) ?? free();
    const kept = asObject(entry.extensions[SILLYTAVERN_FIELDS])[PLACE];
    let place = typeof kept === "string" ? kept : String(uid);
    if (places.has(place)) place = String(free());
    places.add(place);
    entries.push([place, entryTo(uid, entry)]);
  }
  return {
    ...picked(book, (field) => field !== "entries"),
    // Not by assignment, for which one of these names would be no member.
    entries: Object.fromEntries(entries),
  };
}

function entryFrom(place: string, entry: JsonObject): LorebookEntry {
  const more = picked(entry, (field) => Object.hasOwn(IN_EXTENSIONS, field));
  const theirs = asObject(entry.extensions);
  const others = picked(
    entry,
    (field) => !Object.hasOwn(IN_EXTENSIONS, field) && !MAPPED.includes(field) && field !== "extensions",
  );
  const { [V3_FIELDS]: v3, ...extensions } = theirs;
  if (Object.keys(extensions).length > 0) others.extensions = extensions;
  const uid = asNumber(entry.uid);
  if (String(uid) !== place) others[PLACE] = place;
  return {
    use_regex: true,
    ...(uid !== undefined && { id: uid }),
    keys: asTexts(entry.key),
    ...("keysecondary" in entry && { secondary_keys: asTexts(entry.keysecondary) }),
    ...picked(entry, (field) => ["comment", "constant", "selective"].includes(field)),
    content: asText(entry.content),
    insertion_order: asNumber(entry.order) ?? FROM_ORDER,
    enabled: entry.disable !== true,
    ...("position" in entry && { position: entry.position === 0 ? "before_char" : "after_char" }),
    ...asObject(v3),
    extensions: {
      ...asObject(asObject(v3).extensions),
      ...Object.fromEntries(Object.entries(more).map(([field, value]) => [IN_EXTENSIONS[field]!, value])),
      ...under(SILLYTAVERN_FIELDS, others),
    },
  };
}

function entryTo(uid: number, entry: LorebookEntry): JsonObject {
  const { [SILLYTAVERN_FIELDS]: kept, ...extensions } = entry.extensions;
  const { [PLACE]: _, extensions: theirs, ...others } = asObject(kept);
  const known = picked(extensions, (field) => Object.hasOwn(OUT_OF_EXTENSIONS, field));
  const foreign = picked(extensions, (field) => !Object.hasOwn(OUT_OF_EXTENSIONS, field));
  const v3 = picked(entry, (field) => !MAPPED_HERE.includes(field));
  if (entry.use_regex !== true) v3.use_regex = entry.use_regex ?? false;
  if (typeof entry.id === "string") v3.id = entry.id;
  // Handed back as it is where the file is read here again; any other reader of the file keeps or ignores it.
  if (Object.keys(foreign).length > 0) v3.extensions = foreign;
  const beside = { ...asObject(theirs), ...under(V3_FIELDS, v3) };
  return {
    ...others,
    uid,
    key: entry.keys,
    ...("secondary_keys" in entry && { keysecondary: entry.secondary_keys }),
    ...picked(entry, (field) => ["comment", "constant", "selective"].includes(field)),
    content: entry.content,
    order: entry.insertion_order,
    disable: !entry.enabled,
    ...("position" in entry && { position: entry.position === "after_char" ? 1 : 0 }),
    ...Object.fromEntries(Object.entries(known).map(([field, value]) => [OUT_OF_EXTENSIONS[field]!, value])),
    ...(Object.keys(beside).length > 0 && { extensions: beside }),
  };
}

function picked(from: JsonObject, isWanted: (field: string) => boolean): JsonObject {
  return Object.fromEntries(Object.entries(from).filter(([field]) => isWanted(field)));
}

function under(name: string, fields: JsonObject): JsonObject {
  return Object.keys(fields).length === 0 ? {} : { [name]: fields };
}
