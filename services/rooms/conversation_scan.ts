/** What a conversation offers to a trial of lorebooks. It is taken from four rooms. */
import type { Card } from "../characters/card/card.ts";
import type { Characters } from "../characters/characters.ts";
import { findCard, namesOf } from "../characters/greetings.ts";
import type { BlockStore } from "../conversations/blocks/blocks.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import { turnsOf } from "../chat/history.ts";
import type { ScanSource } from "../lorebooks/activation.ts";
import type { ScannedConversation } from "../lorebooks/lorebook_trial.ts";
import type { Personas } from "../personas/personas.ts";
import { Macros } from "../prompts/macros/macros.ts";
import { seededRandom } from "../prompts/seeded_random.ts";
import { countedParts } from "../prompts/tokens/token_estimate.ts";

/** Where it is taken from. */
export interface ScanParts {
  store: ConversationStore;
  blocks: BlockStore;
  characters: Characters;
  personas: Personas;
  /** Who the owner is where a conversation does not say. */
  defaultPersonaId(): string | null;
  /** What the owner is called without a persona. */
  ownerName(): Promise<string>;
}

/** The newest messages that are scanned. */
const MAX_MESSAGES = 1_000;

/** Takes of a conversation what a trial scans: as the prompt of its first character would be. @throws {AppError} `not_found` */
export async function scannedConversation(id: string, parts: ScanParts): Promise<ScannedConversation> {
  const { head, messageCount } = parts.store.get(id);
  const personaId = typeof head.persona_id === "string" ? head.persona_id : parts.defaultPersonaId();
  const persona = personaId === null ? undefined : await parts.personas.find(personaId);
  const characterId = head.participants[0]?.character_id;
  const card = characterId === undefined ? undefined : await findCard(parts.characters, characterId);
  const names = namesOf(card, persona?.name ?? await parts.ownerName());
  const messages = turnsOf(parts.blocks, id, {}, { now: Date.now }).take(MAX_MESSAGES).map(({ message }) => ({
    role: message.role,
    text: countedParts(message).text,
    name: message.role === "user" ? names.user : names.char,
  })).toArray().reverse();
  const texts: [ScanSource, unknown][] = [
    ["persona", persona?.description],
    ["description", card?.data.description],
    ["personality", card?.data.personality],
    ["depth_prompt", (card?.data.extensions.depth_prompt as { prompt?: unknown } | null | undefined)?.prompt],
    ["scenario", card?.data.scenario],
    ["creator_notes", card?.data.creator_notes],
  ];
  const macros = new Macros({
    ...{ ...names, fields: { persona: persona?.description, ...fieldsOf(card) }, clock: { nowMs: Date.now() } },
    ...{ random: seededRandom(id), chat: {} },
  });
  return {
    messages,
    turn: messageCount,
    scanTexts: texts.flatMap(([source, text]) => typeof text === "string" && text !== "" ? [{ source, text }] : []),
    expand: (text) => macros.expand(text, { place: `lore\n${text}` }),
  };
}

function fieldsOf(card: Card | undefined) {
  if (card === undefined) return {};
  const { description, personality, scenario, mes_example: mesexamples } = card.data;
  return { description, personality, scenario, mesexamples };
}
