/** Reads Chatbox's export: its storage as one object, with each chat under `session:<id>`. */
import { asObject, asText, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { buildTree, convertChat, type ListedMessage, type TreeNode } from "../../branching_chat.ts";
import type { ImportStep } from "../../import_item.ts";
import { changed, leftOut, refused } from "../../import_reasons.ts";
import type { ImportSource } from "../../import_source.ts";
import { readChatFiles, toIsoTime } from "../chat_files.ts";

/** Yields the conversations. @throws {AppError} `unprocessable` if there are none. */
export function readChatbox(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /\.json$/i.test(path), convertExport);
}

function* convertExport(file: JsonObject, source: string): Generator<ImportStep> {
  const stored = Object.entries(file).filter(([key]) => key.startsWith("session:")).map(([, session]) => session);
  // Versions before 1.9 kept all chats in one list.
  const sessions = [...stored, ...listObjects(file["chat-sessions"])].filter(isJsonObject);
  if (sessions.length === 0) return yield refused(source, "no_messages");
  if (isJsonObject(file.settings)) yield leftOut(source, "service_keys_left_out");
  for (const session of sessions) {
    yield* convertSession(session, source, { key: asText(session.id), title: asText(session.name) });
    for (const thread of listObjects(session.threads)) {
      const title = asText(thread.name) || asText(session.name);
      yield* convertSession(thread, source, { key: `${asText(session.id)} ${asText(thread.id)}`, title });
    }
  }
}

function* convertSession(
  chat: JsonObject,
  source: string,
  { key, title }: { key: string; title: string },
): Generator<ImportStep> {
  const all = listObjects(chat.messages);
  const system = all[0]?.role === "system" ? readMessage(all[0]).content : "";
  const messages = system === "" ? all : all.slice(1);
  const nodes = buildTree([...listMessages(messages), ...listForks(chat)]);
  const images = messages.reduce((sum, message) => sum + listImages(message).length, 0);
  const name = `${source} ${title}`.trim();
  const times = messages.flatMap(({ timestamp }) => toIsoTime(timestamp) ?? []);
  yield* convertChat({
    program: "chatbox",
    key,
    source,
    title,
    nodes,
    current: asText(messages.at(-1)?.id) || undefined,
    system,
    createdAt: times[0],
    updatedAt: times.at(-1),
    notes: images > 0 ? [{ ...changed(name, "chatgpt_images"), count: images }] : [],
    refusedAs: name,
  });
}

function listMessages(messages: JsonObject[], parentId: string | null = null): ListedMessage[] {
  return messages.map((message, index) => ({
    id: asText(message.id) || `n${index}`,
    ...(index === 0 && { parentId }),
    message: convertMessage(message),
  }));
}

/** Other continuations after a message; the one that is shown has an empty list. */
function listForks(chat: JsonObject): ListedMessage[] {
  return Object.entries(asObject(chat.messageForksHash)).flatMap(([after, fork]) =>
    listObjects(asObject(fork).lists).flatMap(({ messages }) => listMessages(listObjects(messages), after))
  );
}

function convertMessage(message: JsonObject): TreeNode["message"] {
  const role = asText(message.role);
  const { content, reasoning } = readMessage(message);
  if (!["user", "assistant", "system"].includes(role) || content.trim() === "") return;
  const created_at = toIsoTime(message.timestamp);
  const model = asText(message.model);
  return {
    role,
    content,
    ...(reasoning !== "" && { reasoning }),
    ...(created_at && { created_at }),
    ...(model !== "" && { model }),
  };
}

/** Old messages have their text in `content`. */
function readMessage(message: JsonObject): { content: string; reasoning: string } {
  const parts = listObjects(message.contentParts);
  const join = (type: string) =>
    parts.filter((part) => part.type === type).map(({ text }) => asText(text)).filter((text) => text !== "").join(
      "\n\n",
    );
  return {
    content: join("text") || asText(message.content),
    reasoning: join("reasoning") || asText(message.reasoningContent),
  };
}

function listImages(message: JsonObject): JsonObject[] {
  return listObjects(message.contentParts).filter(({ type }) => type === "image");
}

function listObjects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
