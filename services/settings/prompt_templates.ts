/** Prompt templates: their form, and what may be in a list of them. */
import { isJsonObject, type JsonObject } from "../json/type_guards.ts";
import { isId } from "../storage/ids.ts";

/** A text for the composer, inserted with a slash and its name. `[[topic]]` in it is a variable. */
export interface PromptTemplate {
  name: string;
  text: string;
  /** Its button above the composer; absent if it has none. */
  button?: TemplateButton;
  /** What else its quick reply in SillyTavern had, for its export. */
  quick_reply?: QuickReplyOrigin;
}

/** A quick reply of SillyTavern and its set, with SillyTavern's names of fields. */
export interface QuickReplyOrigin {
  /** Name of the set. */
  set: string;
  /** Those of the set, without its replies. */
  set_fields: JsonObject;
  /** Those of the reply, without its text. */
  fields: JsonObject;
}

/** What a press of a button does with the text and with what is typed. `send` sends the text and keeps what is typed. */
export const BUTTON_ACTIONS = ["insert_after", "insert_before", "send", "send_after", "send_before"] as const;

/** A button above the composer. Without IDs it's in all chats, else in those chats and those with such a character. */
export interface TemplateButton {
  label: string;
  action: (typeof BUTTON_ACTIONS)[number];
  /** Characters in whose chats it is; not in groups. */
  character_ids?: string[];
  conversation_ids?: string[];
}

/** Limits of prompt templates. `totalChars` is the length of their JSON. */
export const TEMPLATE_LIMITS = {
  count: 200,
  textChars: 8_000,
  totalChars: 500_000,
  labelChars: 60,
  originChars: 8_000,
} as const;

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
  const labels = templates.flatMap(({ button }) => button === undefined ? [] : [button.label]);
  if (!labels.every((label) => label.trim() !== "" && label.length <= TEMPLATE_LIMITS.labelChars)) {
    return `the label of a button can have 1 to ${TEMPLATE_LIMITS.labelChars} characters`;
  }
  if (!templates.every(({ quick_reply: origin }) => !origin || isOriginShort(origin))) {
    return `what a quick reply had can have ${TEMPLATE_LIMITS.originChars} characters`;
  }
  const names = new Set(templates.map(({ name }) => name.toLocaleLowerCase()));
  if (names.size < templates.length) return "two templates have the same name";
  const isLong = JSON.stringify(templates).length > TEMPLATE_LIMITS.totalChars;
  return isLong ? `all templates together can have ${TEMPLATE_LIMITS.totalChars} characters` : undefined;
}

/** Reports whether what a quick reply had isn't too long to be kept. */
export function isOriginShort(origin: QuickReplyOrigin): boolean {
  return JSON.stringify(origin).length <= TEMPLATE_LIMITS.originChars;
}

/** Returns the templates that a file holds; `undefined` if the list or one of them isn't valid. */
export function parseTemplates(value: unknown): PromptTemplate[] | undefined {
  if (!Array.isArray(value) || !value.every(isTemplate)) return undefined;
  const templates = value.map(({ name, text, button, quick_reply: origin }): PromptTemplate => ({
    name,
    text,
    ...(button && { button: pickButton(button) }),
    ...(isOrigin(origin) && { quick_reply: { set: origin.set, set_fields: origin.set_fields, fields: origin.fields } }),
  }));
  return findTemplateProblem(templates) === undefined ? templates : undefined;
}

function isTemplate(value: unknown): value is PromptTemplate {
  if (!isJsonObject(value) || typeof value.name !== "string" || typeof value.text !== "string") return false;
  return value.button === undefined || isJsonObject(value.button) && isButton(value.button);
}

function isOrigin(value: unknown): value is QuickReplyOrigin {
  if (!isJsonObject(value)) return false;
  return typeof value.set === "string" && isJsonObject(value.set_fields) && isJsonObject(value.fields);
}

function isButton({ label, action, character_ids: characters, conversation_ids: chats }: JsonObject): boolean {
  const isIds = (ids: unknown) => ids === undefined || Array.isArray(ids) && ids.every((id) => isId(id));
  return typeof label === "string" && BUTTON_ACTIONS.some((one) => one === action) && isIds(characters) && isIds(chats);
}

function pickButton(
  { label, action, character_ids: characters, conversation_ids: chats }: TemplateButton,
): TemplateButton {
  return {
    ...{ label, action },
    ...(characters && { character_ids: characters }),
    ...(chats && { conversation_ids: chats }),
  };
}

/** Returns a list with the templates of another one whose names aren't in it, up to the limits. */
export function mergeTemplates(
  templates: readonly PromptTemplate[],
  others: readonly PromptTemplate[],
): PromptTemplate[] {
  const names = new Set(templates.map(({ name }) => name.toLocaleLowerCase()));
  const added = others.filter(({ name }) => !names.has(name.toLocaleLowerCase()));
  const merged = [...templates, ...added].slice(0, Math.max(templates.length, TEMPLATE_LIMITS.count));
  while (merged.length > templates.length && findTemplateProblem(merged) !== undefined) merged.pop();
  return merged;
}
