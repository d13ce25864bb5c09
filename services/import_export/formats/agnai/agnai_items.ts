/**
 * Converts Agnai's characters, memory books and chats: exported ones, with the same fields as its own Tavern export,
 * and those in a server's data folder, where messages form a tree with earlier texts.
 *
 * @see https://github.com/agnaistic/agnai common/characters.ts (exportCharacter, formatCharacter), common/memory.ts,
 *   common/types/schema.ts, common/chat.ts and web/pages/Chat/ChatExport.tsx at 2421510 (2024-10-16)
 */
import { asText, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { createChangedNote, createRefusedNote, importReason } from "../../import_report.ts";
import { deriveStableId } from "../../import_source.ts";
import type { ImportedMessage, ImportStep } from "../../import_item.ts";
import { hashTree, splitTree, type TreeChat, type TreeMessage, type TreeNode } from "../../branching_chat.ts";
import { toIsoTime } from "../chat_files.ts";

/** Context of a chat. */
export interface AgnaiChatContext {
  /** Its path in the import. */
  source: string;
  title: string;
  findCharacter?(agnaiId: string): string | undefined;
  personaId?: string;
  lorebookIds?: string[];
  participants?: string[];
}

/** Fields of a chat that override fields of the character. */
const OVERRIDES = ["scenario", "sampleChat", "postHistoryInstructions"];

/** Reports whether a file is an exported chat. */
export function isAgnaiExport({ messages }: JsonObject): boolean {
  return Array.isArray(messages) &&
    messages.some((message) => isJsonObject(message) && typeof message.msg === "string");
}

/** Reads an exported chat. It has the role of each message, not the character. */
export function* readAgnaiExport(chat: JsonObject, context: AgnaiChatContext): Generator<ImportStep> {
  const exported = listMessages(chat.messages);
  // The file doesn't contain the chat's ID: its first message and the file name identify it.
  const id = deriveStableId("agnai", "exported chat", context.title, asText(exported[0]?.msg));
  const messages = exported.map((message, index): ImportedMessage => ({
    id: `${id}-${index}`,
    role: getRole(message),
    content: asText(message.msg),
    ...(asText(message.handle) !== "" && { name: asText(message.handle) }),
  }));
  yield* convertConversation({ id, messages }, chat, context);
}

/** Reads a chat from a server's data folder. */
export function* readAgnaiChat(
  chat: JsonObject,
  messages: unknown,
  chatContext: AgnaiChatContext,
): Generator<ImportStep> {
  const key = asText(chat._id);
  const deriveId = (node?: string) =>
    node === undefined ? deriveStableId("agnai", "chat", key) : deriveStableId("agnai", "chat", key, node);
  const list = listMessages(messages);
  const nodes = new Map<string, TreeNode>();
  for (const [index, message] of list.entries()) {
    const node: TreeNode = {
      id: asText(message._id) || `n${index}`,
      // Old messages have no parent: each follows the previous one.
      parent: asText(message.parent) || asText(list[index - 1]?._id) || undefined,
      children: [],
      message: convertMessage(message, chatContext),
    };
    nodes.set(node.id, node);
  }
  for (const { id, parent } of nodes.values()) nodes.get(parent ?? "")?.children.push(id);
  for (const one of splitTree(nodes, asText(chat.treeLeafId), deriveId)) {
    yield* convertConversation(one, chat, chatContext);
  }
}

function* convertConversation(
  { forkedFrom, ...own }: TreeChat,
  chat: JsonObject,
  { source, title, participants = [], personaId, lorebookIds = [] }: AgnaiChatContext,
): Generator<ImportStep> {
  const { messages } = own;
  if (messages.length === 0) return yield createRefusedNote(source, "no_messages");
  const overrides = OVERRIDES.filter((field) => asText(chat[field]) !== "");
  if (overrides.length > 0 && forkedFrom === undefined) {
    yield createChangedNote(source, importReason("agnai_overrides", { fields: overrides.join(", ") }));
  }
  const system_prompt = asText(chat.systemPrompt);
  const head = {
    title,
    participants: participants.map((character_id) => ({ character_id })),
    ...(system_prompt !== "" && { system_prompt }),
    ...(personaId !== undefined && { persona_id: personaId }),
    ...(lorebookIds.length > 0 && { lorebook_ids: lorebookIds }),
    ...(forkedFrom && { forked_from: forkedFrom }),
  };
  yield {
    what: "conversation",
    source,
    name: title,
    hash: hashTree(own, head),
    head,
    ...own,
    createdAt: toIsoTime(chat.createdAt) ?? messages[0]!.created_at,
    updatedAt: toIsoTime(chat.updatedAt) ?? messages.at(-1)!.created_at,
  };
}

function convertMessage(message: JsonObject, { findCharacter, personaId }: AgnaiChatContext): TreeMessage {
  const role = getRole(message);
  const created_at = toIsoTime(message.createdAt);
  const updated_at = toIsoTime(message.updatedAt) ?? created_at;
  const character = role === "assistant" ? findCharacter?.(asText(message.characterId)) : undefined;
  const name = asText(message.name);
  const retries = Array.isArray(message.retries) ? message.retries.map(asText).filter((text) => text !== "") : [];
  return {
    role,
    content: asText(message.msg),
    ...(created_at !== undefined && { created_at }),
    ...(updated_at !== undefined && { updated_at }),
    ...(character !== undefined && { character_id: character }),
    ...(role === "user" && personaId !== undefined && { persona_id: personaId }),
    ...(name !== "" && { name }),
    ...(message.ooc === true && { hidden: true }), // Not meant for the model
    ...(retries.length > 0 && { others: retries.map((content) => ({ content })) }),
  };
}

function getRole(message: JsonObject): string {
  if (message.system === true) return "system";
  return asText(message.characterId) !== "" ? "assistant" : "user";
}

function listMessages(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject).filter(({ msg }) => typeof msg === "string") : [];
}
