/**
 * Decides which lorebook entries are active in a prompt, and why. Randomness, token counts and key matching are
 * parameters.
 */
import {
  type ActivationCandidate,
  type ActivationState,
  type BookOrder,
  chooseInGroups,
  compareOwners,
  compareRank,
  getTimedEffect,
  isCoolingDown,
  type TimedEffect,
  toActivatedEntry,
  toEntryName,
  TokenBudget,
  updateState,
} from "./activation_rules.ts";
import {
  type ActivationBook,
  type EntryPosition,
  type LorebookScanSource,
  readRecursionLevels,
  readScanEntries,
  SCAN_DEFAULTS,
  type ScanDefaults,
  type ScanEntry,
  type UiPrompt,
} from "./scan_entries.ts";
import { KeyScan } from "./key_scan.ts";
import type { KeyMatcher } from "./key_matcher.ts";
import { isTickUsedUp, yieldToEventLoop } from "../async/delay.ts";

export type { ActivationBook, EntryPosition, LorebookScanSource } from "./scan_entries.ts";
export type { ActivationState } from "./activation_rules.ts";
export type { KeyMatcher } from "./key_matcher.ts";

/** What limits of entries are compared with. Both lists are empty in chats without a character. */
export interface LoreCharacter {
  names: readonly string[];
  tags: readonly string[];
}

/** One message of the history. */
export interface ScannedMessage {
  role: string;
  text: string;
  /** The speaker. Scanned before the text, as `Name: text`. */
  name?: string;
}

/** Input of a scan. */
export interface ActivationInput {
  books: readonly ActivationBook[];
  /** Oldest first, without hidden messages. The newest ones are enough. */
  messages: readonly ScannedMessage[];
  /** Texts scanned besides the messages. */
  scanTexts?: readonly { source: LorebookScanSource; text: string }[];
  /** Token limit of all entries together. Without it, only the limits of the books apply. */
  budgetTokens?: number;
  countTokens(text: string): number | Promise<number>;
  /** Returns a number in [0, 1). `name` is `"<book id>/<entry id>"`, so that the result can stay the same per entry. */
  random(name: string): number;
  matcher: KeyMatcher;
  /** State returned by the previous scan. */
  state?: ActivationState;
  /**
   * Number of messages in the conversation, including those that aren't in `messages`; by default the length of
   * `messages`.
   */
  messageCount?: number;
  /** Number of character messages in the conversation; by default those in `messages`. */
  assistantMessageCount?: number;
  /** Index of the greeting that started the conversation; 0 is `first_mes`. */
  greetingIndex?: number;
  /** SillyTavern's generation type: `normal`, `continue`, `impersonate`, `swipe`, `regenerate` or `quiet`. */
  generation?: string;
  /** The replying character, for entries that are limited to some characters. Without it, limits don't apply. */
  character?: LoreCharacter;
  /** Expands macros in keys and content. */
  expand?(text: string, entry: EntryName): string;
  defaults?: Partial<ScanDefaults>;
  /** The chat has just been trimmed: entries that were only kept are found anew or not at all. */
  releasesKept?: boolean;
  /**
   * Maximum number of recursive scans; 100 by default. If set, it also counts the scans for `minActivations`, as in
   * SillyTavern.
   */
  maxRecursion?: number;
  /** Scans more and more messages until this many entries are active; 0, the default, doesn't. */
  minActivations?: number;
  /** Most messages to scan for `minActivations`; 0, the default, is all. */
  minActivationsDepth?: number;
  /** Books of characters come first by default. */
  bookOrder?: BookOrder;
}

/** Why an entry is active. `key` and `recursion` include the matched key with macros expanded. */
export interface ActivationReason {
  kind: "key" | "constant" | "sticky" | "recursion" | "decorator";
  key?: string;
}

/** Identifies an entry. */
export interface EntryName {
  bookId: string;
  bookName: string;
  entryId: string;
  entryName: string;
}

/** An active entry. */
export interface ActivatedEntry extends EntryName {
  /** Without decorators, with macros expanded if `expand` was passed. */
  content: string;
  position: EntryPosition;
  /** Number of messages after it; only for `at_depth`. */
  depth?: number;
  /** Only for `at_depth`. */
  role?: "system" | "user" | "assistant";
  /** Name of its outlet; only for `outlet`. */
  outlet?: string;
  /** Lower comes first. */
  order: number;
  tokens: number;
  reason: ActivationReason;
  /** Percent, if below 100. */
  probability?: number;
  /** True if it should be dropped first when the context is full. */
  isDroppedFirst?: true;
}

/** Why a matching entry isn't active. */
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

