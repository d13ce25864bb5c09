/** Asks a model for a character and streams it as the model writes it. */
import { AppError } from "../../errors.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import type { ChatCall, ChatEvent, ChatMessage } from "../../llm/chat_event.ts";
import type { ModelRouter } from "../../llm/model_router.ts";
import { stripReasoning } from "../../llm/reasoning.ts";
import type { ChatStream, UpstreamTarget } from "../../llm/upstream_client.ts";
import { type CharacterFields, parseCharacterFields, TEXT_FIELDS } from "./character_fields.ts";

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
  updates(): AsyncGenerator<FieldUpdate[], { isCut: boolean }>;
  /** Cancels the upstream request. */
  cancel(): void;
}

/** Maximum reply length in characters. Longer replies are endless loops. */
const MAX_ANSWER = 120_000;
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
    throw new AppError("not_available", "The demo cannot write characters; choose a model under Settings, Connections");
  }
  const open = (isHeld: boolean) =>
    models.client.openChatStream(target, createCharacterCall(target, model, idea, isHeld), signal);
  let stream: ChatStream;
  try {
    stream = await open(target.kind === "openai");
  } catch (error) {
    if (target.kind !== "openai" || !mayRejectSchema(error)) throw error;
    stream = await open(false);
  }
  return { model, updates: () => readUpdates(stream, model), cancel: () => stream.cancel() };
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
      if (answer.length > MAX_ANSWER) {
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
  // Fields that turned out not to be fields.
  for (const field of Object.keys(before)) {
    if (!Object.hasOwn(now, field)) steps.push({ field, value: field === "tags" ? [] : "" });
  }
  return steps;
}

function noCharacter(model: string, answer: string): AppError {
  const said = stripReasoning(answer).replace(/\s+/g, " ").trim();
  const quote = said.length > MAX_QUOTE ? `${said.slice(0, MAX_QUOTE)}…` : said;
  return new AppError(
    "unprocessable",
    quote === ""
      ? `The model "${model}" only thought and wrote no character`
      : `The model "${model}" wrote no character, but: ${quote.replace(/\.$/, "")}`,
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
  const told = [
    imageUrl === undefined
      ? undefined
      : "The picture shows the character. Describe what can be seen of the character in it, and invent what fits.",
    idea.trim() === "" ? undefined : `The idea:\n${idea.trim()}`,
    language === undefined
      ? "Write in the language of the idea, the keys in English."
      : `Write in this language: ${language}. The keys stay in English.`,
  ].filter((text) => text !== undefined).join("\n\n");
  if (imageUrl === undefined) return told;
  return [{ type: "text", text: told }, { type: "image_url", image_url: { url: imageUrl } }];
}
