/** The owner's prompt templates: texts that a slash and their name put into the composer. */
import type { PromptTemplate } from "../../api/types.ts";

/** What the server accepts as a name. */
export const TEMPLATE_NAME = /^[\p{L}\p{N}_-]{1,40}$/u;

/** A variable: `[[topic]]`. Names of one line, without brackets. */
const VARIABLE = /\[\[([^[\]\n]{1,60})\]\]/g;

/** Returns the templates whose names start with the word after the `/`, while the text is nothing else. */
export function templatesFor(text: string, templates: readonly PromptTemplate[]): PromptTemplate[] {
  const typed = /^\/([\p{L}\p{N}_-]*)$/u.exec(text)?.[1]?.toLocaleLowerCase();
  if (typed === undefined) return [];
  return templates.filter(({ name }) => name.toLocaleLowerCase().startsWith(typed));
}

const SNIPPET_CHARS = 100;

/** Returns the first line of a template, shortened. */
export function toTemplateSnippet(text: string): string {
  const [line = ""] = text.trim().split("\n", 1);
  const chars = [...line];
  return chars.length > SNIPPET_CHARS ? `${chars.slice(0, SNIPPET_CHARS).join("")}…` : line;
}

/** Lists the variables of a template, each once, in the order of the text. */
export function listVariables(text: string): string[] {
  return [...new Set([...text.matchAll(VARIABLE)].map(([, name]) => name!.trim()).filter((name) => name !== ""))];
}

/** Replaces the variables. Those without a value stay as they are. */
export function fillVariables(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(VARIABLE, (whole, name: string) => {
    const key = name.trim();
    return Object.hasOwn(values, key) && values[key] !== "" ? values[key]! : whole;
  });
}
