/**
 * Placeholders in workflows, as in SillyTavern: an input that is exactly `%name%` becomes the value with its type; inside a
 * longer text it becomes text. Values are never inserted into JSON source.
 *
 * @see docs/protocols/images.md, "Placeholders"
 */
import type { Workflow } from "./workflow_format.ts";

/** Values by name. */
export type PlaceholderValues = Record<string, string | number>;

const WHOLE = /^%([a-z][a-z0-9_]*)%$/i;
const ANYWHERE = /%([a-z][a-z0-9_]*)%/gi;

/** Lists the names of the placeholders in a workflow, sorted. */
export function listPlaceholders(workflow: Workflow): string[] {
  const names = new Set<string>();
  mapTexts(workflow, (text) => {
    for (const [, name] of text.matchAll(ANYWHERE)) names.add(name!);
    return text;
  });
  return [...names].sort();
}

/**
 * Returns a copy of a workflow with its placeholders filled.
 *
 * @returns Also the names without a value; their placeholders stay in the workflow.
 */
export function fillWorkflow(
  workflow: Workflow,
  values: PlaceholderValues,
): { workflow: Workflow; unfilled: string[] } {
  const unfilled = new Set<string>();
  const findValue = (name: string) => {
    if (Object.hasOwn(values, name)) return values[name];
    unfilled.add(name);
    return undefined;
  };
  const filled = mapTexts(workflow, (text) => {
    const whole = WHOLE.exec(text)?.[1];
    if (whole !== undefined) return findValue(whole) ?? text;
    // One pass, so that %seed% inside a prompt stays as it is.
    return text.replace(ANYWHERE, (placeholder, name: string) => String(findValue(name) ?? placeholder));
  });
  return { workflow: filled as Workflow, unfilled: [...unfilled].sort() };
}

function mapTexts(value: unknown, change: (text: string) => string | number): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, change)]));
}
