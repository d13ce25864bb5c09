/** The frame: sidebar or drawer, banners, the screen, toasts. */
import { useEffect, useRef } from "preact/hooks";
import { EmptyState } from "../../components/EmptyState.tsx";
import { LinkButton } from "../../components/Button.tsx";
import { Toasts } from "../../components/Toasts.tsx";
import { useMedia, useTitle } from "../../components/hooks.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ChatScreen } from "../chat/ChatScreen.tsx";
import { SettingsScreen } from "../settings/SettingsScreen.tsx";
import { Banners } from "./Banners.tsx";
import { Refused } from "./Refused.tsx";
import { Sidebar } from "./Sidebar.tsx";
import { SidebarButton, WIDE } from "./SidebarButton.tsx";

/** The whole page. */
export function Shell() {
  const store = useStore();
  const isWide = useMedia(WIDE);
  const isFolded = store.device.isSidebarFolded.value;
  if (store.refusal.value) return <Refused error={store.refusal.value} />;
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
        <Screen />
      </div>
      <Toasts />
    </div>
  );
}

function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Screen() {
  const store = useStore();
  const screen = store.router.screen.value;
  // The first visit of a session comes back to the last chat; later "/" is only passed through.
  useEffect(() => {
    if (screen.name !== "home") return;
    const last = store.device.lastConversationId.peek();
    store.router.go(last === undefined ? "/new" : `/c/${encodeURIComponent(last)}`, { replace: true });
  }, [screen]);
  if (screen.name === "home") return <main id="main" tabIndex={-1} />;
  if (screen.name === "new_chat") return <ChatScreen conversationId={undefined} />;
  if (screen.name === "chat") return <ChatScreen conversationId={screen.conversationId} />;
  if (screen.name === "settings") return <SettingsScreen section={screen.section} item={screen.item} />;
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

/** The sidebar over the page, on narrow screens. */
function Drawer() {
  const store = useStore();
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = store.isDrawerOpen.value;
  const path = store.router.path.value;
  useEffect(() => {
    store.isDrawerOpen.value = false;
  }, [path]);
  useEffect(() => {
    if (isOpen && !dialog.current?.open) dialog.current?.showModal();
    if (!isOpen && dialog.current?.open) dialog.current.close();
  }, [isOpen]);
  const onClick = (event: MouseEvent) => {
    // Only the backdrop is the dialog itself; everything inside is a child.
    if (event.target === dialog.current) store.isDrawerOpen.value = false;
  };
  return (
    <dialog
      ref={dialog}
      class="drawer"
      aria-label={texts.nav.label}
      onClose={() => store.isDrawerOpen.value = false}
      onClick={onClick}
    >
      {isOpen && <Sidebar onClose={() => store.isDrawerOpen.value = false} />}
    </dialog>
  );
}
