/** Decides which lorebook entries go into a prompt, and why. Pure but for what it is handed: chance, token counts, the matcher. */
import {
  type ActivationState,
  type Candidate,
  chooseInGroups,
  compareOwners,
  compareRank,
  nameOf,
  shownAs,
  stateAfter,
  timedEffect,
  TokenBudget,
} from "./activation_rules.ts";
import type { UiPrompt } from "./decorators.ts";
import { KeyScan } from "./key_scan.ts";
import type { KeyMatcher } from "./key_matcher.ts";
import { isTickUsedUp, yieldToEventLoop } from "../async/yield_to_event_loop.ts";
import {
  type ActivationBook,
  type EntryPosition,
  SCAN_DEFAULTS,
  type ScanDefaults,
  scanEntries,
  type ScanEntry,
  type ScanSource,
} from "./scan_entries.ts";

export type { ActivationBook, EntryPosition, ScanDefaults, ScanSource } from "./scan_entries.ts";
export type { ActivationState } from "./activation_rules.ts";
export type { KeyMatcher } from "./key_matcher.ts";

/** One message of the history. */
export interface ScannedMessage {
  role: string;
  text: string;
  /** Who spoke; scanned before the text, as `Name: text`. */
  name?: string;
}

/** What is scanned, and under which conditions. */
export interface ActivationInput {
  books: readonly ActivationBook[];
  /** Oldest first, hidden ones left out; as many of the newest as there are at hand. */
  messages: readonly ScannedMessage[];
  /** Texts beside the messages. */
  scanTexts?: readonly { source: ScanSource; text: string }[];
  /** Tokens that all entries may take together; without it only the books' own budgets hold. */
  budgetTokens?: number;
  countTokens(text: string): number | Promise<number>;
  /** Chance from 0 up to 1. `name` is `"<book id>/<entry id>"`, so that it can be made to stay the same for an entry. */
  random(name: string): number;
  matcher: KeyMatcher;
  /** As the scan before it gave. */
  state?: ActivationState;
  /** Messages that the conversation has, those included that are not in `messages`; their count unless given. */
  turn?: number;
  /** Messages of characters that the conversation has; counted in `messages` unless given. */
  assistantTurns?: number;
  /** Which greeting began the conversation, 0 being the first message of the card. */
  greetingIndex?: number;
  /** Why the model is asked, in SillyTavern's words: `normal`, `continue`, `impersonate`, `swipe`, `regenerate`, `quiet`. */
  generation?: string;
  /** Names of the character that answers, for entries that are for some characters only. */
  characterNames?: readonly string[];
  /** Expands macros, in keys and in contents. */
  expand?(text: string, entry: EntryName): string;
  defaults?: Partial<ScanDefaults>;
  /** How often what fired is scanned in its turn; 10 unless given. */
  maxRecursion?: number;
}

/** Why an entry fired. For `key` and `recursion` with the key that was found, its macros replaced. */
export interface ActivationReason {
  kind: "key" | "constant" | "sticky" | "recursion" | "decorator";
  key?: string;
}

/** Names an entry. */
export interface EntryName {
  bookId: string;
  bookName: string;
  entryId: string;
  entryName: string;
}

/** An entry that goes into the prompt. */
export interface ActivatedEntry extends EntryName {
  /** Without decorators, macros replaced where `expand` was given. */
  content: string;
  position: EntryPosition;
  /** Messages that stand behind it; only at `at_depth`. */
  depth?: number;
  /** Only at `at_depth`. */
  role?: "system" | "user" | "assistant";
  /** Lower is placed higher up. */
  order: number;
  tokens: number;
  reason: ActivationReason;
  /** Percent, where it was left to chance. */
  probability?: number;
  /** To be left out first where the context is full. */
  isFirstToGo?: true;
}

/** Why an entry whose key was found does not go into the prompt after all. */
export type DropReason =
  | "budget"
  | "probability"
  | "group"
  | "secondary_keys"
  | "cooldown"
  | "delay"
  | "duplicate"
  | "empty"
  | "decorator"
  | "invalid_pattern"
  | "too_slow";

/** An entry that came close. */
export interface DroppedEntry {
  entry: EntryName;
  reason: DropReason;
  /** The key that was found, or the one that could not be looked for. */
  key?: string;
}

