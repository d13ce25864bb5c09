/**
 * The header of a screen: sidebar button, title, actions.
 *
 * Props: `title`; `children?` (links and buttons at its end).
 */
import type { ComponentChildren } from "preact";
import { SidebarButton } from "./SidebarButton.tsx";

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
