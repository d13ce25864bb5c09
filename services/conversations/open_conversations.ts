/** Opens stored conversations: reading, editing, history, forks, import and recovery. Replies are opened by chat/open_chat.ts. */
import type { Attachments } from "../attachments/attachments.ts";
import type { ImagePool } from "../attachments/images/image_pool.ts";
import type { Characters } from "../characters/characters.ts";
import { ConversationImporter } from "./conversation_importer.ts";
import { AttachmentReferences } from "./message_attachments.ts";
import { BlockStore } from "./blocks/block_store.ts";
import { ChangeLog } from "./revisions/change_log.ts";
import { Conversations, type ConversationsDeps } from "./conversations.ts";
import { ConversationReader } from "./conversation_reader.ts";
import { ConversationStreams } from "./conversation_streams.ts";
import { ConversationSummaries } from "./conversation_summaries.ts";
import { ConversationStore } from "./conversation_store.ts";
import { Forks } from "./forks.ts";
import { LiveReplies } from "./live_replies.ts";
import { Messages } from "./messages.ts";
import { recoverReplies } from "../chat/journal/recovery.ts";
import type { Reply } from "../chat/reply.ts";
import { Revisions } from "./revisions/revisions.ts";
import { RevisionStore } from "./revisions/revision_store.ts";
import { conversationTrashKind, messageTrashKind } from "./conversation_trash.ts";
import { VariantStore } from "./variants.ts";
import { expandGreetings, findCharacterCard, listGreetings, toGreetingNames } from "../prompts/greetings.ts";
import { uuidV7 } from "../crypto/random.ts";
import { KeyedMutex } from "../async/locks.ts";
import type { Core } from "../core/open_core.ts";

/** Everything that reads or changes stored conversations. */
export interface ConversationServices {
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  reader: ConversationReader;
  streams: ConversationStreams;
  summaries: ConversationSummaries;
  /** Replies that are being written. */
  live: LiveReplies<Reply>;
  locks: KeyedMutex;
  conversations: Conversations;
  messages: Messages;
  revisions: Revisions;
  forks: Forks;
  /** Imports conversations. */
  conversationImporter: ConversationImporter;
  /** Which attachments the conversations refer to. */
  references: AttachmentReferences;
}

/** Dependencies of `openConversations`. */
export interface ConversationDeps {
  attachments: Attachments;
  images: ImagePool;
  characters: Characters;
  /** Returns the name of a persona, or the owner's. */
  getUserName(personaId?: string): Promise<string>;
}

/** Opens stored conversations. Replies that a killed process was writing are recovered first. */
export async function openConversations(core: Core, deps: ConversationDeps): Promise<ConversationServices> {
  const { budget, db, events, trash, log, now, folders } = core;
  const { attachments, images, characters, getUserName } = deps;
  const sealer = core.sealer.forPurpose("conversations");
  const store = new ConversationStore(db, sealer);
  const blocks = new BlockStore(db, sealer);
  const variants = new VariantStore(db, sealer);
  const live = new LiveReplies<Reply>();
  const locks = new KeyedMutex();
  const reader = new ConversationReader({ store, blocks, variants, live });
  const streams = new ConversationStreams({ reader, store, blocks, variants, live, budget });
  const references = new AttachmentReferences({ db, store, blocks, locks, attachments, sealer, log });
  const parts: ConversationsDeps = {
    db,
    store,
    blocks,
    variants,
    revisions: new RevisionStore(db, sealer, now),
    changes: new ChangeLog(db),
    trash,
    images: { attachments, images },
    reader,
    streams,
    live,
    locks,
    events,
    greetings: async ({ characterId, personaId, isGroup }) => {
      const user = await getUserName(personaId);
      const card = await findCharacterCard(characters, characterId);
      if (card === undefined) return undefined;
      const { texts, groupOnlyFrom } = listGreetings(card, isGroup);
      const settled = expandGreetings(texts, toGreetingNames(card, user), { seed: uuidV7(), nowMs: now() });
      return { characterId, texts: settled, groupOnlyFrom };
    },
    now,
  };
  const conversations = new Conversations(parts);
  trash.register("conversation", conversationTrashKind(parts, conversations));
  trash.register("message", messageTrashKind(parts, conversations));
  await recoverReplies({
    db,
    store,
    conversations,
    variants,
    blocks,
    sealer,
    log,
    now,
    journalSealer: core.sealer.forPurpose("journal"),
    journalFolder: folders.replies,
  });
  return {
    store,
    blocks,
    variants,
    reader,
    streams,
    live,
    locks,
    summaries: new ConversationSummaries({ store, blocks }),
    conversations,
    messages: new Messages(parts, conversations),
    revisions: new Revisions(parts, conversations),
    forks: new Forks(parts, conversations),
    conversationImporter: new ConversationImporter(parts, conversations),
    references,
  };
}
