/** Reads LobeChat's export: assistants (`sessions`), their topics, and one list of all messages. */
import { asObject, asText, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { buildTree, convertChat, type TreeNode } from "../../branching_chat.ts";
import type { ImportStep } from "../../import_item.ts";
import { refused } from "../../import_reasons.ts";
import type { ImportSource } from "../../import_source.ts";
import { readChatFiles, toIsoTime } from "../chat_files.ts";

/** Yields the conversations. @throws {AppError} `unprocessable` if there are none. */
export function readLobeChat(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /\.json$/i.test(path), convertExport);
}

/** A topic is a conversation; so are the messages of an assistant outside of its topics. */
function* convertExport(file: JsonObject, source: string): Generator<ImportStep> {
  const state = asObject(file.state);
  const sessions = byId(state.sessions);
  const topics = byId(state.topics);
  const chats = Map.groupBy(listObjects(state.messages), (message) => {
    const topicId = asText(message.topicId);
    return JSON.stringify([asText(message.sessionId) || asText(topics.get(topicId)?.sessionId), topicId]);
  });
  if (chats.size === 0) return yield refused(source, "no_messages");
  for (const [key, messages] of chats) {
    const [sessionId, topicId] = JSON.parse(key) as [string, string];
    yield* convertConversation(messages, { session: sessions.get(sessionId), topic: topics.get(topicId), key, source });
  }
}

function* convertConversation(
  messages: JsonObject[],
  { session, topic, key, source }: { session?: JsonObject; topic?: JsonObject; key: string; source: string },
): Generator<ImportStep> {
  const ordered = messages.toSorted((a, b) => toMs(a.createdAt) - toMs(b.createdAt));
  const nodes = buildTree(ordered.map((message, index) => ({
    id: asText(message.id) || `n${index}`,
    parentId: asText(message.parentId) || undefined,
    message: convertMessage(message),
  })));
  const title = asText(topic?.title) || asText(asObject(session?.meta).title);
  const system = asText(asObject(session?.config).systemRole);
  yield* convertChat({
    program: "lobechat",
    key,
    source,
    title,
    nodes,
    system,
    createdAt: toIsoTime(topic?.createdAt ?? ordered[0]?.createdAt),
    updatedAt: toIsoTime(topic?.updatedAt ?? ordered.at(-1)?.createdAt),
    refusedAs: `${source} ${title}`.trim(),
  });
}

function convertMessage(message: JsonObject): TreeNode["message"] {
  const role = asText(message.role);
  const content = asText(message.content);
  if (!["user", "assistant", "system"].includes(role) || content.trim() === "") return;
  const reasoning = asText(asObject(message.reasoning).content);
  const created_at = toIsoTime(message.createdAt);
  const model = asText(asObject(message.extra).fromModel) || asText(message.model);
  return {
    role,
    content,
    ...(reasoning !== "" && { reasoning }),
    ...(created_at && { created_at }),
    ...(model !== "" && { model }),
  };
}

function listObjects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function byId(value: unknown): Map<string, JsonObject> {
  return new Map(listObjects(value).map((item) => [asText(item.id), item]));
}

function toMs(value: unknown): number {
  return Date.parse(toIsoTime(value) ?? "") || 0;
}
