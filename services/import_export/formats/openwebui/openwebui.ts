/** Reads Open WebUI's chat export: a list with a message tree for each chat. */
import { asObject, asText, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { readChatFiles, toIsoTime } from "../chat_files.ts";
import type { ImportSource } from "../../import_source.ts";
import type { ImportStep } from "../../import_item.ts";
import { convertChat, type TreeNode } from "../../branching_chat.ts";

/** The text contains the reasoning in a details element. */
const REASONING_START = /^\s*<details type="reasoning"[^>]*>\s*(?:<summary>[^<]*<\/summary>)?/;
const REASONING_END = "</details>";

/** Yields the chats. @throws {AppError} `unprocessable` if there are none. */
export function readOpenWebUi(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /\.json$/i.test(path), convertConversation);
}

function* convertConversation(record: JsonObject, source: string): Generator<ImportStep> {
  const chat = isJsonObject(record.chat) ? record.chat : record;
  const history = asObject(chat.history);
  const tree = isJsonObject(history.messages) ? history.messages : listed(chat.messages);
  const title = asText(record.title) || asText(chat.title);
  const key = asText(record.id) || asText(chat.id) || `${title} ${asText(chat.timestamp)}`;
  const nodes = new Map(Object.entries(tree).map(([node, value]) => [node, convertNode(node, value)]));
  const system = asText(chat.system) || (isJsonObject(chat.params) ? asText(chat.params.system) : "");
  yield* convertChat({
    program: "openwebui",
    key,
    source,
    title,
    nodes,
    current: asText(history.currentId),
    system,
    createdAt: toIsoTime(record.created_at ?? chat.timestamp),
    updatedAt: toIsoTime(record.updated_at ?? chat.timestamp),
  });
}

/** Old chats have no tree: each message follows the previous one. */
function listed(messages: unknown): JsonObject {
  const list = Array.isArray(messages) ? messages.filter(isJsonObject) : [];
  return Object.fromEntries(list.map((message, index) => [
    `n${index}`,
    {
      ...message,
      parentId: index === 0 ? null : `n${index - 1}`,
      childrenIds: list[index + 1] ? [`n${index + 1}`] : [],
    },
  ]));
}

function convertNode(id: string, value: unknown): TreeNode {
  const node = asObject(value);
  return {
    id,
    parent: asText(node.parentId) || undefined,
    children: Array.isArray(node.childrenIds) ? node.childrenIds.map(asText) : [],
    message: convertMessage(node),
  };
}

function convertMessage(node: JsonObject): TreeNode["message"] {
  const role = asText(node.role);
  if (!["user", "assistant", "system"].includes(role)) return;
  const said = asText(node.content);
  const { reasoning, text } = role === "assistant" ? splitReasoning(said) : { text: said };
  const files = Array.isArray(node.files) ? node.files.filter(isJsonObject) : [];
  const images = files.filter(({ type, url }) => type === "image" && asText(url).startsWith("data:image/"));
  const created_at = toIsoTime(node.timestamp);
  const model = asText(node.model);
  return {
    role,
    content: images.length === 0 ? text : [
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...images.map(({ url }) => ({ type: "image_url", image_url: { url: asText(url) } })),
    ],
    ...(reasoning !== undefined && { reasoning: unquoted(reasoning) }),
    ...(created_at && { created_at }),
    ...(model !== "" && { model }),
  };
}

/** Searches for the end as text: one pattern for everything takes quadratic time on white space without an end. */
function splitReasoning(said: string): { reasoning?: string; text: string } {
  const start = REASONING_START.exec(said)?.[0].length;
  const end = start === undefined ? -1 : said.indexOf(REASONING_END, start);
  if (end < 0) return { text: said };
  return { reasoning: said.slice(start, end), text: said.slice(end + REASONING_END.length).trimStart() };
}

/** The reasoning is written as a block quote. */
function unquoted(text: string): string {
  return text.trim().split("\n").map((line) => line.replace(/^(&gt;|>) ?/, "")).join("\n");
}
