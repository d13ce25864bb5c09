/** Which keys of which entries the texts of one scan hold, round by round. */
import { nameOf } from "./activation_rules.ts";
import type { ActivationInput, DropReason } from "./activation.ts";
import type { KeyQuery } from "./key_matcher.ts";
import { isTickUsedUp, yieldToEventLoop } from "../async/yield_to_event_loop.ts";
import type { ScanEntry } from "./scan_entries.ts";
import type { KeyFinding, ScanKey } from "./scan_keys.ts";

/** What is known of an entry's keys. */
export interface EntryFinding {
  /** The first of its keys that was found. */
  key?: string;
  /** It was found only in what fired before. */
  isRecursed: boolean;
  /** Its secondary or additional keys say no. */
  isHeldBack: boolean;
  /** A key was found that it must not meet. */
  isExcluded: boolean;
}

/** One key of an entry, and what was found of it so far. */
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
  /** Texts that were looked through, by place. */
  seen: Set<number>;
  isHeldBack: boolean;
}

/** Messages are joined so that no key stretches from one into the next. */
const BETWEEN = "\n\u0001";

/** Of a longer text the newest part is scanned. */
const MAX_TEXT_CHARS = 200_000;
/**
 * Each scan depth that entries ask for is a text of its own. Beyond so many characters in all, entries of further depths
 * scan the deepest text there is instead of theirs.
 */
const MAX_HISTORY_CHARS = 10_000_000;

/** The texts of a scan, and the entries that look into them. */
export class KeyScan {
  readonly #input: ActivationInput;
  readonly #defaultDepth: number;
  readonly #texts: string[] = [];
  readonly #byDepth = new Map<number, number>();
  readonly #joinedTexts: { depth: number; place: number }[] = [];
  #historyChars = 0;
  readonly #beside: { source: string; text: number }[];
  readonly #recursed = new Set<number>();
  readonly #states = new Map<ScanEntry, EntryState>();

  constructor(input: ActivationInput, defaultDepth: number) {
    this.#input = input;
    this.#defaultDepth = defaultDepth;
    this.#beside = (input.scanTexts ?? []).map(({ source, text }) => ({ source, text: this.#texts.push(text) - 1 }));
  }

  /** Adds the text of entries that fired, for the entries that scan it. */
  addRecursion(text: string): void {
    this.#recursed.add(this.#texts.push(text) - 1);
  }

