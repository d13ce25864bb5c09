/**
 * Converts Agnai's characters, memory books and chats: exported ones, with the same fields as its own Tavern export,
 * and those in a server's data folder, where messages form a tree with earlier texts.
 *
 * @see https://github.com/agnaistic/agnai common/characters.ts (exportCharacter, formatCharacter), common/memory.ts,
 *   common/types/schema.ts, common/chat.ts and web/pages/Chat/ChatExport.tsx at 2421510 (2024-10-16)
 */
import { asObject, asText, asTexts, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { createChangedNote, createRefusedNote, importReason } from "../../import_report.ts";
import { convertAgnaiBook } from "../../../lorebooks/foreign_lorebooks.ts";
import { deriveStableId } from "../../import_source.ts";
import type { ImportedMessage, ImportStep } from "../../import_item.ts";
import { hashTree, splitTree, type TreeChat, type TreeMessage, type TreeNode } from "../../branching_chat.ts";
import { toIsoTime } from "../chat_files.ts";

/** Reports whether a file is a character in Agnai's own format. */
export function isAgnaiCharacter(json: JsonObject): boolean {
  return json.kind === "character" ||
    ["name", "persona", "greeting", "scenario", "sampleChat"].every((one) => one in json);
}

/** Converts a character to a card. */
export function convertAgnaiCard(character: JsonObject): JsonObject {
  const name = asText(character.name);
  const { persona, voice, appearance, json, sprite } = character;
  const insert = asObject(character.insert);
  return {
    spec: "chara_card_v2",
    spec_version: "2.0",
    data: {
      name,
      first_mes: asText(character.greeting),
      scenario: asText(character.scenario),
      description: formatDescription(name, asObject(persona)),
      personality: "",
      mes_example: asText(character.sampleChat),
      creator_notes: asText(character.description),
      system_prompt: asText(character.systemPrompt),
      post_history_instructions: asText(character.postHistoryInstructions),
      alternate_greetings: asTextList(character.alternateGreetings),
      ...(isJsonObject(character.characterBook) && { character_book: convertAgnaiBook(character.characterBook) }),
      tags: asTexts(character.tags),
      creator: asText(character.creator),
      character_version: asText(character.characterVersion),
      extensions: {
        ...asObject(character.extensions),
        ...(asText(insert.prompt) !== "" && { depth_prompt: insert }),
        agnai: dropUndefined({ voice, persona, appearance, json, sprite }),
      },
    },
  };
}

/**
 * Formats a persona, which is a text or a list of attributes, in the chosen style. Agnai recognizes its persona in a
 * card only if the description matches exactly.
 */
export function formatDescription(name: string, { kind, attributes }: JsonObject): string {
  const found = Object.entries(asObject(attributes)).map(([key, values]) => [key, asTextList(values)] as const);
  switch (kind) {
    case "wpp": {
      const lines = found.map(([key, values]) => `${key}(${values.map(quote).join(" + ")})`);
      return [`[character("${name}") {`, lines.join("\n"), "}]"].join("\n");
    }
    case "sbf": {
      const parts = found.map(([key, values]) => `${key}: ${values.map(quote).join(", ")}`);
      return `[ character: "${name}"; ${parts.join("; ")} ]`;
    }
    case "boostyle":
      return [name, ...found.flatMap(([, values]) => values)].join(" + ");
    case "attributes":
      return `Name: ${name}\n${found.map(([key, values]) => `${key}: ${values.join(", ")}`).join("\n")}`;
    default: // "text" and unknown styles: only the texts
      return found.flatMap(([, values]) => values).join("\n");
  }
}

function dropUndefined(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function asTextList(value: unknown): string[] {
  return Array.isArray(value) ? value.map(asText) : [];
}

function quote(text: string): string {
  return `"${text}"`;
}

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
