/** Settles what a killed process left: each reply it was writing holds all text that was journalled and is `interrupted`. */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { traceOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import { settleAttempt } from "../reply_saver.ts";
import type { Conversations } from "../../conversations/conversations.ts";
import type { ConversationStore } from "../../conversations/conversation_store.ts";
import type { JournalBatch } from "./journal.ts";
import { readJournal, removeJournals } from "./journal_reader.ts";
import { type Message, textOfContent } from "../../conversations/message.ts";
import { endReplyRow, findUnendedReplies } from "../../conversations/reply_rows.ts";
import { INTERRUPTED } from "../reply_source.ts";
import type { VariantStore } from "../../conversations/variants.ts";

/** What recovery needs. */
export interface RecoveryDeps {
  db: Database;
  store: ConversationStore;
  conversations: Conversations;
  variants: VariantStore;
  journalFolder: string;
  journalSealer: PurposeSealer;
  log: Log;
  now(): number;
}

/** To be called once, before any reply is started. One reply that cannot be recovered keeps the journal and harms no other. */
export async function recoverReplies(parts: RecoveryDeps): Promise<void> {
  const { db, store, conversations, variants, journalFolder, journalSealer, log, now } = parts;
  const unended = findUnendedReplies(db);
  const runs = unended.map(({ mid, generation }) => ({ messageId: mid, generation }));
  let journalled: Map<string, JournalBatch>;
  try {
    journalled = await readJournal(journalFolder, journalSealer, runs);
  } catch (error) {
    // Settled now they would be without what was seen of them; the next start may be able to read it.
    log("error", "Can't recover the interrupted replies", { error: traceOf(error) });
    return;
  }
  let areAllSettled = true;
  for (const { mid, conversation_id: id, generation, previous_variant: previous } of unended) {
    try {
      if (store.find(id) !== undefined) {
        const { text, reasoning } = journalled.get(generation)!;
        const beside: Statement[] = [endReplyRow(id, mid, now())];
        await conversations.editMessage(id, mid, (before) => {
          const attempt = interrupted(before, text, reasoning, now());
          const { message, statements } = settleAttempt(variants, id, attempt, previous, attempt.updated_at);
          beside.push(...statements);
          return message;
        }, { byReply: true, beside: () => beside });
      }
    } catch (error) {
      areAllSettled = false;
      log("error", "Can't recover an interrupted reply", { error: traceOf(error) });
    }
  }
  if (areAllSettled) await removeJournals(journalFolder);
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
