/**
 * The right panel: beside the content if it fits, over it otherwise.
 *
 * Props: `title`, `onClose()`, `children`. A screen opens one with `store.openPanel({ id, title, view })`; the frame
 * places it.
 */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { texts } from "../../texts/texts.ts";
import { IconButton } from "../Button.tsx";
import { useMedia } from "../hooks.ts";
import { Modal } from "./Dialog.tsx";

/** The width from which sidebar, column and panel fit side by side. */
export const PANEL_QUERY = "(min-width: 1180px)";

/** The panel. Escape closes it if it has the focus. */
export function Panel(
  { title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren },
) {
  const isWide = useMedia(PANEL_QUERY);
  const aside = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const panel = aside.current;
    const opener = document.activeElement;
    return () => {
      if (!panel?.contains(document.activeElement)) return;
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true });
    };
  }, [isWide]);
  const inside = (
    <>
      <header class="panel-head">
        <h2>{title}</h2>
        <IconButton icon="close" label={texts.close} onClick={onClose} />
      </header>
      <div class="panel-body">{children}</div>
    </>
  );
  if (!isWide) return <Modal class="panel over" label={title} onClose={onClose}>{inside}</Modal>;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    // It closes a dialog that the panel opened.
    if (event.target instanceof Element && event.target.closest("dialog")) return;
    event.stopPropagation();
    onClose();
  };
  return <aside ref={aside} class="panel" aria-label={title} onKeyDown={onKeyDown}>{inside}</aside>;
}
