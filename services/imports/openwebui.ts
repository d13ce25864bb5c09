/** Reads Open WebUI's export of chats: a list, of every chat a tree of messages. */
import { asObject, asText, isJsonObject, type JsonObject } from "../plain_json.ts";
import { besideNote, readChatFiles } from "./chat_files.ts";
import { contentHash, type ImportSource, stableId } from "./import_source.ts";
import type { ImportStep } from "./import_item.ts";
import { chatOfTree, type TreeNode } from "./message_tree.ts";
import { refused } from "./refused.ts";
import { isoOf } from "./tavern_time.ts";

/** Thoughts stand folded in the text itself. */
const THOUGHTS = /^\s*<details type="reasoning"[^>]*>\s*(?:<summary>[^<]*<\/summary>)?([\s\S]*?)<\/details>\s*/;

/** Gives the chats. @throws {AppError} `unprocessable` when there are none */
export function readOpenWebUi(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /\.json$/i.test(path), conversationOf);
}

function* conversationOf(record: JsonObject, source: string): Generator<ImportStep> {
  const chat = isJsonObject(record.chat) ? record.chat : record;
  const history = asObject(chat.history);
  const tree = isJsonObject(history.messages) ? history.messages : listed(chat.messages);
  const title = asText(record.title) || asText(chat.title);
  const key = asText(record.id) || asText(chat.id) || `${title} ${asText(chat.timestamp)}`;
  const id = stableId("openwebui", key);
  const nodes = new Map(Object.entries(tree).map(([node, value]) => [node, nodeOf(node, value)]));
  const { messages, beside } = chatOfTree(nodes, asText(history.currentId), (index) => `${id}-${index}`);
  if (messages.length === 0) return yield refused(source, "it has no messages");
  if (beside > 0) yield besideNote(source, beside);
  const system = asText(chat.system) || (isJsonObject(chat.params) ? asText(chat.params.system) : "");
  yield {
    ...{ what: "conversation", id, source, name: title, hash: contentHash([system, messages]), messages },
    head: { title, participants: [], ...(system !== "" && { system_prompt: system }) },
    createdAt: isoOf(record.created_at ?? chat.timestamp),
    updatedAt: isoOf(record.updated_at ?? chat.timestamp),
  };
}

/** Old chats have no tree: each message follows the one before. */
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

function nodeOf(id: string, value: unknown): TreeNode {
  const node = asObject(value);
  return {
    id,
    parent: asText(node.parentId) || undefined,
    children: Array.isArray(node.childrenIds) ? node.childrenIds.map(asText) : [],
    message: messageOf(node),
  };
}

function messageOf(node: JsonObject): TreeNode["message"] {
  const role = asText(node.role);
  if (!["user", "assistant", "system"].includes(role)) return;
  const said = asText(node.content);
  const thoughts = role === "assistant" ? THOUGHTS.exec(said) : null;
  const text = thoughts === null ? said : said.slice(thoughts[0].length);
  const files = Array.isArray(node.files) ? node.files.filter(isJsonObject) : [];
  const pictures = files.filter(({ type, url }) => type === "image" && asText(url).startsWith("data:image/"));
  const created_at = isoOf(node.timestamp);
  const model = asText(node.model);
  return {
    role,
    content: pictures.length === 0 ? text : [
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...pictures.map(({ url }) => ({ type: "image_url", image_url: { url: asText(url) } })),
    ],
    ...(thoughts !== null && { reasoning: unquoted(thoughts[1]!) }),
    ...(created_at && { created_at }),
    ...(model !== "" && { model }),
  };
}

/** Thoughts are written there as a quotation. */
function unquoted(text: string): string {
  return text.trim().split("\n").map((line) => line.replace(/^(&gt;|>) ?/, "")).join("\n");
}
