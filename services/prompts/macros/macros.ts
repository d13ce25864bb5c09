/**
 * Expands macros in cards, presets, lorebooks, notes and messages. Unknown macros aren't changed. Expanded text isn't
 * scanned for macros again, except for card fields, once each.
 *
 * The texts are untrusted: all work counts against a `MacroBudget`.
 */
import { getOwn } from "../../json/type_guards.ts";
import type { SeededRandom } from "../participants.ts";
import { byteLength, COSTLY_STEPS, MacroBudget, MacroVariables, OverBudgetError } from "./macro_budget.ts";
import {
  countValues,
  formatTimeMacro,
  getRest,
  getValue,
  type MacroCall,
  type MacroClock,
  type MacroText,
  parseMacros,
  type TextRange,
} from "./macro_text.ts";

/** Fields that macros can insert. They may contain macros themselves. */
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

/** The values that macros expand to. */
export interface MacroScope {
  char: string;
  user: string;
  /** Names of all characters of a group. */
  group?: string;
  fields: Partial<Record<MacroField, string>>;
  clock: MacroClock;
  random: SeededRandom;
  /** The current conversation. */
  chat: { lastMessage?: string; lastUserMessage?: string; lastCharMessage?: string; model?: string };
}

/** Options for expanding one text. */
export interface MacroContext {
  /** Key of random choices: they stay the same for one location. */
  location: string;
  /** Name of the text in reports; by default the location. See `NotExpanded`. */
  field?: string;
  /** Which one, if a prompt has several. */
  source?: string;
  /** The text that this one overrides. */
  original?: string;
  /** Set if the text is a field itself. The field expands to nothing inside itself. */
  self?: MacroField;
  /** Fields that are already expanded. */
  expanded?: Partial<Record<MacroField, string>>;
  /** Overrides the random source of the scope. */
  random?: SeededRandom;
  /** Overrides the clock of the scope. */
  clock?: MacroClock;
  /** False if `<USER>` and `<BOT>` are plain text. */
  hasTags?: boolean;
  /** True if variables set by this text aren't visible to later texts. */
  hasOwnVariables?: boolean;
}

interface ExpansionRun extends MacroContext {
  /** Number of choices made so far. */
  choices: number;
  /** Fields being expanded, to prevent recursion. */
  fields: readonly string[];
  depth: number;
}

/** How to treat the text between macros. */
interface PlainText {
  /** True inside a macro, whose output counts. The text around macros doesn't. */
  isCounted: boolean;
  /** True if `\,` is a literal comma. */
  hasEscapes?: boolean;
}

