/**
 * Opens the services for stored conversations (reading, editing, history, forks, import and recovery), and implements
 * forks: copies of a conversation up to a message. chat/open_chat.ts opens replies.
 */
import { AttachmentRows } from "../attachments/attachment_rows.ts";
import type { Attachments } from "../attachments/attachments.ts";
import type { ImagePool } from "../attachments/images/image_pool.ts";
import type { Characters } from "../characters/characters.ts";
import { ConversationFiles } from "./conversation_files.ts";
import { ConversationImporter } from "./conversation_importer.ts";
import { AttachmentReferences } from "./message_attachments.ts";
import { BlockStore } from "./blocks/block_store.ts";
import { ChangeLog } from "./revisions/change_log.ts";
import { Conversations, type ConversationsDeps } from "./conversations.ts";
import { ConversationWriter } from "./conversation_writer.ts";
import { ConversationReader } from "./conversation_reader.ts";
import { ConversationStreams } from "./conversation_streams.ts";
import { type ConversationHead, type ConversationState, ConversationSummaries, toLastMessage } from "./conversation.ts";
import { ConversationStore } from "./conversation_store.ts";
import { LiveReplies } from "./live_replies.ts";
import { Messages } from "./messages.ts";
import { recoverReplies, type UnfinishedReplies } from "../chat/journal/recovery.ts";
import type { Reply } from "../chat/reply.ts";
import { Revisions } from "./revisions/revisions.ts";
import { RevisionStore } from "./revisions/revision_store.ts";
import { ConversationTrash, MessageTrash } from "./conversation_trash.ts";
import { Drafts } from "./drafts.ts";
import { MessageQueues } from "./message_queues.ts";
import type { GreetingSource } from "./new_messages.ts";
import type { Database } from "../storage/database/database.ts";
import { VariantStore } from "./variants.ts";
import { expandGreetings, findCharacterCard, listGreetings, toGreetingNames } from "../prompts/participants.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { KeyedMutex, Mutex } from "../async/locks.ts";
import type { Core } from "../core/open_core.ts";
import { AppError } from "../errors.ts";
import { mapChapters, parseChapters, withChapters } from "./chapters.ts";
import { type Message, readPinnedIds, withPins } from "./message.ts";
import { createLinearTree, replaceTree } from "./message_tree.ts";

/** The services that read or change stored conversations. */
export interface ConversationServices {
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  /** Records which messages each revision changed. */
  changes: ChangeLog;
  reader: ConversationReader;
  streams: ConversationStreams;
  summaries: ConversationSummaries;
  /** Running replies. */
  live: LiveReplies<Reply>;
  /** Replies of a killed process that can go on. */
  unfinished: UnfinishedReplies;
  locks: KeyedMutex;
  conversations: Conversations;
  drafts: Drafts;
  /** Messages that wait for the end of a reply. */
  queues: MessageQueues;
  messages: Messages;
  conversationTrash: ConversationTrash;
  conversationWriter: ConversationWriter;
  revisions: Revisions;
  forks: Forks;
  /** Imports conversations. */
  conversationImporter: ConversationImporter;
  /** Tracks which attachments the conversations refer to. */
  references: AttachmentReferences;
  /** Finds the documents and images of conversations. */
  files: ConversationFiles;
}

/** Dependencies of `openConversations`. */
interface ConversationDeps {
  attachments: Attachments;
  images: ImagePool;
  characters: Characters;
  /** Returns the name of a persona, or the owner's. */
  getUserName(personaId?: string): Promise<string>;
  /** See `ConversationsDeps`. */
  choosePersona(characterIds: readonly string[]): Promise<string | undefined>;
}

