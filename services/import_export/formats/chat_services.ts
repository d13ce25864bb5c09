/** Reads Claude's export: `conversations.json`. */
import { asObject, asText, getOwn, type JsonObject } from "../../json/type_guards.ts";
import { createTreeMessage, listObjects, readChatFiles, toIsoTime } from "./chat_files.ts";
import type { ImportSource } from "../import_source.ts";
import type { ImportStep } from "../import_item.ts";
import { buildTree, convertChat, type TreeNode } from "../branching_chat.ts";
import { createChangedNote } from "../import_report.ts";

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