  /** Looks for the keys of entries in the texts that each of them has not seen yet. */
  async look(entries: readonly ScanEntry[]): Promise<void> {
    const asked: { state: KeyState; isRecursed: boolean }[] = [];
    const queries: KeyQuery[] = [];
    for (const entry of entries) {
      const known = this.#state(entry);
      const fresh = this.#textsFor(entry).filter((text) => !known.seen.has(text));
      for (const text of fresh) known.seen.add(text);
      for (const isRecursed of [false, true]) {
        const texts = fresh.filter((text) => this.#recursed.has(text) === isRecursed);
        if (texts.length === 0) continue;
        for (const state of keysOf(known)) {
          if (state.isFound || state.problem !== undefined) continue;
          asked.push({ state, isRecursed });
          queries.push({ key: state.key, texts });
        }
      }
      if (isTickUsedUp()) await yieldToEventLoop();
    }
    if (queries.length === 0) return;
    const findings = await this.#input.matcher.match(this.#texts, queries);
    asked.forEach(({ state, isRecursed }, place) => note(state, findings[place]!, isRecursed));
  }

  /** Gives what is known of an entry. */
  finding(entry: ScanEntry): EntryFinding {
    const { primary, secondary, additional, exclude } = this.#state(entry);
    const hit = primary.find(({ isFound }) => isFound);
    return {
      key: hit?.key.text,
      isRecursed: hit?.isRecursed === true,
      isHeldBack: !isAllowed(entry.logic, secondary) ||
        (additional.length > 0 && !additional.some(({ isFound }) => isFound)),
      isExcluded: exclude.some(({ isFound }) => isFound),
    };
  }

  /** Gives how many keys of an entry were found. */
  score(entry: ScanEntry): number {
    const { primary, secondary } = this.#state(entry);
    const count = (states: KeyState[]) => states.filter(({ isFound }) => isFound).length;
    return count(primary) + (entry.logic === "any" || entry.logic === "all" ? count(secondary) : 0);
  }

  /** Remembers that a key was found and the secondary ones said no. */
  noteHeldBack(entry: ScanEntry): void {
    this.#state(entry).isHeldBack = true;
  }

  /** Gives why entries did not fire that came close: held back by secondary keys, or by a pattern that cannot be tried. */
  problems(entries: readonly ScanEntry[]): { entry: ScanEntry; reason: DropReason; key?: string }[] {
    return entries.flatMap((entry): { entry: ScanEntry; reason: DropReason; key?: string }[] => {
      const state = this.#states.get(entry);
      if (state === undefined) return [];
      if (state.isHeldBack) return [{ entry, reason: "secondary_keys", key: this.finding(entry).key }];
      const broken = keysOf(state).find(({ problem }) => problem !== undefined);
      return broken === undefined ? [] : [{ entry, reason: broken.problem!, key: broken.key.text }];
    });
  }

  #state(entry: ScanEntry): EntryState {
    let state = this.#states.get(entry);
    if (state === undefined) {
      const states = (keys: readonly ScanKey[]) =>
        keys.map((key): KeyState => ({ key: this.#expanded(key, entry), isFound: false, isRecursed: false }));
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

  #expanded(key: ScanKey, entry: ScanEntry): ScanKey {
    const { expand } = this.#input;
    return expand === undefined || key.pattern !== undefined || !/[{<]/.test(key.text)
      ? key
      : { ...key, text: expand(key.text, nameOf(entry)) };
  }

  #textsFor(entry: ScanEntry): number[] {
    const beside = this.#beside.filter(({ source }) => source === "always" || entry.sources.has(source as "always"));
    const recursed = entry.isRecursive && !entry.excludeRecursion ? [...this.#recursed] : [];
    return [...this.#messages(entry.scanDepth ?? this.#defaultDepth), ...beside.map(({ text }) => text), ...recursed];
  }

  /** The newest messages as one text, the newest first. */
  #messages(depth: number): number[] {
    const { messages } = this.#input;
    const count = Math.min(messages.length, Math.max(0, Math.floor(depth)));
    if (count === 0) return [];
    let place = this.#byDepth.get(count);
    if (place === undefined) {
      place = (this.#historyChars > MAX_HISTORY_CHARS ? this.#deepestBelow(count) : undefined) ?? this.#joined(count);
      this.#byDepth.set(count, place);
    }
    return [place];
  }

  #joined(count: number): number {
    const { messages } = this.#input;
    const parts: string[] = [];
    let chars = 0;
    for (let n = 1; n <= count && chars <= MAX_TEXT_CHARS; n++) {
      const { name, text } = messages[messages.length - n]!;
      const said = (name ? `${name}: ${text}` : text).slice(-MAX_TEXT_CHARS);
      chars += said.length;
      parts.push(said);
    }
    const text = parts.join(BETWEEN).slice(0, MAX_TEXT_CHARS);
    this.#historyChars += text.length;
    const place = this.#texts.push(text) - 1;
    this.#joinedTexts.push({ depth: count, place });
    return place;
  }

  #deepestBelow(count: number): number | undefined {
    let deepest: { depth: number; place: number } | undefined;
    for (const one of this.#joinedTexts) {
      if (one.depth < count && one.depth > (deepest?.depth ?? 0)) deepest = one;
    }
    return deepest?.place;
  }
}

function keysOf({ primary, secondary, additional, exclude }: EntryState): KeyState[] {
  return [...primary, ...secondary, ...additional, ...exclude];
}

function note(state: KeyState, finding: KeyFinding, isRecursed: boolean): void {
  if (finding === "hit" && !state.isFound) Object.assign(state, { isFound: true, isRecursed });
  if (finding === "invalid") state.problem = "invalid_pattern";
  if (finding === "too_slow") state.problem = "too_slow";
}

function isAllowed(logic: ScanEntry["logic"], secondary: readonly KeyState[]): boolean {
  if (secondary.length === 0) return true;
  const found = secondary.filter(({ isFound }) => isFound).length;
  if (logic === "any") return found > 0;
  if (logic === "all") return found === secondary.length;
  return logic === "none" ? found === 0 : found < secondary.length;
}
