/** Which connection and which model answer a chat request. */
import { AppError } from "../errors.ts";
import type { Connections } from "./connections/connections.ts";
import type { UpstreamClient, UpstreamTarget } from "./upstream_client.ts";
import type { ChatRoute, ChatUpstream } from "../chat/chat_request.ts";

/** For how long the first model of a server's list is used without asking again. */
const LIST_KEPT_MS = 60_000;

/**
 * Makes the chat service's view of the connections: model = request > conversation > profile > first that the server
 * lists; connection = the conversation's if it exists, else the active one. See docs/api.md#chat.
 *
 * @param beforeUse Called with the id of the connection that was chosen, before its address and key are read.
 */
export function createChatUpstream(
  connections: Connections,
  client: UpstreamClient,
  now: () => number,
  beforeUse: (connectionId: string, signal: AbortSignal) => Promise<void> = () => Promise.resolve(),
): ChatUpstream {
  const firstModels = new Map<string, { model: string; untilMs: number }>();

  async function firstModel(target: UpstreamTarget, signal: AbortSignal): Promise<string> {
    const key = `${target.kind} ${target.baseUrl}`;
    const known = firstModels.get(key);
    if (known !== undefined && known.untilMs > now()) return known.model;
    const model = (await client.listModels(target, signal)).data[0]?.id;
    if (model === undefined) {
      throw new AppError(
        "upstream_error",
        `The server at "${target.baseUrl}" lists no model; load one there, or name one`,
      );
    }
    firstModels.set(key, { model, untilMs: now() + LIST_KEPT_MS });
    return model;
  }

  return {
    async route({ model, connectionId, conversationModel }, signal): Promise<ChatRoute> {
      const own = connectionId === undefined ? undefined : connections.find(connectionId);
      const connection = own ?? connections.active();
      if (connection === undefined) {
        throw new AppError("not_available", "No connection to a model is active; add one under Settings, Connections");
      }
      await beforeUse(connection.id, signal);
      const target = connections.targetFor(connection.id);
      return {
        target,
        model: model ?? conversationModel ?? connection.model ?? await firstModel(target, signal),
        connection: { id: connection.id, name: connection.name },
      };
    },
    open: (target, call, signal) => client.openChatStream(target, call, signal),
    complete: (target, call, signal) => client.completeChat(target, call, signal),
  };
}
