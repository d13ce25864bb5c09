/** Settles what a killed process left: each reply it was writing holds all text that was journalled and is `interrupted`. */
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database.ts";
import type { Conversations } from "./conversations.ts";
import type { ConversationStore } from "./conversation_store.ts";
import { journalledMessages, readJournal, removeJournal } from "./journal.ts";
import { type Message, textOfContent } from "./message.ts";
import { describe, INTERRUPTED } from "./reply.ts";
import { replyEnded, unendedReplies } from "./reply_rows.ts";

/** What recovery needs. */
export interface RecoveryParts {
  db: Database;
  store: ConversationStore;
  conversations: Conversations;
  journalFolder: string;
  journalSealer: PurposeSealer;
  log: Log;
  now(): number;
}

/** To be called once, before any reply is started. One reply that cannot be recovered keeps its journal and harms no other. */
export async function recoverReplies(parts: RecoveryParts): Promise<void> {
  const { db, store, conversations, journalFolder, journalSealer, log, now } = parts;
  const kept = new Set<string>();
  for (const { mid, conversation_id: id, generation } of unendedReplies(db)) {
    try {
      if (store.find(id) !== undefined) {
        const { text, reasoning } = await readJournal(journalFolder, journalSealer, { messageId: mid, generation });
        const beside = () => [replyEnded(mid, now())];
        await conversations.editMessage(id, mid, (message) => interrupted(message, text, reasoning, now()), {
          byReply: true,
          beside,
        });
      }
    } catch (error) {
      kept.add(mid);
      log("error", "Cannot recover an interrupted reply", { error: describe(error) });
    }
  }
  // Also those of replies that were settled just before the process ended.
  for (const mid of await journalledMessages(journalFolder)) {
    if (!kept.has(mid)) await removeJournal(journalFolder, mid);
  }
}

function interrupted(message: Message, text: string, reasoning: string, now: number): Message {
  return {
    ...message,
    content: text === "" ? message.content : textOfContent(message.content) + text,
    ...(reasoning === "" ? {} : { reasoning: (message.reasoning ?? "") + reasoning }),
    status: "interrupted",
    error: INTERRUPTED,
    updated_at: new Date(now).toISOString(),
  };
}