/** Placeholder for `{{trim}}` until the line breaks around it are removed. */
const TRIM = "\0trim\0";
const TAGS = /<(user|bot|char)>/gi;
const MAY_HAVE_MACROS = /\{\{|<(?:user|bot|char)>/i;
/** Longest text that is parsed as dice or as a number. */
const MAX_NUMBER_CHARS = 40;
const FIELD_NAMES: Record<string, MacroField> = {
  mesexamplesraw: "mesexamples",
  charinstruction: "charjailbreak",
  char_version: "charversion",
};

/** Expands the macros of one prompt. Variables set by one text are visible to later ones. */
export class Macros {
  readonly #scope: MacroScope;
  readonly #budget: MacroBudget;
  readonly #variables: MacroVariables;
  /** `undefined` for a field with too many macros. */
  readonly #parsed = new Map<MacroField, MacroText | undefined>();

  /** @param budget Shared by all texts of one prompt. */
  constructor(scope: MacroScope, budget = new MacroBudget()) {
    this.#scope = scope;
    this.#budget = budget;
    this.#variables = new MacroVariables(budget.limits);
  }

  /** Expands a text. A text over budget is reported and returned as written. */
  expand(text: string, context: MacroContext): string {
    return this.tryExpand(text, context) ?? text;
  }

  /** Expands a text. @returns `undefined` for a text over budget, which is then reported. */
  tryExpand(text: string, context: MacroContext): string | undefined {
    if (!MAY_HAVE_MACROS.test(text)) return text;
    const { field = context.location, source, self, hasOwnVariables = false } = context;
    this.#variables.beginField();
    const expanded = this.#budget.countAttempt({ field, source }, () => {
      const run: ExpansionRun = { ...context, choices: 0, fields: self === undefined ? [] : [self], depth: 0 };
      const parsed = this.#parse(text);
      const whole = { from: 0, to: text.length, macros: parsed.macros };
      return this.#expand(parsed, whole, run, { isCounted: false });
    });
    if (expanded === undefined || hasOwnVariables) this.#variables.rollBack();
    return expanded === undefined ? undefined : applyTrims(expanded);
  }

  /**
   * Counts text that is inserted repeatedly without a macro, such as the format around each entry.
   *
   * @returns False if that exceeds the budget, which is then reported.
   */
  allows(bytes: number, { field, source }: { field: string; source?: string }): boolean {
    return this.#budget.countAttempt({ field, source }, () => {
      this.#budget.takeBytes(bytes);
      return true;
    }) ?? false;
  }

  #parse(text: string): MacroText {
    const parsed = parseMacros(text, this.#budget.limits.steps);
    if (parsed === undefined) throw new OverBudgetError("steps");
    return parsed;
  }

  #expand(parsed: MacroText, { from, to, macros }: TextRange, run: ExpansionRun, plain: PlainText): string {
    let expanded = "";
    let at = from;
    for (const macro of macros) {
      expanded += this.#toPlain(parsed.text.slice(at, macro.start - 2), run, plain);
      expanded += this.#evaluate(parsed, macro, run);
      at = macro.end + 2;
    }
    return expanded + this.#toPlain(parsed.text.slice(at, to), run, plain);
  }

  /** Expands the inside of a macro. */
  #expandInner(parsed: MacroText, range: TextRange, run: ExpansionRun, hasEscapes = false): string {
    if (run.depth >= this.#budget.limits.depth) throw new OverBudgetError("depth");
    run.depth++;
    const expanded = this.#expand(parsed, range, run, { isCounted: true, hasEscapes });
    run.depth--;
    return expanded;
  }

  #toPlain(text: string, { hasTags = true }: ExpansionRun, { isCounted, hasEscapes }: PlainText): string {
    if (text === "") return "";
    if (isCounted) this.#budget.takeBytes(byteLength(text));
    const unescaped = hasEscapes ? text.replaceAll("\\,", ",") : text;
    if (!hasTags) return unescaped;
    const { char, user } = this.#scope;
    return unescaped.replace(TAGS, (_, tag: string) => {
      this.#budget.takeSteps(1);
      return this.#countOutput(tag.toLowerCase() === "user" ? user : char);
    });
  }

  /** Counts all text that macros insert. */
  #countOutput(text: string): string {
    this.#budget.takeBytes(byteLength(text));
    return text;
  }

  #evaluate(parsed: MacroText, call: MacroCall, run: ExpansionRun): string {
    this.#budget.takeSteps(1);
    const value = this.#getValue(call, run);
    if (value !== undefined) return this.#countOutput(value);
    return this.#evaluateComputed(parsed, call, run) ??
      `{{${this.#expandInner(parsed, { from: call.start, to: call.end, macros: call.inner }, run)}}}`;
  }

  /** Expands macros that represent a single value and ignore their arguments. */
  #getValue({ name }: MacroCall, run: ExpansionRun): string | undefined {
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
        if (original !== undefined) run.original = ""; // Only once: a second one would double the prompt.
        return original;
      }
      case "newline":
        return "\n";
      case "trim":
        return TRIM;
      case "lastmessage":
      case "lastchatmessage": // Used by presets in the continuation instruction
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

  #evaluateComputed(parsed: MacroText, call: MacroCall, run: ExpansionRun): string | undefined {
    switch (call.name) {
      case "reverse":
        return [...this.#countOutput(this.#expandInner(parsed, getRest(call), run))].reverse().join("");
      case "random":
      case "pick":
        return this.#chooseOption(parsed, call, run);
      case "roll":
        return this.#roll(parsed, call, run);
    }
    return this.#getField(call, run) ?? this.#evaluateVariable(parsed, call, run) ?? this.#formatTime(call, run);
  }

  #formatTime({ name }: MacroCall, run: ExpansionRun): string | undefined {
    const text = formatTimeMacro(name, run.clock ?? this.#scope.clock);
    if (text === undefined) return undefined;
    this.#budget.takeSteps(COSTLY_STEPS - 1);
    return this.#countOutput(text);
  }

  #getField(call: MacroCall, run: ExpansionRun): string | undefined {
    const field = getOwn(FIELD_NAMES, call.name) ?? call.name as MacroField;
    const { fields } = this.#scope;
    if (call.rest < call.end || !Object.hasOwn(fields, field)) return undefined;
    const known = run.expanded?.[field];
    if (known !== undefined) return this.#countOutput(known);
    if (run.fields.includes(field)) return "";
    if (!this.#parsed.has(field)) this.#parsed.set(field, parseMacros(fields[field] ?? "", this.#budget.limits.steps));
    const parsed = this.#parsed.get(field);
    if (parsed === undefined) throw new OverBudgetError("steps");
    // Choices in a field are the same at every position.
    const inner: ExpansionRun = {
      ...run,
      location: field,
      original: undefined,
      choices: 0,
      fields: [...run.fields, field],
    };
    return this.#expandInner(parsed, { from: 0, to: parsed.text.length, macros: parsed.macros }, inner);
  }

  #chooseOption(parsed: MacroText, call: MacroCall, run: ExpansionRun): string {
    const count = this.#countValues(parsed, call);
    const chosen = Math.floor(this.#rollChance(parsed, call, run) * count);
    return this.#expandInner(parsed, getValue(parsed, call, chosen), run, !call.isDoubled);
  }

  /** Rolls dice: `6`, `d6`, `2d6+1`. */
  #roll(parsed: MacroText, call: MacroCall, run: ExpansionRun): string | undefined {
    const notation = this.#expandInner(parsed, getRest(call), run).trim();
    if (notation.length > MAX_NUMBER_CHARS) return undefined;
    const match = /^(?:(\d{0,3})d)?(\d{1,9})\s*([+-]\s*\d{1,9})?$/i.exec(notation);
    if (match === null) return undefined;
    const [, dice, sides, plus] = match;
    let sum = Number(plus?.replace(/\s/g, "") ?? 0);
    for (let n = Number(dice || 1); n > 0; n--) {
      sum += 1 + Math.floor(this.#rollChance(parsed, call, run) * Number(sides));
    }
    return this.#countOutput(String(sum));
  }

  #rollChance({ text }: MacroText, { start, end }: MacroCall, run: ExpansionRun): number {
    this.#budget.takeSteps(COSTLY_STEPS - 1);
    const body = this.#countOutput(text.slice(start, end)); // The text is hashed.
    return (run.random ?? this.#scope.random)(run.location, `${run.choices++}\n${body}`);
  }

  #countValues(parsed: MacroText, call: MacroCall): number {
    const count = countValues(parsed, call, this.#budget.limits.steps);
    if (count === undefined) throw new OverBudgetError("steps");
    return count;
  }

  #evaluateVariable(parsed: MacroText, call: MacroCall, run: ExpansionRun): string | undefined {
    const match = /^(get|set|add|inc|dec)(global)?var$/.exec(call.name);
    if (match === null || !call.isDoubled) return undefined;
    const count = this.#countValues(parsed, call);
    const takePart = (n: number) => n < count ? this.#expandInner(parsed, getValue(parsed, call, n), run) : "";
    const name = `${match[2] ?? ""} ${takePart(0).trim()}`;
    const value = takePart(1);
    const known = this.#variables.get(name);
    switch (match[1]) {
      case "get":
        return this.#countOutput(known);
      case "set":
        this.#variables.set(name, value);
        return "";
      case "add":
        this.#variables.set(name, this.#countOutput(addValues(known, value)));
        return "";
      default: {
        const next = this.#countOutput(addValues(known || "0", match[1] === "inc" ? "1" : "-1"));
        this.#variables.set(name, next);
        return next;
      }
    }
  }
}

/** Adds numbers, concatenates texts. */
function addValues(left: string, right: string): string {
  const [a, b] = [parseNumber(left), parseNumber(right)];
  return right.trim() === "" || Number.isNaN(a) || Number.isNaN(b) ? left + right : String(a + b);
}

function parseNumber(text: string): number {
  return text.length > MAX_NUMBER_CHARS ? NaN : Number(text || "0");
}

/**
 * Removes the line breaks around each `{{trim}}`. A regular expression would take quadratic time on long runs of them.
 */
function applyTrims(text: string): string {
  if (!text.includes(TRIM)) return text;
  const parts = text.split(TRIM);
  return parts.map((part, n) => {
    const [from, to] = [
      n > 0 ? skipLineBreaks(part) : 0,
      n < parts.length - 1 ? findEndBeforeLineBreaks(part) : part.length,
    ];
    return part.slice(from, Math.max(from, to));
  }).join("");
}

function skipLineBreaks(text: string): number {
  let at = 0;
  while (text[at] === "\n" || text[at] === "\r") at++;
  return at;
}

function findEndBeforeLineBreaks(text: string): number {
  let at = text.length;
  while (text[at - 1] === "\n" || text[at - 1] === "\r") at--;
  return at;
}
