/** Composes a prompt from its context: scans lorebooks, expands macros and builds the blocks. */
import type { MacroClock } from "./macros/macro_time.ts";
import { LRUCache } from "lru-cache";
import {
  activate,
  type ActivationBook,
  type ActivationInput,
  type ActivationState,
  type DropReason,
  type EntryName,
  type KeyMatcher,
  type LorebookScanSource,
} from "../lorebooks/activation.ts";
import { composeBlocks } from "./compose.ts";
import type { MacroBudget } from "./macros/macro_budget.ts";
import {
  type MacroContext,
  type MacroField,
  Macros,
  type MacroScope,
  mayHaveMacros,
  type SeededRandom,
} from "./macros/macros.ts";
import {
  type ComposedPrompt,
  formatLoreName,
  type HistoryWindow,
  type LoreSource,
  type PromptMessage,
} from "./prompt.ts";
import { formatMemories, type MemoryChoice } from "../memories/memory.ts";
import type { PromptContext, PromptLore } from "./prompt_context.ts";
import { createSeededRandom, type LoadedParticipant, toLoreCharacter } from "./participants.ts";
import { splitContent } from "../llm/token_count.ts";
import type { ScriptText } from "../regex_scripts/regex_script.ts";

/** Everything that a composition needs. */
export interface CompositionRequest {
  conversationId: string;
  context: PromptContext;
  /** IANA name of the client's time zone. */
  timeZone?: string;
  clocks: PrefixClocks;
  lore?: Omit<LorebookScanInput, "context" | "generation" | "messageCount">;
  /** SillyTavern's generation type: `normal`, `continue`, `impersonate`, … */
  generation: string;
  /** Number of messages in the conversation, including those that aren't read. */
  messageCount: number;
  /** Chooses the notes that fit. Absent if there are none. */
  chooseMemories?(contextTokens: number): MemoryChoice;
  /** Shared by all macros of this prompt. */
  budget: MacroBudget;
  /** Runs the regex scripts on texts that are sent. Absent if there are none. */
  runScripts?(texts: readonly ScriptText[]): Promise<string[]>;
  now(): number;
}

/** Composes the blocks of a prompt. */
export async function composePrompt(stage: CompositionRequest, seen: HistoryWindow): Promise<ComposedPrompt> {
  const { conversationId, context, timeZone, clocks, budget, now } = stage;
  const nowMs = now();
  const heldMs = clocks.getTimeMs(conversationId, nowMs, seen.updatesState);
  // The newest message is the one that is being answered.
  const lastUser = seen.messages.slice(1).find(({ message }) => message.role === "user");
  const idleMs = lastUser?.atMs === undefined ? undefined : Math.max(0, nowMs - lastUser.atMs);
  const scope: MacroScope = {
    ...toMacroScope(stage),
    clock: { nowMs: heldMs, timeZone, idleMs },
    chat: {
      ...findLastTexts(seen.messages),
      model: seen.model,
      ...{ generation: stage.generation, messageCount: stage.messageCount },
      ...{ contextTokens: seen.contextTokens, promptTokens: seen.budget },
    },
  };
  const macros = new Macros(scope, budget);
  // Random choices depend on the user message, so that they're the same in previews and when a reply is regenerated.
  const userMessages = seen.messages.filter(({ message }) => message.role === "user");
  const seed = [conversationId, userMessages.length, userMessages[0] && splitContent(userMessages[0].message).text]
    .join("\n");
  const fresh = { random: createSeededRandom(seed), clock: { nowMs, timeZone, idleMs } } satisfies Pick<
    MacroContext,
    "random" | "clock"
  >;
  // The text itself is the key of its random choices, because entries have no ID that survives edits of the book.
  const expand = (text: string, { bookName, entryName }: EntryName) =>
    macros.expand(text, { location: `lore\n${text}`, field: "lorebook", source: formatLoreName(bookName, entryName) });
  const { generation, messageCount } = stage;
  const expandField = (text: string, source: LorebookScanSource) =>
    macros.expand(text, { location: `scan ${source}`, hasOwnVariables: true, ignoresUnknown: true });
  const found = stage.lore &&
    await scanLorebooks({ ...stage.lore, context, generation, messageCount }, seen, fresh.random, {
      expand,
      expandField,
    });
  const { disabled } = found ?? {};
  const lore = await runLoreScripts(stage, found?.lore ?? []);
  for (const { position, outlet, content } of lore.toReversed()) {
    if (position === "outlet" && outlet) macros.addToOutlet(outlet, content);
  }
  const needsUserMessage = context.action === "reply" && context.group === undefined &&
    seen.messages[0]?.message.role === "assistant";
  const memories = stage.chooseMemories?.(seen.contextTokens);
  const memory = formatMemories(memories?.sent ?? []);
  const blocks = composeBlocks({ context, lore, disabled, needsUserMessage, macros, fresh, memory });
  const { squashesSystem } = context.layout;
  const { notExpanded } = budget;
  return {
    blocks,
    droppedLore: found?.dropped,
    loreState: found?.state,
    keepsLore: found?.hasKept,
    squashesSystem,
    notExpanded,
    memories,
  };
}

