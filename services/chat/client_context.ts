/** Opens the prompt context of a character around the messages of a client that stores the conversation itself. */
import { createHash } from "node:crypto";
import type { ConversationHead } from "../conversations/conversation.ts";
import { textOfContent } from "../conversations/message.ts";
import { parseDocumentUses } from "../documents/document.ts";
import { AppError } from "../errors.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import type { OpenPromptContext } from "../prompts/prompt_context.ts";
import type { PromptMessage, PromptSource } from "../prompts/prompt.ts";
import type { ChatRequest } from "./chat_request.ts";
import type { ReplyContextDeps } from "./reply_context.ts";

/** What a prompt is assembled from. */
export interface ClientContext {
  source: PromptSource;
  scene: OpenPromptContext;
}

/**
 * Opens the context: card, persona, lorebooks, preset and documents of the character, and the client's messages as the history.
 *
 * System messages before the first other message become part of the main prompt. Later ones stay where they are.
 *
 * @param options.head Of the conversation that the reply belongs to. Its persona, lorebooks and preset are used.
 * @throws {AppError} `not_found` if there is no such character, and as `PromptContexts.open`
 */
export async function openClientContext(
  { scenes, uses }: Pick<ReplyContextDeps, "scenes" | "uses">,
  { characterId = "", messages }: ChatRequest,
  { head, model }: { head: ConversationHead | undefined; model: string },
): Promise<ClientContext> {
  const begin = messages.findIndex((message) => !isSystem(message));
  const leading = begin < 0 ? messages : messages.slice(0, begin);
  const turns = messages.slice(leading.length);
  const fields = { ...head, participants: [{ character_id: characterId }] };
  const participants = await scenes.loadParticipants(fields);
  if (participants.length === 0) throw new AppError("not_found", `There is no character "${characterId}"`);
  const conversationId = identify(characterId, turns[0]);
  const scene = await scenes.open({
    conversationId,
    fields,
    participants,
    model,
    messageCount: turns.length,
    action: "reply",
    generation: "normal",
    clientSystem: leading.map(({ content }) => textOfContent(content)).filter((text) => text !== "").join("\n\n"),
  });
  const documents = [
    ...uses.get("character", characterId),
    ...(scene.personaId === undefined ? [] : uses.get("persona", scene.personaId)),
    ...parseDocumentUses(head?.documents),
  ];
  const source: PromptSource = {
    conversationId,
    history: toPromptMessages(turns).reverse(),
    compose: (seen) => scene.compose(seen),
    documents,
  };
  return { source, scene };
}

/**
 * Converts a client's messages to a history, oldest first. Their documents are not part of what is sent, but of how the prompt
 * is assembled.
 */
export function toPromptMessages(messages: readonly ChatMessage[]): PromptMessage[] {
  // Ids by position, so that a trim point is found again in the next, longer request.
  return messages.map(({ documents, attachments: _, ...message }, at) => ({
    id: String(at),
    message,
    ...(message.role === "user" && documents !== undefined && { documents: parseDocumentUses(documents) }),
  }));
}

/** Removes results of tools whose call was trimmed: model servers refuse them. */
export function withoutOrphanedResults(messages: readonly ChatMessage[]): ChatMessage[] {
  const called = new Set<unknown>();
  return messages.filter((message) => {
    if (Array.isArray(message.tool_calls)) { for (const call of message.tool_calls) called.add(call?.id); }
    return message.role !== "tool" || called.has(message.tool_call_id);
  });
}

function isSystem({ role }: ChatMessage): boolean {
  return role === "system" || role === "developer";
}

/**
 * Identifies a conversation of a client by its first message, which stays the same from request to request. So trim points
 * and random choices stay the same, and with them the server's prompt cache.
 */
function identify(characterId: string, first: ChatMessage | undefined): string {
  const hash = createHash("sha256").update(JSON.stringify([characterId, first?.role, textOfContent(first?.content)]));
  return `client ${hash.digest("base64url")}`;
}
