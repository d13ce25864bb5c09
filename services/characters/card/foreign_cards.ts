/**
 * Converts characters of Agnai and RisuAI in the programs' own formats to cards, with the same fields as their exports to
 * cards. All imports use it, in every file format.
 *
 * @see https://github.com/agnaistic/agnai common/characters.ts (exportCharacter, formatCharacter) at 2421510 (2024-10-16)
 * @see https://github.com/kwaroran/RisuAI characterCards.ts (createBaseV3) at 460ecae (2025-12-31)
 */
import { asArray, asNumber, asObject, asText, asTexts, isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import { convertAgnaiBook, convertRisuBook } from "../../lorebooks/foreign_lorebooks.ts";

/** Returns the card of a character in one of these formats; `undefined` for other JSON. */
export function convertForeignCard(json: JsonObject): JsonObject | undefined {
  if ("spec" in json || "data" in json) return undefined;
  if (isAgnaiCharacter(json)) return convertAgnaiCard(json);
  if (asText(json.chaId) !== "" && "firstMessage" in json) return convertRisuCard(json);
  return undefined;
}

/** Reports whether a file is a character in Agnai's own format. */
export function isAgnaiCharacter(json: JsonObject): boolean {
  return json.kind === "character" ||
    ["name", "persona", "greeting", "scenario", "sampleChat"].every((one) => one in json);
}

/** Converts a character of Agnai to a card. */
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
        agnai: dropUndefined({ voice, persona, appearance, json, sprite }),
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
      const lines = found.map(([key, values]) => `${key}(${values.map(quote).join(" + ")})`);
      return [`[character("${name}") {`, lines.join("\n"), "}]"].join("\n");
    }
    case "sbf": {
      const parts = found.map(([key, values]) => `${key}: ${values.map(quote).join(", ")}`);
      return `[ character: "${name}"; ${parts.join("; ")} ]`;
    }
    case "boostyle":
      return [name, ...found.flatMap(([, values]) => values)].join(" + ");
    case "attributes":
      return `Name: ${name}\n${found.map(([key, values]) => `${key}: ${values.join(", ")}`).join("\n")}`;
    default: // "text" and unknown styles: only the texts
      return found.flatMap(([, values]) => values).join("\n");
  }
}

function dropUndefined(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function asTextList(value: unknown): string[] {
  return Array.isArray(value) ? value.map(asText) : [];
}

function quote(text: string): string {
  return `"${text}"`;
}

/** Fields that only RisuAI uses, preserved in the card for a later export to RisuAI. */
const OWN_FIELDS: Record<string, string> = {
  bias: "bias",
  viewScreen: "viewScreen",
  customscript: "customScripts",
  utilityBot: "utilityBot",
  sdData: "sdData",
  backgroundHTML: "backgroundHTML",
  license: "license",
  triggerscript: "triggerscript",
  additionalText: "additionalText",
  largePortrait: "largePortrait",
  lorePlus: "lorePlus",
  inlayViewScreen: "inlayViewScreen",
  newGenData: "newGenData",
  lowLevelAccess: "lowLevelAccess",
  defaultVariables: "defaultVariables",
  prebuiltAssetCommand: "prebuiltAssetCommand",
  prebuiltAssetExclude: "prebuiltAssetExclude",
  prebuiltAssetStyle: "prebuiltAssetStyle",
};
/** Converts a character of RisuAI to a card. */
export function convertRisuCard(character: JsonObject): JsonObject {
  const { risuai: _, depth_prompt: __, ...extensions } = asObject(character.extentions); // RisuAI's spelling
  const depthPrompt = asObject(character.depth_prompt);
  const more = asObject(character.additionalData);
  const own = Object.entries(OWN_FIELDS).filter(([field]) => character[field] !== undefined);
  return {
    spec: "chara_card_v3",
    spec_version: "3.0",
    data: {
      name: asText(character.name),
      description: asText(character.desc),
      personality: asText(character.personality),
      scenario: asText(character.scenario),
      first_mes: asText(character.firstMessage),
      mes_example: asText(character.exampleMessage),
      creator_notes: asText(character.creatorNotes),
      system_prompt: asText(character.systemPrompt),
      post_history_instructions: asText(character.replaceGlobalNote),
      alternate_greetings: asArray(character.alternateGreetings).map(asText),
      group_only_greetings: asArray(character.group_only_greetings).map(asText),
      tags: asArray(character.tags).map(asText),
      creator: asText(more.creator) || asText(character.creator),
      character_version: asText(more.character_version) || asText(character.characterVersion),
      nickname: asText(character.nickname),
      source: asArray(character.source).map(asText),
      ...toDate("creation_date", character.creation_date),
      ...toDate("modification_date", character.modification_date),
      character_book: convertRisuBook(character.globalLore, character),
      extensions: {
        ...extensions,
        ...(asText(depthPrompt.prompt) !== "" && { depth_prompt: depthPrompt }),
        risuai: Object.fromEntries(own.map(([field, theirs]) => [theirs, character[field]])),
      },
    },
  };
}

/** Converts a date. V3 uses seconds; RisuAI also wrote milliseconds. */
function toDate(field: string, value: unknown): JsonObject {
  const time = asNumber(value) ?? 0;
  return time <= 0 ? {} : { [field]: time > 100_000_000_000 ? Math.floor(time / 1000) : time };
}