/** Opens the services. First recovers the replies of a killed process. */
export async function openConversations(core: Core, deps: ConversationDeps): Promise<ConversationServices> {
  const { budget, db, events, trash, log, now, folders, retention } = core;
  const { attachments, images, characters, getUserName, choosePersona } = deps;
  const sealer = core.sealer.forPurpose("conversations");
  const store = new ConversationStore(db, sealer);
  const blocks = new BlockStore(db, sealer);
  const variants = new VariantStore(db, sealer);
  const live = new LiveReplies<Reply>();
  const locks = new KeyedMutex();
  const revisions = new RevisionStore(db, sealer, now, retention);
  const changes = new ChangeLog(db);
  const reader = new ConversationReader({ store, blocks, variants, live, attachments: new AttachmentRows(db) });
  const streams = new ConversationStreams({ reader, store, blocks, variants, live, budget });
  const references = new AttachmentReferences({ db, store, blocks, locks, attachments, sealer, log });
  const writer = new ConversationWriter({ db, store, blocks, variants, revisions, changes, live, locks, events, now });
  const greetings: GreetingSource = async ({ characterId, personaId, isGroup }) => {
    const user = await getUserName(personaId);
    const card = await findCharacterCard(characters, characterId);
    if (card === undefined) return undefined;
    const { texts, groupOnlyFrom } = listGreetings(card, isGroup);
    const settled = expandGreetings(texts, toGreetingNames(card, user), { seed: createUuidV7(), nowMs: now() });
    return { characterId, texts: settled, groupOnlyFrom };
  };
  const common = {
    db,
    store,
    blocks,
    variants,
    writer,
    live,
    locks,
    images: { attachments, images },
    now,
  } satisfies Partial<ConversationsDeps> & { locks: unknown };
  const drafts = new Drafts({ db, store, locks, events });
  const conversationTrash = new ConversationTrash({ ...common, trash, events });
  trash.register("conversation", conversationTrash);
  trash.register("message", new MessageTrash(common));
  const unfinished = await recoverReplies({
    db,
    store,
    conversationWriter: writer,
    variants,
    blocks,
    sealer,
    log,
    now,
    journalSealer: core.sealer.forPurpose("journal"),
    journalFolder: folders.replies,
  });
  return {
    unfinished,
    store,
    blocks,
    variants,
    changes,
    reader,
    streams,
    live,
    locks,
    summaries: new ConversationSummaries({ store, blocks }),
    conversationWriter: writer,
    conversations: new Conversations({ ...common, drafts, streams, greetings, choosePersona }),
    drafts,
    queues: new MessageQueues({ db, store, blocks, locks, events, now }),
    conversationTrash,
    messages: new Messages({ ...common, revisions, trash, greetings }),
    revisions: new Revisions({ ...common, revisions }),
    forks: new Forks(common),
    conversationImporter: new ConversationImporter(common),
    references,
    files: new ConversationFiles({ db, store, blocks }),
  };
}

/** The origin of a fork. */
interface ForkedFrom {
  conversation_id: string;
  /** Id of the last copied message in the origin. */
  message_id: string;
}

/** A conversation linked by a fork. */
interface Branch extends ForkedFrom {
  title: string;
  updated_at: string;
  message_count: number;
}

/** Response of `GET …/branches`. */
interface Branches {
  /** The original conversation, if it still exists. `message_id` is the last common message. */
  origin: Branch | null;
  /**
   * Its forks, the most recently changed first. `message_id` is the ID of the last common message in this conversation.
   */
  forks: Branch[];
}

/** Number of heads decrypted at the same time. */
const MAX_OPEN_HEADS = 64;

/** Dependencies of `Forks`. */
interface ForksDeps {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  writer: ConversationWriter;
  live: LiveReplies;
  locks: KeyedMutex;
  now(): number;
}

/** Forks conversations at a message, and finds the forks of a conversation. */
class Forks {
  readonly #deps: ForksDeps;
  /** Origins by conversation. A head is decrypted again only after its revision changed. */
  #known = new Map<string, { revision: number; from: ForkedFrom | undefined }>();
  readonly #scanLock = new Mutex();

  constructor(deps: ForksDeps) {
    this.#deps = deps;
  }

  /**
   * Copies a conversation up to and including a message, with new ids. A running reply is copied with its text so far.
   *
   * @param forkId A new id.
   * @returns The id of the fork.
   * @throws {AppError} `not_found`
   */
  fork(id: string, mid: string, forkId = createUuidV7()): Promise<string> {
    const { db, store, blocks, variants, writer, live, locks, now } = this.#deps;
    return locks.run(id, async () => {
      const origin = store.get(id);
      const stored = (await blocks.openPath(id)).flatMap((block) => block.messages);
      blocks.requireOnPath(id, mid);
      const end = stored.findIndex((message) => message.id === mid);
      if (end < 0) throw new AppError("not_found", `Message "${mid}" not found in conversation "${id}"`);
      const copied = stored.slice(0, end + 1);
      const newIds = new Map(copied.map((message) => [message.id, createUuidV7()]));
      const tree = blocks.getTree(id);
      // Versions with continuations aren't copied.
      const isBranch = (mid: string) => tree.find(mid) !== undefined;
      const messages = copied.map((message) => ({
        ...asStopped(id, message, live),
        ...(isBranch(message.id) && { variant_count: 1, active_variant: 0 }),
        ...(message.reply_id !== undefined && { reply_id: newIds.get(message.reply_id) }),
        id: newIds.get(message.id)!,
      }));
      const mids = copied.map((message) => message.id).filter((mid) => !isBranch(mid));
      const texts = variants.listTexts(id, mids).map((text) => ({
        ...text,
        mid: newIds.get(text.mid)!,
      }));
      const state: ConversationState = {
        id: forkId,
        revision: 1,
        createdAtMs: now(),
        updatedAtMs: now(),
        messageCount: messages.length,
        head: copyHead(origin.head, newIds, { conversation_id: id, message_id: mid }),
      };
      const { statements } = await replaceTree(blocks, state.id, createLinearTree(messages));
      await db.write([
        store.insert(state, toLastMessage(messages.at(-1)), messages[0]),
        ...statements,
        ...variants.restore(state.id, texts),
      ]);
      writer.publish(state);
      return state.id;
    });
  }

