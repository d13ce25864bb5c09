/**
 * Converts RisuAI's characters and lorebooks to V3 cards and lorebooks, with the same fields as its own export.
 *
 * @see https://github.com/kwaroran/RisuAI characterCards.ts (createBaseV3) and storage/database.svelte.ts at 460ecae
 *   (2025-12-31)
 */
import type { ImportReasonCode } from "../../import_reasons.ts";
import { getExtension } from "../../import_source.ts";
import { asArray, asNumber, asObject, asText, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";

/** Fields that only RisuAI uses, kept in the card for a later export to RisuAI. */
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
const RISU_ASSET = "x-risu-asset";

/** Converts a character to a card. */
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

/** Converts a list of entries to a lorebook; `undefined` if it is empty. */
export function convertRisuBook(entries: unknown, owner: JsonObject = {}): JsonObject | undefined {
  const found = asArray(entries).filter(isJsonObject);
  if (found.length === 0) return undefined;
  const settings = asObject(owner.loreSettings);
  return {
    ...defined({
      scan_depth: asNumber(settings.scanDepth),
      token_budget: asNumber(settings.tokenBudget),
      recursive_scanning: typeof settings.recursiveScanning === "boolean" ? settings.recursiveScanning : undefined,
    }),
    extensions: { ...asObject(owner.loreExt), risu_fullWordMatching: settings.fullWordMatching === true },
    entries: found.map(convertEntry),
  };
}

/** An additional image or sound of a character. */
export interface RisuMedium {
  /** Its type in a card that RisuAI exports. */
  type: string;
  name: string;
  ext: string;
  /** RisuAI's name for the file. */
  key: string;
}

/** Yields the additional files. */
export function* findMedia(character: JsonObject): Generator<RisuMedium> {
  const medium = (type: string, name: unknown, key: unknown, ext: unknown): RisuMedium => ({
    type,
    name: asText(name),
    key: asText(key),
    ext: asText(ext) || getExtension(asText(key)),
  });
  for (const asset of asArray(character.ccAssets).map(asObject)) {
    yield medium(asText(asset.type) || "other", asset.name, asset.uri, asset.ext === "unknown" ? "" : asset.ext);
  }
  for (const [name, key, ext] of asArray(character.additionalAssets).map(asArray)) {
    yield medium(RISU_ASSET, name, key, ext);
  }
  for (const [name, key] of asArray(character.emotionImages).map(asArray)) yield medium("emotion", name, key, "");
}

/** Yields what of a character Parlor can't use. */
export function* findLosses(character: JsonObject): Generator<ImportReasonCode> {
  if (isJsonObject(character.vits)) yield "risu_voice";
  const effects = asArray(character.triggerscript).flatMap((trigger) => asArray(asObject(trigger).effect));
  const isScripted = asArray(character.customscript).length > 0 || asText(character.backgroundHTML) !== "" ||
    effects.some((effect) => asObject(effect).type !== "v2Header");
  if (isScripted) yield "risu_card_scripts";
}

function convertEntry(lore: JsonObject): JsonObject {
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

/** V3 counts seconds; RisuAI also wrote milliseconds. */
function toDate(field: string, value: unknown): JsonObject {
  const time = asNumber(value) ?? 0;
  return time <= 0 ? {} : { [field]: time > 100_000_000_000 ? Math.floor(time / 1000) : time };
}

function defined(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
