/**
 * Expands the macros in cards, presets, lorebooks, notes and messages. Unknown macros stay as they are written; what a macro
 * stands for is not searched for macros again, except the fields of the card, each once.
 *
 * The texts come from strangers: everything that macros do counts against a `MacroBudget`.
 */
import { byteLength, COSTLY_STEPS, MacroBudget, MacroVariables, OverBudget } from "./macro_budget.ts";
import { type MacroClock, timeText } from "./macro_clock.ts";
import {
  countValues,
  type MacroCall,
  type MacroText,
  parseMacros,
  restOf,
  type TextRange,
  valueOf,
} from "./macro_text.ts";
import type { SeededRandom } from "../seeded_random.ts";

/** Texts that macros can name; they may hold macros themselves. */
export type MacroField =
  | "persona"
  | "description"
  | "personality"
  | "scenario"
  | "mesexamples"
  | "charprompt"
  | "charjailbreak"
  | "charversion"
  | "summary";

/** What the macros of a prompt speak of. */
export interface MacroScope {
  char: string;
  user: string;
  /** The names of all characters, where there are several. */
  group?: string;
  fields: Partial<Record<MacroField, string>>;
  clock: MacroClock;
  random: SeededRandom;
  /** The conversation as it stands. */
  chat: { lastMessage?: string; lastUserMessage?: string; lastCharMessage?: string; model?: string };
}

/** Where a text stands, and what is special about it. */
export interface MacroPlace {
  /** Names the place: a choice by chance stays the same for a place. */
  place: string;
  /** What the text is called in reports; the place unless set. See `NotExpanded`. */
  field?: string;
  /** Which one, where a prompt has several. */
  source?: string;
  /** The text that this one replaces. */
  original?: string;
  /** Set where the text is one of the fields: inside itself the field is empty. */
  self?: MacroField;
  /** Fields that are expanded already. */
  expanded?: Partial<Record<MacroField, string>>;
  /** Another source of chance than the scope's. */
  random?: SeededRandom;
  /** Another time than the scope's. */
  clock?: MacroClock;
  /** False where `<USER>` and `<BOT>` are not meant as names. */
  hasTags?: boolean;
  /** True where variables that the text sets are not read by the texts after it. */
  hasOwnVariables?: boolean;
}

interface Run extends MacroPlace {
  /** Choices made so far. */
  choices: number;
  /** Fields that are being inserted: one inside itself would never end. */
  fields: readonly string[];
  depth: number;
}

/** What is done to the text between macros. */
interface PlainText {
  /** True inside of a macro, whose output counts. The text that a macro stands in doesn't. */
  isCounted: boolean;
  /** True where a backslash before a comma makes it part of a value. */
  hasEscapes?: boolean;
}

