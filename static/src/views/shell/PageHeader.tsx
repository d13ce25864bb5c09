/**
 * The head of a screen: the way to the sidebar, the title, and what belongs beside it.
 *
 * Props: `title`; `children?` (links and buttons at its end).
 */
import type { ComponentChildren } from "preact";
import { SidebarButton } from "./SidebarButton.tsx";

/** One line at the top of a screen. */
export function PageHeader({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <header class="chat-head">
      <SidebarButton />
      <h1>{title}</h1>
      {children}
    </header>
  );
}
