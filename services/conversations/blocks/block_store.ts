/**
 * Changes the blocks of conversations. A sealed block contains about 16 KiB of messages as JSON, in the API's format:
 * an edit rewrites one block, and a list of messages is blocks joined with commas.
 */
import { AppError } from "../../errors.ts";
import { yieldIfTickUsedUp } from "../../async/delay.ts";
import type { Statement } from "../../storage/database/database.ts";
import { branchIds, findChangedIds, getPath, getPositions, moveMids, planReplacement } from "../message_tree.ts";
import {
  type BlockName,
  type BlockRow,
  insertMessages,
  isLost,
  type OpenBlock,
  removeMids,
  retireBlock,
} from "./block_rows.ts";
import type { Touched } from "../revisions/change_log.ts";
import { MessageTexts } from "../stored_form.ts";
import { BlockWriter, type NewBlock } from "./block_writer.ts";
import { getContentText, type Message, toStoredOrder } from "../message.ts";
import {
  type BlockRange,
  type BranchPoint,
  type Continuation,
  insertContinuations,
  type Location,
  removeContinuations,
  toSegmentRange,
} from "../conversation_tree.ts";

/** A change of messages: the statements that write it, and the last message of the conversation after the change. */
export interface BlockChange {
  statements: Statement[];
  last: Message | undefined | "unchanged";
  /** The changed messages, if known. */
  touched?: Touched;
}

/** A change of one message. */
export interface BlockEdit extends BlockChange {
  before: Message;
  /** The changed message; `undefined` if it was removed. */
  after?: Message;
}

/** Maximum number of messages that a switch of versions lists as changed: about 5 ms of work. */
const MAX_NAMED = 400;
const MAX_NAMED_BYTES = 512 * 1024;

/** Maximum length of a text to return. A longer one would be in memory twice. */
const MAX_RETURNED_CHARS = 1024 * 1024;

/** A switch to another version of a message. */
export interface VersionChange extends BlockChange {
  before: Message;
  after: Message;
  /** Number of messages on the active path after the switch. */
  messageCount: number;
}

/** A message that was removed, together with everything after it. */
export interface RemovedSubtree {
  /** The message and the rest of its segment. */
  messages: Message[];
  /** The messages of the segments that followed other versions. */
  segments: { segment: number; messages: Message[] }[];
  continuations: Continuation[];
}

/** All messages of a conversation by segment. */
export interface OpenTree {
  segments: Map<number, OpenBlock[]>;
  continuations: Continuation[];
}

/** The rounds of a reply that are in one block. */
interface RoundsLocation {
  row: BlockRow;
  /** All messages of the block. */
  messages: Message[];
  /** Index of the first round. */
  from: number;
  rounds: Message[];
}

/** The messages before and after other messages. */
export interface Neighbors {
  after?: string;
  before?: string;
  /** Their segment; see conversation_tree.ts. */
  segment?: number;
}

/** Reads and changes the blocks of conversations. Changes are returned as statements for one transaction. */
export class BlockStore extends BlockWriter {
  /** Reads all readable messages of a conversation. The caller holds the conversation's lock. */
  async openReadableTree(conversationId: string): Promise<OpenTree> {
    const continuations = this.getTree(conversationId).listRows();
    return { segments: await this.openReadableSegments(conversationId), continuations };
  }

  /** Reads all messages of a conversation. The caller holds the conversation's lock. */
  async openTree(conversationId: string): Promise<OpenTree> {
    const continuations = this.getTree(conversationId).listRows();
    return { segments: await this.openSegments(conversationId), continuations };
  }