/** Stands where `{{trim}}` was until the line breaks around it are gone. */
const TRIM = "\0trim\0";
const TAGS = /<(user|bot|char)>/gi;
const MAY_HAVE_MACROS = /\{\{|<(?:user|bot|char)>/i;
/** The longest text that is read as dice, or as a number. */
const MAX_NUMBER_CHARS = 40;
const FIELD_NAMES: Record<string, MacroField> = {
  mesexamplesraw: "mesexamples",
  charinstruction: "charjailbreak",
  char_version: "charversion",
};

/** Expands the macros of one prompt. Variables that one text sets can be read by those after it. */
export class Macros {
  readonly #scope: MacroScope;
  readonly #budget: MacroBudget;
  readonly #variables: MacroVariables;
  /** `undefined` for a field with too many macros. */
  readonly #parsed = new Map<MacroField, MacroText | undefined>();

  /** @param budget One for everything that goes into the same prompt. */
  constructor(scope: MacroScope, budget = new MacroBudget()) {
    this.#scope = scope;
    this.#budget = budget;
    this.#variables = new MacroVariables(budget.limits);
  }

  /** Returns a text with its macros expanded, or as written where that exceeds the budget, which then reports it. */
  expand(text: string, place: MacroPlace): string {
    return this.tryExpand(text, place) ?? text;
  }

  /** Returns a text with its macros expanded, `undefined` where that exceeds the budget, which then reports it. */
  tryExpand(text: string, place: MacroPlace): string | undefined {
    if (!MAY_HAVE_MACROS.test(text)) return text;
    const { field = place.place, source, self, hasOwnVariables = false } = place;
    this.#variables.begin();
    const expanded = this.#budget.attempt({ field, source }, () => {
      const run: Run = { ...place, choices: 0, fields: self === undefined ? [] : [self], depth: 0 };
      const parsed = this.#parse(text);
      const whole = { from: 0, to: text.length, macros: parsed.macros };
      return this.#expand(parsed, whole, run, { isCounted: false });
    });
    if (expanded === undefined || hasOwnVariables) this.#variables.rollBack();
    return expanded === undefined ? undefined : trimmed(expanded);
  }

  /**
   * Counts text that goes into the prompt again and again without a macro: a format around each entry, words before each
   * example. Returns whether the budget allows it; where not, that is reported.
   */
  allows(bytes: number, { field, source }: { field: string; source?: string }): boolean {
    return this.#budget.attempt({ field, source }, () => {
      this.#budget.takeBytes(bytes);
      return true;
    }) ?? false;
  }

  #parse(text: string): MacroText {
    const parsed = parseMacros(text, this.#budget.limits.steps);
    if (parsed === undefined) throw new OverBudget("steps");
    return parsed;
  }

  #expand(parsed: MacroText, { from, to, macros }: TextRange, run: Run, plain: PlainText): string {
    let expanded = "";
    let at = from;
    for (const macro of macros) {
      expanded += this.#plain(parsed.text.slice(at, macro.start - 2), run, plain);
      expanded += this.#evaluate(parsed, macro, run);
      at = macro.end + 2;
    }
    return expanded + this.#plain(parsed.text.slice(at, to), run, plain);
  }

  /** Expands what is inside of a macro. */
  #inner(parsed: MacroText, range: TextRange, run: Run, hasEscapes = false): string {
    if (run.depth >= this.#budget.limits.depth) throw new OverBudget("depth");
    run.depth++;
    const expanded = this.#expand(parsed, range, run, { isCounted: true, hasEscapes });
    run.depth--;
    return expanded;
  }

  #plain(text: string, { hasTags = true }: Run, { isCounted, hasEscapes }: PlainText): string {
    if (text === "") return "";
    if (isCounted) this.#budget.takeBytes(byteLength(text));
    const unescaped = hasEscapes ? text.replaceAll("\\,", ",") : text;
    if (!hasTags) return unescaped;
    const { char, user } = this.#scope;
    return unescaped.replace(TAGS, (_, tag: string) => {
      this.#budget.takeSteps(1);
      return this.#counted(tag.toLowerCase() === "user" ? user : char);
    });
  }

  /** Every text that a macro inserts passes here. */
  #counted(text: string): string {
    this.#budget.takeBytes(byteLength(text));
    return text;
  }

  #evaluate(parsed: MacroText, call: MacroCall, run: Run): string {
    this.#budget.takeSteps(1);
    const value = this.#value(call, run);
    if (value !== undefined) return this.#counted(value);
    return this.#computed(parsed, call, run) ??
      `{{${this.#inner(parsed, { from: call.start, to: call.end, macros: call.inner }, run)}}}`;
  }

  /** A macro that stands for one text, whatever follows its name. */
  #value({ name }: MacroCall, run: Run): string | undefined {
    const { char, user, group, chat } = this.#scope;
    switch (name) {
      case "//":
      case "comment":
      case "hidden_key":
      case "noop":
        return "";
      case "char":
        return char;
      case "user":
        return user;
      case "group":
      case "charifnotgroup":
        return group ?? char;
      case "original": {
        const { original } = run;
        if (original !== undefined) run.original = ""; // once: a second one would double the prompt
        return original;
      }
      case "newline":
        return "\n";
      case "trim":
        return TRIM;
      case "lastmessage":
      case "lastchatmessage": // what presets call it in the sentence that asks for a continuation
        return chat.lastMessage ?? "";
      case "lastusermessage":
      case "input":
        return chat.lastUserMessage ?? "";
      case "lastcharmessage":
        return chat.lastCharMessage ?? "";
      case "model":
        return chat.model ?? "";
    }
    return undefined;
  }

  #computed(parsed: MacroText, call: MacroCall, run: Run): string | undefined {
    switch (call.name) {
      case "reverse":
        return [...this.#counted(this.#inner(parsed, restOf(call), run))].reverse().join("");
      case "random":
      case "pick":
        return this.#choice(parsed, call, run);
      case "roll":
        return this.#roll(parsed, call, run);
    }
    return this.#field(call, run) ?? this.#variable(parsed, call, run) ?? this.#time(call, run);
  }

  #time({ name }: MacroCall, run: Run): string | undefined {
    const text = timeText(name, run.clock ?? this.#scope.clock);
    if (text === undefined) return undefined;
    this.#budget.takeSteps(COSTLY_STEPS - 1);
    return this.#counted(text);
  }

  #field(call: MacroCall, run: Run): string | undefined {
    const field = FIELD_NAMES[call.name] ?? call.name as MacroField;
    const { fields } = this.#scope;
    if (call.rest < call.end || !Object.hasOwn(fields, field)) return undefined;
    const known = run.expanded?.[field];
    if (known !== undefined) return this.#counted(known);
    if (run.fields.includes(field)) return "";
    if (!this.#parsed.has(field)) this.#parsed.set(field, parseMacros(fields[field] ?? "", this.#budget.limits.steps));
    const parsed = this.#parsed.get(field);
    if (parsed === undefined) throw new OverBudget("steps");
    // A choice in a field is the same wherever the field is inserted.
    const inner: Run = { ...run, place: field, original: undefined, choices: 0, fields: [...run.fields, field] };
    return this.#inner(parsed, { from: 0, to: parsed.text.length, macros: parsed.macros }, inner);
  }

  #choice(parsed: MacroText, call: MacroCall, run: Run): string {
    const count = this.#countValues(parsed, call);
    const chosen = Math.floor(this.#chance(parsed, call, run) * count);
    return this.#inner(parsed, valueOf(parsed, call, chosen), run, !call.isDoubled);
  }

  /** `6`, `d6`, `2d6+1`. */
  #roll(parsed: MacroText, call: MacroCall, run: Run): string | undefined {
    const asked = this.#inner(parsed, restOf(call), run).trim();
    if (asked.length > MAX_NUMBER_CHARS) return undefined;
    const match = /^(?:(\d{0,3})d)?(\d{1,9})\s*([+-]\s*\d{1,9})?$/i.exec(asked);
    if (match === null) return undefined;
    const [, dice, sides, plus] = match;
    let sum = Number(plus?.replace(/\s/g, "") ?? 0);
    for (let n = Number(dice || 1); n > 0; n--) {
      sum += 1 + Math.floor(this.#chance(parsed, call, run) * Number(sides));
    }
    return this.#counted(String(sum));
  }

  #chance({ text }: MacroText, { start, end }: MacroCall, run: Run): number {
    this.#budget.takeSteps(COSTLY_STEPS - 1);
    const body = this.#counted(text.slice(start, end)); // it is hashed
    return (run.random ?? this.#scope.random)(run.place, `${run.choices++}\n${body}`);
  }

  #countValues(parsed: MacroText, call: MacroCall): number {
    const count = countValues(parsed, call, this.#budget.limits.steps);
    if (count === undefined) throw new OverBudget("steps");
    return count;
  }

  #variable(parsed: MacroText, call: MacroCall, run: Run): string | undefined {
    const match = /^(get|set|add|inc|dec)(global)?var$/.exec(call.name);
    if (match === null || !call.isDoubled) return undefined;
    const count = this.#countValues(parsed, call);
    const part = (n: number) => n < count ? this.#inner(parsed, valueOf(parsed, call, n), run) : "";
    const name = `${match[2] ?? ""} ${part(0).trim()}`;
    const value = part(1);
    const known = this.#variables.get(name);
    switch (match[1]) {
      case "get":
        return this.#counted(known);
      case "set":
        this.#variables.set(name, value);
        return "";
      case "add":
        this.#variables.set(name, this.#counted(added(known, value)));
        return "";
      default: {
        const next = this.#counted(added(known || "0", match[1] === "inc" ? "1" : "-1"));
        this.#variables.set(name, next);
        return next;
      }
    }
  }
}

/** Numbers are added, texts put behind each other. */
function added(left: string, right: string): string {
  const [a, b] = [numberIn(left), numberIn(right)];
  return right.trim() === "" || Number.isNaN(a) || Number.isNaN(b) ? left + right : String(a + b);
}

function numberIn(text: string): number {
  return text.length > MAX_NUMBER_CHARS ? NaN : Number(text || "0");
}

/** Takes the line breaks around each `{{trim}}` away. A pattern would look through a run of them from each of its places. */
function trimmed(text: string): string {
  if (!text.includes(TRIM)) return text;
  const parts = text.split(TRIM);
  return parts.map((part, n) => {
    const [from, to] = [n > 0 ? firstAfterBreaks(part) : 0, n < parts.length - 1 ? endBeforeBreaks(part) : part.length];
    return part.slice(from, Math.max(from, to));
  }).join("");
}

function firstAfterBreaks(text: string): number {
  let at = 0;
  while (text[at] === "\n" || text[at] === "\r") at++;
  return at;
}

function endBeforeBreaks(text: string): number {
  let at = text.length;
  while (text[at - 1] === "\n" || text[at - 1] === "\r") at--;
  return at;
}
