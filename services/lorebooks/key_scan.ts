/** Tracks which keys of which entries match the texts of one scan, round by round. */
import { toEntryName } from "./activation_rules.ts";
import type { ActivationInput, DropReason, ScannedMessage } from "./activation.ts";
import type { KeyQuery } from "./key_matcher.ts";
import { isTickUsedUp, yieldToEventLoop } from "../async/delay.ts";
import type { ScanEntry } from "./scan_entries.ts";
import type { KeyFinding, ScanKey } from "./scan_keys.ts";

/** Results for the keys of an entry. */
export interface EntryFinding {
  /** The first matched key. */
  key?: string;
  /** True if it only matched in the content of active entries. */
  isRecursed: boolean;
  /** True if its secondary or additional keys don't allow activation. */
  isHeldBack: boolean;
  /** True if an excluded key matched. */
  isExcluded: boolean;
}

/** State of one key. */
interface KeyState {
  key: ScanKey;
  isFound: boolean;
  isRecursed: boolean;
  problem?: "invalid_pattern" | "too_slow";
}

interface EntryState {
  primary: KeyState[];
  secondary: KeyState[];
  additional: KeyState[];
  exclude: KeyState[];
  /** Indexes of the texts that were scanned. */
  seen: Set<number>;
  isHeldBack: boolean;
}

/** Separates messages, so that no key matches across two of them. */
const MESSAGE_SEPARATOR = "\n\u0001";

/** Only the newest part of longer texts is scanned. */
const MAX_TEXT_CHARS = 200_000;
/**
 * Each scan depth is a separate text. Beyond this many characters in total, entries with other depths scan the deepest
 * existing text.
 */
const MAX_HISTORY_CHARS = 10_000_000;

/** The texts of a scan and the state of its entries. */
export class KeyScan {
  readonly #input: ActivationInput;
  readonly #defaultDepth: number;
  readonly #texts: string[] = [];
  readonly #byDepth = new Map<number, number>();
  readonly #joinedTexts: { depth: number; index: number }[] = [];
  #historyChars = 0;
  readonly #sourceTexts: { source: string; text: number }[];
  readonly #recursed = new Set<number>();
  /** Number of messages that are scanned beyond the depth of the book. */
  #deeper = 0;
  /** Indexes of single messages, by depth. */
  readonly #bySingleDepth = new Map<number, number>();
  readonly #states = new Map<ScanEntry, EntryState>();

