/** Which tools go with the requests of a chat. */
import type { ConversationStore } from "../../conversations/conversation_store.ts";
import type { ToolCallStore } from "../../tools/tool_call_store.ts";
import type { ToolOffer, ToolRegistry } from "../../tools/tool_registry.ts";
import type { Tool } from "../../tools/tool_source.ts";
import type { AnyChatRequest } from "../chat_request.ts";

/** Dependencies of `listChatTools`. */
export interface ChatToolsDeps {
  store: ConversationStore;
  /** Opens the tools. */
  registry: () => Promise<ToolRegistry>;
  callStore: ToolCallStore;
}

/** Whether Parlor's own tools go with a request: not if the client has its own, and not if nothing is stored. */
export function takesTools({ params, usesTools }: AnyChatRequest): boolean {
  return usesTools === true && params.tools === undefined;
}

/** Lists the tools for the next request of a chat. Returns undefined if it has none. @throws The reason of `signal`. */
export async function listChatTools(
  { store, registry, callStore }: ChatToolsDeps,
  conversationId: string,
  signal: AbortSignal,
): Promise<ToolOffer | undefined> {
  if (store.find(conversationId)?.head.tools === false) return undefined;
  const offer = await (await registry()).listOffer(signal);
  const isDenied = (tool: Tool) => callStore.findPermission(conversationId, tool) === "deny";
  const isKept = offer.tools.map(({ tool }) => !isDenied(tool));
  const tools = offer.tools.filter((_, n) => isKept[n]);
  if (tools.length === 0 && offer.leftOut.length === 0) return undefined;
  return { ...offer, tools, definitions: offer.definitions.filter((_, n) => isKept[n]) };
}
