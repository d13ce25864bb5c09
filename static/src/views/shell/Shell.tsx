/** The frame: sidebar or drawer, banners, the screen, toasts, shortcuts that work everywhere. */
import { useEffect } from "preact/hooks";
import { EmptyState } from "../../components/Notice.tsx";
import { LinkButton } from "../../components/Button.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { Modal } from "../../components/overlays/Dialog.tsx";
import { Panel } from "../../components/overlays/Panel.tsx";
import { Toasts } from "../../components/overlays/Toasts.tsx";
import { EDGE_PX, useMedia, useTitle } from "../../components/hooks.ts";
import { type Store, useStore } from "../../state/store.ts";
import { loadLater } from "../../texts/en/en.ts";
import { texts } from "../../texts/texts.ts";
import { Gate } from "../auth/Gate.tsx";
import { ChatScreen } from "../chat/ChatScreen.tsx";
import { Banners } from "./Banners.tsx";
import { Sidebar } from "./Sidebar.tsx";
import { PageHeader, WIDE_QUERY } from "./PageHeader.tsx";
import { findStorage } from "../../state/app/device.ts";
import { parsePath } from "../../state/app/router.ts";

const SettingsScreen = lazy(() => import("../settings/SettingsScreen.tsx").then((file) => file.SettingsScreen), {
  as: "screen",
});
const SearchScreen = lazy(() => import("../search/SearchScreen.tsx").then((file) => file.SearchScreen), {
  as: "screen",
});
const ActivityScreen = lazy(() => import("../activity/ActivityScreen.tsx").then((file) => file.ActivityScreen), {
  as: "screen",
});
const LibraryScreen = lazy(() => import("../library/LibraryScreen.tsx").then((file) => file.LibraryScreen), {
  as: "screen",
});
const ShareScreen = lazy(() => import("../share/ShareScreen.tsx").then((file) => file.ShareScreen), { as: "screen" });

const MemoryQuestion = lazy(() => import("../memory/MemoryNotice.tsx").then((file) => file.MemoryQuestion), {
  as: "overlay",
});
const MemoryInboxLink = lazy(() => import("../memory/MemoryNotice.tsx").then((file) => file.MemoryInboxLink), {
  as: "overlay",
});

const UpdateNotice = lazy(() => import("../releases/UpdateNotice.tsx").then((file) => file.UpdateNotice), {
  as: "overlay",
});

const Palette = lazy(() => import("../palette/Palette.tsx").then((file) => file.Palette), { as: "overlay" });
const ShortcutsDialog = lazy(() => import("../palette/ShortcutsDialog.tsx").then((file) => file.ShortcutsDialog), {
  as: "overlay",
});

const GalleryScreen = lazy(() => import("../characters/GalleryScreen.tsx").then((file) => file.GalleryScreen), {
  as: "screen",
});
const CharacterScreen = lazy(() => import("../characters/CharacterScreen.tsx").then((file) => file.CharacterScreen), {
  as: "screen",
});

const CardSiteScreen = lazy(() => import("../characters/CardSiteScreen.tsx").then((file) => file.CardSiteScreen), {
  as: "screen",
});
const EditorScreen = lazy(() => import("../character_editor/EditorScreen.tsx").then((file) => file.EditorScreen), {
  as: "screen",
});

/** The whole page, behind the gate. */
export function Shell() {
  return (
    <Gate>
      <Frame />
    </Gate>
  );
}

function Frame() {
  const store = useStore();
  const isWide = useMedia(WIDE_QUERY);
  useGlobalShortcuts();
  usePrefetchChats();
  useEdgeSwipe();
  usePresence();
  const isFolded = store.device.isSidebarFolded.value;
  return (
    <div class="shell">
      <a class="skip-link" href="#main" target="_self" onClick={skipToMain}>{texts.nav.skip}</a>
      {isWide
        ? !isFolded && (
          <aside class="sidebar">
            <Sidebar />
          </aside>
        )
        : <Drawer />}
      <div class="stage">
        <Banners />
        <MemoryNotice />
        {store.preferences.settings.value?.check_releases && <UpdateNotice />}
        <Screen />
      </div>
      <RightPanel />
      <Overlay />
      <Toasts />
    </div>
  );
}

