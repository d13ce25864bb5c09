/**
 * A virtual grid of equal cards.
 *
 * Props: `items`, `keyOf(item)`, `children(item, tabIndex)` (one link, button or checkbox, which gets the tab index), `label`,
 * `minWidthPx` (of a card), `heightOf(widthPx)`; `gapPx?`, `class?`, `memory?` (keeps the scroll position while
 * unmounted), `onEnd?()` (the last rows are near), `before?`, `after?` (scroll along). Keys: the grid is one tab stop;
 * arrows, Home, End and the page keys move between cards.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** How far beyond the viewport cards are rendered, in px. */
const AHEAD_PX = 600;

/** Props of a virtual grid. */
export interface VirtualGridProps<T> {
  items: readonly T[];
  keyOf: (item: T) => string;
  children: (item: T, tabIndex: number) => ComponentChildren;
  label: string;
  minWidthPx: number;
  heightOf: (widthPx: number) => number;
  gapPx?: number;
  class?: string;
  memory?: { top: number };
  onEnd?: () => void;
  before?: ComponentChildren;
  after?: ComponentChildren;
}

/** Rows before the end at which more is loaded, so that readers seldom reach the end. */
const EARLY_ROWS = 24;

/** The positions of the cards. */
interface Layout {
  columns: number;
  widthPx: number;
  rowPx: number;
}

/** The grid and its scroll container. */
export function VirtualGrid<T>(props: VirtualGridProps<T>) {
  const { items, keyOf, gapPx = 16, memory } = props;
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const [view, setView] = useState({ top: 0, height: 0, width: 0 });
  const [current, setCurrent] = useState(0);
  const isFocusWanted = useRef(false);
  const look = () => {
    const [element, cards] = [box.current, list.current];
    if (!element || !cards) return;
    if (memory) memory.top = element.scrollTop;
    const seen = {
      top: element.scrollTop - cards.offsetTop,
      height: element.clientHeight,
      width: cards.clientWidth,
    };
    setView((before) =>
      before.top === seen.top && before.height === seen.height && before.width === seen.width ? before : seen
    );
  };
  useLayoutEffect(() => {
    const element = box.current!;
    const top = memory?.top ?? 0;
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    observer.observe(list.current!);
    // The height of all cards is known one render later.
    if (top > 0) requestAnimationFrame(() => element.scrollTop = top);
    return () => observer.disconnect();
  }, []);

  const layout = computeLayout(view.width, props.minWidthPx, gapPx, props.heightOf);
  const rows = Math.ceil(items.length / layout.columns);
  const firstRow = Math.max(0, Math.floor((view.top - AHEAD_PX) / layout.rowPx));
  const lastRow = Math.min(rows - 1, Math.floor((view.top + view.height + AHEAD_PX) / layout.rowPx));
  const stop = Math.min(current, items.length - 1);
  const shown = new Set<number>();
  if (view.width > 0) {
    const end = Math.min(items.length, (lastRow + 1) * layout.columns);
    for (let index = firstRow * layout.columns; index < end; index++) shown.add(index);
    // The focused card stays mounted however far it is scrolled away.
    if (stop >= 0) shown.add(stop);
  }
  const isNearEnd = view.width > 0 && lastRow >= rows - EARLY_ROWS;
  useEffect(() => {
    if (isNearEnd) props.onEnd?.();
  }, [isNearEnd, items]);
  useLayoutEffect(() => {
    if (!isFocusWanted.current) return;
    isFocusWanted.current = false;
    const card = list.current?.querySelector<HTMLElement>(`[data-place="${stop}"] :is(a, button, input)`);
    card?.focus({ preventScroll: true });
  }, [stop, view]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const page = Math.max(1, Math.floor(view.height / layout.rowPx)) * layout.columns;
    const steps: Record<string, number> = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: layout.columns,
      ArrowUp: -layout.columns,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const index = Math.max(0, Math.min(items.length - 1, stop + step));
    if (index === stop) return;
    isFocusWanted.current = true;
    setCurrent(index);
    const top = Math.floor(index / layout.columns) * layout.rowPx + list.current!.offsetTop;
    const element = box.current!;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + layout.rowPx > element.scrollTop + element.clientHeight) {
      element.scrollTop = top + layout.rowPx - element.clientHeight;
    }
    look();
  };
  return (
    <div ref={box} class={`virtual ${props.class ?? ""}`} onScroll={look}>
      {props.before}
      <ul
        ref={list}
        class="virtual-rows virtual-grid"
        aria-label={props.label}
        style={{ height: `${Math.max(0, rows * layout.rowPx - gapPx)}px` }}
        onKeyDown={onKeyDown}
        onFocusIn={(event) => setCurrent(getCellPosition(event.target) ?? stop)}
      >
        {[...shown].sort((a, b) => a - b).map((index) => (
          <li
            key={keyOf(items[index]!)}
            class="virtual-row"
            data-place={index}
            data-key={keyOf(items[index]!)}
            aria-setsize={items.length}
            aria-posinset={index + 1}
            style={{
              width: `${layout.widthPx}px`,
              height: `${layout.rowPx - gapPx}px`,
              transform: `translate(${(index % layout.columns) * (layout.widthPx + gapPx)}px, ${
                Math.floor(index / layout.columns) * layout.rowPx
              }px)`,
            }}
          >
            {props.children(items[index]!, index === stop ? 0 : -1)}
          </li>
        ))}
      </ul>
      {props.after}
    </div>
  );
}

function computeLayout(
  width: number,
  minWidthPx: number,
  gapPx: number,
  heightOf: (widthPx: number) => number,
): Layout {
  const columns = Math.max(1, Math.floor((width + gapPx) / (minWidthPx + gapPx)));
  const widthPx = Math.max(1, Math.floor((width - gapPx * (columns - 1)) / columns));
  return { columns, widthPx, rowPx: Math.round(heightOf(widthPx)) + gapPx };
}

function getCellPosition(target: EventTarget | null): number | undefined {
  const index = target instanceof Element ? target.closest<HTMLElement>("[data-place]")?.dataset.place : undefined;
  return index === undefined ? undefined : Number(index);
}
