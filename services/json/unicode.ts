/** Unicode normalization of untrusted text. */

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