  /**
   * Replaces all messages of a conversation. Unchanged blocks stay.
   *
   * @param next The messages of each segment.
   * @param branches Ids of the branch points.
   * @param storedBlocks All current blocks, from `openTree`.
   * @returns The statements, the blocks that the caller must remove from the conversation first, unchanged blocks, the
   *   texts of the other messages unless all together are long, the IDs of stored messages whose text changed, and
   *   whether nothing changed.
   */
  async replaceSegments(
    conversationId: string,
    next: ReadonlyMap<number, Message[]>,
    branches: ReadonlySet<string> = new Set(),
    storedBlocks: ReadonlyMap<number, OpenBlock[]> = new Map(),
  ): Promise<
    {
      statements: Statement[];
      retired: BlockName[];
      staying: OpenBlock[];
      texts?: MessageTexts;
      changed: Set<string>;
      isUnchanged: boolean;
    }
  > {
    const texts = new MessageTexts();
    const leaving: OpenBlock[] = [];
    const staying: OpenBlock[] = [];
    const moving: Statement[] = [];
    const pieces: Omit<NewBlock, "over">[] = [];
    for (const segment of new Set([...storedBlocks.keys(), ...next.keys()])) {
      const [messages, blocks] = [next.get(segment) ?? [], storedBlocks.get(segment) ?? []];
      const slots = await planReplacement(blocks, messages, texts, branches);
      await yieldIfTickUsedUp();
      const stayingHere = new Set(slots.flatMap((slot) => "stays" in slot ? [slot.stays] : []));
      leaving.push(...blocks.filter((block) => !stayingHere.has(block)));
      staying.push(...stayingHere);
      const positions = getPositions(slots);
      slots.forEach((slot, index) => {
        const position = positions?.[index] ?? (index + 1) * 1024;
        if ("piece" in slot) pieces.push({ piece: slot.piece, segment, position });
        else if (positions === undefined) {
          const { id, version } = slot.stays.row;
          moving.push({
            sql: "UPDATE block SET position = ? WHERE id = ? AND version = ?",
            params: [position, id, version],
          });
        }
      });
    }
    const removable = leaving.filter(({ row }) => !isLost(row));
    const successors = new Map(removable.map(({ row, messages }) => [messages[0]?.id, row]));
    const added = pieces.map((block) => ({ ...block, over: successors.get(block.piece.mids[0]) }));
    const changed = await findChangedIds(leaving, next, texts, pieces);
    await yieldIfTickUsedUp();
    const isLong = staying.reduce((sum, { text }) => sum + text.length, texts.chars) > MAX_RETURNED_CHARS;
    if (isLong) texts.clear(); // The pieces have the texts and free them one by one.
    const written = await this.insertPieces(conversationId, added);
    await yieldIfTickUsedUp();
    const statements = [
      ...moving,
      ...moveMids(conversationId, leaving, written.owners),
      ...written.statements,
    ];
    await yieldIfTickUsedUp();
    return {
      statements,
      retired: removable.map(({ row }) => [row.id, row.version] as const),
      staying,
      changed,
      texts: isLong ? undefined : texts,
      isUnchanged: leaving.length === 0 && added.length === 0,
    };
  }

  /** Adds messages at the end. */
  append(conversationId: string, messages: Message[]): Statement[] {
    const tail = this.findPrevious(conversationId);
    const { segment } = this.getTree(conversationId).path.at(-1)!;
    return this.appendTo(conversationId, segment, tail?.segment === segment ? tail : undefined, messages);
  }

  /**
   * Inserts messages directly after or before another. After a branch point, they follow its active version.
   *
   * @throws {AppError} `not_found`
   */
  insert(conversationId: string, added: Message[], side: "after" | "before", mid: string): BlockChange {
    const tree = this.getTree(conversationId);
    const point = side === "after" ? tree.find(mid) : undefined;
    if (point !== undefined) return this.insertAtStart(conversationId, added, point, point.active);
    const { row, messages, index } = this.#find(conversationId, mid);
    messages.splice(side === "after" ? index + 1 : index, 0, ...added);
    const statements = [
      insertMessages(conversationId, added.map(({ id }) => [id, row.id])),
      ...this.repack(conversationId, row, messages),
    ];
    const last = this.#findLastAfter(conversationId, row, messages);
    const isOnPath = tree.findRangeIndex(row) !== undefined;
    return { statements, last, touched: isOnPath ? { added: added.map(({ id }) => id) } : {} };
  }

