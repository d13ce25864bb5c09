/** One conversation: its head, its messages, the composer. */
import { useEffect } from "preact/hooks";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Notice } from "../../components/Notice.tsx";
import { useTitle } from "../../components/hooks.ts";
import type { OpenChat } from "../../state/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { SidebarButton } from "../shell/SidebarButton.tsx";
import { Composer } from "./Composer.tsx";
import { FirstRun } from "./FirstRun.tsx";
import { MessageList } from "./MessageList.tsx";

/** Shows a stored conversation, or an empty new one when the id is undefined. */
export function ChatScreen({ conversationId }: { conversationId: string | undefined }) {
  const store = useStore();
  useEffect(() => {
    if (conversationId === undefined) store.showNewChat();
    else {
      store.showChat(conversationId);
      store.device.lastConversationId.value = conversationId;
    }
  }, [conversationId]);
  const chat = store.chat.value;
  if (!chat || (conversationId !== undefined && chat.id !== conversationId)) return <main id="main" tabIndex={-1} />;
  return <Chat key={chat.id} chat={chat} />;
}

function Chat({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const listed = store.chats.items.value.find((item) => item.id === chat.id)?.title;
  const hasMessages = chat.shown.value.length > 0;
  const title = chat.title.value || listed || (hasMessages ? texts.chat.untitled : texts.chat.newTitle);
  useTitle(`${title} · ${texts.product}`);
  return (
    <main id="main" class="chat" tabIndex={-1}>
      <header class="chat-head">
        <SidebarButton />
        <h1 title={title}>{title}</h1>
      </header>
      <ChatBody chat={chat} />
    </main>
  );
}

function ChatBody({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const load = chat.load.value;
  useEffect(() => {
    // A remembered chat that is gone must not be what the next visit begins with.
    if (load.kind === "missing" && store.device.lastConversationId.peek() === chat.id) {
      store.device.lastConversationId.value = undefined;
    }
  }, [load]);
  if (load.kind === "loading") return <p class="chat-loading" role="status">{texts.loading}</p>;
  if (load.kind === "missing") {
    return (
      <EmptyState title={texts.chat.missingTitle} text={texts.chat.missingText}>
        <LinkButton href="/new" kind="primary">{texts.nav.newChat}</LinkButton>
      </EmptyState>
    );
  }
  if (load.kind === "failed") {
    return (
      <div class="column padded">
        <Notice
          tone="danger"
          title={texts.chat.loadFailed}
          error={load.error}
          actions={<Button onClick={() => chat.reload()}>{texts.retry}</Button>}
        />
      </div>
    );
  }
  return (
    <>
      {chat.shown.value.length === 0 ? <Welcome /> : <MessageList chat={chat} />}
      <Composer chat={chat} />
    </>
  );
}

function Welcome() {
  const store = useStore();
  const isFirstRun = store.connections.hasOnlyDemo.value && !store.isSetupCompleted.value;
  return (
    <div class="welcome">
      <EmptyState title={texts.chat.emptyTitle} text={texts.chat.emptyText} />
      {isFirstRun && <FirstRun />}
    </div>
  );
}
