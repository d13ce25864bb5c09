/** Parses the macros of a text, `{{…}}` inside each other too, in one pass. What they mean is in macros.ts. */

/** One macro. All offsets count UTF-16 units of the whole text. */
export interface MacroCall {
  /** Lower case: `char`, `random`; `//` for a comment; `""` for braces around something else. */
  name: string;
  /** Where the body begins, behind the opening braces. */
  start: number;
  /** Where the body ends, before the closing braces. */
  end: number;
  /** Where the values begin, behind the name and its separator. */
  rest: number;
  /** True where `::` follows the name, which then separates the values too. */
  isDoubled: boolean;
  /** Macros inside this one, in order; theirs are inside them. */
  inner: readonly MacroCall[];
  /** Where the separators of its values are, once somebody asked. */
  separators?: readonly number[];
}

/** A part of a text with the macros in it. */
export interface TextRange {
  from: number;
  to: number;
  macros: readonly MacroCall[];
}

/** A text, parsed. */
export interface MacroText {
  text: string;
  /** The outermost macros, in order. */
  macros: readonly MacroCall[];
}

const OPEN = "{".charCodeAt(0);
const CLOSE = "}".charCodeAt(0);
// Both are matched where a body begins, in the whole text: neither reaches beyond the closing braces.
const NAME = /\s*([a-z_][\w]*(?:(?<=time_utc)[+-]\d{1,2})?)\s*(::|:|\s|(?=\}\}))/iy;
const COMMENT = /\s*\/\//y;

/**
 * Finds the macros of a text in linear time. Braces without a partner are plain text.
 *
 * @param maxMacros A text with more is not parsed to its end.
 * @returns `undefined` for a text with more macros than that.
 */
export function parseMacros(text: string, maxMacros: number): MacroText | undefined {
  const open: number[] = [];
  // Complete macros that are in no complete one yet. Each is taken out at most once, so the pass is linear.
  const complete: MacroCall[] = [];
  let count = 0;
  const first = text.indexOf("{{");
  for (let at = first < 0 ? text.length : first; at < text.length - 1; at++) {
    const code = text.charCodeAt(at);
    if (code !== text.charCodeAt(at + 1)) continue;
    if (code === OPEN && text.charCodeAt(at + 2) !== OPEN) { // of three braces in a row the inner two open
      open.push(at++);
    } else if (code === CLOSE) {
      const start = open.pop();
      if (start !== undefined) {
        if (++count > maxMacros) return undefined;
        let inner = complete.length;
        while (inner > 0 && complete[inner - 1]!.start > start) inner--;
        complete.push(callOf(text, start + 2, at, complete.splice(inner)));
      }
      at++;
    }
  }
  return { text, macros: complete };
}

/** Returns everything behind the name of a macro. */
export function restOf({ rest, end, inner }: MacroCall): TextRange {
  return { from: rest, to: end, macros: inner };
}

/** Returns how many values a macro has: `A::B`, or `A,B` where a comma behind a backslash is part of a value. */
export function countValues({ text }: MacroText, call: MacroCall, maxValues: number): number | undefined {
  call.separators ??= separatorsOf(text, call, maxValues);
  return call.separators.length > maxValues ? undefined : call.separators.length + 1;
}

/** Returns a value of a macro whose values were counted. Values between commas come without the white space around them. */
export function valueOf({ text }: MacroText, { rest, end, isDoubled, inner, separators = [] }: MacroCall, n: number) {
  const width = isDoubled ? 2 : 1;
  let from = n === 0 ? rest : separators[n - 1]! + width;
  let to = separators[n] ?? end;
  if (!isDoubled) {
    const value = text.slice(from, to);
    const trimmed = value.trimStart();
    from = to - trimmed.length;
    to = from + trimmed.trimEnd().length;
  }
  return { from, to, macros: inner.slice(firstBehind(inner, from), firstBehind(inner, to)) } satisfies TextRange;
}

function callOf(text: string, start: number, end: number, inner: MacroCall[]): MacroCall {
  COMMENT.lastIndex = start;
  if (COMMENT.test(text)) return { name: "//", start, end, rest: end, isDoubled: false, inner };
  NAME.lastIndex = start;
  const match = NAME.exec(text);
  if (match === null) return { name: "", start, end, rest: end, isDoubled: false, inner };
  const isDoubled = match[2] === "::";
  return { name: match[1]!.toLowerCase(), start, end, rest: start + match[0].length, isDoubled, inner };
}

/** Stops behind `maxValues`. */
function separatorsOf(text: string, { rest, end, isDoubled, inner }: MacroCall, maxValues: number): number[] {
  const separator = isDoubled ? "::" : ",";
  const found: number[] = [];
  let from = rest;
  for (const next of [...inner, undefined]) {
    // Between two macros only: a search in the whole text would run on to its end from each of them.
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

function firstBehind(macros: readonly MacroCall[], offset: number): number {
  let [low, high] = [0, macros.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (macros[middle]!.start < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
