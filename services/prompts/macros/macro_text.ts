/**
 * Parses the macro language of SillyTavern 1.19 in one pass: `{{name::argument}}`, blocks such as `{{if x}}…{{/if}}`, and
 * variables, `{{.name = value}}`. Macros may be nested. macros.ts expands them. See docs/protocols/cards.md#macros.
 */

/** A macro, a variable expression (`{{.a}}`, `{{$a}}`) or braces around anything else. */
export interface MacroCall {
  kind: "macro" | "local" | "global" | "other";
  /** A macro's name in lower case, with `//` for a comment; a variable's name as written; else `""`. */
  name: string;
  /** True for `{{/name}}`, the end of a block. */
  isClosing: boolean;
  /** True for `{{#name}}`, whose block keeps its white space. */
  keepsSpace: boolean;
  /** Start of the body, after the opening braces. Offsets are UTF-16 units of the whole text. */
  start: number;
  /** End of the body, before the closing braces. */
  end: number;
  /** Start of the rest, after the name, and after the operator of a variable expression. */
  rest: number;
  /** Operator of a variable expression. */
  operator?: string;
  /** Nested macros, in order. */
  inner: readonly MacroCall[];
  /** The argument of a legacy form that has no separator. */
  legacyArgument?: string;
  /** Ranges of the arguments; found on first use. */
  values?: readonly TextRange[];
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

/** One macro of a range, with the block that belongs to it. */
export interface MacroItem {
  call: MacroCall;
  /** What is between the macro and its end. */
  block?: TextRange;
  /** The end of the block. */
  closing?: MacroCall;
  /** True for a macro that stays as written. */
  isRaw?: boolean;
}

const OPEN = "{".charCodeAt(0);
const CLOSE = "}".charCodeAt(0);
// All match at the start of a body or after a name, in the whole text. None crosses the closing braces.
const FLAGS = /(?:[!?~#>\s]|\/(?!\/))*/y;
const HEAD = /(\/\/)|([a-z][\w-]*)[^\s:|{}]*|([.$])\s*([a-z](?:[\w-]*\w)?)\s*/iy;
const OPERATOR = /\+\+|--|\?\?=?|\|\|=?|[-+=!<>]=|[=<>]/y;
const LEGACY_TIME = /time_(utc[+-]\d+)(?=\}\})/iy;
const SPACES = /\s*/y;

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

/** Returns the body of a macro, without its braces. */
export function getBody({ start, end, inner }: MacroCall): TextRange {
  return { from: start, to: end, macros: inner };
}

/** Returns the rest of a macro, without the spaces around it. */
export function getRest({ text }: MacroText, { rest, end, inner }: MacroCall): TextRange {
  return trimRange(text, rest, end, inner);
}

/**
 * Returns the arguments of a macro, without the spaces around them: those between `::`, or else all of the rest.
 *
 * @returns `undefined` for more than `maxValues`.
 */
export function listValues(parsed: MacroText, call: MacroCall, maxValues: number): readonly TextRange[] | undefined {
  call.values ??= findValues(parsed, call, maxValues);
  return call.values.length > maxValues ? undefined : call.values;
}

function parseCall(text: string, start: number, end: number, inner: MacroCall[]): MacroCall {
  const call: MacroCall = {
    ...{ kind: "other", name: "", isClosing: false, keepsSpace: false } as const,
    ...{ start, end, rest: end, inner },
  };
  LEGACY_TIME.lastIndex = start;
  const legacy = LEGACY_TIME.exec(text);
  if (legacy !== null) return { ...call, kind: "macro", name: "time", legacyArgument: legacy[1] };
  const flags = match(FLAGS, text, start)![0];
  const at = start + flags.length;
  const head = match(HEAD, text, at);
  if (head === null) return call;
  call.isClosing = flags.includes("/");
  call.keepsSpace = flags.includes("#");
  const rest = at + head[0].length;
  if (head[3] !== undefined) return parseVariable(text, { ...call, name: head[4]!, rest }, head[3] === ".");
  const name = (head[1] ?? head[2]!).toLowerCase();
  // `{{///}}` ends a comment's block.
  if (name === "//" && text.startsWith("/", rest + match(SPACES, text, rest)![0].length)) call.isClosing = true;
  return { ...call, kind: "macro", name, rest };
}

function parseVariable(text: string, call: MacroCall, isLocal: boolean): MacroCall {
  const operator = match(OPERATOR, text, call.rest)?.[0];
  const rest = call.rest + (operator?.length ?? 0);
  return { ...call, kind: isLocal ? "local" : "global", operator, rest };
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function findValues({ text }: MacroText, call: MacroCall, maxValues: number): TextRange[] {
  const { end, inner } = call;
  const rest = call.rest + match(SPACES, text, call.rest)![0].length;
  if (rest >= end) return [];
  if (!text.startsWith("::", rest)) {
    const value = trimRange(text, text[rest] === ":" ? rest + 1 : rest, end, inner);
    // A colon without an argument is an empty one.
    return value.from < value.to || text[rest] === ":" ? [value] : [];
  }
  const values: TextRange[] = [];
  let from = rest + 2;
  let searched = from;
  for (const next of [...inner, undefined]) {
    // Only searches between two macros. Searching the whole text from each macro would take quadratic time.
    const until = next === undefined ? end : next.start - 2;
    const plain = text.slice(searched, until);
    for (let at = plain.indexOf("::"); at >= 0; at = plain.indexOf("::", at + 2)) {
      values.push(trimRange(text, from, searched + at, inner));
      if (values.length > maxValues) return values;
      from = searched + at + 2;
    }
    searched = next === undefined ? end : next.end + 2;
  }
  values.push(trimRange(text, from, end, inner));
  return values;
}

function trimRange(text: string, from: number, to: number, macros: readonly MacroCall[]): TextRange {
  const value = text.slice(from, to);
  const trimmed = value.trimStart();
  const start = to - trimmed.length;
  return cutRange({ from: start, to: start + trimmed.trimEnd().length, macros });
}

/** Returns a range with only those macros that start in it. */
export function cutRange({ from, to, macros }: TextRange): TextRange {
  return { from, to, macros: macros.slice(findFirstAfter(macros, from), findFirstAfter(macros, to)) };
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

/**
 * Pairs the macros of a range with the ends of their blocks. Macros inside of a block are only in the block's range.
 *
 * @param takesBlock False for a macro that has all of its arguments already. If there is an end for it, both stay as
 *   written.
 */
export function pairBlocks(macros: readonly MacroCall[], takesBlock: (call: MacroCall) => boolean): MacroItem[] {
  const { ends, free } = findEnds(macros, takesBlock);
  const items: MacroItem[] = [];
  for (let n = 0; n < macros.length; n++) {
    const call = macros[n]!;
    const end = ends.get(n);
    if (end === undefined) {
      items.push({ call, ...(hasNoPlace(call, n, free) && { isRaw: true }) });
      continue;
    }
    const closing = macros[end]!;
    const block = { from: call.end + 2, to: closing.start - 2, macros: macros.slice(n + 1, end) };
    items.push({ call, block, closing });
    n = end;
  }
  return items;
}

/** Ends without a block, by name. */
type FreeEnds = Map<string, { indexes: number[]; next: number }>;

/** Reports whether a macro is an end without a block, or takes no block although there is such an end after it. */
function hasNoPlace({ kind, name, isClosing }: MacroCall, index: number, free: FreeEnds): boolean {
  if (kind !== "macro") return false;
  if (isClosing) return true;
  const ends = free.get(name);
  if (ends === undefined) return false;
  while (ends.indexes[ends.next]! < index) ends.next++;
  return ends.next++ < ends.indexes.length;
}

/** Finds the end of each macro's block, by index, and the other ends. */
function findEnds(
  macros: readonly MacroCall[],
  takesBlock: (call: MacroCall) => boolean,
): { ends: Map<number, number>; free: FreeEnds } {
  const ends = new Map<number, number>();
  const free: FreeEnds = new Map();
  const open = new Map<string, number[]>();
  for (const [n, call] of macros.entries()) {
    const { kind, name, isClosing } = call;
    if (kind !== "macro") continue;
    if (!isClosing) {
      if (!takesBlock(call)) continue;
      const starts = open.get(name);
      if (starts === undefined) open.set(name, [n]);
      else starts.push(n);
      continue;
    }
    const start = open.get(name)?.pop();
    if (start !== undefined) ends.set(start, n);
    else {
      const others = free.get(name);
      if (others === undefined) free.set(name, { indexes: [n], next: 0 });
      else others.indexes.push(n);
    }
  }
  return { ends, free };
}
