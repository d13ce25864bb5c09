/** Reads the exports of services: ChatGPT's and Claude's `conversations.json`. */
import { asObject, asText, getOwn, isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import { createTreeMessage, listObjects, readChatFiles, toIsoTime } from "./chat_files.ts";
import type { ImportSource } from "../import_source.ts";
import type { ImportStep } from "../import_item.ts";
import { buildTree, convertChat, type TreeNode } from "../branching_chat.ts";
import { createChangedNote } from "../import_report.ts";

/** Content types of visible messages; tools, files and notes have others. */
const TEXT_TYPES = ["text", "multimodal_text", "code"];

/** Yields the conversations of ChatGPT's export: `conversations.json` with a message tree for each. */
export function readChatGpt(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /(^|\/)conversations[-\d]*\.json$/.test(path), convertChatGptConversation);
}

function* convertChatGptConversation(chat: JsonObject, source: string): Generator<ImportStep> {
  const mapping = asObject(chat.mapping);
  const key = asText(chat.conversation_id) || asText(chat.id) || `${asText(chat.title)} ${asText(chat.create_time)}`;
  const nodes = new Map(Object.entries(mapping).map(([node, value]) => [node, convertChatGptNode(node, value)]));
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
    notes: images > 0 ? [{ ...createChangedNote(source, "chatgpt_images"), count: images }] : [],
  });
}

function convertChatGptNode(id: string, value: unknown): TreeNode {
  const node = asObject(value);
  return {
    id,
    parent: asText(node.parent) || undefined,
    children: Array.isArray(node.children) ? node.children.map(asText) : [],
    message: isJsonObject(node.message) ? convertChatGptMessage(node.message) : undefined,
  };
}

function convertChatGptMessage(message: JsonObject): TreeNode["message"] {
  const author = isJsonObject(message.author) ? asText(message.author.role) : "";
  const content = asObject(message.content);
  const metadata = asObject(message.metadata);
  if (!["user", "assistant", "system"].includes(author) || !TEXT_TYPES.includes(asText(content.content_type))) return;
  // Messages to tools aren't replies.
  if (metadata.is_visually_hidden_from_conversation === true || author === "assistant" && isToTool(message)) return;
  const parts = Array.isArray(content.parts) ? content.parts.filter((part) => typeof part === "string") : [];
  const text = parts.length > 0 ? parts.join("\n\n") : asText(content.text);
  if (text.trim() === "") return;
  return createTreeMessage({
    role: author,
    content: text,
    time: message.create_time,
    model: asText(metadata.model_slug),
  });
}

function isToTool({ recipient }: JsonObject): boolean {
  return typeof recipient === "string" && recipient !== "all";
}

function countImages(mapping: JsonObject): number {
  return (JSON.stringify(mapping).match(/"content_type":"image_asset_pointer"/g) ?? []).length;
}

const ROLES: Record<string, string> = { human: "user", assistant: "assistant" };
/** The parent of a first message. */
const CLAUDE_ROOT = "00000000-0000-4000-8000-000000000000";
/** Exports without parts have this in the text for each call of a tool. */
const CLAUDE_PLACEHOLDER = /\s*```\nThis block is not supported on your current device yet\.\n```\s*/g;

/** Yields the conversations of Claude's data export: `conversations.json` with a list of messages for each. */
export function readClaude(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /(^|\/)conversations[-\w]*\.json$/.test(path), convertClaudeConversation);
}

function* convertClaudeConversation(chat: JsonObject, source: string): Generator<ImportStep> {
  const list = listObjects(chat.chat_messages);
  const nodes = buildTree(list.map((message, index) => {
    const parent = asText(message.parent_message_uuid);
    return {
      id: asText(message.uuid) || `n${index}`,
      parentId: parent === CLAUDE_ROOT ? null : parent || undefined,
      message: convertClaudeMessage(message),
    };
  }));
  const files = list.reduce((sum, { files }) => sum + (Array.isArray(files) ? files.length : 0), 0);
  const edits = list.flatMap(({ content }) => listObjects(content)).filter(isArtifactEdit).length;
  const title = asText(chat.name);
  const key = asText(chat.uuid) || `${title} ${asText(chat.created_at)}`;
  const current = asText(chat.current_leaf_message_uuid) || asText(list.at(-1)?.uuid) || undefined;
  yield* convertChat({
    program: "claude",
    key,
    source,
    title,
    nodes,
    current,
    createdAt: toIsoTime(chat.created_at),
    updatedAt: toIsoTime(chat.updated_at),
    notes: [
      ...(files > 0 ? [{ ...createChangedNote(source, "files_not_in_export"), count: files }] : []),
      ...(edits > 0 ? [{ ...createChangedNote(source, "artifact_edits"), count: edits }] : []),
    ],
  });
}

function convertClaudeMessage(message: JsonObject): TreeNode["message"] {
  const role = getOwn(ROLES, asText(message.sender));
  const parts = listObjects(message.content);
  const texts = parts.length > 0
    ? parts.map((part) => part.type === "tool_use" ? artifactText(part) : part.type === "text" ? asText(part.text) : "")
    : [asText(message.text).replace(CLAUDE_PLACEHOLDER, "\n\n").trim()];
  const reasoningParts = parts.flatMap((part) => part.type === "thinking" ? [asText(part.thinking)] : []);
  const reasoning = reasoningParts.filter((text) => text !== "").join("\n\n");
  // The export contains the text of attachments, which the reply refers to.
  const attached = listObjects(message.attachments).flatMap(({ file_name, extracted_content }) =>
    asText(extracted_content) === "" ? [] : [`${asText(file_name)}:\n\n${asText(extracted_content)}`]
  );
  const content = [...texts, ...attached].filter((text) => text.trim() !== "").join("\n\n");
  if (role === undefined || content === "") return;
  return createTreeMessage({ role, content, reasoning, time: message.created_at });
}

/** An artifact, or a file that Claude wrote, is part of the reply but in the export the input of a tool. */
function artifactText({ name, input }: JsonObject): string {
  const { title, content, path, file_text } = asObject(input);
  const [heading, text] = name === "artifacts"
    ? [asText(title), asText(content)]
    : name === "create_file"
    ? [asText(path).split("/").at(-1)!, asText(file_text)]
    : ["", ""];
  if (text.trim() === "") return "";
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  return `${heading && `**${heading}**\n\n`}${fence}\n${text}\n${fence}`;
}

/** Edits name a text to replace; only whole artifacts are imported. */
function isArtifactEdit({ type, name, input }: JsonObject): boolean {
  return type === "tool_use" && (name === "artifacts" || name === "str_replace") && "old_str" in asObject(input);
}
