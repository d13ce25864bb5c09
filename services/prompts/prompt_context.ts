/** Reads the scene of a conversation: its characters, its persona, its preset. */
import { AppError } from "../errors.ts";
import type { EntryPosition, KeyMatcher } from "../lorebooks/activation.ts";
import type { Lorebook } from "../lorebooks/lorebook_document.ts";
import type { BookRequest, Lorebooks } from "../lorebooks/lorebooks.ts";
import type { Presets } from "../presets/presets.ts";
import { type CardSource, type CastMember, type Participant, readCast, sceneCharacter } from "./participants.ts";
import { type PromptLayout, scenePreset } from "./prompt_layout.ts";
import { MacroBudget } from "./macros/macro_budget.ts";
import { composeScene, messageMacros, PrefixClocks, type Stage } from "./compose_context.ts";
import type { Composed, Seen } from "./prompts.ts";
import type { LoreSource } from "./prompt_blocks.ts";

/** The fields of a conversation that a scene is made of; whatever is of another type is none. */
export interface SceneFields {
  participants: readonly Participant[];
  persona_id?: unknown;
  preset_id?: unknown;
  lorebook_ids?: unknown;
  system_prompt?: unknown;
  scenario?: unknown;
  note?: unknown;
  summary?: unknown;
}

/** What a preset says; see `scenePreset`. */
export interface ScenePreset {
  id: string;
  name: string;
  layout: PromptLayout;
  /** Tokens that prompt and answer may take together, where it says. */
  contextSize?: number;
  /** Sampler fields under their wire names. */
  params: Record<string, unknown>;
}

/** Where scenes come from. */
export interface SceneParts {
  cards: CardSource;
  personas: { get(id: string): Promise<{ persona: { name: string; description: string } }> };
  /** What the owner is called where no persona says it, and who the owner is where the conversation does not. */
  owner(): { name: string; personaId?: string };
  presets: Pick<Presets, "resolve">;
  lorebooks: Pick<Lorebooks, "booksFor">;
  matcher: KeyMatcher;
  now(): number;
}

/** What is asked for. */
export interface SceneQuestion {
  conversationId: string;
  /** Messages up to the reply. */
  messageCount: number;
  /** Which greeting began the conversation. */
  greetingIndex?(): number | undefined;
  fields: SceneFields;
  cast: readonly CastMember[];
  /** Who speaks; the first of the cast without it. */
  characterId?: string;
  action: Scene["action"];
  /** Why the model is asked, in SillyTavern's words. */
  generation: string;
  model: string;
  timeZone?: string;
}

/** A scene, ready for its history. */
export interface OpenScene {
  scene: Scene;
  preset: ScenePreset;
  compose(seen: Seen): Promise<Composed>;
  /** Expands the macros of a stored message; see `messageMacros`. */
  expand?(text: string, id: string, atMs: number): string;
}

/** Reads scenes. */
export class Scenes {
  readonly #parts: SceneParts;
  readonly #clocks = new PrefixClocks();

  constructor(parts: SceneParts) {
    this.#parts = parts;
  }

  /** Reads who takes part. @throws {AppError} as `readCast` does */
  cast({ participants }: Pick<SceneFields, "participants">): Promise<CastMember[]> {
    return readCast(this.#parts.cards, participants);
  }

  /** @throws {AppError} `unprocessable` for a persona that is there and cannot be read */
  async open(asked: SceneQuestion): Promise<OpenScene> {
    const { conversationId, messageCount, fields, cast, characterId, timeZone, model } = asked;
    const member = characterId === undefined ? cast[0] : cast.find(({ id }) => id === characterId);
    const personaId = textIn(fields.persona_id) ?? this.#parts.owner().personaId;
    const chosen = await this.#parts.presets.resolve({ conversationPresetId: textIn(fields.preset_id), model });
    const preset = scenePreset(chosen, asked.generation);
    const { names } = preset.layout;
    const isGroup = fields.participants.length > 1 && cast.length > 1;
    const scene: Scene = {
      character: member && sceneCharacter(member),
      group: isGroup ? cast.map(({ name }) => name) : undefined,
      hasNames: member !== undefined && (names === "always" || (isGroup && names === "group")),
      persona: await this.#persona(personaId),
      layout: preset.layout,
      systemPrompt: textIn(fields.system_prompt),
      scenario: textIn(fields.scenario),
      note: noteOf(fields.note),
      summary: summaryOf(fields.summary),
      action: asked.action,
    };
    const { books, unreadable } = await this.#parts.lorebooks.booksFor({
      characters: member && [bookOwner(member)],
      personaId,
      lorebookIds: textsIn(fields.lorebook_ids),
    });
    if (unreadable.length > 0) {
      throw new AppError("internal", `Cannot read the lorebook "${unreadable[0]}", which belongs to this conversation`);
    }
    const lore = books.length === 0 ? undefined : {
      ...{ books, member, generation: asked.generation, turn: messageCount, greetingIndex: asked.greetingIndex },
      matcher: this.#parts.matcher,
    };
    const { now } = this.#parts;
    const budget = new MacroBudget();
    const stage: Stage = { conversationId, scene, timeZone, lore, budget, clocks: this.#clocks, now };
    return { scene, preset, compose: (seen) => composeScene(stage, seen), expand: messageMacros(stage) };
  }

