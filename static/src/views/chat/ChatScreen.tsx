/** One conversation: header, messages, composer. */
import { effect } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { Button, LinkButton } from "../../components/Button.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { EmptyState, Notice } from "../../components/Notice.tsx";
import { useTitle } from "../../components/hooks.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ChatHeader, ModelButton, useExpressionPlace } from "./ChatHeader.tsx";
import { Composer } from "./composer/Composer.tsx";
import { DemoHint } from "./DemoHint.tsx";
import { Home } from "../home/Home.tsx";
import { useShortcuts } from "./shortcuts.ts";
import { nameChat } from "../shell/chat_name.ts";
import { PageHeader } from "../shell/PageHeader.tsx";

/** Message rendering is a third of the page's script, and no first screen needs it. */
const MessageList = lazy(() => import("./messages/MessageList.tsx").then((file) => file.MessageList), {
  as: "messages",
});

const SearchBar = lazy(() => import("./SearchBar.tsx").then((file) => file.SearchBar), { as: "overlay" });

const SpeechBar = lazy(() => import("../speech/SpeechBar.tsx").then((file) => file.SpeechBar), { as: "overlay" });

const ExpressionAside = lazy(() => import("./Expressions.tsx").then((file) => file.ExpressionAside), { as: "overlay" });

/** When a new chat loads the message list if nothing is written, in milliseconds. */
const LIST_AFTER_MS = 4000;

/** Shows a stored conversation; without an id a new or a temporary one. */
export function ChatScreen(
  { conversationId, isTemporary = false }: { conversationId?: string; isTemporary?: boolean },
) {
  const store = useStore();
  // Before paint: a request one frame earlier returns one frame earlier.
  useLayoutEffect(() => {
    if (conversationId === undefined) {
      store.showNewChat(isTemporary);
    } else {
      // In parallel with loading the chat, which takes longer.
      void MessageList.load();
      store.showChat(conversationId);
    }
  }, [conversationId, isTemporary]);
  const chat = store.chat.value;
  useListSoon(chat);
  const isThere = chat !== undefined && chat.id === conversationId && chat.load.value.kind === "ready";
  useEffect(() => {
    if (isThere) store.device.lastConversationId.value = conversationId;
  }, [isThere, conversationId]);
  const isWanted = chat &&
    (conversationId === undefined ? chat.isTemporary === isTemporary : chat.id === conversationId);
  if (!isWanted) return <main id="main" tabIndex={-1} />;
  return chat.load.value.kind === "missing" ? <Missing chat={chat} /> : <Chat key={chat.id} chat={chat} />;
}

