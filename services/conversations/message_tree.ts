/**
 * The messages of a conversation as a tree, and how they're replaced: changes the tree, plans its blocks, and stores
 * the previous state as a revision. conversation_tree.ts stores the tree.
 */
import type { Message } from "./message.ts";
import { type Continuation, insertContinuations, removeContinuations, ROOT_SEGMENT } from "./conversation_tree.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import type { Statement } from "../storage/database/database.ts";
import { type BlockName, insertMessages, type OpenBlock, removeMids } from "./blocks/block_rows.ts";
import { BLOCK_BYTES, type MessageTexts, pack, type Piece, SMALLEST_GAP } from "./stored_form.ts";
import { isDeepStrictEqual } from "node:util";
import type { BlockStore, OpenTree } from "./blocks/block_store.ts";
import { isReordered, type Touched } from "./revisions/change_log.ts";
import type { ConversationHead, ConversationState } from "./conversation.ts";
import { NO_TEXT_CHANGE, type TextChange } from "./new_messages.ts";
import { deleteMessageRows } from "./conversation_trash.ts";
import type { RevisionCause, RevisionStore } from "./revisions/revision_store.ts";
import type { VariantStore } from "./variants.ts";

/** The messages of a conversation, or of a part of it, as a tree. */
export interface MessageTree {
  /** Messages by segment, in order. Messages after a branch point follow the version that refers to this segment. */
  segments: Map<number, Message[]>;
  continuations: Continuation[];
}

/** A branch point and its location. */
interface Branch {
  segment: number;
  index: number;
  versions: Continuation[];
}

/** Returns the tree of a conversation without versions. */
export function createLinearTree(messages: Message[]): MessageTree {
  return { segments: new Map([[ROOT_SEGMENT, messages]]), continuations: [] };
}

/** Returns the active path that starts with a segment. */
export function getPath(tree: MessageTree, segment = ROOT_SEGMENT): readonly Message[] {
  if (tree.continuations.length === 0) return tree.segments.get(segment) ?? [];
  const branches = listBranches(tree);
  const path: Message[] = [];
  const seen = new Set<number>();
  for (let at: number | undefined = segment; at !== undefined && !seen.has(at);) {
    seen.add(at);
    const messages: Message[] = tree.segments.get(at) ?? [];
    at = undefined;
    for (const message of messages) {
      path.push(message);
      const branch = branches.get(message.id);
      const active = branch?.versions.find(({ isActive }) => isActive);
      if (branch === undefined || active?.segment === branch.segment) continue;
      at = active?.segment;
      break;
    }
  }
  return path;
}

/**
 * Returns the tree with other messages on its active path. Messages that stay retain their versions and continuations.
 * Those that leave lose them.
 */
export function withPath(tree: MessageTree, messages: Message[]): MessageTree {
  if (tree.continuations.length === 0) return createLinearTree(messages);
  const branches = listBranches(tree);
  const next: MessageTree = { segments: new Map(), continuations: [] };
  /** Copies the messages that follow an inactive version, with everything below them. */
  const keep = (from: number, index: number, into: number) => {
    const waiting = [{ from, index, into }];
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
      const messages = (tree.segments.get(one.from) ?? []).slice(one.index);
      getMessages(next, one.into).push(...messages);
      for (const { id } of messages) {
        const branch = branches.get(id);
        for (const version of branch?.versions ?? []) {
          const isHere = version.segment === one.from;
          next.continuations.push(isHere ? { ...version, segment: one.into } : version);
          if (!isHere) waiting.push({ from: version.segment, index: 0, into: version.segment });
        }
      }
    }
  };
  let current = ROOT_SEGMENT;
  getMessages(next, current);
  for (const message of messages) {
    getMessages(next, current).push(message);
    const branch = branches.get(message.id);
    if (branch === undefined) continue;
    let following = current;
    for (const version of branch.versions) {
      const isHere = version.segment === branch.segment;
      const into = isHere ? current : version.segment;
      next.continuations.push({ ...version, segment: into });
      if (version.isActive) following = into;
      else keep(version.segment, isHere ? branch.index + 1 : 0, into);
    }
    current = following;
  }
  return next;
}

