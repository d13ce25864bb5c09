/** Prompt templates: their form, and what may be in a list of them. */

/** A text for the composer, inserted with a slash and its name. `[[topic]]` in it is a variable. */
export interface PromptTemplate {
  name: string;
  text: string;
}

/** Limits of prompt templates. */
export const TEMPLATE_LIMITS = { count: 50, textChars: 8_000 } as const;

const TEMPLATE_NAME = /^[\p{L}\p{N}_-]{1,40}$/u;

/** Returns what is wrong with a list of prompt templates; `undefined` if nothing is. */
export function findTemplateProblem(templates: readonly PromptTemplate[]): string | undefined {
  if (templates.length > TEMPLATE_LIMITS.count) return `at most ${TEMPLATE_LIMITS.count} templates are allowed`;
  if (!templates.every(({ name }) => TEMPLATE_NAME.test(name))) {
    return "a name can have up to 40 letters, digits, - and _";
  }
  if (!templates.every(({ text }) => text !== "" && text.length <= TEMPLATE_LIMITS.textChars)) {
    return `a text can have 1 to ${TEMPLATE_LIMITS.textChars} characters`;
  }
  const names = new Set(templates.map(({ name }) => name.toLocaleLowerCase()));
  return names.size < templates.length ? "two templates have the same name" : undefined;
}

/** Returns a list with the templates of another one whose names aren't in it, up to the limit. */
export function mergeTemplates(
  templates: readonly PromptTemplate[],
  others: readonly PromptTemplate[],
): PromptTemplate[] {
  const names = new Set(templates.map(({ name }) => name.toLocaleLowerCase()));
  const added = others.filter(({ name }) => !names.has(name.toLocaleLowerCase()));
  return [...templates, ...added].slice(0, Math.max(templates.length, TEMPLATE_LIMITS.count));
}
