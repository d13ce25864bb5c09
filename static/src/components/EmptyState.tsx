/**
 * What goes where nothing is yet, and the one next step.
 *
 * Props: `title`; `text?`, `level?` (2 or 3, of the heading), `children?` (the step, such as a button).
 */
import type { ComponentChildren } from "preact";

/** A title, a sentence, and room for the step. */
export function EmptyState(
  { title, text, level = 2, children }: { title: string; text?: string; level?: 2 | 3; children?: ComponentChildren },
) {
  const Heading = level === 2 ? "h2" : "h3";
  return (
    <div class="empty-state">
      <Heading>{title}</Heading>
      {text && <p>{text}</p>}
      {children && <div class="actions-row">{children}</div>}
    </div>
  );
}