/** Returns the ids of all branch points. */
export function branchIds({ continuations }: Pick<MessageTree, "continuations">): Set<string> {
  return new Set(continuations.map(({ mid }) => mid));
}

function getMessages({ segments }: MessageTree, segment: number): Message[] {
  let list = segments.get(segment);
  if (list === undefined) segments.set(segment, list = []);
  return list;
}

function listBranches({ segments, continuations }: MessageTree): Map<string, Branch> {
  const versions = Map.groupBy(continuations, ({ mid }) => mid);
  const branches = new Map<string, Branch>();
  if (versions.size === 0) return branches;
  for (const [segment, messages] of segments) {
    messages.forEach(({ id }, index) => {
      const own = versions.get(id);
      if (own !== undefined) branches.set(id, { segment, index, versions: own });
    });
  }
  return branches;
}

/** Length of the texts handled between two looks at the clock: about 0.1 ms of work. */
const STEP_CHARS = 16 * 1024;

/** One block of the result: an unchanged one, or one to write. */
type Slot = { stays: OpenBlock } | { piece: Piece };

/**
 * Plans the blocks for `messages`. Unchanged blocks stay, in the same order.
 *
 * @param texts Gets the JSON of all messages but those of blocks with the same objects.
 * @param branches Branch points, each of which must be the last message of its block.
 */
export async function planReplacement(
  stored: OpenBlock[],
  messages: Message[],
  texts: MessageTexts,
  branches: ReadonlySet<string>,
): Promise<Slot[]> {
  const starts = new Map(stored.map(({ messages }, index) => [messages[0]?.id, index]));
  const slots: Slot[] = [];
  let from = 0;
  /** Adds blocks for the messages from `from` up to this one. */
  const flush = (end: number) => {
    if (from === end) return;
    const before = slots.at(-1);
    // Otherwise a client that saves the whole conversation after each reply would add a block per reply.
    const isOpen = before !== undefined && "stays" in before && !before.stays.isUnreadable &&
      !branches.has(before.stays.messages.at(-1)!.id);
    if (isOpen) {
      const size = texts.getAll(messages.slice(from, end)).reduce((sum, text) => sum + text.length, 0);
      if (before.stays.text.length + size <= BLOCK_BYTES) {
        slots.pop();
        from -= before.stays.messages.length;
      }
    }
    const written = messages.slice(from, end);
    slots.push(...pack(written, texts.getAll(written), branches).map((piece) => ({ piece })));
  };
  let lastStaying = -1;
  let at = 0;
  let nextStep = STEP_CHARS;
  while (at < messages.length) {
    if (texts.chars >= nextStep) {
      nextStep = texts.chars + STEP_CHARS;
      await yieldIfTickUsedUp();
    }
    const index = starts.get(messages[at]!.id) ?? -1;
    const block = index > lastStaying ? stored[index] : undefined;
    const isSame = block !== undefined && isAt(block, messages, at, texts);
    if (isSame && !block.messages.slice(0, -1).some(({ id }) => branches.has(id))) {
      flush(at);
      slots.push({ stays: block });
      lastStaying = index;
      at += block.messages.length;
      from = at;
    } else texts.get(messages[at++]!);
  }
  flush(at);
  return slots;
}

/** Returns whether the messages from an index on are those of a block. */
function isAt(block: OpenBlock, messages: Message[], at: number, texts: MessageTexts): boolean {
  return block.messages.every((message, n) => message === messages[at + n]) ||
    block.text === texts.getAll(messages.slice(at, at + block.messages.length)).join(",");
}

/**
 * Returns the position of each slot, or `undefined` if two blocks have no gap left between them. Unchanged blocks keep
 * their positions.
 */
export function getPositions(slots: Slot[]): number[] | undefined {
  const positions: number[] = [];
  for (let at = 0; at < slots.length;) {
    const slot = slots[at]!;
    if ("stays" in slot) {
      positions.push(slot.stays.row.position);
      at++;
      continue;
    }
    let end = at;
    while (end < slots.length && "piece" in slots[end]!) end++;
    const count = end - at;
    const next = slots[end];
    const high = next !== undefined && "stays" in next ? next.stays.row.position : undefined;
    const low = positions.at(-1) ?? (high ?? count + 1) - count - 1;
    const step = high === undefined ? 1 : (high - low) / (count + 1);
    if (step < SMALLEST_GAP) return undefined;
    for (; at < end; at++) positions.push(low + step * (count - (end - at) + 1));
  }
  return positions;
}

