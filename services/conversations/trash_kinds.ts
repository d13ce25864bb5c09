/** How removed conversations and messages come back from the trash, or go for good. */
import { AppError } from "../errors.ts";
import type { Statement } from "../storage/database/database.ts";
import type { ConversationParts, Conversations } from "./conversations.ts";
import { putBack, type RemovedMessages } from "./conversation_trash.ts";
import { withTrueSummaryBeside } from "./summary_validity.ts";

/** What the trash keeps of messages. */
export interface RemovedMessagesRecord {
  conversationId: string;
  removed: RemovedMessages;
}

/** A removed conversation stays in its tables, out of everybody's sight; its record is its id. */
export function removedConversations({ db, store, blocks, locks }: ConversationParts, conversations: Conversations) {
  return {
    async restore(record: unknown, takeOut: Statement): Promise<void> {
      const { id } = record as { id: string };
      await locks.run(id, async () => {
        if (store.exists(id)) throw new AppError("conflict", `There is a conversation "${id}" again`);
        await db.write([store.undelete(id), takeOut]);
        conversations.publish(store.getReadable(id).state);
      });
    },
    async purge(record: unknown, takeOut: Statement): Promise<void> {
      const { id } = record as { id: string };
      await locks.run(id, async () => {
        // Back since the entry was read, and the entry with it.
        if (store.exists(id)) return;
        await db.write([takeOut, ...store.remove(id), ...blocks.removeAll(id)]);
      });
    },
  };
}

/** Removed messages lie whole in their record. */
export function removedMessages(parts: ConversationParts, conversations: Conversations) {
  return {
    async restore(record: unknown, takeOut: Statement): Promise<void> {
      const { conversationId: id, removed } = record as RemovedMessagesRecord;
      await parts.locks.run(id, async () => {
        const state = parts.store.find(id);
        if (state === undefined) throw new AppError("conflict", `Its conversation "${id}" is gone`);
        const change = putBack(parts, id, removed);
        const next = change.countOnPath === 0 ? state : withTrueSummaryBeside(parts.blocks, state, removed.place);
        await conversations.write(next, change.countOnPath, change, [takeOut]);
      });
    },
  };
}