  /** Inserts messages directly after a version of a branch point. */
  insertAtStart(conversationId: string, added: Message[], point: BranchPoint, n: number): BlockChange {
    const tree = this.getTree(conversationId);
    const start = tree.findStart(point, n)!;
    const isOnPath = tree.findRangeIndex(point) !== undefined && point.active === n;
    const first = this.nextIn(conversationId, start);
    if (first !== undefined) {
      return this.insert(conversationId, added, "before", this.openMessages(conversationId, first)[0]!.id);
    }
    const tail = start.segment === point.segment ? this.findLiveRow(conversationId, point.mid) : undefined;
    const statements = this.appendTo(conversationId, start.segment, tail, added);
    return isOnPath
      ? { statements, last: added.at(-1), touched: { added: added.map(({ id }) => id) } }
      : { statements, last: "unchanged", touched: {} };
  }

  /**
   * Changes one message, or removes it if `change` returns `undefined`. Use `removeFrom` to remove a branch point.
   *
   * @throws {AppError} `not_found`
   */
  edit(conversationId: string, mid: string, change: (message: Message) => Message | undefined): BlockEdit {
    const { row, messages, index } = this.#find(conversationId, mid);
    const before = messages[index]!;
    const changed = change(before);
    const after = changed && toStoredOrder(changed);
    if (after !== undefined) messages[index] = after;
    else messages.splice(index, 1);
    const statements: Statement[] = after === undefined ? [removeMids(conversationId, [mid])] : [];
    if (messages.length === 0) statements.push(...retireBlock(row));
    else statements.push(...this.repack(conversationId, row, messages));
    const isOnPath = this.getTree(conversationId).findRangeIndex(row) !== undefined;
    const touched = !isOnPath
      ? {}
      : after === undefined
      ? { removed: [mid] } satisfies Touched
      : { changed: [mid] } satisfies Touched;
    return { statements, before, after, touched, last: this.#findLastAfter(conversationId, row, messages) };
  }

  /** Returns the earlier messages of a reply with tools. @throws {AppError} `not_found` */
  getRounds(conversationId: string, mid: string): Message[] {
    return this.#findRounds(conversationId, mid, this.#find(conversationId, mid)).flatMap(({ rounds }) => rounds);
  }

  /**
   * Changes or removes a reply together with the messages of its rounds, which `change` gets and returns as
   * `tool_rounds`. Only changed messages are written.
   *
   * @throws {AppError} `not_found`
   */
  editReply(
    conversationId: string,
    mid: string,
    change: (message: Message) => Message | undefined,
  ): BlockEdit & { messagesAdded: number } {
    const found = this.#find(conversationId, mid);
    const { row, messages, index } = found;
    const locations = this.#findRounds(conversationId, mid, found);
    const rounds = locations.flatMap((location) => location.rounds);
    const before = { ...messages[index]!, ...(rounds.length > 0 && { tool_rounds: rounds }) };
    const { tool_rounds: newRounds = [], ...changed } = change(before) ?? {};
    const after = "id" in changed ? toStoredOrder(changed as Message) : undefined;
    const next = after === undefined ? [] : newRounds.map(toStoredOrder);
    const same = next.findIndex((message, n) => JSON.stringify(message) !== JSON.stringify(rounds[n]));
    const unchangedCount = same < 0 ? next.length : same;
    const [leaving, added] = [rounds.slice(unchangedCount), next.slice(unchangedCount)];
    const statements: Statement[] = [];
    const removed = [...leaving.map(({ id }) => id), ...(after === undefined ? [mid] : [])];
    if (removed.length > 0) statements.push(removeMids(conversationId, removed));
    if (added.length > 0) statements.push(insertMessages(conversationId, added.map(({ id }) => [id, row.id])));
    let last: Message | undefined | "unchanged";
    for (let n = 0, left = unchangedCount; n < locations.length; n++) {
      const location = locations[n]!;
      const staying = Math.min(left, location.rounds.length);
      left -= staying;
      const isLast = n === locations.length - 1;
      if (!isLast && staying === location.rounds.length) continue;
      const rest = [
        ...location.messages.slice(0, location.from + staying),
        ...(isLast ? [...added, ...(after === undefined ? [] : [after]), ...messages.slice(index + 1)] : []),
      ];
      if (rest.length === 0) statements.push(...retireBlock(location.row));
      else statements.push(...this.repack(conversationId, location.row, rest));
      if (isLast) {
        const isEmpty = rest.length === 0;
        last = this.#findLastAfter(
          conversationId,
          row,
          isEmpty ? locations.flatMap(toRemaining(unchangedCount)).slice(-1) : rest,
        );
      }
    }
    // Lists continue to show the previous message until the reply has text.
    if (after?.status === "streaming" && getContentText(after.content) === "") last = "unchanged";
    const isOnPath = this.getTree(conversationId).findRangeIndex(row) !== undefined;
    const [old, fresh] = [new Set(leaving.map(({ id }) => id)), new Set(added.map(({ id }) => id))];
    const touched = isOnPath
      ? {
        changed: [...old.intersection(fresh), ...(after === undefined ? [] : [mid])],
        added: [...fresh.difference(old)],
        removed: removed.filter((id) => !fresh.has(id)),
      } satisfies Touched
      : {};
    const difference = next.length - rounds.length - (after === undefined ? 1 : 0);
    return { statements, before, after, touched, last, messagesAdded: isOnPath ? difference : 0 };
  }

