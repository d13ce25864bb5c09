/**
 * What stands in double braces in cards, presets and notes. Unknown macros stay as they are written; what a macro stands
 * for is not searched for macros again, except the fields of the card, each once.
 */
import { type MacroClock, timeText } from "./macro_clock.ts";
import { type MacroCall, replaceMacros, valuesOf } from "./macro_text.ts";
import type { SeededRandom } from "./seeded_random.ts";

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
  /** The text that this one replaces. */
  original?: string;
  /** Another source of chance than the scope's. */
  random?: SeededRandom;
  /** Another time than the scope's. */
  clock?: MacroClock;
  /** False where `<USER>` and `<BOT>` are not meant as names. */
  hasTags?: boolean;
}

interface Run extends MacroPlace {
  /** Choices made so far. */
  choices: number;
  /** Fields that are being put in: one inside itself would never end. */
  fields: readonly string[];
  depth: number;
}

/** Macros inside macros inside fields: deeper than anybody writes. */
const MAX_DEPTH = 24;
/** Stands where `{{trim}}` was until the line breaks around it are gone. */
const TRIM = "\0trim\0";
const FIELD_NAMES: Record<string, MacroField> = {
  mesexamplesraw: "mesexamples",
  charinstruction: "charjailbreak",
  char_version: "charversion",
};

/** Expands the macros of one prompt. Variables that one text sets can be read by those after it. */
export class Macros {
  readonly #scope: MacroScope;
  readonly #variables = new Map<string, string>();

  constructor(scope: MacroScope) {
    this.#scope = scope;
  }

  /** Gives a text with what its macros stand for. */
  expand(text: string, place: MacroPlace): string {
    const expanded = this.#expand(text, { ...place, choices: 0, fields: [], depth: 0 });
    return expanded.includes(TRIM) ? expanded.replace(/[\r\n]*\0trim\0[\r\n]*/g, "") : expanded;
  }

  #expand(text: string, run: Run): string {
    if (run.depth > MAX_DEPTH) return text;
    run.depth++;
    const plain = (part: string) => run.hasTags === false ? part : this.#named(part);
    const expanded = replaceMacros(
      text,
      (call) => this.#evaluate(call, run) ?? `{{${this.#expand(call.body, run)}}}`,
      plain,
    );
    run.depth--;
    return expanded;
  }

  #named(text: string): string {
    const { char, user } = this.#scope;
    return text.replace(/<(user|bot|char)>/gi, (_, tag: string) => tag.toLowerCase() === "user" ? user : char);
  }

  #evaluate(call: MacroCall, run: Run): string | undefined {
    const { char, user, group, chat } = this.#scope;
    switch (call.name) {
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
        run.original = ""; // once: a second one would double the prompt
        return original;
      }
      case "newline":
        return "\n";
      case "trim":
        return TRIM;
      case "reverse":
        return [...this.#expand(call.rest, run)].reverse().join("");
      case "random":
      case "pick":
        return this.#choice(call, run);
      case "roll":
        return this.#roll(call, run);
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
    return this.#field(call, run) ?? this.#variable(call, run) ??
      timeText(call.name, run.clock ?? this.#scope.clock);
  }

  #field({ name, rest }: MacroCall, run: Run): string | undefined {
    const field = FIELD_NAMES[name] ?? name as MacroField;
    if (rest !== "" || !Object.hasOwn(this.#scope.fields, field)) return undefined;
    if (run.fields.includes(field)) return "";
    // A choice in a field is the same wherever the field is put in.
    const inner: Run = { ...run, place: field, original: undefined, choices: 0, fields: [...run.fields, field] };
    return this.#expand(this.#scope.fields[field] ?? "", inner);
  }

  #choice(call: MacroCall, run: Run): string {
    const values = valuesOf(call);
    return this.#expand(values[Math.floor(this.#chance(call, run) * values.length)] ?? "", run);
  }

  /** `6`, `d6`, `2d6+1`. */
  #roll(call: MacroCall, run: Run): string | undefined {
    const match = /^\s*(?:(\d{0,3})d)?(\d{1,9})\s*([+-]\s*\d{1,9})?\s*$/i.exec(this.#expand(call.rest, run));
    if (match === null) return undefined;
    const [, dice, sides, plus] = match;
    let sum = Number(plus?.replace(/\s/g, "") ?? 0);
    for (let n = Number(dice || 1); n > 0; n--) sum += 1 + Math.floor(this.#chance(call, run) * Number(sides));
    return String(sum);
  }

  #chance({ body }: MacroCall, run: Run): number {
    const random = run.random ?? this.#scope.random;
    return random(`${run.place}\n${run.choices++}\n${body}`);
  }

  #variable(call: MacroCall, run: Run): string | undefined {
    const match = /^(get|set|add|inc|dec)(global)?var$/.exec(call.name);
    if (match === null || !call.isDoubled) return undefined;
    const [name = "", value = ""] = valuesOf(call).map((part) => this.#expand(part, run));
    const key = `${match[2] ?? ""} ${name.trim()}`;
    const known = this.#variables.get(key) ?? "";
    switch (match[1]) {
      case "get":
        return known;
      case "set":
        this.#variables.set(key, value);
        return "";
      case "add":
        this.#variables.set(key, added(known, value));
        return "";
      default: {
        const next = added(known || "0", match[1] === "inc" ? "1" : "-1");
        this.#variables.set(key, next);
        return next;
      }
    }
  }
}

/** Numbers are added, texts put behind each other. */
function added(left: string, right: string): string {
  const [a, b] = [Number(left || "0"), Number(right)];
  return right.trim() === "" || Number.isNaN(a) || Number.isNaN(b) ? left + right : String(a + b);
}
