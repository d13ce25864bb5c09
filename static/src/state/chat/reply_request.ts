/** What is asked of the server for one reply. */
import { timeZone } from "../../api/conversations.ts";
import type { ChatOptions, ChatRequest, ContentPart, Message } from "../../api/types.ts";
import { toRequestMessages } from "./message_text.ts";

/** What a request says of itself beside its ids. */
export type ReplyParams = Pick<ChatRequest, "action" | "user_message_id" | "character_id">;

/** Gives a request that belongs to a stored conversation: the server knows what was said before the turn. */
export function buildStoredRequest(
  conversationId: string,
  messageId: string,
  asked: ReplyParams,
  turn: Message | undefined,
): ChatRequest {
  return {
    conversation_id: conversationId,
    assistant_message_id: messageId,
    stream: true,
    context: "server",
    messages: turn ? [{ role: turn.role, content: turn.content }] : [],
    time_zone: timeZone(),
    ...asked,
  };
}

/** Gives a request that belongs to nothing: nobody but this page knows the messages, so all of them go along. */
export function buildTemporaryRequest(messages: readonly Message[], options: ChatOptions): ChatRequest {
  const { model, params, system_prompt: system } = options;
  const prompt = system ? [{ role: "system", content: system }] : [];
  return { ...params, model: model ?? undefined, messages: [...prompt, ...toRequestMessages(messages)], stream: true };
}

/** Gives what a turn holds. @param images Addresses of pictures. */
export function buildContent(text: string, images: readonly string[]): string | ContentPart[] {
  if (images.length === 0) return text;
  const parts: ContentPart[] = images.map((url) => ({ type: "image_url", image_url: { url } }));
  return text === "" ? parts : [{ type: "text", text }, ...parts];
}

const OPTIONS = [
  ...["connection_id", "model", "system_prompt", "params", "note", "persona_id"],
  ...["lorebook_ids", "preset_id", "participants", "reply_order", "summary"],
];

/** Gives what a chat sets for itself, without what it leaves open. */
export function pickOptions(from: ChatOptions): ChatOptions {
  const isSet = ([name, value]: [string, unknown]) => OPTIONS.includes(name) && (value ?? undefined) !== undefined;
  return Object.fromEntries(Object.entries(from).filter(isSet));
}
