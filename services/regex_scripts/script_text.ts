/** Runs one regex script on one text. Used by the child process. */

/** A script with expanded macros in its pattern and trim strings. */
export interface PreparedScript {
  find: string;
  replace: string;
  trim: string[];
}

/** Text between what was found, and the replacements, in turn: text, replacement, text, …, text. */
export type ReplacedPieces = string[];

/** Maximum length of a changed text. */
const MAX_CHARS = 1_000_000;

/** Flags that end a pattern; with others, the slashes belong to the pattern. Some of them are invalid in JavaScript. */
const KNOWN_FLAGS = /^(?!.*(.).*\1)[gmixXsuUAJ]+$/;

/** Thrown if the replacements of a script make a text too long. */
export class TooLongError extends Error {}

/**
 * Compiles a pattern as SillyTavern does: `/pattern/flags`, or all of it without flags.
 *
 * @returns `undefined` if it's invalid
 */
export function compileFind(find: string): RegExp | undefined {
  try {
    const [, source = "", flags = ""] = /^\/([\s\S]+)\/([a-z]*)/i.exec(find) ?? [];
    const isWhole = source === "" || (flags !== "" && !KNOWN_FLAGS.test(flags));
    return isWhole ? new RegExp(find) : new RegExp(source, flags);
  } catch {
    return undefined;
  }
}

/** Replaces what a pattern finds. @returns `undefined` if it finds nothing. @throws {TooLongError} */
export function replaceMatches(
  text: string,
  pattern: RegExp,
  { replace, trim }: PreparedScript,
): ReplacedPieces | undefined {
  const pieces: string[] = [];
  const template = replace.replace(/\{\{match\}\}/gi, "$0");
  let at = 0;
  let chars = text.length;
  text.replace(pattern, (...found: unknown[]) => {
    const last = found.at(-1);
    const groups = typeof last === "object" && last !== null ? last as Record<string, string | undefined> : undefined;
    const offset = found.at(groups === undefined ? -2 : -3) as number;
    const whole = found[0] as string;
    const captured = found.slice(0, groups === undefined ? -2 : -3) as (string | undefined)[];
    const replaced = template.replace(/\$(\d+)|\$<([^>]+)>/g, (_, number?: string, name?: string) => {
      const value = number === undefined ? groups?.[name!] : captured[Number(number)];
      return typeof value === "string" ? removeTexts(value, trim) : "";
    });
    chars += replaced.length;
    if (chars > MAX_CHARS) throw new TooLongError();
    pieces.push(text.slice(at, offset), replaced);
    at = offset + whole.length;
    return "";
  });
  return pieces.length === 0 ? undefined : [...pieces, text.slice(at)];
}

function removeTexts(text: string, removed: readonly string[]): string {
  return removed.reduce((left, each) => each === "" ? left : left.replaceAll(each, ""), text);
}
