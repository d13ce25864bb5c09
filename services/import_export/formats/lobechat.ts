/**
 * Reads the exports of LobeChat: of the versions that kept everything in the browser (`state`), of those with a database
 * (`data`, its tables), and of one topic (`messages`).
 */
import { asObject, asText, isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import { buildTree, convertChat, type ListedMessage, type TreeNode } from "../branching_chat.ts";
import type { ImportStep } from "../import_item.ts";
import { createChangedNote, createLeftOutNote, createRefusedNote } from "../import_report.ts";
import type { ImportSource } from "../import_source.ts";
import { createTreeMessage, listObjects, readChatFiles, toIsoTime } from "./chat_files.ts";

/** Yields the conversations of LobeChat's export: the topics of each assistant, and its messages outside of them. */
export function readLobeChat(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /\.json$/i.test(path), convertExport);
}

/** What a conversation takes its title and its system prompt from. */
interface Topic {
  title: string;
  system: string;
  createdAt?: unknown;
  updatedAt?: unknown;
}

function* convertExport(file: JsonObject, source: string): Generator<ImportStep> {
  if (Array.isArray(file.messages)) return yield* convertTopicExport(file, source);
  const tables = [file.data, file.state].find(isJsonObject) ?? {};
  const messages = listObjects(tables.messages);
  if (messages.length === 0) return yield createRefusedNote(source, "no_messages");
  if (listObjects(tables.aiProviders).length > 0 || isJsonObject(tables.settings)) {
    yield createLeftOutNote(source, "service_keys_left_out");
  }
  const [sessions, topics, agents] = [byId(tables.sessions), byId(tables.topics), byId(tables.agents)];
  const agentOf = new Map(
    listObjects(tables.agentsToSessions).map(({ sessionId, agentId }) => [asText(sessionId), asText(agentId)]),
  );
  const threads = byId(tables.threads);
  const chats = Map.groupBy(messages, (message) => {
    const topicId = asText(message.topicId);
    return JSON.stringify([ownerOf(topics.get(topicId)) || ownerOf(message), topicId]);
  });
  for (const [key, messages] of chats) {
    const [owner, topicId] = JSON.parse(key) as [string, string];
    const [session, topic] = [sessions.get(owner), topics.get(topicId)];
    const agent = agents.get(agentOf.get(owner) ?? owner);
    const assistant = asText(asObject(session?.meta).title) || asText(agent?.title) || asText(session?.title);
    yield* convertTopic(messages, threads, key, source, {
      title: asText(topic?.title) || assistant,
      system: asText(asObject(session?.config).systemRole) || asText(agent?.systemRole),
      createdAt: topic?.createdAt,
      updatedAt: topic?.updatedAt,
    });
  }
}

/** Newer versions have agents instead of sessions. */
function ownerOf(item: JsonObject | undefined): string {
  return asText(item?.sessionId) || asText(item?.agentId);
}

/** One topic, as its Share dialog writes it. The role of the assistant may be the first message. */
function* convertTopicExport(file: JsonObject, source: string): Generator<ImportStep> {
  const all = listObjects(file.messages);
  const role = all[0]?.id === "system-role" ? all[0] : undefined;
  const messages = role === undefined ? all : all.slice(1);
  const key = JSON.stringify([asText(messages[0]?.id)]);
  yield* convertTopic(messages, new Map(), key, source, { title: asText(file.title), system: asText(role?.content) });
}

function* convertTopic(
  messages: JsonObject[],
  threads: ReadonlyMap<string, JsonObject>,
  key: string,
  source: string,
  { title, system, createdAt, updatedAt }: Topic,
): Generator<ImportStep> {
  const ordered = messages.toSorted((a, b) => toMs(a.createdAt) - toMs(b.createdAt));
  const lines = Map.groupBy(ordered, ({ threadId }) => asText(threadId));
  const main = lines.get("") ?? [];
  lines.delete("");
  const nodes = buildTree([
    ...listLine(main),
    // A thread goes on from a message of the topic.
    ...[...lines].flatMap(([id, line]) => listLine(line, asText(threads.get(id)?.sourceMessageId) || undefined)),
  ]);
  const name = `${source} ${title}`.trim();
  const files = messages.reduce((sum, { files }) => sum + (Array.isArray(files) ? files.length : 0), 0);
  yield* convertChat({
    program: "lobechat",
    key,
    source,
    title,
    nodes,
    current: asText(main.at(-1)?.id) || undefined,
    system,
    createdAt: toIsoTime(createdAt ?? ordered[0]?.createdAt),
    updatedAt: toIsoTime(updatedAt ?? ordered.at(-1)?.createdAt),
    notes: files > 0 ? [{ ...createChangedNote(name, "files_not_in_export"), count: files }] : [],
    refusedAs: name,
  });
}

/** @param from The message that the first one follows, if it doesn't say. */
function listLine(messages: JsonObject[], from?: string): ListedMessage[] {
  return messages.map((message, index) => ({
    id: asText(message.id) || `n${index}`,
    parentId: asText(message.parentId) || (index === 0 ? from : undefined),
    message: convertMessage(message),
  }));
}

function convertMessage(message: JsonObject): TreeNode["message"] {
  const role = asText(message.role);
  const content = asText(message.content);
  if (!["user", "assistant", "system"].includes(role) || content.trim() === "") return;
  const reasoning = asText(asObject(message.reasoning).content);
  const model = asText(asObject(message.extra).fromModel) || asText(message.model);
  return createTreeMessage({ role, content, reasoning, time: message.createdAt, model });
}

function byId(value: unknown): Map<string, JsonObject> {
  return new Map(listObjects(value).map((item) => [asText(item.id), item]));
}

function toMs(value: unknown): number {
  return Date.parse(toIsoTime(value) ?? "") || 0;
}
