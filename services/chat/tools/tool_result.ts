/** Turns what a tool answered into what a model sees of it. */
import { Buffer } from "node:buffer";
import type { MessageContent } from "../../conversations/message.ts";
import type { ToolOutput, ToolOutputPart } from "../../tools/tool_source.ts";

/** A result, as it is stored. */
export interface ToolResult {
  /** What the model sees: text, or parts if there are images. */
  content: MessageContent;
  /** The text of `content`. */
  text: string;
  /** The whole text, if the model sees less. */
  fullText?: string;
}

/** Most bytes of a result's text that a model sees, and that are stored. */
export const MAX_SEEN_BYTES = 64 * 1024;
export const MAX_STORED_BYTES = 1024 * 1024;

const CUT = "\n[The result was longer. The rest was cut.]";

/** Creates the result of a call that ended without an answer of the tool. */
export function toNotice(text: string): ToolResult {
  return { content: text, text };
}

/**
 * Converts the answer of a tool. Images become parts with data URLs, which the caller stores. Sounds are named, links aren't
 * fetched.
 *
 * @param maxBytes Most bytes of text that the model sees.
 */
export function toToolResult({ parts, truncated }: ToolOutput, maxBytes: number): ToolResult {
  const whole = parts.map(toText).filter((text) => text !== "").join("\n");
  const stored = cutToBytes(whole, MAX_STORED_BYTES);
  const limit = Math.min(maxBytes, MAX_SEEN_BYTES) - CUT.length;
  const seen = cutToBytes(stored, limit);
  const isCut = truncated || seen !== whole;
  const images = parts.flatMap(toImagePart);
  const text = (seen === "" && images.length === 0 ? "(The tool returned nothing.)" : seen) + (isCut ? CUT : "");
  return {
    content: images.length === 0 ? text : [{ type: "text", text }, ...images],
    text,
    ...(seen !== stored && { fullText: stored }),
  };
}

function toText(part: ToolOutputPart): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "link":
      return `[link: ${part.name === undefined ? "" : `${part.name} `}${part.uri}]`;
    case "audio":
      return `[audio, ${part.contentType}, not shown]`;
    case "image":
      return "";
  }
}

function toImagePart(part: ToolOutputPart): { type: string; [field: string]: unknown }[] {
  if (part.type !== "image") return [];
  const url = `data:${part.contentType};base64,${Buffer.from(part.data).toString("base64")}`;
  return [{ type: "image_url", image_url: { url } }];
}

/** Cuts a text to a number of bytes in UTF-8, between characters. */
function cutToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes), { stream: true });
}
