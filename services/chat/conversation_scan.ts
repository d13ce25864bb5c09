/** Prepares a conversation for a lorebook trial: its messages, the texts around them, and its macros. */
import type { Card } from "../characters/card/card.ts";
import type { Characters } from "../characters/characters.ts";
import { findCharacterCard, toGreetingNames } from "../prompts/greetings.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import { readHistory } from "./history.ts";
import type { LorebookServices } from "../lorebooks/lorebooks.ts";
import type { Activation, LorebookScanSource } from "../lorebooks/activation.ts";
import { type ScannedConversation, type TrialRequest, tryLorebook } from "../lorebooks/lorebook_trial.ts";
import type { Personas } from "../personas/personas.ts";
import { Macros } from "../prompts/macros/macros.ts";
import { createSeededRandom } from "../prompts/seeded_random.ts";
import { estimateTokens, splitContent } from "../llm/token_estimate.ts";

/** Dependencies of `createLorebookTrial`. */
export interface LorebookTrialDeps extends LorebookServices {
  store: ConversationStore;
  blocks: BlockStore;
  characters: Characters;
  personas: Personas;
  /** Returns the owner's persona for conversations that name none. */
  getDefaultPersonaId(): string | null;
  /** Returns the owner's name without a persona. */
  getUserName(): Promise<string>;
}

/** Only this many of the newest messages are scanned. */
const MAX_MESSAGES = 1_000;

/** Tries lorebooks on conversations and texts; see `tryLorebook`. */
export type LorebookTrial = (request: TrialRequest) => Promise<Activation>;

/** Creates the function that tries lorebooks. */
export function createLorebookTrial(deps: LorebookTrialDeps): LorebookTrial {
  return (request) =>
    tryLorebook(request, {
      lorebooks: deps.lorebooks,
      matcher: deps.keyMatcher,
      countTokens: (text) => Math.ceil(estimateTokens(text)),
      conversation: (id) => loadScannedConversation(id, deps),
    });
}

/**
 * Loads what a trial scans: the same as for the next prompt of the conversation's first character.
 *
 * @throws {AppError} `not_found`
 */
async function loadScannedConversation(id: string, deps: LorebookTrialDeps): Promise<ScannedConversation> {
  const { head, messageCount } = deps.store.get(id);
  const personaId = typeof head.persona_id === "string" ? head.persona_id : deps.getDefaultPersonaId();
  const persona = personaId === null ? undefined : await deps.personas.find(personaId);
  const characterId = head.participants[0]?.character_id;
  const card = characterId === undefined ? undefined : await findCharacterCard(deps.characters, characterId);
  const names = toGreetingNames(card, persona?.name ?? await deps.getUserName());
  const messages = readHistory(deps.blocks, id, {}, { now: Date.now }).take(MAX_MESSAGES).map(({ message }) => ({
    role: message.role,
    text: splitContent(message).text,
    name: message.role === "user" ? names.user : names.char,
  })).toArray().reverse();
  const texts: [LorebookScanSource, unknown][] = [
    ["persona", persona?.description],
    ["description", card?.data.description],
    ["personality", card?.data.personality],
    ["depth_prompt", (card?.data.extensions.depth_prompt as { prompt?: unknown } | null | undefined)?.prompt],
    ["scenario", card?.data.scenario],
    ["creator_notes", card?.data.creator_notes],
  ];
  const macros = new Macros({
    ...names,
    fields: { persona: persona?.description, ...getMacroFields(card) },
    clock: { nowMs: Date.now() },
    random: createSeededRandom(id),
    chat: {},
  });
  return {
    messages,
    messageCount: messageCount,
    scanTexts: texts.flatMap(([source, text]) => typeof text === "string" && text !== "" ? [{ source, text }] : []),
    expand: (text) => macros.expand(text, { location: `lore\n${text}` }),
  };
}

function getMacroFields(card: Card | undefined) {
  if (card === undefined) return {};
  const { description, personality, scenario, mes_example: mesexamples } = card.data;
  return { description, personality, scenario, mesexamples };
}
