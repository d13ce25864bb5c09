/** Plans how blocks are replaced when a conversation gets another list of messages, so that unchanged blocks stay. */
import { isTickUsedUp, yieldToEventLoop } from "../../async/delay.ts";
import type { Statement } from "../../storage/database/database.ts";
import { insertMessages, type OpenBlock, removeMids } from "./block_rows.ts";
import { BLOCK_BYTES, pack, type Piece } from "./block_text.ts";
import type { Message } from "../message.ts";

/** One block of the result: one that stays, or one to write. */
export type Slot = { stays: OpenBlock } | { piece: Piece };

/** Smallest gap between two positions. Below it, a position between them wouldn't differ from both. */
export const SMALLEST_GAP = 1e-6;

/**
 * Plans the blocks for `messages`. Blocks that stay keep their order.
 *
 * @param texts The JSON of each message.
 * @param branches Branch points, each of which has to be the last of its block.
 */
export async function planReplacement(
  stored: OpenBlock[],
  messages: Message[],
  texts: string[],
  branches: ReadonlySet<string>,
): Promise<Slot[]> {
  const starts = new Map(stored.map(({ messages }, index) => [messages[0]?.id, index]));
  const slots: Slot[] = [];
  let from = 0;
  /** Adds blocks for the messages from `from` up to this one. */
  const flush = (end: number) => {
    if (from === end) return;
    const before = slots.at(-1);
    // Otherwise a page that saves the whole conversation after each reply would add a block per reply.
    const isOpen = before !== undefined && "stays" in before && !before.stays.isUnreadable &&
      !branches.has(before.stays.messages.at(-1)!.id);
    if (isOpen) {
      const size = texts.slice(from, end).reduce((sum, text) => sum + text.length, 0);
      if (before.stays.text.length + size <= BLOCK_BYTES) {
        slots.pop();
        from -= before.stays.messages.length;
      }
    }
    slots.push(...pack(messages.slice(from, end), texts.slice(from, end), branches).map((piece) => ({ piece })));
  };
  let lastStaying = -1;
  let at = 0;
  while (at < messages.length) {
    if (isTickUsedUp()) await yieldToEventLoop();
    const index = starts.get(messages[at]!.id) ?? -1;
    const block = index > lastStaying ? stored[index] : undefined;
    const isSame = block?.text === texts.slice(at, at + (block?.messages.length ?? 0)).join(",");
    if (block !== undefined && isSame && !block.messages.slice(0, -1).some(({ id }) => branches.has(id))) {
      flush(at);
      slots.push({ stays: block });
      lastStaying = index;
      at += block.messages.length;
      from = at;
    } else at++;
  }
  flush(at);
  return slots;
}

/** Returns the position of each slot. Blocks that stay keep theirs. `undefined` if two blocks have no gap between them. */
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

/** Statements that record which block holds which message. Messages that stay in their block need none. */
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

/** Finds the ids of messages that were stored and have another text now. Compares only blocks that are written. */
export async function findChangedIds(
  leaving: OpenBlock[],
  next: ReadonlyMap<number, Message[]>,
  texts: ReadonlyMap<Message, string>,
  pieces: { piece: Piece }[],
): Promise<Set<string>> {
  if (leaving.length === 0) return new Set();
  const before = new Map(leaving.flatMap(({ messages }) => messages.map((message) => [message.id, message])));
  const written = new Set(pieces.flatMap(({ piece }) => piece.mids));
  const changed = new Set<string>();
  for (const message of [...next.values()].flat()) {
    const stored = before.get(message.id);
    if (stored === undefined || !written.has(message.id)) continue;
    // Usually the content differs, and comparing that costs nothing.
    const hasOtherContent = typeof stored.content === "string" && stored.content !== message.content;
    if (hasOtherContent || JSON.stringify(stored) !== texts.get(message)) changed.add(message.id);
    if (isTickUsedUp()) await yieldToEventLoop();
  }
  return changed;
}
