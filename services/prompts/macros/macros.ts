/**
 * Expands macros in cards, presets, lorebooks, notes and messages, as SillyTavern 1.19 does (docs/protocols/cards.md#macros).
 * Unknown macros aren't changed. Expanded text isn't scanned for macros again, except for card fields, once each.
 *
 * The texts are untrusted: all work counts against a `MacroBudget`.
 */
import { getOwn } from "../../json/type_guards.ts";
import { byteLength, COSTLY_STEPS, MacroBudget, MacroVariables, OverBudgetError } from "./macro_budget.ts";
import {
  cutRange,
  getBody,
  getRest,
  listValues,
  type MacroCall,
  type MacroItem,
  type MacroText,
  pairBlocks,
  parseMacros,
  type TextRange,
} from "./macro_text.ts";
import { describeDifference, describeDuration, formatTime, formatTimeAt, type MacroClock } from "./macro_time.ts";
import { addValue, getVariableKey, parseNumber, readItem, readValue, setItem } from "./macro_values.ts";

/** Returns a number in [0, 1) for a key, or for one of several details of a key. */
export type SeededRandom = (key: string, detail?: string) => number;

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
  | "chardepthprompt"
  | "creatornotes"
  | "summary";

/** The values that macros expand to. */
export interface MacroScope {
  char: string;
  user: string;
  /** All characters of a group. */
  group?: readonly { name: string; isMuted: boolean }[];
  fields: Partial<Record<MacroField, string>>;
  /** The card's greetings, the first one first. They may contain macros. */
  greetings?: readonly string[];
  /** Variables of the chat that are set from the start. Those beyond the limits are left out. */
  variables?: Readonly<Record<string, string>>;
  clock: MacroClock;
  random: SeededRandom;
  /** The current conversation. */
  chat: {
    lastMessage?: string;
    lastUserMessage?: string;
    lastCharMessage?: string;
    model?: string;
    /** SillyTavern's generation type. */
    generation?: string;
    messageCount?: number;
    /** Tokens of prompt and reply together. */
    contextTokens?: number;
    /** Tokens of the prompt. */
    promptTokens?: number;
  };
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
  /** True if variables set by this text aren't visible to later texts. */
  hasOwnVariables?: boolean;
  /** True for a text of a card, which is expanded before the lorebooks are read: its outlets are empty. */
  isBeforeLore?: boolean;
  /** True if unknown macros aren't reported: braces in a message are often code. */
  ignoresUnknown?: boolean;
}

interface ExpansionRun extends MacroContext {
  /** Number of choices made so far. */
  choices: number;
  /** Fields being expanded, to prevent recursion. */
  fields: readonly string[];
  depth: number;
}

/** A macro by its name: how many arguments it takes, and what it expands to. */
interface MacroDefinition {
  min: number;
  /** `Infinity` for a list. Such a macro has no block. */
  max: number;
  /** @returns `undefined` if the arguments have the wrong type. The macro then stays as written. */
  evaluate(values: readonly string[], run: ExpansionRun, call: MacroCall, isBlock: boolean): string | undefined;
}

