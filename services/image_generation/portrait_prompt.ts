/** What a model is asked to make of a card, and what of its answer is a prompt for a picture. */
import type { Card } from "../characters/card/card.ts";

/** Messages in OpenAI's form. */
export type PortraitQuestion = { role: string; content: string }[];

const INSTRUCTION =
  "You write prompts for an image generator. Below is the description of a fictional character. Write one prompt for a " +
  "portrait of this character: what can be seen, as short phrases separated by commas, in English, at most 60 words. Begin " +
  "with the kind of person or creature, then face, hair, eyes, clothes, mood, place. Only what is visible: no name, no " +
  "story, no explanation, no quotation marks. Answer with the prompt alone.";
/** Of each field; what a character looks like stands at the begin of a card, and small models have small contexts. */
const MAX_FIELD = 3_000;
const MAX_PROMPT = 1_000;
const FRAMING = "portrait, upper body, looking at viewer, detailed";

/** Makes the question. */
export function portraitQuestion({ data }: Card): PortraitQuestion {
  const fields = [
    ["Name", data.name],
    ["Description", data.description],
    ["Personality", data.personality],
    ["Scenario", data.scenario],
  ] as const;
  const described = fields.map(([label, text]) => [label, named(text, data.name).slice(0, MAX_FIELD).trim()])
    .filter(([, text]) => text !== "")
    .map(([label, text]) => `${label}: ${text}`);
  return [{ role: "system", content: INSTRUCTION }, { role: "user", content: described.join("\n\n") }];
}

/** Makes the prompt of the model's answer, or of the card itself where no model was asked. */
export function portraitPrompt({ data }: Card, answer: string | undefined): string {
  const text = answer === undefined ? named(data.description, data.name) || data.name : promptIn(answer);
  return `${text.replace(/\s+/g, " ").trim().slice(0, MAX_PROMPT)}, ${FRAMING}`;
}

/** Some models say what they do before they do it, or put the prompt into marks. */
function promptIn(answer: string): string {
  const lines = answer.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== "" && !line.endsWith(":"));
  const text = lines.join(" ").replace(/^(?:[*_#\s]*(?:image\s+)?prompt[*_\s]*:[*_\s]*)/i, "");
  return text.replace(/^["'`“”„*\s]+|["'`“”„*\s]+$/g, "") || answer;
}

function named(text: string, name: string): string {
  return text.replaceAll(/\{\{char\}\}/gi, name).replaceAll(/\{\{user\}\}/gi, "the user");
}