/** Delay before reporting, so that it doesn't slow down the start. In milliseconds. */
const PRESENCE_AFTER_MS = 4000;

/** Reports presence, so that no other device is notified while this page is in use. */
function usePresence(): void {
  const { api: { client }, toasts, router } = useStore();
  useEffect(() => {
    const storage = findStorage(globalThis.window);
    const report = async () => {
      const [push, { pushApi }] = await Promise.all([import("../../state/app/push.ts"), import("../../api/push.ts")]);
      const api = pushApi(client);
      const showRemoved = () => {
        const action = { label: texts.nav.settings, run: () => router.go("/settings/privacy") };
        toasts.show(texts.push.removed, { action });
      };
      push.reportPresence(api, storage, push.findPushId(storage), () => void loadLater().then(showRemoved, () => {}));
      await push.renewSubscription(api, storage);
    };
    const timer = setTimeout(() => void report().catch(() => {}), PRESENCE_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
}

/** Chats after which the page asks whether the model may propose notes. */
const ASK_AFTER_CHATS = 5;

function MemoryNotice() {
  const { chats, preferences } = useStore();
  const settings = preferences.settings.value;
  if (settings?.memory_proposals) return <MemoryInboxLink />;
  return settings && !settings.memory_asked && chats.items.value.length >= ASK_AFTER_CHATS ? <MemoryQuestion /> : null;
}

function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Screen() {
  const store = useStore();
  const screen = store.router.screen.value;
  const setup = store.setup.value;
  // The very first visit starts with the setup, later ones at home, which is the page of a new chat.
  useEffect(() => {
    if (screen.name !== "home") return;
    if (setup) store.router.go(setup.completed ? "/new" : "/welcome", { replace: true });
  }, [screen, setup]);
  if (screen.name === "home") return <main id="main" tabIndex={-1} />;
  if (screen.name === "new_chat") return <ChatScreen isTemporary={screen.isTemporary} />;
  if (screen.name === "chat") return <ChatScreen conversationId={screen.conversationId} />;
  if (screen.name === "settings") return <SettingsScreen section={screen.section} item={screen.item} />;
  if (screen.name === "search") return <SearchScreen />;
  if (screen.name === "share") return <ShareScreen />;
  if (screen.name === "activity") return <ActivityScreen />;
  if (screen.name === "library") return <LibraryScreen page={screen.page} />;
  if (screen.name === "characters") return <GalleryScreen />;
  if (screen.name === "card_site") return <CardSiteScreen />;
  if (screen.name === "character") {
    const { characterId: id, isEdited } = screen;
    return isEdited ? <EditorScreen key={id} id={id} /> : <CharacterScreen key={id} id={id} />;
  }
  return <Unknown />;
}

function Unknown() {
  useTitle(`${texts.unknown.title} · ${texts.product}`);
  return (
    <main id="main" class="page" tabIndex={-1}>
      <PageHeader title={texts.product} />
      <EmptyState title={texts.unknown.title} text={texts.unknown.text}>
        <LinkButton href="/new">{texts.unknown.home}</LinkButton>
      </EmptyState>
    </main>
  );
}

/** The sidebar as a drawer, on narrow screens. */
function Drawer() {
  const store = useStore();
  const path = store.router.path.value;
  const close = () => store.isDrawerOpen.value = false;
  useEffect(() => {
    close();
  }, [path]);
  if (!store.isDrawerOpen.value) return null;
  return (
    <Modal class="drawer" label={texts.nav.label} onClose={close}>
      <Sidebar onClose={close} />
    </Modal>
  );
}

/** The palette or the shortcut overview, over everything else. */
function Overlay() {
  const { overlay } = useStore();
  const close = () => overlay.value = undefined;
  if (overlay.value === "palette") return <Palette onClose={close} />;
  if (overlay.value === "shortcuts") return <ShortcutsDialog onClose={close} />;
  return null;
}

/** The right panel of a screen; another screen starts without it. */
function RightPanel() {
  const store = useStore();
  const path = store.router.path.value;
  useEffect(() => () => store.closePanel(), [path]);
  const panel = store.panel.value;
  return panel
    ? <Panel key={panel.id} title={panel.title} onClose={() => store.closePanel()}>{panel.view()}</Panel>
    : null;
}

/** Handles keyboard shortcuts while the frame is shown. */
function useGlobalShortcuts(): void {
  const store = useStore();
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (!event.defaultPrevented && !event.isComposing && act(event, store)) event.preventDefault();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}

/** Handles a key and returns whether it did. */
function act(event: KeyboardEvent, store: Store): boolean {
  const key = event.key.toLowerCase();
  const isMain = (event.ctrlKey || event.metaKey) && !event.altKey;
  if (isMain && !event.shiftKey && key === "k") {
    const isOpen = store.overlay.peek() === "palette";
    // An open dialog goes first.
    if (!isOpen && document.querySelector("dialog[open]:not(.drawer)")) return true;
    store.overlay.value = isOpen ? undefined : "palette";
    return true;
  }
  if (document.querySelector("dialog[open]")) return false;
  if (isMain && event.shiftKey && key === "o") {
    store.router.go("/new");
    return true;
  }
  // By character: on many keyboards it needs Shift.
  if (event.key === "?" && !isMain && !event.altKey && !isTyping(event.target)) {
    store.overlay.value = "shortcuts";
    return true;
  }
  return false;
}

/** Returns whether a key goes into a text field, even an empty one: a message may start with a question mark. */
function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "range", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || (target instanceof HTMLElement && target.isContentEditable);
}

/** A swipe from the edge has at least this length in px, and at most this slope. */
const SWIPE_PX = 56;
const SWIPE_SLOPE = 0.6;

/** Opens the drawer by a swipe from the left edge, on narrow touch screens. */
function useEdgeSwipe(): void {
  const { isDrawerOpen } = useStore();
  useEffect(() => {
    let from: Touch | undefined;
    const onStart = ({ touches: [touch, ...others] }: TouchEvent) => {
      const isEdge = touch && others.length === 0 && touch.clientX <= EDGE_PX;
      from = isEdge && !globalThis.matchMedia(WIDE_QUERY).matches ? touch : undefined;
    };
    const onEnd = ({ changedTouches: [to] }: TouchEvent) => {
      const start = from;
      from = undefined;
      if (!start || !to || document.querySelector("dialog[open]")) return;
      const [dx, dy] = [to.clientX - start.clientX, to.clientY - start.clientY];
      if (dx >= SWIPE_PX && Math.abs(dy) <= dx * SWIPE_SLOPE) isDrawerOpen.value = true;
    };
    document.addEventListener("touchstart", onStart, { passive: true });
    document.addEventListener("touchend", onEnd, { passive: true });
    return () => {
      document.removeEventListener("touchstart", onStart);
      document.removeEventListener("touchend", onEnd);
    };
  }, []);
}

/** Delay before prefetching, in milliseconds: a passing pointer or focus, or a scrolling finger, has left by then. */
const REST_MS = 60;

/** Events that cancel it. */
const ENDS = ["pointerout", "pointercancel", "focusout"];

/** Prefetches a chat that is about to be opened: hover, press or focus on its link. */
function usePrefetchChats(): void {
  const store = useStore();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const begin = (id: string) => {
      if (store.chat.peek()?.id !== id) store.chatAhead.begin(id);
    };
    const onWish = (event: Event) => {
      const id = findChatId(event.target);
      if (id === undefined) return;
      clearTimeout(timer);
      // A press is followed by a release soon; a finger may be about to scroll.
      if (event.type === "pointerdown" && (event as PointerEvent).pointerType === "mouse") begin(id);
      else timer = setTimeout(() => begin(id), REST_MS);
    };
    const onEnd = () => clearTimeout(timer);
    const wishes = ["pointerover", "pointerdown", "focusin"];
    for (const type of wishes) document.addEventListener(type, onWish);
    for (const type of ENDS) document.addEventListener(type, onEnd);
    return () => {
      onEnd();
      for (const type of wishes) document.removeEventListener(type, onWish);
      for (const type of ENDS) document.removeEventListener(type, onEnd);
    };
  }, []);
}

/** Returns the conversation that a link around an element opens. */
function findChatId(target: EventTarget | null): string | undefined {
  const link = target instanceof Element ? target.closest<HTMLAnchorElement>("a[href^='/c/']") : null;
  const screen = link && parsePath(link.pathname);
  return screen?.name === "chat" ? screen.conversationId : undefined;
}