async function runLoreScripts({ runScripts }: CompositionRequest, lore: PromptLore[]): Promise<PromptLore[]> {
  if (runScripts === undefined || lore.length === 0) return lore;
  const texts = await runScripts(lore.map(({ content: text, position, depth }): ScriptText => ({
    ...{ text, placement: "world_info" },
    ...(position === "at_depth" && { depth }),
  })));
  return lore.map((entry, n) => ({ ...entry, content: texts[n]! }));
}

/** Returns a function that expands the macros of regex scripts. */
export function createScriptExpander(stage: CompositionRequest): (text: string) => string {
  const { now, timeZone, messageCount, generation } = stage;
  const clock = { nowMs: now(), timeZone } satisfies MacroClock;
  const macros = new Macros({ ...toMacroScope(stage), clock, chat: { messageCount, generation } }, stage.budget);
  const options = { field: "history", hasOwnVariables: true, ignoresUnknown: true } satisfies Partial<MacroContext>;
  return (text) => macros.expand(text, { ...options, location: `regex\n${text}` });
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
  const scope: MacroScope = { ...toMacroScope(stage), clock: { nowMs: 0 }, chat: {} };
  const macros = new Macros(scope, stage.budget);
  const options = {
    ...{ field: "history", hasOwnVariables: true, ignoresUnknown: true },
  } satisfies Partial<MacroContext>;
  let hasCardVariables = false;
  return (text, id, atMs) => {
    if (!mayHaveMacros(text)) return text;
    if (!hasCardVariables && MAY_READ_VARIABLES.test(text)) {
      // Fields are expanded before messages, which can read the variables that they set.
      hasCardVariables = true;
      for (const field of ["description", "personality", "persona", "scenario"] as const) {
        const value = scope.fields[field] ?? "";
        if (MAY_READ_VARIABLES.test(value)) macros.expand(value, { location: field, self: field });
      }
    }
    const clock = { nowMs: atMs, timeZone: stage.timeZone } satisfies MacroClock;
    return macros.expand(text, { ...options, location: id, source: id === "" ? undefined : id, clock });
  };
}

