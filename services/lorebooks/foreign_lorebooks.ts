/**
 * Converts lorebooks of NovelAI, Agnai and RisuAI to the V3 form. All imports use it, whatever they come in.
 *
 * @see https://github.com/agnaistic/agnai common/memory.ts; https://github.com/kwaroran/RisuAI characterCards.ts
 */
import { asArray, asNumber, asObject, asText, asTexts, isJsonObject, type JsonObject } from "../json/type_guards.ts";

/** Returns the book in V3 form; `undefined` if it isn't of one of these programs. */
export function convertForeignBook(json: JsonObject): JsonObject | undefined {
  if (isNovelAiBook(json)) return convertNovelAiBook(json);
  if (isAgnaiBook(json)) return convertAgnaiBook(json);
  if (json.type === "risu" && Array.isArray(json.data)) return convertRisuBook(json.data) ?? { entries: [] };
  return undefined;
}

function isNovelAiBook(json: JsonObject): boolean {
  if (!Array.isArray(json.entries)) return false;
  const [first] = json.entries;
  return "lorebookVersion" in json || isJsonObject(first) && "text" in first && "contextConfig" in first;
}

/** Fields of an entry that have a V3 equivalent. */
const NOVELAI_FIELDS = ["text", "keys", "displayName", "id", "enabled", "forceActivation"];

function convertNovelAiBook(book: JsonObject): JsonObject {
  const disabled = new Set(
    asArray(book.categories).map(asObject).filter(({ enabled }) => enabled === false).map(({ id }) => asText(id)),
  );
  const { entries, lorebookVersion: _, name, ...rest } = book;
  return {
    ...(asText(name) !== "" && { name }),
    extensions: { novelai: rest },
    entries: asArray(entries).filter(isJsonObject).map((entry) => {
      const order = asNumber(asObject(entry.contextConfig).budgetPriority) ?? 400;
      const keys = asTexts(entry.keys);
      // "a & b" needs both words.
      const all = keys.length === 1 && !keys[0]!.startsWith("/")
        ? keys[0]!.split(" & ").map((key) => key.trim())
        : keys;
      const needsAll = keys.length === 1 && all.length > 1;
      const own = Object.fromEntries(Object.entries(entry).filter(([field]) => !NOVELAI_FIELDS.includes(field)));
      return {
        ...(asText(entry.id) !== "" && { id: entry.id }),
        keys: needsAll ? all.slice(0, 1) : keys,
        ...(needsAll && { secondary_keys: all.slice(1), selective: true }),
        content: asText(entry.text),
        name: asText(entry.displayName),
        comment: asText(entry.displayName),
        enabled: entry.enabled !== false && !disabled.has(asText(entry.category)),
        constant: entry.forceActivation === true,
        insertion_order: order,
        priority: order,
        use_regex: keys.some((key) => key.startsWith("/")),
        extensions: { novelai: own, ...(needsAll && { selectiveLogic: 3 }) },
      };
    }),
  };
}

/** Reports whether a file is a memory book. */
export function isAgnaiBook(json: JsonObject): boolean {
  const [first] = Array.isArray(json.entries) ? json.entries : [];
  return json.kind === "memory" || isJsonObject(first) && "entry" in first && "keywords" in first;
}

/** Converts a memory book to a lorebook. */
export function convertAgnaiBook(book: JsonObject): JsonObject {
  const entries = Array.isArray(book.entries) ? book.entries.filter(isJsonObject) : [];
  return {
    ...dropUndefined({
      name: asText(book.name) || undefined,
      description: asText(book.description) || undefined,
      scan_depth: asNumber(book.scanDepth),
      token_budget: asNumber(book.tokenBudget),
      recursive_scanning: typeof book.recursiveScanning === "boolean" ? book.recursiveScanning : undefined,
    }),
    extensions: asObject(book.extensions),
    entries: entries.map(convertAgnaiEntry),
  };
}

function convertAgnaiEntry(entry: JsonObject): JsonObject {
  const { id, comment, selective, constant, position, probability, useProbability, selectiveLogic } = entry;
  return {
    keys: asTextList(entry.keywords),
    content: asText(entry.entry),
    enabled: entry.enabled !== false,
    insertion_order: asNumber(entry.weight) ?? 0,
    name: asText(entry.name),
    priority: asNumber(entry.priority) ?? 0,
    ...dropUndefined({ id, comment, selective, constant, position }),
    ...(Array.isArray(entry.secondaryKeys) && { secondary_keys: asTextList(entry.secondaryKeys) }),
    extensions: dropUndefined({
      probability,
      useProbability,
      selectiveLogic,
      exclude_recursion: entry.excludeRecursion,
    }),
  };
}

/** Converts a list of entries to a lorebook; `undefined` if it's empty. */
export function convertRisuBook(entries: unknown, owner: JsonObject = {}): JsonObject | undefined {
  const found = asArray(entries).filter(isJsonObject);
  if (found.length === 0) return undefined;
  const settings = asObject(owner.loreSettings);
  return {
    ...dropUndefined({
      scan_depth: asNumber(settings.scanDepth),
      token_budget: asNumber(settings.tokenBudget),
      recursive_scanning: typeof settings.recursiveScanning === "boolean" ? settings.recursiveScanning : undefined,
    }),
    extensions: { ...asObject(owner.loreExt), risu_fullWordMatching: settings.fullWordMatching === true },
    entries: found.map(convertRisuEntry),
  };
}

function convertRisuEntry(lore: JsonObject): JsonObject {
  const own = asObject(lore.extentions);
  const chance = asNumber(lore.activationPercent);
  const isPattern = lore.useRegex === true;
  return {
    keys: isPattern ? [asText(lore.key)] : splitKeys(lore.key),
    ...(lore.selective === true && { secondary_keys: splitKeys(lore.secondkey) }),
    content: asText(lore.content),
    enabled: true,
    insertion_order: asNumber(lore.insertorder) ?? 100,
    constant: lore.alwaysActive === true,
    selective: lore.selective === true,
    name: asText(lore.comment),
    comment: asText(lore.comment),
    case_sensitive: own.risu_case_sensitive === true,
    use_regex: isPattern,
    mode: asText(lore.mode) || "normal",
    ...(lore.folder !== undefined && { folder: lore.folder }),
    extensions: {
      ...own,
      ...(chance !== undefined && { probability: chance, useProbability: true, risu_activationPercent: chance }),
    },
  };
}

function splitKeys(value: unknown): string[] {
  return asText(value).split(",").map((key) => key.trim()).filter((key) => key !== "");
}

function dropUndefined(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function asTextList(value: unknown): string[] {
  return Array.isArray(value) ? value.map(asText) : [];
}
