/** Sentences with places in them, so that other languages can say the same. */

/** What stands in the places of a sentence, by their names. */
export type TextParams = Record<string, string | number>;

/** Fills `{name}`; a place that nothing is known of stays as it is. */
export function filledText(text: string, params: TextParams): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => String(params[name] ?? place));
}
