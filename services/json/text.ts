/** Texts: Unicode normalization of untrusted ones, and templates of messages. */

/** More combining marks in a row than any script uses. Two of them are letters until they are folded. */
const MANY_MARKS = /[\p{M}\uFF9E\uFF9F]{31}/u;

/**
 * Normalizes a text.
 *
 * A text with more than 30 combining marks in a row is returned unchanged: sorting the marks takes quadratic time, 12 s
 * for 100,000.
 *
 * @see https://www.unicode.org/reports/tr15/#Stream_Safe_Text_Format
 */
export function normalized(text: string, form: "NFC" | "NFKC" | "NFKD"): string {
  return MANY_MARKS.test(text) ? text : text.normalize(form);
}

// Message templates with parameters, so that messages can be translated.

/** Parameters by name. */
export type TextParams = Record<string, string | number>;

/** Replaces each `{name}` with its parameter. Unknown names stay as written. */
export function fillTemplate(text: string, params: TextParams): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => String(params[name] ?? place));
}
