/**
 * Tabs.
 *
 * Props: `label`, `tabs` (`id`, `title`), `current` (an id), `onSelect(id)`, `children` (the current panel). Keys:
 * arrows, Home and End select a tab.
 */
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

/** The tab list and the current panel. */
export function Tabs<T extends string>(
  { label, tabs, current, onSelect, children }: {
    label: string;
    tabs: readonly { id: T; title: string }[];
    current: T;
    onSelect: (id: T) => void;
    children: ComponentChildren;
  },
) {
  const id = useId();
  const row = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    const at = tabs.findIndex((tab) => tab.id === current);
    const last = tabs.length - 1;
    const steps: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last };
    const to = steps[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const index = to < 0 ? last : to > last ? 0 : to;
    onSelect(tabs[index]!.id);
    row.current?.querySelectorAll<HTMLElement>("[role=tab]")[index]?.focus();
  };
  return (
    <div class="tabs">
      <div ref={row} class="tab-row" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            id={`${id}-${tab.id}`}
            class="tab"
            aria-selected={tab.id === current}
            aria-controls={`${id}-view`}
            tabIndex={tab.id === current ? 0 : -1}
            onClick={() => onSelect(tab.id)}
          >
            {tab.title}
          </button>
        ))}
      </div>
      <div id={`${id}-view`} role="tabpanel" aria-labelledby={`${id}-${current}`} tabIndex={0}>{children}</div>
    </div>
  );
}
