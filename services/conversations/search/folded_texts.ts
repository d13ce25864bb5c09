/**
 * Folded text of conversations that were searched before, so that the next search opens only blocks that may hold a hit.
 *
 * It's in the memory of the search Worker and nowhere else, and goes with the Worker when no one searches for a while.
 */

/** Memory of the folded texts. The text of 100,000 messages takes about 40 MB. */
const MAX_BYTES = 64 * 1024 * 1024;
/** What a block takes besides its text. */
const BLOCK_BYTES = 200;

/** One block of a conversation's active path. */
export interface FoldedBlock {
  id: number;
  version: number;
  segment: number;
  position: number;
  /** The block's JSON, folded. */
  text: string;
  /** Memory of the text. */
  sizeBytes: number;
}

/** A state of a conversation. Each change of its messages raises the revision; an id can be used again after a purge. */
export interface ConversationVersion {
  id: string;
  revision: number;
  created_at: number;
}

interface Entry {
  revision: number;
  createdAt: number;
  blocks: readonly FoldedBlock[];
  bytes: number;
}

/** A cache of limited size, which the most recent conversations fill. */
export class FoldedTexts {
  readonly #maxBytes: number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Returns all blocks of a conversation's active path, newest first. */
  find({ id, revision, created_at }: ConversationVersion): readonly FoldedBlock[] | undefined {
    const entry = this.#entries.get(id);
    return entry?.revision === revision && entry.createdAt === created_at ? entry.blocks : undefined;
  }

  /**
   * Stores all blocks of a conversation, unless there's no space. It drops no other conversation: searches go from the newest to
   * the oldest, so the ones that are in it already are the recent ones, and a longer library would only replace all of it.
   */
  add({ id, revision, created_at: createdAt }: ConversationVersion, blocks: readonly FoldedBlock[]): void {
    this.#bytes -= this.#entries.get(id)?.bytes ?? 0;
    this.#entries.delete(id);
    const bytes = blocks.reduce((sum, { sizeBytes }) => sum + BLOCK_BYTES + sizeBytes, BLOCK_BYTES);
    if (this.#bytes + bytes > this.#maxBytes) return;
    this.#bytes += bytes;
    this.#entries.set(id, { revision, createdAt, blocks, bytes });
  }
}
