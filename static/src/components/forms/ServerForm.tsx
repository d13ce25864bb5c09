/** The form of a server: connections, images, speech, transcription, tools. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A form whose values are checked by its own code. The browser fills nothing in: the passwords it knows are for other sites. */
export function ServerForm(
  { label, rejections = 0, hasFocus = false, onSubmit, children }: {
    label?: string;
    /** Number of attempts with invalid fields: each one focuses the first of them, which may be out of view. */
    rejections?: number;
    /** Focuses the first field when the form is shown. */
    hasFocus?: boolean;
    onSubmit: () => unknown;
    children: ComponentChildren;
  },
) {
  const form = useRef<HTMLFormElement>(null);
  const focus = (selector: string) => form.current?.querySelector<HTMLElement>(selector)?.focus();
  useEffect(() => hasFocus ? focus("input, select, textarea") : undefined, []);
  useEffect(() => rejections > 0 ? focus('[aria-invalid="true"]') : undefined, [rejections]);
  return (
    <form
      ref={form}
      class="form"
      noValidate
      autocomplete="off"
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        void onSubmit();
      }}
    >
      {children}
    </form>
  );
}