  /** Finds the origin and the forks of a conversation. @throws {AppError} `not_found` */
  async listBranches(id: string): Promise<Branches> {
    const { store } = this.#deps;
    store.get(id);
    const copies = await this.#findForks(id);
    const from = forkedFrom(store.get(id).head);
    const origin = from === undefined ? undefined : store.find(from.conversation_id);
    return {
      origin: from === undefined || origin === undefined ? null : toBranch(origin, from.message_id),
      forks: copies.flatMap((fork) => {
        const state = store.find(fork.id);
        return state === undefined ? [] : [toBranch(state, fork.message_id)];
      }),
    };
  }

  async #findForks(id: string): Promise<{ id: string; message_id: string }[]> {
    // One scan at a time, because each reuses what the previous one decrypted.
    await this.#scanLock.run(() => this.#scan());
    return this.#deps.store.listRevisions().flatMap(({ id: copy }) => {
      const from = this.#known.get(copy)?.from;
      return from?.conversation_id === id ? [{ id: copy, message_id: from.message_id }] : [];
    });
  }

  /** Decrypts the heads that changed since the last scan, off the serving thread and a few at a time. */
  async #scan(): Promise<void> {
    const { store } = this.#deps;
    const present = store.listRevisions();
    const ids = new Set(present.map(({ id }) => id));
    for (const id of this.#known.keys()) if (!ids.has(id)) this.#known.delete(id);
    const changed = present.filter(({ id, revision }) => this.#known.get(id)?.revision !== revision);
    for (let at = 0; at < changed.length; at += MAX_OPEN_HEADS) {
      const rows = store.listHeads(changed.slice(at, at + MAX_OPEN_HEADS).map(({ id }) => id));
      await Promise.all(rows.map(async (row) => {
        // An unreadable conversation doesn't fail the scan.
        const head = await store.openHead(row).catch(() => undefined);
        this.#known.set(row.id, { revision: row.revision, from: head && forkedFrom(head) });
      }));
    }
  }
}

function asStopped(id: string, message: Message, live: LiveReplies): Message {
  const reply = live.findByMessage(id, message.id);
  if (reply === undefined) return message;
  const { error: _, ...written } = reply.withLiveText(message);
  return { ...written, status: "stopped" };
}

/** Copies a head. Message IDs become those of the copies. */
function copyHead(head: ConversationHead, newIds: Map<string, string>, from: ForkedFrom): ConversationHead {
  const chapters = mapChapters(parseChapters(head), newIds);
  const pinned = readPinnedIds(head).flatMap((id) => newIds.get(id) ?? []);
  const { summary, ...copy } = withPins(head, pinned);
  // A summary without chapters retains its other fields.
  const whole = head.chapters === undefined && chapters.length === 1
    ? { ...copy, summary: { ...summary as object, up_to_message_id: chapters[0]!.up_to_message_id } }
    : withChapters(copy as ConversationHead, chapters);
  return { ...whole as ConversationHead, forked_from: from };
}

function forkedFrom(head: ConversationHead): ForkedFrom | undefined {
  const from = head.forked_from as Partial<ForkedFrom> | undefined;
  if (typeof from?.conversation_id !== "string" || typeof from.message_id !== "string") return undefined;
  return { conversation_id: from.conversation_id, message_id: from.message_id };
}

function toBranch(state: ConversationState, messageId: string): Branch {
  return {
    conversation_id: state.id,
    message_id: messageId,
    title: state.head.title,
    updated_at: new Date(state.updatedAtMs).toISOString(),
    message_count: state.messageCount,
  };
}
