/** Imports conversations with all their versions and times, each in one transaction. */
import { createHash } from "node:crypto";
import { type ImagePartsDeps, storeInlineImages } from "../attachments/image_parts.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { type ConversationInput, type ConversationState, parseHead } from "./conversation.ts";
import type { ConversationWriter } from "./conversation_writer.ts";
import { EMPTY_TREE, type MessageTree } from "./message_tree.ts";
import { ROOT_SEGMENT } from "./conversation_tree.ts";
import {
  completeMessage,
  listPinnedIds,
  type Message,
  type MessageContent,
  type MessageInput,
  withPins,
} from "./message.ts";
import type { VariantStore, VariantText } from "./variants.ts";
import type { ConversationStore } from "./conversation_store.ts";
import type { KeyedMutex } from "../async/locks.ts";
import type { Database } from "../storage/database/database.ts";
import type { BlockStore } from "./blocks/block_store.ts";

/** One version of a message. */
export interface TextImport {
  content: MessageContent;
  reasoning?: string;
  model?: string;
  /** ISO 8601, UTC. */
  updated_at?: string;
}

/** A message with all its versions. */
export interface MessageImport extends MessageInput {
  id: string;
  /** All versions, including the active one. Absent if there is only one. */
  variants?: TextImport[];
  active_variant?: number;
}

/** Messages that follow an inactive version. */
export interface ContinuationImport {
  message_id: string;
  /** Number of the version, from 0. */
  n: number;
  /** The path along the active versions. */
  messages: MessageImport[];
}

/** A conversation to import. */
export interface ConversationImport {
  id: string;
  head: ConversationInput;
  /** Hash of the source. Importing the same hash again changes nothing. */
  hash: string;
  createdAtMs?: number;
  updatedAtMs?: number;
  /** The active path. */
  messages: MessageImport[];
  continuations?: ContinuationImport[];
  /** Draft message. Ignored if the conversation already exists. */
  draft?: string;
}

/** State of the conversation before an import: missing, identical, an older state, or changed here. */
export type ConversationImportState = "added" | "present" | "updated" | "changed_here";

/** Number of messages processed between two checks of the clock. */
const STEP_MESSAGES = 100;
/** Field of the head with the hash and the revision of the import. Part of the stored format. */
const ORIGIN = "imported";
/** Maximum number of IDs per source. A new one is used while the earlier ones are in the trash. */
const MAX_IDS = 8;

/** Dependencies of `ConversationImporter`. */
export interface ConversationImporterDeps {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  writer: ConversationWriter;
  locks: KeyedMutex;
  images: ImagePartsDeps;
  now(): number;
}

/** Imports conversations. */
export class ConversationImporter {
  readonly #deps: ConversationImporterDeps;

  constructor(deps: ConversationImporterDeps) {
    this.#deps = deps;
  }

  /** Returns the state that `importConversation` would find. */
  checkState({ id, hash }: Pick<ConversationImport, "id" | "hash">): ConversationImportState {
    return this.#compare(this.#deps.store.find(this.#chooseId(id)), hash);
  }

