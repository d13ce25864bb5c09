/** Regex scripts: what they consist of, when they run, and SillyTavern's form of them. */
import { createHash } from "node:crypto";
import { asArray, asNumber, asObject, asText, isJsonObject, type JsonObject } from "../json/type_guards.ts";

/** SillyTavern's numbers of the texts that a script can change. */
const PLACEMENT_NUMBERS = {
  user_input: 1,
  ai_output: 2,
  /** Kept for SillyTavern: Parlor has no script commands. */
  slash_command: 3,
  world_info: 5,
  reasoning: 6,
} as const;

/** The texts that a script can change. */
export const PLACEMENTS = Object.keys(PLACEMENT_NUMBERS) as ScriptPlacement[];
/** One of them. */
export type ScriptPlacement = keyof typeof PLACEMENT_NUMBERS;

/** What happens to macros in the pattern: nothing, they expand, or they expand to literal text. */
export const FIND_MACROS = ["none", "raw", "escaped"] as const;

/** A regex script. */
export interface RegexScript {
  name: string;
  /** The pattern, alone or as `/pattern/flags`. */
  find: string;
  /** `$1`, `$<name>` and `{{match}}` stand for what was found. */
  replace: string;
  /** Removed from what was found before it's inserted. */
  trim: string[];
  placement: ScriptPlacement[];
  isEnabled: boolean;
  /** Only changes what is shown. With neither of these two, it changes what is shown and what is sent. */
  isDisplayOnly: boolean;
  /** Only changes what is sent. */
  isPromptOnly: boolean;
  /** Also changes the stored text when a message is edited. */
  runsOnEdit: boolean;
  findMacros: (typeof FIND_MACROS)[number];
  /** Smallest number of messages after the changed one; -1 includes a reply that is continued. */
  minDepth?: number;
  maxDepth?: number;
  /** Other fields of the imported file. */
  rest?: JsonObject;
}

/** Limits of a script. Presets have scripts with whole HTML pages. */
export const SCRIPT_LIMITS = { nameChars: 200, findChars: 50_000, replaceChars: 500_000, trims: 200 } as const;
/** Maximum number of scripts of one card, preset or file. */
export const MAX_SCRIPTS = 500;

/** SillyTavern's number for the deprecated placement "Markdown display". */
const OLD_DISPLAY = 0;
/** SillyTavern's number for the former placement "sendas". */
const OLD_SEND_AS = 4;
const FIELDS = [
  ...["id", "scriptName", "findRegex", "replaceString", "trimStrings", "placement", "disabled", "markdownOnly"],
  ...["promptOnly", "runOnEdit", "substituteRegex", "minDepth", "maxDepth"],
];

/** Reads a script of SillyTavern. @returns `undefined` if it has no pattern or exceeds a limit */
export function parseTavernScript(value: unknown): RegexScript | undefined {
  if (!isJsonObject(value) || typeof value.findRegex !== "string") return undefined;
  const numbers = asArray(value.placement).map(asNumber);
  const isOldDisplay = numbers.includes(OLD_DISPLAY);
  const placement = isOldDisplay && numbers.length === 1
    ? PLACEMENTS
    : PLACEMENTS.filter((name) =>
      numbers.includes(PLACEMENT_NUMBERS[name]) || (name === "slash_command" && numbers.includes(OLD_SEND_AS))
    );
  const minDepth = asNumber(value.minDepth);
  const maxDepth = asNumber(value.maxDepth);
  const rest = Object.fromEntries(Object.entries(value).filter(([field]) => !FIELDS.includes(field)));
  const script: RegexScript = {
    name: asText(value.scriptName).slice(0, SCRIPT_LIMITS.nameChars),
    find: value.findRegex,
    replace: asText(value.replaceString),
    trim: asArray(value.trimStrings).map(asText).filter((text) => text !== ""),
    placement: [...placement],
    isEnabled: value.disabled !== true,
    isDisplayOnly: isOldDisplay || value.markdownOnly === true,
    isPromptOnly: isOldDisplay || value.promptOnly === true,
    runsOnEdit: value.runOnEdit === true,
    findMacros: FIND_MACROS[asNumber(value.substituteRegex) ?? 0] ?? "none",
    ...(minDepth !== undefined && { minDepth }),
    ...(maxDepth !== undefined && { maxDepth }),
    ...(Object.keys(rest).length > 0 && { rest }),
  };
  const isTooLong = script.find.length > SCRIPT_LIMITS.findChars ||
    script.replace.length > SCRIPT_LIMITS.replaceChars || script.trim.length > SCRIPT_LIMITS.trims;
  return isTooLong ? undefined : script;
}

/** Reads the scripts of a card or preset. Those that can't be read are left out. @param value Its `regex_scripts` */
export function parseTavernScripts(value: unknown): RegexScript[] {
  return asArray(value).slice(0, MAX_SCRIPTS).flatMap((script) => parseTavernScript(script) ?? []);
}

/** Converts a script to SillyTavern's form. */
export function toTavernScript(id: string, script: RegexScript): JsonObject {
  return {
    ...asObject(script.rest),
    id,
    scriptName: script.name,
    findRegex: script.find,
    replaceString: script.replace,
    trimStrings: script.trim,
    placement: script.placement.map((name) => PLACEMENT_NUMBERS[name]),
    disabled: !script.isEnabled,
    markdownOnly: script.isDisplayOnly,
    promptOnly: script.isPromptOnly,
    runOnEdit: script.runsOnEdit,
    substituteRegex: FIND_MACROS.indexOf(script.findMacros),
    minDepth: script.minDepth ?? null,
    maxDepth: script.maxDepth ?? null,
  };
}

/** Identifies the scripts of a card or preset by their content: 64 hexadecimal digits. */
export function hashScripts(scripts: readonly RegexScript[]): string {
  return createHash("sha256").update(JSON.stringify(scripts)).digest("hex");
}

/** What a script runs for: what is shown, what is sent, or a message that is being edited. */
export type ScriptPurpose = "display" | "prompt" | "edit";

/** A text that scripts may change. */
export interface ScriptText {
  text: string;
  placement: ScriptPlacement;
  /** Number of messages after it. Absent for a text outside of the history. */
  depth?: number;
}

/**
 * Lists the scripts for a purpose in the order in which they run: first those that change what is shown and what is
 * sent, then those that change only one of them, as in SillyTavern.
 */
export function chooseScripts<T extends { script: RegexScript }>(scripts: readonly T[], purpose: ScriptPurpose): T[] {
  const enabled = scripts.filter(({ script: { isEnabled, find } }) => isEnabled && find !== "");
  const isForBoth = ({ script: { isDisplayOnly, isPromptOnly } }: T) => !isDisplayOnly && !isPromptOnly;
  const both = enabled.filter(isForBoth);
  if (purpose === "edit") return both.filter(({ script }) => script.runsOnEdit);
  const only = enabled.filter(({ script }) => purpose === "display" ? script.isDisplayOnly : script.isPromptOnly);
  return [...both, ...only];
}

/** Reports whether a script changes a text. Depth limits only apply to scripts for one purpose, as in SillyTavern. */
export function appliesTo(script: RegexScript, { placement, depth }: Omit<ScriptText, "text">): boolean {
  if (!script.placement.includes(placement)) return false;
  const isForBoth = !script.isDisplayOnly && !script.isPromptOnly;
  if (isForBoth) return placement !== "world_info";
  if (depth === undefined) return true;
  const { minDepth, maxDepth } = script;
  return !(minDepth !== undefined && minDepth >= -1 && depth < minDepth) &&
    !(maxDepth !== undefined && maxDepth >= 0 && depth > maxDepth);
}
