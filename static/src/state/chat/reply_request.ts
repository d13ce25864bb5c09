/** Builds the request for one reply. */
import { getTimeZone } from "../../api/conversations.ts";
import type { ChatOptions, ChatRequest, ContentPart, Message } from "../../api/types.ts";
import { toRequestMessages } from "./message_text.ts";

/** The content of a request, besides its ids. */
export type ReplyParams =
  & Pick<ChatRequest, "action" | "user_message_id" | "character_id" | "next_speakers" | "connection_id" | "model">
  & { context_size?: number };

/** Builds a request of a stored conversation; the server has its messages. */
export function buildStoredRequest(
  conversationId: string,
  messageId: string,
  params: ReplyParams,
  turn: Message | undefined,
): ChatRequest {
  return {
    conversation_id: conversationId,
    assistant_message_id: messageId,
    stream: true,
    context: "server",
    messages: turn ? [toRequestMessage(turn)] : [],
    time_zone: getTimeZone(),
    ...params,
  };
}

/** Builds a request of a temporary chat with all its messages: the server has none. */
export function buildTemporaryRequest(
  messages: readonly Message[],
  options: ChatOptions,
  asked: ReplyParams,
): ChatRequest {
  // The context limit is for prompts that Parlor builds.
  const { context_size: _, ...params } = options.params ?? {};
  const system = options.system_prompt;
  const prompt = system ? [{ role: "system", content: system }] : [];
  return {
    ...params,
    connection_id: asked.connection_id ?? options.connection_id ?? undefined,
    model: asked.model ?? options.model ?? undefined,
    messages: [...prompt, ...toRequestMessages(messages)],
    stream: true,
  };
}

/** Returns the parameters with one changed; undefined removes it. `null` means no parameters. */
export function withParam(params: ChatOptions["params"], name: string, value: unknown): ChatOptions["params"] {
  const { [name]: _, ...others } = params ?? {};
  const changed = value === undefined ? others : { ...others, [name]: value };
  return Object.keys(changed).length === 0 ? null : changed;
}

/** Builds the content of a user message. @param images Their URLs. */
export function buildContent(text: string, images: readonly string[]): string | ContentPart[] {
  if (images.length === 0) return text;
  const parts: ContentPart[] = images.map((url) => ({ type: "image_url", image_url: { url } }));
  return text === "" ? parts : [{ type: "text", text }, ...parts];
}

const OPTIONS = [
  ...["connection_id", "model", "system_prompt", "params", "note", "persona_id"],
  ...[
    "lorebook_ids",
    "preset_id",
    "participants",
    "reply_order",
    "summary",
    "chapters",
    "documents",
    "tools",
    "learn",
    "background",
  ],
];

/** Picks the options that a chat sets. */
export function pickOptions(from: ChatOptions): ChatOptions {
  const isSet = ([name, value]: [string, unknown]) => OPTIONS.includes(name) && (value ?? undefined) !== undefined;
  return Object.fromEntries(Object.entries(from).filter(isSet));
}

function toRequestMessage({ role, content, documents, attachments }: Message) {
  return { role, content, documents: documents?.map(toUse), attachments };
}

/** Removes `sent`, which the server records. */
function toUse({ id, use, pages }: NonNullable<Message["documents"]>[number]) {
  return { id, use, pages };
}
