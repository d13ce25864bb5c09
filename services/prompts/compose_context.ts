/** Composes a prompt from its context: scans lorebooks, expands macros and builds the blocks. */
import type { EntryName } from "../lorebooks/activation.ts";
import { composeBlocks } from "./compose.ts";
import { type LorebookScanInput, scanLorebooks } from "./lorebook_scan.ts";
import type { MacroBudget } from "./macros/macro_budget.ts";
import { type MacroField, Macros, type MacroScope } from "./macros/macros.ts";
import { formatLoreName } from "./prompt_blocks.ts";
import type { ComposedPrompt, HistoryWindow, PromptMessage } from "./prompts.ts";
import { formatMemories, type MemoryChoice } from "../memories/memory_choice.ts";
import type { PromptContext } from "./prompt_context.ts";
import { createSeededRandom } from "./seeded_random.ts";
import { splitContent } from "../llm/token_estimate.ts";

/** Everything that a composition needs. */
export interface CompositionRequest {
  conversationId: string;
  context: PromptContext;
  /** IANA name of the client's time zone. */
  timeZone?: string;
  clocks: PrefixClocks;
  lore?: Omit<LorebookScanInput, "context">;
  /** Chooses the notes that fit. Absent if there are none. */
  chooseMemories?(contextTokens: number): MemoryChoice;
  /** Shared by all macros of this prompt. */
  budget: MacroBudget;
  now(): number;
}

/** Composes the blocks of a prompt. */
export async function composePrompt(stage: CompositionRequest, seen: HistoryWindow): Promise<ComposedPrompt> {
  const { conversationId, context, timeZone, clocks, budget, now } = stage;
  const nowMs = now();
  const heldMs = clocks.getTimeMs(conversationId, nowMs, seen.updatesState);
  const lastUser = seen.messages.find(({ id, message }) => id !== undefined && message.role === "user");
  const idleMs = lastUser?.atMs === undefined ? undefined : Math.max(0, nowMs - lastUser.atMs);
  const scope: MacroScope = {
    ...toMacroScope(stage),
    clock: { nowMs: heldMs, timeZone, idleMs },
    chat: { ...findLastTexts(seen.messages), model: seen.model },
  };
  const macros = new Macros(scope, budget);
  // Random choices stay the same for one user message: in previews, and when a reply is regenerated.
  const asked = seen.messages.filter(({ message }) => message.role === "user");
  const turn = [conversationId, asked.length, asked[0] && splitContent(asked[0].message).text].join("\n");
  const fresh = { random: createSeededRandom(turn), clock: { nowMs, timeZone, idleMs } };
  // The text is the key of its random choices. Entries have no id that survives edits of the book.
  const expand = (text: string, { bookName, entryName }: EntryName) =>
    macros.expand(text, { location: `lore\n${text}`, field: "lorebook", source: formatLoreName(bookName, entryName) });
  const found = stage.lore && await scanLorebooks({ ...stage.lore, context }, seen, fresh.random, expand);
  const { lore = [], disabled } = found ?? {};
  const needsUserMessage = context.action === "reply" && context.group === undefined &&
    seen.messages[0]?.message.role === "assistant";
  const memories = stage.chooseMemories?.(seen.contextTokens);
  const memory = formatMemories(memories?.sent ?? []);
  const blocks = composeBlocks({ context, lore, disabled, needsUserMessage, macros, fresh, memory });
  const { squashesSystem } = context.layout;
  const { notExpanded } = budget;
  return { blocks, droppedLore: found?.dropped, loreState: found?.state, squashesSystem, notExpanded, memories };
}

/**
 * Returns a function that expands the macros of stored messages, with the time of the message and choices that never
 * change.
 *
 * @returns `undefined` in a conversation without characters, where braces are plain text.
 */
export function createMessageExpander(
  stage: CompositionRequest,
): ((text: string, id: string, atMs: number) => string) | undefined {
  if (stage.context.character === undefined) return undefined;
  const macros = new Macros({ ...toMacroScope(stage), clock: { nowMs: 0 }, chat: {} }, stage.budget);
  const place = { field: "history", hasTags: false, hasOwnVariables: true };
  return (text, id, atMs) => {
    if (!text.includes("{{")) return text;
    const clock = { nowMs: atMs, timeZone: stage.timeZone };
    return macros.expand(text, { ...place, location: id, source: id === "" ? undefined : id, clock });
  };
}

function toMacroScope(
  { conversationId, context }: CompositionRequest,
): Pick<MacroScope, "char" | "user" | "group" | "fields" | "random"> {
  const { character, persona, group } = context;
  const fields: Partial<Record<MacroField, string>> = {
    persona: persona.description,
    description: character?.description ?? "",
    personality: character?.personality ?? "",
    scenario: context.scenario ?? character?.scenario ?? "",
    mesexamples: character?.examples ?? "",
    charprompt: character?.systemPrompt ?? "",
    charjailbreak: character?.instructions ?? "",
    charversion: character?.version ?? "",
    summary: context.summary?.text ?? "",
  };
  return {
    char: character?.name ?? "Assistant",
    user: persona.name,
    group: group?.join(", "),
    fields,
    random: createSeededRandom(conversationId),
  };
}

function findLastTexts(turns: readonly PromptMessage[]): Omit<MacroScope["chat"], "model"> {
  const last = (role?: string) => {
    // Neither a call of a tool nor its result is something that somebody said.
    const turn = turns.find(({ message }) =>
      message.tool_calls === undefined && (role === undefined ? message.role !== "tool" : message.role === role)
    );
    return turn === undefined ? undefined : splitContent(turn.message).text;
  };
  return { lastMessage: last(), lastUserMessage: last("user"), lastCharMessage: last("assistant") };
}

/** Servers rarely cache a prompt for longer than this. */
const SILENCE_MS = 30 * 60 * 1000;
/** After this, the time in the prompt would be wrong. */
const LONGEST_MS = 3 * 60 * 60 * 1000;
const CONVERSATIONS = 1_000;

/**
 * Keeps the time in the stable part of a prompt constant while a conversation is active, so that the prompt cache stays
 * valid.
 */
export class PrefixClocks {
  /** Ordered by last use. */
  readonly #clocks = new Map<string, { atMs: number; readMs: number }>();

  /** Returns the time for a conversation, in milliseconds since 1970. @param remembers False for previews. */
  getTimeMs(conversationId: string, nowMs: number, remembers: boolean): number {
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
