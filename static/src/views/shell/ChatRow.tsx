/** One chat in the sidebar and its menu. */
import type { ConversationSummary } from "../../api/types.ts";
import { useRef } from "preact/hooks";
import { Menu } from "../../components/overlays/Menu.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** A link to the chat with its menu. */
export function ChatRow(
  { item, isInFolder, onRename, onFile }: {
    item: ConversationSummary;
    isInFolder: boolean;
    onRename: () => void;
    onFile: () => void;
  },
) {
  const store = useStore();
  const row = useRef<HTMLDivElement>(null);
  const screen = store.router.screen.value;
  const isCurrent = screen.name === "chat" && screen.conversationId === item.id;
  const title = titleOf(item);
  const t = texts.nav;
  const remove = () => {
    const place = row.current?.closest("li");
    const neighbour = (place?.nextElementSibling ?? place?.previousElementSibling)?.querySelector<HTMLElement>(
      "a, button",
    );
    store.deleteChat(item.id, { done: t.removed, undo: texts.undo });
    // The row disappears together with the focused button.
    neighbour?.focus();
  };
  return (
    <div ref={row} class={isInFolder ? "chat-row in-folder" : "chat-row"}>
      <a href={`/c/${encodeURIComponent(item.id)}`} aria-current={isCurrent ? "page" : undefined} title={title}>
        <span class="chat-title">{title}</span>
        {store.chats.answering.value.has(item.id) && (
          <span class="live-dot" role="img" aria-label={t.answering} title={t.answering} />
        )}
      </a>
      <Menu
        label={t.menu(title)}
        items={[
          { label: t.rename, icon: "pencil", onSelect: onRename },
          {
            label: item.pinned ? t.unpin : t.pin,
            icon: "pin",
            onSelect: () => store.changeChat(item.id, { pinned: item.pinned ? null : true }),
          },
          { label: t.file, icon: "folder", onSelect: onFile },
          "line",
          { label: t.delete, icon: "trash", isDanger: true, onSelect: remove },
        ]}
      />
    </div>
  );
}

/** Returns the title of a chat, or the start of its text without Markdown. */
export function titleOf(item: ConversationSummary): string {
  return item.title || item.snippet?.replace(/[*_`#]/g, "") || texts.nav.untitled;
}