/** An entry that matched but isn't active. */
export interface DroppedEntry {
  entry: EntryName;
  reason: DropReason;
  /** The matched key, or the key that couldn't be matched. */
  key?: string;
}

/** Result of a scan. */
export interface Activation {
  /** In prompt order. */
  entries: ActivatedEntry[];
  dropped: DroppedEntry[];
  /** State to store and pass to the next scan. */
  state: ActivationState;
  tokens: number;
  /** Prompts that are disabled by a decorator of an active entry. */
  disabledPrompts: UiPrompt[];
  /** Whether an entry is only active because it's kept until the chat is trimmed. */
  hasKept: boolean;
}

/** SillyTavern has no limit; chains of entries are rarely longer than a few. */
const MAX_RECURSION = 100;
/** Most messages that SillyTavern scans. */
const MAX_SCAN_DEPTH = 1_000;
/** Maximum number of characters of active entries scanned per recursion. */
const MAX_RECURSION_CHARS = 200_000;

/** Finds the active entries. */
export async function activate(input: ActivationInput): Promise<Activation> {
  const scan = await Scan.open(input);
  const { maxRecursion } = input;
  let rounds = 0;
  for (let next: RoundKind | undefined = "first"; next !== undefined && rounds <= (maxRecursion ?? MAX_RECURSION);) {
    next = await scan.runRound(next);
    if (next === "recursion" || maxRecursion !== undefined) rounds++;
  }
  return scan.toResult();
}

/** A `deeper` scan looks at one more message, and not at active entries. */
type RoundKind = "first" | "recursion" | "deeper";

interface ActiveEntry {
  entry: ScanEntry;
  /** When it became active; 0 is the first scan. */
  round: number;
  activated: ActivatedEntry;
}

class Scan {
  readonly #input: ActivationInput;
  readonly #messageCount: number;
  readonly #state: ActivationState;
  /** Number of character messages. */
  readonly #assistantMessageCount: number;
  readonly #keys: KeyScan;
  readonly #budget: TokenBudget;
  /** Levels of entries that wait for recursion, lowest first. The first one is reached by any recursion. */
  #levels: number[] = [];
  #level = 0;
  /** Entries that may still be activated. */
  readonly #undecided = new Set<ScanEntry>();
  readonly #active: ActiveEntry[] = [];
  /** Those that lost in a group may still become active in a later round. */
  readonly #dropped = new Map<ScanEntry, DroppedEntry>();
  /** Books by the content that they have sent. */
  readonly #contents = new Map<string, ActivationBook>();
  readonly #kept: ScanEntry[] = [];
  /** Entries that can stay active for some messages. */
  readonly #sticky: ScanEntry[] = [];
  #hasKept = false;
  #round = 0;
  /** Number of messages that `deeper` rounds added. */
  #deeper = 0;
  readonly #scanDepth: number;
  readonly #bookOrder: BookOrder;

  constructor(input: ActivationInput) {
    this.#input = input;
    this.#messageCount = input.messageCount ?? input.messages.length;
    this.#state = input.state ?? {};
    this.#assistantMessageCount = input.assistantMessageCount ??
      input.messages.filter(({ role }) => role === "assistant").length;
    this.#scanDepth = { ...SCAN_DEFAULTS, ...input.defaults }.scanDepth;
    this.#bookOrder = input.bookOrder ?? "character_first";
    this.#keys = new KeyScan(input, this.#scanDepth);
    this.#budget = new TokenBudget(input.budgetTokens);
  }

