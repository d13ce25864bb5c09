/** The frame: sidebar or drawer, banners, the screen, toasts. */
import { useEffect } from "preact/hooks";
import { EmptyState } from "../../components/Notice.tsx";
import { LinkButton } from "../../components/Button.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { Modal } from "../../components/overlays/Dialog.tsx";
import { Panel } from "../../components/overlays/Panel.tsx";
import { Toasts } from "../../components/overlays/Toasts.tsx";
import { useMedia, useTitle } from "../../components/hooks.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { Gate } from "../auth/Gate.tsx";
import { ChatScreen } from "../chat/ChatScreen.tsx";
import { Banners } from "./Banners.tsx";
import { usePrefetchChats } from "./prefetch_chats.ts";
import { useGlobalShortcuts } from "./global_shortcuts.ts";
import { Sidebar } from "./Sidebar.tsx";
import { SidebarButton, WIDE_QUERY } from "./SidebarButton.tsx";

const SettingsScreen = lazy(() => import("../settings/SettingsScreen.tsx").then((file) => file.SettingsScreen), {
  as: "screen",
});
const SearchScreen = lazy(() => import("../search/SearchScreen.tsx").then((file) => file.SearchScreen), {
  as: "screen",
});
const ActivityScreen = lazy(() => import("../activity/ActivityScreen.tsx").then((file) => file.ActivityScreen), {
  as: "screen",
});
const ImageGalleryScreen = lazy(
  () => import("../images/ImageGalleryScreen.tsx").then((file) => file.ImageGalleryScreen),
  { as: "screen" },
);
const ShareScreen = lazy(() => import("../share/ShareScreen.tsx").then((file) => file.ShareScreen), { as: "screen" });

const MemoryQuestion = lazy(() => import("../memory/MemoryNotice.tsx").then((file) => file.MemoryQuestion), {
  as: "overlay",
});
const MemoryInboxLink = lazy(() => import("../memory/MemoryNotice.tsx").then((file) => file.MemoryInboxLink), {
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
        <Screen />
      </div>
      <RightPanel />
      <Overlay />
      <Toasts />
    </div>
  );
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
  if (screen.name === "images") return <ImageGalleryScreen />;
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
      <SidebarButton />
      <h1 class="visually-hidden">{texts.product}</h1>
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