/** What a scan found. */
export interface Activation {
  /** In the order in which they are placed. */
  entries: ActivatedEntry[];
  dropped: DroppedEntry[];
  /** To be kept and handed in with the next turn. */
  state: ActivationState;
  tokens: number;
  /** The owner's prompts that a decorator of an active entry switches off. */
  disabledPrompts: UiPrompt[];
}

const MAX_RECURSION = 10;
/** Text of active entries that one round of recursion scans, in characters. */
const MAX_RECURSED = 200_000;

/** Finds the entries that fire. */
export async function activate(input: ActivationInput): Promise<Activation> {
  const scan = await Scan.of(input);
  let hasMore = await scan.round(0);
  const rounds = input.maxRecursion ?? MAX_RECURSION;
  for (let recursion = 1; hasMore && recursion <= rounds; recursion++) hasMore = await scan.round(recursion);
  return scan.result();
}

interface ActiveEntry {
  entry: ScanEntry;
  shown: ActivatedEntry;
}

class Scan {
  readonly #input: ActivationInput;
  readonly #turn: number;
  readonly #state: ActivationState;
  /** Messages of characters. */
  readonly #spoken: number;
  readonly #keys: KeyScan;
  readonly #budget: TokenBudget;
  /** Entries that are not decided yet. */
  readonly #open = new Set<ScanEntry>();
  readonly #active: ActiveEntry[] = [];
  readonly #dropped: DroppedEntry[] = [];
  readonly #contents = new Set<string>();

  constructor(input: ActivationInput) {
    this.#input = input;
    this.#turn = input.turn ?? input.messages.length;
    this.#state = input.state ?? {};
    this.#spoken = input.assistantTurns ?? input.messages.filter(({ role }) => role === "assistant").length;
    this.#keys = new KeyScan(input, { ...SCAN_DEFAULTS, ...input.defaults }.scanDepth);
    this.#budget = new TokenBudget(input.budgetTokens);
  }

