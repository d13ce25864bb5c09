/**
 * Tries a lorebook on a text or a conversation, with its messages, the texts around them and its macros: which entries become
 * active, by which key, and which are dropped.
 */
import type { Card } from "../characters/card/card.ts";
import type { Characters } from "../characters/characters.ts";
import { findCharacterCard, toGreetingNames } from "../prompts/greetings.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import { readHistory } from "./history.ts";
import type { Lorebooks, LorebookServices } from "../lorebooks/lorebooks.ts";
import {
  activate,
  type Activation,
  type ActivationInput,
  type KeyMatcher,
  type LorebookScanSource,
  type ScannedMessage,
} from "../lorebooks/activation.ts";
import type { Personas } from "../personas/personas.ts";
import { Macros } from "../prompts/macros/macros.ts";
import { createSeededRandom } from "../prompts/seeded_random.ts";
import { estimateTokens, splitContent } from "../llm/token_count.ts";
import { AppError } from "../errors.ts";
import type { ActivationBook } from "../lorebooks/scan_entries.ts";
import { parseLorebook } from "../lorebooks/lorebook_parse.ts";

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

/** A conversation to scan. */
interface ScannedConversation {
  /** Oldest first, without hidden messages. The newest ones are enough. */
  messages: ScannedMessage[];
  /** Number of messages in the whole conversation. */
  messageCount: number;
  /** Texts scanned besides the messages. */
  scanTexts: NonNullable<ActivationInput["scanTexts"]>;
  /** Expands macros as in a prompt. */
  expand(text: string): string;
}

/** What to try. */
export interface TrialRequest {
  /** A draft in any supported format; alternatively the id of a stored book. */
  book?: unknown;
  lorebookId?: string;
  /** The conversation to scan, and a text to scan as its last message or alone. */
  conversationId?: string;
  text?: string;
  budgetTokens?: number;
}

/** Dependencies of a trial. */
interface TrialDeps {
  lorebooks: Lorebooks;
  matcher: KeyMatcher;
  /** @throws {AppError} `not_found` */
  conversation(id: string): Promise<ScannedConversation>;
  countTokens(text: string): number;
}

/** Id of a draft in results. */
const DRAFT = "draft";

/**
 * Tries a book. Entries with a probability are always active in a trial, and report it. Timed effects don't apply.
 *
 * @throws {AppError} `invalid_request` without a book or anything to scan; `not_found`; `unprocessable`
 */
async function tryLorebook(request: TrialRequest, parts: TrialDeps): Promise<Activation> {
  const owner = await loadBook(request, parts.lorebooks);
  if (request.conversationId === undefined && request.text === undefined) {
    throw invalidTrial("conversation_id", "a trial needs a conversation or a text to scan");
  }
  const scanned = request.conversationId === undefined ? undefined : await parts.conversation(request.conversationId);
  const said = request.text === undefined ? [] : [{ role: "user", text: request.text }];
  return await activate({
    books: [owner],
    messages: [...scanned?.messages ?? [], ...said],
    messageCount: (scanned?.messageCount ?? 0) + said.length,
    ...(scanned && { expand: scanned.expand, scanTexts: scanned.scanTexts }),
    countTokens: parts.countTokens,
    budgetTokens: request.budgetTokens,
    matcher: parts.matcher,
    random: () => 0,
  });
}

async function loadBook({ book, lorebookId }: TrialRequest, lorebooks: Lorebooks): Promise<ActivationBook> {
  if (book !== undefined) {
    const parsed = parseLorebook(book);
    return { id: DRAFT, name: parsed.name ?? "", scope: "chat", book: parsed.book };
  }
  if (lorebookId === undefined) throw invalidTrial("book", "a trial needs a book or the id of one");
  const { id, head, body } = await lorebooks.get(lorebookId);
  return { id, name: head.name, scope: "chat", book: body };
}

function invalidTrial(path: string, message: string): AppError {
  return new AppError("invalid_request", `Can't try the lorebook: ${message}`, { issues: [{ path, message }] });
}
