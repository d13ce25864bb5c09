/** Reads ChatGPT's export: `conversations.json` with a message tree for each conversation. */
import { asObject, asText, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { readChatFiles, toIsoTime } from "../chat_files.ts";
import type { ImportSource } from "../../import_source.ts";
import type { ImportStep } from "../../import_item.ts";
import { convertChat, type TreeNode } from "../../branching_chat.ts";
import { changed } from "../../import_reasons.ts";

/** Content types of visible messages; tools, files and notes have others. */
const SPOKEN = ["text", "multimodal_text", "code"];

/** Yields the conversations. @throws {AppError} `unprocessable` if there are none. */
export function readChatGpt(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /(^|\/)conversations[-\d]*\.json$/.test(path), convertConversation);
}

function* convertConversation(chat: JsonObject, source: string): Generator<ImportStep> {
  const mapping = asObject(chat.mapping);
  const key = asText(chat.conversation_id) || asText(chat.id) || `${asText(chat.title)} ${asText(chat.create_time)}`;
  const nodes = new Map(Object.entries(mapping).map(([node, value]) => [node, convertNode(node, value)]));
  const images = countImages(mapping);
  yield* convertChat({
    program: "chatgpt",
    key,
    source,
    title: asText(chat.title),
    nodes,
    current: asText(chat.current_node),
    createdAt: toIsoTime(chat.create_time),
    updatedAt: toIsoTime(chat.update_time),
    notes: images > 0 ? [{ ...changed(source, "chatgpt_images"), count: images }] : [],
  });
}

function convertNode(id: string, value: unknown): TreeNode {
  const node = asObject(value);
  return {
    id,
    parent: asText(node.parent) || undefined,
    children: Array.isArray(node.children) ? node.children.map(asText) : [],
    message: isJsonObject(node.message) ? convertMessage(node.message) : undefined,
  };
}

function convertMessage(message: JsonObject): TreeNode["message"] {
  const author = isJsonObject(message.author) ? asText(message.author.role) : "";
  const content = asObject(message.content);
  const metadata = asObject(message.metadata);
  if (!["user", "assistant", "system"].includes(author) || !SPOKEN.includes(asText(content.content_type))) return;
  // Messages to tools aren't replies.
  if (metadata.is_visually_hidden_from_conversation === true || author === "assistant" && isToTool(message)) return;
  const parts = Array.isArray(content.parts) ? content.parts.filter((part) => typeof part === "string") : [];
  const text = parts.length > 0 ? parts.join("\n\n") : asText(content.text);
  const created_at = toIsoTime(message.create_time);
  const model = asText(metadata.model_slug);
  if (text.trim() === "") return;
  return { role: author, content: text, ...(created_at && { created_at }), ...(model !== "" && { model }) };
}

function isToTool({ recipient }: JsonObject): boolean {
  return typeof recipient === "string" && recipient !== "all";
}

function countImages(mapping: JsonObject): number {
  return (JSON.stringify(mapping).match(/"content_type":"image_asset_pointer"/g) ?? []).length;
}
