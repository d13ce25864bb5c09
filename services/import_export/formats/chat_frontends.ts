/** Reads the exports of LibreChat, Open WebUI and Chatbox. */
import { AppError } from "../../errors.ts";
import { asObject, asText, findJsonFault, getOwn, isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import { buildTree, convertChat, type ListedMessage, type TreeNode } from "../branching_chat.ts";
import type { ImportStep } from "../import_item.ts";
import { createChangedNote, createLeftOutNote, createRefusedNote } from "../import_report.ts";
import type { ImportSource } from "../import_source.ts";
import { createTreeMessage, listObjects, readChatFiles, toIsoTime } from "./chat_files.ts";

/** Yields the conversations of LibreChat's export as JSON, with or without branches, as a tree or as a list. */
export function readLibreChat(source: ImportSource): AsyncGenerator<ImportStep> {
  // Each message of a tree is nested in the previous one, so a long chat is deeply nested.
  return readChatFiles(source, (path) => /\.json$/i.test(path), convertLibreChatConversation, { isDeep: true });
}

function* convertLibreChatConversation(chat: JsonObject, source: string): Generator<ImportStep> {
  const roots = [chat.messagesTree, chat.messages].find(Array.isArray) ?? [];
  const list = flatten(roots);
  const fault = list.map((message) => findJsonFault(message)).find((found) => found !== undefined);
  if (fault !== undefined) return yield createRefusedNote(source, new AppError("unprocessable", fault));
  const nodes = buildTree(list.map((message, index) => ({
    id: asText(message.messageId) || `n${index}`,
    parentId: toParentId(message.parentMessageId),
    message: convertLibreChatMessage(message),
  })));
  const title = asText(chat.title);
  const key = asText(chat.conversationId) || `${title} ${asText(list[0]?.messageId)}`;
  const system = asText(asObject(chat.options).promptPrefix);
  const times = list.flatMap(({ createdAt }) => toIsoTime(createdAt) ?? []).sort();
  const files = list.reduce((sum, message) => sum + countFiles(message), 0);
  yield* convertChat({
    program: "librechat",
    key,
    source,
    title,
    nodes,
    system,
    createdAt: times[0],
    updatedAt: times.at(-1),
    notes: files > 0 ? [{ ...createChangedNote(source, "files_not_in_export"), count: files }] : [],
  });
}

/**
 * Lists the messages of a tree, parents first, without their children. Isn't recursive, because a chat may be very
 * long.
 */
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

/** Returns the parent's ID. The parent of a first message is an ID of zeros. */
function toParentId(value: unknown): string | null | undefined {
  const id = asText(value);
  return id === "" ? undefined : /^[0-]+$/.test(id) ? null : id;
}

function convertLibreChatMessage(message: JsonObject): TreeNode["message"] {
  const parts = listObjects(message.content);
  // LibreChat shows the parts of a message that has both.
  const { text, reasoning: inText } = splitThinking(joinParts(parts, "text") || asText(message.text));
  const reasoning = joinParts(parts, "think") || inText;
  if (text.trim() === "" || message.error === true) return;
  const role = message.isCreatedByUser === true ? "user" : "assistant";
  return createTreeMessage({ role, content: text, reasoning, time: message.createdAt, model: asText(message.model) });
}

const THINKING_START = ":::thinking\n";
const THINKING_END = "\n:::";

/** Before there were parts, the reasoning was at the start of the text. */
function splitThinking(text: string): { text: string; reasoning: string } {
  const end = text.startsWith(THINKING_START) ? text.indexOf(THINKING_END, THINKING_START.length - 1) : -1;
  if (end < 0) return { text, reasoning: "" };
  const reasoning = text.slice(THINKING_START.length, end).trim();
  return { text: text.slice(end + THINKING_END.length).trimStart(), reasoning };
}

/** Files are in the export by name only: those of the user in `files`, images of a reply as parts. */
function countFiles({ files, content }: JsonObject): number {
  return listObjects(files).length + listObjects(content).filter(({ type }) => type === "image_file").length;
}

/** Joins the texts of parts. A text is a string, or an object with a `value`. */
function joinParts(parts: JsonObject[], type: "text" | "think"): string {
  const texts = parts.filter((part) => part.type === type).map((part) =>
    asText(part[type]) || asText(asObject(part[type]).value)
  );
  return texts.filter((text) => text !== "").join("\n\n");
}

/** Matches the start of the reasoning, which is in a details element. */
const REASONING_START = /^\s*<details type="reasoning"[^>]*>\s*(?:<summary>[^<]*<\/summary>)?/;
const REASONING_END = "</details>";

/** Yields the conversations of Open WebUI's chat export: a list with a message tree for each chat. */
export function readOpenWebUi(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /\.json$/i.test(path), convertOpenWebUiChat);
}

