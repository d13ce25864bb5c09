/** Loads the context of a prompt: characters, persona, preset and lorebooks of a conversation. */
import { AppError } from "../errors.ts";
import { asObject } from "../json/type_guards.ts";
import type { EntryPosition, KeyMatcher } from "../lorebooks/activation.ts";
import type { Lorebook } from "../lorebooks/lorebook_document.ts";
import type { BookRequest, Lorebooks } from "../lorebooks/lorebooks.ts";
import { chooseMemories, type MemoryChat, type UsableMemory } from "../memories/memory.ts";
import type { PersonaText } from "../personas/persona_card.ts";
import type { Presets } from "../presets/presets.ts";
import {
  type CardSource,
  type LoadedParticipant,
  loadParticipants,
  NOTE_DEPTH,
  type Participant,
  toPromptCharacter,
} from "./participants.ts";
import {
  type ComposedPrompt,
  type HistoryWindow,
  type LoreSource,
  type PromptLayout,
  toPromptPreset,
} from "./prompt.ts";
import { MacroBudget } from "./macros/macro_budget.ts";
import {
  composePrompt,
  type CompositionRequest,
  createMessageExpander,
  createScriptExpander,
  type LoreSettings,
  PrefixClocks,
} from "./compose_context.ts";
import type { Preset } from "../presets/preset.ts";
import type { RegexScripts, ScriptSource } from "../regex_scripts/regex_scripts.ts";
import type { ScriptPurpose, ScriptText } from "../regex_scripts/regex_script.ts";
import type { ScriptResult } from "../regex_scripts/script_runner.ts";

/** The conversation fields used in prompts. Fields of the wrong type are ignored. */
export interface PromptFields {
  participants: readonly Participant[];
  persona_id?: unknown;
  preset_id?: unknown;
  lorebook_ids?: unknown;
  system_prompt?: unknown;
  scenario?: unknown;
  note?: unknown;
  summary?: unknown;
  variables?: unknown;
  folder?: unknown;
}

/** A preset as used in prompts; see `toPromptPreset`. */
export interface PromptPreset {
  id: string;
  name: string;
  layout: PromptLayout;
  /** Tokens of prompt and reply together, if the preset sets a limit. */
  contextSize?: number;
  /** Sampler parameters under their API names. */
  params: Record<string, unknown>;
  /** Fields that are added to each chat request, with the server's names. */
  extraBody?: Record<string, unknown>;
}

/** Dependencies of `PromptContexts`. */
export interface PromptContextDeps {
  cards: CardSource;
  personas: { get(id: string): Promise<{ persona: PersonaText }> };
  /** The user's name without a persona, and the default persona. */
  getOwner(): { name: string; personaId?: string };
  presets: Pick<Presets, "resolve">;
  lorebooks: Pick<Lorebooks, "findBooks">;
  matcher: KeyMatcher;
  regexScripts: Pick<RegexScripts, "listActive" | "runner">;
  getLoreSettings(): LoreSettings;
  memories: {
    listUsable(): UsableMemory[];
    /** Percent of the context. */
    getBudgetPercent(): number;
  };
  now(): number;
}

/** What of the owner's a prompt leaves out. */
export interface WithheldContext {
  notes: boolean;
  /** The persona with its name, documents and lorebooks. */
  persona: boolean;
}

/** A request for the context of one reply. */
export interface PromptContextRequest {
  conversationId: string;
  /** Number of messages before the reply. */
  messageCount: number;
  /** Index of the greeting that started the conversation. */
  getGreetingIndex?(): number | undefined;
  /** Counts the user's messages before the reply. Only called for a note that isn't always sent. */
  countUserMessages?(): number;
  fields: PromptFields;
  participants: readonly LoadedParticipant[];
  /** ID of the character that replies; by default the first participant. */
  characterId?: string;
  action: PromptContext["action"];
  /** SillyTavern's generation type: `normal`, `continue`, `impersonate`, … */
  generation: string;
  /** False if the server doesn't continue a trailing reply. Default: true. */
  continuesPrefill?: boolean;
  model: string;
  /** True if the model rejects the start of a reply. */
  refusesPrefill?: boolean;
  timeZone?: string;
  withheld?: WithheldContext;
  /** See `PromptContext`. */
  clientSystem?: string;
}

/** A loaded context, ready to be combined with the history. */
export interface OpenPromptContext {
  context: PromptContext;
  preset: PromptPreset;
  /** The persona in use. */
  personaId?: string;
  compose(seen: HistoryWindow): Promise<ComposedPrompt>;
  /** Expands the macros of a stored message; see `createMessageExpander`. */
  expand?(text: string, id: string, atMs: number): string;
  /** Runs the regex scripts of the owner, the preset and the character. Absent if there are none. */
  runScripts?(texts: readonly ScriptText[], purpose: ScriptPurpose): Promise<ScriptResult>;
}

/** Loads prompt contexts. */
export class PromptContexts {
  readonly #deps: PromptContextDeps;
  readonly #clocks = new PrefixClocks();

