/** Parsed model name. */
import { AppError } from "../errors.ts";
import { type Card, parseCard } from "../characters/card/card.ts";
import { type ReadCard, toReadCard } from "../characters/card/card_codec.ts";
import { asNumber, asObject, asTexts, type JsonObject } from "../json/type_guards.ts";
import { isId } from "../storage/ids.ts";
import { type CardEdits, editCard } from "../characters/card/card_work.ts";

/** Parlor's extension, which distinguishes personas from characters. */
const EXTENSION = "parlor/persona";
const EXTENSION_VERSION = 1;

const NOTE = "This card is a persona of Parlor: it describes the person who chats, not a character.";

/** Maximum length of a name, in UTF-16 units. */
export const MAX_PERSONA_NAME = 200;
/** Maximum length of a description, in UTF-16 units. */
export const MAX_PERSONA_DESCRIPTION = 500_000;

/** Where prompts have the description; without a placement where the preset has it. */
export interface PersonaPlacement {
  /** `note_*` is around the author's note; `none` is only where a macro names it. */
  position: (typeof PERSONA_POSITIONS)[number];
  /** Number of messages after it; only for `at_depth`. */
  depth: number;
  /** Only for `at_depth`. */
  role: (typeof PERSONA_ROLES)[number];
}

/** Positions besides that of the preset. */
export const PERSONA_POSITIONS = ["note_top", "note_bottom", "at_depth", "none"] as const;
/** Roles of a description in the chat, by SillyTavern's numbers. */
export const PERSONA_ROLES = ["system", "user", "assistant"] as const;
/** Greatest depth of a description. */
export const MAX_PERSONA_DEPTH = 9_999;
/** SillyTavern's depth of a description that has none. */
const DEFAULT_DEPTH = 2;

/** Name, description and placement of a persona. */
export interface PersonaText {
  name: string;
  description: string;
  placement?: PersonaPlacement;
  /** The characters whose new chats have it. Absent for none. */
  character_ids?: string[];
}

/** Most characters of a persona. */
export const MAX_PERSONA_CHARACTERS = 1_000;

/** Creates the card of a persona. */
export function createPersonaCard(text: PersonaText): ReadCard {
  const empty = parseCard({ spec: "chara_card_v2", spec_version: "2.0", data: { ...text, creator_notes: NOTE } });
  return toReadCard(editCard(empty, toPersonaEdits(text)));
}

/** Returns the changes that make a card that of a persona. Its other fields don't change. */
export function toPersonaEdits({ name, description, placement, character_ids = [] }: PersonaText): CardEdits {
  const extension: JsonObject = {
    ...{ version: EXTENSION_VERSION, placement: placement ? { ...placement } : null },
    character_ids: character_ids.length > 0 ? character_ids : null,
  };
  return { set: { name, description, extensions: { [EXTENSION]: extension } } };
}

/** Reads a placement. @returns `undefined` for that of the preset, and for anything else. */
export function parsePlacement(value: unknown): PersonaPlacement | undefined {
  const { position, depth, role } = asObject(value);
  const known = PERSONA_POSITIONS.find((one) => one === position);
  if (known === undefined) return undefined;
  return {
    position: known,
    depth: Math.min(MAX_PERSONA_DEPTH, Math.max(0, Math.floor(asNumber(depth) ?? DEFAULT_DEPTH))),
    role: PERSONA_ROLES.find((one) => one === role) ?? "system",
  };
}

/** Reports whether a card was made for a persona. */
export function isPersonaCard({ data }: Card): boolean {
  return EXTENSION in data.extensions;
}

/** Returns what a card says of a persona. */
export function getPersonaText({ data }: Card): PersonaText {
  const extension = asObject(data.extensions[EXTENSION]);
  const placement = parsePlacement(extension.placement);
  const characterIds = asTexts(extension.character_ids).filter(isId).slice(0, MAX_PERSONA_CHARACTERS);
  return {
    name: data.name,
    description: data.description,
    ...(placement && { placement }),
    ...(characterIds.length > 0 && { character_ids: characterIds }),
  };
}

/**
 * Returns the text of a persona from any card. Persona cards keep all other fields; of a character card, only name and
 * description are used.
 *
 * @param options.swapsNames Swaps `{{user}}` and `{{char}}` in a character's description.
 * @throws {AppError} `too_large` if the description is too long
 */
export function convertToPersonaText(card: Card, { swapsNames }: { swapsNames: boolean }): PersonaText {
  const name = card.data.name.trim().slice(0, MAX_PERSONA_NAME);
  const { description } = card.data;
  if (description.length > MAX_PERSONA_DESCRIPTION) {
    throw new AppError("too_large", `The description is longer than ${MAX_PERSONA_DESCRIPTION} characters`);
  }
  const { placement } = getPersonaText(card);
  return {
    name,
    description: swapsNames && !isPersonaCard(card) ? swapNames(description) : description,
    ...(placement && { placement }),
  };
}

function swapNames(text: string): string {
  return text.replace(/\{\{(user|char)\}\}|<(user|char|bot)>/gi, (_, curly?: string, angle?: string) => {
    if (curly !== undefined) return curly.toLowerCase() === "user" ? "{{char}}" : "{{user}}";
    return angle!.toLowerCase() === "user" ? "<BOT>" : "<USER>";
  });
}