  #compare(present: ConversationState | undefined, hash: string): ConversationImportState {
    if (present === undefined) return "added";
    const origin = present.head[ORIGIN] as { hash?: string; revision?: number } | undefined;
    if (origin?.hash === hash) return "present";
    return origin?.revision === present.revision ? "updated" : "changed_here";
  }

  /**
   * Imports a conversation, unless it is already there or has changed here since. The previous state is stored as a
   * revision. A copy in the trash stays there, and the import uses a new ID.
   *
   * @throws {AppError} `conflict`, `too_large`, `storage_full`
   */
  async importConversation(input: ConversationImport): Promise<ConversationImportState> {
    const messages = await this.#storeImages(input.messages);
    const continuations: ContinuationImport[] = [];
    for (const continuation of input.continuations ?? []) {
      continuations.push({ ...continuation, messages: await this.#storeImages(continuation.messages) });
    }
    const all = [...messages, ...continuations.flatMap((continuation) => continuation.messages)];
    const id = this.#chooseId(input.id);
    return await this.#deps.locks.run(id, async () => {
      const { store, blocks, db, now } = this.#deps;
      store.refuseRemoved(id); // It may have been deleted since the id was chosen.
      const past = store.find(id);
      const found = this.#compare(past, input.hash);
      if (found === "present" || found === "changed_here") return found;
      const storedTree = past === undefined ? EMPTY_TREE : await blocks.openTree(id);
      this.#deps.writer.refuseCaseClash(id);
      const revision = (past?.revision ?? 0) + 1;
      const nowMs = now();
      const isoNow = new Date(nowMs).toISOString();
      const tree = await buildTree(messages, continuations, isoNow, () => blocks.takeNextId());
      const state: ConversationState = {
        id,
        revision,
        messageCount: messages.length,
        createdAtMs: past?.createdAtMs ?? input.createdAtMs ?? nowMs,
        updatedAtMs: input.updatedAtMs ?? nowMs,
        head: withPins(parseHead({ ...input.head, [ORIGIN]: { hash: input.hash, revision } }), listPinnedIds(all)),
      };
      const { statements, text } = await this.#deps.writer.createReplaceStatements(past, state, { tree, storedTree });
      for (let at = 0; at < all.length; at += STEP_MESSAGES) {
        await yieldIfTickUsedUp();
        const versions = all.slice(at, at + STEP_MESSAGES).flatMap(inactiveVersions);
        for (const statement of this.#deps.variants.restore(id, versions)) statements.push(statement);
      }
      const draft = past === undefined && input.draft ? [store.saveDraft(id, { text: input.draft, version: 1 })] : [];
      await db.write([...statements, ...draft], { isMoved: text === undefined });
      this.#deps.writer.publish(state);
      return found;
    });
  }

  /**
   * Returns the ID for an imported conversation: its own, or a derived one if that is in the trash. IDs are derived
   * from its own, so that importing the same file again finds the same conversation.
   */
  #chooseId(id: string): string {
    const { store } = this.#deps;
    const ids = [id, ...Array.from({ length: MAX_IDS - 1 }, (_, n) => deriveId(id, n + 1))];
    const states = store.findStates(ids);
    return ids.find((candidate) => states.get(candidate) === "present") ??
      ids.find((candidate) => !states.has(candidate)) ?? createUuidV7();
  }

  async #storeImages(messages: MessageImport[]): Promise<MessageImport[]> {
    const { images } = this.#deps;
    const moved: MessageImport[] = [];
    for (const [index, message] of messages.entries()) {
      if (index % STEP_MESSAGES === 0) await yieldIfTickUsedUp();
      const variants: TextImport[] = [];
      for (const text of message.variants ?? []) {
        variants.push({ ...text, content: await storeInlineImages(images, text.content) });
      }
      const content = await storeInlineImages(images, message.content);
      moved.push({ ...message, content, ...(message.variants && { variants }) });
    }
    return moved;
  }
}

function deriveId(id: string, n: number): string {
  return createHash("sha256").update(`${id}\n${n}`).digest("hex").slice(0, 32);
}

/** Divides messages into segments: one for the active path, and one for each continuation of an inactive version. */
async function buildTree(
  messages: MessageImport[],
  continuations: ContinuationImport[],
  now: string,
  newId: () => number,
): Promise<MessageTree> {
  const byMessage = Map.groupBy(continuations, (continuation) => continuation.message_id);
  const tree: MessageTree = { segments: new Map(), continuations: [] };
  const waiting: { segment: number; messages: MessageImport[] }[] = [{ segment: ROOT_SEGMENT, messages }];
  let placed = 0;
  for (let list = waiting.pop(); list !== undefined; list = waiting.pop()) {
    const { segment } = list;
    const segmentMessages: Message[] = [];
    for (const [index, message] of list.messages.entries()) {
      if (index % STEP_MESSAGES === 0) await yieldIfTickUsedUp();
      segmentMessages.push(toMessage(message, now));
    }
    tree.segments.set(segment, segmentMessages);
    for (const { id: mid, active_variant: active = 0, variants = [] } of list.messages) {
      const others = byMessage.get(mid);
      if (others === undefined) continue;
      const numbers = new Set([active, ...others.map(({ n }) => n)]);
      if (numbers.size <= others.length || [...numbers].some((n) => variants[n] === undefined)) {
        throw new AppError("unprocessable", `Message "${mid}" has a continuation of a version that it doesn't have`);
      }
      placed += others.length;
      tree.continuations.push({ mid, n: active, segment, isActive: true });
      for (const { n, messages } of others) {
        const own = newId();
        tree.continuations.push({ mid, n, segment: own, isActive: false });
        waiting.push({ segment: own, messages });
      }
    }
  }
  if (placed < continuations.length) {
    throw new AppError("unprocessable", "The conversation has continuations of messages that it doesn't have");
  }
  return tree;
}

function toMessage({ variants, active_variant, ...message }: MessageImport, now: string): Message {
  const complete = completeMessage(message, message.id, now);
  return variants === undefined
    ? complete
    : { ...complete, variant_count: variants.length, active_variant: active_variant ?? 0 };
}

function inactiveVersions({ id: mid, variants = [], active_variant: active = 0 }: MessageImport): VariantText[] {
  return variants.flatMap(({ content, ...fields }, n) =>
    n === active ? [] : [{ mid, n, record: { content, ...fields, status: "complete" as const } }]
  );
}
