/** Chats by day, a way to a new one, and at the foot the state of the model and the settings. */
import { Button, IconButton, LinkButton } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { Notice } from "../../components/Notice.tsx";
import type { ConversationSummary } from "../../api/types.ts";
import { useStore } from "../../state/store.ts";
import { groupByDay } from "../../texts/times.ts";
import { texts } from "../../texts/texts.ts";

/** The sidebar's content; `onClose` is there when it is a drawer. */
export function Sidebar({ onClose }: { onClose?: () => void }) {
  const { device } = useStore();
  return (
    <nav class="sidebar-inner" aria-label={texts.nav.label}>
      <div class="sidebar-head">
        <span class="brand">{texts.product}</span>
        {onClose
          ? <IconButton icon="close" label={texts.close} onClick={onClose} />
          : <IconButton icon="sidebar" label={texts.nav.fold} onClick={() => device.isSidebarFolded.value = true} />}
      </div>
      <LinkButton href="/new" icon="plus">{texts.nav.newChat}</LinkButton>
      <ChatList />
      <ConnectionState />
      <a class="nav-row" href="/settings/general">
        <Icon name="gear" />
        {texts.nav.settings}
      </a>
    </nav>
  );
}

function ChatList() {
  const { chats } = useStore();
  const items = chats.shown.value;
  const error = chats.error.value;
  const hasMore = chats.nextCursor.value !== null;
  if (chats.state.value === "failed" && error) {
    return (
      <div class="chat-list">
        <Notice
          tone="danger"
          title={texts.nav.failed}
          error={error}
          actions={<Button onClick={() => chats.refresh()}>{texts.retry}</Button>}
        />
      </div>
    );
  }
  return (
    <div class="chat-list">
      <h2 class="visually-hidden">{texts.nav.chats}</h2>
      {chats.state.value === "ready" && items.length === 0 && <p class="chat-list-empty">{texts.nav.none}</p>}
      {groupByDay(items, new Date()).map((group) => (
        <section key={group.title}>
          <h3>{group.title}</h3>
          <ul>
            {group.items.map((item) => <ChatRow key={item.id} item={item} />)}
          </ul>
        </section>
      ))}
      {hasMore && <Button kind="quiet" onClick={() => chats.more()}>{texts.nav.more}</Button>}
    </div>
  );
}

function ChatRow({ item }: { item: ConversationSummary }) {
  const store = useStore();
  const screen = store.router.screen.value;
  const isCurrent = screen.name === "chat" && screen.conversationId === item.id;
  const title = item.title || item.snippet || texts.nav.untitled;
  return (
    <li class="chat-row">
      <a href={`/c/${encodeURIComponent(item.id)}`} aria-current={isCurrent ? "page" : undefined} title={title}>
        <span class="chat-title">{title}</span>
        {store.chats.answering.value.has(item.id) && (
          <span class="live-dot" role="img" aria-label={texts.nav.answering} title={texts.nav.answering} />
        )}
      </a>
      <IconButton
        icon="trash"
        label={texts.nav.remove(title)}
        onClick={() => store.deleteChat(item.id, { done: texts.nav.removed, undo: texts.undo })}
      />
    </li>
  );
}

/** Which model answers, and whether it can. */
function ConnectionState() {
  const { connections } = useStore();
  const active = connections.active.value;
  const health = connections.health.value?.connection;
  const isKnown = health !== undefined && health !== null && health.id === active?.id;
  const tone = !active ? "off" : !isKnown ? "unknown" : health.reachable ? "good" : "bad";
  const words = {
    off: "",
    unknown: texts.connection.checking,
    good: texts.connection.ready,
    bad: texts.connection.away,
  };
  const state = active?.kind === "demo" ? texts.connection.demo : words[tone];
  if (connections.state.value !== "ready") return null;
  return (
    <a class="nav-row connection-state" href="/settings/connections">
      <span class={`state-mark ${tone}`} aria-hidden="true" />
      <span class="connection-name">{active ? active.name : texts.connection.none}</span>
      {active && state !== active.name && <span class="connection-words">{state}</span>}
    </a>
  );
}
