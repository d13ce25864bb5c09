/** Parses card fields from a model's reply: JSON or labeled paragraphs, complete or partial. */
import { stripReasoning } from "../../llm/reasoning.ts";
import { type PartialObject, readPartialObject } from "../../json/partial_json.ts";
import { isJsonObject } from "../../json/type_guards.ts";

/** Text fields, in the order of the prompt. */
export const TEXT_FIELDS = [
  ...["name", "description", "personality", "scenario", "first_mes", "mes_example", "creator_notes"] as const,
];

/** A text field of a card. */
export type TextField = (typeof TEXT_FIELDS)[number];

/** The fields parsed so far. */
export type CharacterFields = Partial<Record<TextField, string>> & { tags?: string[] };

/** Names that models use for fields. */
const NAMES: Record<string, TextField | "tags"> = {
  ...Object.fromEntries(TEXT_FIELDS.map((field) => [field, field])),
  tags: "tags",
  character_name: "name",
  char_name: "name",
  full_name: "name",
  char_persona: "description",
  character_description: "description",
  persona: "description",
  personality_summary: "personality",
  world_scenario: "scenario",
  setting: "scenario",
  first_message: "first_mes",
  greeting: "first_mes",
  char_greeting: "first_mes",
  opening_message: "first_mes",
  example_dialogue: "mes_example",
  example_dialogues: "mes_example",
  example_messages: "mes_example",
  message_example: "mes_example",
  message_examples: "mes_example",
  dialogue_examples: "mes_example",
  notes: "creator_notes",
  creators_notes: "creator_notes",
};
const MAX_TAGS = 20;
const MAX_TAG_CHARS = 60;
const MAX_NAME_CHARS = 200;

/** Parses the fields of a reply; empty for a refusal. */
export function parseCharacterFields(answer: string): CharacterFields {
  const text = stripReasoning(answer);
  const object = readPartialObject(text);
  const found = object === undefined ? {} : parseObject(object);
  return Object.keys(found).length > 0 ? found : parseLabels(text);
}

/** Cards may be nested in `data` or `character`. */
function parseObject(object: PartialObject, depth = 0): CharacterFields {
  const found: CharacterFields = {};
  for (const [key, value] of Object.entries(object)) {
    const field = findField(key);
    if (field === "tags") found.tags = toTags(value);
    else if (field !== undefined) setField(found, field, toText(value));
    else if (isJsonObject(value) && depth < 2) Object.assign(found, { ...parseObject(value, depth + 1), ...found });
  }
  return found;
}

/** Parses labeled paragraphs: `Name: Fern`, `**Description:**`, `## First message`. */
function parseLabels(text: string): CharacterFields {
  const found: CharacterFields = {};
  let current: { field: TextField | "tags"; lines: string[] } | undefined;
  const finishField = () => {
    if (current === undefined) return;
    const said = current.lines.join("\n").trim();
    if (current.field === "tags") found.tags = toTags(said);
    else setField(found, current.field, said);
  };
  for (const line of text.split(/\r?\n/)) {
    const label = parseLabel(line);
    if (label !== undefined) {
      finishField();
      current = { field: label.field, lines: [label.rest] };
    } else if (!/^\s*(?:```|[-*_]{3,}\s*$)/.test(line)) current?.lines.push(line);
  }
  finishField();
  return found;
}

function parseLabel(line: string): { field: TextField | "tags"; rest: string } | undefined {
  const withColon = /^[\s#>*_-]*([A-Za-z][A-Za-z _']{2,30}?)[\s*_]*[:：](?:\*\*|__)?\s*(.*)$/.exec(line);
  const heading = /^\s*(?:#{1,6}\s+|\*\*)([A-Za-z][A-Za-z _']{2,30}?)[\s*_#]*$/.exec(line);
  const field = findField((withColon ?? heading)?.[1] ?? "");
  return field === undefined ? undefined : { field, rest: withColon?.[2] ?? "" };
}

function findField(key: string): TextField | "tags" | undefined {
  const name = key.trim().toLowerCase().replaceAll("'", "").replace(/[\s-]+/g, "_");
  return Object.hasOwn(NAMES, name) ? NAMES[name] : undefined;
}

function setField(found: CharacterFields, field: TextField, text: string): void {
  const said = field === "name" ? parseName(text) : text;
  if (said !== "") found[field] = said;
}

function parseName(text: string): string {
  const line = text.trim().split(/\r?\n/)[0]!;
  return line.replace(/^["'“”*_\s]+|["'“”*_\s]+$/g, "").slice(0, MAX_NAME_CHARS);
}

function toText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.map(toText).filter((text) => text !== "").join("\n");
  if (!isJsonObject(value)) return "";
  return Object.entries(value).map(([key, inside]) => `${key}: ${toText(inside)}`).join("\n");
}

function toTags(value: unknown): string[] {
  const words = Array.isArray(value) ? value.map(toText) : toText(value).split(/[,、\n]/);
  const tags = words.map((word) => word.replace(/^[#\s*-]+|\s+$/g, "").slice(0, MAX_TAG_CHARS));
  return [...new Set(tags.filter((tag) => tag !== ""))].slice(0, MAX_TAGS);
}