/**
 * Returns the statements that record which block contains which message. Messages that stay in their block need none.
 */
export function moveMids(
  conversationId: string,
  leaving: OpenBlock[],
  owners: (readonly [mid: string, blockId: number])[],
): Statement[] {
  const before = new Map(leaving.flatMap(({ row, messages }) => messages.map(({ id }) => [id, row.id])));
  const moved: (readonly [string, number])[] = [];
  for (const [mid, blockId] of owners) {
    if (before.get(mid) === blockId) before.delete(mid);
    else moved.push([mid, blockId]);
  }
  return [
    ...(before.size === 0 ? [] : [removeMids(conversationId, [...before.keys()])]),
    ...(moved.length === 0 ? [] : [insertMessages(conversationId, moved)]),
  ];
}

/** Finds the IDs of stored messages whose text has changed. Only compares blocks that are written. */
export async function findChangedIds(
  leaving: OpenBlock[],
  next: ReadonlyMap<number, Message[]>,
  texts: MessageTexts,
  pieces: { piece: Piece }[],
): Promise<Set<string>> {
  if (leaving.length === 0) return new Set();
  const before = new Map(leaving.flatMap(({ messages }) => messages.map((message) => [message.id, message])));
  const written = new Set(pieces.flatMap(({ piece }) => piece.mids));
  const changed = new Set<string>();
  let stepChars = 0;
  for (const message of [...next.values()].flat()) {
    const stored = before.get(message.id);
    if (stored === undefined || stored === message || !written.has(message.id)) continue;
    // Usually the content differs, and comparing it costs nothing.
    const hasOtherContent = typeof stored.content === "string" && stored.content !== message.content;
    if (hasOtherContent || JSON.stringify(stored) !== texts.get(message)) changed.add(message.id);
    stepChars += texts.get(message).length;
    if (stepChars < STEP_CHARS) continue;
    stepChars = 0;
    await yieldIfTickUsedUp();
  }
  return changed;
}

/** A replacement of all messages. The previous state is stored as a revision. */
export interface Replacement {
  /** The stored messages. */
  storedTree: OpenTree;
  head: ConversationHead;
  /** The new messages. */
  tree: MessageTree;
  /** Changes of versions. Defaults to none. */
  texts?: TextChange;
  cause: RevisionCause;
}

/** The tree of a new conversation. */
export const EMPTY_TREE: OpenTree = { segments: new Map(), continuations: [] };

/** Returns the messages of stored blocks. */
export function toMessageTree({ segments, continuations }: OpenTree): MessageTree {
  const lists = [...segments].map(([segment, blocks]) =>
    [segment, blocks.flatMap(({ messages }) => messages)] as const
  );
  return { segments: new Map(lists), continuations };
}

/**
 * Returns the statements that replace one tree with another, and the JSON of the active path unless it's long. The
 * blocks in `retired` remain to be removed.
 */
export async function replaceTree(
  blocks: BlockStore,
  id: string,
  tree: MessageTree,
  storedTree: OpenTree = EMPTY_TREE,
): Promise<
  { statements: Statement[]; retired: BlockName[]; text?: string; touched: Touched; isUnchanged: boolean }
> {
  const replaced = await blocks.replaceSegments(id, tree.segments, branchIds(tree), storedTree.segments);
  const path = getPath(tree);
  const text = replaced.texts && joinTexts(path, replaced.staying, replaced.texts);
  const [before, after] = [storedTree, tree].map(({ continuations }) => continuations.map((row) => Object.values(row)));
  const isSame = isDeepStrictEqual(before!.map(String).sort(), after!.map(String).sort());
  const rows = isSame ? [] : [
    ...(before!.length === 0 ? [] : [removeContinuations(id, [...branchIds(storedTree)])]),
    ...insertContinuations(id, tree.continuations),
  ];
  await yieldIfTickUsedUp();
  const isUnchanged = replaced.isUnchanged && isSame;
  const touched = isUnchanged && path.length > 0
    ? { added: [], changed: [], removed: [], isReordered: false }
    : findTouched(getPath(toMessageTree(storedTree)), path, replaced.changed);
  return { statements: [...replaced.statements, ...rows], retired: replaced.retired, text, touched, isUnchanged };
}

