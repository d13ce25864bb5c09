/** Makes of a scene what the prompts take: its pieces, once the history is read, and its messages as they are sent. */
import type { EntryName } from "../lorebooks/activation.ts";
import { composeBlocks } from "./compose.ts";
import { findLore, type LoreScene } from "./lorebook_scan.ts";
import type { MacroBudget } from "./macros/macro_budget.ts";
import { type MacroField, Macros, type MacroScope } from "./macros/macros.ts";
import { loreName } from "./prompt_blocks.ts";
import type { Composed, PromptTurn, Seen } from "./prompts.ts";
import type { Scene } from "./prompt_context.ts";
import { seededRandom } from "./seeded_random.ts";
import { countedParts } from "./tokens/token_estimate.ts";

/** What a scene is staged with. */
export interface Stage {
  conversationId: string;
  scene: Scene;
  /** IANA name, of whoever asked. */
  timeZone?: string;
  clocks: PrefixClocks;
  lore?: Omit<LoreScene, "scene">;
  /** Of all macros of this prompt. */
  budget: MacroBudget;
  now(): number;
}

/** Makes the pieces of a scene. */
export async function composeScene(stage: Stage, seen: Seen): Promise<Composed> {
  const { conversationId, scene, timeZone, clocks, budget, now } = stage;
  const nowMs = now();
  const heldMs = clocks.of(conversationId, nowMs, seen.remembers);
  const lastUser = seen.turns.find(({ id, message }) => id !== undefined && message.role === "user");
  const idleMs = lastUser?.atMs === undefined ? undefined : Math.max(0, nowMs - lastUser.atMs);
  const scope: MacroScope = {
    ...scopeOf(stage),
    clock: { nowMs: heldMs, timeZone, idleMs },
    chat: { ...lastTexts(seen.turns), model: seen.model },
  };
  const macros = new Macros(scope, budget);
  // What is drawn anew is drawn once for each turn: the same for a look at it and for another try.
  const asked = seen.turns.filter(({ message }) => message.role === "user");
  const turn = [conversationId, asked.length, asked[0] && countedParts(asked[0].message).text].join("\n");
  const fresh = { random: seededRandom(turn), clock: { nowMs, timeZone, idleMs } };
  // The text itself is the place: entries have no other that stays when their book is edited.
  const expand = (text: string, { bookName, entryName }: EntryName) =>
    macros.expand(text, { place: `lore\n${text}`, field: "lorebook", source: loreName(bookName, entryName) });
  const found = stage.lore && await findLore({ ...stage.lore, scene }, seen, fresh.random, expand);
  const { lore = [], disabled } = found ?? {};
  const isTurnMissing = scene.action === "reply" && scene.group === undefined &&
    seen.turns[0]?.message.role === "assistant";
  const blocks = composeBlocks({ scene, lore, disabled, isTurnMissing, macros, fresh });
  const { squashesSystem } = scene.layout;
  const { notExpanded } = budget;
  return { blocks, droppedLore: found?.dropped, loreState: found?.state, squashesSystem, notExpanded };
}

/**
 * Gives what expands the macros of a message: as of the time it was said, each choice made for good. `undefined` in a
 * conversation without characters, whose braces mean nothing.
 */
export function messageMacros(stage: Stage): ((text: string, id: string, atMs: number) => string) | undefined {
  if (stage.scene.character === undefined) return undefined;
  const macros = new Macros({ ...scopeOf(stage), clock: { nowMs: 0 }, chat: {} }, stage.budget);
  const place = { field: "history", hasTags: false, hasOwnVariables: true };
  return (text, id, atMs) => {
    if (!text.includes("{{")) return text;
    const clock = { nowMs: atMs, timeZone: stage.timeZone };
    return macros.expand(text, { ...place, place: id, source: id === "" ? undefined : id, clock });
  };
}

function scopeOf({ conversationId, scene }: Stage): Pick<MacroScope, "char" | "user" | "group" | "fields" | "random"> {
  const { character, persona, group } = scene;
  const fields: Partial<Record<MacroField, string>> = {
    persona: persona.description,
    description: character?.description ?? "",
    personality: character?.personality ?? "",
    scenario: scene.scenario ?? character?.scenario ?? "",
    mesexamples: character?.examples ?? "",
    charprompt: character?.systemPrompt ?? "",
    charjailbreak: character?.instructions ?? "",
    charversion: character?.version ?? "",
    summary: scene.summary?.text ?? "",
  };
  return {
    char: character?.name ?? "Assistant",
    user: persona.name,
    group: group?.join(", "),
    fields,
    random: seededRandom(conversationId),
  };
}

function lastTexts(turns: readonly PromptTurn[]): Omit<MacroScope["chat"], "model"> {
  const last = (role?: string) => {
    const turn = turns.find(({ message }) => role === undefined || message.role === role);
    return turn === undefined ? undefined : countedParts(turn.message).text;
  };
  return { lastMessage: last(), lastUserMessage: last("user"), lastCharMessage: last("assistant") };
}

/** A server hardly keeps what it cached of a prompt for longer than this silence. */
const SILENCE_MS = 30 * 60 * 1000;
/** Beyond this a told time is wrong rather than old. */
const LONGEST_MS = 3 * 60 * 60 * 1000;
const CONVERSATIONS = 1_000;

/** The clocks of conversations. */
export class PrefixClocks {
  /** The one read last stands last. */
  readonly #clocks = new Map<string, { atMs: number; readMs: number }>();

  /** Gives the time for a conversation. @param remembers False for a look. */
  of(conversationId: string, nowMs: number, remembers: boolean): number {
    const clock = this.#clocks.get(conversationId);
    const isGood = clock !== undefined && nowMs - clock.readMs < SILENCE_MS && nowMs - clock.atMs < LONGEST_MS;
    const atMs = isGood ? clock.atMs : nowMs;
    if (remembers) {
      this.#clocks.delete(conversationId);
      if (this.#clocks.size >= CONVERSATIONS) this.#clocks.delete(this.#clocks.keys().next().value!);
      this.#clocks.set(conversationId, { atMs, readMs: nowMs });
    }
    return atMs;
  }
}
