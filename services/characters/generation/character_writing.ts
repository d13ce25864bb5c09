/** Asks a model for a character and streams it as the model writes it. */
import { stripReasoning } from "../../llm/reasoning.ts";
import { type PartialObject, readPartialObject } from "../../json/partial_json.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import { AppError } from "../../errors.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import type { ChatCall, ChatEvent, ChatMessage } from "../../llm/chat_event.ts";
import type { ModelRouter } from "../../llm/model_router.ts";
import type { ChatStream, UpstreamTarget } from "../../llm/upstream_client.ts";

/** Text fields, in the order of the prompt. */
const TEXT_FIELDS = [
  ...["name", "description", "personality", "scenario", "first_mes", "mes_example", "creator_notes"] as const,
];

/** A text field of a card. */
type TextField = (typeof TEXT_FIELDS)[number];

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

/** Parses the fields of a reply, complete or partial: JSON or labeled paragraphs. Empty for a refusal. */
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
    const value = current.lines.join("\n").trim();
    if (current.field === "tags") found.tags = toTags(value);
    else setField(found, current.field, value);
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
  const value = field === "name" ? parseName(text) : text;
  if (value !== "") found[field] = value;
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
  const names = Array.isArray(value) ? value.map(toText) : toText(value).split(/[,、\n]/);
  const tags = names.map((word) => word.replace(/^[#\s*-]+|\s+$/g, "").slice(0, MAX_TAG_CHARS));
  return [...new Set(tags.filter((tag) => tag !== ""))].slice(0, MAX_TAGS);
}

/** How a field changes: appended text, or a new value. */
export type FieldUpdate = { field: string; append: string } | { field: string; value: string | string[] };

/** A model's reply in progress. */
export interface CharacterStream {
  model: string;
  /**
   * Yields updates with each chunk of the reply; none while the model reasons.
   *
   * @returns Whether the output was cut off.
   * @throws {AppError} `unprocessable` if the reply contains no character; errors of an interrupted chat reply
   */
  streamUpdates(): AsyncGenerator<FieldUpdate[], { isCut: boolean }>;
  /** Cancels the upstream request. */
  cancel(): void;
}

/** Maximum reply length in characters. Longer replies are endless loops. */
const MAX_REPLY_CHARS = 120_000;
/** Maximum length of the quote in an error message. */
const MAX_QUOTE = 400;

/**
 * Asks the active connection.
 *
 * @throws {AppError} `not_available` without a connection or with only the demo; errors of a chat before its first byte
 */
export async function openCharacterStream(
  models: ModelRouter,
  idea: CharacterIdea,
  signal: AbortSignal,
): Promise<CharacterStream> {
  const { target, model } = await models.route({}, signal);
  if (target.kind === "demo") {
    throw new AppError(
      "not_available",
      "The demo model can't write characters. Choose another model in Settings > Connections",
    );
  }
  const open = (hasSchema: boolean) =>
    models.client.openChatStream(target, createCharacterCall(target, model, idea, hasSchema), signal);
  let stream: ChatStream;
  try {
    stream = await open(target.kind === "openai");
  } catch (error) {
    if (target.kind !== "openai" || !mayRejectSchema(error)) throw error;
    stream = await open(false);
  }
  return { model, streamUpdates: () => readUpdates(stream, model), cancel: () => stream.cancel() };
}

/** Servers without support for `response_format`, or for this schema, reject the whole call with various messages. */
function mayRejectSchema(error: unknown): boolean {
  if (!(error instanceof UpstreamError) || error.kind !== "failed") return false;
  return error.status !== undefined && error.status >= 400;
}

async function* readUpdates(stream: ChatStream, model: string): AsyncGenerator<FieldUpdate[], { isCut: boolean }> {
  let answer = "";
  let isCut = false;
  let known: CharacterFields = {};
  try {
    for await (const batch of stream.batches()) {
      const text = joinText(batch);
      isCut ||= batch.some((event) => event.type === "finish" && event.reason === "length");
      if (text === "") {
        yield [];
        continue;
      }
      answer += text;
      const now = parseCharacterFields(answer);
      yield diffFields(known, now);
      known = now;
      if (answer.length > MAX_REPLY_CHARS) {
        isCut = true;
        break;
      }
    }
  } finally {
    stream.cancel();
  }
  if (Object.keys(known).length === 0) throw noCharacter(model, answer);
  return { isCut };
}

function joinText(batch: readonly ChatEvent[]): string {
  return batch.map((event) => event.type === "text" ? event.text : "").join("");
}

function diffFields(before: CharacterFields, now: CharacterFields): FieldUpdate[] {
  const steps: FieldUpdate[] = [];
  for (const [field, value] of Object.entries(now)) {
    const old = before[field as keyof CharacterFields];
    if (Array.isArray(value)) {
      if (value.join("\0") !== (old as string[] | undefined)?.join("\0")) steps.push({ field, value });
    } else if (typeof old === "string" && value.startsWith(old)) {
      if (value.length > old.length) steps.push({ field, append: value.slice(old.length) });
    } else steps.push({ field, value });
  }
  // Removes keys that turned out not to be fields.
  for (const field of Object.keys(before)) {
    if (!Object.hasOwn(now, field)) steps.push({ field, value: field === "tags" ? [] : "" });
  }
  return steps;
}

function noCharacter(model: string, answer: string): AppError {
  const reply = stripReasoning(answer).replace(/\s+/g, " ").trim();
  const quote = reply.length > MAX_QUOTE ? `${reply.slice(0, MAX_QUOTE)}…` : reply;
  return new AppError(
    "unprocessable",
    quote === ""
      ? `The model "${model}" only reasoned and wrote no character`
      : `The model "${model}" didn't write a character. Its reply: ${quote.replace(/\.$/, "")}`,
  );
}

/** Source of a character; `idea` or `imageUrl` must be set. */
export interface CharacterIdea {
  idea: string;
  /** The image as a data URL. */
  imageUrl?: string;
  /** Name of the language in that language; by default the language of the idea. */
  language?: string;
}

const INSTRUCTION =
  `You invent characters for role play and write them down as character cards. Answer with one JSON object and nothing \
else, its keys in this order:
- "name": the name alone.
- "description": who the character is: looks, past, habits, skills, what they want and what they fear. Three to five \
paragraphs, concrete and without clichés.
- "personality": the character's traits in one or two sentences.
- "scenario": where {{char}} and {{user}} meet and why, in two or three sentences.
- "first_mes": the message with which {{char}} begins the chat: actions between asterisks, speech in quotation marks, and \
something for {{user}} to answer. It never speaks or acts for {{user}}.
- "mes_example": two short exchanges that show how {{char}} talks. Each begins with a line <START>, its lines with \
{{user}}: or {{char}}:.
- "creator_notes": one sentence for somebody who looks for a character to talk to.
- "tags": three to six short tags.
Write {{char}} for the character's name and {{user}} for the other person, but the name itself under "name".`;

/** Enough for a long card and for reasoning before it. */
const MAX_TOKENS = 6_000;

/** JSON schema of the reply, for servers that enforce one. */
const RESPONSE_FORMAT = {
  type: "json_schema",
  json_schema: {
    name: "character",
    strict: true,
    schema: {
      type: "object",
      properties: {
        ...Object.fromEntries(TEXT_FIELDS.map((field) => [field, { type: "string" }])),
        tags: { type: "array", items: { type: "string" } },
      },
      required: [...TEXT_FIELDS, "tags"],
      additionalProperties: false,
    },
  },
};

/** Creates the model call. @param usesSchema Whether to ask the server to enforce the schema. */
function createCharacterCall(
  target: UpstreamTarget,
  model: string,
  idea: CharacterIdea,
  usesSchema: boolean,
): ChatCall {
  const half = target.contextSize === undefined ? MAX_TOKENS : Math.max(1, Math.floor(target.contextSize / 2));
  return {
    model,
    messages: [{ role: "system", content: INSTRUCTION }, { role: "user", content: toContent(idea) }],
    params: { max_tokens: Math.min(MAX_TOKENS, half), ...(usesSchema && { response_format: RESPONSE_FORMAT }) },
  };
}

function toContent({ idea, imageUrl, language }: CharacterIdea): ChatMessage["content"] {
  const prompt = [
    imageUrl === undefined
      ? undefined
      : "The picture shows the character. Describe what can be seen of the character in it, and invent what fits.",
    idea.trim() === "" ? undefined : `The idea:\n${idea.trim()}`,
    language === undefined
      ? "Write in the language of the idea, the keys in English."
      : `Write in this language: ${language}. The keys stay in English.`,
  ].filter((part) => part !== undefined).join("\n\n");
  if (imageUrl === undefined) return prompt;
  return [{ type: "text", text: prompt }, { type: "image_url", image_url: { url: imageUrl } }];
}