  constructor(input: ActivationInput, defaultDepth: number) {
    this.#input = input;
    this.#defaultDepth = defaultDepth;
    this.#sourceTexts = (input.scanTexts ?? []).map(({ source, text }) => ({
      source,
      text: this.#texts.push(text) - 1,
    }));
  }

  /** Adds the content of active entries, for recursive scanning. */
  addRecursion(text: string): void {
    this.#recursed.add(this.#texts.push(text) - 1);
  }

  /** Whether active entries have been added. */
  get hasRecursion(): boolean {
    return this.#recursed.size > 0;
  }

  /** Scans one more message, for entries without their own depth. */
  scanDeeper(): void {
    this.#deeper++;
  }

  /** Matches the keys of entries against texts they haven't seen. @param isRecursive False without active entries. */
  async matchKeys(entries: readonly ScanEntry[], isRecursive = true): Promise<void> {
    const pending: { state: KeyState; isRecursed: boolean }[] = [];
    const queries: KeyQuery[] = [];
    for (const entry of entries) {
      const known = this.#getState(entry);
      const fresh = this.#listTexts(entry, isRecursive).filter((text) => !known.seen.has(text));
      for (const text of fresh) known.seen.add(text);
      for (const isRecursed of [false, true]) {
        const texts = fresh.filter((text) => this.#recursed.has(text) === isRecursed);
        if (texts.length === 0) continue;
        for (const state of listKeyStates(known)) {
          if (state.isFound || state.problem !== undefined) continue;
          pending.push({ state, isRecursed });
          queries.push({ key: state.key, texts });
        }
      }
      if (isTickUsedUp()) await yieldToEventLoop();
    }
    if (queries.length === 0) return;
    const findings = await this.#input.matcher.match(this.#texts, queries);
    pending.forEach(({ state, isRecursed }, index) => recordFinding(state, findings[index]!, isRecursed));
  }

  /** Returns the results for an entry. */
  getFinding(entry: ScanEntry): EntryFinding {
    const { primary, secondary, additional, exclude } = this.#getState(entry);
    const hit = primary.find(({ isFound }) => isFound);
    return {
      key: hit?.key.text,
      isRecursed: hit?.isRecursed === true,
      isHeldBack: !passesSecondaryKeys(entry.logic, secondary) ||
        (additional.length > 0 && !additional.some(({ isFound }) => isFound)),
      isExcluded: exclude.some(({ isFound }) => isFound),
    };
  }

  /** Returns the number of matched keys of an entry. */
  countFoundKeys(entry: ScanEntry): number {
    const { primary, secondary } = this.#getState(entry);
    const count = (states: KeyState[]) => states.filter(({ isFound }) => isFound).length;
    if (primary.length === 0) return 0;
    const further = count(secondary);
    const counts = entry.logic === "any" || (entry.logic === "all" && further === secondary.length);
    return count(primary) + (counts ? further : 0);
  }

  /** Records that an entry matched but its secondary keys don't allow it. */
  markHeldBack(entry: ScanEntry): void {
    this.#getState(entry).isHeldBack = true;
  }

  /** Lists entries that weren't activated because of secondary keys or unusable patterns. */
  listProblems(entries: readonly ScanEntry[]): { entry: ScanEntry; reason: DropReason; key?: string }[] {
    return entries.flatMap((entry): { entry: ScanEntry; reason: DropReason; key?: string }[] => {
      const state = this.#states.get(entry);
      if (state === undefined) return [];
      if (state.isHeldBack) return [{ entry, reason: "secondary_keys", key: this.getFinding(entry).key }];
      const broken = listKeyStates(state).find(({ problem }) => problem !== undefined);
      return broken === undefined ? [] : [{ entry, reason: broken.problem!, key: broken.key.text }];
    });
  }

  #getState(entry: ScanEntry): EntryState {
    let state = this.#states.get(entry);
    if (state === undefined) {
      const states = (keys: readonly ScanKey[]) =>
        keys.map((key): KeyState => ({ key: this.#expandKey(key, entry), isFound: false, isRecursed: false }));
      state = {
        primary: states(entry.keys),
        secondary: states(entry.secondaryKeys),
        additional: states(entry.additionalKeys),
        exclude: states(entry.excludeKeys),
        seen: new Set(),
        isHeldBack: false,
      };
      this.#states.set(entry, state);
    }
    return state;
  }

  #expandKey(key: ScanKey, entry: ScanEntry): ScanKey {
    const { expand } = this.#input;
    return expand === undefined || key.pattern !== undefined || !/[{<]/.test(key.text)
      ? key
      : { ...key, text: expand(key.text, toEntryName(entry)) };
  }

  #listTexts(entry: ScanEntry, isRecursive: boolean): number[] {
    const bookDepth = entry.bookScanDepth ?? this.#defaultDepth;
    const deeper = entry.scanDepth === undefined ? this.#deeper : 0;
    const depth = entry.scanDepth ?? bookDepth;
    if (depth + deeper < 1) return []; // As in SillyTavern, such an entry scans nothing at all.
    const sourceTexts = this.#sourceTexts.filter(({ source }) =>
      source === "always" || entry.sources.has(source as "always")
    );
    const recursed = isRecursive && entry.isRecursive && !entry.excludeRecursion ? [...this.#recursed] : [];
    return [
      ...this.#getMessages(depth),
      ...Array.from({ length: deeper }, (_, n) => this.#getMessage(Math.floor(bookDepth) + n + 1)).flat(),
      ...sourceTexts.map(({ text }) => text),
      ...recursed,
    ];
  }

  /** Returns one message as a text. @param depth 1 for the newest. */
  #getMessage(depth: number): number[] {
    const message = this.#input.messages.at(-depth);
    if (depth < 1 || message === undefined) return [];
    let index = this.#bySingleDepth.get(depth);
    if (index === undefined) this.#bySingleDepth.set(depth, index = this.#texts.push(toLine(message)) - 1);
    return [index];
  }

  /** Returns the newest messages as one text, newest first. */
  #getMessages(depth: number): number[] {
    const { messages } = this.#input;
    const count = Math.min(messages.length, Math.max(0, Math.floor(depth)));
    if (count === 0) return [];
    let index = this.#byDepth.get(count);
    if (index === undefined) {
      index = (this.#historyChars > MAX_HISTORY_CHARS ? this.#findDeepestBelow(count) : undefined) ??
        this.#joinMessages(count);
      this.#byDepth.set(count, index);
    }
    return [index];
  }

  #joinMessages(count: number): number {
    const { messages } = this.#input;
    const parts: string[] = [];
    let chars = 0;
    for (let n = 1; n <= count && chars <= MAX_TEXT_CHARS; n++) {
      const line = toLine(messages[messages.length - n]!);
      chars += line.length;
      parts.push(line);
    }
    const text = parts.join(MESSAGE_SEPARATOR).slice(0, MAX_TEXT_CHARS);
    this.#historyChars += text.length;
    const index = this.#texts.push(text) - 1;
    this.#joinedTexts.push({ depth: count, index });
    return index;
  }

  #findDeepestBelow(count: number): number | undefined {
    let deepest: { depth: number; index: number } | undefined;
    for (const one of this.#joinedTexts) {
      if (one.depth < count && one.depth > (deepest?.depth ?? 0)) deepest = one;
    }
    return deepest?.index;
  }
}

function toLine({ name, text }: ScannedMessage): string {
  return (name ? `${name}: ${text}` : text).slice(-MAX_TEXT_CHARS);
}

function listKeyStates({ primary, secondary, additional, exclude }: EntryState): KeyState[] {
  return [...primary, ...secondary, ...additional, ...exclude];
}

function recordFinding(state: KeyState, finding: KeyFinding, isRecursed: boolean): void {
  if (finding === "hit" && !state.isFound) Object.assign(state, { isFound: true, isRecursed });
  if (finding === "invalid") state.problem = "invalid_pattern";
  if (finding === "too_slow") state.problem = "too_slow";
}

function passesSecondaryKeys(logic: ScanEntry["logic"], secondary: readonly KeyState[]): boolean {
  if (secondary.length === 0) return true;
  const found = secondary.filter(({ isFound }) => isFound).length;
  if (logic === "any") return found > 0;
  if (logic === "all") return found === secondary.length;
  return logic === "none" ? found === 0 : found < secondary.length;
}
