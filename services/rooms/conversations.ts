/** Conversations as they are stored, read, edited, forked and brought in; who answers in them is chat.ts. */
import { Arrivals } from "../conversations/conversation_importer.ts";
import { AttachmentReferences } from "../conversations/attachment_references.ts";
import { BlockStore } from "../conversations/blocks/blocks.ts";
import { ChangeLog } from "../conversations/revisions/change_log.ts";
import { type ConversationParts, Conversations } from "../conversations/conversations.ts";
import { ConversationReader } from "../conversations/conversation_reader.ts";
import { ConversationStore } from "../conversations/conversation_store.ts";
import { Forks } from "../conversations/forks.ts";
import { LiveReplies } from "../chat/live_replies.ts";
import { Messages } from "../conversations/messages.ts";
import { recoverReplies } from "../chat/journal/recovery.ts";
import type { Reply } from "../chat/reply.ts";
import { Revisions } from "../conversations/revisions/revisions.ts";
import { RevisionStore } from "../conversations/revisions/revision_store.ts";
import { removedConversations, removedMessages } from "../conversations/trash_kinds.ts";
import { VariantStore } from "../conversations/variants.ts";
import { findCard, greetingsOf, namesOf } from "../characters/greetings.ts";
import { uuidV7 } from "../crypto/random.ts";
import { type LorebookTrial, openTrial } from "../lorebooks/open_lorebooks.ts";
import { estimateTokens } from "../prompts/tokens/token_estimate.ts";
import { settledGreetings } from "../prompts/greetings.ts";
import { KeyedMutex } from "../async/keyed_mutex.ts";
import type { Ground } from "./ground.ts";
import type { Library } from "./library.ts";
import { scannedConversation } from "./conversation_scan.ts";

/** Everything about stored conversations. */
export interface ConversationRoom {
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  reader: ConversationReader;
  /** Replies that are being written. */
  live: LiveReplies<Reply>;
  locks: KeyedMutex;
  conversations: Conversations;
  messages: Messages;
  revisions: Revisions;
  forks: Forks;
  /** Conversations that come from elsewhere. */
  arrivals: Arrivals;
  /** What conversations refer to. */
  references: AttachmentReferences;
  /** Tries lorebooks on conversations and texts. */
  lorebookTrial: LorebookTrial;
}

/** Opens the room. Replies that a killed process was writing are settled before anybody sees one. */
export async function openConversations(ground: Ground, library: Library): Promise<ConversationRoom> {
  const { budget, db, sealer, events, trash, log, now, folders, settings } = ground;
  const { attachments, pictures, personas, characters, userName } = library;
  const conversationSealer = sealer.forPurpose("conversations");
  const store = new ConversationStore(db, conversationSealer);
  const blocks = new BlockStore(db, conversationSealer);
  const variants = new VariantStore(db, conversationSealer);
  const live = new LiveReplies<Reply>();
  const locks = new KeyedMutex();
  const reader = new ConversationReader({ store, blocks, variants, live, budget });
  const references = new AttachmentReferences({
    ...{ db, store, blocks, locks, attachments, log },
    sealer: conversationSealer,
  });
  const parts: ConversationParts = {
    ...{ db, store, blocks, variants, reader, live, locks, events, now, trash, pictures },
    revisions: new RevisionStore(db, conversationSealer, now),
    changes: new ChangeLog(db),
    greetings: async ({ characterId, personaId, isGroup }) => {
      const user = await userName(personaId);
      const card = await findCard(characters, characterId);
      if (card === undefined) return undefined;
      const { texts, groupOnlyFrom } = greetingsOf(card, isGroup);
      const settled = settledGreetings(texts, namesOf(card, user), { seed: uuidV7(), nowMs: now() });
      return { characterId, texts: settled, groupOnlyFrom };
    },
  };
  const conversations = new Conversations(parts);
  trash.register("conversation", removedConversations(parts, conversations));
  trash.register("message", removedMessages(parts, conversations));
  const journal = { journalSealer: sealer.forPurpose("journal"), journalFolder: folders.replies };
  await recoverReplies({ ...{ db, store, conversations, variants, log, now }, ...journal });
  return {
    ...{ store, blocks, variants, reader, live, locks, conversations, references },
    messages: new Messages(parts, conversations),
    revisions: new Revisions(parts, conversations),
    forks: new Forks(parts, conversations),
    arrivals: new Arrivals(parts, conversations),
    lorebookTrial: openTrial(library, {
      countTokens: (text) => Math.ceil(estimateTokens(text)),
      conversation: (id) =>
        scannedConversation(id, {
          ...{ store, blocks, personas, characters, ownerName: userName },
          defaultPersonaId: () => settings.get().settings.default_persona_id,
        }),
    }),
  };
}