  async #persona(id: string | undefined): Promise<Scene["persona"]> {
    const { personas, owner } = this.#parts;
    if (id === undefined) return { name: owner().name, description: "" };
    try {
      const { name, description } = (await personas.get(id)).persona;
      return { name, description };
    } catch (error) {
      if (error instanceof AppError && error.code === "not_found") return { name: owner().name, description: "" };
      throw error;
    }
  }
}

/** Gives by what the lorebooks of a character are found. */
function bookOwner({ id, name, card: { data } }: CastMember): NonNullable<BookRequest["characters"]>[number] {
  return { id, name, book: data.character_book as Lorebook | undefined, world: textIn(data.extensions.world) };
}

/** The note is the client's document: whatever has no text or no place is none. */
function noteOf(value: unknown): SceneNote | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { text, depth, role } = value as Record<string, unknown>;
  if (typeof text !== "string") return undefined;
  return {
    text,
    depth: typeof depth === "number" && depth >= 0 ? Math.floor(depth) : 0,
    role: typeof role === "string" && role !== "" ? role : "system",
  };
}

/** Gives what a conversation keeps of its begin, `undefined` where that says nothing. */
export function summaryOf(value: unknown): SceneSummary | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { text, up_to_message_id: upTo } = value as Record<string, unknown>;
  return typeof text === "string" && text.trim() !== "" ? { text, upTo: textIn(upTo) } : undefined;
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The parts of a character's card that reach the prompt (docs/protocols/cards.md#card-versions). */
export interface SceneCharacter {
  id: string;
  /** Its nickname where it has one. */
  name: string;
  description: string;
  personality: string;
  scenario: string;
  examples: string;
  /** Takes the place of the main prompt. */
  systemPrompt: string;
  /** Takes the place of the post-history instructions. */
  instructions: string;
  version: string;
  /** A note of the card, set into the history. */
  note?: SceneNote;
}

/** A text at a depth. */
export interface SceneNote {
  text: string;
  /** Messages that stand behind it. */
  depth: number;
  role: string;
}

/** What a conversation keeps of its begin. */
export interface SceneSummary {
  text: string;
  /** The last message that it tells of. */
  upTo?: string;
}

/** One scene. */
export interface Scene {
  character?: SceneCharacter;
  /** Names of all characters of a conversation with several. */
  group?: string[];
  /** True where each message has the name of whoever said it before it. */
  hasNames: boolean;
  persona: { name: string; description: string };
  layout: PromptLayout;
  /** What the conversation says over preset and card. */
  systemPrompt?: string;
  scenario?: string;
  note?: SceneNote;
  summary?: SceneSummary;
  /** `continue` goes on with the last message, `impersonate` writes for the owner. */
  action: "reply" | "continue" | "impersonate";
}

/** An entry of a lorebook that goes out. */
export interface SceneLore extends LoreSource {
  /** Ready to be sent. */
  content: string;
  position: EntryPosition;
  depth: number;
  role: string;
  order: number;
  /** To be left out first where there is not room for everything. */
  isFirstToGo?: boolean;
}