  constructor(deps: PromptContextDeps) {
    this.#deps = deps;
  }

  /** Loads the participants of a conversation. @throws {AppError} like `loadParticipants` */
  loadParticipants({ participants }: Pick<PromptFields, "participants">): Promise<LoadedParticipant[]> {
    return loadParticipants(this.#deps.cards, participants);
  }

  /**
   * Loads a context. @throws {AppError} `unprocessable` for an unreadable persona; `internal` for an unreadable
   * lorebook
   */
  async open(request: PromptContextRequest): Promise<OpenPromptContext> {
    const { conversationId, messageCount, fields, participants, characterId, timeZone, model, withheld } = request;
    const member = characterId === undefined ? participants[0] : participants.find(({ id }) => id === characterId);
    const personaId = withheld?.persona ? undefined : toText(fields.persona_id) ?? this.#deps.getOwner().personaId;
    const chosenPreset = await this.#deps.presets.resolve({ conversationPresetId: toText(fields.preset_id), model });
    const preset = toPromptPreset(chosenPreset, request.generation, request);
    const { names } = preset.layout;
    const isGroup = fields.participants.length > 1 && participants.length > 1;
    const character = member && toPromptCharacter(member);
    const scene: PromptContext = {
      character,
      group: isGroup ? participants.map(({ name, isMuted }) => ({ name, isMuted })) : undefined,
      hasNames: member !== undefined && (names === "always" || (isGroup && names === "group")),
      persona: withheld?.persona ? NO_PERSONA : await this.#loadPersona(personaId),
      layout: preset.layout,
      systemPrompt: toText(fields.system_prompt),
      scenario: toText(fields.scenario),
      note: withCharacterNote(parseNote(fields.note, request.countUserMessages), character?.authorNote),
      summary: parseStoredSummary(fields.summary),
      variables: parseVariables(fields.variables),
      action: request.action,
      clientSystem: request.clientSystem,
    };
    const { books, unreadable } = await this.#deps.lorebooks.findBooks({
      characters: member && [toBookOwner(member)],
      personaId,
      lorebookIds: toTexts(fields.lorebook_ids),
    });
    if (unreadable.length > 0) {
      throw new AppError("internal", `Can't read the lorebook "${unreadable[0]}" of this conversation`);
    }
    const lore = books.length === 0 ? undefined : {
      books,
      speaker: member,
      getGreetingIndex: request.getGreetingIndex,
      matcher: this.#deps.matcher,
      settings: this.#deps.getLoreSettings(),
    } satisfies CompositionRequest["lore"];
    const { now, memories } = this.#deps;
    const chat: MemoryChat = { characterId: member?.id, personaId, folder: toText(fields.folder) };
    const usable = memories.getBudgetPercent() > 0 && !withheld?.notes ? memories.listUsable() : [];
    const choose = (contextTokens: number) =>
      chooseMemories(usable, chat, Math.floor(contextTokens * memories.getBudgetPercent() / 100));
    const budget = new MacroBudget();
    const stage: CompositionRequest = {
      conversationId,
      context: scene,
      timeZone,
      lore,
      generation: request.generation,
      messageCount,
      chooseMemories: usable.length === 0 ? undefined : choose,
      budget,
      clocks: this.#clocks,
      now,
    };
    const runScripts = this.#openScripts(stage, chosenPreset, member);
    if (runScripts !== undefined) stage.runScripts = async (texts) => (await runScripts(texts, "prompt")).texts;
    return {
      context: scene,
      preset,
      personaId,
      compose: (seen) => composePrompt(stage, seen),
      expand: createMessageExpander(stage),
      runScripts,
    };
  }

  #openScripts(
    stage: CompositionRequest,
    preset: Preset,
    member: LoadedParticipant | undefined,
  ): OpenPromptContext["runScripts"] {
    const { regexScripts } = this.#deps;
    const active = regexScripts.listActive(listScriptSources(preset, member));
    if (active.length === 0) return undefined;
    const expand = createScriptExpander(stage);
    return (texts, purpose) => regexScripts.runner.run(active, texts, { purpose, expand });
  }

  async #loadPersona(id: string | undefined): Promise<PromptContext["persona"]> {
    const { personas, getOwner } = this.#deps;
    if (id === undefined) return { name: getOwner().name, description: "" };
    try {
      const { name, description, placement } = (await personas.get(id)).persona;
      return { name, description, placement };
    } catch (error) {
      if (error instanceof AppError && error.code === "not_found") return { name: getOwner().name, description: "" };
      throw error;
    }
  }
}

/** Lists the scripts of a preset and of the character that speaks, in the order in which they run. */
export function listScriptSources(preset: Preset, member: LoadedParticipant | undefined): ScriptSource[] {
  const { id, name, regexScripts: scripts } = preset;
  const ofPreset: ScriptSource = { kind: "preset", id, name, scripts };
  if (member === undefined) return [ofPreset];
  const { regex_scripts } = member.card.data.extensions;
  return [ofPreset, { kind: "character", id: member.id, name: member.name, scripts: regex_scripts }];
}

