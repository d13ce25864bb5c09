/**
 * A sortable list: rows are dragged by a handle, or moved with buttons.
 *
 * Props: `items`, `keyOf(item)`, `nameOf(item)`, `onMove(from, to)`, `label`, `labels` (`up(name)`, `down(name)`,
 * `place(name, n, of)`), `children(item)`; `isDisabled?`. The moved row keeps the focus, and its new position is
 * announced.
 */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { IconButton } from "../Button.tsx";

/** The texts of the list. */
export interface SortLabels {
  up: (name: string) => string;
  down: (name: string) => string;
  place: (name: string, n: number, of: number) => string;
}

/** A dragged row: its old and its new index. */
interface Drag {
  from: number;
  to: number;
}

/** The list. */
export function SortableList<T>(
  { items, keyOf, nameOf, onMove, label, labels, isDisabled = false, children }: {
    items: readonly T[];
    keyOf: (item: T) => string;
    nameOf: (item: T) => string;
    onMove: (from: number, to: number) => void;
    label: string;
    labels: SortLabels;
    isDisabled?: boolean;
    children: (item: T) => ComponentChildren;
  },
) {
  const rows = useRef<HTMLUListElement>(null);
  const [drag, setDrag] = useState<Drag>();
  const [announcement, setAnnouncement] = useState("");
  const move = (from: number, to: number) => {
    if (to < 0 || to >= items.length || to === from) return;
    setAnnouncement(labels.place(nameOf(items[from]!), to + 1, items.length));
    onMove(from, to);
  };
  const grip = (from: number) => ({
    onPointerDown(event: PointerEvent & { currentTarget: HTMLElement }) {
      if (event.button !== 0) return;
      event.preventDefault();
      event.currentTarget.setPointerCapture(event.pointerId);
      setDrag({ from, to: from });
    },
    onPointerMove(event: PointerEvent) {
      if (drag?.from !== from) return;
      const to = placeUnder(rows.current!, event.clientY);
      if (to !== drag.to) setDrag({ from, to });
    },
    onPointerUp() {
      if (drag?.from !== from) return;
      setDrag(undefined);
      move(from, drag.to);
    },
    onPointerCancel: () => setDrag(undefined),
  });
  return (
    <>
      <ul ref={rows} class={drag ? "sortable is-sorting" : "sortable"} aria-label={label}>
        {items.map((item, index) => {
          const name = nameOf(item);
          return (
            <li key={keyOf(item)} class={getRowClass(drag, index)}>
              {!isDisabled && <span class="sortable-grip" aria-hidden="true" {...grip(index)} />}
              {children(item)}
              {!isDisabled && (
                <span class="sortable-steps">
                  <IconButton
                    icon="up"
                    label={labels.up(name)}
                    isDisabled={index === 0}
                    onClick={() => move(index, index - 1)}
                  />
                  <IconButton
                    icon="below"
                    label={labels.down(name)}
                    isDisabled={index === items.length - 1}
                    onClick={() => move(index, index + 1)}
                  />
                </span>
              )}
            </li>
          );
        })}
      </ul>
      <p class="visually-hidden" role="status">{announcement}</p>
    </>
  );
}

function getRowClass(drag: Drag | undefined, index: number): string {
  const isTarget = drag !== undefined && drag.to === index && drag.to !== drag.from;
  return [
    "sortable-row",
    drag?.from === index && "is-moving",
    isTarget && (drag.to < drag.from ? "is-before" : "is-after"),
  ].filter(Boolean).join(" ");
}

/** Returns the row at a vertical position; the first or last beyond the list. */
function placeUnder(list: HTMLElement, y: number): number {
  const rows = [...list.children];
  const at = rows.findIndex((row) => y < row.getBoundingClientRect().bottom);
  return at < 0 ? rows.length - 1 : at;
}
