/** Scans the lorebooks of a prompt. */
import { activate, type ActivationBook, type ActivationState } from "../lorebooks/activation.ts";
import type { DropReason, EntryName } from "../lorebooks/activation.ts";
import type { KeyMatcher, LorebookScanSource } from "../lorebooks/activation.ts";
import type { LoadedParticipant } from "./participants.ts";
import type { LoreSource } from "./prompt_blocks.ts";
import type { HistoryWindow } from "./prompts.ts";
import type { PromptContext, PromptLore } from "./prompt_context.ts";
import type { SeededRandom } from "./seeded_random.ts";
import { splitContent } from "../llm/token_estimate.ts";

/** Input of a scan besides the messages. */
export interface LorebookScanInput {
  context: PromptContext;
  /** The character who replies. */
  speaker?: LoadedParticipant;
  books: readonly ActivationBook[];
  /** SillyTavern's generation type: `normal`, `continue`, `impersonate`, … */
  generation: string;
  /** Number of messages in the conversation, including those that aren't read. */
  turn: number;
  /** Index of the greeting that started the conversation. Only called if an entry depends on it. */
  greetingIndex?(): number | undefined;
  matcher: KeyMatcher;
}

/** An entry that matched but isn't sent. */
export interface DroppedLore extends Omit<LoreSource, "reason"> {
  reason: DropReason;
  key?: string;
}

/** Result of a scan. */
export interface LorebookScanResult {
  /** Lowest order first. */
  lore: PromptLore[];
  dropped: DroppedLore[];
  /** Stored with the reply, for sticky entries and cooldowns. */
  state: ActivationState;
  /** Prompts that an active entry disables. */
  disabled: ReadonlySet<string>;
}

/** Share of the token budget that all entries may use together. SillyTavern's default. */
const BUDGET_SHARE = 0.25;

/** Scans the lorebooks. @param expand Expands macros. */
export async function scanLorebooks(
  { context, speaker, books, generation, turn, greetingIndex, matcher }: LorebookScanInput,
  seen: HistoryWindow,
  random: SeededRandom,
  expand: (text: string, entry: EntryName) => string,
): Promise<LorebookScanResult> {
  const found = await activate({
    books,
    matcher,
    generation,
    messageCount: turn,
    expand,
    // What tools return is foreign text, which must not choose what else is in the prompt.
    messages: seen.messages.filter(({ message }) => message.role !== "tool").map(({ message }) => {
      const name = message.role === "user" ? context.persona.name : context.character?.name;
      return { role: message.role, text: splitContent(message).text, ...(!context.hasNames && { name }) };
    }).reverse(),
    scanTexts: scanTexts(context, speaker),
    budgetTokens: Math.floor(seen.budget * BUDGET_SHARE),
    countTokens: seen.countTokens,
    random: (name) => random(`entry\n${name}`),
    state: seen.messages.find(({ loreState }) => loreState !== undefined)?.loreState,
    characterNames: speaker?.names,
    greetingIndex: books.some(dependsOnGreeting) ? greetingIndex?.() : undefined,
  });
  return {
    lore: found.entries.map((
      { content, position, depth = 0, role = "system", order, reason, isDroppedFirst, ...name },
    ) => ({
      ...toLoreSource(name),
      content,
      position,
      depth,
      role,
      order,
      reason,
      isDroppedFirst,
    })),
    dropped: found.dropped.map(({ entry, reason, key }) => ({ ...toLoreSource(entry), reason, key })),
    state: found.state,
    disabled: new Set(found.disabledPrompts),
  };
}

function toLoreSource(
  { bookId, bookName, entryId, entryName }: { bookId: string; bookName: string; entryId: string; entryName: string },
): Omit<LoreSource, "reason"> {
  return { book: bookId, bookName, entry: entryId, title: entryName };
}

function scanTexts({ persona, scenario, character }: PromptContext, member: LoadedParticipant | undefined) {
  const texts: [LorebookScanSource, string | undefined][] = [
    ["persona", persona.description],
    ["description", character?.description],
    ["personality", character?.personality],
    ["depth_prompt", character?.note?.text],
    ["scenario", scenario ?? character?.scenario],
    ["creator_notes", member?.card.data.creator_notes],
  ];
  return texts.flatMap(([source, text]) => text ? [{ source, text }] : []);
}

function dependsOnGreeting({ book }: ActivationBook): boolean {
  return book.entries.some(({ content }) => typeof content === "string" && content.includes("@is_greeting"));
}
