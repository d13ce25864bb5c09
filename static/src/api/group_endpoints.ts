/** The calls about chats of several characters. */
import type { ApiClient } from "./client.ts";

/** Lets a character who takes part in a chat say a greeting at its end. @throws {ApiError} */
export async function greet(client: ApiClient, conversationId: string, characterId: string): Promise<void> {
  const path = `/api/conversations/${encodeURIComponent(conversationId)}/greeting`;
  await (await client.send("POST", path, { body: { character_id: characterId } })).body?.cancel();
}
