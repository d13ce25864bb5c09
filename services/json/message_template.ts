/** Message templates with parameters, so that messages can be translated. */

/** Parameters by name. */
export type TextParams = Record<string, string | number>;

/** Replaces each `{name}` with its parameter. Unknown names stay as written. */
export function fillTemplate(text: string, params: TextParams): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => String(params[name] ?? place));
}
