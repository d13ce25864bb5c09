/** One chat in the sidebar and its menu. */
import type { ConversationSummary } from "../../api/types.ts";
import { useRef } from "preact/hooks";
import { Avatars } from "../characters/Avatars.tsx";
import { Icon } from "../../components/Icon.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatShortTime } from "../../texts/format.ts";
import { EXPORTS, toExportPath } from "../chat/chat_commands.ts";
import { nameChat, toPlainText } from "./chat_name.ts";

/** A link to the chat with its menu. */
export function ChatRow(
  { item, order, isInFolder, hasSnippet, onRename, onFile }: {
    item: ConversationSummary;
    /** Ids of the listed chats, from top to bottom. */
    order: readonly string[];
    isInFolder: boolean;
    /** Shows the beginning of the last message below the name. */
    hasSnippet: boolean;
    onRename: () => void;
    onFile: () => void;
  },
) {
  const store = useStore();
  const row = useRef<HTMLDivElement>(null);
  const screen = store.router.screen.value;
  const isCurrent = screen.name === "chat" && screen.conversationId === item.id;
  const t = texts.nav;
  const name = nameChat(store.people, item);
  const snippet = hasSnippet ? toPlainText(item.snippet) : "";
  const remove = () => {
    const listItem = row.current?.closest("li");
    const neighbour = (listItem?.nextElementSibling ?? listItem?.previousElementSibling)?.querySelector<HTMLElement>(
      "a, button",
    );
    store.deleteChats([item.id], { done: t.removed, undo: texts.undo });
    // The row disappears together with the focused button.
    neighbour?.focus();
  };
  const print = () => {
    store.router.go(`/c/${encodeURIComponent(item.id)}`);
    store.printing.value = item.id;
  };
  const { selection } = store.chats;
  const selectedIds = selection.ids.value;
  const Row = selectedIds ? "label" : "div";
  return (
    <Row
      ref={row as never}
      class={isInFolder ? "chat-row in-folder" : "chat-row"}
      onClick={(event: MouseEvent) => {
        const isLink = event.target instanceof Element && event.target.closest(".chat-link-over");
        if (!isLink || !event.shiftKey) return;
        event.preventDefault();
        selection.start(item.id);
      }}
      onContextMenu={(event: MouseEvent) => {
        // A long press.
        if (selectedIds || (event as PointerEvent).pointerType !== "touch") return;
        event.preventDefault();
        selection.start(item.id);
      }}
    >
      {selectedIds && (
        <input
          type="checkbox"
          aria-label={name.full}
          checked={selectedIds.has(item.id)}
          onClick={(event) => event.shiftKey ? selection.extend(item.id, order) : selection.toggle(item.id)}
        />
      )}
      <Avatars ids={item.character_ids} widthPx={hasSnippet ? 34 : 28} />
      <div class="chat-row-text">
        <div class="chat-row-head">
          {selectedIds ? <ChatTitle item={item} /> : <ChatLink item={item} isCurrent={isCurrent} />}
          {store.chats.replyingIds.value.has(item.id) && (
            <span class="live-dot" role="img" aria-label={t.answering} title={t.answering} />
          )}
        </div>
        <SecondLine item={item} snippet={snippet} />
      </div>
      {!selectedIds && (
        <Menu
          label={t.menu(name.full)}
          items={[
            { label: t.select, icon: "check", onSelect: () => selection.start(item.id) },
            { label: t.rename, icon: "pencil", onSelect: onRename },
            {
              label: item.pinned ? t.unpin : t.pin,
              icon: "pin",
              onSelect: () => store.changeChat(item.id, { pinned: item.pinned ? null : true }),
            },
            { label: t.file, icon: "folder", onSelect: onFile },
            "line",
            ...EXPORTS.map(({ format, name }) => ({
              label: t.exportAs(name),
              icon: "export" as const,
              href: toExportPath(item.id, format),
            })),
            { label: t.print, icon: "print", onSelect: print },
            "line",
            { label: t.delete, icon: "trash", isDanger: true, onSelect: remove },
          ]}
        />
      )}
    </Row>
  );
}

/** The name of a chat as a link, which covers its whole row or card. */
function ChatLink({ item, isCurrent = false }: { item: ConversationSummary; isCurrent?: boolean }) {
  const { people } = useStore();
  const { full } = nameChat(people, item);
  return (
    <a
      class="chat-link-over"
      href={`/c/${encodeURIComponent(item.id)}`}
      aria-current={isCurrent ? "page" : undefined}
      title={full}
    >
      <ChatTitle item={item} />
    </a>
  );
}

function ChatTitle({ item }: { item: ConversationSummary }) {
  const { who, about, full } = nameChat(useStore().people, item);
  return (
    <>
      {item.unread && <span class="unread-dot" role="img" aria-label={texts.nav.unread} title={texts.nav.unread} />}
      <span class="chat-title">
        {who === "" ? full : (
          <>
            <b>{who}:</b> {about || texts.nav.newChat}
          </>
        )}
      </span>
      {item.is_branch && (
        <span class="branch-mark" role="img" aria-label={texts.nav.branch} title={texts.nav.branch}>
          <Icon name="branch" />
        </span>
      )}
    </>
  );
}

/** When the last message was made. */
function LastTime({ item: { last_message_at: at } }: { item: ConversationSummary }) {
  return <time class="chat-time" dateTime={at}>{formatShortTime(at, new Date())}</time>;
}

/** The beginning of the last message and its time, below the name, which so has the whole width. */
function SecondLine({ item, snippet }: { item: ConversationSummary; snippet: string }) {
  return (
    <div class="chat-row-head">
      {snippet !== "" && <p class="chat-snippet">{snippet}</p>}
      <LastTime item={item} />
    </div>
  );
}

/** A chat as a card in a list outside of the sidebar. */
export function ChatCard({ item }: { item: ConversationSummary }) {
  return (
    <li class="home-chat">
      <Avatars ids={item.character_ids} widthPx={40} />
      <div class="chat-row-text">
        <div class="chat-row-head">
          <ChatLink item={item} />
        </div>
        <SecondLine item={item} snippet={toPlainText(item.snippet)} />
      </div>
    </li>
  );
}