function* convertOpenWebUiChat(record: JsonObject, source: string): Generator<ImportStep> {
  const chat = isJsonObject(record.chat) ? record.chat : record;
  const history = asObject(chat.history);
  const tree = isJsonObject(history.messages) ? history.messages : linkMessages(chat.messages);
  const title = asText(record.title) || asText(chat.title);
  const key = asText(record.id) || asText(chat.id) || `${title} ${asText(chat.timestamp)}`;
  const nodes = new Map(Object.entries(tree).map(([node, value]) => [node, convertOpenWebUiNode(node, value)]));
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

/** Returns the messages of an old chat as a tree: each message follows the previous one. */
function linkMessages(messages: unknown): JsonObject {
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

function convertOpenWebUiNode(id: string, value: unknown): TreeNode {
  const node = asObject(value);
  return {
    id,
    parent: asText(node.parentId) || undefined,
    children: Array.isArray(node.childrenIds) ? node.childrenIds.map(asText) : [],
    message: convertOpenWebUiMessage(node),
  };
}

function convertOpenWebUiMessage(node: JsonObject): TreeNode["message"] {
  const role = asText(node.role);
  if (!["user", "assistant", "system"].includes(role)) return;
  const content = asText(node.content);
  const { reasoning, text } = role === "assistant" ? splitReasoning(content) : { text: content };
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
    ...(reasoning !== undefined && { reasoning: unquote(reasoning) }),
    ...(created_at && { created_at }),
    ...(model !== "" && { model }),
  };
}

/**
 * Splits reasoning from text. Looks for the end without a pattern: one pattern for everything takes quadratic time on
 * white space without an end.
 */
function splitReasoning(content: string): { reasoning?: string; text: string } {
  const start = REASONING_START.exec(content)?.[0].length;
  const end = start === undefined ? -1 : content.indexOf(REASONING_END, start);
  if (end < 0) return { text: content };
  return { reasoning: content.slice(start, end), text: content.slice(end + REASONING_END.length).trimStart() };
}

/** Removes the block quote of the reasoning. */
function unquote(text: string): string {
  return text.trim().split("\n").map((line) => line.replace(/^(&gt;|>) ?/, "")).join("\n");
}

/** Yields the conversations of Chatbox's export: its storage as one object, with each chat under `session:<id>`. */
export function readChatbox(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /\.json$/i.test(path), convertChatboxExport);
}

function* convertChatboxExport(file: JsonObject, source: string): Generator<ImportStep> {
  const stored = Object.entries(file).filter(([key]) => key.startsWith("session:")).map(([, session]) => session);
  const sessions = new Map<string, JsonObject>();
  // Versions before 1.9 kept all chats in one list, which stays in the storage as it was at the update.
  for (const session of [...listObjects(stored), ...listObjects(file["chat-sessions"])]) {
    const id = asText(session.id);
    if (!sessions.has(id)) sessions.set(id, session);
  }
  if (sessions.size === 0) return yield createRefusedNote(source, "no_messages");
  if (isJsonObject(file.settings)) yield createLeftOutNote(source, "service_keys_left_out");
  for (const [id, session] of sessions) {
    const forks = asObject(session.messageForksHash);
    yield* convertSession(session.messages, source, { key: id, title: asText(session.name), forks });
    for (const thread of listObjects(session.threads)) {
      const title = asText(thread.name) || asText(session.name);
      yield* convertSession(thread.messages, source, { key: `${id} ${asText(thread.id)}`, title, forks });
    }
  }
}

/** @param chat.forks Other continuations in all conversations of the chat, by the message that they follow. */
function* convertSession(
  stored: unknown,
  source: string,
  { key, title, forks }: { key: string; title: string; forks: JsonObject },
): Generator<ImportStep> {
  const all = listObjects(stored);
  const system = all[0]?.role === "system" ? readMessage(all[0]).content : "";
  const messages = system === "" ? all : all.slice(1);
  const listed = listWithForks(all, forks);
  const nodes = buildTree(listed.map(({ message, ...position }, index) => ({
    ...position,
    message: index === 0 && system !== "" ? undefined : convertChatboxMessage(message),
  })));
  const count = (list: (message: JsonObject) => JsonObject[]) =>
    listed.reduce((sum, { message }) => sum + list(message).length, 0);
  const [images, files] = [count(listImages), count(({ files }) => listObjects(files))];
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
    notes: [
      ...(images > 0 ? [{ ...createChangedNote(name, "chatgpt_images"), count: images }] : []),
      ...(files > 0 ? [{ ...createChangedNote(name, "files_not_in_export"), count: files }] : []),
    ],
    refusedAs: name,
  });
}

/** A message as Chatbox stores it. */
interface Stored {
  message: JsonObject;
}

/** Lists messages, then their other continuations, and those of these. The continuation that is shown is an empty list. */
function listWithForks(messages: JsonObject[], forks: JsonObject): (Omit<ListedMessage, "message"> & Stored)[] {
  const list: ReturnType<typeof listWithForks> = messages.map((message, index) => ({
    id: asText(message.id) || `n${index}`,
    message,
  }));
  const seen = new Set<string>();
  for (const { id: after } of list) {
    if (seen.has(after)) continue;
    seen.add(after);
    for (const { messages } of listObjects(asObject(getOwn(forks, after)).lists)) {
      const others = listObjects(messages).map((message, index) => ({
        id: asText(message.id),
        ...(index === 0 && { parentId: after }),
        message,
      }));
      list.push(...others);
    }
  }
  return list;
}

function convertChatboxMessage(message: JsonObject): TreeNode["message"] {
  const role = asText(message.role);
  const { content, reasoning } = readMessage(message);
  // A summary stands for the messages before it in the prompt; those are imported.
  if (message.isSummary === true) return;
  if (!["user", "assistant", "system"].includes(role) || content.trim() === "") return;
  return createTreeMessage({ role, content, reasoning, time: message.timestamp, model: asText(message.model) });
}

/** Reads the text of a message. Old messages have it in `content`. */
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

/** Old messages have their images in `pictures`. */
function listImages({ contentParts, pictures }: JsonObject): JsonObject[] {
  return [...listObjects(contentParts).filter(({ type }) => type === "image"), ...listObjects(pictures)];
}
