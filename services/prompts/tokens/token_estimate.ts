/** How many tokens a message has, as far as that can be told without its model's tokeniser. */
import type { ChatMessage } from "../../llm/chat_event.ts";

/** Tokens a chat template puts around each message: role and marks. */
export const MESSAGE_TOKENS = 4;
/** What an image costs: between 85 (OpenAI, low detail) and some 1,600 (Anthropic, full size). */
export const IMAGE_TOKENS = 768;

/** A token of running text in an alphabet has about four characters. */
const TOKENS_PER_CHAR = 0.25;
/** Of scripts without word gaps nearly every character is one. */
const TOKENS_PER_WIDE_CHAR = 0.85;
/** The first character of Han, kana and Hangul; what lies beyond, emoji included, is counted alike. */
const FIRST_WIDE = 0x2e80;
const HAS_WIDE = /[\u2e80-\uffff]/;

/** Gives the text of a message that its tokens are counted of, and the number of its images. */
export function countedParts({ content }: ChatMessage): { text: string; images: number } {
  if (typeof content === "string") return { text: content, images: 0 };
  const texts = content.flatMap((part) => typeof part.text === "string" ? [part.text] : []);
  const images = content.filter((part) => part.type === "image_url" || part.type === "image").length;
  return { text: texts.join("\n"), images };
}

/** Gives the tokens of a text as a model of no particular kind would have them. */
export function estimateTokens(text: string): number {
  let wide = 0;
  if (HAS_WIDE.test(text)) {
    for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= FIRST_WIDE) wide++;
  }
  return (text.length - wide) * TOKENS_PER_CHAR + wide * TOKENS_PER_WIDE_CHAR;
}