  static async open(input: ActivationInput): Promise<Scan> {
    const scan = new Scan(input);
    for (const book of input.books) {
      for (const entry of readScanEntries(book, { ...SCAN_DEFAULTS, ...input.defaults })) {
        if (entry.isKept) scan.#kept.push(entry);
        if (entry.sticky > 0) scan.#sticky.push(entry);
        if (scan.#isApplicable(entry)) scan.#undecided.add(entry);
        if (isTickUsedUp()) await yieldToEventLoop();
      }
    }
    // As in SillyTavern, a level counts even if none of its entries can become active.
    const levels = new Set<number>();
    for (const book of input.books) {
      for (const level of readRecursionLevels(book)) {
        levels.add(level);
        if (isTickUsedUp()) await yieldToEventLoop();
      }
    }
    scan.#levels = [...levels].filter((level) => level > 0).sort((a, b) => a - b);
    scan.#level = scan.#levels.shift() ?? 0;
    return scan;
  }

  /** Scans the undecided entries once. @returns The kind of the next round, if another may activate more. */
  async runRound(kind: RoundKind): Promise<RoundKind | undefined> {
    const ready = [...this.#undecided].filter((entry) => this.#isReady(entry, kind));
    await this.#keys.matchKeys(ready, kind !== "deeper");
    const candidates = ready.flatMap((entry) => this.#isCandidate(entry, kind));
    const found = await this.#select(candidates);
    this.#round++;
    const texts = found.filter(({ entry }) => !entry.preventRecursion).map(toRecursionText);
    const next = this.#undecided.size === 0 ? undefined : this.#chooseNext(kind, texts.length > 0);
    if (texts.length > 0) this.#keys.addRecursion(texts.join("\n").slice(0, MAX_RECURSION_CHARS));
    return next;
  }

  #chooseNext(kind: RoundKind, hasTexts: boolean): RoundKind | undefined {
    const isFull = this.#budget.isExceeded;
    if (!isFull && (hasTexts || (kind === "deeper" && this.#keys.hasRecursion))) return "recursion";
    const { minActivations = 0 } = this.#input;
    if (!isFull && this.#active.length < minActivations && this.#canScanDeeper()) {
      this.#deeper++;
      this.#keys.scanDeeper();
      return "deeper";
    }
    // As in SillyTavern, the entries of a further level get another scan, even if nothing new was found.
    const level = this.#levels.shift();
    if (level === undefined) return undefined;
    this.#level = level;
    return "recursion";
  }

  #canScanDeeper(): boolean {
    const { minActivationsDepth = 0, messages } = this.#input;
    const depth = this.#scanDepth + this.#deeper;
    const most = Math.min(messages.length, MAX_SCAN_DEPTH, minActivationsDepth > 0 ? minActivationsDepth : Infinity);
    return depth <= most;
  }

  toResult(): Activation {
    for (const { entry, key, reason } of this.#keys.listProblems([...this.#undecided])) this.#drop(entry, reason, key);
    // Of entries with the same order, those that are found later come first, as in SillyTavern.
    // An entry without content may win in a group, so that nothing is sent.
    const placed = this.#active.filter(({ activated }) => activated.content.trim() !== "").sort((a, b) =>
      a.activated.order - b.activated.order || b.round - a.round || compareOwners(b.entry, a.entry, this.#bookOrder)
    );
    return {
      entries: placed.map(({ activated }) => activated),
      dropped: [...this.#dropped.values()],
      state: updateState(
        this.#state,
        this.#active.map(({ entry }) => entry),
        this.#messageCount,
        { released: this.#input.releasesKept ? this.#kept : [], sticky: this.#sticky },
      ),
      hasKept: this.#hasKept,
      tokens: placed.reduce((sum, { activated }) => sum + activated.tokens, 0),
      disabledPrompts: [...new Set(placed.flatMap(({ entry }) => entry.decorators.disableUiPrompt ?? []))],
    };
  }

  /** Checks the conditions that are the same for the whole scan. */
  #isApplicable({ decorators, triggers, characters }: ScanEntry): boolean {
    const { generation = "normal", character, greetingIndex } = this.#input;
    if (triggers.length > 0 && !triggers.includes(generation)) return false;
    if (character !== undefined && !appliesTo(characters, character)) return false;
    if (decorators.dontActivate && !decorators.activate) return false;
    if (decorators.activate) return true;
    const spoken = this.#assistantMessageCount;
    if (decorators.activateOnlyAfter !== undefined && spoken < decorators.activateOnlyAfter) return false;
    if (decorators.activateOnlyEvery !== undefined && spoken % decorators.activateOnlyEvery !== 0) return false;
    return decorators.isGreeting === undefined || greetingIndex === undefined ||
      decorators.isGreeting === greetingIndex;
  }

  /** Reports whether an entry can become active in this round. Sticky entries don't wait for recursion. */
  #isReady(entry: ScanEntry, kind: RoundKind): boolean {
    if (this.#getEffect(entry) === "sticky") return true;
    if (entry.delayUntilRecursion > (kind === "recursion" ? this.#level : 0)) return false;
    return kind !== "recursion" || (!entry.excludeRecursion && entry.isRecursive);
  }

  #getEffect(entry: ScanEntry): TimedEffect | undefined {
    return getTimedEffect(entry, this.#state, this.#messageCount, !this.#input.releasesKept);
  }

  /** Returns the entry if it matches. Entries that match but can't be activated are dropped. */
  #isCandidate(entry: ScanEntry, round: RoundKind): ActivationCandidate[] {
    if (entry.decorators.activate) return [{ entry, reason: { kind: "decorator" }, score: 0 }];
    const effect = this.#getEffect(entry);
    const score = this.#keys.countFoundKeys(entry);
    if (effect === "sticky") {
      const isOnlyKept = getTimedEffect(entry, this.#state, this.#messageCount, false) !== "sticky";
      this.#hasKept ||= isOnlyKept;
      const isCooling = !isOnlyKept && isCoolingDown(entry, this.#state, this.#messageCount);
      return [{ entry, reason: { kind: "sticky" }, score, isSticky: true, isCoolingDown: isCooling }];
    }
    const finding = this.#keys.getFinding(entry);
    const key = entry.isConstant ? undefined : finding.key;
    if (!entry.isConstant && key === undefined) return [];
    if (effect !== undefined) this.#drop(entry, effect, key);
    else if (finding.isExcluded) this.#drop(entry, "decorator", key);
    else if (entry.isConstant) return [{ entry, reason: { kind: "constant" }, score }];
    else if (finding.isHeldBack) {
      // Entries that are activated later may contain the missing key.
      this.#keys.markHeldBack(entry);
    } else {
      const kind = round === "recursion" && finding.isRecursed ? "recursion" : "key";
      return [{ entry, reason: { kind, key }, score }];
    }
    return [];
  }

  /** Applies groups, probability and budget. @returns The entries that became active. */
  async #select(candidates: ActivationCandidate[]): Promise<ActiveEntry[]> {
    const ranked = candidates.toSorted((a, b) => compareRank(a, b, this.#bookOrder));
    const { chosen, dropped } = chooseInGroups(ranked, this.#active.map(({ entry }) => entry), this.#input.random);
    for (const { entry, reason, isCoolingDown } of dropped) {
      this.#note(entry, isCoolingDown ? "cooldown" : "group", reason.key);
    }
    const activated: ActiveEntry[] = [];
    for (const candidate of chosen) {
      const { entry, reason } = candidate;
      if (isTickUsedUp()) await yieldToEventLoop();
      if (!this.#passesProbability(candidate)) continue;
      const content = this.#input.expand?.(entry.text, toEntryName(entry)) ?? entry.text;
      const isEmpty = content.trim() === "";
      if (!isEmpty && (this.#contents.get(content) ?? entry.owner) !== entry.owner) {
        this.#drop(entry, "duplicate", reason.key);
        continue;
      }
      const tokens = isEmpty ? 0 : await this.#input.countTokens(content);
      if (!this.#budget.take(entry, tokens)) {
        this.#drop(entry, "budget", reason.key);
        continue;
      }
      if (isEmpty) this.#drop(entry, "empty", reason.key);
      else {
        this.#contents.set(content, entry.owner);
        this.#dropped.delete(entry);
        this.#undecided.delete(entry);
      }
      const active = {
        entry,
        round: this.#round,
        activated: toActivatedEntry(entry, { content, tokens, reason, messageCount: this.#messageCount }),
      };
      this.#active.push(active);
      activated.push(active);
    }
    return activated;
  }

  #passesProbability({ entry, reason, isSticky }: ActivationCandidate): boolean {
    if (isSticky || entry.probability >= 100) return true;
    if (this.#input.random(`${entry.owner.id}/${entry.id}`) * 100 < entry.probability) return true;
    this.#drop(entry, "probability", reason.key);
    return false;
  }

  #drop(entry: ScanEntry, reason: DropReason, key?: string): void {
    this.#note(entry, reason, key);
    this.#undecided.delete(entry);
  }

  #note(entry: ScanEntry, reason: DropReason, key?: string): void {
    this.#dropped.set(entry, { entry: toEntryName(entry), reason, ...(key !== undefined && { key }) });
  }
}

/** Reports whether an entry with these limits applies to a character (docs/protocols/cards.md#lorebooks). */
function appliesTo({ names, tags, isExcluded }: ScanEntry["characters"], character: LoreCharacter): boolean {
  const passes = (wanted: readonly string[], own: readonly string[], toKey: (text: string) => string) => {
    const keys = new Set(own.map(toKey).filter((key) => key !== ""));
    return wanted.length === 0 || wanted.some((each) => keys.has(toKey(each))) !== isExcluded;
  };
  return passes(names, character.names, toFileName) && passes(tags, character.tags, (tag) => tag.trim().toLowerCase());
}

/** Returns a name as SillyTavern writes it into limits: as a file name, without characters that files can't have. */
function toFileName(name: string): string {
  // deno-lint-ignore no-control-regex -- control characters can't be in a file name either.
  return name.normalize().replace(/[/?<>\\:*|"\u0000-\u001f\u0080-\u009f]/g, "").trim();
}

/** Returns the text of an active entry to scan. V3: the content of `{{hidden_key: …}}` is scanned but not sent. */
function toRecursionText({ entry, activated }: ActiveEntry): string {
  const hidden = [...entry.text.matchAll(/\{\{hidden_key:([^{}]*)\}\}/gi)].map((match) => match[1]!);
  return [activated.content, ...hidden].join("\n");
}
