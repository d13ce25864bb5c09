/** Turns a tool's result into parts that the reply loop stores and sends to the model. */
import { Buffer } from "node:buffer";
import type { ToolOutput, ToolOutputPart } from "../tools/tool_registry.ts";

/** One item of a result, as MCP has it. */
type ContentItem =
  | { type: "text"; text: string }
  | { type: "image"; data: string; mimeType: string }
  | { type: "audio"; data: string; mimeType: string }
  | { type: "resource_link"; uri: string; name?: string }
  | { type: "resource"; resource: { uri: string; mimeType?: string; text?: string; blob?: string } };

/** The result of `tools/call`. */
export interface ResultContent {
  content: ContentItem[];
  structuredContent?: unknown;
  isError?: boolean;
}

/**
 * Converts a result.
 *
 * A result that only has structured content becomes its JSON. The bytes of embedded resources that aren't text are left out:
 * their links stay.
 *
 * @param maxBytes Limit for all parts together. Text beyond it is cut; images and recordings beyond it are dropped.
 * @param mask Removes secrets from each text, before it is cut.
 */
export function toToolOutput(result: ResultContent, maxBytes: number, mask = (text: string) => text): ToolOutput {
  let leftBytes = maxBytes;
  let truncated = false;
  const parts: ToolOutputPart[] = [];
  const addText = (original: string) => {
    const text = mask(original);
    const cut = cutText(text, leftBytes);
    truncated ||= cut.length < text.length;
    leftBytes -= Buffer.byteLength(cut);
    if (cut !== "" || text === "") parts.push({ type: "text", text: cut });
  };
  const addMedia = (type: "image" | "audio", base64: string, contentType: string) => {
    if (base64.length * 3 / 4 > leftBytes) {
      truncated = true;
      return;
    }
    const data = new Uint8Array(Buffer.from(base64, "base64"));
    leftBytes -= data.length;
    parts.push({ type, data, contentType });
  };
  const addLink = (uri: string, name?: string) => {
    parts.push({ type: "link", uri: mask(uri).slice(0, 2_000), ...(name !== undefined && { name: mask(name) }) });
  };
  for (const item of result.content) {
    if (item.type === "text") addText(item.text);
    else if (item.type === "image" || item.type === "audio") addMedia(item.type, item.data, item.mimeType);
    else if (item.type === "resource_link") addLink(item.uri, item.name);
    else if (item.resource.text !== undefined) addText(item.resource.text);
    else if (item.resource.blob !== undefined && item.resource.mimeType?.startsWith("image/")) {
      addMedia("image", item.resource.blob, item.resource.mimeType);
    } else addLink(item.resource.uri);
  }
  if (result.content.length === 0 && result.structuredContent !== undefined) {
    addText(JSON.stringify(result.structuredContent));
  }
  return { parts, isError: result.isError === true, truncated };
}

/** Cuts a text to a number of UTF-8 bytes, between characters. */
function cutText(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = new Uint8Array(Math.max(0, maxBytes));
  const { read } = new TextEncoder().encodeInto(text, bytes);
  return text.slice(0, read);
}
