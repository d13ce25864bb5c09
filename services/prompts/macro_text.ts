/** Finds the macros of a text, `{{…}}` inside each other too, in one pass over it; what they mean is macros.ts's. */

/** One macro as it stands in a text. */
export interface MacroCall {
  /** In lower case: `char`, `random`; `//` for a comment. */
  name: string;
  /** Everything behind the name and its separator, as written. */
  rest: string;
  /** True where `::` stands behind the name, which then parts the values too. */
  isDoubled: boolean;
  /** All of it between the braces. */
  body: string;
}

/** A stretch of text: plain, or the body of a macro. */
type Stretch = { plain: string } | { body: string };

/**
 * Puts something in the place of each macro of a text.
 *
 * @param evaluate Gives what stands for the macro; what it gives is not looked into again.
 * @param plain What becomes of the text between the macros.
 */
export function replaceMacros(
  text: string,
  evaluate: (call: MacroCall) => string,
  plain: (text: string) => string = (unchanged) => unchanged,
): string {
  return stretchesOf(text).map((stretch) => "plain" in stretch ? plain(stretch.plain) : evaluate(callOf(stretch.body)))
    .join("");
}

/** Gives the values of a macro: `A::B`, or `A,B` where a comma behind a backslash is part of a value. */
export function valuesOf({ rest, isDoubled }: MacroCall): string[] {
  if (isDoubled) return split(rest, "::");
  return split(rest, ",").map((value) => value.replaceAll("\\,", ",").trim());
}

function callOf(body: string): MacroCall {
  if (body.trimStart().startsWith("//")) return { name: "//", rest: "", isDoubled: false, body };
  const match = /^\s*([a-z_][\w]*(?:(?<=time_utc)[+-]\d{1,2})?)\s*(::|:|\s|$)/i.exec(body);
  if (match === null) return { name: "", rest: "", isDoubled: false, body };
  const rest = body.slice(match[0].length);
  return { name: match[1]!.toLowerCase(), rest, isDoubled: match[2] === "::", body };
}

/** Parts a text into plain stretches and the outermost macros; braces without a partner are plain. */
function stretchesOf(text: string): Stretch[] {
  const ends = partnersOf(text);
  const stretches: Stretch[] = [];
  let from = 0;
  for (const [start, end] of [...ends].sort(([a], [b]) => a - b)) {
    if (start < from) continue;
    if (start > from) stretches.push({ plain: text.slice(from, start) });
    stretches.push({ body: text.slice(start + 2, end) });
    from = end + 2;
  }
  if (from < text.length) stretches.push({ plain: text.slice(from) });
  return stretches;
}

/** Gives for each opening pair of braces the place of its closing one. */
function partnersOf(text: string): Map<number, number> {
  const ends = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < text.length - 1; at++) {
    // Of three braces in a row the inner two open.
    if (text[at] === "{" && text[at + 1] === "{" && text[at + 2] !== "{") {
      open.push(at++);
    } else if (text[at] === "}" && text[at + 1] === "}") {
      const start = open.pop();
      if (start !== undefined) ends.set(start, at);
      at++;
    }
  }
  return ends;
}

/** Splits at a separator that stands in no inner macro and, for a comma, behind no backslash. */
function split(text: string, separator: string): string[] {
  const parts: string[] = [];
  let part = "";
  for (const stretch of stretchesOf(text)) {
    if ("body" in stretch) {
      part += `{{${stretch.body}}}`;
      continue;
    }
    const [first = "", ...rest] = separator === "," ? stretch.plain.split(/(?<!\\),/) : stretch.plain.split(separator);
    part += first;
    for (const next of rest) {
      parts.push(part);
      part = next;
    }
  }
  return [...parts, part];
}
