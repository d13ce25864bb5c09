/** Changes fields of a conversation on behalf of the server, not the user. */
import type { KeyedMutex } from "../async/locks.ts";
import type { Database } from "../storage/database/database.ts";
import type { ConversationHead } from "./conversation.ts";
import type { Conversations } from "./conversations.ts";
import type { ConversationStore } from "./conversation_store.ts";

/** Dependencies of `updateHead`. */
export interface UpdateHeadDeps {
  db: Database;
  store: ConversationStore;
  locks: KeyedMutex;
  conversations: Conversations;
}

/**
 * Changes fields under the conversation's lock. The conversation keeps its place in lists, and no past state is stored.
 *
 * @param change Returns the new fields, or `undefined` to leave them.
 */
export function updateHead(
  { db, store, locks, conversations }: UpdateHeadDeps,
  id: string,
  change: (head: ConversationHead) => ConversationHead | undefined,
): Promise<void> {
  return locks.run(id, async () => {
    const state = store.find(id);
    const head = state && change(state.head);
    if (state === undefined || head === undefined) return;
    const next = { ...state, revision: state.revision + 1, head };
    await db.write([
      store.update(next, store.summary(id)?.snippet ?? ""),
      ...conversations.changes.record(id, next.revision, {}),
    ]);
    conversations.publish(next);
  });
}
