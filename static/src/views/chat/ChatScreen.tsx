/** One conversation: header, messages, composer. */
import { effect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Button, LinkButton } from "../../components/Button.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { EmptyState, Notice } from "../../components/Notice.tsx";
import { useTitle } from "../../components/hooks.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import type { ReplyStream } from "../../state/chat/reply_stream.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ChatHeader, ModelButton, useExpressionPosition } from "./ChatHeader.tsx";
import { Composer } from "./composer/Composer.tsx";
import { Home } from "../home/Home.tsx";
import { nameChat } from "../shell/chat_name.ts";
import { PageHeader } from "../shell/PageHeader.tsx";
import { whenRead } from "./reading.ts";
import { UnsentChanges } from "./Unsent.tsx";

/** Loaded on demand: message rendering is a third of the page's script, and no first screen needs it. */
const MessageList = lazy(() => import("./messages/MessageList.tsx").then((file) => file.MessageList), {
  as: "messages",
});

const SearchBar = lazy(() => import("./SearchBar.tsx").then((file) => file.SearchBar), { as: "overlay" });

const SpeechBar = lazy(() => import("../speech/SpeechBar.tsx").then((file) => file.SpeechBar), { as: "overlay" });

const ExpressionAside = lazy(() => import("./Expressions.tsx").then((file) => file.ExpressionAside), { as: "overlay" });

/** Delay before an empty chat loads the message list anyway, in milliseconds. */
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

/** Marks an unread chat as read once somebody reads it. */
function useReadMark(chat: OpenChat, isUnread: boolean): void {
  const { chats } = useStore();
  // Together with the dot: the first key after that counts.
  useLayoutEffect(() => {
    if (isUnread) return whenRead(globalThis.window, () => void chats.markRead(chat.id));
  }, [chat, isUnread]);
}

/** Shown for a missing chat. */
function Missing({ chat }: { chat: OpenChat }) {
  const { device } = useStore();
  const t = texts.chat;
  useTitle(`${t.missingHead} · ${texts.product}`);
  const last = device.lastConversationId.value;
  useEffect(() => {
    // The next visit must not start with a deleted chat.
    if (last === chat.id) device.lastConversationId.value = undefined;
  }, [last]);
  return (
    <main id="main" class="chat" tabIndex={-1}>
      <PageHeader title={t.missingHead} />
      <UnsentChanges chat={chat} />
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
  useEffect(() => people.loadListItems(ids), [ids.join()]);
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
  useReadMark(chat, listed?.unread ?? false);
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
  const position = useExpressionPosition(chat);
  useEffect(() => {
    if (load.kind === "ready") void chat.actions.readBranches();
  }, [load.kind]);
  const messageId = store.router.hash.value;
  useEffect(() => {
    if (load.kind !== "ready" || messageId === "") return;
    void chat.show(messageId).then((isThere) => {
      if (!isThere) store.toasts.show(texts.chat.goneMessage);
    });
  }, [messageId, load.kind]);
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
        <UnsentChanges chat={chat} />
      </div>
    );
  }
  return (
    <>
      <DamageNote chat={chat} />
      {chat.isEmpty.value ? <Welcome chat={chat} /> : <MessageList chat={chat} />}
      {position === "aside" && !chat.isEmpty.value && <ExpressionAside chat={chat} />}
      {store.speaking.now.value && <SpeechBar />}
      {chat.isNew && chat.isEmpty.value && (
        <div class="column composer-model">
          <ModelButton chat={chat} />
        </div>
      )}
      <UnsentChanges chat={chat} />
      <Composer chat={chat} />
    </>
  );
}

