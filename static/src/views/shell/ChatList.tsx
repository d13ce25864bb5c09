/** The chats in the sidebar. */
import { useState } from "preact/hooks";
import type { ConversationSummary } from "../../api/types.ts";
import { Icon } from "../../components/Icon.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { useMedia } from "../../components/hooks.ts";
import { VirtualList } from "../../components/lists/VirtualList.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { groupByDay } from "../../texts/format.ts";
import { ChatRow } from "./ChatRow.tsx";
import { WIDE_QUERY } from "./PageHeader.tsx";

const ChatSelection = lazy(() => import("./ChatSelection.tsx").then((file) => file.ChatSelection), { as: "overlay" });
const ChatDialog = lazy(() => import("./ChatDialogs.tsx").then((file) => file.ChatDialog), { as: "overlay" });

/** Heights of rows in px; the second on touch screens. Defined here because a virtual list needs them. */
const ROW_PX = { fine: { chat: 52, folder: 36, heading: 36 }, coarse: { chat: 52, folder: 44, heading: 38 } };

/** The open dialog of a chat. */
interface Question {
  kind: "rename" | "folder";
  item: ConversationSummary;
}

/** The list, or why there is none. */
export function ChatList() {
  const { chats, device, router } = useStore();
  const [question, setQuestion] = useState<Question>();
  const heights = ROW_PX[useMedia("(pointer: coarse)") ? "coarse" : "fine"];
  const error = chats.error.value;
  const screen = router.screen.value;
  const hasSnippets = useMedia(WIDE_QUERY);
  if (chats.state.value === "failed" && error) {
    return (
      <div class="chat-list">
        <ErrorNote title={texts.nav.failed} error={error} onRetry={() => void chats.refresh()} />
      </div>
    );
  }
  const items = chats.shown.value;
  const rows = listRows(items, {
    folders: chats.folders.value,
    folded: device.foldedFolders.value,
    pinnedTitle: texts.nav.pinned,
    now: new Date(),
  });
  const order = rows.flatMap((row) => row.kind === "chat" ? [row.item.id] : []);
  return (
    <div class="chats">
      <h2 class="visually-hidden">{texts.nav.chats}</h2>
      {chats.selection.isActive.value && <ChatSelection order={order} />}
      <VirtualList
        class="chat-list"
        label={texts.nav.chats}
        items={rows}
        keyOf={(row) => row.key}
        heightOf={(row) => heights[row.kind]}
        showKey={screen.name === "chat" ? screen.conversationId : undefined}
        before={chats.state.value === "ready" && items.length === 0 && <p class="chat-list-empty">{texts.nav.none}</p>}
      >
        {(row) => <Row row={row} order={order} hasSnippets={hasSnippets} onAsk={setQuestion} />}
      </VirtualList>
      {question && <ChatDialog {...question} onClose={() => setQuestion(undefined)} />}
    </div>
  );
}

function Row(
  { row, order, hasSnippets, onAsk }: {
    row: ChatListRow;
    order: readonly string[];
    hasSnippets: boolean;
    onAsk: (question: Question) => void;
  },
) {
  const { device } = useStore();
  if (row.kind === "chat") {
    return (
      <ChatRow
        item={row.item}
        order={order}
        isInFolder={row.isInFolder}
        hasSnippet={hasSnippets}
        onRename={() => onAsk({ kind: "rename", item: row.item })}
        onFile={() => onAsk({ kind: "folder", item: row.item })}
      />
    );
  }
  if (row.kind === "heading") return <h3 class="chat-list-heading">{row.title}</h3>;
  const fold = () => {
    const others = device.foldedFolders.value.filter((name) => name !== row.name);
    device.foldedFolders.value = row.isFolded ? others : [...others, row.name];
  };
  return (
    <h3 class="chat-list-folder">
      <button type="button" class="nav-row" aria-expanded={!row.isFolded} onClick={fold}>
        <Icon name="folder" />
        <span class="chat-title">{row.name}</span>
        <span class="count" aria-label={texts.nav.chatCount(row.count)}>{row.count}</span>
      </button>
    </h3>
  );
}

/** One row of the list. */
type ChatListRow =
  | { kind: "heading"; key: string; title: string }
  | { kind: "folder"; key: string; name: string; count: number; isFolded: boolean }
  | { kind: "chat"; key: string; item: ConversationSummary; isInFolder: boolean };

/** Arranges the chats (newest first) in rows, without those of collapsed folders. */
function listRows(
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
    // All chats of a folder may be pinned; it stays visible so that others can be moved there.
    rows.push({ kind: "folder", key: `folder:${name}`, name, count: inside.length, isFolded });
    if (!isFolded) { for (const item of inside) chat(item, true); }
  }
  for (const group of groupByDay(others.filter((item) => item.folder === undefined), options.now)) {
    rows.push({ kind: "heading", key: `day:${group.title}`, title: group.title });
    for (const item of group.items) chat(item);
  }
  return rows;
}
