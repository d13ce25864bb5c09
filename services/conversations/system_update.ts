/** Changes fields of a conversation on the server's own account. */
import type { Database } from "../storage/database/database.ts";
import type { KeyedMutex } from "../async/keyed_mutex.ts";
import type { ConversationHead } from "./conversation.ts";
import type { Conversations } from "./conversations.ts";
import type { ConversationStore } from "./conversation_store.ts";

/** What amending needs. */
export interface AmendParts {
  db: Database;
  store: ConversationStore;
  locks: KeyedMutex;
  conversations: Conversations;
}

/**
 * Changes fields in turn. It is no change of the owner's: it moves no conversation up the list, and there is nothing to
 * restore.
 *
 * @param change Gives the new fields, or `undefined` to leave them.
 */
export function amend(
  { db, store, locks, conversations }: AmendParts,
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
