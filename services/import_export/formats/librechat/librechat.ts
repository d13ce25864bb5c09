/** Reads LibreChat's export of a conversation as JSON, with or without branches, as a tree or as a list. */
import { AppError } from "../../../errors.ts";
import { asObject, asText, findJsonFault, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { buildTree, convertChat, type TreeNode } from "../../branching_chat.ts";
import type { ImportStep } from "../../import_item.ts";
import { refused } from "../../import_reasons.ts";
import type { ImportSource } from "../../import_source.ts";
import { readChatFiles, toIsoTime } from "../chat_files.ts";

/** Yields the conversations. @throws {AppError} `unprocessable` if there are none. */
export function readLibreChat(source: ImportSource): AsyncGenerator<ImportStep> {
  // Each message of a tree lies inside the one before it, so a long chat is deep.
  return readChatFiles(source, (path) => /\.json$/i.test(path), convertConversation, { isDeep: true });
}

function* convertConversation(chat: JsonObject, source: string): Generator<ImportStep> {
  const roots = [chat.messagesTree, chat.messages].find(Array.isArray) ?? [];
  const list = flatten(roots);
  const fault = list.map((message) => findJsonFault(message)).find((found) => found !== undefined);
  if (fault !== undefined) return yield refused(source, new AppError("unprocessable", fault));
  const nodes = buildTree(list.map((message, index) => ({
    id: asText(message.messageId) || `n${index}`,
    parentId: toParentId(message.parentMessageId),
    message: convertMessage(message),
  })));
  const title = asText(chat.title);
  const key = asText(chat.conversationId) || `${title} ${asText(list[0]?.messageId)}`;
  const system = asText(asObject(chat.options).promptPrefix);
  const times = list.flatMap(({ createdAt }) => toIsoTime(createdAt) ?? []).sort();
  yield* convertChat({
    program: "librechat",
    key,
    source,
    title,
    nodes,
    system,
    createdAt: times[0],
    updatedAt: times.at(-1),
  });
}

/** Lists the messages of a tree, parents first, without their children. Not recursive: a chat may be very long. */
function flatten(roots: unknown[]): JsonObject[] {
  const list: JsonObject[] = [];
  const waiting = roots.filter(isJsonObject).reverse();
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    const { children, ...message } = node;
    list.push(message);
    if (Array.isArray(children)) waiting.push(...children.filter(isJsonObject).reverse());
  }
  return list;
}

/** A first message names a parent of zeros. */
function toParentId(value: unknown): string | null | undefined {
  const id = asText(value);
  return id === "" ? undefined : /^[0-]+$/.test(id) ? null : id;
}

function convertMessage(message: JsonObject): TreeNode["message"] {
  const parts = Array.isArray(message.content) ? message.content.filter(isJsonObject) : [];
  const said = asText(message.text) || joinParts(parts, "text");
  const reasoning = joinParts(parts, "think");
  if (said.trim() === "" || message.error === true) return;
  const created_at = toIsoTime(message.createdAt);
  const model = asText(message.model);
  return {
    role: message.isCreatedByUser === true ? "user" : "assistant",
    content: said,
    ...(reasoning !== "" && { reasoning }),
    ...(created_at && { created_at }),
    ...(model !== "" && { model }),
  };
}

/** The text of a part is a string, or an object with a `value`. */
function joinParts(parts: JsonObject[], type: "text" | "think"): string {
  const texts = parts.filter((part) => part.type === type).map((part) =>
    asText(part[type]) || asText(asObject(part[type]).value)
  );
  return texts.filter((text) => text !== "").join("\n\n");
}
