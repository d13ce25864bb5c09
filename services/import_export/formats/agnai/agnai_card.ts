/**
 * Converts Agnai's characters and memory books to cards and lorebooks, with the same fields as its own Tavern export.
 *
 * @see https://github.com/agnaistic/agnai common/characters.ts (exportCharacter, formatCharacter) and common/memory.ts
 *   at 2421510 (2024-10-16)
 */
import { asNumber, asObject, asText, asTexts, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";

/** Reports whether a file is a character in Agnai's own format. */
export function isAgnaiCharacter(json: JsonObject): boolean {
  return json.kind === "character" ||
    ["name", "persona", "greeting", "scenario", "sampleChat"].every((one) => one in json);
}

/** Reports whether a file is a memory book. */
export function isAgnaiBook(json: JsonObject): boolean {
  const [first] = Array.isArray(json.entries) ? json.entries : [];
  return json.kind === "memory" || isJsonObject(first) && "entry" in first && "keywords" in first;
}

/** Converts a character to a card. */
export function convertAgnaiCard(character: JsonObject): JsonObject {
  const name = asText(character.name);
  const { persona, voice, appearance, json, sprite } = character;
  const insert = asObject(character.insert);
  return {
    spec: "chara_card_v2",
    spec_version: "2.0",
    data: {
      name,
      first_mes: asText(character.greeting),
      scenario: asText(character.scenario),
      description: formatDescription(name, asObject(persona)),
      personality: "",
      mes_example: asText(character.sampleChat),
      creator_notes: asText(character.description),
      system_prompt: asText(character.systemPrompt),
      post_history_instructions: asText(character.postHistoryInstructions),
      alternate_greetings: asTextList(character.alternateGreetings),
      ...(isJsonObject(character.characterBook) && { character_book: convertAgnaiBook(character.characterBook) }),
      tags: asTexts(character.tags),
      creator: asText(character.creator),
      character_version: asText(character.characterVersion),
      extensions: {
        ...asObject(character.extensions),
        ...(asText(insert.prompt) !== "" && { depth_prompt: insert }),
        agnai: defined({ voice, persona, appearance, json, sprite }),
      },
    },
  };
}

/**
 * Formats a persona, which is a text or a list of attributes, in the chosen style. Agnai recognizes its persona in a
 * card only if the description matches exactly.
 */
export function formatDescription(name: string, { kind, attributes }: JsonObject): string {
  const found = Object.entries(asObject(attributes)).map(([key, values]) => [key, asTextList(values)] as const);
  switch (kind) {
    case "wpp": {
      const lines = found.map(([key, values]) => `${key}(${values.map(quoted).join(" + ")})`);
      return [`[character("${name}") {`, lines.join("\n"), "}]"].join("\n");
    }
    case "sbf": {
      const parts = found.map(([key, values]) => `${key}: ${values.map(quoted).join(", ")}`);
      return `[ character: "${name}"; ${parts.join("; ")} ]`;
    }
    case "boostyle":
      return [name, ...found.flatMap(([, values]) => values)].join(" + ");
    case "attributes":
      return `Name: ${name}\n${found.map(([key, values]) => `${key}: ${values.join(", ")}`).join("\n")}`;
    default: // "text" and unknown styles: keep at least the texts
      return found.flatMap(([, values]) => values).join("\n");
  }
}

/** Converts a memory book to a lorebook. */
export function convertAgnaiBook(book: JsonObject): JsonObject {
  const entries = Array.isArray(book.entries) ? book.entries.filter(isJsonObject) : [];
  return {
    ...defined({
      name: asText(book.name) || undefined,
      description: asText(book.description) || undefined,
      scan_depth: asNumber(book.scanDepth),
      token_budget: asNumber(book.tokenBudget),
      recursive_scanning: typeof book.recursiveScanning === "boolean" ? book.recursiveScanning : undefined,
    }),
    extensions: asObject(book.extensions),
    entries: entries.map(convertEntry),
  };
}

function convertEntry(entry: JsonObject): JsonObject {
  const { id, comment, selective, constant, position, probability, useProbability, selectiveLogic } = entry;
  return {
    keys: asTextList(entry.keywords),
    content: asText(entry.entry),
    enabled: entry.enabled !== false,
    insertion_order: asNumber(entry.weight) ?? 0,
    name: asText(entry.name),
    priority: asNumber(entry.priority) ?? 0,
    ...defined({ id, comment, selective, constant, position }),
    ...(Array.isArray(entry.secondaryKeys) && { secondary_keys: asTextList(entry.secondaryKeys) }),
    extensions: defined({ probability, useProbability, selectiveLogic, exclude_recursion: entry.excludeRecursion }),
  };
}

function defined(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function asTextList(value: unknown): string[] {
  return Array.isArray(value) ? value.map(asText) : [];
}

function quoted(text: string): string {
  return `"${text}"`;
}