/** Returns the JSON of a path, for unchanged blocks as a whole: a branch point is the last message of its block. */
function joinTexts(path: readonly Message[], staying: OpenBlock[], texts: MessageTexts): string {
  const blocks = new Map(staying.map((block) => [block.messages[0], block]));
  const parts: string[] = [];
  for (let at = 0; at < path.length;) {
    const block = blocks.get(path[at]!);
    parts.push(block?.text ?? texts.get(path[at]!));
    at += block?.messages.length ?? 1;
  }
  return parts.join(",");
}

/** Returns the messages that a replacement of the active path changes. @param changed Ids of stored messages with another text. */
function findTouched(before: readonly Message[], after: readonly Message[], changed: ReadonlySet<string>): Touched {
  if (before.length === 0) return { added: after.map(({ id }) => id) };
  const stored = new Map(before.map((message) => [message.id, message]));
  const staying = new Set(after.map(({ id }) => id));
  const touched = { added: [] as string[], changed: [] as string[] } satisfies Partial<Touched>;
  for (const { id } of after) {
    if (!stored.has(id)) touched.added.push(id);
    else if (changed.has(id)) touched.changed.push(id);
  }
  return {
    ...touched,
    removed: [...stored.keys()].filter((mid) => !staying.has(mid)),
    isReordered: isReordered([...stored.keys()], [...staying]),
  };
}

/**
 * Returns the statements that replace all messages and store the previous ones as a revision, and the JSON of the
 * active path unless it is long.
 */
export async function replaceMessages(
  { blocks, variants, revisions }: { blocks: BlockStore; variants: VariantStore; revisions: RevisionStore },
  before: ConversationState,
  { storedTree, head, tree, texts = NO_TEXT_CHANGE, cause }: Replacement,
): Promise<{ statements: Statement[]; text?: string; touched: Touched }> {
  const replaced = await replaceTree(blocks, before.id, tree, storedTree);
  const { statements, text, isUnchanged } = replaced;
  const touched = withNewVersions(replaced.touched, texts.mids, tree);
  if (isUnchanged && texts.statements.length === 0) {
    const headRevision = isDeepStrictEqual(head, before.head)
      ? []
      : revisions.keep(before, cause, { head: before.head });
    return { statements: [...headRevision, ...statements], text, touched };
  }
  await yieldIfTickUsedUp();
  const staying = new Set(allMessages(tree).map(({ id }) => id));
  const leaving = allMessages(toMessageTree(storedTree)).map(({ id }) => id).filter((id) => !staying.has(id));
  const left = leaving.length === 0 ? [] : await variants.openMany(variants.listRowsOf(before.id, leaving));
  const savedRevision = revisions.keepTree(before, cause, storedTree, {
    variants: [...left, ...texts.replaced],
    retired: replaced.retired,
  });
  const deletions = leaving.length === 0 ? [] : deleteMessageRows(before.id, leaving);
  return { statements: [...savedRevision, ...statements, ...deletions, ...texts.statements], text, touched };
}

/** Returns the change of messages, with those on the active path that got other versions. */
function withNewVersions(touched: Touched, mids: string[], tree: MessageTree): Touched {
  if (mids.length === 0) return { ...touched, changed: touched.changed ?? [] };
  const isTouched = new Set([...touched.added ?? [], ...touched.changed ?? []]);
  const isOnPath = new Set(getPath(tree).map(({ id }) => id));
  const others = mids.filter((mid) => isOnPath.has(mid) && !isTouched.has(mid));
  return { ...touched, changed: [...touched.changed ?? [], ...others] };
}

/** Returns the messages of all segments. */
export function allMessages({ segments }: MessageTree): Message[] {
  return [...segments.values()].flat();
}