const MAY_READ_VARIABLES = /\{\{[^{}]{0,20}var|\{\{\s{0,10}[.$]|\{\{[^{}]{0,20}[!\s:][.$]/i;

function toMacroScope(
  { conversationId, context }: CompositionRequest,
): Pick<MacroScope, "char" | "user" | "group" | "fields" | "greetings" | "variables" | "random"> {
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
    chardepthprompt: character?.note?.text ?? "",
    creatornotes: character?.creatorNotes ?? "",
    summary: context.summary?.text ?? "",
  };
  return {
    char: character?.name ?? "Assistant",
    user: persona.name,
    group,
    fields,
    greetings: character?.greetings,
    variables: context.variables,
    random: createSeededRandom(conversationId),
  };
}

function findLastTexts(messages: readonly PromptMessage[]): Omit<MacroScope["chat"], "model"> {
  const last = (role?: string) => {
    // Tool calls and their results weren't said by anyone.
    const entry = messages.find(({ message }) =>
      message.tool_calls === undefined && (role === undefined ? message.role !== "tool" : message.role === role)
    );
    return entry === undefined ? undefined : splitContent(entry.message).text;
  };
  return { lastMessage: last(), lastUserMessage: last("user"), lastCharMessage: last("assistant") };
}

/** Servers rarely cache a prompt longer than this. */
const SILENCE_MS = 30 * 60 * 1000;
/** After this time, the time in the prompt would be wrong. */
const LONGEST_MS = 3 * 60 * 60 * 1000;
const CONVERSATIONS = 1_000;

/**
 * Keeps the time in the stable part of a prompt constant while a conversation is active, so that the prompt cache stays
 * valid.
 */
export class PrefixClocks {
  /** Ordered by last use. */
  readonly #clocks = new LRUCache<string, { atMs: number; readMs: number }>({ max: CONVERSATIONS });

  /** Returns the time for a conversation, in milliseconds since 1970. @param remembers False for previews. */
  getTimeMs(conversationId: string, nowMs: number, remembers: boolean): number {
    const clock = this.#clocks.get(conversationId);
    const isGood = clock !== undefined && nowMs - clock.readMs < SILENCE_MS && nowMs - clock.atMs < LONGEST_MS;
    const atMs = isGood ? clock.atMs : nowMs;
    if (remembers) this.#clocks.set(conversationId, { atMs, readMs: nowMs });
    return atMs;
  }
}

/** Input of a scan besides the messages. */
export interface LorebookScanInput {
  context: PromptContext;
  /** The character that replies. */
  speaker?: LoadedParticipant;
  books: readonly ActivationBook[];
  generation: string;
  messageCount: number;
  /** Index of the greeting that started the conversation. Only called if an entry depends on it. */
  getGreetingIndex?(): number | undefined;
  matcher: KeyMatcher;
  settings: LoreSettings;
}

/** The owner's settings of lorebooks. */
export interface LoreSettings
  extends Pick<ActivationInput, "maxRecursion" | "minActivations" | "minActivationsDepth" | "bookOrder"> {
  /** Whether entries of books that don't decide it stay active until the chat is trimmed. */
  keepsFound: boolean;
  /** Share of the token budget that all entries may use together. */
  budgetPercent: number;
  /** Most tokens of all entries. */
  budgetTokens?: number;
  /** Whether the names of speakers are scanned. */
  scansNames: boolean;
}

/** An entry that matched but isn't sent. */
export interface DroppedLore extends Omit<LoreSource, "reason"> {
  reason: DropReason;
  key?: string;
}

/** Result of a scan. */
interface LorebookScanResult {
  /** Lowest order first. */
  lore: PromptLore[];
  dropped: DroppedLore[];
  /** Stored with the reply, for sticky entries and cooldowns. */
  state: ActivationState;
  /** Whether an entry is only active because it's kept. */
  hasKept: boolean;
  /** Prompts that are disabled by an active entry. */
  disabled: ReadonlySet<string>;
}

/**
 * Returns the limits of a scan and its order of books.
 *
 * @param promptTokens Most tokens of the whole prompt; `Infinity` if that isn't known.
 */
export function toScanLimits(
  { budgetPercent, budgetTokens = Infinity, maxRecursion, minActivations, minActivationsDepth, bookOrder }:
    LoreSettings,
  promptTokens: number,
): Pick<ActivationInput, "budgetTokens" | "maxRecursion" | "minActivations" | "minActivationsDepth" | "bookOrder"> {
  // Infinity * 0 isn't a number.
  const share = budgetPercent === 0 ? 0 : Math.floor(promptTokens * budgetPercent / 100);
  return { budgetTokens: Math.min(share, budgetTokens), maxRecursion, minActivations, minActivationsDepth, bookOrder };
}

/** Scans the lorebooks. @param options.expand Expands macros. @param options.expandField Those of the card. */
async function scanLorebooks(
  { context, speaker, books, generation, messageCount, getGreetingIndex, matcher, settings }: LorebookScanInput,
  seen: HistoryWindow,
  random: SeededRandom,
  { expand, expandField }: {
    expand: (text: string, entry: EntryName) => string;
    expandField: (text: string, source: LorebookScanSource) => string;
  },
): Promise<LorebookScanResult> {
  const { keepsFound, scansNames } = settings;
  const found = await activate({
    ...toScanLimits(settings, seen.budget),
    books,
    matcher,
    defaults: { keepsFound },
    releasesKept: seen.releasesLore,
    generation,
    messageCount,
    expand,
    // Tool results are untrusted text, which must not decide what else is in the prompt.
    messages: seen.messages.filter(({ message }) => message.role !== "tool").map(({ message, speaker }) => {
      const name = speaker ?? (message.role === "user" ? context.persona.name : context.character?.name);
      const { text } = splitContent(message);
      const isNamed = name !== undefined && text.startsWith(`${name}: `);
      const bare = isNamed ? text.slice(name.length + 2) : text;
      return { role: message.role, text: bare, ...(scansNames && { name }) };
    }).reverse(),
    scanTexts: scanTexts(context, speaker).map(({ source, text }) => ({ source, text: expandField(text, source) })),
    countTokens: seen.countTokens,
    random: (name) => random(`entry\n${name}`),
    state: seen.messages.find(({ loreState }) => loreState !== undefined)?.loreState,
    character: toLoreCharacter(speaker),
    greetingIndex: books.some(dependsOnGreeting) ? getGreetingIndex?.() : undefined,
  });
  return {
    lore: found.entries.map((
      { content, position, outlet, depth = 0, role = "system", order, reason, isDroppedFirst, ...name },
    ) => ({
      ...toLoreSource(name),
      content,
      position,
      outlet,
      depth,
      role,
      order,
      reason,
      isDroppedFirst,
    })),
    dropped: found.dropped.map(({ entry, reason, key }) => ({ ...toLoreSource(entry), reason, key })),
    state: found.state,
    hasKept: found.hasKept,
    disabled: new Set(found.disabledPrompts),
  };
}

function toLoreSource(
  { bookId, bookName, entryId, entryName }: { bookId: string; bookName: string; entryId: string; entryName: string },
): Omit<LoreSource, "reason"> {
  return { book: bookId, bookName, entry: entryId, title: entryName };
}

function scanTexts({ persona, scenario, character }: PromptContext, speaker: LoadedParticipant | undefined) {
  const texts: [LorebookScanSource, string | undefined][] = [
    ["persona", persona.description],
    // As in SillyTavern, what is in the chat is scanned like a message.
    ["always", persona.placement?.position === "at_depth" ? persona.description : undefined],
    ["description", character?.description],
    ["personality", character?.personality],
    ["depth_prompt", character?.note?.text],
    ["scenario", scenario ?? character?.scenario],
    ["creator_notes", speaker?.card.data.creator_notes],
  ];
  return texts.flatMap(([source, text]) => text ? [{ source, text }] : []);
}

function dependsOnGreeting({ book }: ActivationBook): boolean {
  return book.entries.some(({ content }) => typeof content === "string" && content.includes("@is_greeting"));
}
