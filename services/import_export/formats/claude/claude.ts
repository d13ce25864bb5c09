/** Reads Claude's data export: `conversations.json` with a list of messages for each conversation. */
import { asText, getOwn, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { buildTree, convertChat, type TreeNode } from "../../branching_chat.ts";
import type { ImportStep } from "../../import_item.ts";
import { changed } from "../../import_reasons.ts";
import type { ImportSource } from "../../import_source.ts";
import { readChatFiles, toIsoTime } from "../chat_files.ts";

const ROLES: Record<string, string> = { human: "user", assistant: "assistant" };

/** Yields the conversations. @throws {AppError} `unprocessable` if there are none. */
export function readClaude(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /(^|\/)conversations[-\w]*\.json$/.test(path), convertConversation);
}

function* convertConversation(chat: JsonObject, source: string): Generator<ImportStep> {
  const list = Array.isArray(chat.chat_messages) ? chat.chat_messages.filter(isJsonObject) : [];
  const nodes = buildTree(list.map((message, index) => ({
    id: asText(message.uuid) || `n${index}`,
    parentId: asText(message.parent_message_uuid) || undefined,
    message: convertMessage(message),
  })));
  const files = list.reduce((sum, { files }) => sum + (Array.isArray(files) ? files.length : 0), 0);
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
    notes: files > 0 ? [{ ...changed(source, "files_not_in_export"), count: files }] : [],
  });
}

function convertMessage(message: JsonObject): TreeNode["message"] {
  const role = getOwn(ROLES, asText(message.sender));
  const parts = Array.isArray(message.content) ? message.content.filter(isJsonObject) : [];
  const said = joinParts(parts, "text") || asText(message.text);
  const reasoning = joinParts(parts, "thinking");
  const attachments = Array.isArray(message.attachments) ? message.attachments.filter(isJsonObject) : [];
  // The export has the text of what was attached, which the reply is about.
  const texts = attachments.flatMap(({ file_name, extracted_content }) =>
    asText(extracted_content) === "" ? [] : [`${asText(file_name)}:\n\n${asText(extracted_content)}`]
  );
  const content = [said, ...texts].filter((text) => text.trim() !== "").join("\n\n");
  if (role === undefined || content === "") return;
  const created_at = toIsoTime(message.created_at);
  return { role, content, ...(reasoning !== "" && { reasoning }), ...(created_at && { created_at }) };
}

/** Joins the texts of the parts of one type; the text is in the field of the same name. */
function joinParts(parts: JsonObject[], type: "text" | "thinking"): string {
  return parts.filter((part) => part.type === type).map((part) => asText(part[type])).filter((text) => text !== "")
    .join("\n\n");
}