  /** Finds the rounds of a reply, by block. The last block contains the reply itself. */
  #findRounds(
    conversationId: string,
    mid: string,
    { row, messages, index }: { row: BlockRow; messages: Message[]; index: number },
  ): RoundsLocation[] {
    const locations: RoundsLocation[] = [];
    for (let at: BlockRow | undefined = row, all = messages, end = index; at !== undefined;) {
      let from = end;
      while (from > 0 && all[from - 1]!.reply_id === mid) from--;
      locations.unshift({ row: at, messages: all, from, rounds: all.slice(from, end) });
      if (from > 0) break;
      at = this.findPrevious(conversationId, at);
      if (at?.segment !== row.segment) break;
      all = this.findReadableMessages(conversationId, at) ?? [];
      if (all.at(-1)?.reply_id !== mid) break;
      end = all.length;
    }
    return locations;
  }

  /**
   * Activates a version of a message and the messages that follow it. The cost doesn't depend on how many messages
   * follow: at most one block is split, and rows of `continuation` change.
   *
   * @param change Returns the message with the text of version `n` and `active_variant: n`.
   * @param n An existing version, or the next one.
   * @param added Messages that follow a new version.
   * @throws {AppError} `not_found`
   */
  switchVersion(
    conversationId: string,
    mid: string,
    n: number,
    change: (message: Message) => Message,
    added: Message[] = [],
  ): VersionChange {
    const tree = this.getTree(conversationId);
    const { row, messages, index } = this.#find(conversationId, mid);
    const before = messages[index]!;
    const after = messages[index] = toStoredOrder(change(before));
    const point = tree.find(mid);
    const statements = this.repack(conversationId, row, messages, index + 1);
    const segment = point?.segments.get(n);
    const rows: Continuation[] = [];
    if (point === undefined) {
      rows.push({ mid, n: before.active_variant, segment: row.segment, isActive: n === before.active_variant });
    }
    const isKnown = segment !== undefined || rows.some((other) => other.n === n);
    const fresh = isKnown ? undefined : this.takeNextId();
    if (fresh !== undefined) {
      rows.push({ mid, n, segment: fresh, isActive: true });
      statements.push(...this.appendTo(conversationId, fresh, undefined, added));
    }
    if (point !== undefined) {
      statements.push({
        sql: `UPDATE continuation SET is_active = (n = ?3)
              WHERE conversation_id = ?1 AND mid = ?2 AND is_active <> (n = ?3)`,
        params: [conversationId, mid, n],
      });
    }
    statements.push(...insertContinuations(conversationId, rows));
    const following = point === undefined || segment === undefined
      ? []
      : tree.listRangesFrom(tree.findStart(point, n)!);
    const appearing = this.#listFewMids(conversationId, following);
    const leaving = this.#listFewMids(conversationId, tree.listRangesAfter(row));
    const touched = appearing === undefined || leaving === undefined ? undefined : {
      changed: [mid],
      added: [...added.map(({ id }) => id), ...appearing],
      removed: [...messages.slice(index + 1).map(({ id }) => id), ...leaving],
    } satisfies Touched;
    return {
      statements,
      before,
      after,
      touched,
      messageCount: this.countBefore(conversationId, mid) + 1 + added.length +
        this.countIn(conversationId, following),
      last: added.at(-1) ?? this.#findLastIn(conversationId, following) ?? after,
    };
  }

  /**
   * Removes a message and everything after it, including what follows other versions.
   *
   * @throws {AppError} `not_found`
   */
  async removeFrom(
    conversationId: string,
    mid: string,
  ): Promise<BlockChange & { removed: RemovedSubtree; countOnPath: number }> {
    const tree = this.getTree(conversationId);
    const { row, messages, index } = this.#find(conversationId, mid);
    const behind = await this.openRanges(conversationId, [
      { ...toSegmentRange(row.segment), after: row.position },
    ]);
    const staying = messages.slice(0, index);
    const removed = [...messages.slice(index), ...behind.flatMap((block) => block.messages)];
    const rows = behind.map((block) => block.row);
    const onPath = messages.slice(index).map(({ id }) => id);
    const noteOnPath = (blocks: OpenBlock[]) => {
      for (const block of blocks) {
        if (tree.findRangeIndex(block.row) !== undefined) onPath.push(...block.messages.map(({ id }) => id));
      }
    };
    noteOnPath(behind);
    const segments: RemovedSubtree["segments"] = [];
    const continuations: Continuation[] = [];
    const points = tree.listPointsFrom(row);
    for (let point = points.pop(); point !== undefined; point = points.pop()) {
      for (const [n, segment] of point.segments) {
        continuations.push({ mid: point.mid, n, segment, isActive: n === point.active });
        if (segment === point.segment) continue;
        const whole = toSegmentRange(segment);
        const opened = await this.openRanges(conversationId, [whole]);
        noteOnPath(opened);
        rows.push(...opened.map((block) => block.row));
        segments.push({ segment, messages: opened.flatMap((block) => block.messages) });
        points.push(...tree.listPointsFrom({ segment, position: whole.after }));
      }
    }
    const mids = [...removed, ...segments.flatMap((segment) => segment.messages)].map(({ id }) => id);
    const statements = [removeMids(conversationId, mids), ...rows.flatMap(retireBlock)];
    if (continuations.length > 0) statements.push(removeContinuations(conversationId, mids));
    const countOnPath = row.message_count - index + this.countIn(conversationId, tree.listRangesAfter(row));
    if (staying.length === 0) statements.push(...retireBlock(row));
    else statements.push(...this.repack(conversationId, row, staying));
    const last = staying.at(-1) ?? this.findLast(conversationId, row);
    return {
      statements,
      last,
      countOnPath,
      removed: { messages: removed, segments, continuations },
      touched: { removed: onPath },
    };
  }

  /**
   * Restores a subtree at the end of the path that follows a location along the active versions. That is its original
   * position, unless messages were added there.
   *
   * @param home The original segment of `messages`.
   * @param from The location that they followed.
   */
  restoreSubtree(
    conversationId: string,
    { messages, segments, continuations }: RemovedSubtree,
    home: number | undefined,
    from: Location,
  ): BlockChange & { countOnPath: number } {
    const tree = this.getTree(conversationId);
    const leaf = tree.listRangesFrom(from).at(-1)!;
    const branches = branchIds({ continuations });
    const tail = this.findLastIn(conversationId, toSegmentRange(leaf.segment));
    const statements = this.appendBroken(conversationId, leaf.segment, tail, messages, branches);
    for (const { segment, messages } of segments) {
      statements.push(...this.appendBroken(conversationId, segment, undefined, messages, branches));
    }
    const rows = continuations.map((row) => row.segment === home ? { ...row, segment: leaf.segment } : row);
    statements.push(...insertContinuations(conversationId, rows));
    const lists = new Map([...segments.map((one) => [one.segment, one.messages] as const), [leaf.segment, messages]]);
    const path = getPath({ segments: lists, continuations: rows }, leaf.segment);
    const isOnPath = tree.path.at(-1)!.segment === leaf.segment;
    return isOnPath
      ? { statements, countOnPath: path.length, last: path.at(-1), touched: { added: path.map(({ id }) => id) } }
      : { statements, countOnPath: 0, last: "unchanged", touched: {} };
  }

  /** Returns the IDs directly before and after a message. */
  getNeighbors(conversationId: string, mid: string): Neighbors {
    const { row, messages, index } = this.#find(conversationId, mid);
    const next = index + 1 < messages.length ? undefined : this.next(conversationId, row);
    return {
      after: messages[index - 1]?.id ?? this.findLast(conversationId, row)?.id,
      before: messages[index + 1]?.id ?? (next && this.openMessages(conversationId, next)[0]?.id),
      segment: row.segment,
    };
  }

  /**
   * Returns the statements that remove a message from an unreadable block, and delete the block with its last message.
   */
  forgetUnreadable(conversationId: string, row: BlockRow, mid: string): Statement[] {
    const isLast = !isLost(row) && this.listMids(conversationId, row).every((other) => other === mid);
    return [removeMids(conversationId, [mid]), ...(isLast ? retireBlock(row) : [])];
  }

  /** Returns the statements that delete all blocks and message IDs of a conversation. */
  removeAll(conversationId: string): Statement[] {
    return [
      { sql: "DELETE FROM block WHERE conversation_id = ?", params: [conversationId] },
      { sql: "DELETE FROM message WHERE conversation_id = ?", params: [conversationId] },
      { sql: "DELETE FROM continuation WHERE conversation_id = ?", params: [conversationId] },
    ];
  }

  /** Returns a stored message, on or off the active path. @throws {AppError} `not_found` */
  getMessage(conversationId: string, mid: string): Message {
    const { messages, index } = this.#find(conversationId, mid);
    return messages[index]!;
  }

  #find(conversationId: string, mid: string): { row: BlockRow; messages: Message[]; index: number } {
    const row = this.findLiveRow(conversationId, mid);
    const messages = row === undefined ? [] : this.openMessages(conversationId, row);
    const index = messages.findIndex((message) => message.id === mid);
    if (row !== undefined && index >= 0) {
      // Messages stored before versions existed lack both fields.
      const message = messages[index]!;
      message.variant_count ??= 1;
      message.active_variant ??= 0;
      return { row, messages, index };
    }
    throw new AppError("not_found", `Message "${mid}" not found in conversation "${conversationId}"`);
  }

  /** Returns the last message of the path once `row` contains `messages`; `unchanged` if it's in another block. */
  #findLastAfter(conversationId: string, row: BlockRow, messages: Message[]): Message | undefined | "unchanged" {
    const isOnPath = this.getTree(conversationId).findRangeIndex(row) !== undefined;
    if (!isOnPath || this.hasNext(conversationId, row)) return "unchanged";
    return messages.at(-1) ?? this.findLast(conversationId, row);
  }

  /** Returns the last message of the path, or the last one before a block. */
  findLast(conversationId: string, before?: BlockRow): Message | undefined {
    const previous = this.findPrevious(conversationId, before);
    return previous === undefined ? undefined : this.openMessages(conversationId, previous).at(-1);
  }

  #findLastIn(conversationId: string, ranges: readonly BlockRange[]): Message | undefined {
    for (const range of ranges.toReversed()) {
      const row = this.findLastIn(conversationId, range);
      if (row !== undefined) return this.findReadableMessages(conversationId, row)?.at(-1);
    }
    return undefined;
  }

  /** Returns the message IDs of some ranges; `undefined` if there are too many. */
  #listFewMids(conversationId: string, ranges: readonly BlockRange[]): string[] | undefined {
    if (this.countIn(conversationId, ranges) > MAX_NAMED) return undefined;
    const rows = this.listRowsIn(conversationId, ranges);
    if (rows.reduce((sum, { sealed }) => sum + sealed.length, 0) > MAX_NAMED_BYTES) return undefined;
    return rows.flatMap((row) =>
      this.findReadableMessages(conversationId, row)?.map(({ id }) => id) ?? this.listMids(conversationId, row)
    );
  }
}

/** Returns a function that returns the remaining messages of a block if only the first `unchangedCount` rounds stay. */
function toRemaining(unchangedCount: number): (location: RoundsLocation) => Message[] {
  let left = unchangedCount;
  return ({ messages, from, rounds }) => {
    const staying = Math.min(left, rounds.length);
    left -= staying;
    return messages.slice(0, from + staying);
  };
}