/** The user of a prompt that leaves out the owner's persona. */
const NO_PERSONA: PromptContext["persona"] = { name: "User", description: "" };

/** Returns the fields for finding a character's lorebooks. */
function toBookOwner({ id, name, card: { data } }: LoadedParticipant): NonNullable<BookRequest["characters"]>[number] {
  return { id, name, book: data.character_book as Lorebook | undefined, world: toText(data.extensions.world) };
}

/** Parses the author's note. Clients write it, so any field may be missing or have the wrong type. */
function parseNote(value: unknown, countUserMessages: () => number = () => 0): ChatNote | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { text, depth, role, position, interval } = value as Record<string, unknown>;
  if (typeof text !== "string") return undefined;
  return {
    text,
    depth: typeof depth === "number" && depth >= 0 ? Math.floor(depth) : 0,
    role: typeof role === "string" && role !== "" ? role : "system",
    position: position === "before_main" || position === "after_main" ? position : "in_chat",
    isOmitted: typeof interval === "number" && interval !== 1 && !isDue(Math.floor(interval), countUserMessages()),
  };
}

/** Puts the author's note of a character in the place of the chat's, or next to it. A chat without one has the default place. */
function withCharacterNote(
  note: ChatNote | undefined,
  own: CharacterAuthorNote | undefined,
): ChatNote | undefined {
  if (own === undefined) return note;
  const before = note?.text ?? "";
  const texts = { replace: [own.text], before: [own.text, before], after: [before, own.text] }[own.place];
  return {
    ...(note ?? { depth: NOTE_DEPTH, role: "system", position: "in_chat", isOmitted: false }),
    text: texts.filter((text) => text.trim() !== "").join("\n"),
  };
}

/** Reports whether a note is due that is only sent with every so many messages of the user; 0 is never. */
function isDue(interval: number, userMessages: number): boolean {
  return interval > 0 && userMessages > 0 && userMessages % interval === 0;
}

/** Parses the summary of a conversation. @returns `undefined` if it's missing or empty. */
export function parseStoredSummary(value: unknown): PromptSummary | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { text, up_to_message_id: upTo } = value as Record<string, unknown>;
  return typeof text === "string" && text.trim() !== "" ? { text, upTo: toText(upTo) } : undefined;
}

function parseVariables(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(asObject(value)).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function toTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function toText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The card fields used in prompts (docs/protocols/cards.md#card-versions). */
export interface PromptCharacter {
  id: string;
  /** The nickname, if the card has one. */
  name: string;
  description: string;
  personality: string;
  scenario: string;
  examples: string;
  /** Overrides the main prompt. */
  systemPrompt: string;
  /** Overrides the post-history instructions. */
  instructions: string;
  version: string;
  creatorNotes: string;
  /** The first message and its alternatives. */
  greetings: string[];
  /** The card's note, inserted into the history. */
  note?: PromptNote;
  /** The author's note for chats with it. */
  authorNote?: CharacterAuthorNote;
}

/** An author's note that belongs to a character. Its depth, role and interval are those of the chat's note. */
export interface CharacterAuthorNote {
  text: string;
  /** Relative to the chat's own note. */
  place: "replace" | "before" | "after";
}

/** Text inserted into the history. */
export interface PromptNote {
  text: string;
  /** Number of messages after it. */
  depth: number;
  role: string;
}

/** The author's note. */
export interface ChatNote extends PromptNote {
  /** Its depth and role only apply in the chat; before and after the main prompt, only its role. */
  position: "in_chat" | "before_main" | "after_main";
  /** True if it isn't due at this message. Entries around it are omitted, too. */
  isOmitted: boolean;
}

/** Summary of the earlier part of a conversation. */
export interface PromptSummary {
  text: string;
  /** Id of the last message it covers. */
  upTo?: string;
}

/** Everything in a prompt besides messages. */
export interface PromptContext {
  character?: PromptCharacter;
  /** All characters of a group conversation. */
  group?: { name: string; isMuted: boolean }[];
  /** True if messages are prefixed with the speaker's name. */
  hasNames: boolean;
  persona: PersonaText;
  layout: PromptLayout;
  /** Set by the conversation; overrides preset and card. */
  systemPrompt?: string;
  scenario?: string;
  note?: ChatNote;
  summary?: PromptSummary;
  /** Macro variables of the chat. */
  variables?: Record<string, string>;
  /** Instructions of a client that sends its own messages. They follow the main prompt, and braces in them are plain text. */
  clientSystem?: string;
  /** `continue` extends the last message, `impersonate` writes for the user. */
  action: "reply" | "continue" | "impersonate";
}

/** A lorebook entry that is sent. */
export interface PromptLore extends LoreSource {
  /** With macros expanded. */
  content: string;
  position: EntryPosition;
  /** Name of its outlet, if that's its position. */
  outlet?: string;
  depth: number;
  role: string;
  order: number;
  /** True for entries that are dropped first if the context is full. */
  isDroppedFirst?: boolean;
}
