/** Parses macros, `{{…}}`, which may be nested, in one pass. macros.ts expands them. */

/** One macro. Offsets are UTF-16 units of the whole text. */
export interface MacroCall {
  /** Lower case: `char`, `random`; `//` for a comment; `""` for braces around anything else. */
  name: string;
  /** Start of the body, after the opening braces. */
  start: number;
  /** End of the body, before the closing braces. */
  end: number;
  /** Start of the arguments, after the name and its separator. */
  rest: number;
  /** True if `::` follows the name. It then also separates the arguments. */
  isDoubled: boolean;
  /** Nested macros, in order. */
  inner: readonly MacroCall[];
  /** Offsets of the argument separators; found on first use. */
  separators?: readonly number[];
}

/** A range of a text with the macros in it. */
export interface TextRange {
  from: number;
  to: number;
  macros: readonly MacroCall[];
}

/** A parsed text. */
export interface MacroText {
  text: string;
  /** Top-level macros, in order. */
  macros: readonly MacroCall[];
}

const OPEN = "{".charCodeAt(0);
const CLOSE = "}".charCodeAt(0);
// Both match at the start of a body, in the whole text. Neither crosses the closing braces.
const NAME = /\s*([a-z_][\w]*(?:(?<=time_utc)[+-]\d{1,2})?)\s*(::|:|\s|(?=\}\}))/iy;
const COMMENT = /\s*\/\//y;

/**
 * Finds the macros of a text in linear time. Unmatched braces are plain text.
 *
 * @returns `undefined` for a text with more than `maxMacros` macros.
 */
export function parseMacros(text: string, maxMacros: number): MacroText | undefined {
  const open: number[] = [];
  // Complete macros whose parent isn't complete yet. Each is removed at most once, so the pass is linear.
  const complete: MacroCall[] = [];
  let count = 0;
  const first = text.indexOf("{{");
  for (let at = first < 0 ? text.length : first; at < text.length - 1; at++) {
    const code = text.charCodeAt(at);
    if (code !== text.charCodeAt(at + 1)) continue;
    if (code === OPEN && text.charCodeAt(at + 2) !== OPEN) { // Of three consecutive braces, the inner two open.
      open.push(at++);
    } else if (code === CLOSE) {
      const start = open.pop();
      if (start !== undefined) {
        if (++count > maxMacros) return undefined;
        let inner = complete.length;
        while (inner > 0 && complete[inner - 1]!.start > start) inner--;
        complete.push(parseCall(text, start + 2, at, complete.splice(inner)));
      }
      at++;
    }
  }
  return { text, macros: complete };
}

/** Returns everything after the name of a macro. */
export function getRest({ rest, end, inner }: MacroCall): TextRange {
  return { from: rest, to: end, macros: inner };
}

/** Counts the arguments of a macro: `A::B`, or `A,B`, where `\,` is a literal comma. */
export function countValues({ text }: MacroText, call: MacroCall, maxValues: number): number | undefined {
  call.separators ??= findSeparators(text, call, maxValues);
  return call.separators.length > maxValues ? undefined : call.separators.length + 1;
}

/** Returns an argument of a macro whose arguments were counted. Arguments between commas are trimmed. */
export function getValue({ text }: MacroText, { rest, end, isDoubled, inner, separators = [] }: MacroCall, n: number) {
  const width = isDoubled ? 2 : 1;
  let from = n === 0 ? rest : separators[n - 1]! + width;
  let to = separators[n] ?? end;
  if (!isDoubled) {
    const value = text.slice(from, to);
    const trimmed = value.trimStart();
    from = to - trimmed.length;
    to = from + trimmed.trimEnd().length;
  }
  return { from, to, macros: inner.slice(findFirstAfter(inner, from), findFirstAfter(inner, to)) } satisfies TextRange;
}

