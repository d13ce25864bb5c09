/** A labelled input with its hint and its error. */
import type { ComponentChildren } from "preact";

/** Frames one control; the control gets the ids that tie hint and error to it. */
export function Field(
  { id, label, hint, error, children }: {
    id: string;
    label: string;
    hint?: string;
    error?: string;
    children: (describedBy: string | undefined) => ComponentChildren;
  },
) {
  const parts = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(parts === "" ? undefined : parts)}
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      {error && <p class="field-error" id={`${id}-error`} role="alert">{error}</p>}
    </div>
  );
}