/** Loads the message list of an empty chat before it's needed: with the first text, otherwise after a while. */
function useListSoon(chat: OpenChat | undefined): void {
  useEffect(() => {
    const timer = setTimeout(() => void MessageList.load(), LIST_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  // An effect of signals: a keystroke doesn't render the screen again.
  useEffect(() => chat && effect(() => void (chat.draft.text.value !== "" && MessageList.load())), [chat]);
}

/** Shown for a missing chat. */
function Missing({ chat }: { chat: OpenChat }) {
  const { device } = useStore();
  const t = texts.chat;
  useTitle(`${t.missingHead} · ${texts.product}`);
  const last = device.lastConversationId.value;
  useEffect(() => {
    // A deleted chat must not be where the next visit starts.
    if (last === chat.id) device.lastConversationId.value = undefined;
  }, [last]);
  return (
    <main id="main" class="chat" tabIndex={-1}>
      <PageHeader title={t.missingHead} />
      <EmptyState title={t.missingTitle} text={t.missingText}>
        {last !== undefined && last !== chat.id && (
          <LinkButton href={`/c/${encodeURIComponent(last)}`}>{t.toLast}</LinkButton>
        )}
        <LinkButton href="/new" kind="primary">{texts.nav.newChat}</LinkButton>
      </EmptyState>
    </main>
  );
}

function Chat({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const { people } = store;
  const listed = store.chats.items.value.find((item) => item.id === chat.id);
  const ids = (chat.options.value.participants ?? []).map(({ character_id }) => character_id);
  useEffect(() => people.wantFaces(ids), [ids.join()]);
  const unnamed = chat.isTemporary
    ? texts.chat.temporary
    : chat.isEmpty.value
    ? texts.chat.newTitle
    : ids.length > 0
    ? texts.nav.newChat
    : texts.chat.untitled;
  const name = nameChat(people, {
    title: chat.title.value || listed?.title || "",
    has_greeting_title: listed?.has_greeting_title && (chat.title.value || listed.title) === listed.title,
    character_ids: ids,
    snippet: listed?.snippet ?? "",
    message_count: listed?.message_count ?? 0,
  });
  const title = name.about || unnamed;
  useTitle(`${name.who === "" ? title : `${name.who}: ${title}`} · ${texts.product}`);
  useShortcuts(chat);
  useAutoSpeak(chat);
  return (
    <main id="main" class={chat.isTemporary ? "chat is-temporary" : "chat"} tabIndex={-1}>
      <ChatHeader chat={chat} title={title} who={name.who} />
      {chat.search.isOpen.value && <SearchBar chat={chat} />}
      <ChatBody chat={chat} />
    </main>
  );
}

function ChatBody({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const load = chat.load.value;
  const place = useExpressionPlace(chat);
  useEffect(() => {
    if (load.kind === "ready") void chat.actions.readBranches();
  }, [load.kind]);
  const wanted = store.router.hash.value;
  useEffect(() => {
    if (load.kind !== "ready" || wanted === "") return;
    void chat.show(wanted).then((isThere) => {
      if (!isThere) store.toasts.show(texts.chat.goneMessage);
    });
  }, [wanted, load.kind]);
  if (load.kind === "loading") return <p class="chat-loading" role="status">{texts.loading}</p>;
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
      <DamageNote chat={chat} />
      {chat.isEmpty.value ? <Welcome chat={chat} /> : <MessageList chat={chat} />}
      {place === "aside" && !chat.isEmpty.value && <ExpressionAside chat={chat} />}
      {store.speaking.now.value && <SpeechBar />}
      {chat.isNew && chat.isEmpty.value && (
        <div class="column composer-model">
          <ModelButton chat={chat} />
        </div>
      )}
      <Composer chat={chat} />
    </>
  );
}

/** Names what the server can't read; otherwise the chat would look complete. */
function DamageNote({ chat }: { chat: OpenChat }) {
  const damaged = chat.pages.damaged.value;
  if (damaged.length === 0) return null;
  const t = texts.chat.damage;
  const messages = damaged.reduce((sum, { message_ids = [] }) => sum + message_ids.length, 0);
  const parts = [...new Set(damaged.map(({ part }) => part))].flatMap((part) =>
    part === "messages" ? [t.messages(messages)] : [t.parts[part]]
  );
  return (
    <div class="column damage-note">
      <Notice tone="warning" title={t.title}>{t.text(parts.join(", "))}</Notice>
    </div>
  );
}

function Welcome({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const isFirstRun = store.connections.hasOnlyDemo.value && !store.isSetupCompleted.value;
  return (
    <div class="welcome">
      {chat.isTemporary
        ? <EmptyState title={texts.chat.temporary} text={texts.chat.temporaryText} />
        : <Home chat={chat} />}
      {isFirstRun && !chat.isTemporary && <DemoHint />}
    </div>
  );
}

/** Reads replies aloud while the chat is shown. Among several devices, the one that asked for a reply reads it. */
function useAutoSpeak(chat: OpenChat): void {
  const { speaking, preferences } = useStore();
  const run = chat.replies.run.value;
  useEffect(() => {
    // What is being read is about to be rewritten.
    if (run?.text.peek() === "" && speaking.now.peek()?.key === run.messageId) speaking.stop();
    if (!run?.isAskedHere || !(speaking.isHandsFree || preferences.settings.peek()?.auto_speak)) return;
    void speaking.readMessage(chat, run.messageId, run.text.peek());
  }, [run]);
  useEffect(() => () => speaking.stop(), []);
}
