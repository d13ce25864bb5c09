/**
 * The header of a screen: sidebar button, title, actions.
 *
 * Props: `title`; `children?` (links and buttons at its end).
 */
import type { ComponentChildren } from "preact";
import { IconButton } from "../../components/Button.tsx";
import { useMedia } from "../../components/hooks.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** The top bar of a screen. */
export function PageHeader({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <header class="chat-head">
      <SidebarButton />
      <h1>{title}</h1>
      {children}
    </header>
  );
}

/** The width from which the sidebar has its own column. */
export const WIDE_QUERY = "(min-width: 1024px)";

/** Opens the drawer, or unfolds the sidebar; nothing while the sidebar is visible. */
export function SidebarButton() {
  const store = useStore();
  const isWide = useMedia(WIDE_QUERY);
  const { isSidebarFolded } = store.device;
  if (isWide && !isSidebarFolded.value) return null;
  return (
    <IconButton
      icon={isWide ? "sidebar" : "menu"}
      label={isWide ? texts.nav.unfold : texts.nav.open}
      isExpanded={isWide ? undefined : store.isDrawerOpen.value}
      onClick={() => isWide ? (isSidebarFolded.value = false) : (store.isDrawerOpen.value = true)}
    />
  );
}
