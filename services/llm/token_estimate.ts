/** Estimates tokens without a tokenizer. */
import type { ChatCall, ChatMessage } from "./chat_event.ts";

/** Tokens that a chat template adds per message. */
export const MESSAGE_TOKENS = 4;
/** Tokens of an image: between 85 (OpenAI, low detail) and about 1,600 (Anthropic, full size). */
export const IMAGE_TOKENS = 768;

/** About four characters of alphabetic text make one token. */
const TOKENS_PER_CHAR = 0.25;
/** In scripts without spaces, nearly every character is a token. */
const TOKENS_PER_WIDE_CHAR = 0.85;
/** Han, kana and Hangul start here. Everything above, including emoji, counts the same. */
const FIRST_WIDE = 0x2e80;
const HAS_WIDE = /[\u2e80-\uffff]/;

/** Returns the text of a message and its number of images. */
export function splitContent({ content }: ChatMessage): { text: string; images: number } {
  if (typeof content === "string") return { text: content, images: 0 };
  if (content === null) return { text: "", images: 0 };
  const texts = content.flatMap((part) => typeof part.text === "string" ? [part.text] : []);
  const images = content.filter((part) => part.type === "image_url" || part.type === "image").length;
  return { text: texts.join("\n"), images };
}

/** Returns everything of a message that is counted: its text, and its calls of tools. */
export function toCountedText(message: ChatMessage): { text: string; images: number } {
  const { text, images } = splitContent(message);
  const { tool_calls: calls } = message;
  return calls === undefined ? { text, images } : { text: `${text}\n${JSON.stringify(calls)}`, images };
}

/** Estimates the tokens of a text for an average tokenizer. */
export function estimateTokens(text: string): number {
  let wide = 0;
  if (HAS_WIDE.test(text)) {
    for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= FIRST_WIDE) wide++;
  }
  return (text.length - wide) * TOKENS_PER_CHAR + wide * TOKENS_PER_WIDE_CHAR;
}

/** Estimates the tokens of a whole call: messages, images and definitions of tools. */
export function estimateCallTokens({ messages, params }: ChatCall): number {
  let tokens = params.tools === undefined ? 0 : estimateTokens(JSON.stringify(params.tools));
  for (const message of messages) {
    const { text, images } = splitContent(message);
    const calls = message.tool_calls === undefined ? "" : JSON.stringify(message.tool_calls);
    tokens += MESSAGE_TOKENS + estimateTokens(text) + estimateTokens(calls) + images * IMAGE_TOKENS;
  }
  return Math.ceil(tokens);
}
