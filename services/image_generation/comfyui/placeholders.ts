/**
 * Placeholders in workflows, as in SillyTavern (docs/protocols/images.md#placeholders). A value that is exactly `%name%`
 * becomes a typed value; inside longer text it becomes text. Text is never inserted into JSON source.
 */
import type { Workflow } from "./workflow_format.ts";

/** Values by name. */
export type PlaceholderValues = Record<string, string | number>;

const WHOLE = /^%([a-z][a-z0-9_]*)%$/i;
const ANYWHERE = /%([a-z][a-z0-9_]*)%/gi;

/** Lists the names that a workflow has places for, sorted. */
export function placeholdersIn(workflow: Workflow): string[] {
  const names = new Set<string>();
  eachText(workflow, (text) => {
    for (const [, name] of text.matchAll(ANYWHERE)) names.add(name!);
    return text;
  });
  return [...names].sort();
}

/**
 * Gives a copy of a workflow with its places filled.
 *
 * @returns With the names that no value was given for, which stay as they are.
 */
export function fillWorkflow(workflow: Workflow, values: PlaceholderValues): { workflow: Workflow; left: string[] } {
  const left = new Set<string>();
  const valueOf = (name: string) => {
    if (Object.hasOwn(values, name)) return values[name];
    left.add(name);
    return undefined;
  };
  const filled = eachText(workflow, (text) => {
    const whole = WHOLE.exec(text)?.[1];
    if (whole !== undefined) return valueOf(whole) ?? text;
    // One pass: a prompt that talks of %seed% is not filled again.
    return text.replace(ANYWHERE, (place, name: string) => String(valueOf(name) ?? place));
  });
  return { workflow: filled as Workflow, left: [...left].sort() };
}

function eachText(value: unknown, change: (text: string) => string | number): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => eachText(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, eachText(item, change)]));
}
