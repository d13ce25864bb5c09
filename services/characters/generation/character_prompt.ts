/** The prompt that asks a model for a character. */
import type { ChatCall, ChatMessage } from "../../llm/chat_event.ts";
import type { UpstreamTarget } from "../../llm/upstream_client.ts";
import { TEXT_FIELDS } from "./character_fields.ts";

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
export function createCharacterCall(
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
