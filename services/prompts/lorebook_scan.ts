/** Has the lorebooks of a scene looked through, and gives what of them goes out and why. */
import { activate, type ActivationBook, type ActivationState } from "../lorebooks/activation.ts";
import type { DropReason, EntryName } from "../lorebooks/activation.ts";
import type { KeyMatcher, ScanSource } from "../lorebooks/activation.ts";
import type { CastMember } from "./participants.ts";
import type { LoreSource } from "./prompt_blocks.ts";
import type { Seen } from "./prompts.ts";
import type { Scene, SceneLore } from "./prompt_context.ts";
import type { SeededRandom } from "./seeded_random.ts";
import { countedParts } from "./tokens/token_estimate.ts";

/** What is scanned beside the messages. */
export interface LoreScene {
  scene: Scene;
  /** Who speaks. */
  member?: CastMember;
  books: readonly ActivationBook[];
  /** Why the model is asked, in SillyTavern's words. */
  generation: string;
  /** Messages of the conversation, those included that are not read. */
  turn: number;
  /** Which greeting began the conversation; asked only where an entry is for one. */
  greetingIndex?(): number | undefined;
  matcher: KeyMatcher;
}

/** An entry that came close and does not go out. */
export interface DroppedLore extends Omit<LoreSource, "reason"> {
  reason: DropReason;
  key?: string;
}

/** What was found. */
export interface FoundLore {
  /** The lowest order first. */
  lore: SceneLore[];
  dropped: DroppedLore[];
  /** To be kept with the answer, for what stays after it fired or rests. */
  state: ActivationState;
  /** The owner's prompts that an entry switches off. */
  disabled: ReadonlySet<string>;
}

/** What share of the room the entries may take together; SillyTavern's own default. */
const SHARE = 0.25;

/** Looks. @param expand Puts in what macros stand for. */
export async function findLore(
  { scene, member, books, generation, turn, greetingIndex, matcher }: LoreScene,
  seen: Seen,
  random: SeededRandom,
  expand: (text: string, entry: EntryName) => string,
): Promise<FoundLore> {
  const found = await activate({
    ...{ books, matcher, generation, turn, expand },
    messages: seen.turns.map(({ message }) => {
      const name = message.role === "user" ? scene.persona.name : scene.character?.name;
      return { role: message.role, text: countedParts(message).text, ...(!scene.hasNames && { name }) };
    }).reverse(),
    scanTexts: scanTexts(scene, member),
    budgetTokens: Math.floor(seen.budget * SHARE),
    countTokens: seen.countTokens,
    random: (name) => random(`entry\n${name}`),
    state: seen.turns.find(({ loreState }) => loreState !== undefined)?.loreState,
    characterNames: member?.names,
    greetingIndex: books.some(asksForGreeting) ? greetingIndex?.() : undefined,
  });
  return {
    lore: found.entries.map((
      { content, position, depth = 0, role = "system", order, reason, isFirstToGo, ...name },
    ) => ({
      ...sourceOf(name),
      ...{ content, position, depth, role, order, reason, isFirstToGo },
    })),
    dropped: found.dropped.map(({ entry, reason, key }) => ({ ...sourceOf(entry), reason, key })),
    state: found.state,
    disabled: new Set(found.disabledPrompts),
  };
}

function sourceOf(
  { bookId, bookName, entryId, entryName }: { bookId: string; bookName: string; entryId: string; entryName: string },
): Omit<LoreSource, "reason"> {
  return { book: bookId, bookName, entry: entryId, title: entryName };
}

function scanTexts({ persona, scenario, character }: Scene, member: CastMember | undefined) {
  const texts: [ScanSource, string | undefined][] = [
    ["persona", persona.description],
    ["description", character?.description],
    ["personality", character?.personality],
    ["depth_prompt", character?.note?.text],
    ["scenario", scenario ?? character?.scenario],
    ["creator_notes", member?.card.data.creator_notes],
  ];
  return texts.flatMap(([source, text]) => text ? [{ source, text }] : []);
}

function asksForGreeting({ book }: ActivationBook): boolean {
  return book.entries.some(({ content }) => typeof content === "string" && content.includes("@is_greeting"));
}