/** Lists the parts that the server can't read; without it, the chat would look complete. */
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
  const areSettingsKnown = preferences.settings.value !== undefined;
  const lastRead = useRef<ReplyStream | undefined>(undefined);
  useEffect(() => {
    if (!run) return;
    run.isHeard = () => speaking.isHandsFree || speaking.now.peek() !== undefined;
    // The reply that is being read is about to be rewritten.
    if (run.joinedText === "" && speaking.now.peek()?.key === run.messageId) speaking.stop();
  }, [run]);
  // A reply may begin before the settings are known, and before this runs: all that comes after its start is read.
  useEffect(() => {
    if (!run?.isAskedHere || run === lastRead.current) return;
    if (!speaking.isHandsFree && !preferences.settings.peek()?.auto_speak) return;
    lastRead.current = run;
    const { items, places } = chat.pages;
    const previous = items.peek()[(places.peek().get(run.messageId) ?? 0) - 1];
    // In a group, a character is heard to the end before the next one.
    if (previous?.role === "assistant") void speaking.readNext(chat, run.messageId, run.joinedText);
    else void speaking.readMessage(chat, run.messageId, run.joinedText);
  }, [run, areSettingsKnown]);
  useEffect(() => () => speaking.stop(), []);
}

const DetectedServers = lazy(() => import("../connections/DetectedServers.tsx").then((file) => file.DetectedServers));

/** Searches for a model on this machine. */
function DemoHint() {
  const store = useStore();
  const { connections } = store;
  const hasSearched = connections.discovery.value.kind !== "idle";
  return (
    <section class="card first-run" aria-labelledby="first-run-title">
      <h3 id="first-run-title">{texts.firstRun.title}</h3>
      <p>{texts.firstRun.text}</p>
      {hasSearched && <DetectedServers level={4} onUsed={() => store.completeSetup()} />}
      <div class="actions-row">
        <Button
          kind={hasSearched ? "plain" : "primary"}
          icon="search"
          isBusy={connections.discovery.value.kind === "searching"}
          onClick={() => connections.discover()}
        >
          {texts.firstRun.find}
        </Button>
        <LinkButton href="/settings/connections/new">{texts.firstRun.manual}</LinkButton>
        <Button kind="quiet" onClick={() => store.completeSetup()}>{texts.firstRun.later}</Button>
      </div>
    </section>
  );
}

/** Handles keyboard shortcuts while the chat is shown. */
function useShortcuts(chat: OpenChat): void {
  const { speaking, printing } = useStore();
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
      if (isPrint(event) && !chat.isEmpty.peek()) {
        // The browser alone would print what is being read.
        event.preventDefault();
        printing.value = chat.id;
      } else if (isFind(event) ? openSearch(chat) : event.altKey && onAlt(event, chat)) event.preventDefault();
      else if (event.key === "Escape" && chat.search.isOpen.peek()) chat.search.close();
      else if (event.key === "Escape" && chat.replies.isRunning.peek()) void chat.replies.stop();
      else if (event.key === "Escape") speaking.stop();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [chat]);
}

const isFind = (event: KeyboardEvent) => isControl(event, "f");
const isPrint = (event: KeyboardEvent) => isControl(event, "p");

function isControl(event: KeyboardEvent, key: string): boolean {
  return (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === key;
}

/** False to leave the key to the browser's search: ours is already open, or there is nothing to search. */
function openSearch(chat: OpenChat): boolean {
  if (chat.search.isOpen.peek() || chat.isNew || chat.isTemporary || chat.load.peek().kind !== "ready") return false;
  return chat.search.isOpen.value = true;
}

/** Handles a key with Alt and returns whether it did. */
function onAlt(event: KeyboardEvent, chat: OpenChat): boolean {
  const last = chat.lastMessage.peek();
  if (event.ctrlKey || event.metaKey || last?.role !== "assistant" || chat.replies.isRunning.peek()) return false;
  if (chat.actions.editing.peek()) return false;
  const field = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement
    ? event.target
    : undefined;
  const isWriting = field !== undefined && field.value !== "";
  // In text fields, Alt with an arrow moves by words, and on Apple keyboards Alt with a letter types a character.
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    if (isWriting) return false;
    void chat.actions.switchVariant(last.id, event.key === "ArrowLeft" ? -1 : 1);
    return true;
  }
  if (isWriting && /Mac|iPhone|iPad/.test(navigator.platform)) return false;
  // By key code: on Apple keyboards the character differs.
  if (event.code === "KeyR") chat.replies.regenerate(last.id);
  else if (event.code === "KeyC") chat.replies.continueReply(last.id);
  else return false;
  return true;
}