  static async of(input: ActivationInput): Promise<Scan> {
    const scan = new Scan(input);
    for (const book of input.books) {
      for (const entry of scanEntries(book, { ...SCAN_DEFAULTS, ...input.defaults })) {
        if (scan.#isMeant(entry)) scan.#open.add(entry);
        if (isTickUsedUp()) await yieldToEventLoop();
      }
    }
    return scan;
  }

  /** Looks once at all open entries. Gives whether another look may find more. */
  async round(recursion: number): Promise<boolean> {
    const ready = [...this.#open].filter((entry) => this.#isReady(entry, recursion));
    await this.#keys.look(ready);
    const candidates = ready.flatMap((entry) => this.#candidate(entry, recursion));
    const found = await this.#settle(candidates);
    const texts = found.filter(({ entry }) => !entry.preventRecursion).map(recursedText);
    const isWaiting = [...this.#open].some(({ delayUntilRecursion }) => delayUntilRecursion > recursion);
    if (texts.length > 0) this.#keys.addRecursion(texts.join("\n").slice(0, MAX_RECURSED));
    return this.#open.size > 0 && (texts.length > 0 || isWaiting);
  }

  result(): Activation {
    for (const { entry, key, reason } of this.#keys.problems([...this.#open])) this.#drop(entry, reason, key);
    const placed = [...this.#active].sort((a, b) => a.shown.order - b.shown.order || compareOwners(a.entry, b.entry));
    return {
      entries: placed.map(({ shown }) => shown),
      dropped: this.#dropped,
      state: stateAfter(this.#state, this.#active.map(({ entry }) => entry), this.#turn),
      tokens: placed.reduce((sum, { shown }) => sum + shown.tokens, 0),
      disabledPrompts: [...new Set(placed.flatMap(({ entry }) => entry.decorators.disableUiPrompt ?? []))],
    };
  }

  /** Conditions that hold for the whole scan. */
  #isMeant({ decorators, triggers, characters }: ScanEntry): boolean {
    const { generation = "normal", characterNames, greetingIndex } = this.#input;
    if (triggers.length > 0 && !triggers.includes(generation)) return false;
    if (characters.names.length > 0 && characterNames !== undefined) {
      const isNamed = characters.names.some((name) => characterNames.includes(name));
      if (isNamed === characters.isExcluded) return false;
    }
    if (decorators.dontActivate && !decorators.activate) return false;
    if (decorators.activate) return true;
    const spoken = this.#spoken;
    if (decorators.activateOnlyAfter !== undefined && spoken < decorators.activateOnlyAfter) return false;
    if (decorators.activateOnlyEvery !== undefined && spoken % decorators.activateOnlyEvery !== 0) return false;
    return decorators.isGreeting === undefined || greetingIndex === undefined ||
      decorators.isGreeting === greetingIndex;
  }

  /** Whether an entry may fire in this round at all. What is sticky waits for no recursion. */
  #isReady(entry: ScanEntry, recursion: number): boolean {
    if (timedEffect(entry, this.#state, this.#turn) === "sticky") return true;
    if (entry.delayUntilRecursion > recursion) return false;
    return recursion === 0 || (!entry.excludeRecursion && entry.isRecursive);
  }

  /** The entry, if it fires. One that does and is held back is decided as well. */
  #candidate(entry: ScanEntry, recursion: number): Candidate[] {
    if (entry.decorators.activate) return [{ entry, reason: { kind: "decorator" }, score: 0 }];
    const effect = timedEffect(entry, this.#state, this.#turn);
    const score = this.#keys.score(entry);
    if (effect === "sticky") return [{ entry, reason: { kind: "sticky" }, score, isSticky: true }];
    const finding = this.#keys.finding(entry);
    const key = entry.isConstant ? undefined : finding.key;
    if (!entry.isConstant && key === undefined) return [];
    if (effect !== undefined) this.#drop(entry, effect, key);
    else if (finding.isExcluded) this.#drop(entry, "decorator", key);
    else if (entry.isConstant) return [{ entry, reason: { kind: "constant" }, score }];
    else if (finding.isHeldBack) {
      // What fires later may hold the key that is still missing.
      this.#keys.noteHeldBack(entry);
    } else return [{ entry, reason: { kind: recursion > 0 && finding.isRecursed ? "recursion" : "key", key }, score }];
    return [];
  }

  /** Lets chance, groups and budget decide. Gives the entries that are in. */
  async #settle(candidates: Candidate[]): Promise<ActiveEntry[]> {
    const lucky = [...candidates].sort(compareRank).filter((candidate) => this.#isLucky(candidate));
    const { chosen, dropped } = chooseInGroups(lucky, this.#active.map(({ entry }) => entry), this.#input.random);
    for (const { entry, reason } of dropped) this.#drop(entry, "group", reason.key);
    const taken: ActiveEntry[] = [];
    for (const { entry, reason } of chosen) {
      if (isTickUsedUp()) await yieldToEventLoop();
      const content = this.#input.expand?.(entry.text, nameOf(entry)) ?? entry.text;
      if (content.trim() === "" || this.#contents.has(content)) {
        this.#drop(entry, content.trim() === "" ? "empty" : "duplicate", reason.key);
        continue;
      }
      const tokens = await this.#input.countTokens(content);
      if (!this.#budget.take(entry, tokens)) {
        this.#drop(entry, "budget", reason.key);
        continue;
      }
      this.#contents.add(content);
      const active = { entry, shown: shownAs(entry, { content, tokens, reason, turn: this.#turn }) };
      this.#active.push(active);
      this.#open.delete(entry);
      taken.push(active);
    }
    return taken;
  }

  #isLucky({ entry, reason, isSticky }: Candidate): boolean {
    if (isSticky || entry.probability >= 100) return true;
    if (this.#input.random(`${entry.owner.id}/${entry.id}`) * 100 < entry.probability) return true;
    this.#drop(entry, "probability", reason.key);
    return false;
  }

  #drop(entry: ScanEntry, reason: DropReason, key?: string): void {
    this.#dropped.push({ entry: nameOf(entry), reason, ...(key !== undefined && { key }) });
    this.#open.delete(entry);
  }
}

/** V3: what `{{hidden_key: …}}` holds is not sent, yet scanned. */
function recursedText({ entry, shown }: ActiveEntry): string {
  const hidden = [...entry.text.matchAll(/\{\{hidden_key:([^{}]*)\}\}/gi)].map((match) => match[1]!);
  return [shown.content, ...hidden].join("\n");
}
