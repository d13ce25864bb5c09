/** The list of chats as the rows it is shown in: pinned ones, folders, then the others by day. */
import type { ConversationSummary } from "../../api/types.ts";
import { groupByDay } from "../../texts/times.ts";

/** One row of the sidebar's list. */
export type ChatListRow =
  | { kind: "heading"; key: string; title: string }
  | { kind: "folder"; key: string; name: string; count: number; isFolded: boolean }
  | { kind: "chat"; key: string; item: ConversationSummary; isInFolder: boolean };

/** Puts the chats (newest first) into rows; the chats of folded folders are left out. */
export function chatRows(
  items: readonly ConversationSummary[],
  options: { folders: readonly string[]; folded: readonly string[]; pinnedTitle: string; now: Date },
): ChatListRow[] {
  const rows: ChatListRow[] = [];
  const chat = (item: ConversationSummary, isInFolder = false) =>
    rows.push({ kind: "chat", key: item.id, item, isInFolder });
  const pinned = items.filter((item) => item.pinned);
  if (pinned.length > 0) {
    rows.push({ kind: "heading", key: "pinned:", title: options.pinnedTitle });
    for (const item of pinned) chat(item);
  }
  const others = items.filter((item) => !item.pinned);
  for (const name of options.folders) {
    const inside = others.filter((item) => item.folder === name);
    const isFolded = options.folded.includes(name);
    // All of a folder may be pinned; it stays in view so that others can be put there.
    rows.push({ kind: "folder", key: `folder:${name}`, name, count: inside.length, isFolded });
    if (!isFolded) { for (const item of inside) chat(item, true); }
  }
  for (const group of groupByDay(others.filter((item) => item.folder === undefined), options.now)) {
    rows.push({ kind: "heading", key: `day:${group.title}`, title: group.title });
    for (const item of group.items) chat(item);
  }
  return rows;
}