/** `{{trim}}` stays until the line breaks around it are removed. */
const TRIM = "{{trim}}";
/** Placeholder for an escaped comma. */
const COMMA = "\0comma\0";
const TAGS = /<(user|bot|char|group|charifnotgroup)>/gi;
const MAY_HAVE_MACROS = /\{\{|<(?:user|bot|char|group|charifnotgroup)>/i;
/** Longest count of spaces or dice. */
const MAX_NUMBER_CHARS = 15;
const FALSE_TEXTS = new Set(["off", "false", "0"]);
/** Names of fields besides their own. */
const FIELD_NAMES: Record<string, MacroField> = {
  chardescription: "description",
  charpersonality: "personality",
  charscenario: "scenario",
  mesexamplesraw: "mesexamples",
  charinstruction: "charjailbreak",
  version: "charversion",
  char_version: "charversion",
  charcreatornotes: "creatornotes",
};
const FIELDS = [
  ...["persona", "description", "personality", "scenario", "mesexamples", "charprompt", "charjailbreak"] as const,
  ...["charversion", "chardepthprompt", "creatornotes", "summary"] as const,
];
/** What Parlor has no value for, because it's only set for text completion. SillyTavern expands them to nothing, too. */
const EMPTY_NAMES = [
  ...["StoryStringPrefix", "StoryStringSuffix", "UserPrefix", "Input", "UserSuffix", "AssistantPrefix", "Output"],
  ...["AssistantSuffix", "Separator", "SystemPrefix", "SystemSuffix", "FirstAssistantPrefix", "FirstOutputPrefix"],
  ...["LastAssistantPrefix", "LastOutputPrefix", "Stop", "UserFiller", "SystemInstructionPrefix", "FirstUserPrefix"],
  ...["FirstInput", "LastUserPrefix", "LastInput", "System", "SystemPrompt"],
].map((name) => `instruct${name}`.toLowerCase());
/** What depends on a browser or an extension of SillyTavern. Parlor expands them to this, and reports them. */
const MISSING: Record<string, string> = {
  firstincludedmessageid: "",
  firstdisplayedmessageid: "",
  lastswipeid: "",
  currentswipeid: "",
  defaultsystemprompt: "",
  lastexpression: "",
  defaultexpression: "",
  availableexpressions: "",
  charprefix: "",
  charnegativeprefix: "",
};

/** Reports whether a text has macros or tags such as `<USER>`. */
export function mayHaveMacros(text: string): boolean {
  return MAY_HAVE_MACROS.test(text);
}

/** Expands the macros of one prompt. Variables set by one text are visible to later ones. */
export class Macros {
  readonly #scope: MacroScope;
  readonly #budget: MacroBudget;
  readonly #variables: MacroVariables;
  /** `undefined` for a field with too many macros. */
  readonly #parsed = new Map<string, MacroText | undefined>();
  readonly #definitions: ReadonlyMap<string, MacroDefinition>;
  readonly #outlets = new Map<string, string>();

  /** @param budget Shared by all texts of one prompt. */
  constructor(scope: MacroScope, budget = new MacroBudget()) {
    this.#scope = scope;
    this.#budget = budget;
    this.#variables = new MacroVariables(budget.limits);
    for (const [name, value] of Object.entries(scope.variables ?? {})) {
      this.#variables.trySet(getVariableKey(name), value);
    }
    this.#definitions = this.#defineMacros();
  }

  /** Lists the names of all macros that have a value in Parlor, in lower case. */
  listNames(): string[] {
    return [...this.#definitions.keys()].filter((name) => !Object.hasOwn(MISSING, name)).sort();
  }

  /** Adds a lorebook entry to its outlet. Texts that are expanded later can insert it. */
  addToOutlet(name: string, text: string): void {
    const before = this.#outlets.get(name);
    this.#outlets.set(name, before === undefined ? text : `${before}\n${text}`);
  }

  /** Expands a text. A text over budget is reported and returned as written. */
  expand(text: string, context: MacroContext): string {
    return this.tryExpand(text, context) ?? text;
  }

  /** Expands a text. @returns `undefined` for a text over budget, which is then reported. */
  tryExpand(text: string, context: MacroContext): string | undefined {
    if (!mayHaveMacros(text) && !text.includes("\\")) return text;
    const { field = context.location, source, self, hasOwnVariables = false } = context;
    this.#variables.beginField();
    const expanded = this.#budget.countAttempt({ field, source }, () => {
      const run: ExpansionRun = { ...context, choices: 0, fields: self === undefined ? [] : [self], depth: 0 };
      const parsed = this.#parse(text);
      return this.#expand(parsed, { from: 0, to: text.length, macros: parsed.macros }, run, false);
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

  /**
   * @param isCounted True inside a macro, whose output counts. The text around macros doesn't.
   * @param hasBlocks False in the value of a variable expression, where macros have no blocks.
   */
  #expand(
    parsed: MacroText,
    { from, to, macros }: TextRange,
    run: ExpansionRun,
    isCounted: boolean,
    hasBlocks = true,
  ): string {
    let expanded = "";
    let at = from;
    const items = hasBlocks
      ? pairBlocks(macros, (call) => this.#takesBlock(parsed, call))
      : macros.map((call): MacroItem => ({ call }));
    for (const item of items) {
      expanded += this.#toPlain(parsed.text.slice(at, item.call.start - 2), isCounted);
      expanded += this.#evaluate(parsed, item, run);
      at = (item.closing ?? item.call).end + 2;
    }
    return expanded + this.#toPlain(parsed.text.slice(at, to), isCounted);
  }

  /** Expands the inside of a macro. */
  #expandInner(parsed: MacroText, range: TextRange, run: ExpansionRun, hasBlocks = true): string {
    if (run.depth >= this.#budget.limits.depth) throw new OverBudgetError("depth");
    run.depth++;
    const expanded = this.#expand(parsed, range, run, true, hasBlocks);
    run.depth--;
    return expanded;
  }

  #toPlain(text: string, isCounted: boolean): string {
    if (text === "") return "";
    if (isCounted) this.#budget.takeBytes(byteLength(text));
    const unescaped = text.includes("\\") ? text.replace(/\\([{}])/g, "$1") : text;
    if (!unescaped.includes("<")) return unescaped;
    return unescaped.replace(TAGS, (_, tag: string) => {
      this.#budget.takeSteps(1);
      const { char, user } = this.#scope;
      const name = tag.toLowerCase();
      return this.#countOutput(name === "user" ? user : name.includes("group") ? this.#listGroup() : char);
    });
  }

  /** Counts all text that macros insert. */
  #countOutput(text: string): string {
    this.#budget.takeBytes(byteLength(text));
    return text;
  }

  #takesBlock(parsed: MacroText, call: MacroCall): boolean {
    const definition = call.kind === "macro" ? this.#definitions.get(call.name) : undefined;
    if (definition === undefined || definition.max === Infinity) return false;
    const count = this.#listValues(parsed, call).length + 1;
    return count >= definition.min && count <= definition.max;
  }

  #evaluate(parsed: MacroText, { call, block, closing, isRaw = false }: MacroItem, run: ExpansionRun): string {
    this.#budget.takeSteps(1);
    if (call.kind === "other") return this.#expandAround(parsed, getBody(call), run);
    if (isRaw) return this.#countOutput(parsed.text.slice(call.start - 2, call.end + 2));
    if (call.kind !== "macro") return this.#countOutput(this.#evaluateVariable(parsed, call, run));
    if (call.name === "if" && (block !== undefined || this.#listValues(parsed, call).length === 2)) {
      return this.#evaluateCondition(parsed, call, block, run);
    }
    const definition = this.#definitions.get(call.name);
    const ranges = call.name === "if" ? [] : this.#listValues(parsed, call);
    const values = call.legacyArgument === undefined
      ? ranges.map((range) => this.#expandInner(parsed, range, run))
      : [call.legacyArgument];
    if (block !== undefined) {
      const content = this.#expandInner(parsed, block, run);
      values.push(call.keepsSpace ? content : trimBlock(content));
    }
    const canEvaluate = definition !== undefined && values.length >= definition.min && values.length <= definition.max;
    const value = canEvaluate ? definition.evaluate(values, run, call, block !== undefined) : undefined;
    if (value !== undefined) return this.#countOutput(value);
    this.#report(call.name, definition === undefined ? "unknown" : "arguments", run);
    const written = this.#writeCall(parsed, call, ranges, values);
    return closing === undefined ? written : written + this.#countOutput(values.at(-1)!) +
      this.#countOutput(parsed.text.slice(closing.start - 2, closing.end + 2));
  }

  /** Returns a macro that isn't evaluated, with expanded arguments. */
  #writeCall({ text }: MacroText, call: MacroCall, ranges: readonly TextRange[], values: readonly string[]): string {
    let written = "";
    let at = call.start - 2;
    for (const [n, { from, to }] of ranges.entries()) {
      written += text.slice(at, from) + values[n]!;
      at = to;
    }
    return this.#countOutput(written + text.slice(at, call.end + 2));
  }

  /** Expands the macros in braces that are no macro. */
  #expandAround(parsed: MacroText, range: TextRange, run: ExpansionRun): string {
    return `{{${this.#expandInner(parsed, range, run)}}}`;
  }

  #report(macro: string, reason: "unknown" | "arguments", run: ExpansionRun): void {
    if (run.ignoresUnknown) return;
    this.#budget.report({ field: run.field ?? run.location, source: run.source, reason, macro });
  }

  #listValues(parsed: MacroText, call: MacroCall): readonly TextRange[] {
    const values = listValues(parsed, call, this.#budget.limits.steps);
    if (values === undefined) throw new OverBudgetError("steps");
    return values;
  }

  /** Expands `{{if}}`: only the chosen branch is evaluated. */
  #evaluateCondition(parsed: MacroText, call: MacroCall, block: TextRange | undefined, run: ExpansionRun): string {
    const [condition, content = block!] = this.#listValues(parsed, call);
    const { isTrue, isNegated } = this.#evaluateTruth(parsed, condition!, run);
    const { then, otherwise } = this.#splitBranches(parsed, content);
    const branch = isTrue !== isNegated ? then : otherwise;
    if (branch === undefined) return "";
    const expanded = applyTrims(this.#expandInner(parsed, branch, run));
    return this.#countOutput(call.keepsSpace ? expanded : trimBlock(expanded));
  }

  #evaluateTruth(parsed: MacroText, range: TextRange, run: ExpansionRun): { isTrue: boolean; isNegated: boolean } {
    const written = parsed.text.slice(range.from, range.to);
    const negation = /^\s*!\s*/.exec(written);
    const from = range.from + (negation?.[0].length ?? 0);
    let value = applyTrims(this.#expandInner(parsed, cutRange({ ...range, from }), run));
    const variable = /^([.$])([a-z](?:[\w-]*\w)?)$/i.exec(value);
    const definition = this.#definitions.get(value.toLowerCase());
    if (variable !== null) value = this.#readVariable(getVariableKey(variable[2]!, variable[1] === "$"));
    else if (run.fields.includes(toFieldName(value))) {
      // A field expands to nothing inside itself, but it isn't empty.
      value = this.#scope.fields[toFieldName(value) as MacroField] ?? "";
    } else if (definition?.min === 0) {
      const call = { name: value.toLowerCase(), start: range.from, end: range.to } as MacroCall;
      value = applyTrims(this.#countOutput(definition.evaluate([], run, call, false) ?? ""));
    }
    return { isTrue: !isFalse(value), isNegated: negation !== null };
  }

  /** Splits a block at the `{{else}}` that doesn't belong to a nested condition. */
  #splitBranches(parsed: MacroText, { from, to, macros }: TextRange): { then: TextRange; otherwise?: TextRange } {
    let depth = 0;
    for (const [n, call] of macros.entries()) {
      if (call.kind !== "macro") continue;
      if (call.name === "if") {
        if (call.isClosing) depth--;
        else if (this.#listValues(parsed, call).length === 1) depth++;
      } else if (call.name === "else" && depth === 0) {
        return {
          then: { from, to: call.start - 2, macros: macros.slice(0, n) },
          otherwise: { from: call.end + 2, to, macros: macros.slice(n + 1) },
        };
      }
    }
    return { then: { from, to, macros } };
  }

  /** Evaluates `{{.name}}` and its operators. The value is only expanded if it's needed. */
  #evaluateVariable(parsed: MacroText, call: MacroCall, run: ExpansionRun): string {
    const key = getVariableKey(call.name, call.kind === "global");
    const known = this.#readVariable(key);
    const isSet = this.#variables.find(key) !== undefined;
    const expandValue = () => this.#expandInner(parsed, getRest(parsed, call), run, false).trim();
    const set = (value: string) => {
      this.#variables.set(key, this.#countOutput(value));
      return value;
    };
    const compare = (isRight: (a: number, b: number) => boolean) =>
      String(isRight(parseNumber(known), parseNumber(expandValue())));
    switch (call.operator) {
      case undefined:
        return known;
      case "++":
        return this.#addToVariable(key, 1);
      case "--":
        return this.#addToVariable(key, -1);
      case "=":
        set(expandValue());
        return "";
      case "+=":
        this.#addToVariable(key, expandValue());
        return "";
      case "-=": {
        const value = parseNumber(expandValue());
        if (!Number.isNaN(value)) this.#addToVariable(key, -value);
        return "";
      }
      case "||":
        return isFalse(known) ? expandValue() : known;
      case "||=":
        return isFalse(known) ? set(expandValue()) : known;
      case "??":
        return isSet ? known : expandValue();
      case "??=":
        return isSet ? known : set(expandValue());
      case "==":
        return String(known === expandValue());
      case "!=":
        return String(known !== expandValue());
      case ">":
        return compare((a, b) => a > b);
      case ">=":
        return compare((a, b) => a >= b);
      case "<":
        return compare((a, b) => a < b);
      default:
        return compare((a, b) => a <= b);
    }
  }

  #readVariable(key: string): string {
    return readValue(this.#variables.find(key));
  }

  #addToVariable(key: string, value: string | number): string {
    const sum = addValue(this.#readVariable(key), value);
    this.#variables.set(key, this.#countOutput(sum));
    return readValue(sum);
  }

  #listGroup(isIncluded: (member: { name: string; isMuted: boolean }) => boolean = () => true): string {
    const { char, group } = this.#scope;
    return group?.filter(isIncluded).map(({ name }) => name).join(", ") ?? char;
  }

  /** Expands a card field or greeting. Choices in it are the same at every position. */
  #expandField(key: string, text: string, run: ExpansionRun): string {
    if (run.fields.includes(key)) return "";
    if (!this.#parsed.has(key)) this.#parsed.set(key, parseMacros(text, this.#budget.limits.steps));
    const parsed = this.#parsed.get(key);
    if (parsed === undefined) throw new OverBudgetError("steps");
    const fields = [...run.fields, key];
    const inner: ExpansionRun = { ...run, location: key, original: undefined, choices: 0, fields };
    return this.#expandInner(parsed, { from: 0, to: parsed.text.length, macros: parsed.macros }, inner);
  }

  #rollChance(run: ExpansionRun, call: MacroCall, values: readonly string[]): number {
    this.#budget.takeSteps(COSTLY_STEPS - 1);
    const body = this.#countOutput(`${call.name}:${values.join("::")}`); // The text is hashed.
    return (run.random ?? this.#scope.random)(run.location, `${run.choices++}\n${body}`);
  }

  #chooseValue(values: readonly string[], run: ExpansionRun, call: MacroCall): string {
    if (values.length === 0) return "";
    const list = values.length === 1 ? this.#splitList(values[0]!) : values;
    return list[Math.floor(this.#rollChance(run, call, values) * list.length)]!;
  }

  /** Splits `A,B`, where `\,` is a literal comma, or `A::B`. */
  #splitList(text: string): string[] {
    const items = text.includes("::") ? text.split("::") : text.replaceAll("\\,", COMMA).split(",");
    if (items.length > this.#budget.limits.steps) throw new OverBudgetError("steps");
    return items.map((item) => item.trim().replaceAll(COMMA, ","));
  }

  /** Rolls dice: `6`, `d6`, `2d6+1`. @returns Nothing for other texts. */
  #roll(notation: string, run: ExpansionRun, call: MacroCall): string {
    const match = /^(?:([1-9]\d*)?d)?([1-9]\d*)([+-]\d+)?$/i.exec(notation);
    if (match === null || notation.length > 3 * MAX_NUMBER_CHARS || (match[3] && !/d/i.test(notation))) return "";
    const [, dice, sides, plus] = match;
    if (sides!.length > MAX_NUMBER_CHARS) return "";
    let sum = Number(plus ?? 0);
    for (let n = Number(dice ?? 1); n > 0; n--) {
      sum += 1 + Math.floor(this.#rollChance(run, call, [notation]) * Number(sides));
    }
    return String(sum);
  }

  #repeat(text: string, count = "1"): string | undefined {
    if (!/^\s*\d+\s*$/.test(count)) return undefined;
    const times = Number(count);
    this.#budget.takeBytes(times * text.length);
    return text.repeat(times);
  }

  #formatTime(run: ExpansionRun, format: (clock: MacroClock) => string): string {
    this.#budget.takeSteps(COSTLY_STEPS - 1);
    return format(run.clock ?? this.#scope.clock);
  }

  #defineMacros(): Map<string, MacroDefinition> {
    const definitions = new Map<string, MacroDefinition>();
    const define = (names: string, min: number, max: number, evaluate: MacroDefinition["evaluate"]) => {
      for (const name of names.split(" ")) definitions.set(name, { min, max, evaluate });
    };
    const { char, user, chat, fields } = this.#scope;
    const defineText = (names: string, text: string) => define(names, 0, 0, () => text);

    define("if", 2, 2, () => undefined); // See `#evaluateCondition`.
    defineText("else noop input", "");
    define("// comment", 1, 1, () => "");
    define("hidden_key", 0, Infinity, () => ""); // Character Card V3
    define("banned", 1, 1, () => "");
    define("trim", 0, 1, ([content = ""], _, __, isBlock) => isBlock ? content : TRIM);
    define(
      "outlet",
      1,
      1,
      ([name = ""], { fields, isBeforeLore = false }) =>
        fields.length > 0 || isBeforeLore ? "" : this.#outlets.get(name) ?? "",
    );
    define("space", 0, 1, ([count]) => this.#repeat(" ", count));
    define("newline", 0, 1, ([count]) => this.#repeat("\n", count));
    define("reverse", 1, 1, ([text]) => [...text!].reverse().join(""));

    defineText("char", char);
    defineText("user", user);
    define("group charifnotgroup", 0, 0, () => this.#listGroup());
    define("groupnotmuted", 0, 0, () => this.#listGroup(({ isMuted }) => !isMuted));
    define(
      "notchar",
      0,
      0,
      () => this.#scope.group === undefined ? user : this.#listGroup(({ name }) => name !== char),
    );
    define("original", 0, 0, (_, run) => {
      const { original } = run;
      if (original !== undefined) run.original = ""; // Only once: a second one would double the prompt.
      return original;
    });
    for (const field of FIELDS) {
      const names = [field, ...Object.keys(FIELD_NAMES).filter((name) => FIELD_NAMES[name] === field)];
      if (!Object.hasOwn(fields, field)) continue;
      define(names.join(" "), 0, 0, (_, run, { name }) => {
        const text = run.expanded?.[field] ?? this.#expandField(field, fields[field] ?? "", run);
        return name === "mesexamples" ? formatExamples(text) : text;
      });
    }
    define("systemprompt", 0, 0, (_, run) => this.#expandField("charprompt", fields.charprompt ?? "", run));
    define("charfirstmessage greeting", 0, 1, ([index = "0"], run) => {
      if (!/^\s*-?\d+\s*$/.test(index)) return undefined;
      const text = this.#scope.greetings?.[Number(index)];
      return text === undefined ? "" : this.#expandField(`greeting ${Number(index)}`, text, run);
    });

    const { messageCount = 0, contextTokens, promptTokens } = chat;
    defineText("lastmessage", chat.lastMessage ?? "");
    defineText("lastchatmessage", chat.lastMessage ?? ""); // Presets use it in the continuation instruction.
    defineText("lastusermessage", chat.lastUserMessage ?? "");
    defineText("lastcharmessage", chat.lastCharMessage ?? "");
    defineText("lastmessageid", messageCount > 0 ? String(messageCount - 1) : "");
    defineText("allchatrange", messageCount > 0 ? `0-${messageCount - 1}` : "");
    defineText("model", chat.model ?? "");
    defineText("lastgenerationtype", chat.generation ?? "");
    defineText("maxprompt maxprompttokens", String(promptTokens ?? ""));
    defineText("maxcontext maxcontexttokens", String(contextTokens ?? ""));
    const hasSizes = contextTokens !== undefined && promptTokens !== undefined;
    defineText("maxresponse maxresponsetokens", hasSizes ? String(contextTokens - promptTokens) : "");
    defineText("exampleseparator chatseparator chatstart", "***"); // SillyTavern's defaults
    defineText("ismobile", "false");
    defineText(EMPTY_NAMES.join(" "), "");
    define("hasextension", 1, 1, (_, run) => this.#reportMissing("hasextension", "false", run));
    for (const [name, text] of Object.entries(MISSING)) {
      define(name, 0, 0, (_, run) => this.#reportMissing(name, text, run));
    }

    const formats = { date: "LL", weekday: "dddd", isotime: "HH:mm", isodate: "YYYY-MM-DD" };
    for (const [name, format] of Object.entries(formats)) {
      define(name, 0, 0, (_, run) => this.#formatTime(run, (clock) => formatTime(clock, format)));
    }
    define("time", 0, 1, ([zone = ""], run) =>
      this.#formatTime(run, (clock) => {
        const offset = /^UTC([+-]\d{1,9})$/.exec(zone)?.[1];
        return offset === undefined ? formatTime(clock, "LT") : formatTimeAt(clock, Number(offset), "LT");
      }));
    define("datetimeformat", 1, 1, ([format], run) => this.#formatTime(run, (clock) => formatTime(clock, format!)));
    define(
      "idleduration idle_duration",
      0,
      0,
      (_, run) => this.#formatTime(run, ({ idleMs }) => idleMs === undefined ? "just now" : describeDuration(idleMs)),
    );
    define(
      "timediff",
      2,
      2,
      ([left, right], run) => this.#formatTime(run, (clock) => describeDifference(clock, left!, right!)),
    );

    define("random pick", 0, Infinity, (values, run, call) => this.#chooseValue(values, run, call));
    define("roll", 1, 1, ([notation], run, call) => this.#roll(notation!, run, call));
    for (const scope of ["", "global"]) this.#defineVariables(define, scope);
    return definitions;
  }

  #defineVariables(
    define: (names: string, min: number, max: number, evaluate: MacroDefinition["evaluate"]) => void,
    scope: string,
  ): void {
    const toKey = (name: string) => getVariableKey(name, scope === "global");
    define(`get${scope}var`, 1, 1, ([name]) => this.#readVariable(toKey(name!)));
    define(`set${scope}var`, 2, 2, ([name, value]) => {
      if (name === "") return undefined;
      this.#variables.set(toKey(name!), value!);
      return "";
    });
    define(`add${scope}var`, 2, 2, ([name, value]) => {
      if (name === "") return undefined;
      this.#addToVariable(toKey(name!), value!);
      return "";
    });
    define(`inc${scope}var`, 1, 1, ([name]) => name === "" ? undefined : this.#addToVariable(toKey(name!), 1));
    define(`dec${scope}var`, 1, 1, ([name]) => name === "" ? undefined : this.#addToVariable(toKey(name!), -1));
    define(
      `has${scope}var ${scope}varexists`,
      1,
      1,
      ([name]) => String(this.#variables.find(toKey(name!)) !== undefined),
    );
    define(`delete${scope}var flush${scope}var`, 1, 1, ([name]) => {
      this.#variables.delete(toKey(name!));
      return "";
    });
    define(
      `get${scope}varkey get${scope}varindex`,
      2,
      2,
      ([name, key]) => readItem(this.#variables.find(toKey(name!)), key!),
    );
    define(`set${scope}varkey set${scope}varindex`, 3, 3, ([name, key, value]) => {
      if (name === "") return undefined;
      const next = setItem(this.#variables.find(toKey(name!)), key!, value!);
      if (next !== undefined) this.#variables.set(toKey(name!), this.#countOutput(next));
      return "";
    });
  }

  #reportMissing(name: string, text: string, run: ExpansionRun): string {
    this.#report(name, "unknown", run);
    return text;
  }
}

function toFieldName(name: string): string {
  const key = name.toLowerCase();
  return getOwn(FIELD_NAMES, key) ?? key;
}

function isFalse(text: string): boolean {
  return text === "" || FALSE_TEXTS.has(text.trim().toLowerCase());
}

/** Formats example dialogues: each starts with `<START>` on a line. */
function formatExamples(text: string): string {
  if (text === "" || text === "<START>") return "";
  const dialogues = (text.startsWith("<START>") ? text : `<START>\n${text.trim()}`).split(/<START>/i).slice(1);
  return dialogues.map((dialogue) => `<START>\n${dialogue.trim()}\n`).join("");
}

/** Removes the white space around a block, and the indentation of its first line from all lines. */
function trimBlock(text: string): string {
  const lines = text.split("\n");
  const indentOf = (line: string) => /^[ \t]*/.exec(line)![0].length;
  const indent = indentOf(lines.find((line) => line.trim() !== "") ?? "");
  if (indent === 0) return text.trim();
  return lines.map((line) => indentOf(line) >= indent ? line.slice(indent) : line.trimStart()).join("\n").trim();
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