function parseCall(text: string, start: number, end: number, inner: MacroCall[]): MacroCall {
  COMMENT.lastIndex = start;
  if (COMMENT.test(text)) return { name: "//", start, end, rest: end, isDoubled: false, inner };
  NAME.lastIndex = start;
  const match = NAME.exec(text);
  if (match === null) return { name: "", start, end, rest: end, isDoubled: false, inner };
  const isDoubled = match[2] === "::";
  return { name: match[1]!.toLowerCase(), start, end, rest: start + match[0].length, isDoubled, inner };
}

/** Finds the argument separators. Stops after `maxValues`. */
function findSeparators(text: string, { rest, end, isDoubled, inner }: MacroCall, maxValues: number): number[] {
  const separator = isDoubled ? "::" : ",";
  const found: number[] = [];
  let from = rest;
  for (const next of [...inner, undefined]) {
    // Only searches between two macros. Searching the whole text from each macro would take quadratic time.
    const plain = text.slice(from, next === undefined ? end : next.start - 2);
    for (let at = plain.indexOf(separator); at >= 0; at = plain.indexOf(separator, at + separator.length)) {
      if (!isDoubled && plain[at - 1] === "\\") continue;
      found.push(from + at);
      if (found.length > maxValues) return found;
    }
    from = next === undefined ? end : next.end + 2;
  }
  return found;
}

function findFirstAfter(macros: readonly MacroCall[], offset: number): number {
  let [low, high] = [0, macros.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (macros[middle]!.start < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Date and time macros, in the client's time zone.

/** The time used by macros. */
export interface MacroClock {
  nowMs: number;
  /** IANA name such as `Europe/Berlin`; by default the server's zone. */
  timeZone?: string;
  /** Time since the user's last message. */
  idleMs?: number;
}

const HOUR_MS = 60 * 60 * 1000;
/** Maximum number of cached formats. Creating one takes 100 times as long as using it. */
const MAX_FORMATS = 100;
const formats = new Map<string, Intl.DateTimeFormat>();

/** Reports whether a name is a valid time zone. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Expands a date or time macro. @param name Lower case. @returns `undefined` for other names. */
export function formatTimeMacro(name: string, { nowMs, timeZone, idleMs }: MacroClock): string | undefined {
  const show = (options: Intl.DateTimeFormatOptions, locale = "en-US") =>
    getFormat(locale, { timeZone, ...options }).format(nowMs);
  switch (name) {
    case "time":
      return replaceNarrowSpaces(show({ hour: "numeric", minute: "2-digit" }));
    case "date":
      return show({ dateStyle: "long" });
    case "weekday":
      return show({ weekday: "long" });
    case "isotime":
      return show({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }, "en-GB");
    case "isodate":
      return show({ year: "numeric", month: "2-digit", day: "2-digit" }, "en-CA");
    case "idle_duration":
      return idleMs === undefined ? "just now" : formatDuration(idleMs);
  }
  const offset = /^time_utc([+-]\d{1,2})$/.exec(name)?.[1];
  if (offset === undefined) return undefined;
  const shifted = getFormat("en-US", { timeZone: "UTC", hour: "numeric", minute: "2-digit" });
  return replaceNarrowSpaces(shifted.format(nowMs + Number(offset) * HOUR_MS));
}

function getFormat(locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify([locale, options]);
  let format = formats.get(key);
  if (format === undefined) {
    if (formats.size >= MAX_FORMATS) formats.clear();
    formats.set(key, format = new Intl.DateTimeFormat(locale, options));
  }
  return format;
}

/** Some ICU versions put a narrow space before AM and PM, which tokenizers handle badly. */
function replaceNarrowSpaces(text: string): string {
  return text.replace(/\u202f/g, " ");
}

function formatDuration(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return "a few seconds";
  if (minutes < 60) return pluralize(minutes, "minute");
  const hours = Math.round(minutes / 60);
  return hours < 36 ? pluralize(hours, "hour") : pluralize(Math.round(hours / 24), "day");
}

function pluralize(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
