/**
 * The bar of a list while several items are selected: how many, the actions, and how to leave.
 *
 * SelectionBar: `selection`, `count`, `allIds`, `children` (the actions). Escape anywhere in `within` leaves.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Selection } from "../../state/app/selection.ts";
import { texts } from "../../texts/texts.ts";
import { Button, IconButton } from "../Button.tsx";

/** The bar. @param props.within Selector of the element around bar and list. */
export function SelectionBar(
  { selection, count, allIds, within, children }: {
    selection: Selection;
    count: number;
    allIds: readonly string[];
    within: string;
    children: ComponentChildren;
  },
) {
  const bar = useRef<HTMLDivElement>(null);
  const t = texts.selection;
  useEffect(() => {
    const around = bar.current?.closest(within);
    const find = (control: string) =>
      around?.querySelector<HTMLElement>(`[data-key="${selection.anchor}"] ${control}`) ??
        around?.querySelector<HTMLElement>(`[data-key] ${control}`);
    // The menu that started the mode is gone from its row.
    find("input")?.focus();
    const onKeyDown = (event: Event) => {
      if ((event as KeyboardEvent).key !== "Escape" || event.defaultPrevented) return;
      // A menu or dialog of the bar closes first.
      const overlay = event.target instanceof Element ? event.target.closest("[popover], dialog") : null;
      if (overlay && around?.contains(overlay)) return;
      // Neither the drawer closes nor a reply stops.
      event.preventDefault();
      event.stopPropagation();
      selection.end();
    };
    around?.addEventListener("keydown", onKeyDown);
    return () => {
      around?.removeEventListener("keydown", onKeyDown);
      const hadFocus = around?.contains(document.activeElement) || document.activeElement === document.body;
      if (hadFocus) requestAnimationFrame(() => find("a")?.focus({ preventScroll: true }));
    };
  }, []);
  return (
    <div ref={bar} class="selection-bar" role="toolbar" aria-label={t.label}>
      <IconButton icon="close" label={t.end} onClick={() => selection.end()} />
      <span class="selection-count" role="status">{t.count(count)}</span>
      <Button kind="quiet" onClick={() => selection.add(allIds)}>{t.all}</Button>
      <div class="selection-actions">{children}</div>
    </div>
  );
}
