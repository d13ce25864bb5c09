/** Who answers: the owner's connections, the calls to model servers, and which of them a chat goes to. */
import { createChatUpstream } from "../chat/model_choice.ts";
import type { ChatUpstream } from "../chat/chat_request.ts";
import { type Connections, openConnections } from "../llm/connections/connections.ts";
import { createUpstreamClient, type UpstreamClient } from "../llm/upstream_client.ts";
import type { Models } from "../models/models.ts";
import type { CloseHook } from "../async/lazy.ts";
import type { Ground } from "./ground.ts";

/** The connection under which a model that Parlor itself runs can be chosen. */
export const LOCAL_CONNECTION = "local";

/** Everything about the servers of models. */
export interface AnsweringRoom {
  connections: Connections;
  upstream: UpstreamClient;
  /** The same as chats see it. */
  chatUpstream: ChatUpstream;
}

/** @param models Asked only when a chat goes to the model that runs here. */
export async function openAnswering(
  { config, db, sealer, events, now }: Ground,
  models: () => Promise<Models>,
  onClose: (hook: CloseHook) => void,
): Promise<AnsweringRoom> {
  const connections = await openConnections({
    db,
    sealer: sealer.forPurpose("connections"),
    events,
    now,
    timeouts: {
      connectMs: config.upstreamConnectTimeoutMs,
      firstByteMs: config.upstreamFirstByteTimeoutMs,
      idleMs: config.upstreamIdleTimeoutMs,
    },
  });
  const upstream = createUpstreamClient();
  onClose(() => upstream.close());
  const chatUpstream = createChatUpstream(connections, upstream, now, async (id, signal) => {
    if (id === LOCAL_CONNECTION) await (await models()).runner.wake(signal);
  });
  return { connections, upstream, chatUpstream };
}
