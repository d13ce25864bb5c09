/**
 * A virtual list.
 *
 * Props: `items`, `keyOf(item)`, `heightOf(item)` (in px; exact, or an estimate with `isMeasured`), `children(item,
 * index)`; `label`, `class?`, `isMeasured?` (rows are measured once shown), `showKey?` (scrolled into view when it
 * changes), `onEnd?()` (the last rows are near: load more), `before?`/`after?` (scroll along with the rows). The
 * focused row stays mounted however far it is scrolled away.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { computeOffsets, findRowAt } from "./virtual_offsets.ts";

/** How far beyond the viewport rows are rendered, in px, so that fast scrolling shows no gaps. */
const AHEAD_PX = 400;

/** Props of a virtual list. */
export interface VirtualListProps<T> {
  items: readonly T[];
  keyOf: (item: T) => string;
  heightOf: (item: T) => number;
  children: (item: T, index: number) => ComponentChildren;
  label: string;
  class?: string;
  isMeasured?: boolean;
  showKey?: string;
  onEnd?: () => void;
  before?: ComponentChildren;
  after?: ComponentChildren;
}

/** The list and its scroll container. */
export function VirtualList<T>(props: VirtualListProps<T>) {
  const { items, keyOf, heightOf, isMeasured = false } = props;
  const box = useRef<HTMLDivElement>(null);
  const rows = useRef<HTMLUListElement>(null);
  const measured = useRef(new Map<string, number>());
  const [measures, setMeasures] = useState(0);
  const [view, setView] = useState({ top: 0, height: 0 });
  const [focused, setFocused] = useState<string>();
  const offsets = useMemo(
    () => computeOffsets(items, (item) => measured.current.get(keyOf(item)) ?? heightOf(item)),
    [items, measures],
  );
  const look = () => {
    const element = box.current;
    if (!element) return;
    // Content before the rows moves them down.
    const top = element.scrollTop - (rows.current?.offsetTop ?? 0);
    setView((before) =>
      before.top === top && before.height === element.clientHeight ? before : { top, height: element.clientHeight }
    );
  };
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useShownKey(props, offsets, box, rows);

  const first = findRowAt(offsets, view.top - AHEAD_PX);
  const last = Math.min(items.length - 1, findRowAt(offsets, view.top + view.height + AHEAD_PX));
  const shown = new Set<number>();
  for (let index = first; index <= last; index++) shown.add(index);
  const focusedAt = focused === undefined ? -1 : items.findIndex((item) => keyOf(item) === focused);
  if (focusedAt >= 0) shown.add(focusedAt);
  const isNearEnd = items.length > 0 && last >= items.length - 1;
  useEffect(() => {
    if (isNearEnd && view.height > 0) props.onEnd?.();
  }, [isNearEnd, items, view.height > 0]);

  return (
    <div ref={box} class={`virtual ${props.class ?? ""}`} onScroll={look}>
      {props.before}
      <ul
        ref={rows}
        class="virtual-rows"
        aria-label={props.label}
        style={{ height: `${offsets[items.length]}px` }}
        onFocusIn={(event) => setFocused(findKey(event.target))}
        onFocusOut={() => setFocused(undefined)}
      >
        {[...shown].sort((a, b) => a - b).map((index) => {
          const item = items[index]!;
          const key = keyOf(item);
          return (
            <VirtualRow
              key={key}
              id={key}
              top={offsets[index]!}
              height={isMeasured ? undefined : offsets[index + 1]! - offsets[index]!}
              place={index + 1}
              count={items.length}
              onHeight={isMeasured
                ? (height) => {
                  if (measured.current.get(key) === height) return;
                  measured.current.set(key, height);
                  setMeasures((count) => count + 1);
                }
                : undefined}
            >
              {props.children(item, index)}
            </VirtualRow>
          );
        })}
      </ul>
      {props.after}
    </div>
  );
}

function findKey(target: EventTarget | null): string | undefined {
  return target instanceof Element ? target.closest<HTMLElement>("[data-key]")?.dataset.key : undefined;
}

/** Scrolls by the least amount that shows the row. */
function useShownKey<T>(
  { items, keyOf, showKey }: VirtualListProps<T>,
  offsets: Float64Array,
  box: { current: HTMLDivElement | null },
  rows: { current: HTMLUListElement | null },
): void {
  const index = showKey === undefined ? -1 : items.findIndex((item) => keyOf(item) === showKey);
  useLayoutEffect(() => {
    const element = box.current;
    if (index < 0 || !element) return;
    const before = rows.current?.offsetTop ?? 0;
    const [top, bottom] = [offsets[index]! + before, offsets[index + 1]! + before];
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }, [showKey, index >= 0]);
}

function VirtualRow(
  { id, top, height, place, count, onHeight, children }: {
    id: string;
    top: number;
    height: number | undefined;
    place: number;
    count: number;
    onHeight: ((height: number) => void) | undefined;
    children: ComponentChildren;
  },
) {
  const row = useRef<HTMLLIElement>(null);
  useLayoutEffect(() => {
    const element = row.current;
    if (!element || !onHeight) return;
    const observer = new ResizeObserver(() => onHeight(element.offsetHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, [onHeight !== undefined]);
  return (
    <li
      ref={row}
      class="virtual-row"
      data-key={id}
      aria-setsize={count}
      aria-posinset={place}
      style={{ transform: `translateY(${top}px)`, height: height === undefined ? undefined : `${height}px` }}
    >
      {children}
    </li>
  );
}
