/** Reads notes, proposals and generated images of an export, and ends the replies that weren't finished. */
import { isAttachmentName } from "../../../attachments/attachment_rows.ts";
import { AppError } from "../../../errors.ts";
import { type ImageOrigin, MAX_PROMPT_CHARS } from "../../../image_generation/image_gallery.ts";
import { asNumber, asObject, asText, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { MAX_MEMORY_TEXT, type MemoryFields, parseScope } from "../../../memories/memory.ts";
import type { ProposalState } from "../../../memories/memory_proposals.ts";
import { isId } from "../../../storage/ids.ts";
import { RESULT_UNKNOWN, UNDECIDED } from "../../../tools/tool_call_store.ts";
import type {
  ImportedConversation,
  ImportedGeneratedImage,
  ImportedMemory,
  ImportedMessage,
  ImportedProposal,
} from "../../import_item.ts";

/** Maximum length of a note's name in the report. */
const NAME_LENGTH = 60;
const MAX_NAME_CHARS = 300;
/** @see https://tc39.es/ecma262/#sec-time-values-and-time-range */
const MAX_TIME_MS = 8.64e15;

/** Returns a time in milliseconds since 1970; `undefined` if the value isn't one. */
export function asTimeMs(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && Math.abs(value) <= MAX_TIME_MS ? value : undefined;
}

/** Reads a note. @throws {AppError} `unprocessable` */
export function parseMemory(json: JsonObject): Pick<ImportedMemory, "name" | "fields"> {
  const { name, fields } = parseStatement(json);
  return { name, fields: { ...fields, pinned: json.pinned === true } };
}

const STATES: readonly ProposalState[] = ["open", "accepted", "dismissed"];

/** Reads a proposal. @throws {AppError} `unprocessable` */
export function parseProposal(json: JsonObject): Pick<ImportedProposal, "name" | "fields"> {
  const { name, fields } = parseStatement(json);
  const state = STATES.find((one) => one === json.state);
  if (state === undefined) throw new AppError("unprocessable", "its state is invalid");
  const [replaces, memoryId] = [asText(json.replaces), asText(json.memoryId)];
  return {
    name,
    fields: { ...fields, ...(isId(replaces) && { replaces }), ...(isId(memoryId) && { memoryId }), state },
  };
}

/** Reads what notes and proposals have in common. */
function parseStatement(json: JsonObject): { name: string; fields: Omit<MemoryFields, "pinned"> } {
  const scope = parseScope(json.scope);
  const text = asText(json.text).trim();
  if (scope === undefined) throw new AppError("unprocessable", "its scope is invalid");
  if (text === "" || text.length > MAX_MEMORY_TEXT) {
    throw new AppError("unprocessable", "its text is empty or too long");
  }
  const { conversationId, messageId } = asObject(json.source);
  const source = isId(asText(conversationId)) && {
    source: {
      conversationId: asText(conversationId),
      ...(isId(asText(messageId)) && { messageId: asText(messageId) }),
    },
  } satisfies Partial<MemoryFields>;
  return { name: text.slice(0, NAME_LENGTH), fields: { text, scope, ...source } };
}

/** Reads the settings of a generated image. @throws {AppError} `unprocessable` */
export function parseGeneratedImage(json: JsonObject): Pick<ImportedGeneratedImage, "name" | "image" | "attachment"> {
  const attachment = asText(json.attachment);
  if (!isAttachmentName(attachment)) throw new AppError("unprocessable", "the name of its image is invalid");
  const prompt = asText(json.prompt).slice(0, MAX_PROMPT_CHARS);
  const pickText = (name: string, maxChars = MAX_NAME_CHARS) => {
    const value = json[name];
    return typeof value === "string" ? { [name]: value.slice(0, maxChars) } : {};
  };
  const pickNumber = (name: string) => {
    const value = typeof json[name] === "number" ? asNumber(json[name]) : undefined;
    return value === undefined ? {} : { [name]: value };
  };
  const pickId = (name: string) => isId(asText(json[name])) ? { [name]: asText(json[name]) } : {};
  const hasChat = isId(asText(json.conversationId));
  const image: ImageOrigin = {
    prompt,
    ...pickText("profileId"),
    ...(isJsonObject(json.chatModel) && { chatModel: pickChatModel(json.chatModel) }),
    ...pickText("negativePrompt", MAX_PROMPT_CHARS),
    ...["sampler", "scheduler", "checkpoint", "workflowId"].map((name) => pickText(name)).reduce(mergeFields),
    ...["widthPx", "heightPx", "steps", "cfgScale", "seed"].map(pickNumber).reduce(mergeFields),
    ...(isAttachmentName(asText(json.initImage)) && { initImage: asText(json.initImage) }),
    ...pickId("characterId"),
    ...(hasChat && { ...pickId("conversationId"), ...pickId("messageId") }),
  };
  return { name: prompt.slice(0, NAME_LENGTH) || attachment, image, attachment };
}

function pickChatModel({ model, connectionId }: JsonObject): ImageOrigin["chatModel"] {
  return {
    ...(typeof model === "string" && { model: model.slice(0, MAX_NAME_CHARS) }),
    ...(isId(asText(connectionId)) && { connectionId: asText(connectionId) }),
  };
}

function mergeFields<T extends object>(one: T, other: T): T {
  return { ...one, ...other };
}

const WAITED = {
  code: "exported",
  message: "The reply waited for your decision about a tool call when the chat was exported. Regenerate it to be asked",
};
const UNFINISHED = { code: "exported", message: "The reply wasn't finished when the chat was exported" };

/**
 * Ends the replies that were still being written, or waited for a decision, when the chat was exported: only the server
 * that runs a reply can continue it.
 *
 * @returns Whether there were any.
 */
export function endReplies(conversation: ImportedConversation): boolean {
  let hasEnded = false;
  for (const list of [conversation, ...conversation.continuations ?? []]) {
    const open = new Set(list.messages.filter(({ status }) => status === "streaming").map(({ id }) => id));
    if (open.size === 0) continue;
    hasEnded = true;
    const waiting = new Set<string>();
    const messages: ImportedMessage[] = [];
    for (const message of list.messages) {
      const replyId = asText(message.reply_id);
      if (!open.has(replyId)) {
        messages.push(message);
        continue;
      }
      const { message: ended, results, hasWaited } = endCalls(message, list.messages);
      if (hasWaited) waiting.add(replyId);
      messages.push(ended, ...results);
    }
    list.messages = messages.map((message) =>
      open.has(message.id)
        ? { ...message, status: "interrupted", error: waiting.has(message.id) ? WAITED : UNFINISHED }
        : message
    );
  }
  return hasEnded;
}

/** Ends the calls of a message that have no result, like those of a reply that is stopped. */
function endCalls(message: ImportedMessage, messages: readonly ImportedMessage[]) {
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  const results: ImportedMessage[] = [];
  let hasWaited = false;
  const ended = calls.map((call) => {
    if (!isJsonObject(call) || (call.state !== "pending" && call.state !== "running")) return call;
    const isPending = call.state === "pending";
    hasWaited ||= isPending;
    if (!messages.some(({ tool_call_id }) => tool_call_id === call.id)) {
      results.push({
        id: `${message.id.slice(0, 48)}-r${results.length + 1}`,
        role: "tool",
        content: isPending ? UNDECIDED : RESULT_UNKNOWN,
        tool_call_id: call.id,
        reply_id: message.reply_id,
        created_at: message.created_at,
      });
    }
    return { ...call, state: isPending ? "denied" : "unknown", ...(isPending && { decided_by: "system" }) };
  });
  return { message: ended.length === 0 ? message : { ...message, tool_calls: ended }, results, hasWaited };
}
