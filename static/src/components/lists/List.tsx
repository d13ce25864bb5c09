/**
 * A list of rows.
 *
 * List: `children` (rows); `label?`.
 * ListRow: `title`; `text?` (below it), `start?` (before it: icon, portrait), `end?` (after it: buttons, a badge), and
 * at most one of `href` and `onClick`, which make the text clickable; `isCurrent?`.
 */
import type { ComponentChildren } from "preact";

/** The container of the rows. */
export function List({ label, children }: { label?: string; children: ComponentChildren }) {
  return <ul class="list" aria-label={label}>{children}</ul>;
}

/** One row. */
export function ListRow(
  { title, text, start, end, href, onClick, isCurrent }: {
    title: ComponentChildren;
    text?: ComponentChildren;
    start?: ComponentChildren;
    end?: ComponentChildren;
    href?: string;
    onClick?: () => void;
    isCurrent?: boolean;
  },
) {
  const inside = (
    <>
      {start && <span class="list-start">{start}</span>}
      <span class="list-text">
        <span class="list-title">{title}</span>
        {text && <span class="list-more">{text}</span>}
      </span>
    </>
  );
  const current = isCurrent ? "true" as const : undefined;
  return (
    <li class="list-row">
      {href !== undefined
        ? <a class="list-main" href={href} aria-current={current}>{inside}</a>
        : onClick
        ? <button type="button" class="list-main" aria-current={current} onClick={onClick}>{inside}</button>
        : <div class="list-main">{inside}</div>}
      {end && <div class="list-end">{end}</div>}
    </li>
  );
}
